// In a step keys and values go round a second time, with their gradients, which then come home.
//
// RUN: cleave-opt %s --exec-form-rings=attention=ring --split-input-file --verify-diagnostics | FileCheck %s

module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  // CHECK-LABEL: @both_ways
  // CHECK-SAME: (%[[Q:.*]]: tensor<1x2x4x8xf32>, %[[K:.*]]: tensor<1x2x4x8xf32>, %[[V:.*]]: tensor<1x2x4x8xf32>, %[[DY:.*]]: tensor<1x2x4x8xf32>)
  // CHECK-NOT: all_gather
  // CHECK: %[[S:.*]], %[[L:.*]] = exec.partial_attention
  // CHECK: %[[S1:.*]], %[[L1:.*]] = exec.partial_attention
  // The logarithms of both blocks, and the sums of gradient times result.
  // CHECK: %[[LOGS:.*]] = nn.reshape %{{.*}} -> tensor<1x2x4xf32>
  // CHECK: %[[MEANS:.*]] = nn.reduce sum %{{.*}} dims [3] : {{.*}} -> tensor<1x2x4xf32>
  // Read again, so that blocks of the forward need not be kept.
  // CHECK: %[[KA:.*]] = exec.again %[[K]]
  // CHECK: %[[VA:.*]] = exec.again %[[V]]
  // CHECK: %[[K1:.*]] = spmd.window %[[KA]]
  // CHECK: %[[V1:.*]] = spmd.window %[[VA]]
  // CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = exec.attention_grad %[[Q]], %[[KA]], %[[VA]] of %[[DY]] logs %[[LOGS]] means %[[MEANS]] scale 5.000000e-01
  // CHECK: %[[DKS:.*]] = spmd.window %[[DK]] {{.*}} wraps : {{.*}} cause "gradients of keys of nn.attention go round, a block at a time"
  // CHECK: %[[DVS:.*]] = spmd.window %[[DV]]
  // CHECK: %[[DQ1:.*]], %[[DK1:.*]], %[[DV1:.*]] = exec.attention_grad %[[Q]], %[[K1]], %[[V1]] of %[[DY]]
  // CHECK-DAG: nn.add %[[DQ]], %[[DQ1]]
  // CHECK-DAG: %[[AK:.*]] = nn.add %[[DKS]], %[[DK1]]
  // CHECK-DAG: %[[AV:.*]] = nn.add %[[DVS]], %[[DV1]]
  // CHECK-DAG: spmd.window %[[AK]]
  // CHECK-DAG: spmd.window %[[AV]]
  // CHECK-NOT: nn.softmax
  // CHECK-NOT: reduce_scatter
  // CHECK-NOT: nn.gradient_of
  // CHECK: return
  func.func @both_ways(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>, %dy: tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) {
    %scale = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %y = nn.attention %q, %gk, %gv scale 0.5 {nn.band = {axes = [#spmd.axis<"x">]}, nn.gradient_of = 0 : i64} : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %s = nn.einsum %q, %gk "bhsd,bhtd->bhst" : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %m = nn.mul %s, %scale : (tensor<1x2x4x8xf32>, tensor<f32>) -> tensor<1x2x4x8xf32>
    %p = nn.softmax %m dim 3 {nn.gradient_of = 0 : i64} : (tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    %dp = nn.einsum %dy, %gv "bhsv,bhtv->bhst" : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %pp = nn.mul %dp, %p : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    %d = nn.reduce sum %pp dims [3] keep_dims : (tensor<1x2x4x8xf32>) -> tensor<1x2x4x1xf32>
    %c = nn.sub %dp, %d : (tensor<1x2x4x8xf32>, tensor<1x2x4x1xf32>) -> tensor<1x2x4x8xf32>
    %ds = nn.mul %p, %c : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    %di = nn.mul %ds, %scale : (tensor<1x2x4x8xf32>, tensor<f32>) -> tensor<1x2x4x8xf32>
    %dq = nn.einsum %di, %gk "bhst,bhtd->bhsd" : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %ak = nn.einsum %di, %q "bhst,bhsd->bhtd" : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %av = nn.einsum %p, %dy "bhst,bhsv->bhtv" : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %dk = spmd.reduce_scatter sum %ak dims [{}, {}, {"x"}, {}] : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %dv = spmd.reduce_scatter sum %av dims [{}, {}, {"x"}, {}] : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    return %y, %dq, %dk, %dv : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>
  }
}

// -----

// Somebody else reads the weights: then they are made, of gathered keys.
// expected-remark@+1 {{nothing goes round, though rings are asked for}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  // CHECK-LABEL: @weights_are_read
  // CHECK-NOT: spmd.window
  // CHECK: return
  func.func @weights_are_read(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>, %dy: tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) {
    %scale = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    // expected-remark@+1 {{in a ring: its gradients read them otherwise}}
    %y = nn.attention %q, %gk, %gv scale 0.5 {nn.band = {axes = [#spmd.axis<"x">]}, nn.gradient_of = 0 : i64} : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %s = nn.einsum %q, %gk "bhsd,bhtd->bhst" : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %m = nn.mul %s, %scale : (tensor<1x2x4x8xf32>, tensor<f32>) -> tensor<1x2x4x8xf32>
    %p = nn.softmax %m dim 3 {nn.gradient_of = 0 : i64} : (tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    %dp = nn.einsum %dy, %gv "bhsv,bhtv->bhst" : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %pp = nn.mul %dp, %p : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    %d = nn.reduce sum %pp dims [3] keep_dims : (tensor<1x2x4x8xf32>) -> tensor<1x2x4x1xf32>
    %c = nn.sub %dp, %d : (tensor<1x2x4x8xf32>, tensor<1x2x4x1xf32>) -> tensor<1x2x4x8xf32>
    %ds = nn.mul %p, %c : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    %di = nn.mul %ds, %scale : (tensor<1x2x4x8xf32>, tensor<f32>) -> tensor<1x2x4x8xf32>
    %dq = nn.einsum %di, %gk "bhst,bhtd->bhsd" : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %ak = nn.einsum %di, %q "bhst,bhsd->bhtd" : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %av = nn.einsum %p, %dy "bhst,bhsv->bhtv" : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %dk = spmd.reduce_scatter sum %ak dims [{}, {}, {"x"}, {}] : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %dv = spmd.reduce_scatter sum %av dims [{}, {}, {"x"}, {}] : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    return %y, %dq, %dk, %dv, %p : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>
  }
}

// -----

// Somebody else reads what is gathered.
// expected-remark@+1 {{nothing goes round, though rings are asked for}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  // CHECK-LABEL: @keys_are_read
  // CHECK-NOT: spmd.window
  // CHECK: return
  func.func @keys_are_read(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>, %dy: tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) {
    %scale = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    // expected-remark@+1 {{others read what is gathered too}}
    %y = nn.attention %q, %gk, %gv scale 0.5 {nn.band = {axes = [#spmd.axis<"x">]}, nn.gradient_of = 0 : i64} : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %s = nn.einsum %q, %gk "bhsd,bhtd->bhst" : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %m = nn.mul %s, %scale : (tensor<1x2x4x8xf32>, tensor<f32>) -> tensor<1x2x4x8xf32>
    %p = nn.softmax %m dim 3 {nn.gradient_of = 0 : i64} : (tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    %dp = nn.einsum %dy, %gv "bhsv,bhtv->bhst" : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %pp = nn.mul %dp, %p : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    %d = nn.reduce sum %pp dims [3] keep_dims : (tensor<1x2x4x8xf32>) -> tensor<1x2x4x1xf32>
    %c = nn.sub %dp, %d : (tensor<1x2x4x8xf32>, tensor<1x2x4x1xf32>) -> tensor<1x2x4x8xf32>
    %ds = nn.mul %p, %c : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    %di = nn.mul %ds, %scale : (tensor<1x2x4x8xf32>, tensor<f32>) -> tensor<1x2x4x8xf32>
    %dq = nn.einsum %di, %gk "bhst,bhtd->bhsd" : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %ak = nn.einsum %di, %q "bhst,bhsd->bhtd" : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %av = nn.einsum %p, %dy "bhst,bhsv->bhtv" : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %dk = spmd.reduce_scatter sum %ak dims [{}, {}, {"x"}, {}] : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %dv = spmd.reduce_scatter sum %av dims [{}, {}, {"x"}, {}] : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    return %y, %dq, %dk, %dv, %gk : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>
  }
}

// -----

// The products are another attention's gradients, as far as anybody knows: it may hide other keys.
// expected-remark@+1 {{nothing goes round, though rings are asked for}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  // CHECK-LABEL: @of_another
  // CHECK-NOT: spmd.window
  // CHECK: return
  func.func @of_another(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>, %dy: tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) {
    %scale = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    // expected-remark@+1 {{others read what is gathered too}}
    %y = nn.attention %q, %gk, %gv scale 0.5 {nn.band = {axes = [#spmd.axis<"x">]}, nn.gradient_of = 0 : i64} : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %s = nn.einsum %q, %gk "bhsd,bhtd->bhst" : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %m = nn.mul %s, %scale : (tensor<1x2x4x8xf32>, tensor<f32>) -> tensor<1x2x4x8xf32>
    %p = nn.softmax %m dim 3 {nn.gradient_of = 1 : i64} : (tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    %dp = nn.einsum %dy, %gv "bhsv,bhtv->bhst" : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %pp = nn.mul %dp, %p : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    %d = nn.reduce sum %pp dims [3] keep_dims : (tensor<1x2x4x8xf32>) -> tensor<1x2x4x1xf32>
    %c = nn.sub %dp, %d : (tensor<1x2x4x8xf32>, tensor<1x2x4x1xf32>) -> tensor<1x2x4x8xf32>
    %ds = nn.mul %p, %c : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    %di = nn.mul %ds, %scale : (tensor<1x2x4x8xf32>, tensor<f32>) -> tensor<1x2x4x8xf32>
    %dq = nn.einsum %di, %gk "bhst,bhtd->bhsd" : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %ak = nn.einsum %di, %q "bhst,bhsd->bhtd" : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %av = nn.einsum %p, %dy "bhst,bhsv->bhtv" : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %dk = spmd.reduce_scatter sum %ak dims [{}, {}, {"x"}, {}] : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %dv = spmd.reduce_scatter sum %av dims [{}, {}, {"x"}, {}] : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    return %y, %dq, %dk, %dv : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>
  }
}

// -----

// Gradients of all values stay with the rank: they do not go where these are.
// expected-remark@+1 {{nothing goes round, though rings are asked for}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  // CHECK-LABEL: @not_scattered
  // CHECK-NOT: spmd.window
  // CHECK: return
  func.func @not_scattered(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>, %dy: tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) {
    %scale = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    // expected-remark@+1 {{gradients of keys and values do not go where these are}}
    %y = nn.attention %q, %gk, %gv scale 0.5 {nn.band = {axes = [#spmd.axis<"x">]}, nn.gradient_of = 0 : i64} : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %s = nn.einsum %q, %gk "bhsd,bhtd->bhst" : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %m = nn.mul %s, %scale : (tensor<1x2x4x8xf32>, tensor<f32>) -> tensor<1x2x4x8xf32>
    %p = nn.softmax %m dim 3 {nn.gradient_of = 0 : i64} : (tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    %dp = nn.einsum %dy, %gv "bhsv,bhtv->bhst" : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %pp = nn.mul %dp, %p : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    %d = nn.reduce sum %pp dims [3] keep_dims : (tensor<1x2x4x8xf32>) -> tensor<1x2x4x1xf32>
    %c = nn.sub %dp, %d : (tensor<1x2x4x8xf32>, tensor<1x2x4x1xf32>) -> tensor<1x2x4x8xf32>
    %ds = nn.mul %p, %c : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    %di = nn.mul %ds, %scale : (tensor<1x2x4x8xf32>, tensor<f32>) -> tensor<1x2x4x8xf32>
    %dq = nn.einsum %di, %gk "bhst,bhtd->bhsd" : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %ak = nn.einsum %di, %q "bhst,bhsd->bhtd" : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %av = nn.einsum %p, %dy "bhst,bhsv->bhtv" : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %dk = spmd.reduce_scatter sum %ak dims [{}, {}, {"x"}, {}] : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    %dv = spmd.reduce_scatter sum %av dims [{}, {}, {"x"}, {}] : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    return %y, %dq, %dk, %dv, %av : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>
  }
}
