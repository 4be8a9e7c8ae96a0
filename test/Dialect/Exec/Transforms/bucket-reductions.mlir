// Reductions of gradients that travel together.
//
// RUN: cleave-opt %s --split-input-file --exec-bucket-reductions | FileCheck %s
// RUN: cleave-opt %s --split-input-file '--exec-bucket-reductions=first-bytes=64 most-bytes=64' | FileCheck %s --check-prefix=SMALL

// Side by side where the last one is made, in the order in which gradients are made. Buckets that are full are others.
// CHECK-LABEL: @side_by_side
// CHECK: %[[G1:.*]] = nn.einsum %arg1, %arg1
// CHECK-NEXT: %[[G0:.*]] = nn.einsum %arg0, %[[G1]]
// CHECK-NEXT: spmd.all_reduce sum %[[G1]] over {"x"} {exec.bucket = 0 : i64}
// CHECK-NEXT: spmd.all_reduce sum %[[G0]] over {"x"} {exec.bucket = 0 : i64}
// CHECK-NEXT: nn.sub
// SMALL-LABEL: @side_by_side
// SMALL: %[[G1:.*]] = nn.einsum %arg1, %arg1
// SMALL-NEXT: spmd.all_reduce sum %[[G1]] over {"x"} {exec.bucket = 0 : i64}
// SMALL-NEXT: %[[G0:.*]] = nn.einsum %arg0, %[[G1]]
// SMALL-NEXT: spmd.all_reduce sum %[[G0]] over {"x"} {exec.bucket = 1 : i64}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func @side_by_side(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %w: tensor<4x4xf32> {nn.name = "w"}, %v: tensor<4x4xf32> {nn.name = "v"})
      -> (tensor<4x4xf32> {spmd.state = "w"}, tensor<4x4xf32> {spmd.state = "v"}) {
    %g1 = nn.einsum %y, %y "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %r1 = spmd.all_reduce sum %g1 over {"x"} : tensor<4x4xf32>
    %g0 = nn.einsum %x, %g1 "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %r0 = spmd.all_reduce sum %g0 over {"x"} : tensor<4x4xf32>
    %n0 = nn.sub %w, %r0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %n1 = nn.sub %v, %r1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %n0, %n1 : tensor<4x4xf32>, tensor<4x4xf32>
  }
}

// -----

// What the backward waits for goes by itself, and so does another kind, and another type.
// CHECK-LABEL: @others
// CHECK: spmd.all_reduce sum %{{.*}} over {"x"} :
// CHECK-DAG: spmd.all_reduce max %{{.*}} over {"x"} {exec.bucket = 0 : i64}
// CHECK-DAG: spmd.all_reduce sum %{{.*}} over {"x"} {exec.bucket = 1 : i64} : tensor<4x4xf32>
// CHECK-DAG: spmd.all_reduce sum %{{.*}} over {"x"} {exec.bucket = 2 : i64} : tensor<4x4xf64>
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func @others(%x: tensor<4x4xf32>, %d: tensor<4x4xf64>, %w: tensor<4x4xf32> {nn.name = "w"}, %v: tensor<4x4xf32> {nn.name = "v"}, %u: tensor<4x4xf64> {nn.name = "u"})
      -> (tensor<4x4xf32> {spmd.state = "w"}, tensor<4x4xf32> {spmd.state = "v"}, tensor<4x4xf64> {spmd.state = "u"}) {
    %a = spmd.all_reduce sum %x over {"x"} : tensor<4x4xf32>
    %g = nn.einsum %a, %x "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %m = spmd.all_reduce max %g over {"x"} : tensor<4x4xf32>
    %s = spmd.all_reduce sum %g over {"x"} : tensor<4x4xf32>
    %t = spmd.all_reduce sum %d over {"x"} : tensor<4x4xf64>
    %n0 = nn.sub %w, %m : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %n1 = nn.sub %v, %s : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %n2 = nn.sub %u, %t : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
    return %n0, %n1, %n2 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf64>
  }
}

// -----

// One that is read before the next gradient is there does not wait for it.
// CHECK-LABEL: @read_early
// CHECK: spmd.all_reduce sum %{{.*}} {exec.bucket = 0 : i64}
// CHECK-NEXT: nn.sub
// CHECK-NEXT: nn.einsum
// CHECK-NEXT: spmd.all_reduce sum %{{.*}} {exec.bucket = 1 : i64}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func @read_early(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %w: tensor<4x4xf32> {nn.name = "w"}, %v: tensor<4x4xf32> {nn.name = "v"})
      -> (tensor<4x4xf32> {spmd.state = "w"}, tensor<4x4xf32> {spmd.state = "v"}) {
    %g1 = nn.einsum %y, %y "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %r1 = spmd.all_reduce sum %g1 over {"x"} : tensor<4x4xf32>
    %n1 = nn.sub %v, %r1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %g0 = nn.einsum %x, %g1 "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %r0 = spmd.all_reduce sum %g0 over {"x"} : tensor<4x4xf32>
    %n0 = nn.sub %w, %r0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %n0, %n1 : tensor<4x4xf32>, tensor<4x4xf32>
  }
}

