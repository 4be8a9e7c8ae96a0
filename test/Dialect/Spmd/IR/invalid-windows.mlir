// Constraints of spmd.window, spmd.join and spmd.split.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C2 of window.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @there_is_a_list_per_dim_of_a_window(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.window' op has 1 axis lists but operand has 2 dims}}
  %0 = spmd.window %x dims [{"x"}] steps [4, 0] lows [0, 0] highs [4, 8] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

// C2 of window.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @there_is_a_step_per_dim(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.window' op has 1 steps but operand has 2 dims}}
  %0 = spmd.window %x dims [{"x"}, {}] steps [4] lows [0, 0] highs [4, 8] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

// C2 of window.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @there_is_an_end_per_dim(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.window' op has 3 highs but operand has 2 dims}}
  %0 = spmd.window %x dims [{"x"}, {}] steps [4, 0] lows [0, 0] highs [4, 8, 1] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

// C3 of window.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @an_interval_is_as_long_as_its_dim(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.window' op result dim 0 is 5 but the interval from -1 to 5 is of another size}}
  %0 = spmd.window %x dims [{"x"}, {}] steps [4, 0] lows [-1, 0] highs [5, 8] : (tensor<4x8xf32>) -> tensor<5x8xf32>
  return
}
}

// -----

// C3 of window.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_window_keeps_the_element_type(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.window' op result 'tensor<4x8xi32>' does not have the rank and element type of operand 'tensor<4x8xf32>'}}
  %0 = spmd.window %x dims [{"x"}, {}] steps [4, 0] lows [0, 0] highs [4, 8] : (tensor<4x8xf32>) -> tensor<4x8xi32>
  return
}
}

// -----

// C4 of window.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @what_is_not_cut_does_not_move_on(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.window' op has the step 1 along dim 1 cut over 1 ranks}}
  %0 = spmd.window %x dims [{"x"}, {}] steps [4, 1] lows [0, 0] highs [4, 8] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

// C4 of window: no number overflows.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @positions_can_be_counted(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.window' op reaches beyond counting along dim 0}}
  %0 = spmd.window %x dims [{"x"}, {}] steps [9223372036854775807, 0] lows [0, 0] highs [4, 8] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

// C5 of window.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @what_is_filled_in_is_an_element(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.window' op fills 'f32' with a number of type 'f64'}}
  %0 = spmd.window %x dims [{"x"}, {}] steps [4, 0] lows [-1, 0] highs [4, 8] fill 0.0 : f64 : (tensor<4x8xf32>) -> tensor<5x8xf32>
  return
}
}

// -----

// C5 of window.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @what_wraps_is_not_filled(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.window' op wraps, and has something to fill in}}
  %0 = spmd.window %x dims [{"x"}, {}] steps [4, 0] lows [-1, 0] highs [4, 8] fill 0.0 : f32 wraps : (tensor<4x8xf32>) -> tensor<5x8xf32>
  return
}
}

// -----

// C5 of window.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @what_reflects_is_not_filled(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.window' op reflects, and has something to fill in}}
  %0 = spmd.window %x dims [{"x"}, {}] steps [4, 0] lows [-1, 0] highs [4, 8] fill 0.0 : f32 reflects : (tensor<4x8xf32>) -> tensor<5x8xf32>
  return
}
}

// -----

// C6 of window: on all dims or on none,
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @what_is_missing_is_said_of_all_dims(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.window' op says to of 0 dims, but operand has 2 (C6)}}
  %0 = spmd.window %x dims [{"x"}, {}] steps [4, 0] lows [0, 0] highs [4, 8] missing [1, 0] from [0, 0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

// C5 of window.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @what_reflects_does_not_wrap(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.window' op reflects, and wraps}}
  %0 = spmd.window %x dims [{"x"}, {}] steps [4, 0] lows [-1, 0] highs [4, 8] wraps reflects : (tensor<4x8xf32>) -> tensor<5x8xf32>
  return
}
}

// -----

// C2 of join.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_join_is_along_a_dim(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.join' op joins along dim 2 but operand has 2 dims}}
  %0 = spmd.join %x dim 2 parts [8] over {"x"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

// C3 of join.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @parts_are_not_negative(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.join' op has a part of -2 positions}}
  %0 = spmd.join %x dim 0 parts [10, -2] over {"x"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

// C4 of join.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @shards_of_parts_make_up_the_operand(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.join' op makes 'tensor<4x8xf32>' of 'tensor<4x8xf32>' but shards of its parts are 3 positions along dim 0 and make 'tensor<3x8xf32>'}}
  %0 = spmd.join %x dim 0 parts [2, 4] over {"x"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

// and of shards only.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @more_is_missing_than_there_is(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.window' op misses 9 positions along dim 0, of 8 in shards (C6)}}
  %0 = spmd.window %x dims [{"x"}, {}] steps [4, 0] lows [0, 0] highs [4, 8] missing [9, 0] from [0, 0] to [8, 8] on [2, 1] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

// C2 of split.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_split_is_along_a_dim(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.split' op splits along dim -1 but operand has 2 dims}}
  %0 = spmd.split %x dim -1 parts [8] over {"x"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

// C3 of split.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @parts_to_be_made_are_not_negative(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.split' op has a part of -2 positions}}
  %0 = spmd.split %x dim 0 parts [10, -2] over {"x"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

// C4 of split: 6 rows on 2 ranks are 3 each, of parts of 2 and 4 rows 1 and 2.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_shard_of_parts_is_the_operand(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.split' op makes 'tensor<4x8xf32>' of 'tensor<4x8xf32>' but a shard of all its parts has 3 positions along dim 0 and make 'tensor<3x8xf32>'}}
  %0 = spmd.split %x dim 0 parts [2, 4] over {"x"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
}
