// Sizes that the mesh does not divide. Shards are padded to the largest; what could see padding masks it (on one device padding
// is NaN, see `takeShards`), and nothing else does. Each case is sharded, and runs on all ranks against one device.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-shard | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

//--- rows.mlir
// 10 rows on 4 ranks, 3 on each: elementwise ops and the rows of a product do not look at padding. The result comes back
// without it: 12 rows are gathered, 10 stay.
#mesh = #spmd.mesh<["x"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}], uneven>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
// CHECK-LABEL: @rows_do_not_look_at_padding
// CHECK-SAME: %arg0: tensor<3x8xf32> {{.*}} -> (tensor<10x4xf32>
func.func @rows_do_not_look_at_padding(%x: tensor<10x8xf32, #rows>, %w: tensor<8x4xf32, #replicated>) -> tensor<10x4xf32, #replicated> {
  // CHECK-NOT: nn.select
  // CHECK: %[[P:.*]] = nn.einsum %{{.*}}, %arg1 "ik,kj->ij" : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
  // CHECK: %[[G:.*]] = spmd.all_gather %[[P]] dims [{"x"}, {}] : (tensor<3x4xf32>) -> tensor<12x4xf32>
  // CHECK: %[[C:.*]] = nn.slice %[[G]] starts [0, 0] sizes [10, 4]
  // CHECK: return %[[C]]
  %0 = nn.exp %x : (tensor<10x8xf32, #rows>) -> tensor<10x8xf32>
  %1 = nn.einsum %0, %w "ik,kj->ij" : (tensor<10x8xf32>, tensor<8x4xf32, #replicated>) -> tensor<10x4xf32>
  %2 = spmd.constrain %1 : tensor<10x4xf32> to tensor<10x4xf32, #replicated>
  return %2 : tensor<10x4xf32, #replicated>
}

//--- contraction.mlir
// A contraction over 10 on 4 masks both operands: 0 times NaN is NaN.
#mesh = #spmd.mesh<["x"=4]>
#cols = #spmd.sharding<#mesh, [{}, {"x"}], uneven>
#rows = #spmd.sharding<#mesh, [{"x"}, {}], uneven>
// CHECK-LABEL: @a_contraction_masks_both_operands
func.func @a_contraction_masks_both_operands(%x: tensor<4x10xf32, #cols>, %w: tensor<10x4xf32, #rows>) -> tensor<4x4xf32> {
  // CHECK: %[[X:.*]] = nn.select %{{.*}}, %arg0, %{{.*}} : (tensor<1x3xi1>, tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>
  // CHECK: %[[W:.*]] = nn.select %{{.*}}, %arg1, %{{.*}} : (tensor<3x1xi1>, tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  // CHECK: %[[P:.*]] = nn.einsum %[[X]], %[[W]]
  // CHECK: spmd.all_reduce sum %[[P]] over {"x"}
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<4x10xf32, #cols>, tensor<10x4xf32, #rows>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

//--- empty.mlir
// 3 columns on 8 ranks: five of them have nothing, and give what changes nothing.
#mesh = #spmd.mesh<["x"=2, "y"=4]>
#cols = #spmd.sharding<#mesh, [{"x", "y"}, {}], uneven>
// CHECK-LABEL: @empty_shards_change_nothing
func.func @empty_shards_change_nothing(%x: tensor<3x197xf32, #cols>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
  // CHECK-SAME: %arg0: tensor<1x197xf32>
  // CHECK: spmd.axis_index {"x", "y"}
  // CHECK-DAG: nn.reduce sum %{{.*}} : (tensor<1x197xf32>)
  // CHECK-DAG: nn.reduce mean %{{.*}} : (tensor<1x197xf32>)
  // CHECK-DAG: nn.reduce max %{{.*}} : (tensor<1x197xf32>)
  // CHECK-DAG: nn.reduce min %{{.*}} : (tensor<1x197xf32>)
  // CHECK-DAG: nn.reduce prod %{{.*}} : (tensor<1x197xf32>)
  %0 = nn.reduce sum %x dims [0, 1] : (tensor<3x197xf32, #cols>) -> tensor<f32>
  %1 = nn.reduce mean %x dims [0, 1] : (tensor<3x197xf32, #cols>) -> tensor<f32>
  %2 = nn.reduce max %x dims [0, 1] : (tensor<3x197xf32, #cols>) -> tensor<f32>
  %3 = nn.reduce min %x dims [0, 1] : (tensor<3x197xf32, #cols>) -> tensor<f32>
  %4 = nn.reduce prod %x dims [0, 1] : (tensor<3x197xf32, #cols>) -> tensor<f32>
  return %0, %1, %2, %3, %4 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}

//--- statistics.mlir
// Statistics over 197 on 2 x 3 count what there is.
#mesh = #spmd.mesh<["x"=2, "y"=3]>
#cols = #spmd.sharding<#mesh, [{}, {"x", "y"}], uneven>
// CHECK-LABEL: @statistics_have_the_true_count
func.func @statistics_have_the_true_count(%x: tensor<4x197xf32, #cols>)
    -> (tensor<4x197xf32, #cols>, tensor<4x197xf32, #cols>, tensor<4x197xf32, #cols>, tensor<4x197xf32, #cols>) {
  // CHECK: nn.constant dense<0xFF800000>
  // CHECK: spmd.all_reduce max
  // CHECK: spmd.all_reduce sum
  // CHECK: nn.constant dense<1.970000e+02>
  // CHECK-COUNT-2: spmd.all_reduce sum
  // CHECK-NOT: spmd.all
  %0 = nn.softmax %x dim 1 : (tensor<4x197xf32, #cols>) -> tensor<4x197xf32, #cols>
  %1 = nn.log_softmax %x dim 1 : (tensor<4x197xf32, #cols>) -> tensor<4x197xf32, #cols>
  %2 = nn.layer_norm %x dim 1 epsilon 1.0e-5 : (tensor<4x197xf32, #cols>) -> tensor<4x197xf32, #cols>
  %3 = nn.rms_norm %x dim 1 epsilon 1.0e-5 : (tensor<4x197xf32, #cols>) -> tensor<4x197xf32, #cols>
  return %0, %1, %2, %3 : tensor<4x197xf32, #cols>, tensor<4x197xf32, #cols>, tensor<4x197xf32, #cols>, tensor<4x197xf32, #cols>
}

//--- searches.mlir
// The last of equal elements, and running sums from behind, are those of a dim without padding.
#mesh = #spmd.mesh<["x"=2, "y"=3]>
#cols = #spmd.sharding<#mesh, [{}, {"x", "y"}], uneven>
// CHECK-LABEL: @searches_and_scans
func.func @searches_and_scans(%x: tensor<1x197xf32, #cols>)
    -> (tensor<1xi64>, tensor<1xi64>, tensor<1x197xf32, #cols>, tensor<1x3xf32>, tensor<1x3xi64>) {
  // CHECK: nn.arg_reduce max
  // CHECK: nn.arg_reduce min
  // CHECK: nn.cumsum
  // CHECK: nn.top_k
  %0 = nn.arg_reduce max %x dim 1 : (tensor<1x197xf32, #cols>) -> tensor<1xi64>
  %1 = nn.arg_reduce min %x dim 1 last : (tensor<1x197xf32, #cols>) -> tensor<1xi64>
  %2 = nn.cumsum %x dim 1 exclusive reverse : (tensor<1x197xf32, #cols>) -> tensor<1x197xf32, #cols>
  %3:2 = nn.top_k %x k 3 dim 1 smallest : (tensor<1x197xf32, #cols>) -> (tensor<1x3xf32>, tensor<1x3xi64>)
  return %0, %1, %2, %3#0, %3#1 : tensor<1xi64>, tensor<1xi64>, tensor<1x197xf32, #cols>, tensor<1x3xf32>, tensor<1x3xi64>
}

//--- heads.mlir
// 10 heads on 4 ranks, and 97 keys on 2: heads that are padding give padding, keys that are get no weight.
#mesh = #spmd.mesh<["x"=4, "y"=2]>
#q = #spmd.sharding<#mesh, [{}, {"x"}, {}, {}], uneven>
#k = #spmd.sharding<#mesh, [{}, {"x"}, {"y"}, {}], uneven>
// CHECK-LABEL: @heads_and_keys
func.func @heads_and_keys(%q: tensor<1x10x1x4xf32, #q>, %k: tensor<1x10x97x4xf32, #k>, %v: tensor<1x10x97x4xf32, #k>) -> tensor<1x10x1x4xf32, #q> {
  // CHECK: spmd.all_reduce max {{.*}} over {"y"} : tensor<1x3x1x1x1xf32>
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<1x3x1x1x1xf32>
  // CHECK: %[[V:.*]] = nn.select {{.*}} %arg2
  // CHECK: nn.einsum %{{.*}}, %[[V]] {{.*}} : (tensor<1x3x1x1x49xf32>, tensor<1x3x49x4xf32>) -> tensor<1x3x1x1x4xf32>
  // CHECK: spmd.all_reduce sum
  // CHECK-NOT: spmd.all
  %0 = nn.attention %q, %k, %v scale 0.5 causal {causalOffset = 90} : (tensor<1x10x1x4xf32, #q>, tensor<1x10x97x4xf32, #k>, tensor<1x10x97x4xf32, #k>) -> tensor<1x10x1x4xf32, #q>
  return %0 : tensor<1x10x1x4xf32, #q>
}

//--- table.mlir
// A vocabulary of 1003 on 8: an index finds its row on one rank, or none, and never padding. So do updates.
#mesh = #spmd.mesh<["x"=8]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}], uneven>
#replicated = #spmd.sharding<#mesh, [{}]>
// CHECK-LABEL: @indices_do_not_find_padding
func.func @indices_do_not_find_padding(%t: tensor<1003x4xf32, #rows>, %u: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<1003x4xf32, #rows>) {
  // CHECK: nn.gather %arg0
  // CHECK: spmd.all_reduce sum
  %i = nn.constant dense<[0, 1002, -1, 125, 126, 500]> : tensor<6xi64> -> tensor<6xi64>
  %0 = nn.gather %t, %i dim 0 : (tensor<1003x4xf32, #rows>, tensor<6xi64>) -> tensor<6x4xf32>
  %j = nn.reshape %i : (tensor<6xi64>) -> tensor<6x1xi64>
  %1 = nn.scatter_nd add %t, %j, %u : (tensor<1003x4xf32, #rows>, tensor<6x1xi64>, tensor<6x4xf32>) -> tensor<1003x4xf32, #rows>
  return %0, %1 : tensor<6x4xf32>, tensor<1003x4xf32, #rows>
}

//--- turn.mlir
// A rectangle is turned. Of 8 columns each rank gets 2, and cuts off what was padding of the 10 rows; of 10 columns sent by
// an all_to_all 12 would travel, so that each piece goes straight to its place.
#mesh = #spmd.mesh<["x"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}], uneven>
#cols = #spmd.sharding<#mesh, [{}, {"x"}], uneven>
// CHECK-LABEL: @a_turn_sends_no_padding
func.func @a_turn_sends_no_padding(%x: tensor<10x8xf32, #rows>, %y: tensor<10x10xf32, #rows>) -> (tensor<10x8xf32, #cols>, tensor<10x10xf32, #cols>) {
  // CHECK-NEXT: %[[T:.*]] = spmd.all_to_all %arg0 gather [{"x"}, {}] slice [{}, {"x"}] : (tensor<3x8xf32>) -> tensor<12x2xf32>
  // CHECK-NEXT: %[[C:.*]] = nn.slice %[[T]] starts [0, 0] sizes [10, 2]
  // CHECK-NEXT: %[[P:.*]] = spmd.permute %arg1 {{.*}} : (tensor<3x10xf32>) -> tensor<10x3xf32>
  // CHECK-NEXT: return %[[C]], %[[P]]
  %0 = spmd.constrain %x : tensor<10x8xf32, #rows> to tensor<10x8xf32, #cols>
  %1 = spmd.constrain %y : tensor<10x10xf32, #rows> to tensor<10x10xf32, #cols>
  return %0, %1 : tensor<10x8xf32, #cols>, tensor<10x10xf32, #cols>
}

//--- scatter.mlir
// Terms of 10 rows are added up where each row is to be: padded to 12 before, so that there are 4 pieces of 3.
#mesh = #spmd.mesh<["x"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}], uneven>
#terms = #spmd.sharding<#mesh, [{}, {}], partial = {"x": sum}>
// CHECK-LABEL: @terms_are_padded_before_they_are_scattered
func.func @terms_are_padded_before_they_are_scattered(%x: tensor<10x8xf32, #terms>) -> tensor<10x8xf32, #rows> {
  // CHECK-NEXT: %[[P:.*]] = nn.pad constant %arg0 low [0, 0] high [2, 0]
  // CHECK-NEXT: %[[S:.*]] = spmd.reduce_scatter sum %[[P]] dims [{"x"}, {}] : (tensor<12x8xf32>) -> tensor<3x8xf32>
  // CHECK-NEXT: return %[[S]]
  %0 = spmd.constrain %x : tensor<10x8xf32, #terms> to tensor<10x8xf32, #rows>
  return %0 : tensor<10x8xf32, #rows>
}

//--- constants.mlir
// Constants and positions are split, too: the last shard of each is filled up.
#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}], uneven>
// CHECK-LABEL: @constants_and_positions
func.func @constants_and_positions(%x: tensor<5xf32, #x>) -> (tensor<5xf32, #x>, tensor<f32>) {
  // CHECK: spmd.local_slice %{{.*}} dims [{"x"}] : (tensor<6xf32>) -> tensor<3xf32>
  %c = nn.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32> -> tensor<5xf32>
  %i = nn.iota dim 0 start 1 step 2 : tensor<5xf32>
  %0 = nn.mul %x, %c : (tensor<5xf32, #x>, tensor<5xf32>) -> tensor<5xf32>
  %1 = nn.add %0, %i : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32, #x>
  %2 = nn.reduce sum %1 dims [0] : (tensor<5xf32, #x>) -> tensor<f32>
  return %1, %2 : tensor<5xf32, #x>, tensor<f32>
}

//--- parameter.mlir
// A parameter is read shard by shard; the last one ends where it ends.
#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}], uneven>
nn.param @w : tensor<5xi32> = dense<[1, 2, 3, 4, 5]> : tensor<5xi32>
// CHECK-LABEL: @a_parameter_is_loaded_in_shards
func.func @a_parameter_is_loaded_in_shards(%x: tensor<5xi32, #x>) -> tensor<i32> {
  // CHECK: nn.load @w shard(#{{.*}}) : tensor<3xi32>
  %0 = nn.load @w : tensor<5xi32, #x>
  // A divisor is at least 1 in padding, too.
  // CHECK: %[[W:.*]] = nn.select
  // CHECK: nn.div %arg0, %[[W]]
  %1 = nn.div %x, %0 : (tensor<5xi32, #x>, tensor<5xi32, #x>) -> tensor<5xi32>
  %2 = nn.reduce max %1 dims [0] : (tensor<5xi32>) -> tensor<i32>
  return %2 : tensor<i32>
}
