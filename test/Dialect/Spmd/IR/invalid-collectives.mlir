// What collectives refuse.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// all_reduce names axes of the module's mesh, so there must be one.
func.func @all_reduce_needs_a_mesh(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.all_reduce' op needs a mesh, but no enclosing op has the attribute 'spmd.mesh'}}
  %0 = spmd.all_reduce sum %x over {"x"} : tensor<8x8xf32>
  return
}

// -----

// all_gather names axes of the module's mesh, so there must be one.
func.func @all_gather_needs_a_mesh(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.all_gather' op needs a mesh, but no enclosing op has the attribute 'spmd.mesh'}}
  %0 = spmd.all_gather %x dims [{"x"}, {}] : (tensor<8x8xf32>) -> tensor<16x8xf32>
  return
}

// -----

// local_slice names axes of the module's mesh, so there must be one.
func.func @local_slice_needs_a_mesh(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.local_slice' op needs a mesh, but no enclosing op has the attribute 'spmd.mesh'}}
  %0 = spmd.local_slice %x dims [{"x"}, {}] : (tensor<8x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

// all_to_all names axes of the module's mesh, so there must be one.
func.func @all_to_all_needs_a_mesh(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.all_to_all' op needs a mesh, but no enclosing op has the attribute 'spmd.mesh'}}
  %0 = spmd.all_to_all %x gather [{"x"}, {}] slice [{}, {"x"}] : (tensor<8x8xf32>) -> tensor<16x4xf32>
  return
}

// -----

// axis_index names axes of the module's mesh, so there must be one.
func.func @axis_index_needs_a_mesh(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.axis_index' op needs a mesh, but no enclosing op has the attribute 'spmd.mesh'}}
  %0 = spmd.axis_index {"x"} : tensor<i64>
  return
}

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
// permute is over the module's mesh, too.
func.func @permute_needs_a_mesh(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.permute' op needs a mesh, but no enclosing op has the attribute 'spmd.mesh'}}
  %0 = spmd.permute %x from #rows to #rows of tensor<8x8xf32> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

// C1 of all_reduce: axes exist (S2).
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @reduced_axes_exist(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.all_reduce' op axis "z" is not one of the mesh #spmd.mesh<["x"=2, "y"=4]> (S2)}}
  %0 = spmd.all_reduce sum %x over {"z"} : tensor<8x8xf32>
  return
}
}

// -----

// C1: once (S3).
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @reduced_axes_are_distinct(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.all_reduce' op axis "x" is used twice (S3)}}
  %0 = spmd.all_reduce sum %x over {"x", "x"} : tensor<8x8xf32>
  return
}
}

// -----

// C1: and digits divide them (S4).
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @reduced_digits_divide(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.all_reduce' op sub-axis "y":(1)3 does not divide the axis of size 4 (S4)}}
  %0 = spmd.all_reduce sum %x over {"y":(1)3} : tensor<8x8xf32>
  return
}
}

// -----

// C2 of all_reduce.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_reduction_keeps_the_type(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.all_reduce' op failed to verify that all of {input, result} have same type}}
  %0 = "spmd.all_reduce"(%x) <{kind = #spmd<reduction sum>, axes = [#spmd.axis<"x">]}> : (tensor<8x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

// C3 of all_reduce.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @bools_are_not_summed(%x: tensor<8xi1>) {
  // expected-error @below {{'spmd.all_reduce' op cannot combine 'i1' by sum (S6)}}
  %0 = spmd.all_reduce sum %x over {"x"} : tensor<8xi1>
  return
}
}

// -----

// Per-device shapes are static.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @shards_are_static(%x: tensor<?xf32>) {
  // expected-error @below {{'spmd.all_reduce' op operand #0 must be statically shaped tensor of any type values, but got 'tensor<?xf32>'}}
  %0 = spmd.all_reduce sum %x over {"x"} : tensor<?xf32>
  return
}
}

// -----

// C1 of all_gather: over all dims together.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @gathered_axes_are_distinct(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.all_gather' op axis "x" is used twice (S3)}}
  %0 = spmd.all_gather %x dims [{"x"}, {"x"}] : (tensor<8x8xf32>) -> tensor<16x16xf32>
  return
}
}

// -----

