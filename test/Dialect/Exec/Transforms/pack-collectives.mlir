// Parts that would lie in rows become dims of their own, in front of all; kernels on both sides take the movement in.
//
// RUN: cleave-opt %s --split-input-file --exec-pack-collectives | FileCheck %s
// RUN: cleave-opt %s --split-input-file --exec-lower="devices last=outlined" | FileCheck %s --check-prefix=KERNELS
// RUN: cleave-opt %s --split-input-file --exec-lower="last=outlined" | FileCheck %s --check-prefix=HOST

// Rows are read as they come: what is moved is in the softmax's kernel. The host's own collectives know rows.
// CHECK-LABEL: @read_as_it_comes
// CHECK: %[[G:.*]] = spmd.all_gather %arg0 dims [{"model"}, {}] : (tensor<4x8xf32>) -> tensor<8x8xf32> cause "why"
// CHECK: %[[N:.*]] = nn.reshape %[[G]] : (tensor<8x8xf32>) -> tensor<2x4x8xf32>
// CHECK: %[[T:.*]] = nn.transpose %[[N]] [1, 0, 2] : (tensor<2x4x8xf32>) -> tensor<4x2x8xf32>
// CHECK: %[[Y:.*]] = nn.reshape %[[T]] : (tensor<4x2x8xf32>) -> tensor<4x16xf32>
// CHECK: nn.softmax %[[Y]]
// KERNELS-LABEL: @read_as_it_comes
// KERNELS-COUNT-1: exec.launch @softmax_0
// KERNELS-NOT: exec.launch
// KERNELS: return
// HOST-LABEL: @read_as_it_comes
// HOST: spmd.all_gather %arg0 dims [{}, {"model"}]
module attributes {spmd.mesh = #spmd.mesh<["model"=2]>} {
  func.func @read_as_it_comes(%x: tensor<4x8xf32>) -> tensor<4x16xf32> {
    %g = spmd.all_gather %x dims [{}, {"model"}] : (tensor<4x8xf32>) -> tensor<4x16xf32> cause "why"
    %y = nn.softmax %g dim 1 : (tensor<4x16xf32>) -> tensor<4x16xf32>
    return %y : tensor<4x16xf32>
  }
}

// -----

// A product sums along what is gathered: the kernel in front stores that dim first, and the product reads it so.
// CHECK-LABEL: @stored_for_a_product
// CHECK: %[[R:.*]] = nn.relu %arg0
// CHECK: %[[T:.*]] = nn.transpose %[[R]] [2, 0, 1] : (tensor<2x4x8xf32>) -> tensor<8x2x4xf32>
// CHECK: %[[G:.*]] = spmd.all_gather %[[T]] dims [{"model"}, {}, {}] : (tensor<8x2x4xf32>) -> tensor<16x2x4xf32>
// CHECK: %[[B:.*]] = nn.transpose %[[G]] [1, 2, 0] : (tensor<16x2x4xf32>) -> tensor<2x4x16xf32>
// CHECK: nn.einsum %[[B]], %arg1 "bmk,kn->bmn"
// KERNELS-LABEL: @stored_for_a_product
// KERNELS: exec.launch @relu_0(%arg0) : (tensor<2x4x8xf32>) -> tensor<8x2x4xf32>
// KERNELS: spmd.all_gather
// KERNELS: exec.launch @matmul_0
// KERNELS-NOT: exec.launch
// KERNELS: return
module attributes {spmd.mesh = #spmd.mesh<["model"=2]>} {
  func.func @stored_for_a_product(%x: tensor<2x4x8xf32>, %w: tensor<16x6xf32>) -> tensor<2x4x6xf32> {
    %r = nn.relu %x : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %g = spmd.all_gather %r dims [{}, {}, {"model"}] : (tensor<2x4x8xf32>) -> tensor<2x4x16xf32>
    %y = nn.einsum %g, %w "bmk,kn->bmn" : (tensor<2x4x16xf32>, tensor<16x6xf32>) -> tensor<2x4x6xf32>
    return %y : tensor<2x4x6xf32>
  }
}

// -----

// A product stores what is scattered in parts.
// CHECK-LABEL: @scattered_by_a_product
// CHECK: %[[P:.*]] = nn.einsum
// CHECK: %[[R:.*]] = nn.reshape %[[P]] : (tensor<8x6xf32>) -> tensor<8x2x3xf32>
// CHECK: %[[T:.*]] = nn.transpose %[[R]] [1, 0, 2] : (tensor<8x2x3xf32>) -> tensor<2x8x3xf32>
// CHECK: %[[N:.*]] = nn.reshape %[[T]] : (tensor<2x8x3xf32>) -> tensor<16x3xf32>
// CHECK: spmd.reduce_scatter sum %[[N]] dims [{"model"}, {}] : (tensor<16x3xf32>) -> tensor<8x3xf32>
// KERNELS-LABEL: @scattered_by_a_product
// KERNELS-COUNT-1: exec.launch
// KERNELS-NOT: exec.launch
// KERNELS: return
module attributes {spmd.mesh = #spmd.mesh<["model"=2]>} {
  func.func @scattered_by_a_product(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>) -> tensor<8x3xf32> {
    %p = nn.einsum %x, %w "mk,kn->mn" : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %s = spmd.reduce_scatter sum %p dims [{}, {"model"}] : (tensor<8x6xf32>) -> tensor<8x3xf32>
    return %s : tensor<8x3xf32>
  }
}

