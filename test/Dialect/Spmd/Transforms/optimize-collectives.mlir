// RUN: cleave-opt %s --spmd-optimize-collectives | FileCheck %s
// RUN: cleave-opt %s --spmd-optimize-collectives --mlir-pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATISTICS

// A gather and an all_reduce are there twice, and two collectives for nobody. A rank sends 32 bytes for the gather, and 16 for each
// other one.
// STATISTICS-DAG: {{^ *}}4 spmd-optimize-collectives {{.*}} collectives that are gone
// STATISTICS-DAG: {{^ *}}80 spmd-optimize-collectives {{.*}} bytes that a rank sends no more

module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=2]>} {
  // Two gathers of one value become one, also where each hangs on a slice of its own.
  // CHECK-LABEL: @equal_collectives_merge
  func.func @equal_collectives_merge(%x: tensor<4x4xf32>) -> (tensor<8x2xf32>, tensor<8x2xf32>) {
    // CHECK-NEXT: %[[S:.*]] = spmd.local_slice
    // CHECK-NEXT: %[[G:.*]] = spmd.all_gather %[[S]]
    // CHECK-NEXT: %[[E:.*]] = nn.exp %[[G]]
    // CHECK-NEXT: %[[N:.*]] = nn.neg %[[G]]
    // CHECK-NEXT: return %[[E]], %[[N]]
    %0 = spmd.local_slice %x dims [{}, {"y"}] : (tensor<4x4xf32>) -> tensor<4x2xf32>
    %1 = spmd.all_gather %0 dims [{"x"}, {}] : (tensor<4x2xf32>) -> tensor<8x2xf32>
    %2 = nn.exp %1 : (tensor<8x2xf32>) -> tensor<8x2xf32>
    %3 = spmd.local_slice %x dims [{}, {"y"}] : (tensor<4x4xf32>) -> tensor<4x2xf32>
    %4 = spmd.all_gather %3 dims [{"x"}, {}] : (tensor<4x2xf32>) -> tensor<8x2xf32>
    %5 = nn.neg %4 : (tensor<8x2xf32>) -> tensor<8x2xf32>
    return %2, %5 : tensor<8x2xf32>, tensor<8x2xf32>
  }

  // Other axes, other kinds or other operands are other collectives.
  // CHECK-LABEL: @different_collectives_stay
  func.func @different_collectives_stay(%x: tensor<4xf32>, %y: tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    // CHECK-COUNT-4: spmd.all_reduce
    %0 = spmd.all_reduce sum %x over {"x"} : tensor<4xf32>
    %1 = spmd.all_reduce sum %x over {"y"} : tensor<4xf32>
    %2 = spmd.all_reduce max %x over {"x"} : tensor<4xf32>
    %3 = spmd.all_reduce sum %y over {"x"} : tensor<4xf32>
    return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }

  // What a collective is for is not a part of what it computes: the first one's cause stays.
  // CHECK-LABEL: @causes_do_not_keep_collectives_apart
  func.func @causes_do_not_keep_collectives_apart(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    // CHECK-NEXT: %[[A:.*]] = spmd.all_reduce sum %{{.*}} over {"x"} : tensor<4xf32> cause "the first"
    // CHECK-NEXT: %[[B:.*]] = spmd.all_reduce sum %{{.*}} over {"y"} : tensor<4xf32> cause "another"
    // CHECK-NEXT: return %[[A]], %[[A]], %[[B]]
    %0 = spmd.all_reduce sum %x over {"x"} : tensor<4xf32> cause "the first"
    %1 = spmd.all_reduce sum %x over {"x"} : tensor<4xf32> cause "the second"
    %2 = spmd.all_reduce sum %x over {"y"} : tensor<4xf32> cause "another"
    return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }

  // What nobody reads is not sent, nor computed.
  // CHECK-LABEL: @dead_collectives_go
  func.func @dead_collectives_go(%x: tensor<4xf32>) -> tensor<4xf32> {
    // CHECK-NEXT: return
    %0 = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %1 = spmd.all_reduce sum %0 over {"x"} : tensor<4xf32>
    %2 = spmd.all_gather %1 dims [{"y"}] : (tensor<4xf32>) -> tensor<8xf32>
    return %x : tensor<4xf32>
  }
}
