// What is made again behind the loss, by policy. Clones stand in front of their first reader, and read what is kept through exec.again.
//
// RUN: cleave-opt %s --split-input-file --exec-recompute=policy=cheap | FileCheck %s
// RUN: cleave-opt %s --split-input-file --exec-recompute=policy=none | FileCheck %s --check-prefix=NONE
// RUN: cleave-opt %s --split-input-file --exec-recompute=policy=blocks | FileCheck %s --check-prefix=BLOCKS
// RUN: cleave-opt %s --split-input-file --exec-recompute="policy=none gather=twice" | FileCheck %s --check-prefix=TWICE
// RUN: cleave-opt %s --split-input-file --exec-recompute="policy=auto" | FileCheck %s --check-prefix=AUTO
// RUN: cleave-opt %s --split-input-file --exec-recompute="policy=cheap keep=hid*" | FileCheck %s --check-prefix=KEEP
// RUN: cleave-opt %s --split-input-file --exec-recompute="policy=none again=hidden" | FileCheck %s --check-prefix=PICKED

// The backward reads z and exp(z), of which z can be kept and the other made again.
// CHECK-LABEL: @elementwise
// CHECK: %[[Z:.*]] = nn.einsum %arg0, %arg1
// CHECK: %[[H:.*]] = nn.exp %[[Z]]
// CHECK: %[[Y:.*]] = nn.einsum %[[H]], %arg2
// CHECK: %[[LOSS:.*]] = nn.reduce sum %[[Y]]
// CHECK: %[[KEPT:.*]] = exec.again %[[Z]]
// CHECK-NEXT: %[[AGAIN:.*]] = nn.exp %[[KEPT]]
// CHECK: nn.einsum %[[AGAIN]], %{{.*}} "ki,kj->ij"
// CHECK: nn.add %[[AGAIN]], %[[KEPT]]
// NONE-LABEL: @elementwise
// NONE-NOT: exec.again
// NONE: return
// TWICE-LABEL: @elementwise
// TWICE-NOT: exec.again
// TWICE: return
// BLOCKS-LABEL: @elementwise
// BLOCKS: nn.reduce
// BLOCKS: %[[X:.*]] = exec.again %arg0
// BLOCKS: nn.einsum %[[X]], %{{.*}} "ik,kj->ij"
// Without a limit nothing is made again, and the front says what would be.
// AUTO-LABEL: @elementwise
// AUTO-SAME: nn.front = [{again_ns = 0.000000e+00 : f64, bytes = {{[0-9]+}} : i64, kept = {{[0-9]+}} : i64, least_ns = {{.*}}, ns = {{.*}}, taken}
// AUTO-NOT: exec.again
// AUTO: return
// KEEP-LABEL: @elementwise
// KEEP: %[[HIDDEN:.*]] = nn.exp
// KEEP: nn.reduce
// KEEP-NOT: nn.exp
// KEEP: return
// PICKED-LABEL: @elementwise
// PICKED: nn.exp
// PICKED: nn.reduce
// PICKED: nn.exp
// PICKED: return
func.func @elementwise(%x: tensor<64x64xf32> {nn.name = "x"}, %w: tensor<64x256xf32> {nn.name = "w", nn.role = "parameter"}, %v: tensor<256x64xf32> {nn.name = "v", nn.role = "parameter"})
    -> (tensor<f32> {nn.name = "loss"}, tensor<64x256xf32> {nn.name = "next(w)", spmd.state = "w"}, tensor<256x64xf32> {nn.name = "next(v)", spmd.state = "v"}) {
  %z = nn.einsum %x, %w "ik,kj->ij" : (tensor<64x64xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  %h = nn.exp %z {nn.node = #nn.node<"exp", "Exp", ["z"], [["hidden"]]>} : (tensor<64x256xf32>) -> tensor<64x256xf32>
  %y = nn.einsum %h, %v "ik,kj->ij" : (tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<64x64xf32>
  %loss = nn.reduce sum %y dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<64x64xf32> -> tensor<64x64xf32>
  %gv = nn.einsum %h, %one "ki,kj->ij" : (tensor<64x256xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
  %nv = nn.sub %v, %gv : (tensor<256x64xf32>, tensor<256x64xf32>) -> tensor<256x64xf32>
  %dh = nn.einsum %one, %v "ik,jk->ij" : (tensor<64x64xf32>, tensor<256x64xf32>) -> tensor<64x256xf32>
  %hz = nn.add %h, %z : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  %dz = nn.mul %dh, %hz : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  %gw = nn.einsum %x, %dz "ki,kj->ij" : (tensor<64x64xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  %nw = nn.sub %w, %gw : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  return %loss, %nw, %nv : tensor<f32>, tensor<64x256xf32>, tensor<256x64xf32>
}

// -----

// A sharded parameter is gathered again where that is asked for.
module attributes {spmd.mesh = #spmd.mesh<["data"=2]>} {
  // CHECK-LABEL: @gathers
  // CHECK: spmd.all_gather
  // CHECK-NOT: spmd.all_gather
  // CHECK: return
  // NONE-LABEL: @gathers
  // NONE: spmd.all_gather
  // NONE-NOT: spmd.all_gather
  // NONE: return
  // BLOCKS-LABEL: @gathers
  // BLOCKS: spmd.all_gather
  // BLOCKS-NOT: spmd.all_gather
  // BLOCKS: return
  // TWICE-LABEL: @gathers
  // TWICE: spmd.all_gather %arg1
  // TWICE: nn.reduce
  // TWICE: %[[W:.*]] = exec.again %arg1
  // TWICE: %[[GATHERED:.*]] = spmd.all_gather %[[W]]
  // TWICE: nn.einsum %{{.*}}, %[[GATHERED]]
  // AUTO-LABEL: @gathers
  // AUTO: spmd.all_gather
  // AUTO-NOT: spmd.all_gather
  // AUTO: return
  // KEEP-LABEL: @gathers
  // PICKED-LABEL: @gathers
  func.func @gathers(%x: tensor<8x64xf32> {nn.name = "x"}, %w: tensor<32x64xf32> {nn.name = "w", nn.role = "parameter"})
      -> (tensor<f32> {nn.name = "loss"}, tensor<32x64xf32> {nn.name = "next(w)", spmd.state = "w"}) {
    %all = spmd.all_gather %w dims [{"data"}, {}] : (tensor<32x64xf32>) -> tensor<64x64xf32>
    %y = nn.einsum %x, %all "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %loss = nn.reduce sum %y dims [0, 1] : (tensor<8x64xf32>) -> tensor<f32>
    %d = nn.einsum %y, %all "ik,jk->ij" : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %p = nn.einsum %x, %d "ki,kj->ij" : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
    %g = spmd.reduce_scatter sum %p dims [{"data"}, {}] : (tensor<64x64xf32>) -> tensor<32x64xf32>
    %n = nn.sub %w, %g : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
    return %loss, %n : tensor<f32>, tensor<32x64xf32>
  }
}

// -----

// A function without a loss, or without states, is no step.
// CHECK-LABEL: @no_step
// CHECK-NOT: exec.again
// CHECK: return
func.func @no_step(%x: tensor<64x64xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}, tensor<64x64xf32>) {
  %h = nn.exp %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %loss = nn.reduce sum %h dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  %d = nn.mul %h, %h : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %loss, %d : tensor<f32>, tensor<64x64xf32>
}
