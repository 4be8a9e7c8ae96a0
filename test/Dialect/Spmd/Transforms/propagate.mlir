// RUN: cleave-opt %s --split-input-file --spmd-propagate 2>/dev/null | FileCheck %s

// What is asked for one value follows to all that hang on it, forward and backward; the rest is replicated explicitly.
// CHECK-LABEL: @a_annotation_flows_along_ops
// CHECK-SAME: %arg0: tensor<8x4xf32, #x_replicated>, %arg1: tensor<8x4xf32, #x_replicated>, %arg2: tensor<4xf32, #replicated>
// CHECK-SAME: -> (tensor<8x4xf32, #x_replicated>, tensor<4xf32, #replicated>)
// CHECK-SAME: spmd.wire_bytes = 0
#mesh = #spmd.mesh<["x"=2]>
#x_ = #spmd.sharding<#mesh, [{"x"}, {}]>
func.func @a_annotation_flows_along_ops(%a: tensor<8x4xf32, #x_>, %b: tensor<8x4xf32>, %c: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: nn.add %arg0, %arg1 : (tensor<8x4xf32, #x_replicated>, tensor<8x4xf32, #x_replicated>) -> tensor<8x4xf32, #x_replicated>
  // CHECK-NEXT: nn.exp {{.*}} -> tensor<8x4xf32, #x_replicated>
  // CHECK-NEXT: nn.neg %arg2 : (tensor<4xf32, #replicated>) -> tensor<4xf32, #replicated>
  %0 = nn.add %a, %b : (tensor<8x4xf32, #x_>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = nn.exp %0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = nn.neg %c : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<8x4xf32>, tensor<4xf32>
}

// -----

// Column-parallel, row-parallel: what lies between is split without anybody saying so, and the second product is partial
// until it is returned. All-reducing 8x16 floats over 2 ranks sends 512 bytes.
// CHECK-LABEL: @the_classic_pair
// CHECK-SAME: spmd.wire_bytes = 512 : i64
#mesh = #spmd.mesh<["m"=2]>
#cols = #spmd.sharding<#mesh, [{}, {"m"}]>
#rows = #spmd.sharding<#mesh, [{"m"}, {}]>
func.func @the_classic_pair(%x: tensor<8x16xf32>, %a: tensor<16x64xf32, #cols>, %b: tensor<64x16xf32, #rows>) -> tensor<8x16xf32> {
  // CHECK-NEXT: %[[H:.*]] = nn.einsum {{.*}} -> tensor<8x64xf32, #replicated_m>
  // CHECK-NEXT: %[[T:.*]] = nn.tanh %[[H]] : (tensor<8x64xf32, #replicated_m>) -> tensor<8x64xf32, #replicated_m>
  // CHECK-NEXT: %[[P:.*]] = nn.einsum %[[T]], {{.*}} -> tensor<8x16xf32, #replicated_replicated_sum_m>
  // CHECK-NEXT: return {spmd.operands = [#replicated_replicated]} %[[P]]
  %0 = nn.einsum %x, %a "ik,kj->ij" : (tensor<8x16xf32>, tensor<16x64xf32, #cols>) -> tensor<8x64xf32>
  %1 = nn.tanh %0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %2 = nn.einsum %1, %b "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x16xf32, #rows>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// -----

// A closed dim stays as it was asked for, an open one takes what flows by.
// CHECK-LABEL: @open_dims_are_filled
// CHECK-SAME: %arg0: tensor<8x8xf32, #x_y>, %arg1: tensor<8x8xf32, #x_replicated>, %arg2: tensor<8x8xf32, #replicated_y>
#mesh = #spmd.mesh<["x"=2, "y"=2]>
#open = #spmd.sharding<#mesh, [{"x"}, {?}]>
#closed = #spmd.sharding<#mesh, [{"x"}, {}]>
#_y = #spmd.sharding<#mesh, [{}, {"y"}]>
func.func @open_dims_are_filled(%a: tensor<8x8xf32, #open>, %b: tensor<8x8xf32, #closed>, %c: tensor<8x8xf32, #_y>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = nn.mul %a, %c : (tensor<8x8xf32, #open>, tensor<8x8xf32, #_y>) -> tensor<8x8xf32>
  %1 = nn.neg %b : (tensor<8x8xf32, #closed>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Where an op wants an operand otherwise than it is shared, it says so; an operand that is fine is unit.
// CHECK-LABEL: @an_op_says_what_it_wants
#mesh = #spmd.mesh<["x"=2]>
#x_ = #spmd.sharding<#mesh, [{"x"}, {}]>
#_x = #spmd.sharding<#mesh, [{}, {"x"}]>
func.func @an_op_says_what_it_wants(%a: tensor<64x8xf32, #x_>, %b: tensor<64x8xf32, #_x>) -> tensor<64x8xf32, #x_> {
  // CHECK: nn.add %arg0, %arg1 {spmd.operands = [unit, #x_replicated]}
  %0 = nn.add %a, %b : (tensor<64x8xf32, #x_>, tensor<64x8xf32, #_x>) -> tensor<64x8xf32, #x_>
  return %0 : tensor<64x8xf32, #x_>
}

// -----

// Two annotations want one axis on different dims of a sum. The one of the lower priority number decides; the other operand
// is turned.
// CHECK-LABEL: @the_lower_priority_number_decides
// CHECK-SAME: -> (tensor<8x8xf32, #replicated_x>, tensor<8x8xf32, #x_replicated>)
#mesh = #spmd.mesh<["x"=2]>
#x_late = #spmd.sharding<#mesh, [{"x"}p1, {}p1]>
#_x_late = #spmd.sharding<#mesh, [{}p1, {"x"}p1]>
#x_ = #spmd.sharding<#mesh, [{"x"}, {}]>
#_x = #spmd.sharding<#mesh, [{}, {"x"}]>
func.func @the_lower_priority_number_decides(%a: tensor<8x8xf32, #x_late>, %b: tensor<8x8xf32, #_x>, %c: tensor<8x8xf32, #x_>, %d: tensor<8x8xf32, #_x_late>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  // CHECK-NEXT: nn.add %arg0, %arg1 {spmd.operands = [#replicated_x, unit]}
  // CHECK-NEXT: nn.add %arg2, %arg3 {spmd.operands = [unit, #x_replicated]}
  %0 = nn.add %a, %b : (tensor<8x8xf32, #x_late>, tensor<8x8xf32, #_x>) -> tensor<8x8xf32>
  %1 = nn.add %c, %d : (tensor<8x8xf32, #x_>, tensor<8x8xf32, #_x_late>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// A parameter without an annotation is stored as its users split it.
// CHECK-LABEL: @a_free_parameter_follows_its_user
#mesh = #spmd.mesh<["x"=2]>
#_x = #spmd.sharding<#mesh, [{}, {"x"}]>
module {
  nn.param @bias : tensor<8xf32> = dense<1.0> : tensor<8xf32>
  func.func @a_free_parameter_follows_its_user(%a: tensor<4x8xf32, #_x>) -> tensor<4x8xf32> {
    // CHECK: nn.load @bias : tensor<8xf32, #x>
    %b = nn.load @bias : tensor<8xf32>
    %0 = nn.add %a, %b : (tensor<4x8xf32, #_x>, tensor<8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