// -----

// By who gets a part, and by whom it comes from.
// CHECK-LABEL: @numbered_twice
// CHECK: nn.transpose %{{.*}} [1, 0, 2] : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
// CHECK: %[[N:.*]] = nn.reshape %{{.*}} : (tensor<2x4x3xf32>) -> tensor<2x1x4x3xf32>
// CHECK: %[[A:.*]] = spmd.all_to_all %[[N]] gather [{}, {"model"}, {}, {}] slice [{"model"}, {}, {}, {}]
// CHECK-SAME: (tensor<2x1x4x3xf32>) -> tensor<1x2x4x3xf32>
// CHECK: nn.reshape %{{.*}} : (tensor<2x4x3xf32>) -> tensor<8x3xf32>
// KERNELS-LABEL: @numbered_twice
module attributes {spmd.mesh = #spmd.mesh<["model"=2]>} {
  func.func @numbered_twice(%x: tensor<4x6xf32>) -> tensor<8x3xf32> {
    %y = spmd.all_to_all %x gather [{"model"}, {}] slice [{}, {"model"}] : (tensor<4x6xf32>) -> tensor<8x3xf32>
    return %y : tensor<8x3xf32>
  }
}

// -----

// Two dims at once; axes are counted in one list, as before. Nobody computes what is returned: one kernel moves it.
// CHECK-LABEL: @two_dims
// CHECK: spmd.all_gather %arg0 dims [{"x", "y"}, {}] : (tensor<2x3xf32>) -> tensor<12x3xf32>
// CHECK: nn.reshape %{{.*}} : (tensor<12x3xf32>) -> tensor<2x3x2x3xf32>
// CHECK: nn.transpose %{{.*}} [0, 2, 1, 3] : (tensor<2x3x2x3xf32>) -> tensor<2x2x3x3xf32>
// CHECK: nn.reshape %{{.*}} : (tensor<2x2x3x3xf32>) -> tensor<4x9xf32>
// KERNELS-LABEL: @two_dims
// KERNELS: spmd.all_gather
// KERNELS-NEXT: nn.reshape
// KERNELS-NEXT: exec.launch @transpose_0
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=3]>} {
  func.func @two_dims(%x: tensor<2x3xf32>) -> tensor<4x9xf32> {
    %y = spmd.all_gather %x dims [{"x"}, {"y"}] : (tensor<2x3xf32>) -> tensor<4x9xf32>
    return %y : tensor<4x9xf32>
  }
}

// -----

// Whoever keeps its own part of what was gathered has it already; along another dim it is not its own.
// CHECK-LABEL: @own_part
// CHECK: %[[G:.*]] = spmd.all_gather %arg0 dims [{"model"}, {}]
// CHECK: %[[S:.*]] = spmd.local_slice %{{.*}} dims [{"model"}, {}] : (tensor<4x16xf32>) -> tensor<2x16xf32>
// CHECK: return %arg0, %[[S]]
module attributes {spmd.mesh = #spmd.mesh<["model"=2]>} {
  func.func @own_part(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<2x16xf32>) {
    %g = spmd.all_gather %x dims [{}, {"model"}] : (tensor<4x8xf32>) -> tensor<4x16xf32>
    %y = spmd.local_slice %g dims [{}, {"model"}] : (tensor<4x16xf32>) -> tensor<4x8xf32>
    %z = spmd.local_slice %g dims [{"model"}, {}] : (tensor<4x16xf32>) -> tensor<2x16xf32>
    return %y, %z : tensor<4x8xf32>, tensor<2x16xf32>
  }
}

// -----

// Parts that lie one behind the other as they are.
// CHECK-LABEL: @left_alone
// CHECK: spmd.all_gather %arg0 dims [{}, {"model"}, {}] : (tensor<1x4x8xf32>) -> tensor<1x8x8xf32>
// CHECK: spmd.reduce_scatter sum %arg0 dims [{}, {"model"}, {}] : (tensor<1x4x8xf32>) -> tensor<1x2x8xf32>
// CHECK: spmd.all_reduce
// CHECK-NOT: nn.
// CHECK: return
module attributes {spmd.mesh = #spmd.mesh<["model"=2]>} {
  func.func @left_alone(%x: tensor<1x4x8xf32>) -> (tensor<1x8x8xf32>, tensor<1x2x8xf32>, tensor<1x4x8xf32>) {
    %g = spmd.all_gather %x dims [{}, {"model"}, {}] : (tensor<1x4x8xf32>) -> tensor<1x8x8xf32>
    %s = spmd.reduce_scatter sum %x dims [{}, {"model"}, {}] : (tensor<1x4x8xf32>) -> tensor<1x2x8xf32>
    %r = spmd.all_reduce sum %x over {"model"} : tensor<1x4x8xf32>
    return %g, %s, %r : tensor<1x8x8xf32>, tensor<1x2x8xf32>, tensor<1x4x8xf32>
  }
}
