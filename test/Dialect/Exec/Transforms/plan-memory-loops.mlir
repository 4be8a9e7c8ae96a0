// What the next iteration finds is made where what it replaces lies, if nobody reads that any more; so is what a loop begins with. What
// cannot be there is copied at the end of the body.
//
// RUN: cleave-opt %s --split-input-file --exec-lower=last=planned | FileCheck %s

// Each element of the next value comes of that of the last one alone: in place. What the loop begins with is made there, too.
// CHECK-LABEL: @in_place
module attributes {spmd.phase = "imported"} {
func.func @in_place(%x: tensor<64xf32>) -> tensor<64xf32> {
  // CHECK: %[[Y:.*]] = exec.view @output_0[0] : memref
  // CHECK-NOT: exec.copy
  // CHECK: exec.loop count 3
  // CHECK-NEXT: %[[B:.*]] = exec.view @output_0[0] of %[[Y]]
  // CHECK-NEXT: exec.run @sin_0(%[[Y]]) into (%[[B]])
  // CHECK-NOT: exec.copy
  // CHECK: exec.end_loop
  %t = nn.tanh %x : (tensor<64xf32>) -> tensor<64xf32>
  %y = nn.loop count 3 carries (%t) : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<64xf32>):
    %b = nn.sin %a : (tensor<64xf32>) -> tensor<64xf32>
    nn.yield next (%b) : (tensor<64xf32>) -> ()
  }
  return %y : tensor<64xf32>
}
}

// -----

// The first product has read what the loop carries when the second one makes what comes in its place.
// CHECK-LABEL: @behind_the_last_read
module attributes {spmd.phase = "imported"} {
func.func @behind_the_last_read(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: exec.copy
  // CHECK: exec.loop count 3
  // CHECK: %[[B:.*]] = exec.view @activations[0] : memref
  // CHECK-NEXT: exec.run @matmul_0(%[[Y:.*]], %[[W:.*]]) into (%[[B]])
  // CHECK-NEXT: %[[C:.*]] = exec.view @output_0[0] of %[[Y]]
  // CHECK-NEXT: exec.run @matmul_0(%[[B]], %[[W]]) into (%[[C]])
  // CHECK-NOT: exec.copy
  // CHECK: exec.end_loop
  %y = nn.loop count 3 carries (%x) captures (%w) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a: tensor<8x8xf32>, %v: tensor<8x8xf32>):
    %b = nn.einsum %a, %v "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %c = nn.einsum %b, %v "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    nn.yield next (%c) : (tensor<8x8xf32>) -> ()
  }
  return %y : tensor<8x8xf32>
}
}

// -----

// A product reads all of what it replaces; and here another op reads it later: copies.
// CHECK-LABEL: @copied
module attributes {spmd.phase = "imported"} {
func.func @copied(%x: tensor<8x8xf32>, %z: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  // CHECK: exec.loop count 3
  // CHECK-COUNT-2: exec.copy %{{.*}} into
  // CHECK-NEXT: exec.end_loop
  %y:2 = nn.loop count 3 carries (%x, %z) captures (%w) : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  ^bb0(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %v: tensor<8x8xf32>):
    %c = nn.einsum %a, %v "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %d = nn.einsum %b, %c "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    nn.yield next (%c, %d) : (tensor<8x8xf32>, tensor<8x8xf32>) -> ()
  }
  return %y#0, %y#1 : tensor<8x8xf32>, tensor<8x8xf32>
}
}

// -----

// What the outer loop carries is what the inner one begins with, and that ends as what the next iteration of the outer one finds.
// CHECK-LABEL: @in_a_loop
module attributes {spmd.phase = "imported"} {
func.func @in_a_loop(%x: tensor<64xf32>) -> tensor<64xf32> {
  // CHECK: exec.copy
  // CHECK: exec.loop count 3
  // CHECK: exec.loop count 2
  // CHECK: exec.run @sin_0(%[[A:.*]]) into (%[[B:.*]])
  // CHECK-NOT: exec.copy
  // CHECK: exec.end_loop
  // CHECK-NOT: exec.copy
  // CHECK: exec.end_loop
  %y = nn.loop count 3 carries (%x) : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<64xf32>):
    %z = nn.loop count 2 carries (%a) : (tensor<64xf32>) -> tensor<64xf32> {
    ^bb0(%b: tensor<64xf32>):
      %c = nn.sin %b : (tensor<64xf32>) -> tensor<64xf32>
      nn.yield next (%c) : (tensor<64xf32>) -> ()
    }
    nn.yield next (%z) : (tensor<64xf32>) -> ()
  }
  return %y : tensor<64xf32>
}
}

// -----

// What the second loop leaves could be the rank's own row of what is gathered, and so what the first one leaves; but ranks exchange
// that, and find it at one offset: a copy lies between.
// CHECK-LABEL: @exchanged_between_loops
#mesh = #spmd.mesh<["x"=4]>
#x = #spmd.sharding<#mesh, [{"x"}]>
#pairs = #spmd.sharding<#mesh, [{"x":(2)2}]>
#replicated = #spmd.sharding<#mesh, [{}]>
module attributes {spmd.mesh = #mesh, spmd.phase = "optimized"} {
func.func @exchanged_between_loops(%x: tensor<1xf32> {spmd.global = tensor<4xf32, #x>}) -> (tensor<2xf32> {spmd.global = tensor<4xf32, #pairs>}, tensor<4xf32> {spmd.global = tensor<4xf32, #replicated>}) {
  // CHECK: exec.loop count 3
  // CHECK: exec.run @sin_0({{.*}}) into
  // CHECK: %[[LEFT:.*]] = exec.view @activations[{{[0-9]+}}] {{.*}} : memref<1xf32>
  // CHECK-NEXT: exec.end_loop
  // CHECK: exec.exchange @pieces_0 over {"x"} %[[LEFT]] into
  %y = nn.loop count 3 carries (%x) : (tensor<1xf32>) -> tensor<1xf32> {
  ^bb0(%a: tensor<1xf32>):
    %c = nn.sin %a : (tensor<1xf32>) -> tensor<1xf32>
    nn.yield next (%c) : (tensor<1xf32>) -> ()
  }
  %e = spmd.permute %y from #x to #pairs of tensor<4xf32> : (tensor<1xf32>) -> tensor<2xf32>
  %z = nn.loop count 2 carries (%y) : (tensor<1xf32>) -> tensor<1xf32> {
  ^bb0(%a: tensor<1xf32>):
    %c = nn.cos %a : (tensor<1xf32>) -> tensor<1xf32>
    nn.yield next (%c) : (tensor<1xf32>) -> ()
  }
  %g = spmd.all_gather %z dims [{"x"}] : (tensor<1xf32>) -> tensor<4xf32>
  return %e, %g : tensor<2xf32>, tensor<4xf32>
}
}
