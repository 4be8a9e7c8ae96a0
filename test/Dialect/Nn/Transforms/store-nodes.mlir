// RUN: cleave-opt %s --nn-store-nodes --mlir-print-local-scope | FileCheck %s
// RUN: cleave-opt %s --nn-store-nodes --strip-debuginfo --mlir-print-local-scope | FileCheck %s

// What the location says by now counts, not what was noted before; an op without a node has none.
// CHECK-LABEL: @the_location_counts
// CHECK: nn.exp %arg0 {nn.node = #nn.node<"new", "Exp">}
// CHECK: nn.neg %{{.*}} : (tensor
// CHECK: nn.abs %{{.*}} {nn.node = loc(fused[#nn.node<"one", "Abs">, #nn.node<"two", "Abs">])}
func.func @the_location_counts(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = nn.exp %x {nn.node = #nn.node<"old", "Exp">} : (tensor<8xf32>) -> tensor<8xf32> loc(#nn.node<"new", "Exp">)
  %b = nn.neg %a {nn.node = #nn.node<"gone", "Neg">} : (tensor<8xf32>) -> tensor<8xf32> loc(unknown)
  %c = nn.abs %b : (tensor<8xf32>) -> tensor<8xf32> loc(fused[#nn.node<"one", "Abs">, #nn.node<"two", "Abs">])
  return %c : tensor<8xf32>
}
