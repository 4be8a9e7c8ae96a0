// Rules of constants, loads and iotas: any piece of them can be made alone.
//
// RUN: cleave-opt %s --spmd-print-rules --verify-diagnostics

nn.param @w : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>

func.func @every_dim_of_a_constant_is_parallel() {
  // expected-remark @below {{()->([i,j]) {i=2,j=3}}}
  %0 = nn.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64> -> tensor<2x3xi64>
  return
}

func.func @a_scalar_has_no_factor() {
  // expected-remark @below {{()->([]) {}}}
  %0 = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  return
}

func.func @a_parameter_can_be_read_in_pieces() {
  // expected-remark @below {{()->([i,j]) {i=8,j=4}}}
  %0 = nn.load @w : tensor<8x4xf32>
  return
}

func.func @a_dim_of_size_1_has_no_factor() {
  // expected-remark @below {{()->([i,1,j]) {i=8,j=2}}}
  %0 = nn.iota dim 0 start 0 step 1 : tensor<8x1x2xi64>
  return
}
