// RUN: cleave-opt %s --spmd-insert-reshards | FileCheck %s

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
#x_ = #spmd.sharding<#mesh, [{"x"}, {}]>
#_x = #spmd.sharding<#mesh, [{}, {"x"}]>
#xy_ = #spmd.sharding<#mesh, [{"x", "y"}, {}]>
#part = #spmd.sharding<#mesh, [{"x"}, {}], partial = {"y": sum}>

// What an operand should be becomes a reshard right after the value; the annotation is gone from the op.
// CHECK-LABEL: @an_operand_is_resharded_behind_its_value
func.func @an_operand_is_resharded_behind_its_value(%x: tensor<8x8xf32, #x_>) -> tensor<8x8xf32, #_x> {
  // CHECK: %[[E:.*]] = nn.exp
  // CHECK-NEXT: %[[R:.*]] = spmd.reshard %[[E]] : tensor<8x8xf32, #x_replicated> to tensor<8x8xf32, #replicated_x>
  // CHECK-NEXT: nn.neg %[[E]]
  // CHECK-NEXT: nn.abs %[[R]] : (tensor<8x8xf32, #replicated_x>)
  %0 = nn.exp %x : (tensor<8x8xf32, #x_>) -> tensor<8x8xf32, #x_>
  %1 = nn.neg %0 : (tensor<8x8xf32, #x_>) -> tensor<8x8xf32, #x_>
  %2 = nn.abs %0 {spmd.operands = [#_x]} : (tensor<8x8xf32, #x_>) -> tensor<8x8xf32, #_x>
  return %2 : tensor<8x8xf32, #_x>
}

// Users that want the same share one copy; an operand that is fine is marked with unit.
// CHECK-LABEL: @users_that_want_the_same_share_a_reshard
func.func @users_that_want_the_same_share_a_reshard(%x: tensor<8x8xf32, #x_>, %w: tensor<8x8xf32, #_x>)
    -> (tensor<8x8xf32, #_x>, tensor<8x8xf32, #_x>) {
  // CHECK: %[[R:.*]] = spmd.reshard
  // CHECK-NOT: spmd.reshard
  // CHECK: nn.add %[[R]], %{{.*}} :
  // CHECK: nn.mul %[[R]], %[[R]] :
  %0 = nn.add %x, %w {spmd.operands = [#_x, unit]} : (tensor<8x8xf32, #x_>, tensor<8x8xf32, #_x>) -> tensor<8x8xf32, #_x>
  %1 = nn.mul %x, %x {spmd.operands = [#_x, #_x]} : (tensor<8x8xf32, #x_>, tensor<8x8xf32, #x_>) -> tensor<8x8xf32, #_x>
  return %0, %1 : tensor<8x8xf32, #_x>, tensor<8x8xf32, #_x>
}

// Gathering over y first serves one user, and leaves only x to be gathered for the other.
// CHECK-LABEL: @a_copy_is_made_from_the_cheapest_copy_before
func.func @a_copy_is_made_from_the_cheapest_copy_before(%x: tensor<64x8xf32, #xy_>)
    -> (tensor<64x8xf32, #replicated>, tensor<64x8xf32, #x_>) {
  // CHECK: %[[X:.*]] = spmd.reshard %arg0 : tensor<64x8xf32, #x-y_replicated> to tensor<64x8xf32, #x_replicated>
  // CHECK-NEXT: %[[WHOLE:.*]] = spmd.reshard %[[X]] : tensor<64x8xf32, #x_replicated> to tensor<64x8xf32, #replicated_replicated>
  // CHECK: nn.exp %[[WHOLE]]
  // CHECK: nn.exp %[[X]]
  %0 = nn.exp %x {spmd.operands = [#replicated]} : (tensor<64x8xf32, #xy_>) -> tensor<64x8xf32, #replicated>
  %1 = nn.exp %x {spmd.operands = [#x_]} : (tensor<64x8xf32, #xy_>) -> tensor<64x8xf32, #x_>
  return %0, %1 : tensor<64x8xf32, #replicated>, tensor<64x8xf32, #x_>
}

// A result that is computed otherwise than its users share it is resharded once, before any of them.
// CHECK-LABEL: @a_result_is_resharded_before_it_is_shared
func.func @a_result_is_resharded_before_it_is_shared(%x: tensor<8x8xf32, #x_>) -> (tensor<8x8xf32, #x_>, tensor<8x8xf32, #_x>) {
  // CHECK: %[[P:.*]] = nn.exp {{.*}} -> tensor<8x8xf32, #x_replicated_sum_y>
  // CHECK-NEXT: %[[S:.*]] = spmd.reshard %[[P]] : tensor<8x8xf32, #x_replicated_sum_y> to tensor<8x8xf32, #x_replicated>
  // CHECK-NEXT: %[[R:.*]] = spmd.reshard %[[S]] : tensor<8x8xf32, #x_replicated> to tensor<8x8xf32, #replicated_x>
  // CHECK: nn.abs %[[S]]
  // CHECK: nn.neg %[[R]]
  %0 = nn.exp %x {spmd.results = [#part]} : (tensor<8x8xf32, #x_>) -> tensor<8x8xf32, #x_>
  %1 = nn.abs %0 : (tensor<8x8xf32, #x_>) -> tensor<8x8xf32, #x_>
  %2 = nn.neg %0 {spmd.operands = [#_x]} : (tensor<8x8xf32, #x_>) -> tensor<8x8xf32, #_x>
  return %1, %2 : tensor<8x8xf32, #x_>, tensor<8x8xf32, #_x>
}

// The return may want something too; the signature follows.
// CHECK-LABEL: @what_is_returned_is_resharded
// CHECK-SAME: -> tensor<8x8xf32, #replicated_x>
func.func @what_is_returned_is_resharded(%x: tensor<8x8xf32, #x_>) -> tensor<8x8xf32, #x_> {
  // CHECK-NEXT: %[[R:.*]] = spmd.reshard %arg0
  // CHECK-NEXT: return %[[R]] : tensor<8x8xf32, #replicated_x>
  "func.return"(%x) {spmd.operands = [#_x]} : (tensor<8x8xf32, #x_>) -> ()
}

// A constraint is an annotation like any other, and gone afterwards.
// CHECK-LABEL: @constraints_become_reshards
func.func @constraints_become_reshards(%x: tensor<8x8xf32, #x_>) -> (tensor<8x8xf32, #_x>, tensor<8x8xf32, #x_>, tensor<8x8xf32, #_x>) {
  // CHECK-NEXT: %[[R:.*]] = spmd.reshard %arg0
  // CHECK-NEXT: %[[E:.*]] = nn.exp %[[R]]
  // CHECK-NEXT: return %[[E]], %arg0, %[[R]]
  %0 = spmd.constrain %x : tensor<8x8xf32, #x_> to tensor<8x8xf32, #_x>
  %1 = spmd.constrain %x : tensor<8x8xf32, #x_> to tensor<8x8xf32, #x_>
  %2 = nn.exp %0 : (tensor<8x8xf32, #_x>) -> tensor<8x8xf32, #_x>
  return %2, %1, %0 : tensor<8x8xf32, #_x>, tensor<8x8xf32, #x_>, tensor<8x8xf32, #_x>
}
