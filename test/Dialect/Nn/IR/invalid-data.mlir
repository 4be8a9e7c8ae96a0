// What constants, parameters, loads and iotas refuse.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C1: a value of another type.
func.func @a_constant_has_the_type_of_its_value() {
  // expected-error @below {{'nn.constant' op value has type 'tensor<2xi32>' but the result is 'tensor<2xi64>' (C1)}}
  %0 = nn.constant dense<1> : tensor<2xi32> -> tensor<2xi64>
  return
}

// -----

// C1: a value of another shape.
func.func @a_constant_has_the_shape_of_its_value() {
  // expected-error @below {{'nn.constant' op value has type 'tensor<2xi64>' but the result is 'tensor<3xi64>' (C1)}}
  %0 = nn.constant dense<1> : tensor<2xi64> -> tensor<3xi64>
  return
}

// -----

// C1: a vector is not a tensor.
func.func @a_constant_is_a_tensor() {
  // expected-error @below {{'nn.constant' op value has type 'vector<2xi64>' but the result is 'tensor<2xi64>' (C1)}}
  %0 = nn.constant dense<1> : vector<2xi64> -> tensor<2xi64>
  return
}

// -----

// C1: a value carries no sharding; only the result type does.
#mesh = #spmd.mesh<["x"=2, "y"=2]>
#rows = #spmd.sharding<#mesh, [{"x"}]>
func.func @a_constant_value_is_not_sharded() {
  // expected-error @below {{'nn.constant' op value has type 'tensor<2xi64, #spmd.sharding<#spmd.mesh<["x"=2, "y"=2]>, [{"x"}]>>' but the result is}}
  %0 = nn.constant dense<1> : tensor<2xi64, #rows> -> tensor<2xi64, #rows>
  return
}

// -----

// C1: a file range of another length: 8 * 4 * 4 = 128 bytes.
// expected-error @below {{'nn.param' op refers to 127 bytes but 'tensor<8x4xf32>' needs 128 (C1)}}
nn.param @w : tensor<8x4xf32> = #nn.weight<"w.bin", 0, 127>

// -----

// C1: a file does not start before its start.
// expected-error @below {{'nn.param' op refers to offset -4 of its file (C1)}}
nn.param @w : tensor<8x4xf32> = #nn.weight<"w.bin", -4, 128>

// -----

// C2: elements of another type.
// expected-error @below {{'nn.param' op value has type 'tensor<4x8xf32>' but the parameter is 'tensor<8x4xf32>' (C2)}}
nn.param @w : tensor<8x4xf32> = dense<0.0> : tensor<4x8xf32>

// -----

// C2: neither bytes nor elements.
// expected-error @below {{'nn.param' op value is neither a weight nor an elements attribute (C2)}}
nn.param @w : tensor<8x4xf32> = "w.bin"

// -----

// C1: past the end of its file.
// expected-error @below {{'nn.param' op refers to offset 8 with 128 bytes of a file of 135 (C1)}}
nn.param @w : tensor<8x4xf32> = #nn.weight<"w.bin", 8, 128 of 135 digest "ec8cf713063aea6c">

// -----

// C3: how many bytes?
// expected-error @below {{'nn.param' op type 'tensor<?x4xf32>' has no fixed size in bytes (C3)}}
nn.param @w : tensor<?x4xf32> = #nn.weight<"w.bin", 0, 128>

// -----

// C3: elements that are no whole bytes.
// expected-error @below {{'nn.param' op type 'tensor<4xi5>' has no fixed size in bytes (C3)}}
nn.param @w : tensor<4xi5> = #nn.weight<"w.bin", 0, 2>

// -----

// C3: elements that are no numbers.
// expected-error @below {{'nn.param' op type 'tensor<4xindex>' has no fixed size in bytes (C3)}}
nn.param @w : tensor<4xindex> = #nn.weight<"w.bin", 0, 2>

// -----

// C3: 2^32 * 2^32 elements overflow.
// expected-error @below {{'nn.param' op type 'tensor<4294967296x4294967296xf32>' has no fixed size in bytes (C3)}}
nn.param @w : tensor<4294967296x4294967296xf32> = #nn.weight<"w.bin", 0, 0>

// -----

