// RUN: cleave-opt %s --spmd-bundle-collectives=most-bytes=100 | FileCheck %s
// RUN: cleave-opt %s --spmd-bundle-collectives="most-bytes=100 launch-share=0.5" | FileCheck %s --check-prefix=LAUNCHES
// RUN: cleave-opt %s --spmd-bundle-collectives="most-bytes=100 launch-share=1" | FileCheck %s --check-prefix=DEAR
// RUN: cleave-opt %s --spmd-bundle-collectives="most-bytes=100 memory-share=0.01" | FileCheck %s --check-prefix=MEMORY
// RUN: cleave-opt %s --spmd-bundle-collectives="most-bytes=100 memory-share=0.011" | FileCheck %s --check-prefix=DEAR

// One collective less is worth two launches, and packing is one; what is gathered and then returned, not read by elementwise ops, takes
// another. Packing the sums of 8 and 4 elements reads and writes 48 bytes. One of 16 elements, 64 bytes there and back, is worth no packing where
// a byte takes 1/100 of a beginning; those beside it are.
// LAUNCHES-LABEL: @two_sums_are_one
// LAUNCHES: nn.concat
// LAUNCHES-LABEL: @gathered_scales_are_read_as_they_lie
// LAUNCHES: nn.concat
// LAUNCHES-LABEL: @pieces_are_gathered_side_by_side
// LAUNCHES-NOT: nn.concat
// LAUNCHES-LABEL: @pieces_are_scattered_from_side_by_side
// LAUNCHES: nn.concat
// DEAR-LABEL: @two_sums_are_one
// DEAR-NOT: nn.concat
// DEAR-LABEL: @one_behind_the_other
// MEMORY-LABEL: @two_sums_are_one
// MEMORY: nn.concat
// MEMORY-LABEL: @one_behind_the_other
// MEMORY-LABEL: @large_ones_stay_alone
// MEMORY: spmd.all_reduce sum %arg1
// MEMORY: nn.concat %arg0, %arg2

