// The time of a pipeline is that of the rank that takes longest: what that one computes, and what it sends itself. At a flop and a byte a ns, ranks of the
// first stage compute for 2 x 8 x 64 x 32 = 32,768 ns and send for 2,049 ns (half of 2,048 bytes of terms, a ns later, and then 1,024 bytes to
// the second stage), where ranks compute for 2 x 4 x 64 x 128 = 65,536 ns and send nothing. A call takes all of that one after the other; a
// rank of the second stage is busy from the message on, for 1,025 + 65,536 ns.
//
// RUN: printf 'device: {flops: {f32: 1G}, memory: 80GB, bandwidth: 1000TB/s, launch: 0us}\nlinks: {latency: 1ns, bandwidth: 1GB/s}\n' > %t.cluster.yaml
// RUN: printf 'mesh: {model: 2, stage: 2}\ncluster: %t.cluster.yaml\npipeline: {axis: stage, microbatches: 1, batch: {x: 0}}\nshard: [{tensor: v, dims: [model, _]}, {tensor: y, dims: [model, _]}]\n' > %t.yaml
// RUN: cleave shard %s --plan %t.yaml --report %t.json -o %t.mlir | FileCheck %s --check-prefix=TABLE
// RUN: FileCheck %s < %t.json

// TABLE: 1 x reduce_scatter over model
// TABLE: 1 x send
// TABLE: time of a rank: 65.54 us of compute, 0 ns of communication
// TABLE: time of a call: 100.35 us, 66.56 us where calls follow each other
// CHECK: "compute_ns": 65536,
// CHECK-NEXT: "communication_ns": 0,
// CHECK-NEXT: "call_ns": 100354,
// CHECK-NEXT: "span_ns": 66561
func.func @main(%x: tensor<8x64xf32> {nn.name = "x"}, %v: tensor<64x64xf32> {nn.name = "v", nn.parameter}, %w: tensor<64x128xf32> {nn.name = "w", nn.parameter}) -> (tensor<8x128xf32> {nn.name = "y"}) {
  %0 = nn.einsum %x, %v "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %1 = nn.einsum %0, %w "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x128xf32>) -> tensor<8x128xf32>
  return %1 : tensor<8x128xf32>
}