// -----

// A function that is no step stays as it is.
// CHECK-LABEL: @no_step
// CHECK-NOT: exec.bucket
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func @no_step(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %r = spmd.all_reduce sum %x over {"x"} : tensor<4x4xf32>
    return %r : tensor<4x4xf32>
  }
}

// -----

// Of a rank of a pipeline no bucket goes on over a message; what a message of a microbatch waits for is in none.
// CHECK-LABEL: @between_messages
// CHECK: spmd.all_reduce sum %{{.*}} over {"x"} : tensor<4x4xf32>
// CHECK: pipe.send
// CHECK: spmd.all_reduce sum %{{.*}} {exec.bucket = 0 : i64}
// CHECK: pipe.recv
// CHECK: spmd.all_reduce sum %{{.*}} {exec.bucket = 1 : i64}
// CHECK-NEXT: spmd.all_reduce sum %{{.*}} {exec.bucket = 1 : i64}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func @between_messages(%x: tensor<4x4xf32>, %u: tensor<4x4xf32> {nn.name = "u"}, %v: tensor<4x4xf32> {nn.name = "v"}, %w: tensor<4x4xf32> {nn.name = "w"})
      -> (tensor<4x4xf32> {spmd.state = "u"}, tensor<4x4xf32> {spmd.state = "v"}, tensor<4x4xf32> {spmd.state = "w"}) {
    %h = nn.einsum %x, %x "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %s = spmd.all_reduce sum %h over {"x"} : tensor<4x4xf32>
    pipe.send %s to 1 channel 0 microbatch 0 : tensor<4x4xf32>
    %g = nn.einsum %x, %u "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %rg = spmd.all_reduce sum %g over {"x"} : tensor<4x4xf32>
    %d = pipe.recv from 1 channel 0 microbatch 0 : tensor<4x4xf32>
    %f = nn.einsum %x, %d "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %rf = spmd.all_reduce sum %f over {"x"} : tensor<4x4xf32>
    %e = nn.einsum %d, %d "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %re = spmd.all_reduce sum %e over {"x"} : tensor<4x4xf32>
    %nu = nn.sub %u, %rg : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %nv = nn.sub %v, %rf : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %nw = nn.sub %w, %re : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %nu, %nv, %nw : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
  }
}

// -----

// Of a gradient that is reduced over one axis and then over another, the second bucket is where the first one has gone, and keeps it together.
// CHECK-LABEL: @over_two_axes
// CHECK: %[[G1:.*]] = nn.einsum %arg1, %arg1
// CHECK-NEXT: %[[G2:.*]] = nn.einsum %arg0, %[[G1]]
// CHECK-NEXT: %[[G0:.*]] = nn.einsum %arg0, %[[G2]]
// CHECK-NEXT: %[[R1:.*]] = spmd.all_reduce sum %[[G1]] over {"x"} {exec.bucket = 0 : i64}
// CHECK-NEXT: spmd.all_reduce sum %[[G0]] over {"x"} {exec.bucket = 0 : i64}
// CHECK-NEXT: spmd.all_reduce sum %[[G2]] over {"y"} {exec.bucket = 1 : i64}
// CHECK-NEXT: spmd.all_reduce sum %[[R1]] over {"y"} {exec.bucket = 1 : i64}
// CHECK-NEXT: nn.sub
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=2]>} {
  func.func @over_two_axes(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %w: tensor<4x4xf32> {nn.name = "w"}, %v: tensor<4x4xf32> {nn.name = "v"}, %u: tensor<4x4xf32> {nn.name = "u"})
      -> (tensor<4x4xf32> {spmd.state = "w"}, tensor<4x4xf32> {spmd.state = "v"}, tensor<4x4xf32> {spmd.state = "u"}) {
    %g1 = nn.einsum %y, %y "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %r1 = spmd.all_reduce sum %g1 over {"x"} : tensor<4x4xf32>
    %g2 = nn.einsum %x, %g1 "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %s2 = spmd.all_reduce sum %g2 over {"y"} : tensor<4x4xf32>
    %g0 = nn.einsum %x, %g2 "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %r0 = spmd.all_reduce sum %g0 over {"x"} : tensor<4x4xf32>
    %q1 = spmd.all_reduce sum %r1 over {"y"} : tensor<4x4xf32>
    %n0 = nn.sub %w, %r0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %n1 = nn.sub %v, %q1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %n2 = nn.sub %u, %s2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %n0, %n1, %n2 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
  }
}