module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=2]>} {
  // Two sums that do not need each other are one; what needs the first waits for it.
  // CHECK-LABEL: @two_sums_are_one
  // CHECK: %[[C:.*]] = nn.concat %arg0, %{{.*}} dim 0 : (tensor<8xf32>, tensor<4xf32>) -> tensor<12xf32>
  // CHECK-NEXT: %[[S:.*]] = spmd.all_reduce sum %[[C]] over {"x"} : tensor<12xf32> cause "first, with 1 other small ones
  // CHECK-NEXT: %[[A:.*]] = nn.slice %[[S]] starts [0] sizes [8]
  // CHECK-NEXT: %[[B:.*]] = nn.slice %[[S]] starts [8] sizes [4]
  // CHECK-NEXT: %[[R:.*]] = nn.reshape %[[B]] : (tensor<4xf32>) -> tensor<2x2xf32>
  // CHECK-NEXT: nn.exp %[[A]]
  // CHECK-NEXT: nn.neg %[[R]]
  func.func @two_sums_are_one(%x: tensor<8xf32>, %y: tensor<2x2xf32>) -> (tensor<8xf32>, tensor<2x2xf32>) {
    %a = spmd.all_reduce sum %x over {"x"} : tensor<8xf32> cause "first"
    %e = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    %b = spmd.all_reduce sum %y over {"x"} : tensor<2x2xf32>
    %n = nn.neg %b : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %e, %n : tensor<8xf32>, tensor<2x2xf32>
  }

  // The second needs the first.
  // CHECK-LABEL: @one_behind_the_other
  // CHECK-COUNT-2: spmd.all_reduce sum %{{.*}} : tensor<8xf32>
  func.func @one_behind_the_other(%x: tensor<8xf32>) -> tensor<8xf32> {
    %a = spmd.all_reduce sum %x over {"x"} : tensor<8xf32>
    %e = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    %b = spmd.all_reduce sum %e over {"x"} : tensor<8xf32>
    return %b : tensor<8xf32>
  }

  // CHECK-LABEL: @large_ones_stay_alone
  func.func @large_ones_stay_alone(%x: tensor<4xf32>, %y: tensor<16xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<16xf32>, tensor<4xf32>) {
    %a = spmd.all_reduce sum %x over {"x"} : tensor<4xf32>
    %b = spmd.all_reduce sum %y over {"x"} : tensor<16xf32>
    %c = spmd.all_reduce sum %z over {"x"} : tensor<4xf32>
    return %a, %b, %c : tensor<4xf32>, tensor<16xf32>, tensor<4xf32>
  }

  // CHECK-LABEL: @gathered_scales_are_read_as_they_lie
  func.func @gathered_scales_are_read_as_they_lie(%x: tensor<4x8xf32>, %s: tensor<4xf32>, %t: tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %a = spmd.all_gather %s dims [{"x"}] : (tensor<4xf32>) -> tensor<8xf32>
    %b = spmd.all_gather %t dims [{"x"}] : (tensor<4xf32>) -> tensor<8xf32>
    %c = nn.mul %x, %a : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %d = nn.mul %x, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    return %c, %d : tensor<4x8xf32>, tensor<4x8xf32>
  }

  // Another group, another kind, another type: nothing to share.
  // CHECK-LABEL: @of_other_kinds
  // CHECK-COUNT-4: spmd.all_reduce {{.*}} : tensor<8x
  // CHECK-NOT: nn.concat
  func.func @of_other_kinds(%x: tensor<8xf32>, %y: tensor<8xf16>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf16>) {
    %a = spmd.all_reduce sum %x over {"x"} : tensor<8xf32>
    %b = spmd.all_reduce sum %x over {"y"} : tensor<8xf32>
    %c = spmd.all_reduce max %x over {"x"} : tensor<8xf32>
    %d = spmd.all_reduce sum %y over {"x"} : tensor<8xf16>
    return %a, %b, %c, %d : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf16>
  }

  // 64 + 64 bytes are more than 100: the third finds room beside the first.
  // CHECK-LABEL: @bundles_have_a_size
  // CHECK: %[[B:.*]] = spmd.all_reduce sum %arg1 over {"x"} : tensor<16xf32>
  // CHECK: %[[C:.*]] = nn.concat %arg0, %arg2 dim 0 : (tensor<16xf32>, tensor<4xf32>) -> tensor<20xf32>
  // CHECK-NEXT: spmd.all_reduce sum %[[C]]
  func.func @bundles_have_a_size(%x: tensor<16xf32>, %y: tensor<16xf32>, %z: tensor<4xf32>) -> (tensor<16xf32>, tensor<16xf32>, tensor<4xf32>) {
    %a = spmd.all_reduce sum %x over {"x"} : tensor<16xf32>
    %b = spmd.all_reduce sum %y over {"x"} : tensor<16xf32>
    %c = spmd.all_reduce sum %z over {"x"} : tensor<4xf32>
    return %a, %b, %c : tensor<16xf32>, tensor<16xf32>, tensor<4xf32>
  }

  // Of a gather each rank has a piece, whatever dim it splits.
  // CHECK-LABEL: @pieces_are_gathered_side_by_side
  // CHECK: %[[F:.*]] = nn.reshape %arg1 : (tensor<2x3xf32>) -> tensor<6xf32>
  // CHECK: %[[C:.*]] = nn.concat %arg0, %[[F]] dim 0 : (tensor<4xf32>, tensor<6xf32>) -> tensor<10xf32>
  // CHECK-NEXT: %[[G:.*]] = spmd.all_gather %[[C]] dims [{"x"}] : (tensor<10xf32>) -> tensor<20xf32>
  // CHECK-NEXT: %[[P:.*]] = nn.reshape %[[G]] : (tensor<20xf32>) -> tensor<2x10xf32>
  // CHECK-NEXT: %[[A:.*]] = nn.slice %[[P]] starts [0, 0] sizes [2, 4]
  // CHECK-NEXT: nn.reshape %[[A]] : (tensor<2x4xf32>) -> tensor<8xf32>
  // CHECK-NEXT: %[[B:.*]] = nn.slice %[[P]] starts [0, 4] sizes [2, 6]
  // CHECK-NEXT: %[[R:.*]] = nn.reshape %[[B]] : (tensor<2x6xf32>) -> tensor<2x2x3xf32>
  // CHECK-NEXT: %[[T:.*]] = nn.transpose %[[R]] [1, 0, 2]
  // CHECK-NEXT: nn.reshape %[[T]] : (tensor<2x2x3xf32>) -> tensor<2x6xf32>
  func.func @pieces_are_gathered_side_by_side(%x: tensor<4xf32>, %y: tensor<2x3xf32>) -> (tensor<8xf32>, tensor<2x6xf32>) {
    %a = spmd.all_gather %x dims [{"x"}] : (tensor<4xf32>) -> tensor<8xf32>
    %b = spmd.all_gather %y dims [{}, {"x"}] : (tensor<2x3xf32>) -> tensor<2x6xf32>
    return %a, %b : tensor<8xf32>, tensor<2x6xf32>
  }

  // What is scattered is put in pieces before.
  // CHECK-LABEL: @pieces_are_scattered_from_side_by_side
  // CHECK: %[[X:.*]] = nn.reshape %arg0 : (tensor<8xf32>) -> tensor<2x4xf32>
  // CHECK-NEXT: %[[R:.*]] = nn.reshape %arg1 : (tensor<2x6xf32>) -> tensor<2x2x3xf32>
  // CHECK-NEXT: %[[T:.*]] = nn.transpose %[[R]] [1, 0, 2]
  // CHECK-NEXT: %[[Y:.*]] = nn.reshape %[[T]] : (tensor<2x2x3xf32>) -> tensor<2x6xf32>
  // CHECK-NEXT: %[[C:.*]] = nn.concat %[[X]], %[[Y]] dim 1
  // CHECK-NEXT: %[[F:.*]] = nn.reshape %[[C]] : (tensor<2x10xf32>) -> tensor<20xf32>
  // CHECK-NEXT: %[[S:.*]] = spmd.reduce_scatter sum %[[F]] dims [{"x"}] : (tensor<20xf32>) -> tensor<10xf32>
  // CHECK-NEXT: nn.slice %[[S]] starts [0] sizes [4]
  // CHECK-NEXT: %[[P:.*]] = nn.slice %[[S]] starts [4] sizes [6]
  // CHECK-NEXT: nn.reshape %[[P]] : (tensor<6xf32>) -> tensor<2x3xf32>
  func.func @pieces_are_scattered_from_side_by_side(%x: tensor<8xf32>, %y: tensor<2x6xf32>) -> (tensor<4xf32>, tensor<2x3xf32>) {
    %a = spmd.reduce_scatter sum %x dims [{"x"}] : (tensor<8xf32>) -> tensor<4xf32>
    %b = spmd.reduce_scatter sum %y dims [{}, {"x"}] : (tensor<2x6xf32>) -> tensor<2x3xf32>
    return %a, %b : tensor<4xf32>, tensor<2x3xf32>
  }
}
