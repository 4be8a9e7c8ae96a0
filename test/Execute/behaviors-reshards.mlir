// Reshards, reshapes and lookups: which collectives they need, and no others. Each case is sharded, and
// runs on all ranks against one device.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-shard | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

//--- split.mlir
// A dim split into 4, split as 2 x 4: the axis splits with it, into sub-axes, and nothing moves.
#mesh = #spmd.mesh<["a"=4]>
#a = #spmd.sharding<#mesh, [{"a"}]>
// CHECK: #[[$SPLIT:.*]] = #spmd.sharding<#mesh, [{"a":(1)2}, {"a":(2)2}]>
// CHECK-LABEL: @a_split_dim_splits_its_axis
// CHECK-SAME: -> (tensor<1x2xf32> {spmd.global = tensor<2x4xf32, #[[$SPLIT]]>})
func.func @a_split_dim_splits_its_axis(%x: tensor<8xf32, #a>) -> tensor<2x4xf32> {
  // CHECK-NEXT: %[[Y:.*]] = nn.reshape %arg0 : (tensor<2xf32>) -> tensor<1x2xf32>
  // CHECK-NEXT: return %[[Y]]
  %0 = nn.reshape %x : (tensor<8xf32, #a>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

//--- three.mlir
// An axis of 3 does not divide the major part of 2 x 12: the result stays replicated.
#mesh = #spmd.mesh<["a"=3]>
#a = #spmd.sharding<#mesh, [{"a"}]>
// CHECK-LABEL: @an_axis_that_does_not_divide_stays_out
// CHECK-SAME: -> (tensor<2x12xf32> {spmd.global = tensor<2x12xf32, #replicated_replicated>})
func.func @an_axis_that_does_not_divide_stays_out(%x: tensor<24xf32, #a>) -> tensor<2x12xf32> {
  // CHECK-NEXT: %[[X:.*]] = spmd.all_gather %arg0 dims [{"a"}] : (tensor<8xf32>) -> tensor<24xf32>
  // CHECK-NEXT: nn.reshape %[[X]]
  // CHECK-NEXT: return
  %0 = nn.reshape %x : (tensor<24xf32, #a>) -> tensor<2x12xf32>
  return %0 : tensor<2x12xf32>
}

//--- shared.mlir
// All that hangs on one value wants it split the other way: it is turned once.
#mesh = #spmd.mesh<["a"=2]>
#a_ = #spmd.sharding<#mesh, [{"a"}, {}]>
#_a = #spmd.sharding<#mesh, [{}, {"a"}]>
// CHECK-LABEL: @users_share_one_reshard
func.func @users_share_one_reshard(%a: tensor<8x8xf32, #a_>) -> (tensor<8x8xf32, #_a>, tensor<8x8xf32, #_a>) {
  // CHECK-NOT: = spmd.
  // CHECK: spmd.all_to_all {{.*}} gather [{"a"}, {}] slice [{}, {"a"}] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  // CHECK-NOT: = spmd.
  %0 = nn.sin %a : (tensor<8x8xf32, #a_>) -> tensor<8x8xf32>
  %1 = nn.add %0, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = nn.add %0, %1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = nn.cos %1 : (tensor<8x8xf32>) -> tensor<8x8xf32, #_a>
  %4 = nn.cos %2 : (tensor<8x8xf32>) -> tensor<8x8xf32, #_a>
  return %3, %4 : tensor<8x8xf32, #_a>, tensor<8x8xf32, #_a>
}

//--- swap.mlir
// Two axes of one size change places: one permute.
#mesh = #spmd.mesh<["x"=2, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#yx = #spmd.sharding<#mesh, [{"y"}, {"x"}]>
// CHECK-LABEL: @axes_that_change_places_are_permuted
func.func @axes_that_change_places_are_permuted(%a: tensor<8x8xf32, #xy>) -> tensor<8x8xf32, #yx> {
  // CHECK-NEXT: %[[R:.*]] = spmd.permute %arg0 {{.*}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = spmd.constrain %a : tensor<8x8xf32, #xy> to tensor<8x8xf32, #yx>
  return %0 : tensor<8x8xf32, #yx>
}

//--- other.mlir
// One axis goes, another comes on the other dim: splitting first makes the gather half as large.
#mesh = #spmd.mesh<["x"=2, "y"=2]>
#x_ = #spmd.sharding<#mesh, [{"x"}, {}]>
#_y = #spmd.sharding<#mesh, [{}, {"y"}]>
// CHECK-LABEL: @a_cut_comes_before_a_gather
func.func @a_cut_comes_before_a_gather(%a: tensor<8x8xf32, #x_>) -> tensor<8x8xf32, #_y> {
  // CHECK-NEXT: %[[S:.*]] = spmd.local_slice %arg0 dims [{}, {"y"}] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: %[[G:.*]] = spmd.all_gather %[[S]] dims [{"x"}, {}] : (tensor<4x4xf32>) -> tensor<8x4xf32>
  // CHECK-NEXT: return %[[G]]
  %0 = spmd.constrain %a : tensor<8x8xf32, #x_> to tensor<8x8xf32, #_y>
  return %0 : tensor<8x8xf32, #_y>
}

//--- uneven-swap.mlir
// Axes of two sizes change places. A permute and an all-to-all over half of x would send 8 + 4 elements a rank; sent
// straight to where they belong it is at most the shard of 8.
#mesh = #spmd.mesh<["x"=4, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#yx = #spmd.sharding<#mesh, [{"y"}, {"x"}]>
// CHECK-LABEL: @axes_of_two_sizes_change_places
func.func @axes_of_two_sizes_change_places(%a: tensor<8x8xf32, #xy>) -> tensor<8x8xf32, #yx> {
  // CHECK-NEXT: %[[R:.*]] = spmd.permute %arg0 {{.*}} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = spmd.constrain %a : tensor<8x8xf32, #xy> to tensor<8x8xf32, #yx>
  return %0 : tensor<8x8xf32, #yx>
}

//--- suffix.mlir
// Two of three axes go: one gather over both.
#mesh = #spmd.mesh<["x"=2, "y"=2, "z"=2]>
#xyz = #spmd.sharding<#mesh, [{"x", "y", "z"}, {}]>
#x_ = #spmd.sharding<#mesh, [{"x"}, {}]>
// CHECK-LABEL: @minor_axes_are_gathered_together
func.func @minor_axes_are_gathered_together(%a: tensor<8x8xf32, #xyz>) -> tensor<8x8xf32, #x_> {
  // CHECK-NEXT: %[[G:.*]] = spmd.all_gather %arg0 dims [{"y", "z"}, {}] : (tensor<1x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: return %[[G]]
  %0 = spmd.constrain %a : tensor<8x8xf32, #xyz> to tensor<8x8xf32, #x_>
  return %0 : tensor<8x8xf32, #x_>
}

//--- lookup.mlir
// A table split along its rows: each rank looks up what it has, zeros elsewhere, and one all-reduce adds up. The table
// itself is never gathered.
#mesh = #spmd.mesh<["m"=4]>
#m_ = #spmd.sharding<#mesh, [{"m"}, {}]>
// CHECK-LABEL: @a_cut_table_is_not_gathered
func.func @a_cut_table_is_not_gathered(%table: tensor<100x16xf32, #m_>, %i: tensor<2x8xi64>) -> tensor<2x8x16xf32> {
  // CHECK-NOT: spmd.all_gather
  // CHECK: spmd.axis_index {"m"}
  // CHECK: nn.gather %arg0, %{{.*}} dim 0 : (tensor<25x16xf32>, tensor<2x8xi64>)
  // CHECK: %[[PART:.*]] = nn.select
  // CHECK-NEXT: %[[ALL:.*]] = spmd.all_reduce sum %[[PART]] over {"m"} : tensor<2x8x16xf32>
  // CHECK-NEXT: return %[[ALL]]
  %0 = nn.gather %table, %i dim 0 : (tensor<100x16xf32, #m_>, tensor<2x8xi64>) -> tensor<2x8x16xf32>
  return %0 : tensor<2x8x16xf32>
}
