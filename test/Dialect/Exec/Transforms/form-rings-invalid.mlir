// Where a ring is asked for and keys and values cannot go round, a remark says why, and one more where nothing does; the program stays as it is.
//
// RUN: cleave-opt %s --exec-form-rings=attention=ring --split-input-file -verify-diagnostics

// expected-remark @below {{nothing goes round, though rings are asked for}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func @read_by_others(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) {
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    // expected-remark @below {{takes its keys and values gathered, not in a ring: others read what is gathered too}}
    %0 = nn.attention %q, %gk, %gv scale 0.5 : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    return %0, %gk : tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>
  }
}

// -----

// expected-remark @below {{nothing goes round, though rings are asked for}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=2]>} {
  func.func @heads_too(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>) -> tensor<1x2x4x8xf32> {
    %gk = spmd.all_gather %k dims [{}, {"y"}, {"x"}, {}] : (tensor<1x1x4x8xf32>) -> tensor<1x2x8x8xf32>
    %gv = spmd.all_gather %v dims [{}, {"y"}, {"x"}, {}] : (tensor<1x1x4x8xf32>) -> tensor<1x2x8x8xf32>
    // expected-remark @below {{other dims are gathered with the sequence}}
    %0 = nn.attention %q, %gk, %gv scale 0.5 : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    return %0 : tensor<1x2x4x8xf32>
  }
}

// -----

// expected-remark @below {{nothing goes round, though rings are asked for}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=2]>} {
  func.func @over_other_axes(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"y"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    // expected-remark @below {{keys and values are gathered over other axes}}
    %0 = nn.attention %q, %gk, %gv scale 0.5 : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    return %0 : tensor<1x2x4x8xf32>
  }
}

// -----

// What is gathered once is key, value and query.
// expected-remark @below {{nothing goes round, though rings are asked for}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func @read_as_queries(%x: tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32> {
    %g = spmd.all_gather %x dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    // expected-remark @below {{others read what is gathered too}}
    %0 = nn.attention %g, %g, %g scale 0.5 : (tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
    return %0 : tensor<1x2x8x8xf32>
  }
}

// -----

// expected-remark @below {{nothing goes round, though rings are asked for}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func @read_as_mask(%q: tensor<1x1x8x8xf32>, %x: tensor<1x1x4x8xf32>) -> tensor<1x1x8x8xf32> {
    %g = spmd.all_gather %x dims [{}, {}, {"x"}, {}] : (tensor<1x1x4x8xf32>) -> tensor<1x1x8x8xf32>
    // expected-remark @below {{others read what is gathered too}}
    %0 = nn.attention %q, %g, %g mask %g scale 0.5 : (tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32>
    return %0 : tensor<1x1x8x8xf32>
  }
}

// -----

// Six keys in shards of four, and values in shards of three.
// expected-remark @below {{nothing goes round, though rings are asked for}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func @in_other_shards(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32> {
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %ck = nn.slice %gk starts [0, 0, 0, 0] sizes [1, 2, 6, 8] steps [1, 1, 1, 1] : (tensor<1x2x8x8xf32>) -> tensor<1x2x6x8xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x2x3x8xf32>) -> tensor<1x2x6x8xf32>
    // expected-remark @below {{not in a ring: a rank has 4 keys and 3 values}}
    %0 = nn.attention %q, %ck, %gv scale 0.5 : (tensor<1x2x3x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> tensor<1x2x3x8xf32>
    return %0 : tensor<1x2x3x8xf32>
  }
}

// -----

// Each rank would put the same results together in another order, and have copies of them that differ.
// expected-remark @below {{nothing goes round, though rings are asked for}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func @the_same_queries(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
    %gk = spmd.all_gather %k dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    %gv = spmd.all_gather %v dims [{}, {}, {"x"}, {}] : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
    // expected-remark @below {{takes its keys and values gathered, not in a ring: the ranks have the same queries}}
    %0 = nn.attention %q, %gk, %gv scale 0.5 : (tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
    return %0 : tensor<1x2x4x8xf32>
  }
}

// -----

// expected-error @below {{attribute 'spmd.attention' is 'rings', expected auto, gather or ring}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>, spmd.attention = "rings"} {
}

// -----

// expected-remark @below {{no nn.attention takes keys and values gathered along their sequence: nothing goes round, though rings are asked for}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func @nothing_is_gathered(%q: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
    %0 = nn.attention %q, %q, %q scale 0.5 : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
    return %0 : tensor<1x2x4x8xf32>
  }
}

// -----

// expected-error @below {{'spmd.cluster' has an entry 'name' that is missing, unknown, of the wrong type, or out of range}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>, spmd.cluster = {}} {
}

// -----

// expected-error @below {{the mesh has 2 ranks and the cluster 1 devices}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>, spmd.cluster = {
    name = "one", begin_ns = 0.0, launch_ns = 1000.0, memory_bytes = 0 : i64, memory_bytes_per_ns = 1000.0, flops_per_ns = {f32 = 1.0},
    levels = [{name = "link", devices = 1 : i64, link = array<f64: 0.0, 1.0>}], axes = {}}} {
}
