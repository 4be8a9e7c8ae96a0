// The forward of a microbatch ends where what the loss is added up of is made, however the sum goes on: between ranks, and by a factor that all
// microbatches know.
//
// RUN: cleave-opt %s --exec-recompute=policy=cheap | FileCheck %s

// CHECK: %[[Z:.*]] = nn.einsum
// CHECK: nn.exp %[[Z]]
// CHECK: pipe.accumulate
// CHECK: %[[KEPT:.*]] = exec.again %[[Z]]
// CHECK-NEXT: %[[AGAIN:.*]] = nn.exp %[[KEPT]]
// CHECK: nn.einsum %[[AGAIN]], %{{.*}} "ki,kj->ij"
#mesh = #spmd.mesh<["data"=2]>
module attributes {pipe.microbatches = 4 : i64, spmd.mesh = #mesh} {
  func.func @main(%x: tensor<64x64xf32> {nn.name = "x", nn.role = "batch", pipe.split = 0 : i64}, %w: tensor<64x256xf32> {nn.name = "w", nn.role = "parameter"},
                  %v: tensor<256x64xf32> {nn.name = "v", nn.role = "parameter"}) -> (tensor<f32> {nn.name = "loss"}, tensor<256x64xf32> {nn.name = "next(v)", spmd.state = "v"}) {
    %z = nn.einsum %x, %w "ik,kj->ij" : (tensor<64x64xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
    %h = nn.exp %z : (tensor<64x256xf32>) -> tensor<64x256xf32>
    %y = nn.einsum %h, %v "ik,kj->ij" : (tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<64x64xf32>
    %n = nn.reduce sum %x dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
    %count = pipe.accumulate sum %n : tensor<f32>
    %s = nn.reduce sum %y dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
    %terms = pipe.accumulate sum %s : tensor<f32>
    %one = nn.constant dense<1.0> : tensor<64x64xf32> -> tensor<64x64xf32>
    %g = nn.einsum %h, %one "ki,kj->ij" : (tensor<64x256xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %gv = pipe.accumulate sum %g : tensor<256x64xf32>
    %hz = nn.add %h, %z : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
    %t = nn.einsum %hz, %one "ki,kj->ij" : (tensor<64x256xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %gt = pipe.accumulate sum %t : tensor<256x64xf32>
    %all = spmd.all_reduce sum %terms over {"data"} : tensor<f32>
    %loss = nn.div %all, %count : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %u = nn.add %gv, %gt : (tensor<256x64xf32>, tensor<256x64xf32>) -> tensor<256x64xf32>
    %next = nn.sub %v, %u : (tensor<256x64xf32>, tensor<256x64xf32>) -> tensor<256x64xf32>
    return %loss, %next : tensor<f32>, tensor<256x64xf32>
  }
}
