// Collectives beside kernels.
//
// RUN: cleave-opt %s --split-input-file --exec-order --exec-verify-plan=phase=ordered | FileCheck %s

// A collective whose result is read later: it waits for its operand, and the reader for it.
// CHECK-LABEL: @overlap
// CHECK: exec.run @exp_0(%{{.*}}) into (%[[A:.*]]) :
// CHECK-NEXT: exec.record 0
// CHECK-NEXT: exec.wait 0 stream 1
// CHECK-NEXT: exec.collective all_reduce by sum over {"x"} (%[[A]]) into (%[[B:.*]]) stream 1
// CHECK-NEXT: exec.record 1 stream 1
// CHECK-NEXT: exec.run @exp_0(%{{.*}}) into (%[[C:.*]]) :
// CHECK-NEXT: exec.wait 1
// CHECK-NEXT: exec.run @exp_0(%[[B]]) into
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @in input 32 align 64
  exec.buffer @a activations 256 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @overlap() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %a = exec.view @a[0] : memref<8xf32>
    %b = exec.view @a[0] : memref<8xf32>
    %c = exec.view @a[64] : memref<8xf32>
    %d = exec.view @a[128] : memref<8xf32>
    exec.run @exp_0(%x) into (%a) : (memref<8xf32>) -> memref<8xf32>
    exec.collective all_reduce by sum over {"x"} (%a) into (%b) : (memref<8xf32>) -> memref<8xf32>
    exec.run @exp_0(%x) into (%c) : (memref<8xf32>) -> memref<8xf32>
    exec.run @exp_0(%b) into (%d) : (memref<8xf32>) -> memref<8xf32>
    return
  }
}

// -----

// Where every result is read at once, nothing could run meanwhile, and all stays on one stream.
// CHECK-LABEL: @no_overlap
// CHECK-NOT: stream
// CHECK-NOT: exec.record
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @in input 32 align 64
  exec.buffer @a activations 256 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @no_overlap() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %a = exec.view @a[0] : memref<8xf32>
    %b = exec.view @a[64] : memref<8xf32>
    %d = exec.view @a[128] : memref<8xf32>
    exec.collective all_reduce by sum over {"x"} (%x) into (%b) : (memref<8xf32>) -> memref<8xf32>
    exec.run @exp_0(%b) into (%d) : (memref<8xf32>) -> memref<8xf32>
    return
  }
}

// -----

// Those of one kind and one list of axes that start and end together are one; another kind is not, and one that is awaited
// elsewhere is not. A write of what a collective reads has to wait, too; at the end all are waited for.
// CHECK-LABEL: @merged
// CHECK: exec.input
// CHECK: exec.collective all_reduce by sum over {"x"} (%[[A:.*]], %[[B:.*]]) into (%[[A]], %[[B]]) stream 1
// CHECK-NEXT: exec.record 1 stream 1
// CHECK-NEXT: exec.collective all_reduce by max over {"x"} (%[[X:.*]]) into (%[[C:.*]]) stream 1
// CHECK-NEXT: exec.record 2 stream 1
// CHECK-NEXT: exec.collective all_reduce by max over {"x"} (%[[X]]) into (%[[D:.*]]) stream 1
// CHECK-NEXT: exec.record 3 stream 1
// CHECK-NEXT: exec.run @exp_0(%[[X]]) into (%[[E:.*]]) :
// CHECK-NEXT: exec.wait 1
// CHECK-NEXT: exec.run @exp_relu_0(%[[X]]) into (%[[A]], %[[B]]) :
// CHECK-NEXT: exec.wait 2
// CHECK-NEXT: exec.run @exp_0(%[[X]]) into (%[[C]]) :
// CHECK-NEXT: exec.wait 3
// CHECK-NEXT: exec.run @exp_0(%[[X]]) into (%[[D]]) :
// CHECK-NEXT: exec.record 4
// CHECK-NEXT: exec.wait 4 stream 1
// CHECK-NEXT: exec.collective all_reduce by max over {"x"} (%[[E]]) into (%[[B]]) stream 1
// CHECK-NEXT: exec.record 5 stream 1
// CHECK-NEXT: exec.wait 5
// CHECK-NEXT: return
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @in input 32 align 64
  exec.buffer @a activations 512 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  exec.kernel @exp_relu_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    %1 = nn.relu %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0, %1 : tensor<8xf32>, tensor<8xf32>
  }
  func.func @merged() {
    %x = exec.view @in[0] : memref<8xf32>
    %a = exec.view @a[0] : memref<8xf32>
    %b = exec.view @a[64] : memref<8xf32>
    %c = exec.view @a[128] : memref<8xf32>
    %d = exec.view @a[192] : memref<8xf32>
    %e = exec.view @a[256] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    exec.run @exp_0(%x) into (%a) : (memref<8xf32>) -> memref<8xf32>
    exec.run @exp_0(%x) into (%b) : (memref<8xf32>) -> memref<8xf32>
    exec.collective all_reduce by sum over {"x"} (%a) into (%a) : (memref<8xf32>) -> memref<8xf32>
    exec.collective all_reduce by sum over {"x"} (%b) into (%b) : (memref<8xf32>) -> memref<8xf32>
    exec.collective all_reduce by max over {"x"} (%x) into (%c) : (memref<8xf32>) -> memref<8xf32>
    exec.collective all_reduce by max over {"x"} (%x) into (%d) : (memref<8xf32>) -> memref<8xf32>
    exec.run @exp_0(%x) into (%e) : (memref<8xf32>) -> memref<8xf32>
    exec.run @exp_relu_0(%x) into (%a, %b) : (memref<8xf32>) -> (memref<8xf32>, memref<8xf32>)
    exec.run @exp_0(%x) into (%c) : (memref<8xf32>) -> memref<8xf32>
    exec.run @exp_0(%x) into (%d) : (memref<8xf32>) -> memref<8xf32>
    exec.collective all_reduce by max over {"x"} (%e) into (%b) : (memref<8xf32>) -> memref<8xf32>
    return
  }
}
