// What kernels, layouts and states refuse.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// exec.fused C1
func.func @arguments_are_the_operands(%x: tensor<8xf32>) {
  // expected-error @below {{'exec.fused' op arguments of the body have other types than the operands (C1)}}
  %0 = "exec.fused"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    %r = nn.relu %a : (tensor<4xf32>) -> tensor<4xf32>
    exec.yield %r : tensor<4xf32>
  }) : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

// exec.fused C2: what a kernel reads are its arguments.
nn.param @w : tensor<8xf32> = dense<1.0> : tensor<8xf32>
func.func @parameters_are_loaded_outside() {
  // expected-error @below {{'exec.fused' op holds nn.load (C2)}}
  %0 = exec.fused () : () -> tensor<8xf32> {
    // expected-note @below {{here}}
    %w = nn.load @w : tensor<8xf32>
    exec.yield %w : tensor<8xf32>
  }
  return
}

// -----

// exec.fused C2
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
func.func @no_collective_is_in_a_kernel(%x: tensor<8xf32>) {
  // expected-error @below {{'exec.fused' op holds spmd.all_reduce (C2)}}
  %0 = exec.fused (%a = %x) : (tensor<8xf32>) -> tensor<8xf32> {
    // expected-note @below {{here}}
    %s = spmd.all_reduce sum %a over {"x"} : tensor<8xf32>
    exec.yield %s : tensor<8xf32>
  }
  return
}
}

// -----

// exec.fused C3
func.func @results_are_what_is_yielded(%x: tensor<8xf32>) {
  // expected-error @below {{'exec.fused' op yields other types than it has results (C3)}}
  %0 = exec.fused (%a = %x) : (tensor<8xf32>) -> tensor<4xf32> {
    %r = nn.relu %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %r : tensor<8xf32>
  }
  return
}

// -----

// exec.fused C4
func.func @an_argument_is_no_result(%x: tensor<8xf32>) {
  // expected-error @below {{'exec.fused' op yields an argument as result 0 (C4)}}
  %0 = exec.fused (%a = %x) : (tensor<8xf32>) -> tensor<8xf32> {
    exec.yield %a : tensor<8xf32>
  }
  return
}

// -----

// exec.fused C4
func.func @no_result_is_there_twice(%x: tensor<8xf32>) {
  // expected-error @below {{'exec.fused' op yields result 1 a second time (C4)}}
  %0:2 = exec.fused (%a = %x) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %r = nn.relu %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %r, %r : tensor<8xf32>, tensor<8xf32>
  }
  return
}

// -----

// exec.kernel C1: bodies are as those of exec.fused.
// expected-error @below {{'exec.kernel' op yields an argument as result 0 (C4)}}
exec.kernel @nothing(%a: tensor<8xf32>) {
  exec.yield %a : tensor<8xf32>
}

// -----

// exec.yield C1
func.func @a_yield_ends_a_kernel(%x: tensor<8xf32>) {
  // expected-error @below {{'exec.yield' op expects parent op to be one of 'exec.fused, exec.kernel'}}
  exec.yield %x : tensor<8xf32>
}

// -----

