// RUN: cleave-opt %s --split-input-file --verify-diagnostics --spmd-partition=check-bytes

#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
// expected-error @+1 {{value of type 'tensor<8xf32>' has no sharding}}
func.func @everything_must_be_sharded(%x: tensor<8xf32, #x>, %y: tensor<8xf32>) -> tensor<8xf32, #x> {
  return %x : tensor<8xf32, #x>
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#x_ = #spmd.sharding<#mesh, [{"x"}, {}]>
#_x = #spmd.sharding<#mesh, [{}, {"x"}]>
func.func @operands_must_agree(%x: tensor<8x8xf32, #x_>, %y: tensor<8x8xf32, #_x>) -> tensor<8x8xf32, #x_> {
  // expected-error @+1 {{'nn.add' op cannot be partitioned: operand 1 shards a dim differently than another operand or result does}}
  %0 = nn.add %x, %y : (tensor<8x8xf32, #x_>, tensor<8x8xf32, #_x>) -> tensor<8x8xf32, #x_>
  return %0 : tensor<8x8xf32, #x_>
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
#w = #spmd.sharding<#mesh, [{}]>
func.func @constraints_are_not_partitioned(%x: tensor<8xf32, #x>) -> tensor<8xf32, #w> {
  // expected-error @+1 {{'spmd.constrain' op cannot be partitioned}}
  %0 = spmd.constrain %x : tensor<8xf32, #x> to tensor<8xf32, #w>
  return %0 : tensor<8xf32, #w>
}

// -----

// All-gathering 8 floats over 2 ranks sends 16 bytes a rank, not 17.
#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
#w = #spmd.sharding<#mesh, [{}]>
// expected-error @+1 {{sends 16 bytes a rank, but 17 were decided}}
func.func @what_was_decided_is_sent(%x: tensor<8xf32, #x>) -> tensor<8xf32, #w> attributes {spmd.wire_bytes = 17 : i64} {
  %0 = spmd.reshard %x : tensor<8xf32, #x> to tensor<8xf32, #w>
  return %0 : tensor<8xf32, #w>
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
#w = #spmd.sharding<#mesh, [{}]>
func.func @reshards_come_first(%x: tensor<8xf32, #x>) -> tensor<8xf32, #x> {
  // expected-error @+1 {{'func.return' op takes a value with another sharding than it has; run spmd-insert-reshards first}}
  return {spmd.operands = [#w]} %x : tensor<8xf32, #x>
}

// -----

// Intervals move on along x, then y; the pieces of the result along y, then x.
#mesh = #spmd.mesh<["x"=2, "y"=2]>
#o_xy = #spmd.sharding<#mesh, [{}, {}, {"x", "y"}]>
#o_yx = #spmd.sharding<#mesh, [{}, {}, {"y", "x"}]>
#ooo = #spmd.sharding<#mesh, [{}, {}, {}]>
func.func @operand_and_result_of_a_window_are_split_alike(%x: tensor<1x1x8xf32, #o_xy>, %w: tensor<1x1x3xf32, #ooo>) -> tensor<1x1x8xf32, #o_yx> {
  // expected-error @below {{'nn.conv' op cannot be partitioned: a dim of the result is split otherwise than that of the operand that it is made of}}
  %0 = nn.conv %x, %w strides [1] pads_low [1] pads_high [1] dilations [1] groups 1 : (tensor<1x1x8xf32, #o_xy>, tensor<1x1x3xf32, #ooo>) -> tensor<1x1x8xf32, #o_yx>
  return %0 : tensor<1x1x8xf32, #o_yx>
}
