// What norms refuse.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C1 of layer_norm.
func.func @a_layer_norm_starts_at_a_dim(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.layer_norm' op dim 2 is not in [0, 2) (C1)}}
  %0 = nn.layer_norm %x dim 2 epsilon 1.0e-5 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C2: a scale per row is not one per normalized element.
func.func @a_scale_broadcasts_to_the_normalized_dims(%x: tensor<8x4xf32>, %s: tensor<8x4xf32>) {
  // expected-error @below {{'nn.layer_norm' op scale 'tensor<8x4xf32>' does not broadcast to the dims of 'tensor<8x4xf32>' from 1 on (C2)}}
  %0 = nn.layer_norm %x, %s dim 1 epsilon 1.0e-5 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C2: the bias likewise.
func.func @a_bias_broadcasts_to_the_normalized_dims(%x: tensor<8x4xf32>, %s: tensor<4xf32>, %b: tensor<3xf32>) {
  // expected-error @below {{'nn.layer_norm' op bias 'tensor<3xf32>' does not broadcast to the dims of 'tensor<8x4xf32>' from 0 on (C2)}}
  %0 = nn.layer_norm %x, %s bias %b dim 0 epsilon 1.0e-5 : (tensor<8x4xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C1 of rms_norm.
func.func @an_rms_norm_starts_at_a_dim(%x: tensor<8x4xf32>) {
  // expected-error @below {{'nn.rms_norm' op dim -1 is not in [0, 2) (C1)}}
  %0 = nn.rms_norm %x dim -1 epsilon 1.0e-5 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C2 of rms_norm.
func.func @an_rms_scale_broadcasts(%x: tensor<8x4xf32>, %s: tensor<3xf32>) {
  // expected-error @below {{'nn.rms_norm' op scale 'tensor<3xf32>' does not broadcast to the dims of 'tensor<8x4xf32>' from 1 on (C2)}}
  %0 = nn.rms_norm %x, %s dim 1 epsilon 1.0e-5 : (tensor<8x4xf32>, tensor<3xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C1 of batch_norm.
func.func @a_batch_norm_has_channels(%x: tensor<4xf32>, %v: tensor<4xf32>) {
  // expected-error @below {{'nn.batch_norm' op input is 'tensor<4xf32>', expected at least 2 dims (C1)}}
  %0 = nn.batch_norm %x, %v, %v, %v, %v epsilon 1.0e-5 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// C2: the scale has one number per channel.
func.func @the_scale_is_per_channel(%x: tensor<2x4x8x8xf32>, %v: tensor<4xf32>, %w: tensor<3xf32>) {
  // expected-error @below {{'nn.batch_norm' op scale is 'tensor<3xf32>', expected a vector of 4 elements (C2)}}
  %0 = nn.batch_norm %x, %w, %v, %v, %v epsilon 1.0e-5 : (tensor<2x4x8x8xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x8x8xf32>
  return
}

// -----

// C2: the bias has one number per channel.
func.func @the_bias_is_per_channel(%x: tensor<2x4x8x8xf32>, %v: tensor<4xf32>, %w: tensor<3xf32>) {
  // expected-error @below {{'nn.batch_norm' op bias is 'tensor<3xf32>', expected a vector of 4 elements (C2)}}
  %0 = nn.batch_norm %x, %v, %w, %v, %v epsilon 1.0e-5 : (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x8x8xf32>
  return
}

// -----

// C2: the mean has one number per channel.
func.func @the_mean_is_per_channel(%x: tensor<2x4x8x8xf32>, %v: tensor<4xf32>, %w: tensor<3xf32>) {
  // expected-error @below {{'nn.batch_norm' op mean is 'tensor<3xf32>', expected a vector of 4 elements (C2)}}
  %0 = nn.batch_norm %x, %v, %v, %w, %v epsilon 1.0e-5 : (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<4xf32>) -> tensor<2x4x8x8xf32>
  return
}

// -----

// C2: the variance has one number per channel.
func.func @the_variance_is_per_channel(%x: tensor<2x4x8x8xf32>, %v: tensor<4xf32>, %w: tensor<3xf32>) {
  // expected-error @below {{'nn.batch_norm' op variance is 'tensor<3xf32>', expected a vector of 4 elements (C2)}}
  %0 = nn.batch_norm %x, %v, %v, %v, %w epsilon 1.0e-5 : (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<2x4x8x8xf32>
  return
}

// -----

// C1 of group_norm.
func.func @a_group_norm_has_spatial_dims(%x: tensor<8x4xf32>, %v: tensor<4xf32>) {
  // expected-error @below {{'nn.group_norm' op input is 'tensor<8x4xf32>', expected at least 3 dims (C1)}}
  %0 = nn.group_norm %x, %v, %v groups 2 epsilon 1.0e-5 : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// C2: 3 groups of 4 channels.
func.func @groups_divide_the_channels(%x: tensor<2x4x8x8xf32>, %v: tensor<4xf32>) {
  // expected-error @below {{'nn.group_norm' op cannot split 4 channels into 3 groups (C2)}}
  %0 = nn.group_norm %x, %v, %v groups 3 epsilon 1.0e-5 : (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x8x8xf32>
  return
}

// -----

// C2: there is a group.
func.func @there_is_a_group(%x: tensor<2x4x8x8xf32>, %v: tensor<4xf32>) {
  // expected-error @below {{'nn.group_norm' op cannot split 4 channels into 0 groups (C2)}}
  %0 = nn.group_norm %x, %v, %v groups 0 epsilon 1.0e-5 : (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x8x8xf32>
  return
}

// -----

// C3: the scale is per channel, not per group.
func.func @a_group_scale_is_per_channel(%x: tensor<2x4x8x8xf32>, %v: tensor<4xf32>, %w: tensor<3xf32>) {
  // expected-error @below {{'nn.group_norm' op scale is 'tensor<3xf32>', expected a vector of 4 elements (C3)}}
  %0 = nn.group_norm %x, %w, %v groups 2 epsilon 1.0e-5 : (tensor<2x4x8x8xf32>, tensor<3xf32>, tensor<4xf32>) -> tensor<2x4x8x8xf32>
  return
}

// -----

// C3: and so is the bias.
func.func @a_group_bias_is_per_channel(%x: tensor<2x4x8x8xf32>, %v: tensor<4xf32>, %w: tensor<3xf32>) {
  // expected-error @below {{'nn.group_norm' op bias is 'tensor<3xf32>', expected a vector of 4 elements (C3)}}
  %0 = nn.group_norm %x, %v, %w groups 2 epsilon 1.0e-5 : (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<2x4x8x8xf32>
  return
}

// -----

// C1 of lrn.
func.func @an_lrn_has_channels(%x: tensor<4xf32>) {
  // expected-error @below {{'nn.lrn' op input is 'tensor<4xf32>', expected at least 2 dims (C1)}}
  %0 = nn.lrn %x size 5 alpha 1.0e-4 beta 0.75 k 1.0 : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// C2 of lrn.
func.func @an_lrn_looks_at_channels(%x: tensor<2x4x8x8xf32>) {
  // expected-error @below {{'nn.lrn' op size is 0, expected at least 1 (C2)}}
  %0 = nn.lrn %x size 0 alpha 1.0e-4 beta 0.75 k 1.0 : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  return
}
