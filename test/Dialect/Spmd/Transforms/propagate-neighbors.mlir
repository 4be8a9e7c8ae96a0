// Exchanges with neighbors are choices with a price: what is cheaper is done.
//
// RUN: cleave-opt %s --split-input-file --spmd-propagate --spmd-insert-reshards --spmd-partition | FileCheck %s

// A row of 256 bytes from a neighbor, and nothing else.
// CHECK-LABEL: @edges_where_they_are_small
// CHECK-NEXT: spmd.window
// CHECK-NEXT: {{%.*}} = nn.pad
// CHECK-NEXT: return
#mesh = #spmd.mesh<["x"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
func.func @edges_where_they_are_small(%a: tensor<64x64xf32, #rows>) -> tensor<68x64xf32, #rows> {
  %0 = nn.pad reflect %a low [2, 0] high [2, 0] : (tensor<64x64xf32, #rows>) -> tensor<68x64xf32, #rows>
  return %0 : tensor<68x64xf32, #rows>
}

// -----

// All is wanted at the end: 4 rows are gathered, not 8, and each rank pads them.
// CHECK-LABEL: @the_whole_where_it_is_small
// CHECK-NEXT: spmd.all_gather {{.*}} -> tensor<4x2xf32>
// CHECK-NEXT: {{%.*}} = nn.pad
// CHECK-NEXT: return
#mesh = #spmd.mesh<["x"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
func.func @the_whole_where_it_is_small(%a: tensor<4x2xf32, #rows>) -> tensor<8x2xf32, #replicated> {
  %0 = nn.pad reflect %a low [2, 0] high [2, 0] : (tensor<4x2xf32, #rows>) -> tensor<8x2xf32, #replicated>
  return %0 : tensor<8x2xf32, #replicated>
}

// -----

// The result is split along columns, along which a pad of rows costs nothing: rows are exchanged for columns before it.
// CHECK-LABEL: @another_dim_that_costs_nothing
// CHECK-NEXT: spmd.all_to_all
// CHECK-NEXT: {{%.*}} = nn.pad
// CHECK-NEXT: return
#mesh = #spmd.mesh<["x"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
#columns = #spmd.sharding<#mesh, [{}, {"x"}]>
func.func @another_dim_that_costs_nothing(%a: tensor<64x64xf32, #rows>) -> tensor<80x64xf32, #columns> {
  %0 = nn.pad reflect %a low [8, 0] high [8, 0] : (tensor<64x64xf32, #rows>) -> tensor<80x64xf32, #columns>
  return %0 : tensor<80x64xf32, #columns>
}

// -----

// So are channels for samples, where these are wanted.
// CHECK-LABEL: @samples_are_normalized_whole
// CHECK-NEXT: spmd.all_to_all
// CHECK-NEXT: {{%.*}} = nn.lrn
// CHECK-NEXT: return
#mesh = #spmd.mesh<["x"=4]>
#samples = #spmd.sharding<#mesh, [{"x"}, {}]>
#channels = #spmd.sharding<#mesh, [{}, {"x"}]>
func.func @samples_are_normalized_whole(%a: tensor<16x16xf32, #channels>) -> tensor<16x16xf32, #samples> {
  %0 = nn.lrn %a size 5 alpha 1.0e-1 beta 0.75 k 1.0 : (tensor<16x16xf32, #channels>) -> tensor<16x16xf32, #samples>
  return %0 : tensor<16x16xf32, #samples>
}

// -----

// Of aligned corners few samples are wanted, and of rows that ranks have: 0, 21, 42 and 63 of 64.
// CHECK-LABEL: @samples_of_own_rows
// CHECK-NOT: spmd.window
// CHECK-NOT: spmd.all
// CHECK: nn.gather
// CHECK: return
#mesh = #spmd.mesh<["x"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
func.func @samples_of_own_rows(%a: tensor<64x64xf32, #rows>) -> tensor<4x64xf32, #rows> {
  %0 = nn.resize linear %a coordinates align_corners rounding floor scales [0.0625, 1.0] : (tensor<64x64xf32, #rows>) -> tensor<4x64xf32, #rows>
  return %0 : tensor<4x64xf32, #rows>
}

// -----

// A choice of parts is taken together: two of them are split alike, and so the third is.
// CHECK-LABEL: @parts_are_joined_or_gathered_together
// CHECK: %[[OWN:.*]] = nn.concat
// CHECK-NEXT: spmd.join %[[OWN]] dim 0 parts [16, 16, 32] over {"x"}
// CHECK-NEXT: return
#mesh = #spmd.mesh<["x"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
func.func @parts_are_joined_or_gathered_together(%a: tensor<16x8xf32, #rows>, %b: tensor<16x8xf32, #rows>, %c: tensor<32x8xf32>) -> tensor<64x8xf32, #rows> {
  %0 = nn.concat %a, %b, %c dim 0 : (tensor<16x8xf32, #rows>, tensor<16x8xf32, #rows>, tensor<32x8xf32>) -> tensor<64x8xf32, #rows>
  return %0 : tensor<64x8xf32, #rows>
}
