// What meshes and shardings refuse: M1 to M3 and S1 to S6. (S7 is a property of a phase, not of an attribute.)
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// M1: an axis has a name.
// expected-error @below {{mesh axis has an empty name (M1)}}
#mesh = #spmd.mesh<["x"=2, ""=2]>

// -----

// M1: of its own.
// expected-error @below {{mesh axis "x" is named twice (M1)}}
#mesh = #spmd.mesh<["x"=2, "y"=4, "x"=2]>

// -----

// M2: and at least one rank.
// expected-error @below {{mesh axis "x" has size 0, expected at least 1 (M2)}}
#mesh = #spmd.mesh<["x"=0]>

// -----

// M2: and no less.
// expected-error @below {{mesh axis "y" has size -3, expected at least 1 (M2)}}
#mesh = #spmd.mesh<["x"=2, "y"=-3]>

// -----

// M2: 2^16 * 2^15 ranks do not fit 31 bits.
// expected-error @below {{mesh has more than 2^22 ranks (M2)}}
#mesh = #spmd.mesh<["x"=65536, "y"=32768]>

// -----

// M2: nor does a product that wraps to 0.
// expected-error @below {{mesh has more than 2^22 ranks (M2)}}
#mesh = #spmd.mesh<["x"=4294967296, "y"=4294967296]>

// -----

// M3: a device per rank.
// expected-error @below {{mesh has 2 ranks but 1 devices (M3)}}
#mesh = #spmd.mesh<["x"=2], devices=[0]>

// -----

// M3: a device is one rank.
// expected-error @below {{mesh devices are not a permutation of 0 to 1 (M3)}}
#mesh = #spmd.mesh<["x"=2], devices=[1, 1]>

// -----

// M3: devices are numbered from 0.
// expected-error @below {{mesh devices are not a permutation of 0 to 1 (M3)}}
#mesh = #spmd.mesh<["x"=2], devices=[1, 2]>

// -----

