// RUN: cleave-opt %s --spmd-partition | FileCheck %s

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#__ = #spmd.sharding<#mesh, [{}, {}]>
#x_ = #spmd.sharding<#mesh, [{"x"}, {}]>
#y_ = #spmd.sharding<#mesh, [{"y"}, {}]>
#_x = #spmd.sharding<#mesh, [{}, {"x"}]>
#_y = #spmd.sharding<#mesh, [{}, {"y"}]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#yx = #spmd.sharding<#mesh, [{"y"}, {"x"}]>
#x_py = #spmd.sharding<#mesh, [{"x"}, {}], partial = {"y": sum}>
#__py = #spmd.sharding<#mesh, [{}, {}], partial = {"y": sum}>
#o = #spmd.sharding<#mesh, [{}]>
#o_py = #spmd.sharding<#mesh, [{}], partial = {"y": sum}>
#_y_ = #spmd.sharding<#mesh, [{}, {"y"}, {}]>
#___ = #spmd.sharding<#mesh, [{}, {}, {}]>
#___py = #spmd.sharding<#mesh, [{}, {}, {}], partial = {"y": sum}>
#max = #spmd.sharding<#mesh, [{}, {}], partial = {"x": max}>

// Types shrink to one rank's shard; the signature keeps the global ones. An op that agrees with its rule is cloned.
// CHECK-LABEL: @types_become_local
// CHECK-SAME: (%[[X:.*]]: tensor<4x4xf32> {nn.name = "x", spmd.global = tensor<8x8xf32, #x_y>})
// CHECK-SAME: -> (tensor<4x4xf32> {nn.name = "y", spmd.global = tensor<8x8xf32, #x_y>})
func.func @types_become_local(%x: tensor<8x8xf32, #xy> {nn.name = "x"}) -> (tensor<8x8xf32, #xy> {nn.name = "y"}) {
  // CHECK-NEXT: %[[Y:.*]] = nn.exp %[[X]] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: return %[[Y]] : tensor<4x4xf32>
  %0 = nn.exp %x : (tensor<8x8xf32, #xy>) -> tensor<8x8xf32, #xy>
  return %0 : tensor<8x8xf32, #xy>
}

// Splitting a replicated value is free, and each rank takes its own piece.
// CHECK-LABEL: @a_slice
func.func @a_slice(%x: tensor<8x8xf32, #__>) -> tensor<8x8xf32, #_y> {
  // CHECK-NEXT: %[[R:.*]] = spmd.local_slice %{{.*}} dims [{}, {"y"}] : (tensor<8x8xf32>) -> tensor<8x4xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = spmd.reshard %x : tensor<8x8xf32, #__> to tensor<8x8xf32, #_y>
  return %0 : tensor<8x8xf32, #_y>
}

// CHECK-LABEL: @a_gather
func.func @a_gather(%x: tensor<8x8xf32, #xy>) -> tensor<8x8xf32, #x_> {
  // CHECK-NEXT: spmd.all_gather %{{.*}} dims [{}, {"y"}] : (tensor<4x4xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: return
  %0 = spmd.reshard %x : tensor<8x8xf32, #xy> to tensor<8x8xf32, #x_>
  return %0 : tensor<8x8xf32, #x_>
}

// An axis that moves from one dim to another is exchanged, not gathered.
// CHECK-LABEL: @an_all_to_all
func.func @an_all_to_all(%x: tensor<8x8xf32, #x_>) -> tensor<8x8xf32, #_x> {
  // CHECK-NEXT: spmd.all_to_all %{{.*}} gather [{"x"}, {}] slice [{}, {"x"}] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  // CHECK-NEXT: return
  %0 = spmd.reshard %x : tensor<8x8xf32, #x_> to tensor<8x8xf32, #_x>
  return %0 : tensor<8x8xf32, #_x>
}

// Two axes that change places: each rank sends its shard to one other.
// CHECK-LABEL: @a_permute
func.func @a_permute(%x: tensor<8x8xf32, #xy>) -> tensor<8x8xf32, #yx> {
  // CHECK-NEXT: spmd.permute %{{.*}} from {{.*}} to {{.*}} of tensor<8x8xf32> : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: return
  %0 = spmd.reshard %x : tensor<8x8xf32, #xy> to tensor<8x8xf32, #yx>
  return %0 : tensor<8x8xf32, #yx>
}

// A contracting dim that is split leaves partial sums. Wanted replicated, they are all-reduced ...
// CHECK-LABEL: @an_all_reduce
// CHECK-SAME: attributes {spmd.flops = 2.048000e+03 : f64}
func.func @an_all_reduce(%a: tensor<8x8xf32, #xy>, %b: tensor<8x16xf32, #y_>) -> tensor<8x16xf32, #x_> {
  // CHECK-NEXT: %[[P:.*]] = nn.einsum {{.*}} : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  // CHECK-NEXT: spmd.all_reduce sum %[[P]] over {"y"} : tensor<4x16xf32> cause "contracting dim of nn.einsum is sharded over y"
  // CHECK-NEXT: return
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<8x8xf32, #xy>, tensor<8x16xf32, #y_>) -> tensor<8x16xf32, #x_py>
  %1 = spmd.reshard %0 : tensor<8x16xf32, #x_py> to tensor<8x16xf32, #x_>
  return %1 : tensor<8x16xf32, #x_>
}

// ... wanted split over the same axis, they are reduce-scattered.
// CHECK-LABEL: @a_reduce_scatter
func.func @a_reduce_scatter(%a: tensor<8x8xf32, #xy>, %b: tensor<8x16xf32, #y_>) -> tensor<8x16xf32, #xy> {
  // CHECK-NEXT: %[[P:.*]] = nn.einsum
  // CHECK-NEXT: spmd.reduce_scatter sum %[[P]] dims [{}, {"y"}] : (tensor<4x16xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: return
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<8x8xf32, #xy>, tensor<8x16xf32, #y_>) -> tensor<8x16xf32, #x_py>
  %1 = spmd.reshard %0 : tensor<8x16xf32, #x_py> to tensor<8x16xf32, #xy>
  return %1 : tensor<8x16xf32, #xy>
}

// A whole value made partial stays on the first rank of each group; the others hold what changes no sum.
// CHECK-LABEL: @a_whole_value_made_partial
func.func @a_whole_value_made_partial(%p: tensor<8x8xf32, #__py>, %x: tensor<8x8xf32, #__>) -> tensor<8x8xf32, #__py> {
  // CHECK-NEXT: %[[PART:.*]] = spmd.keep_on_first sum %{{.*}} over {"y"} : tensor<8x8xf32>
  // CHECK-NEXT: nn.add %{{.*}}, %[[PART]]
  %0 = spmd.reshard %x : tensor<8x8xf32, #__> to tensor<8x8xf32, #__py>
  %1 = nn.add %p, %0 : (tensor<8x8xf32, #__py>, tensor<8x8xf32, #__py>) -> tensor<8x8xf32, #__py>
  return %1 : tensor<8x8xf32, #__py>
}

// For a maximum that is what changes no maximum.
// CHECK-LABEL: @a_whole_value_made_partial_for_a_maximum
func.func @a_whole_value_made_partial_for_a_maximum(%x: tensor<8x8xf32, #__>) -> tensor<8x8xf32, #max> {
  // CHECK-NEXT: spmd.keep_on_first max %{{.*}} over {"x"}
  %0 = spmd.reshard %x : tensor<8x8xf32, #__> to tensor<8x8xf32, #max>
  return %0 : tensor<8x8xf32, #max>
}

// Terms of a sum are no terms of a maximum: they are reduced first.
// CHECK-LABEL: @terms_of_another_kind
func.func @terms_of_another_kind(%x: tensor<8x8xf32, #__py>) -> tensor<8x8xf32, #max> {
  // CHECK-NEXT: %[[WHOLE:.*]] = spmd.all_reduce sum %{{.*}} over {"y"} : tensor<8x8xf32> cause "a value is asked to be partial over y"
  // CHECK-NEXT: spmd.keep_on_first max %[[WHOLE]] over {"x"}
  %0 = spmd.reshard %x : tensor<8x8xf32, #__py> to tensor<8x8xf32, #max>
  return %0 : tensor<8x8xf32, #max>
}

// A dim that is reduced has the name that its op gives it.
// CHECK-LABEL: @reduced_dims_have_names
func.func @reduced_dims_have_names(%x: tensor<8x8xf32, #_y>, %i: tensor<8xi64, #o>, %a: tensor<8x8x1xf32, #_y_>, %w: tensor<8x8x1xf32, #_y_>) {
  // CHECK: cause "reduced dim of nn.reduce is sharded over y"
  %0 = nn.reduce sum %x dims [1] : (tensor<8x8xf32, #_y>) -> tensor<8xf32, #o_py>
  %1 = spmd.reshard %0 : tensor<8xf32, #o_py> to tensor<8xf32, #o>
  // CHECK: cause "indexed dim of nn.gather is sharded over y"
  %2 = nn.gather %x, %i dim 1 : (tensor<8x8xf32, #_y>, tensor<8xi64, #o>) -> tensor<8x8xf32, #__py>
  %3 = spmd.reshard %2 : tensor<8x8xf32, #__py> to tensor<8x8xf32, #__>
  // CHECK: cause "channel dim of nn.conv is sharded over y"
  %4 = nn.conv %a, %w strides [1] pads_low [0] pads_high [0] dilations [1] groups 1 : (tensor<8x8x1xf32, #_y_>, tensor<8x8x1xf32, #_y_>) -> tensor<8x8x1xf32, #___py>
  %5 = spmd.reshard %4 : tensor<8x8x1xf32, #___py> to tensor<8x8x1xf32, #___>
  return
}

// What an op sends inside itself says so, too.
// CHECK-LABEL: @an_inner_all_reduce
func.func @an_inner_all_reduce(%x: tensor<8x8xf32, #_y>) -> tensor<8x8xf32, #_y> {
  // CHECK: spmd.all_reduce max {{.*}} over {"y"} : tensor<8x1xf32> cause "a dim that nn.softmax works along is sharded over y"
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<8x1xf32> cause "a dim that nn.softmax works along is sharded over y"
  %0 = nn.softmax %x dim 1 : (tensor<8x8xf32, #_y>) -> tensor<8x8xf32, #_y>
  return %0 : tensor<8x8xf32, #_y>
}
