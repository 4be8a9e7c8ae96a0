// What the gates of the lowering find, by number.
//
// RUN: split-file %s %t
// RUN: cleave-opt %t/clustered.mlir --split-input-file --exec-verify-form=form=clustered --verify-diagnostics
// RUN: cleave-opt %t/outlined.mlir --split-input-file --exec-verify-form=form=outlined --verify-diagnostics

//--- clustered.mlir
func.func @K1_every_op_has_a_place(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'nn.exp' op is left to no kernel and no command (K1)}}
  %0 = nn.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @K1_weights_are_packed(%x: tensor<8x8xf32>) -> tensor<1x8x8x1xf32> {
  // expected-error @below {{'exec.pack' op is left to no kernel and no command (K1)}}
  %0 = exec.pack %x order [0, 1] batch 0 width 8 interleave 1 : (tensor<8x8xf32>) -> tensor<1x8x8x1xf32>
  return %0 : tensor<1x8x8x1xf32>
}

// -----

func.func @K2_some_ops_stand_alone(%x: tensor<8x8xi32>) -> tensor<8x8xi32> {
  // expected-error @below {{'exec.fused' op holds an op that no kernel shares, and others (K2)}}
  %0 = exec.fused (%a = %x) : (tensor<8x8xi32>) -> tensor<8x8xi32> {
    // expected-note @below {{here is nn.einsum}}
    %p = nn.einsum %a, %a "ik,kj->ij" : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi32>
    %r = nn.add %p, %a : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi32>
    exec.yield %r : tensor<8x8xi32>
  }
  return %0 : tensor<8x8xi32>
}

// -----

func.func @K2_one_anchor_a_body(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @below {{'exec.fused' op holds two ops that are anchors or that no kernel shares (K2)}}
  %0 = exec.fused (%a = %x) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
    %p = nn.einsum %a, %a "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    // expected-note @below {{here is nn.einsum}}
    %r = nn.einsum %p, %a "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    exec.yield %r : tensor<8x8xf32>
  }
  return %0 : tensor<8x8xf32>
}

// -----

func.func @K2_anchors_read_what_is_stored(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @below {{'exec.fused' op computes what its anchor reads (K2)}}
  %0 = exec.fused (%a = %x) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
    // expected-note @below {{here is nn.exp}}
    %p = nn.exp %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %t = nn.transpose %p [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %r = nn.einsum %t, %a "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    exec.yield %r : tensor<8x8xf32>
  }
  return %0 : tensor<8x8xf32>
}

// -----

func.func @K2_an_epilogue_keeps_its_space(%x: tensor<8x8xf32>) -> tensor<8x2xf32> {
  // expected-error @below {{'exec.fused' op leaves the space of its anchor (K2)}}
  %0 = exec.fused (%a = %x) : (tensor<8x8xf32>) -> tensor<8x2xf32> {
    %p = nn.einsum %a, %a "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %e = nn.exp %p : (tensor<8x8xf32>) -> tensor<8x8xf32>
    // expected-note @below {{here is nn.slice}}
    %r = nn.slice %e starts [0, 0] sizes [8, 2] steps [1, 1] : (tensor<8x8xf32>) -> tensor<8x2xf32>
    exec.yield %r : tensor<8x2xf32>
  }
  return %0 : tensor<8x2xf32>
}

// -----

func.func @K3_no_rows_beside_an_anchor(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  // expected-error @below {{'exec.fused' op walks rows next to an anchor (K3)}}
  %0:2 = exec.fused (%a = %x) : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %p = nn.einsum %a, %a "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    // expected-note @below {{here is nn.softmax}}
    %r = nn.softmax %a dim 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    exec.yield %p, %r : tensor<8x8xf32>, tensor<8x8xf32>
  }
  return %0#0, %0#1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

