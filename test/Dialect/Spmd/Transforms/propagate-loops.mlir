// For how many iterations loops are priced: all of them, but so few that costs stay below 2^46 elements, and 2^20 in all.
//
// RUN: cleave-opt %s --split-input-file --spmd-propagate 2>/dev/null | FileCheck %s
// What was decided is what is sent, by the same count.
// RUN: cleave-opt %s --split-input-file --spmd-shard -o %t 2>/dev/null
// RUN: FileCheck %s --check-prefix=SENDS < %t

// 2^27 elements leave room for 2^19 iterations.
// CHECK-LABEL: @a_large_value_in_a_long_loop
// SENDS-LABEL: @a_large_value_in_a_long_loop
#mesh = #spmd.mesh<["x"=2]>
module attributes {spmd.mesh = #mesh} {
  func.func @a_large_value_in_a_long_loop(%x: tensor<4xf32>, %w: tensor<131072x1024xf32>) -> tensor<4xf32> {
    // CHECK: nn.loop count 1048576 carries{{.*}}spmd.times = 524288
    %y = nn.loop count 1048576 carries (%x) captures (%w) : (tensor<4xf32>, tensor<131072x1024xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>, %v: tensor<131072x1024xf32>):
      %s = nn.slice %v starts [0, 0] sizes [1, 4] steps [1, 1] : (tensor<131072x1024xf32>) -> tensor<1x4xf32>
      %r = nn.reshape %s : (tensor<1x4xf32>) -> tensor<4xf32>
      %d = nn.add %a, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      nn.yield next (%d) : (tensor<4xf32>) -> ()
    }
    return %y : tensor<4xf32>
  }
}

// -----

// Of 2^25 iterations in all 2^20 are counted, of the inner loop so many that both together make that.
// CHECK-LABEL: @loops_in_loops
// SENDS-LABEL: @loops_in_loops
#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
module attributes {spmd.mesh = #mesh} {
  // A sum of 3 numbers over both ranks, 2^20 times: 2 x 1/2 x 12 bytes each.
  // CHECK-SAME: spmd.wire_bytes = 12582912
  func.func @loops_in_loops(%x: tensor<3xf32>, %w: tensor<4194304x3xf32, #rows>) -> tensor<3xf32> {
    // CHECK: nn.loop count 32768 carries{{.*}}spmd.times = 32768
    // CHECK: nn.loop count 1024 carries{{.*}}spmd.times = 32 :
    // SENDS: spmd.all_reduce
    %y = nn.loop count 32768 carries (%x) captures (%w) : (tensor<3xf32>, tensor<4194304x3xf32, #rows>) -> tensor<3xf32> {
    ^bb0(%a: tensor<3xf32>, %v: tensor<4194304x3xf32>):
      %z = nn.loop count 1024 carries (%a) captures (%v) : (tensor<3xf32>, tensor<4194304x3xf32>) -> tensor<3xf32> {
      ^bb0(%b: tensor<3xf32>, %u: tensor<4194304x3xf32>):
        %p = nn.mul %u, %b : (tensor<4194304x3xf32>, tensor<3xf32>) -> tensor<4194304x3xf32>
        %d = nn.reduce sum %p dims [0] : (tensor<4194304x3xf32>) -> tensor<3xf32>
        nn.yield next (%d) : (tensor<3xf32>) -> ()
      }
      nn.yield next (%z) : (tensor<3xf32>) -> ()
    }
    return %y : tensor<3xf32>
  }
}
