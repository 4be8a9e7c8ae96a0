// bf16 between kernels, f32 inside of them; what a number may be lost of stays f32.
//
// RUN: cleave-opt %s --split-input-file --exec-flatten-loops --exec-fuse-kernels --exec-narrow-floats --exec-pack-weights=width=8 --exec-verify-form | FileCheck %s

// The weight is cast as it is packed, in pairs; what is between the kernels is bf16; arguments, biases and results are not.
// What is multiplied has been rounded even where it comes as f32.
// CHECK-LABEL: @layers
// CHECK: %[[W:.*]] = exec.pack %{{.*}} order [0, 1] batch 0 width 8 interleave 2 : (tensor<4x6xf32>) -> tensor<1x2x8x2xbf16>
// CHECK: %[[V:.*]] = exec.pack %{{.*}} order [0, 1] batch 0 width 8 interleave 2 : (tensor<6x4xf32>) -> tensor<1x3x8x2xbf16>
// CHECK: %[[H:.*]] = exec.fused (%[[A:.*]] = %arg0, %[[B:.*]] = %[[W]], %{{.*}} = %{{.*}}) : (tensor<3x4xf32>, tensor<1x2x8x2xbf16>, tensor<6xf32>) -> tensor<3x6xbf16>
// CHECK: %[[U:.*]] = exec.unpack %[[B]]
// CHECK: %[[WIDE:.*]] = nn.cast %[[U]] : (tensor<4x6xbf16>) -> tensor<4x6xf32>
// CHECK: %[[ROUNDED:.*]] = nn.cast %[[A]] : (tensor<3x4xf32>) -> tensor<3x4xbf16>
// CHECK: %[[X:.*]] = nn.cast %[[ROUNDED]] : (tensor<3x4xbf16>) -> tensor<3x4xf32>
// CHECK: nn.einsum %[[X]], %[[WIDE]] {{.*}} -> tensor<3x6xf32>
// CHECK: nn.add
// CHECK: nn.cast {{.*}} -> tensor<3x6xbf16>
// CHECK: exec.fused (%{{.*}} = %[[H]], %{{.*}} = %[[V]]) : (tensor<3x6xbf16>, tensor<1x3x8x2xbf16>) -> tensor<3x4xf32>
nn.param @w : tensor<4x6xf32> = dense<0.5> : tensor<4x6xf32>
nn.param @v : tensor<6x4xf32> = dense<0.25> : tensor<6x4xf32>
nn.param @b : tensor<6xf32> = dense<1.0> : tensor<6xf32>
func.func @layers(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w = nn.load @w : tensor<4x6xf32>
  %v = nn.load @v : tensor<6x4xf32>
  %b = nn.load @b : tensor<6xf32>
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<3x4xf32>, tensor<4x6xf32>) -> tensor<3x6xf32>
  %1 = nn.add %0, %b : (tensor<3x6xf32>, tensor<6xf32>) -> tensor<3x6xf32>
  %2 = nn.einsum %1, %v "ik,kj->ij" : (tensor<3x6xf32>, tensor<6x4xf32>) -> tensor<3x4xf32>
  return %2 : tensor<3x4xf32>
}

// -----