// exec.launch C1
func.func @only_kernels_are_launched(%x: tensor<8xf32>) {
  // expected-error @below {{'exec.launch' op launches @only_kernels_are_launched, which is not an exec.kernel (C1)}}
  %0 = exec.launch @only_kernels_are_launched(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

exec.kernel @relu_0(%a: tensor<8xf32>) {
  %r = nn.relu %a : (tensor<8xf32>) -> tensor<8xf32>
  exec.yield %r : tensor<8xf32>
}
// exec.launch C2
func.func @operands_are_the_arguments(%x: tensor<4xf32>) {
  // expected-error @below {{'exec.launch' op has operands of other types than the arguments of @relu_0 (C2)}}
  %0 = exec.launch @relu_0(%x) : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

exec.kernel @relu_0(%a: tensor<8xf32>) {
  %r = nn.relu %a : (tensor<8xf32>) -> tensor<8xf32>
  exec.yield %r : tensor<8xf32>
}
// exec.launch C3
func.func @results_are_what_the_kernel_yields(%x: tensor<8xf32>) {
  // expected-error @below {{'exec.launch' op has results of other types than @relu_0 yields (C3)}}
  %0 = exec.launch @relu_0(%x) : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

// exec.partial_attention C1: the op that it is a part of says what is wrong.
func.func @parts_are_of_attention(%q: tensor<1x3x1x8xf32>, %k: tensor<1x2x40x8xf32>) {
  // expected-error @below {{'nn.attention' op}}
  %0:2 = exec.partial_attention %q, %k, %k part 16 scale 0.5 : (tensor<1x3x1x8xf32>, tensor<1x2x40x8xf32>, tensor<1x2x40x8xf32>) -> (tensor<1x3x1x3x8xf32>, tensor<1x3x1x3xf32>)
  return
}

// -----

// exec.partial_attention C2
func.func @parts_have_keys(%q: tensor<1x4x1x8xf32>, %k: tensor<1x2x40x8xf32>) {
  // expected-error @below {{'exec.partial_attention' op divides 40 keys into parts of 0 (C2)}}
  %0:2 = exec.partial_attention %q, %k, %k part 0 scale 0.5 : (tensor<1x4x1x8xf32>, tensor<1x2x40x8xf32>, tensor<1x2x40x8xf32>) -> (tensor<1x4x1x3x8xf32>, tensor<1x4x1x3xf32>)
  return
}

// -----

// exec.partial_attention C3
func.func @each_part_has_a_result(%q: tensor<1x4x1x8xf32>, %k: tensor<1x2x40x8xf32>) {
  // expected-error @below {{'exec.partial_attention' op has results of other types than 'tensor<1x4x1x3x8xf32>' and 'tensor<1x4x1x3xf32>' (C3)}}
  %0:2 = exec.partial_attention %q, %k, %k part 16 scale 0.5 : (tensor<1x4x1x8xf32>, tensor<1x2x40x8xf32>, tensor<1x2x40x8xf32>) -> (tensor<1x4x1x2x8xf32>, tensor<1x4x1x2xf32>)
  return
}

// -----

// exec.partial_attention C4
func.func @keys_are_seen_or_not(%q: tensor<1x4x1x8xf32>, %k: tensor<1x2x40x8xf32>, %seen: tensor<2xi1>) {
  // expected-error @below {{'exec.partial_attention' op reads whether keys are seen from 'tensor<2xi1>', expected one element (C4)}}
  %0:2 = exec.partial_attention %q, %k, %k seen %seen part 16 scale 0.5 : (tensor<1x4x1x8xf32>, tensor<1x2x40x8xf32>, tensor<1x2x40x8xf32>, tensor<2xi1>) -> (tensor<1x4x1x3x8xf32>, tensor<1x4x1x3xf32>)
  return
}

// -----

// exec.attention_grad C1: the op that it is the gradient of says what is wrong.
func.func @gradients_are_of_attention(%q: tensor<1x3x4x8xf32>, %k: tensor<1x2x5x8xf32>) {
  // expected-error @below {{'nn.attention' op}}
  %0:3 = exec.attention_grad %q, %k, %k of %q scale 0.5 : (tensor<1x3x4x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x3x4x8xf32>) -> (tensor<1x3x4x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>)
  return
}

// -----

// exec.attention_grad C2
func.func @a_gradient_is_like_the_result(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x6xf32>) {
  // expected-error @below {{'exec.attention_grad' op has a gradient 'tensor<1x2x4x8xf32>' of a result 'tensor<1x2x4x6xf32>' (C2)}}
  %0:3 = exec.attention_grad %q, %k, %v of %q scale 0.5 : (tensor<1x2x4x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x6xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x6xf32>)
  return
}

// -----

// exec.attention_grad C3
func.func @scores_are_shown_one_by_one(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x5x8xf32>, %c: tensor<5x4xi1>) {
  // expected-error @below {{'exec.attention_grad' op reads which scores count from 'tensor<5x4xi1>', which does not broadcast to [1, 2, 4, 5] (C3)}}
  %0:3 = exec.attention_grad %q, %k, %k of %q shown %c scale 0.5 : (tensor<1x2x4x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x4x8xf32>, tensor<5x4xi1>) -> (tensor<1x2x4x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>)
  return
}

// -----

// exec.attention_grad C4
func.func @gradients_are_like_operands(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x5x8xf32>) {
  // expected-error @below {{'exec.attention_grad' op has results of other types than query, key and value (C4)}}
  %0:3 = exec.attention_grad %q, %k, %k of %q scale 0.5 : (tensor<1x2x4x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x5x8xf32>)
  return
}

// -----

// exec.append C1: the op that it stands for says what is wrong.
func.func @what_is_appended_is_as_wide(%past: tensor<2x3x4xf32>, %new: tensor<2x1x5xf32>) {
  // expected-error @below {{'nn.concat' op}}
  %0 = exec.append %past, %new dim 1 : (tensor<2x3x4xf32>, tensor<2x1x5xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

// exec.pack C1
func.func @an_order_has_every_dim(%w: tensor<64x40xf32>) {
  // expected-error @below {{'exec.pack' op order is not one of the 2 dims of 'tensor<64x40xf32>' (C1)}}
  %0 = exec.pack %w order [0, 0] batch 0 width 16 interleave 1 : (tensor<64x40xf32>) -> tensor<3x64x16x1xf32>
  return
}

// -----

// exec.pack C2
func.func @panels_have_a_k_and_an_n(%w: tensor<64x40xf32>) {
  // expected-error @below {{'exec.pack' op batch 1, width 16 and interleave 1 are not a layout of 'tensor<64x40xf32>' (C2)}}
  %0 = exec.pack %w order [0, 1] batch 1 width 16 interleave 1 : (tensor<64x40xf32>) -> tensor<64x3x16x1xf32>
  return
}

// -----

// exec.pack C2
func.func @pairs_are_of_panels(%w: tensor<64x40xf32>) {
  // expected-error @below {{'exec.pack' op batch 0, width 0 and interleave 2 are not a layout of 'tensor<64x40xf32>' (C2)}}
  %0 = exec.pack %w order [0, 1] batch 0 width 0 interleave 2 : (tensor<64x40xf32>) -> tensor<64x40xf32>
  return
}

// -----

// exec.pack C2
func.func @no_part_is_empty(%w: tensor<64x40xf32>) {
  // expected-error @below {{'exec.pack' op batch 0, width 16 and interleave 0 are not a layout of 'tensor<64x40xf32>' (C2)}}
  %0 = exec.pack %w order [0, 1] batch 0 width 16 interleave 0 : (tensor<64x40xf32>) -> tensor<3x64x16x0xf32>
  return
}

// -----

// exec.pack C3
func.func @a_last_panel_is_whole(%w: tensor<64x40xf32>) {
  // expected-error @below {{'exec.pack' op 'tensor<64x40xf32>' is packed as 'tensor<3x64x16x1xf32>', not as 'tensor<2x64x16x1xf32>' (C3)}}
  %0 = exec.pack %w order [0, 1] batch 0 width 16 interleave 1 : (tensor<64x40xf32>) -> tensor<2x64x16x1xf32>
  return
}

// -----

// exec.unpack C3: the plain one is the result.
func.func @what_is_unpacked_was_packed(%p: tensor<3x64x16x1xf32>) {
  // expected-error @below {{'exec.unpack' op 'tensor<64x50xf32>' is packed as 'tensor<4x64x16x1xf32>', not as 'tensor<3x64x16x1xf32>' (C3)}}
  %0 = exec.unpack %p order [0, 1] batch 0 width 16 interleave 1 : (tensor<3x64x16x1xf32>) -> tensor<64x50xf32>
  return
}

// -----

// exec.fused C2: what is packed comes from outside.
func.func @arguments_are_unpacked(%x: tensor<3x64x16x1xf32>) {
  // expected-error @below {{'exec.fused' op holds exec.unpack (C2)}}
  %0 = exec.fused (%a = %x) : (tensor<3x64x16x1xf32>) -> tensor<64x40xf32> {
    %r = nn.relu %a : (tensor<3x64x16x1xf32>) -> tensor<3x64x16x1xf32>
    // expected-note @below {{here}}
    %u = exec.unpack %r order [0, 1] batch 0 width 16 interleave 1 : (tensor<3x64x16x1xf32>) -> tensor<64x40xf32>
    exec.yield %u : tensor<64x40xf32>
  }
  return
}

// -----

// exec.fetch C1
func.func @what_comes_back_has_gone(%x: tensor<8xf32>) {
  // expected-error @below {{'exec.fetch' op brings back what no exec.offload has made (C1)}}
  %0 = exec.fetch %x : tensor<8xf32>
  return
}
