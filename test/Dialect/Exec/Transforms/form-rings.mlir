// Keys and values that attention alone reads go round in blocks: each step passes on what the next one needs, then attends.
//
// RUN: cleave-opt %s --exec-form-rings=attention=ring --split-input-file | FileCheck %s
// Without the annotation nothing changes but what partition left for the pass.
// RUN: cleave-opt %s --exec-form-rings --split-input-file | FileCheck %s --check-prefix=KEEPS

// KEEPS-NOT: exec.partial_attention
// KEEPS-NOT: nn.band

// Two ranks: one window of keys and one of values, in front of the own block. Nothing is hidden, so no step has a mask.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  // CHECK-LABEL: @two_ranks
  // CHECK-SAME: (%[[Q:.*]]: tensor<1x2x4x8xf32>, %[[K:.*]]: tensor<1x2x4x8xf32>, %[[V:.*]]: tensor<1x2x4x8xf32>)
  func.func @two_ranks(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
    // CHECK-NOT: all_gather
    // CHECK: %[[K1:.*]] = spmd.window %[[K]] dims [{}, {}, {"x"}, {}] steps [0, 0, 4, 0] lows [0, 0, -4, 0] highs [1, 2, 0, 8] wraps
    // CHECK: %[[V1:.*]] = spmd.window %[[V]] {{.*}} wraps
    // CHECK: %[[S:.*]], %[[L:.*]] = exec.partial_attention %[[Q]], %[[K]], %[[V]] part 4 scale 5.000000e-01
    // CHECK-SAME: -> (tensor<1x2x4x1x8xf32>, tensor<1x2x4x1xf32>)
    // CHECK-NOT: spmd.window
    // CHECK: %[[S1:.*]], %[[L1:.*]] = exec.partial_attention %[[Q]], %[[K1]], %[[V1]] part 4
    // CHECK: nn.max %[[L]], %[[L1]]
    // CHECK-NOT: nn.attention
    // CHECK: return
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %0 = nn.attention %q, %gk, %gv scale 0.5 {nn.band = {axes = [#spmd.axis<"x">]}} : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    return %0 : tensor<1x2x4x8xf32>
  }
}

// -----

// Causal: the own block has the band, all others are seen by the ranks that come after them; the others compute nothing.
module attributes {spmd.mesh = #spmd.mesh<["x"=4]>} {
  // CHECK-LABEL: @causal
  func.func @causal(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>, %mask: tensor<4x16xi1>) -> tensor<1x2x4x8xf32> {
    // CHECK-COUNT-2: spmd.window
    // CHECK: exec.partial_attention %{{[^m]*}} part 4 scale 5.000000e-01 causal
    // CHECK: %[[SEEN:.*]] = nn.ge %{{.*}} -> tensor<i1>
    // CHECK: exec.partial_attention %{{[^m]*}} seen %[[SEEN]] part 4 scale 5.000000e-01 :
    // CHECK: exec.partial_attention %{{[^m]*}} seen %{{[0-9]+}} part
    // CHECK-NOT: spmd.window
    // CHECK: exec.partial_attention %{{[^m]*}} seen %{{[0-9]+}} part
    // CHECK-NOT: nn.attention
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x16x8xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x16x8xf32>
    %0 = nn.attention %q, %gk, %gv mask %mask scale 0.5 {nn.band = {axes = [#spmd.axis<"x">], high = 0 : i64}} : (tensor<1x2x4x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<4x16xi1>) -> tensor<1x2x4x8xf32>
    return %0 : tensor<1x2x4x8xf32>
  }
}

// -----

// A window of four before: blocks that are further away are neither attended to nor passed on.
module attributes {spmd.mesh = #spmd.mesh<["x"=4]>} {
  // CHECK-LABEL: @only_one_neighbor
  func.func @only_one_neighbor(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>, %mask: tensor<4x16xi1>) -> tensor<1x2x4x8xf32> {
    // CHECK-COUNT-2: spmd.window
    // CHECK-NOT: spmd.window
    // CHECK: exec.partial_attention {{.*}} causal :
    // CHECK: exec.partial_attention {{.*}} seen {{.*}} {left = 0 : i64}
    // CHECK-NOT: exec.partial_attention
    // CHECK: return
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x16x8xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x16x8xf32>
    %0 = nn.attention %q, %gk, %gv mask %mask scale 0.5 {nn.band = {axes = [#spmd.axis<"x">], high = 0 : i64, low = -4 : i64}} : (tensor<1x2x4x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<4x16xi1>) -> tensor<1x2x4x8xf32>
    return %0 : tensor<1x2x4x8xf32>
  }
}

// -----

// Queries are split over two axes, keys over one of them: places are compared, and of a block that lies ahead of all queries of the
// rank nothing is computed. The last of its three queries is at 3 times its number and 2.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=2]>} {
  // CHECK-LABEL: @more_pieces_of_queries
  func.func @more_pieces_of_queries(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x6x8xf32>, %v: tensor<1x2x6x8xf32>, %mask: tensor<3x12xi1>) -> tensor<1x2x3x8xf32> {
    // CHECK: %[[BLOCK:.*]] = spmd.axis_index {"x"}
    // CHECK: %[[KEY:.*]] = nn.mul %[[BLOCK]], %{{.*}} : (tensor<i64>, tensor<i64>) -> tensor<i64>
    // CHECK: nn.le {{.*}} -> tensor<3x6xi1>
    // CHECK: spmd.axis_index {"x", "y"}
    // CHECK: %[[LAST:.*]] = nn.add %{{.*}}, %{{.*}} : (tensor<i64>, tensor<i64>) -> tensor<i64>
    // CHECK: %[[SEEN:.*]] = nn.le %[[KEY]], %[[LAST]] : {{.*}} -> tensor<i1>
    // CHECK: exec.partial_attention {{.*}} mask %{{[0-9]+}} seen %[[SEEN]] part 6
    // CHECK: exec.partial_attention {{.*}} mask %{{[0-9]+}} seen %{{[0-9]+}} part 6
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x6x8xf32>) -> tensor<1x2x12x8xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x2x6x8xf32>) -> tensor<1x2x12x8xf32>
    %0 = nn.attention %q, %gk, %gv mask %mask scale 0.5 {nn.band = {axes = [#spmd.axis<"x">, #spmd.axis<"y">], high = 0 : i64}} : (tensor<1x2x3x8xf32>, tensor<1x2x12x8xf32>, tensor<1x2x12x8xf32>, tensor<3x12xi1>) -> tensor<1x2x3x8xf32>
    return %0 : tensor<1x2x3x8xf32>
  }
}

// -----

// 7 tokens on 2 ranks: padding is hidden, and zero. What was moved behind the gather is moved block by block; the model's mask gives each step the columns of its block.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  // CHECK-LABEL: @uneven_moved_and_masked
  func.func @uneven_moved_and_masked(%q: tensor<1x2x4x8xf16>, %k: tensor<1x4x2x8xf16>, %v: tensor<1x2x4x8xf16>, %mask: tensor<4x7xf16>) -> tensor<1x2x4x8xf16> {
    // CHECK: nn.select {{.*}} -> tensor<1x4x2x8xf16>
    // CHECK: nn.select {{.*}} -> tensor<1x2x4x8xf16>
    // CHECK: spmd.window {{.*}} dims [{}, {"x"}, {}, {}] {{.*}} (tensor<1x4x2x8xf16>) -> tensor<1x4x2x8xf16>
    // CHECK: spmd.window
    // CHECK: nn.transpose {{.*}} -> tensor<1x2x4x8xf16>
    // CHECK: nn.pad constant {{.*}} high [0, 1]
    // CHECK: nn.gather {{.*}} (tensor<4x2x4xf16>, tensor<i64>) -> tensor<4x4xf16>
    // CHECK: exec.partial_attention {{.*}} -> (tensor<1x2x4x1x8xf32>, tensor<1x2x4x1xf32>)
    // CHECK: nn.cast {{.*}} -> tensor<1x2x4x8xf16>
    %gk = spmd.all_gather %k dims [{}, {"x"}, {}, {}] : (tensor<1x4x2x8xf16>) -> tensor<1x8x2x8xf16>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf16>) -> tensor<1x2x8x8xf16>
    %ck = nn.slice %gk starts [0, 0, 0, 0] sizes [1, 7, 2, 8] steps [1, 1, 1, 1] : (tensor<1x8x2x8xf16>) -> tensor<1x7x2x8xf16>
    %cv = nn.slice %gv starts [0, 0, 0, 0] sizes [1, 2, 7, 8] steps [1, 1, 1, 1] : (tensor<1x2x8x8xf16>) -> tensor<1x2x7x8xf16>
    %tk = nn.transpose %ck [0, 2, 1, 3] : (tensor<1x7x2x8xf16>) -> tensor<1x2x7x8xf16>
    %0 = nn.attention %q, %tk, %cv mask %mask scale 0.5 {nn.band = {axes = [#spmd.axis<"x">]}} : (tensor<1x2x4x8xf16>, tensor<1x2x7x8xf16>, tensor<1x2x7x8xf16>, tensor<4x7xf16>) -> tensor<1x2x4x8xf16>
    return %0 : tensor<1x2x4x8xf16>
  }
}

// -----

// The module's word, from a plan, is the annotation too.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>, spmd.attention = "ring"} {
  // CHECK-LABEL: @keys_that_are_the_values
  // KEEPS-LABEL: @keys_that_are_the_values
  func.func @keys_that_are_the_values(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
    // CHECK-COUNT-1: spmd.window
    // CHECK-NOT: spmd.window
    // KEEPS: exec.partial_attention
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %0 = nn.attention %q, %gk, %gk scale 0.5 {nn.band = {axes = [#spmd.axis<"x">]}} : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    return %0 : tensor<1x2x4x8xf32>
  }
}

// -----

// By time a gather may be made of messages to all, in one step: a permute to whole values.
#mesh = #spmd.mesh<["x"=2]>
#cut = #spmd.sharding<#mesh, [{}, {}, {"x"}, {}]>
#replicated = #spmd.sharding<#mesh, [{}, {}, {}, {}]>
module attributes {spmd.mesh = #mesh} {
  // CHECK-LABEL: @gathered_by_messages
  func.func @gathered_by_messages(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
    // CHECK-NOT: spmd.permute
    // CHECK-COUNT-2: spmd.window {{.*}} wraps
    // CHECK-COUNT-2: exec.partial_attention
    %gk = spmd.permute %k from #cut to #replicated of tensor<1x2x8x8xf32> : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %gv = spmd.permute %v from #cut to #replicated of tensor<1x2x8x8xf32> : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %0 = nn.attention %q, %gk, %gv scale 0.5 {nn.band = {axes = [#spmd.axis<"x">]}} : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    return %0 : tensor<1x2x4x8xf32>
  }
}

// -----

// A window of two on both sides of 16 blocks: its own, the one before and the one behind, which 14 ranks stand between: it comes at once.
module attributes {spmd.mesh = #spmd.mesh<["x"=16]>} {
  // CHECK-LABEL: @near_on_both_sides
  // CHECK-SAME: (%[[Q:.*]]: tensor<1x2x4x8xf32>, %[[K:.*]]: tensor<1x2x4x8xf32>, %[[V:.*]]: tensor<1x2x4x8xf32>, %
  func.func @near_on_both_sides(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>, %mask: tensor<4x64xi1>) -> tensor<1x2x4x8xf32> {
    // CHECK: %[[K1:.*]] = spmd.window %[[K]] {{.*}} lows [0, 0, -4, 0] highs [1, 2, 0, 8] wraps
    // CHECK: %[[V1:.*]] = spmd.window %[[V]] {{.*}} lows [0, 0, -4, 0] highs [1, 2, 0, 8] wraps
    // CHECK: exec.partial_attention %[[Q]], %[[K]], %[[V]] {{.*}}part 4
    // CHECK: %[[K2:.*]] = spmd.window %[[K1]] {{.*}} lows [0, 0, -56, 0] highs [1, 2, -52, 8] wraps
    // CHECK: %[[V2:.*]] = spmd.window %[[V1]] {{.*}} lows [0, 0, -56, 0] highs [1, 2, -52, 8] wraps
    // CHECK: exec.partial_attention %[[Q]], %[[K1]], %[[V1]] {{.*}}part 4
    // CHECK-NOT: spmd.window
    // CHECK: exec.partial_attention %[[Q]], %[[K2]], %[[V2]] {{.*}}part 4
    // CHECK-NOT: {{spmd.window|attention}}
    // CHECK: return
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x64x8xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x64x8xf32>
    %0 = nn.attention %q, %gk, %gv mask %mask scale 0.5 {nn.band = {axes = [#spmd.axis<"x">], high = 2 : i64, low = -2 : i64}} : (tensor<1x2x4x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<4x64xi1>) -> tensor<1x2x4x8xf32>
    return %0 : tensor<1x2x4x8xf32>
  }
}

// -----

// What is gathered in a loop goes round in each iteration.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  // CHECK-LABEL: @in_a_loop
  func.func @in_a_loop(%q: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
    // CHECK: nn.loop
    // CHECK-NOT: spmd.all_gather
    // CHECK: spmd.window
    // CHECK: exec.partial_attention
    // CHECK: exec.partial_attention
    // CHECK: nn.yield
    %y = nn.loop count 3 carries (%q) : (tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
    ^bb0(%a: tensor<1x2x4x8xf32>):
      %k = nn.exp %a : (tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
      %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
      %0 = nn.attention %a, %gk, %gk scale 0.5 {nn.band = {axes = [#spmd.axis<"x">]}} : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
      nn.yield next (%0) : (tensor<1x2x4x8xf32>) -> ()
    }
    return %y : tensor<1x2x4x8xf32>
  }
}
