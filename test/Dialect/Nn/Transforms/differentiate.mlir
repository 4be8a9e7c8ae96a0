// RUN: cleave-opt %s --split-input-file --nn-differentiate | FileCheck %s
// RUN: cleave-opt %s --split-input-file --nn-differentiate="by=x" | FileCheck %s --check-prefix=BY
// RUN: cleave-opt %s --split-input-file --nn-differentiate 2>&1 >/dev/null | FileCheck %s --check-prefix=STEPS

// STEPS: warning: 'u' has a gradient of zeros: the loss depends on it in steps alone
// STEPS-NOT: warning

// Each parameter gets a gradient, of its shape. The other factor is read once for each.
// CHECK-LABEL: @main(
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf32> {{.*}}, %[[W:.*]]: tensor<3xf32>
// CHECK: %[[Y:.*]] = nn.einsum %[[X]], %[[W]] "bi,i->b"
// CHECK: %[[S:.*]] = nn.reduce sum %{{.*}} dims [0]
// CHECK: %[[D:.*]] = nn.einsum %{{.*}}, %[[X]] "b,bi->i" : (tensor<4xf32>, tensor<4x3xf32>) -> tensor<3xf32>
// CHECK: return %[[S]], %[[D]] : tensor<f32>, tensor<3xf32>
// BY-LABEL: @main(
// BY: %[[D:.*]] = nn.einsum %{{.*}}, %{{.*}} "b,i->bi"
// BY: return %{{.*}}, %[[D]] : tensor<f32>, tensor<4x3xf32>
func.func @main(%x: tensor<4x3xf32> {nn.name = "x"}, %w: tensor<3xf32> {nn.name = "w", nn.role = "parameter"}) -> (tensor<f32> {nn.name = "loss"}) {
  %y = nn.einsum %x, %w "bi,i->b" : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4xf32>
  %q = nn.mul %y, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = nn.reduce sum %q dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// What a plan wants of a value it wants of its gradient; ops have the node that they are the gradient of. Nothing comes through a step,
// and what the loss does not depend on gets zeros.
#mesh = #spmd.mesh<["data"=2]>
#rows = #spmd.sharding<#mesh, [{"data"}]>
#wants = #spmd.annotation<#rows, loc("plan.yaml":3:5), loc("plan.yaml":3:14)>
// CHECK-LABEL: @main(
// CHECK: spmd.pin %{{.*}} "h" wants
// CHECK: %[[G:.*]] = spmd.pin %{{.*}} "grad(h)" wants {{.*}} : tensor<4xf32>
// CHECK: %[[DX:.*]] = nn.mul %[[G]], %{{.*}}
// CHECK: %[[NONE:.*]] = nn.broadcast %{{.*}} -> tensor<4xf32>
// CHECK: return %{{.*}}, %[[DX]], %[[NONE]]
// BY-LABEL: @main(
func.func @main(%x: tensor<4xf32> {nn.name = "x", nn.role = "parameter"}, %u: tensor<4xf32> {nn.name = "u", nn.role = "parameter"}) -> (tensor<f32> {nn.name = "loss"}) {
  %h = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %p = spmd.pin %h "h" wants #wants : tensor<4xf32>
  %f = nn.floor %u : (tensor<4xf32>) -> tensor<4xf32>
  %a = nn.add %p, %f : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = nn.reduce sum %a dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %s : tensor<f32>
}
