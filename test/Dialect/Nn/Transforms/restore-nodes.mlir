// RUN: cleave-opt %s --nn-restore-nodes --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A location that names a node stays; one that does not gives way to the attribute.
// CHECK-LABEL: @locations_come_back
// CHECK: nn.exp {{.*}} loc(#nn.node<"kept", "Exp">)
// CHECK: nn.neg {{.*}} loc(#nn.node<"noted", "Neg">)
// CHECK: nn.abs {{.*}} loc(unknown)
func.func @locations_come_back(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = nn.exp %x {nn.node = #nn.node<"other", "Exp">} : (tensor<8xf32>) -> tensor<8xf32> loc(#nn.node<"kept", "Exp">)
  %b = nn.neg %a {nn.node = #nn.node<"noted", "Neg">} : (tensor<8xf32>) -> tensor<8xf32> loc(unknown)
  %c = nn.abs %b : (tensor<8xf32>) -> tensor<8xf32> loc(unknown)
  return %c : tensor<8xf32>
}
