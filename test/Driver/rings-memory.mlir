// What a ring saves: 32,768 tokens of 8 heads of 64 on 8 ranks, of which a shard is B = 4096 x 8 x 64 x 4 = 8,388,608 bytes.
//
// Gathered, a rank has at its peak queries and result (2 B), all keys and all values (16 B), and the mask of its 4096 queries by 32,768 keys, a byte
// each (16 B): 34 B = 285,212,672. In a ring there are two blocks of keys and of values (4 B), queries, the sum so far and that of the present
// step (3 B), and the logarithms of both (2 x 4096 x 8 x 4): 58,982,400, and a few numbers. Sent are 7 B of keys and of values either way, 117,440,512.
//
// RUN: cleave shard %s --attention=gather --report %t.json -o %t.out
// RUN: FileCheck %s --check-prefixes=EITHER,GATHER < %t.json
// RUN: cleave shard %s --attention=ring --report %t.json -o %t.out
// RUN: FileCheck %s --check-prefixes=EITHER,RING < %t.json
// The same as links ask that have latencies: gathers become messages.
// RUN: cleave shard %s --attention=ring --optimize=time --cluster 8xH100-nvlink --report %t.json -o %t.out
// RUN: FileCheck %s --check-prefixes=EITHER,RING,TIME < %t.json
// RUN: cleave explain %s --attention=ring '#1' | FileCheck %s --check-prefix=CAUSE
// Commands: the first blocks are sent on a stream of their own, and nothing waits for them before the own block is attended to.
// RUN: cleave shard %s --attention=ring --emit=ordered -o %t.out
// RUN: FileCheck %s --check-prefix=BESIDE < %t.out

// BESIDE: exec.exchange {{.*}} stream 1
// BESIDE-NEXT: exec.view
// BESIDE-NEXT: exec.exchange {{.*}} stream 1
// BESIDE-NOT: exec.wait
// BESIDE: exec.run @partial_attention_0
// BESIDE: exec.wait 1
// BESIDE: exec.run @partial_attention_1
// GATHER: "peak_bytes_per_rank": 285212672
// RING: "peak_bytes_per_rank": 589824{{[0-9][0-9]}},
// EITHER: "totals"
// GATHER-NEXT: "all_gather"
// GATHER-NEXT: "count": 2
// RING-NEXT: "window"
// RING-NEXT: "count": 14
// EITHER-NEXT: "wire_bytes_per_rank": 117440512
// TIME: "overlapped_ns"
// CAUSE: #1 window over seq, 8388608 bytes a rank, {{.*}}keys of nn.attention go round, a block at a time

#mesh = #spmd.mesh<["seq"=8]>
#s = #spmd.sharding<#mesh, [{}, {}, {"seq"}, {}]>

module attributes {spmd.mesh = #mesh} {
  func.func @main(%q: tensor<1x8x32768x64xf32, #s>, %k: tensor<1x8x32768x64xf32, #s>, %v: tensor<1x8x32768x64xf32, #s>) -> tensor<1x8x32768x64xf32, #s> {
    %0 = nn.attention %q, %k, %v scale 0.125 causal : (tensor<1x8x32768x64xf32, #s>, tensor<1x8x32768x64xf32, #s>, tensor<1x8x32768x64xf32, #s>) -> tensor<1x8x32768x64xf32, #s>
    return %0 : tensor<1x8x32768x64xf32, #s>
  }
}
