// What a recurrence refuses.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C1: as many gates as the kind has.
func.func @an_lstm_has_four_gates(%p: tensor<5x1x2x3x8xf32>, %w: tensor<1x3x8x8xf32>, %h: tensor<1x2x8xf32>) {
  // expected-error @below {{'nn.recurrence' op projected is 'tensor<5x1x2x3x8xf32>', expected [steps, directions, batch, 4, hidden] with a step at least (C1)}}
  %0:3 = nn.recurrence lstm %p, %w initial (%h, %h) activations ["sigmoid", "tanh", "tanh"] alphas [0.0, 0.0, 0.0] betas [0.0, 0.0, 0.0] : (tensor<5x1x2x3x8xf32>, tensor<1x3x8x8xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>) -> (tensor<5x1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>)
  return
}

// -----

// C1: a step at least.
func.func @there_is_a_step(%p: tensor<0x1x2x1x8xf32>, %w: tensor<1x1x8x8xf32>, %h: tensor<1x2x8xf32>) {
  // expected-error @below {{'nn.recurrence' op projected is 'tensor<0x1x2x1x8xf32>', expected [steps, directions, batch, 1, hidden] with a step at least (C1)}}
  %0:2 = nn.recurrence rnn %p, %w initial (%h) activations ["tanh"] alphas [0.0] betas [0.0] : (tensor<0x1x2x1x8xf32>, tensor<1x1x8x8xf32>, tensor<1x2x8xf32>) -> (tensor<0x1x2x8xf32>, tensor<1x2x8xf32>)
  return
}

// -----

// C1: weights from hidden to hidden.
func.func @weights_are_square(%p: tensor<5x1x2x1x8xf32>, %w: tensor<1x1x8x6xf32>, %h: tensor<1x2x8xf32>) {
  // expected-error @below {{'nn.recurrence' op weight is 'tensor<1x1x8x6xf32>', expected [1, 1, 8, 8] (C1)}}
  %0:2 = nn.recurrence rnn %p, %w initial (%h) activations ["tanh"] alphas [0.0] betas [0.0] : (tensor<5x1x2x1x8xf32>, tensor<1x1x8x6xf32>, tensor<1x2x8xf32>) -> (tensor<5x1x2x8xf32>, tensor<1x2x8xf32>)
  return
}

// -----

// C1: one element type.
func.func @floats_are_of_one_type(%p: tensor<5x1x2x1x8xf32>, %w: tensor<1x1x8x8xf16>, %h: tensor<1x2x8xf32>) {
  // expected-error @below {{'nn.recurrence' op operands have different element types 'f32' and 'f16' (C1)}}
  %0:2 = nn.recurrence rnn %p, %w initial (%h) activations ["tanh"] alphas [0.0] betas [0.0] : (tensor<5x1x2x1x8xf32>, tensor<1x1x8x8xf16>, tensor<1x2x8xf32>) -> (tensor<5x1x2x8xf32>, tensor<1x2x8xf32>)
  return
}

// -----

// C2: an lstm has two states.
func.func @an_lstm_has_two_states(%p: tensor<5x1x2x4x8xf32>, %w: tensor<1x4x8x8xf32>, %h: tensor<1x2x8xf32>) {
  // expected-error @below {{'nn.recurrence' op 1 initial states, expected 2 (C2)}}
  %0:2 = nn.recurrence lstm %p, %w initial (%h) activations ["sigmoid", "tanh", "tanh"] alphas [0.0, 0.0, 0.0] betas [0.0, 0.0, 0.0] : (tensor<5x1x2x4x8xf32>, tensor<1x4x8x8xf32>, tensor<1x2x8xf32>) -> (tensor<5x1x2x8xf32>, tensor<1x2x8xf32>)
  return
}

// -----

// C3: what is reset behind its product has a bias.
func.func @a_reset_behind_the_product_has_a_bias(%p: tensor<5x1x2x3x8xf32>, %w: tensor<1x3x8x8xf32>, %h: tensor<1x2x8xf32>) {
  // expected-error @below {{'nn.recurrence' op bias goes with linearBeforeReset of a gru (C3)}}
  %0:2 = nn.recurrence gru %p, %w initial (%h) activations ["sigmoid", "tanh"] alphas [0.0, 0.0] betas [0.0, 0.0] {linearBeforeReset} : (tensor<5x1x2x3x8xf32>, tensor<1x3x8x8xf32>, tensor<1x2x8xf32>) -> (tensor<5x1x2x8xf32>, tensor<1x2x8xf32>)
  return
}

// -----

// C3: peepholes look at cells.
func.func @a_gru_has_no_peepholes(%p: tensor<5x1x2x3x8xf32>, %w: tensor<1x3x8x8xf32>, %h: tensor<1x2x8xf32>, %q: tensor<1x3x8xf32>) {
  // expected-error @below {{'nn.recurrence' op peepholes and inputForget are of an lstm (C3)}}
  %0:2 = nn.recurrence gru %p, %w initial (%h) peepholes %q activations ["sigmoid", "tanh"] alphas [0.0, 0.0] betas [0.0, 0.0] : (tensor<5x1x2x3x8xf32>, tensor<1x3x8x8xf32>, tensor<1x2x8xf32>, tensor<1x3x8xf32>) -> (tensor<5x1x2x8xf32>, tensor<1x2x8xf32>)
  return
}

// -----

// C4: as many activations as the formula names.
func.func @a_gru_has_two_activations(%p: tensor<5x1x2x3x8xf32>, %w: tensor<1x3x8x8xf32>, %h: tensor<1x2x8xf32>) {
  // expected-error @below {{'nn.recurrence' op 1 activations with 1 alphas and 2 betas, expected 2 of each (C4)}}
  %0:2 = nn.recurrence gru %p, %w initial (%h) activations ["sigmoid"] alphas [0.0] betas [0.0, 0.0] : (tensor<5x1x2x3x8xf32>, tensor<1x3x8x8xf32>, tensor<1x2x8xf32>) -> (tensor<5x1x2x8xf32>, tensor<1x2x8xf32>)
  return
}

// -----

// C4: activations that there are.
func.func @activations_are_known(%p: tensor<5x1x2x1x8xf32>, %w: tensor<1x1x8x8xf32>, %h: tensor<1x2x8xf32>) {
  // expected-error @below {{'nn.recurrence' op activation "swish" is not known (C4)}}
  %0:2 = nn.recurrence rnn %p, %w initial (%h) activations ["swish"] alphas [0.0] betas [0.0] : (tensor<5x1x2x1x8xf32>, tensor<1x1x8x8xf32>, tensor<1x2x8xf32>) -> (tensor<5x1x2x8xf32>, tensor<1x2x8xf32>)
  return
}

// -----

// C5: zeros are zeros.
func.func @a_state_of_zeros_is_no_other_constant(%p: tensor<1x1x2x1x8xf32>, %w: tensor<1x1x8x8xf32>) {
  %h = nn.constant dense<0.5> : tensor<1x2x8xf32> -> tensor<1x2x8xf32>
  // expected-error @below {{'nn.recurrence' op startsFromZeros, but the initial state is 5.000000e-01 (C5)}}
  %0:2 = nn.recurrence rnn %p, %w initial (%h) activations ["tanh"] alphas [0.0] betas [0.0] {startsFromZeros} : (tensor<1x1x2x1x8xf32>, tensor<1x1x8x8xf32>, tensor<1x2x8xf32>) -> (tensor<1x1x2x8xf32>, tensor<1x2x8xf32>)
  return
}
