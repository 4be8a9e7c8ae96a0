// The reducer keeps what the interestingness test asks for, here an exponential, and drops what it can do without.
//
// RUN: cleave-reduce %s -reduction-tree='traversal-mode=0 test=%S/Inputs/has-exp.sh' | FileCheck %s
//
// Without anything to keep there is nothing to do.
// RUN: not cleave-reduce %s 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: cleave-reduce: error: nothing says what to keep: give '--test=SCRIPT'

// CHECK-LABEL: @has_an_exponential
// CHECK: nn.exp
func.func @has_an_exponential(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-NOT: @is_not_needed
func.func @is_not_needed(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
