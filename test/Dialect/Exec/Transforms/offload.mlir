// Values that wait for the backward in the host's memory: what reads them behind the loss reads what comes back.
//
// RUN: cleave-opt %s --split-input-file --exec-offload=tensors=hidden | FileCheck %s
// RUN: cleave-opt %s --split-input-file --exec-offload="tensors=turned,hid*" | FileCheck %s

// A forward reader, and one that only shows its bytes, stay as they are.
// CHECK-LABEL: @step
// CHECK: %[[H:.*]] = nn.exp
// CHECK-NEXT: %[[OUT:.*]] = exec.offload %[[H]] : tensor<64x256xf32>
// CHECK-NEXT: %[[TURNED:.*]] = nn.reshape %[[H]]
// CHECK: nn.einsum %[[H]], %arg2
// CHECK: nn.reduce sum
// CHECK: %[[BACK:.*]] = exec.fetch %[[OUT]] : tensor<64x256xf32>
// CHECK-NEXT: %[[AGAIN:.*]] = nn.reshape %[[BACK]]
// CHECK: nn.einsum %[[BACK]], %{{.*}} "ki,kj->ij"
// CHECK: nn.reduce sum %[[AGAIN]]
// CHECK-NOT: exec.offload
func.func @step(%x: tensor<64x64xf32> {nn.name = "x"}, %w: tensor<64x256xf32> {nn.name = "w", nn.role = "parameter"}, %v: tensor<256x64xf32> {nn.name = "v", nn.role = "parameter"})
    -> (tensor<f32> {nn.name = "loss"}, tensor<64x256xf32> {nn.name = "next(w)", spmd.state = "w"}, tensor<256x64xf32> {nn.name = "next(v)", spmd.state = "v"}, tensor<f32> {nn.name = "length"}) {
  %z = nn.einsum %x, %w "ik,kj->ij" {nn.node = #nn.node<"product", "MatMul", ["x", "w"], [["scores"]]>} : (tensor<64x64xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  %h = nn.exp %z {nn.node = #nn.node<"exp", "Exp", ["z"], [["hidden"]]>} : (tensor<64x256xf32>) -> tensor<64x256xf32>
  %t = nn.reshape %h {nn.node = #nn.node<"turn", "Reshape", ["hidden"], [["turned"]]>} : (tensor<64x256xf32>) -> tensor<16384xf32>
  %s = nn.exp %t : (tensor<16384xf32>) -> tensor<16384xf32>
  %r = nn.reduce sum %s dims [0] : (tensor<16384xf32>) -> tensor<f32>
  %y = nn.einsum %h, %v "ik,kj->ij" : (tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<64x64xf32>
  %l = nn.reduce sum %y dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  %loss = nn.add %l, %r : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<64x64xf32> -> tensor<64x64xf32>
  %gv = nn.einsum %h, %one "ki,kj->ij" : (tensor<64x256xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
  %nv = nn.sub %v, %gv : (tensor<256x64xf32>, tensor<256x64xf32>) -> tensor<256x64xf32>
  %dh = nn.einsum %one, %v "ik,jk->ij" : (tensor<64x64xf32>, tensor<256x64xf32>) -> tensor<64x256xf32>
  %dz = nn.mul %dh, %h : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  %gw = nn.einsum %x, %dz "ki,kj->ij" : (tensor<64x64xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  %nw = nn.sub %w, %gw : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  %length = nn.reduce sum %t dims [0] : (tensor<16384xf32>) -> tensor<f32>
  return %loss, %nw, %nv, %length : tensor<f32>, tensor<64x256xf32>, tensor<256x64xf32>, tensor<f32>
}

// -----

// Of a pipeline's rank ops say whether they are of a forward or of a backward.
// CHECK-LABEL: @rank
// CHECK: %[[H:.*]] = nn.exp
// CHECK-NEXT: %[[OUT:.*]] = exec.offload %[[H]]
// CHECK: nn.exp %[[H]]
// CHECK: %[[BACK:.*]] = exec.fetch %[[OUT]]
// CHECK-NEXT: nn.mul %[[BACK]]
func.func @rank(%x: tensor<64xf32> {nn.name = "x"}) -> (tensor<64xf32>, tensor<64xf32>) attributes {pipe.rank = 0 : i64} {
  %h = nn.exp %x {nn.node = #nn.node<"exp", "Exp", ["x"], [["hidden"]]>} : (tensor<64xf32>) -> tensor<64xf32> loc(fused<"0F0">["m"])
  %y = nn.exp %h : (tensor<64xf32>) -> tensor<64xf32> loc(fused<"0F1">["m"])
  %g = nn.mul %h, %y : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> loc(fused<"0I0">["m"])
  return %y, %g : tensor<64xf32>, tensor<64xf32>
}