// A mask made of integers, and positions times frequencies, stay as they are; an embedding does not. Movement moves bf16.
// CHECK-LABEL: @numbers
// CHECK: exec.pack %{{.*}} order [0, 1] batch 0 width 0 interleave 1 : (tensor<9x4xf32>) -> tensor<9x4xbf16>
// CHECK: exec.fused {{.*}} : (tensor<3xf32>, tensor<4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: nn.einsum {{.*}}"s,f->sf" : (tensor<3xf32>, tensor<4xf32>) -> tensor<3x4xf32>
// CHECK: nn.gather {{.*}} -> tensor<3x4xbf16>
nn.param @table : tensor<9x4xf32> = dense<0.5> : tensor<9x4xf32>
nn.param @f : tensor<4xf32> = dense<0.25> : tensor<4xf32>
func.func @numbers(%ids: tensor<3xi64>) -> (tensor<3x4xf32>, tensor<4x3xf32>) {
  %t = nn.load @table : tensor<9x4xf32>
  %f = nn.load @f : tensor<4xf32>
  %p = nn.cast %ids : (tensor<3xi64>) -> tensor<3xf32>
  %0 = nn.einsum %p, %f "s,f->sf" : (tensor<3xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %1 = nn.gather %t, %ids dim 0 : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %2 = nn.transpose %1 [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
  return %0, %2 : tensor<3x4xf32>, tensor<4x3xf32>
}

// -----

// Ranks send half the bytes, and reshapes see them.
// CHECK-LABEL: @ranks
// CHECK: spmd.all_reduce sum {{.*}}tensor<3x6xbf16>
// CHECK: nn.reshape {{.*}} -> tensor<18xbf16>
// What one op reads in the type that it works on keeps it.
// CHECK: exec.fused {{.*}} -> tensor<2xi64>
// CHECK: nn.top_k %{{.*}} : (tensor<18xf32>)
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
nn.param @w : tensor<4x6xf32> = dense<0.5> : tensor<4x6xf32>
func.func @ranks(%x: tensor<3x4xf32>, %y: tensor<18xf32>) -> (tensor<18xf32>, tensor<2xi64>) {
  %w = nn.load @w : tensor<4x6xf32>
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<3x4xf32>, tensor<4x6xf32>) -> tensor<3x6xf32>
  %1 = spmd.all_reduce sum %0 over {"x"} : tensor<3x6xf32>
  %2 = nn.reshape %1 : (tensor<3x6xf32>) -> tensor<18xf32>
  %3 = nn.add %2, %y : (tensor<18xf32>, tensor<18xf32>) -> tensor<18xf32>
  %4 = nn.einsum %x, %w "ik,kj->ij" : (tensor<3x4xf32>, tensor<4x6xf32>) -> tensor<3x6xf32>
  %5 = nn.reshape %4 : (tensor<3x6xf32>) -> tensor<18xf32>
  %6, %7 = nn.top_k %5 k 2 dim 0 : (tensor<18xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  return %3, %7 : tensor<18xf32>, tensor<2xi64>
}
}

// -----

// In a loop: the weight is narrow, and so is what one kernel of the body hands to the next one, and what it reads from outside; what the loop
// carries is f32, as a sum of many iterations is. That the iterations multiply it makes an activation of what they make: @last would be positions otherwise.
// CHECK-LABEL: @iterations
// CHECK: %[[W:.*]] = exec.pack %{{.*}} order [0, 1] batch 0 width 8 interleave 2 : (tensor<4x4xf32>) -> tensor<1x2x8x2xbf16>
// CHECK: %[[O:.*]] = exec.fused {{.*}} -> tensor<3x4xbf16>
// CHECK: %[[L:.*]]:3 = exec.enter count 3 carries(%{{.*}}, %{{.*}}) captures(%[[O]]) : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xbf16>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xbf16>)
// CHECK: %[[P:.*]] = exec.fused (%{{.*}} = %[[L]]#0, %{{.*}} = %[[W]]) : (tensor<3x4xf32>, tensor<1x2x8x2xbf16>) -> tensor<3x4xbf16>
// CHECK: %[[Q:.*]] = exec.fused {{.*}} %[[P]]{{.*}} -> tensor<3x4xf32>
// CHECK: exec.leave next(%[[Q]], %{{.*}}) : (tensor<3x4xf32>, tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>)
// CHECK: exec.fused {{.*}} -> tensor<3x4xbf16>
module attributes {spmd.phase = "imported"} {
nn.param @w : tensor<4x4xf32> = dense<0.5> : tensor<4x4xf32>
func.func @iterations(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w = nn.load @w : tensor<4x4xf32>
  %o = nn.einsum %x, %w "ik,kj->ij" : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %i = nn.iota dim 1 start 0 step 1 : tensor<3x4xf32>
  %y:2 = nn.loop count 3 carries (%x, %i) captures (%w, %o) : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<4x4xf32>, tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  ^bb0(%a: tensor<3x4xf32>, %last: tensor<3x4xf32>, %v: tensor<4x4xf32>, %b: tensor<3x4xf32>):
    %c = nn.einsum %a, %v "ik,kj->ij" : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %d = nn.einsum %c, %v "ik,kj->ij" : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %e = nn.add %d, %b : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    nn.yield next (%e, %a) : (tensor<3x4xf32>, tensor<3x4xf32>) -> ()
  }
  %z = nn.neg %y#1 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %t = nn.einsum %z, %w "ik,kj->ij" : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %u = nn.einsum %t, %w "ik,kj->ij" : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  return %u : tensor<3x4xf32>
}
}

