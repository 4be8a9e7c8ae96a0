// RUN: cleave-opt %s --nn-restore-nodes --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Locations that name nodes stay as they are.
// CHECK-LABEL: @locations_are_there
// CHECK: nn.exp {{.*}} loc(#nn.node<"kept", "Exp">)
func.func @locations_are_there(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = nn.exp %x {nn.node = #nn.node<"other", "Exp">} : (tensor<8xf32>) -> tensor<8xf32> loc(#nn.node<"kept", "Exp">)
  return %a : tensor<8xf32>
}

// Where they are lost, all come back that an attribute knows.
// CHECK-LABEL: @locations_come_back
// CHECK: nn.exp {{.*}} loc(unknown)
// CHECK: nn.neg {{.*}} loc(#nn.node<"noted", "Neg">)
// CHECK: nn.abs {{.*}} loc(#nn.node<"noted too", "Abs">)
func.func @locations_come_back(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = nn.exp %x : (tensor<8xf32>) -> tensor<8xf32> loc(unknown)
  %b = nn.neg %a {nn.node = #nn.node<"noted", "Neg">} : (tensor<8xf32>) -> tensor<8xf32> loc(unknown)
  %c = nn.abs %b {nn.node = #nn.node<"noted too", "Abs">} : (tensor<8xf32>) -> tensor<8xf32> loc(unknown)
  return %c : tensor<8xf32>
}
