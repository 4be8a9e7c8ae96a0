// RUN: cleave-opt %s --nn-attach-update="train='{loss: {kind: mse, of: y}, optimizer: {kind: momentum, beta: 0.5}, rate: 0.25, zero: {axis: data, stage: 1, min_bytes: 0}}'" | FileCheck %s
// RUN: cleave-opt %s --nn-attach-update="train='{loss: {kind: mse, of: y}, optimizer: sgd, rate: input}' gradients=true" | FileCheck %s --check-prefix=GIVEN
// RUN: cleave-opt %s --nn-attach-update="train='{loss: {kind: mse, of: y}, optimizer: {kind: momentum}, zero: {axis: data, stage: 3, min_bytes: 0}}'" | FileCheck %s --check-prefix=THREE
// RUN: not cleave-opt %s --nn-differentiate="of=loss by=x" --nn-attach-update="train='{loss: {kind: mse, of: y}, optimizer: sgd}'" --nn-attach-update="train='{loss: {kind: mse, of: y}, optimizer: sgd}'" 2>&1 | FileCheck %s --check-prefix=TWICE

#mesh = #spmd.mesh<["data"=2]>

// A weight of bf16 has a master of f32, which learns. ZeRO shards what is added, on the first dim that the axis divides, and the weight
// itself stays replicated; in stage 3 it is sharded, too.
// CHECK-LABEL: @main(
// CHECK-SAME: %[[W:.*]]: tensor<3x4xbf16> {nn.begins = @w, nn.name = "w", nn.role = "parameter", spmd.annotation = #spmd.annotation<<#mesh, [{?}, {?}], replicated = {"data"}>
// CHECK-SAME: %[[N:.*]]: tensor<i64> {nn.name = "count", nn.role = "count"}
// CHECK-SAME: %[[MASTER:.*]]: tensor<3x4xf32> {nn.begins = @w, nn.name = "master(w)", nn.origin = "w", nn.role = "optimizer", spmd.annotation = #spmd.annotation<<#mesh, [{}, {"data"}]>
// CHECK-SAME: %[[M:.*]]: tensor<3x4xf32> {nn.name = "m(w)", nn.role = "optimizer", spmd.annotation = #spmd.annotation<<#mesh, [{}, {"data"}]>
// CHECK-SAME: {nn.name = "next(count)", spmd.state = "count"}
// CHECK-SAME: {nn.name = "rate"}
// CHECK-SAME: tensor<3x4xbf16> {nn.name = "next(w)", spmd.state = "w"}
// CHECK-SAME: tensor<3x4xf32> {nn.name = "next(master(w))", spmd.state = "master(w)"}
// CHECK-SAME: tensor<3x4xf32> {nn.name = "next(m(w))", spmd.state = "m(w)"}
// CHECK: %[[G:.*]] = nn.cast %{{.*}} : (tensor<3x4xbf16>) -> tensor<3x4xf32>
// CHECK: %[[B:.*]] = nn.mul %[[M]], %{{.*}}
// CHECK: %[[NEXT:.*]] = nn.add %[[B]], %[[G]]
// CHECK: %[[U:.*]] = nn.mul %[[NEXT]], %{{.*}}
// CHECK: %[[V:.*]] = nn.sub %[[MASTER]], %[[U]]
// CHECK: %[[C:.*]] = nn.cast %[[V]] : (tensor<3x4xf32>) -> tensor<3x4xbf16>
// CHECK: return %{{.*}}, %{{.*}}, %{{.*}}, %[[C]], %[[V]], %[[NEXT]]
// GIVEN-LABEL: @main(
// GIVEN-SAME: tensor<f32> {nn.name = "rate", nn.role = "batch"}
// GIVEN-SAME: tensor<3x4xbf16> {nn.name = "grad(w)"}
// GIVEN-NOT: {nn.name = "rate"}
// THREE-LABEL: @main(
// THREE-SAME: nn.name = "w", nn.role = "parameter", spmd.annotation = #spmd.annotation<<#mesh, [{}, {"data"}]>
// TWICE: error: has no gradient of parameter 'w': nn-differentiate makes them
module attributes {spmd.mesh = #mesh} {
  nn.param @w : tensor<3x4xbf16> = dense<1.0> : tensor<3x4xbf16>
  func.func @main(%x: tensor<3x4xbf16> {nn.name = "x", nn.role = "batch"}, %w: tensor<3x4xbf16> {nn.begins = @w, nn.name = "w", nn.role = "parameter"}) -> (tensor<f32> {nn.name = "loss"}, tensor<3x4xbf16> {nn.name = "grad(w)"}) {
    %y = nn.mul %x, %w : (tensor<3x4xbf16>, tensor<3x4xbf16>) -> tensor<3x4xbf16>
    %s = nn.reduce sum %y dims [0, 1] : (tensor<3x4xbf16>) -> tensor<bf16>
    %l = nn.cast %s : (tensor<bf16>) -> tensor<f32>
    return %l, %x : tensor<f32>, tensor<3x4xbf16>
  }
}