// What follows the axes is `devices`.
// expected-error @below {{expected 'devices'}}
#mesh = #spmd.mesh<["x"=2], ranks=[0, 1]>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#sharding = #spmd.sharding<#mesh, [{"x"}]>
// S1: one entry per dim.
// expected-error @below {{sharding has 1 dims but the tensor has 2 (S1)}}
func.func private @there_is_an_entry_per_dim(tensor<8x4xf32, #sharding>)

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#sharding = #spmd.sharding<#mesh, [{"x"}]>
// S1: a scalar has none.
// expected-error @below {{sharding has 1 dims but the tensor has 0 (S1)}}
func.func private @a_scalar_has_no_entry(tensor<f32, #sharding>)

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// S2: axes are the mesh's.
// expected-error @below {{axis "z" is not one of the mesh #spmd.mesh<["x"=2, "y"=4]> (S2)}}
#sharding = #spmd.sharding<#mesh, [{"z"}]>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// S2: also those of a partial value.
// expected-error @below {{axis "z" is not one of the mesh #spmd.mesh<["x"=2, "y"=4]> (S2)}}
#sharding = #spmd.sharding<#mesh, [{}], partial = {"z": sum}>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// S2: and those that stay replicated.
// expected-error @below {{axis "z" is not one of the mesh #spmd.mesh<["x"=2, "y"=4]> (S2)}}
#sharding = #spmd.sharding<#mesh, [{}], replicated = {"z"}>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// S3: an axis splits a value once.
// expected-error @below {{axis "x" is used twice (S3)}}
#sharding = #spmd.sharding<#mesh, [{"x"}, {"x"}]>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// S3: a digit of an axis is the axis, too.
// expected-error @below {{axis "y" is used twice (S3)}}
#sharding = #spmd.sharding<#mesh, [{"y"}, {"y":(2)2}]>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// S3: what is split is not partial.
// expected-error @below {{axis "x" is used twice (S3)}}
#sharding = #spmd.sharding<#mesh, [{"x"}], partial = {"x": sum}>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// S3: nor whole.
// expected-error @below {{axis "x" is used twice (S3)}}
#sharding = #spmd.sharding<#mesh, [{"x"}], replicated = {"x"}>

// -----

#mesh = #spmd.mesh<["z"=8]>
// S3: digits (1)4 and (2)4 of 8 share the middle one.
// expected-error @below {{axis "z" is used twice (S3)}}
#sharding = #spmd.sharding<#mesh, [{"z":(1)4}, {"z":(2)4}]>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// S4: 3 does not divide 4.
// expected-error @below {{sub-axis "y":(1)3 does not divide the axis of size 4 (S4)}}
#sharding = #spmd.sharding<#mesh, [{"y":(1)3}]>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// S4: nor does 2 * 4.
// expected-error @below {{sub-axis "y":(2)4 does not divide the axis of size 4 (S4)}}
#sharding = #spmd.sharding<#mesh, [{"y":(2)4}]>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// S4: nor anything that overflows.
// expected-error @below {{sub-axis "y":(4611686018427387904)4 does not divide the axis of size 4 (S4)}}
#sharding = #spmd.sharding<#mesh, [{"y":(4611686018427387904)4}]>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// S4: a digit of one value is none.
// expected-error @below {{sub-axis "y":(4)1 does not have a size of at least 2 after a positive one (S4)}}
#sharding = #spmd.sharding<#mesh, [{"y":(4)1}]>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// S4: size 0 is not the whole axis.
// expected-error @below {{sub-axis "y":(1)0 does not have a size of at least 2 after a positive one (S4)}}
#sharding = #spmd.sharding<#mesh, [{"y":(1)0}]>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// S4: products are positive.
// expected-error @below {{sub-axis "y":(0)2 does not have a size of at least 2 after a positive one (S4)}}
#sharding = #spmd.sharding<#mesh, [{"y":(0)2}]>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#sharding = #spmd.sharding<#mesh, [{"y"}, {}]>
// S5: 6 rows on 4 ranks.
// expected-error @below {{dim 0 of size 6 does not divide into 4 shards (S5)}}
func.func private @shards_have_one_size(tensor<6x4xf32, #sharding>)

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#sharding = #spmd.sharding<#mesh, [{}, {"x", "y"}]>
// S5: 4 columns on 8 ranks.
// expected-error @below {{dim 1 of size 4 does not divide into 8 shards (S5)}}
func.func private @there_are_as_many_elements_as_shards(tensor<8x4xf32, #sharding>)

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#sharding = #spmd.sharding<#mesh, [{"x"}, {}]>
// S5: a size that is not known does not divide.
// expected-error @below {{dim 0 has no static size to shard (S5)}}
func.func private @a_sharded_dim_is_static(tensor<?x4xf32, #sharding>)

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// S6: one kind.
// expected-error @below {{partial axes have different reduction kinds (S6)}}
#sharding = #spmd.sharding<#mesh, [{}], partial = {"x": sum, "y": max}>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#sharding = #spmd.sharding<#mesh, [{}], partial = {"x": sum}>
// S6: bools have no sum.
// expected-error @below {{element type 'i1' cannot be partial with kind sum (S6)}}
func.func private @bools_have_no_sum(tensor<8xi1, #sharding>)

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#sharding = #spmd.sharding<#mesh, [{}], partial = {"x": prod}>
// S6: nor a product.
// expected-error @below {{element type 'i1' cannot be partial with kind prod (S6)}}
func.func private @bools_have_no_product(tensor<8xi1, #sharding>)

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#sharding = #spmd.sharding<#mesh, [{}], partial = {"x": max}>
// S6: what is not a number has no maximum.
// expected-error @below {{element type 'complex<f32>' cannot be partial with kind max (S6)}}
func.func private @partial_values_are_numbers(tensor<8xcomplex<f32>, #sharding>)

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// There are four kinds.
// expected-error @below {{expected sum, prod, max or min}}
#sharding = #spmd.sharding<#mesh, [{}], partial = {"x": mean}>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// And three things to say after the dims.
// expected-error @below {{expected partial, replicated or uneven}}
#sharding = #spmd.sharding<#mesh, [{}], whole = {"x"}>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// `?` comes last.
// expected-error @below {{expected '}' after '?'}}
#sharding = #spmd.sharding<#mesh, [{?, "x"}]>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
// A priority is a number.
// expected-error @below {{expected a priority such as p1}}
#sharding = #spmd.sharding<#mesh, [{"x"}first]>

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#sharding = #spmd.sharding<#mesh, [{"x"}]>
// S8: what nn ops do not compute with is not sharded.
// expected-error @below {{element type 'complex<f32>' cannot be sharded (S8)}}
func.func private @complex_numbers_are_not_sharded(tensor<8xcomplex<f32>, #sharding>)

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>
#sharding = #spmd.sharding<#mesh, [{"x"}]>
// S8: nor is what has no size.
// expected-error @below {{element type 'index' cannot be sharded (S8)}}
func.func private @indices_are_not_sharded(tensor<8xindex, #sharding>)
