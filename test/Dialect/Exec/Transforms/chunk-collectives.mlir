// Products whose sum over ranks alone reads them, in parts along the first dim; memory holds parts where the whole is.
//
// RUN: cleave-opt %s --split-input-file --exec-chunk-collectives=chunks=2 | FileCheck %s
// RUN: cleave-opt %s --split-input-file --exec-chunk-collectives | FileCheck %s --check-prefix=AUTO
// RUN: cleave-opt %s --split-input-file --exec-chunk-collectives=chunks=2 --exec-lower | FileCheck %s --check-prefix=MEMORY

// The batch of one is no dim to split; all of the weight is read. The second part is computed while the first is sent, and the kernel behind both
// reads one tensor.
// CHECK-LABEL: @rows
// CHECK: %[[A:.*]] = nn.slice %arg0 starts [0, 0, 0] sizes [1, 4, 4] steps [1, 1, 1] : (tensor<1x8x4xf32>) -> tensor<1x4x4xf32>
// CHECK: %[[P:.*]] = nn.einsum %[[A]], %arg1 "bmk,kn->bmn" : (tensor<1x4x4xf32>, tensor<4x6xf32>) -> tensor<1x4x6xf32>
// CHECK: %[[R:.*]] = spmd.all_reduce sum %[[P]] over {"model"} : tensor<1x4x6xf32>
// CHECK: %[[B:.*]] = nn.slice %arg0 starts [0, 4, 0] sizes [1, 4, 4] steps [1, 1, 1]
// CHECK: %[[Q:.*]] = nn.einsum %[[B]], %arg1
// CHECK: %[[S:.*]] = spmd.all_reduce sum %[[Q]]
// CHECK: %[[Y:.*]] = nn.concat %[[R]], %[[S]] dim 1 : (tensor<1x4x6xf32>, tensor<1x4x6xf32>) -> tensor<1x8x6xf32>
// CHECK: nn.softmax %[[Y]]
// Few bytes: what a collective takes to begin counts more.
// AUTO-LABEL: @rows
// AUTO-NOT: nn.slice
// AUTO: return
// MEMORY-LABEL: @rows
// MEMORY: exec.run @matmul_0
// MEMORY: exec.collective all_reduce {{.*}} stream 1
// MEMORY: exec.run @matmul_0
// MEMORY: exec.collective all_reduce {{.*}} stream 1
// MEMORY-NOT: exec.copy
// MEMORY: exec.run @softmax_0
module attributes {spmd.mesh = #spmd.mesh<["model"=2]>} {
  func.func @rows(%x: tensor<1x8x4xf32>, %w: tensor<4x6xf32>) -> tensor<1x8x6xf32> {
    %p = nn.einsum %x, %w "bmk,kn->bmn" : (tensor<1x8x4xf32>, tensor<4x6xf32>) -> tensor<1x8x6xf32>
    %s = spmd.all_reduce sum %p over {"model"} : tensor<1x8x6xf32>
    %y = nn.softmax %s dim 2 : (tensor<1x8x6xf32>) -> tensor<1x8x6xf32>
    return %y : tensor<1x8x6xf32>
  }
}

// -----

// Three does not divide by two, somebody else reads the product, and an elementwise op stands between: whole, all of them.
// CHECK-LABEL: @whole
// CHECK-NOT: nn.slice
// CHECK: return
module attributes {spmd.mesh = #spmd.mesh<["model"=2]>} {
  func.func @whole(%x: tensor<3x4xf32>, %w: tensor<4x6xf32>, %z: tensor<2x4xf32>)
      -> (tensor<3x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>) {
    %p = nn.einsum %x, %w "mk,kn->mn" : (tensor<3x4xf32>, tensor<4x6xf32>) -> tensor<3x6xf32>
    %a = spmd.all_reduce sum %p over {"model"} : tensor<3x6xf32>
    %q = nn.einsum %z, %w "mk,kn->mn" : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
    %b = spmd.all_reduce sum %q over {"model"} : tensor<2x6xf32>
    %t = nn.tanh %q : (tensor<2x6xf32>) -> tensor<2x6xf32>
    %c = spmd.all_reduce sum %t over {"model"} : tensor<2x6xf32>
    return %a, %b, %c, %q : tensor<3x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>
  }
}

// -----

// 2 * 2048 * 1024 * 8192 flops cost as much as 268 MB (1/128 a byte each), and 2 * 7/8 of 67 MB are sent. Whole that is 268 + 117 + 1; in eight
// parts only the last one's sum is waited for: 268 + 117/8 + 1.
// CHECK-LABEL: @large
// CHECK-COUNT-2: nn.slice %arg0 {{.*}} sizes [1024, 1024]
// CHECK-NOT: nn.slice
// CHECK: return
// AUTO-LABEL: @large
// AUTO-COUNT-8: nn.slice %arg0 {{.*}} sizes [256, 1024]
// AUTO-NOT: nn.slice
// AUTO: nn.concat
module attributes {spmd.mesh = #spmd.mesh<["model"=8]>} {
  func.func @large(%x: tensor<2048x1024xf32>, %w: tensor<1024x8192xf32>) -> tensor<2048x8192xf32> {
    %p = nn.einsum %x, %w "mk,kn->mn" : (tensor<2048x1024xf32>, tensor<1024x8192xf32>) -> tensor<2048x8192xf32>
    %s = spmd.all_reduce sum %p over {"model"} : tensor<2048x8192xf32>
    return %s : tensor<2048x8192xf32>
  }
}

// -----

// A dim that both operands have, and the second operand's own: what has the letter is split.
// CHECK-LABEL: @letters
// CHECK: nn.slice %arg0 starts [0, 0, 0] sizes [1, 3, 4]
// CHECK: nn.slice %arg1 starts [0, 0, 0] sizes [1, 4, 5]
// CHECK: nn.concat {{.*}} dim 0
// CHECK-NOT: nn.slice %arg0 {{.*}} sizes [2, 3, 2]
// CHECK: nn.slice %arg2 starts [0, 0] sizes [4, 3]
// CHECK: nn.slice %arg2 starts [0, 3] sizes [4, 3]
// CHECK: nn.concat {{.*}} dim 0
module attributes {spmd.mesh = #spmd.mesh<["model"=2]>} {
  func.func @letters(%x: tensor<2x3x4xf32>, %w: tensor<2x4x5xf32>, %v: tensor<4x6xf32>) -> (tensor<2x3x5xf32>, tensor<6x2x3xf32>) {
    %p = nn.einsum %x, %w "bmk,bkn->bmn" : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
    %a = spmd.all_reduce sum %p over {"model"} : tensor<2x3x5xf32>
    %q = nn.einsum %x, %v "bmk,kn->nbm" : (tensor<2x3x4xf32>, tensor<4x6xf32>) -> tensor<6x2x3xf32>
    %b = spmd.all_reduce sum %q over {"model"} : tensor<6x2x3xf32>
    return %a, %b : tensor<2x3x5xf32>, tensor<6x2x3xf32>
  }
}
