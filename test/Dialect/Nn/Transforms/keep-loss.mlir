// RUN: cleave-opt %s --nn-keep-loss | FileCheck %s
// RUN: cleave-opt %s --nn-keep-loss --nn-verify-form=form=differentiated | FileCheck %s --check-prefix=FORM

// Of a step the loss stays, and all arguments, also those that nothing reads any more; what led to other results is gone, and states are left
// as they are. What a plan asks of gradients is asked of the step.
// CHECK-LABEL: @main(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32> {nn.name = "x", nn.role = "batch"}
// CHECK-SAME: %[[W:.*]]: tensor<4xf32> {nn.name = "w", nn.role = "parameter", spmd.kept}
// CHECK-SAME: tensor<4xf32> {nn.name = "m(w)", nn.role = "optimizer", spmd.kept}) -> (tensor<f32> {nn.name = "loss"})
// CHECK-NEXT: %[[Y:.*]] = nn.mul %[[X]], %[[W]]
// CHECK-NEXT: %[[L:.*]] = nn.reduce sum %[[Y]]
// CHECK-NEXT: return %[[L]]
// FORM: spmd.phase = "differentiated"
#mesh = #spmd.mesh<["data"=2]>
#rows = #spmd.sharding<#mesh, [{"data"}]>
#share = #spmd.annotation<#rows, loc("p.yaml":3:5), loc("p.yaml":3:14)>
module attributes {spmd.mesh = #mesh} {
  func.func @main(%x: tensor<4xf32> {nn.name = "x", nn.role = "batch"}, %w: tensor<4xf32> {nn.name = "w", nn.role = "parameter"},
                  %m: tensor<4xf32> {nn.name = "m(w)", nn.role = "optimizer"})
      -> (tensor<4xf32> {nn.name = "next(w)", spmd.state = "w"}, tensor<f32> {nn.name = "loss"}, tensor<4xf32> {nn.name = "next(m(w))", spmd.state = "m(w)"}) {
    %y = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %l = nn.reduce sum %y dims [0] : (tensor<4xf32>) -> tensor<f32>
    %n = nn.add %m, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %p = spmd.pin %n "grad(w)" wants #share : tensor<4xf32>
    %v = nn.sub %w, %p : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %v, %l, %n : tensor<4xf32>, tensor<f32>, tensor<4xf32>
  }
}