// C4: a stack has a part for each entry of its first dim,
// expected-error @below {{'nn.param' op is a stack of 2 parts, which is no 'tensor<3x4xf32>' (C4)}}
nn.param @w : tensor<3x4xf32> = [dense<0.0> : tensor<4xf32>, #nn.weight<"w.bin", 0, 16>]

// -----

// C4: and each is of the type of one.
// expected-error @below {{'nn.param' op refers to 12 bytes but 'tensor<4xf32>' needs 16 (C1)}}
nn.param @w : tensor<2x4xf32> = [dense<0.0> : tensor<4xf32>, #nn.weight<"w.bin", 0, 12>]

// -----

// C1: no such symbol.
func.func @a_load_names_a_parameter() {
  // expected-error @below {{'nn.load' op @w is not an nn.param (C1)}}
  %0 = nn.load @w : tensor<8x4xf32>
  return
}

// -----

// C1: a function is not a parameter.
// expected-note @below {{the symbol is here}}
func.func @a_function_is_no_parameter() {
  // expected-error @below {{'nn.load' op @a_function_is_no_parameter is not an nn.param (C1)}}
  %0 = nn.load @a_function_is_no_parameter : tensor<8x4xf32>
  return
}

// -----

// C2: another type.
// expected-note @below {{the parameter is here}}
nn.param @w : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32>
func.func @a_load_has_the_type_of_its_parameter() {
  // expected-error @below {{'nn.load' op result is 'tensor<8x4xf16>' but parameter @w is 'tensor<8x4xf32>' (C2)}}
  %0 = nn.load @w : tensor<8x4xf16>
  return
}

// -----

// C2: a shard is named by a sharding.
nn.param @w : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32>
func.func @a_shard_is_a_sharding() {
  // expected-error @below {{'nn.load' op shard is "x", expected a #spmd.sharding (C2)}}
  %0 = nn.load @w shard("x") : tensor<4x4xf32>
  return
}

// -----

// C2: a parameter is never partial.
#mesh = #spmd.mesh<["x"=2, "y"=2]>
#partial = #spmd.sharding<#mesh, [{}, {}], partial = {"x": sum}>
nn.param @w : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32>
func.func @a_shard_is_not_partial() {
  // expected-error @below {{is partial (C2)}}
  %0 = nn.load @w shard(#partial) : tensor<8x4xf32>
  return
}

// -----

// C2: the sharding fits the parameter (S1).
#mesh = #spmd.mesh<["x"=2, "y"=2]>
#vector = #spmd.sharding<#mesh, [{"x"}]>
// expected-note @below {{the parameter is here}}
nn.param @w : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32>
func.func @a_shard_fits_the_parameter() {
  // expected-error @below {{'nn.load' op sharding has 1 dims but the tensor has 2 (S1)}}
  %0 = nn.load @w shard(#vector) : tensor<4x4xf32>
  return
}

// -----

// C2: one rank's piece of the rows is 4 of 8.
#mesh = #spmd.mesh<["x"=2, "y"=2]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
// expected-note @below {{the parameter is here}}
nn.param @w : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32>
func.func @a_shard_has_the_local_type() {
  // expected-error @below {{'nn.load' op result is 'tensor<8x4xf32>' but the shard of parameter @w is 'tensor<4x4xf32>' (C2)}}
  %0 = nn.load @w shard(#rows) : tensor<8x4xf32>
  return
}

// -----

// C1 of iota.
func.func @an_iota_runs_along_a_dim() {
  // expected-error @below {{'nn.iota' op dim 1 is not in [0, 1) (C1)}}
  %0 = nn.iota dim 1 start 0 step 1 : tensor<8xi64>
  return
}

// -----

// C1 of iota: a scalar has no dim.
func.func @a_scalar_iota_has_no_dim() {
  // expected-error @below {{'nn.iota' op dim 0 is not in [0, 0) (C1)}}
  %0 = nn.iota dim 0 start 0 step 1 : tensor<i64>
  return
}

// -----

// C3: a part ends where the parameter does.
// expected-note @below {{the parameter is here}}
nn.param @w : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32>
func.func @a_part_lies_inside_its_parameter() {
  // expected-error @below {{'nn.load' op dim 1 of the part has start 2 and size 3 but parameter @w is 'tensor<8x4xf32>' (C3)}}
  %0 = nn.load @w starts [0, 2] sizes [8, 3] : tensor<8x3xf32>
  return
}

// -----

// C3: one start and one size a dim.
// expected-note @below {{the parameter is here}}
nn.param @w : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32>
func.func @a_part_has_all_dims() {
  // expected-error @below {{'nn.load' op needs starts and sizes of a part for all 2 dims of parameter @w (C3)}}
  %0 = nn.load @w starts [0] sizes [8] : tensor<8xf32>
  return
}

// -----

// C2: the result is what the part is.
// expected-note @below {{the parameter is here}}
nn.param @w : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32>
func.func @a_part_has_the_type_of_its_sizes() {
  // expected-error @below {{'nn.load' op result is 'tensor<8x4xf32>' but the part of parameter @w is 'tensor<8x2xf32>' (C2)}}
  %0 = nn.load @w starts [0, 2] sizes [8, 2] : tensor<8x4xf32>
  return
}
