// Rings by time where attention looks at near keys alone: what is passed on is counted, and no block goes by ranks that it says nothing to.
//
// 256 tokens of one head of 16, on 16 ranks, each seeing two on either side: a block of keys or values is 16 x 16 x 4 = 1024 bytes, 1024 ns over
// the link; a rank attends to all in 2 x 16 x 256 x 32 = 262144 ns, to a block in a 16th of that. Of the 16 blocks it sees its own and those
// of both neighbors, so that 2 x 2 blocks are sent, at the same time as it attends to others.
//   gathered  2 x 15 x 1024 + 262144 + a launch              with launches of 1 us 293864 ns, of 200 us 492864
//   ring      3 x (16384 + a launch) + combining                            ~ 52000              > 649000
//
// RUN: echo "{device: {flops: {f32: 1G}, bandwidth: 1000GB/s, launch: 1us}, links: {latency: 0ns, bandwidth: 1GB/s}}" > %t.fast.yaml
// RUN: sed "s/1us/200us/" %t.fast.yaml > %t.slow.yaml
// RUN: cleave run %s --cluster %t.fast.yaml --optimize=time --check | FileCheck %s --check-prefix=RING
// RUN: cleave run %s --cluster %t.slow.yaml --optimize=time --check | FileCheck %s --check-prefix=GATHER
// A block takes 100 us over a slower link, which two passes of keys and values show, and 15 would not be worth: 2 x 204800 ns against 30 x 102400.
// RUN: sed "s/1GB/10MB/" %t.fast.yaml > %t.link.yaml
// RUN: cleave run %s --cluster %t.link.yaml --optimize=time --check | FileCheck %s --check-prefixes=RING,LINK

// RING: 4 x window {{.*}} 4.10 kB
// LINK: time of a rank: {{.*}} 409.60 us
// RING: check result0: ok
// GATHER: 2 x all_gather {{.*}} 30.72 kB
// GATHER: check result0: ok

#mesh = #spmd.mesh<["x"=16]>
#s = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}]>
#w = #spmd.sharding<#mesh, [{}, {}, {}, {}]>

module attributes {spmd.mesh = #mesh} {
  func.func @main(%q: tensor<1x1x256x16xf32, #s>, %k: tensor<1x1x256x16xf32, #s>, %v: tensor<1x1x256x16xf32, #s>) -> tensor<1x1x256x16xf32, #s> {
    %gk = spmd.reshard %k : tensor<1x1x256x16xf32, #s> to tensor<1x1x256x16xf32, #w>
    %gv = spmd.reshard %v : tensor<1x1x256x16xf32, #s> to tensor<1x1x256x16xf32, #w>
    %0 = nn.attention %q, %gk, %gv scale 0.25 {left = 2 : i64, right = 2 : i64} : (tensor<1x1x256x16xf32, #s>, tensor<1x1x256x16xf32, #w>, tensor<1x1x256x16xf32, #w>) -> tensor<1x1x256x16xf32, #s>
    return %0 : tensor<1x1x256x16xf32, #s>
  }
}
