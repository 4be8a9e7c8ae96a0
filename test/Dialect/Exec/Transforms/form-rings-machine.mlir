// By time, rings are formed on the machine that the module names, whatever program asks: a stored file is enough.
//
// RUN: cleave-opt %s --exec-form-rings=by-time --split-input-file | FileCheck %s
// RUN: cleave-opt %s --exec-form-rings --split-input-file | FileCheck %s --check-prefix=MEMORY

// A block of keys or values is 64 x 16 x 4 = 4096 bytes, 4096 ns over the link; attention to all takes 1 ms, to a block a fourth of that. Launches
// of 1 us are less than what the transfer takes.
// CHECK-LABEL: @launches_of_a_microsecond
// CHECK: exec.partial_attention
// CHECK: return
// MEMORY-LABEL: @launches_of_a_microsecond
// MEMORY-NOT: exec.partial_attention
// MEMORY: return
module attributes {spmd.mesh = #spmd.mesh<["x"=4]>, spmd.cluster = {
    name = "fast", begin_ns = 0.0, launch_ns = 1000.0, memory_bytes = 0 : i64, memory_bytes_per_ns = 1000.0, flops_per_ns = {f32 = 1.0},
    levels = [{name = "link", devices = 0 : i64, link = array<f64: 0.0, 1.0>}], axes = {}}} {
  func.func @launches_of_a_microsecond(%q: tensor<1x1x64x16xf32>, %k: tensor<1x1x64x16xf32>, %v: tensor<1x1x64x16xf32>) -> tensor<1x1x64x16xf32> {
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x1x64x16xf32>) -> tensor<1x1x256x16xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x1x64x16xf32>) -> tensor<1x1x256x16xf32>
    %0 = nn.attention %q, %gk, %gv scale 0.5 {nn.band = {axes = [#spmd.axis<"x">]}} : (tensor<1x1x64x16xf32>, tensor<1x1x256x16xf32>, tensor<1x1x256x16xf32>) -> tensor<1x1x64x16xf32>
    return %0 : tensor<1x1x64x16xf32>
  }
}

// -----

// Launches of 10 us are more; but 40,000 bytes of memory do not hold what is gathered.
// CHECK-LABEL: @launches_of_ten
// CHECK: exec.partial_attention
// MEMORY-LABEL: @launches_of_ten
// MEMORY: exec.partial_attention
module attributes {spmd.mesh = #spmd.mesh<["x"=4]>, spmd.cluster = {
    name = "small", begin_ns = 0.0, launch_ns = 10000.0, memory_bytes = 40000 : i64, memory_bytes_per_ns = 1000.0, flops_per_ns = {f32 = 1.0},
    levels = [{name = "link", devices = 0 : i64, link = array<f64: 0.0, 1.0>}], axes = {}}} {
  func.func @launches_of_ten(%q: tensor<1x1x64x16xf32>, %k: tensor<1x1x64x16xf32>, %v: tensor<1x1x64x16xf32>) -> tensor<1x1x64x16xf32> {
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x1x64x16xf32>) -> tensor<1x1x256x16xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x1x64x16xf32>) -> tensor<1x1x256x16xf32>
    %0 = nn.attention %q, %gk, %gv scale 0.5 {nn.band = {axes = [#spmd.axis<"x">]}} : (tensor<1x1x64x16xf32>, tensor<1x1x256x16xf32>, tensor<1x1x256x16xf32>) -> tensor<1x1x64x16xf32>
    return %0 : tensor<1x1x64x16xf32>
  }
}

// -----

// The same launches and memory enough: gathered.
// CHECK-LABEL: @enough
// CHECK-NOT: exec.partial_attention
// CHECK: return
module attributes {spmd.mesh = #spmd.mesh<["x"=4]>, spmd.cluster = {
    name = "slow", begin_ns = 0.0, launch_ns = 10000.0, memory_bytes = 0 : i64, memory_bytes_per_ns = 1000.0, flops_per_ns = {f32 = 1.0},
    levels = [{name = "link", devices = 0 : i64, link = array<f64: 0.0, 1.0>}], axes = {}}} {
  func.func @enough(%q: tensor<1x1x64x16xf32>, %k: tensor<1x1x64x16xf32>, %v: tensor<1x1x64x16xf32>) -> tensor<1x1x64x16xf32> {
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x1x64x16xf32>) -> tensor<1x1x256x16xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x1x64x16xf32>) -> tensor<1x1x256x16xf32>
    %0 = nn.attention %q, %gk, %gv scale 0.5 {nn.band = {axes = [#spmd.axis<"x">]}} : (tensor<1x1x64x16xf32>, tensor<1x1x256x16xf32>, tensor<1x1x256x16xf32>) -> tensor<1x1x64x16xf32>
    return %0 : tensor<1x1x64x16xf32>
  }
}