// -----

// What a window fills in, and the whole of what is permuted, have the type of what is exchanged.
// CHECK-LABEL: @types_in_attributes
// CHECK: spmd.window {{.*}} fill 0xFF80 : bf16 : (tensor<3x6xbf16>) -> tensor<5x6xbf16>
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
func.func @types_in_attributes(%x: tensor<3x4xf32>, %w: tensor<4x6xf32>) -> tensor<5x6xf32> {
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<3x4xf32>, tensor<4x6xf32>) -> tensor<3x6xf32>
  %1 = spmd.window %0 dims [{"x"}, {}] steps [3, 0] lows [-1, 0] highs [4, 6] fill 0xFF800000 : f32 : (tensor<3x6xf32>) -> tensor<5x6xf32>
  %2 = nn.neg %1 : (tensor<5x6xf32>) -> tensor<5x6xf32>
  return %2 : tensor<5x6xf32>
}
}

// -----

// The least f32, which masks, is infinite as bf16, and a row of infinities has no softmax: what is finite stops at the largest bf16. Behind
// a norm nothing is as large, nor is it without such a constant; infinity itself may be.
// CHECK-LABEL: @masked
// CHECK: nn.select
// CHECK: nn.cast %{{.*}} {saturate} : (tensor<4x4xf32>) -> tensor<4x4xbf16>
// CHECK: nn.softmax
// CHECK: nn.cast %{{.*}} : (tensor<4x4xf32>) -> tensor<4x4xbf16>
// CHECK: nn.select
// CHECK: nn.cast %{{.*}} : (tensor<4x4xf32>) -> tensor<4x4xbf16>
nn.param @w : tensor<4x4xf32> = dense<0.5> : tensor<4x4xf32>
func.func @masked(%x: tensor<4x4xf32>, %m: tensor<4x4xi1>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %w = nn.load @w : tensor<4x4xf32>
  %least = nn.constant dense<0xFF7FFFFF> : tensor<f32> -> tensor<f32>
  %infinite = nn.constant dense<0xFF800000> : tensor<f32> -> tensor<f32>
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = nn.select %m, %0, %least : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %2 = nn.einsum %1, %w "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = nn.softmax %1 dim 1 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = nn.einsum %3, %w "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = nn.select %m, %4, %infinite : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %6 = nn.einsum %5, %w "ik,kj->ij" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2, %4, %6 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A slice of a shard, and a slice of that, are weights as the shard is: each is rounded and packed on its way into memory.
// CHECK-LABEL: @slices_of_shards
// CHECK: %[[ONE:.*]] = spmd.local_slice
// CHECK: exec.pack %[[ONE]] order [0, 1] batch 0 width 8 interleave 2 : (tensor<4x12xf32>) -> tensor<2x2x8x2xbf16>
// CHECK: %[[TWO:.*]] = spmd.local_slice %[[ONE]]
// CHECK: exec.pack %[[TWO]] order [0, 1] batch 0 width 8 interleave 2 : (tensor<4x6xf32>) -> tensor<1x2x8x2xbf16>
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=2]>} {
nn.param @w : tensor<4x24xf32> = dense<0.5> : tensor<4x24xf32>
func.func @slices_of_shards(%x: tensor<3x4xf32>) -> (tensor<3x12xf32>, tensor<3x6xf32>) {
  %w = nn.load @w : tensor<4x24xf32>
  %0 = spmd.local_slice %w dims [{}, {"x"}] : (tensor<4x24xf32>) -> tensor<4x12xf32>
  %1 = spmd.local_slice %0 dims [{}, {"y"}] : (tensor<4x12xf32>) -> tensor<4x6xf32>
  %2 = nn.einsum %x, %0 "ik,kj->ij" : (tensor<3x4xf32>, tensor<4x12xf32>) -> tensor<3x12xf32>
  %3 = nn.einsum %x, %1 "ik,kj->ij" : (tensor<3x4xf32>, tensor<4x6xf32>) -> tensor<3x6xf32>
  return %2, %3 : tensor<3x12xf32>, tensor<3x6xf32>
}
}
