// RUN: cleave-opt %s --split-input-file --verify-diagnostics --spmd-propagate

// An axis of 3 does not divide the major part of 2 x 12.
#mesh = #spmd.mesh<["x"=3]>
#x = #spmd.sharding<#mesh, [{"x"}]>
func.func @an_axis_that_does_not_divide(%a: tensor<24xf32, #x>) -> tensor<2x12xf32> {
  // expected-remark @+1 {{'nn.reshape' op is replicated over x: }}
  %0 = nn.reshape %a : (tensor<24xf32, #x>) -> tensor<2x12xf32>
  return %0 : tensor<2x12xf32>
}


// -----

// An annotation for terms splits what is summed over where it can.
#mesh = #spmd.mesh<["x"=2]>
#terms = #spmd.sharding<#mesh, [{}, {}], partial = {"x": sum}>
func.func @terms_of_a_sum_that_does_not_divide(%a: tensor<8x15xf32>, %w: tensor<15x8xf32>) -> tensor<8x8xf32, #terms> {
  // expected-remark @+1 {{'nn.einsum' op is replicated over x: size 15 does not divide}}
  %0 = nn.einsum %a, %w "ik,kj->ij" : (tensor<8x15xf32>, tensor<15x8xf32>) -> tensor<8x8xf32, #terms>
  return %0 : tensor<8x8xf32, #terms>
}

// -----

// What nn ops do not compute with has no price.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  // expected-error @+1 {{value of type 'tensor<4xvector<2xf32>>' cannot be sharded: its elements are not numbers of nn (S8)}}
  func.func @a_tensor_of_vectors(%a: tensor<4xvector<2xf32>>) -> tensor<4xvector<2xf32>> {
    return %a : tensor<4xvector<2xf32>>
  }
}

// -----

// Costs are counted in 64 bits.
#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}, {}]>
// expected-error @+1 {{is too large to be sharded: extents multiply to more than 2^40}}
func.func @a_tensor_without_price(%a: tensor<4194304x4194304xf32, #x>) -> tensor<4194304x4194304xf32> {
  %0 = nn.neg %a : (tensor<4194304x4194304xf32, #x>) -> tensor<4194304x4194304xf32>
  return %0 : tensor<4194304x4194304xf32>
}

// -----

// Sub-axes (1)2 and (1)3 of an axis of 6 cannot both be digits of it.
#mesh = #spmd.mesh<["x"=6]>
#two = #spmd.sharding<#mesh, [{"x":(1)2}]>
#three = #spmd.sharding<#mesh, [{"x":(1)3}]>
// expected-error @+1 {{sub-axes of mesh axis "x" of size 6 need borders at 2 and 3, which exclude each other}}
module {
  func.func @sub_axes_that_exclude_each_other(%a: tensor<6xf32, #two>, %b: tensor<6xf32, #three>) {
    return
  }
}

// -----

#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
func.func @an_op_without_a_rule(%a: tensor<8xf32, #x>) -> tensor<8xf32> {
  // expected-error @+1 {{'func.call' op has no sharding rule: nn-inline-calls comes first}}
  %0 = func.call @other(%a) : (tensor<8xf32, #x>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @other(tensor<8xf32, #x>) -> tensor<8xf32>
