// When keys and values go round: by time, and where memory asks for it.
//
// 256 tokens of one head of 16, on four ranks: a block of keys or values is 64 x 16 x 4 = 4096 bytes, 4096 ns over the link; a rank attends to all
// in 2 x 64 x 256 x 32 = 1048576 ns, to a block in a fourth of that. Combining takes 3 x 3 x 4096 / 1000 = 37 ns, in 4 kernels.
//   gathered  2 x 3 x 4096 + 1048576 + a launch                         with launches of 1 us 1074152 ns, of 10 us 1083152
//   ring      4 x (262144 + 2 launches) + 3 x 37, all blocks meanwhile                       1056687              1128687
//
// RUN: echo "{device: {flops: {f32: 1G}, bandwidth: 1000GB/s, launch: 1us, memory: 1GB}, links: {latency: 0ns, bandwidth: 1GB/s}}" > %t.fast.yaml
// RUN: sed "s/1us/10us/" %t.fast.yaml > %t.slow.yaml
// RUN: sed "s/1us/10us/; s/memory: 1GB/memory: 40kB/" %t.fast.yaml > %t.small.yaml
// RUN: cleave run %s --cluster %t.fast.yaml --optimize=time --check | FileCheck %s --check-prefix=RING
// RUN: cleave run %s --cluster %t.slow.yaml --optimize=time --check | FileCheck %s --check-prefix=GATHER
// By any other objective it is memory alone that asks: gathered, keys and values are 32768 bytes, which with a shard of each and
// the queries is 40960.
// RUN: cleave run %s --cluster %t.slow.yaml --check | FileCheck %s --check-prefix=GATHER
// RUN: cleave run %s --cluster %t.small.yaml --remarks --check 2>&1 | FileCheck %s --check-prefixes=RING,FIT
// RUN: cleave run %s --cluster %t.small.yaml --attention=gather --check 2>&1 | FileCheck %s --check-prefixes=GATHER,FULL
// What does not fit at all stays an error, and what fits so is none.
// RUN: cleave shard %s --cluster %t.small.yaml --must-fit --remarks -o %t.out 2>&1 | FileCheck %s --check-prefix=FIT
// RUN: not cleave shard %s --cluster %t.small.yaml --must-fit --attention=gather -o %t.out 2>&1 | FileCheck %s --check-prefix=FULL

// FIT: remark: keys and values of 1 nn.attention use ring attention: gathered, a rank has a peak of 40960 bytes, and a device of {{.*}} has 40000; with it {{[0-9]+}}, and 45535 ns more
// RING: 6 x window {{.*}} 24.58 kB
// RING: time of a rank: {{.*}}, 24.58 us of it at the same time
// RING: check result0: ok
// FULL: a rank takes {{.*}} at its peak
// GATHER: 2 x all_gather {{.*}} 24.58 kB
// GATHER-NOT: at the same time
// GATHER: check result0: ok

#mesh = #spmd.mesh<["x"=4]>
#s = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}]>
#w = #spmd.sharding<#mesh, [{}, {}, {}, {}]>

module attributes {spmd.mesh = #mesh} {
  func.func @main(%q: tensor<1x1x256x16xf32, #s>, %k: tensor<1x1x256x16xf32, #s>, %v: tensor<1x1x256x16xf32, #s>) -> tensor<1x1x256x16xf32, #s> {
    %gk = spmd.reshard %k : tensor<1x1x256x16xf32, #s> to tensor<1x1x256x16xf32, #w>
    %gv = spmd.reshard %v : tensor<1x1x256x16xf32, #s> to tensor<1x1x256x16xf32, #w>
    %0 = nn.attention %q, %gk, %gv scale 0.25 : (tensor<1x1x256x16xf32, #s>, tensor<1x1x256x16xf32, #w>, tensor<1x1x256x16xf32, #w>) -> tensor<1x1x256x16xf32, #s>
    return %0 : tensor<1x1x256x16xf32, #s>
  }
}
