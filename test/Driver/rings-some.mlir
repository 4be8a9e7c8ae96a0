// Where memory asks for rings, attention that cannot be one is left as it is, without a word: nobody has asked for a ring by name.
//
// RUN: echo "{device: {flops: {f32: 1G}, bandwidth: 1000GB/s, launch: 10us, memory: 40kB}, links: {latency: 0ns, bandwidth: 1GB/s}}" > %t.yaml
// RUN: cleave run %s --cluster %t.yaml --remarks --check 2>&1 | FileCheck %s --check-prefixes=EITHER,FIT --implicit-check-not "not in a ring"
// RUN: cleave run %s --cluster %t.yaml --attention=ring --remarks --check 2>&1 | FileCheck %s --check-prefixes=EITHER,ASKED

// FIT: remark: keys and values of 1 nn.attention use ring attention
// ASKED: remark: 'nn.attention' op takes its keys and values gathered, not in a ring: others read what is gathered too
// EITHER: 6 x window
// EITHER: check result0: ok

#mesh = #spmd.mesh<["x"=4]>
#s = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}]>
#w = #spmd.sharding<#mesh, [{}, {}, {}, {}]>

module attributes {spmd.mesh = #mesh} {
  func.func @main(%q: tensor<1x1x256x16xf32, #s>, %k: tensor<1x1x256x16xf32, #s>, %v: tensor<1x1x256x16xf32, #s>, %x: tensor<1x1x8x4xf32, #s>) -> (tensor<1x1x256x16xf32, #s>, tensor<1x1x8x4xf32, #w>) {
    %gk = spmd.reshard %k : tensor<1x1x256x16xf32, #s> to tensor<1x1x256x16xf32, #w>
    %gv = spmd.reshard %v : tensor<1x1x256x16xf32, #s> to tensor<1x1x256x16xf32, #w>
    %0 = nn.attention %q, %gk, %gv scale 0.25 : (tensor<1x1x256x16xf32, #s>, tensor<1x1x256x16xf32, #w>, tensor<1x1x256x16xf32, #w>) -> tensor<1x1x256x16xf32, #s>
    %gx = spmd.reshard %x : tensor<1x1x8x4xf32, #s> to tensor<1x1x8x4xf32, #w>
    %1 = nn.attention %gx, %gx, %gx scale 0.5 : (tensor<1x1x8x4xf32, #w>, tensor<1x1x8x4xf32, #w>, tensor<1x1x8x4xf32, #w>) -> tensor<1x1x8x4xf32, #w>
    return %0, %1 : tensor<1x1x256x16xf32, #s>, tensor<1x1x8x4xf32, #w>
  }
}