func.func @K3_rows_are_of_one_kind(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @below {{'exec.fused' op walks two kinds of rows (K3)}}
  %0 = exec.fused (%a = %x) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
    %p = nn.softmax %a dim 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    // expected-note @below {{here is nn.softmax}}
    %r = nn.softmax %p dim 0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    exec.yield %r : tensor<8x8xf32>
  }
  return %0 : tensor<8x8xf32>
}

// -----

func.func @K3_a_scan_is_alone_with_its_rows(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @below {{'exec.fused' op holds a scan, and other ops that walk rows (K3)}}
  %0 = exec.fused (%a = %x) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
    %p = nn.softmax %a dim 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    // expected-note @below {{here is nn.cumsum}}
    %r = nn.cumsum %p dim 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    exec.yield %r : tensor<8x8xf32>
  }
  return %0 : tensor<8x8xf32>
}

// -----

func.func @K4_results_have_one_space(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x2xf32>) {
  // expected-error @below {{'exec.fused' op has results of two iteration spaces: result 1 is 'tensor<8x2xf32>' (K4)}}
  %0:2 = exec.fused (%a = %x) : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x2xf32>) {
    %p = nn.exp %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %r = nn.slice %p starts [0, 0] sizes [8, 2] steps [1, 1] : (tensor<8x8xf32>) -> tensor<8x2xf32>
    exec.yield %p, %r : tensor<8x8xf32>, tensor<8x2xf32>
  }
  return %0#0, %0#1 : tensor<8x8xf32>, tensor<8x2xf32>
}

//--- outlined.mlir
func.func @O1_kernels_have_names(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'exec.fused' op is left to no kernel and no command (O1)}}
  %0 = exec.fused (%a = %x) : (tensor<8xf32>) -> tensor<8xf32> {
    %r = nn.relu %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %r : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

func.func @O2_each_kernel_is_there_once(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = exec.launch @relu_0(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = exec.launch @relu_1(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
exec.kernel @relu_0(%a: tensor<8xf32>) {
  %r = nn.relu %a : (tensor<8xf32>) -> tensor<8xf32>
  exec.yield %r : tensor<8xf32>
}
// expected-error @below {{'exec.kernel' op computes what @relu_0 computes (O2)}}
exec.kernel @relu_1(%a: tensor<8xf32>) {
  %r = nn.relu %a : (tensor<8xf32>) -> tensor<8xf32>
  exec.yield %r : tensor<8xf32>
}

// -----

// O3
// expected-error @below {{'exec.kernel' op is not launched (O3)}}
exec.kernel @relu_0(%a: tensor<8xf32>) {
  %r = nn.relu %a : (tensor<8xf32>) -> tensor<8xf32>
  exec.yield %r : tensor<8xf32>
}

// -----

// Kernels are held to the same as what stands in place.
func.func @K4_of_kernels(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x2xf32>) {
  %0:2 = exec.launch @exp_0(%x) : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x2xf32>)
  return %0#0, %0#1 : tensor<8x8xf32>, tensor<8x2xf32>
}
// expected-error @below {{'exec.kernel' op has results of two iteration spaces: result 1 is 'tensor<8x2xf32>' (K4)}}
exec.kernel @exp_0(%a: tensor<8x8xf32>) {
  %p = nn.exp %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = nn.slice %p starts [0, 0] sizes [8, 2] steps [1, 1] : (tensor<8x8xf32>) -> tensor<8x2xf32>
  exec.yield %p, %r : tensor<8x8xf32>, tensor<8x2xf32>
}

// -----

// T1
func.func @what_is_in_the_hosts_memory(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'exec.offload' op is read by more than exec.fetch (T1)}}
  %0 = exec.offload %x : tensor<8xf32>
  %1 = exec.launch @relu_0(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
exec.kernel @relu_0(%a: tensor<8xf32>) {
  %r = nn.relu %a : (tensor<8xf32>) -> tensor<8xf32>
  exec.yield %r : tensor<8xf32>
}
