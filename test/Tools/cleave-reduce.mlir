// The reducer keeps what the interestingness test asks for, here an exponential, and drops what it can do without: functions, and ops
// of a function that others use. What it tries on the way it does not tell.
//
// RUN: cleave-reduce %s -reduction-tree='traversal-mode=0 test=%S/Inputs/has-exp.sh' 2>&1 | FileCheck %s
//
// Without anything to keep there is nothing to do; nor where the test does not see what it looks for.
// RUN: not cleave-reduce %s 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: echo 'func.func @f() { return }' > %t.mlir
// RUN: not cleave-reduce %t.mlir -reduction-tree='traversal-mode=0 test=%S/Inputs/has-exp.sh' 2>&1 | FileCheck %s --check-prefix=DULL
// RUN: echo 'func.func @f() { nonsense }' > %t.mlir
// RUN: not cleave-reduce %t.mlir -reduction-tree='traversal-mode=0 test=%S/Inputs/has-exp.sh' 2>&1 | FileCheck %s --check-prefix=PARSE

// NOTHING: cleave-reduce: error: nothing says what to keep: give '-reduction-tree=traversal-mode=0 test=SCRIPT'
// DULL: cleave-reduce: error: the file is not interesting as it is: the test has to exit with 1 for it
// PARSE: error: custom op 'nonsense' is unknown

// CHECK-NOT: error
// CHECK-NOT: nn.einsum
// CHECK-NOT: nn.relu
// CHECK-NOT: nn.softmax
// CHECK-LABEL: @has_an_exponential
// CHECK: nn.exp
// CHECK-NOT: nn.einsum
// CHECK-NOT: nn.relu
// CHECK-NOT: nn.softmax
func.func @has_an_exponential(%x: tensor<4x4xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = nn.relu %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = nn.einsum %0, %y "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = nn.exp %1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = nn.relu %2 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = nn.einsum %0, %3 "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}

// CHECK-NOT: @is_not_needed
func.func @is_not_needed(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