// C2 of all_gather.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @there_is_a_list_per_gathered_dim(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.all_gather' op has 1 axis lists but operand has 2 dims}}
  %0 = spmd.all_gather %x dims [{"x"}] : (tensor<8x8xf32>) -> tensor<16x8xf32>
  return
}
}

// -----

// C3 of all_gather: 8 * 2 * 4 = 64.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_gathered_dim_grows_by_its_axes(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.all_gather' op result dim 0 is 32 but operand dim 8 gathered over "x"=2, "y"=4 gives 64}}
  %0 = spmd.all_gather %x dims [{"x", "y"}, {}] : (tensor<8x8xf32>) -> tensor<32x8xf32>
  return
}
}

// -----

// C3: sub-axes are shown as they are written.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_gathered_dim_grows_by_its_digits(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.all_gather' op result dim 1 is 32 but operand dim 8 gathered over "y":(2)2 gives 16}}
  %0 = spmd.all_gather %x dims [{}, {"y":(2)2}] : (tensor<8x8xf32>) -> tensor<8x32xf32>
  return
}
}

// -----

// C3: a product that overflows is none.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_gathered_dim_can_be_counted(%x: tensor<9223372036854775807xi8>) {
  // expected-error @below {{'spmd.all_gather' op result dim 0 is 1 but operand dim 9223372036854775807 gathered over "x"=2 gives no whole number}}
  %0 = spmd.all_gather %x dims [{"x"}] : (tensor<9223372036854775807xi8>) -> tensor<1xi8>
  return
}
}

// -----

// Gathering changes no element.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @gathering_keeps_the_element_type(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.all_gather' op result 'tensor<16x8xf16>' does not have the rank and element type of operand 'tensor<8x8xf32>'}}
  %0 = spmd.all_gather %x dims [{"x"}, {}] : (tensor<8x8xf32>) -> tensor<16x8xf16>
  return
}
}

// -----

// C3 of reduce_scatter: 8 / 4 = 2.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_scattered_dim_shrinks_by_its_axes(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.reduce_scatter' op result dim 0 is 8 but operand dim 8 sliced over "y"=4 gives 2}}
  %0 = spmd.reduce_scatter sum %x dims [{"y"}, {}] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
}

// -----

// C4 of reduce_scatter.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @bools_are_not_multiplied(%x: tensor<8xi1>) {
  // expected-error @below {{'spmd.reduce_scatter' op cannot combine 'i1' by prod (S6)}}
  %0 = spmd.reduce_scatter prod %x dims [{"x"}] : (tensor<8xi1>) -> tensor<4xi1>
  return
}
}

// -----

// C3 of local_slice: pieces are whole.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_sliced_dim_divides(%x: tensor<6xf32>) {
  // expected-error @below {{'spmd.local_slice' op result dim 0 is 1 but operand dim 6 sliced over "y"=4 gives no whole number}}
  %0 = spmd.local_slice %x dims [{"y"}] : (tensor<6xf32>) -> tensor<1xf32>
  return
}
}

// -----

// C2 of all_to_all, on either side.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @there_is_a_list_per_sliced_dim(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.all_to_all' op has 1 axis lists but operand has 2 dims}}
  %0 = spmd.all_to_all %x gather [{"x"}, {}] slice [{"x"}] : (tensor<8x8xf32>) -> tensor<16x4xf32>
  return
}
}

// -----

// C3 of all_to_all.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @what_is_gathered_is_sliced(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.all_to_all' op does not slice over the axes that it gathers over}}
  %0 = spmd.all_to_all %x gather [{"x"}, {}] slice [{}, {"y"}] : (tensor<8x8xf32>) -> tensor<16x2xf32>
  return
}
}

// -----

// C4 of all_to_all: 8 * 4 / 2 = 16.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_dim_is_gathered_then_sliced(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.all_to_all' op result dim 0 is 8 but operand dim 8 gathered over "y"=4 sliced over "x"=2 gives 16}}
  %0 = spmd.all_to_all %x gather [{"y"}, {"x"}] slice [{"x"}, {"y"}] : (tensor<8x8xf32>) -> tensor<8x4xf32>
  return
}
}

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
#sums = #spmd.sharding<#mesh, [{}, {}], partial = {"x": sum}>
// C1 of permute.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @partial_values_are_not_permuted(%x: tensor<8x8xf32>) {
  // expected-error @below {{of the operand is partial}}
  %0 = spmd.permute %x from #sums to #rows of tensor<8x8xf32> : (tensor<8x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
#sums = #spmd.sharding<#mesh, [{}, {}], partial = {"x": sum}>
// C1 on the other side.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @permuting_gives_no_partial_values(%x: tensor<4x8xf32>) {
  // expected-error @below {{of the result is partial}}
  %0 = spmd.permute %x from #rows to #sums of tensor<8x8xf32> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  return
}
}

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
// C2 of permute: shardings fit the global type (S5).
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_permuted_tensor_divides(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.permute' op dim 0 of size 7 does not divide into 2 shards (S5)}}
  %0 = spmd.permute %x from #rows to #rows of tensor<7x8xf32> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
// C2: the operand is a shard.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_permuted_operand_is_a_shard(%x: tensor<8x8xf32>) {
  // expected-error @below {{'spmd.permute' op operand is 'tensor<8x8xf32>' but its shard of 'tensor<8x8xf32>' is 'tensor<4x8xf32>'}}
  %0 = spmd.permute %x from #rows to #rows of tensor<8x8xf32> : (tensor<8x8xf32>) -> tensor<4x8xf32>
  return
}
}

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
// C2: and so is the result.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_permuted_result_is_a_shard(%x: tensor<4x8xf32>) {
  // expected-error @below {{'spmd.permute' op result is 'tensor<8x4xf32>' but its shard of 'tensor<8x8xf32>' is 'tensor<4x8xf32>'}}
  %0 = spmd.permute %x from #rows to #rows of tensor<8x8xf32> : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}
}

// -----

#other = #spmd.mesh<["x"=4]>
#cols = #spmd.sharding<#other, [{}, {"x"}]>
// C3 of permute.
// expected-note @below {{which is here}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @a_permute_is_over_the_mesh_of_the_module(%x: tensor<8x2xf32>) {
  // expected-error @below {{'spmd.permute' op operand is sharded over #spmd.mesh<["x"=4]> but the module's mesh is #spmd.mesh<["x"=2, "y"=4]>}}
  %0 = spmd.permute %x from #cols to #cols of tensor<8x8xf32> : (tensor<8x2xf32>) -> tensor<8x2xf32>
  return
}
}

// -----

#mesh = #spmd.mesh<["x"=6]>
#halves = #spmd.sharding<#mesh, [{"x":(1)2}]>
#thirds = #spmd.sharding<#mesh, [{"x":(1)3}]>
// C4 of permute.
module attributes {spmd.mesh = #spmd.mesh<["x"=6]>} {
func.func @sub_axes_of_a_permute_do_not_exclude_each_other(%x: tensor<6xf32>) {
  // expected-error @below {{sub-axes of mesh axis "x" of size 6 need borders at 2 and 3, which exclude each other}}
  %0 = spmd.permute %x from #halves to #thirds of tensor<12xf32> : (tensor<6xf32>) -> tensor<4xf32>
  return
}
}

// -----

// C1 of keep_on_first.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @first_ranks_are_first_along_axes_of_the_mesh(%x: tensor<8xf32>) {
  // expected-error @below {{'spmd.keep_on_first' op axis "z" is not one of the mesh #spmd.mesh<["x"=2, "y"=4]> (S2)}}
  %0 = spmd.keep_on_first sum %x over {"z"} : tensor<8xf32>
  return
}
}

// -----

// C3 of keep_on_first.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @bools_are_no_terms_of_a_sum(%x: tensor<8xi1>) {
  // expected-error @below {{'spmd.keep_on_first' op cannot combine 'i1' by sum (S6)}}
  %0 = spmd.keep_on_first sum %x over {"x"} : tensor<8xi1>
  return
}
}

// -----

// C1 of axis_index.
module attributes {spmd.mesh = #spmd.mesh<["x"=2, "y"=4]>} {
func.func @an_index_is_along_axes() {
  // expected-error @below {{'spmd.axis_index' op axis "y" is used twice (S3)}}
  %0 = spmd.axis_index {"y", "y":(1)2} : tensor<i64>
  return
}
}
