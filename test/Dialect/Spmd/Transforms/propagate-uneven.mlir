// Which axes split what they do not divide, and where: those of an annotation that says so, wherever they come, where a dim is one factor.
//
// RUN: cleave-opt %s --split-input-file --spmd-propagate --verify-diagnostics | FileCheck %s

// 10 rows on 4 ranks, through every op that has them.
#mesh = #spmd.mesh<["x"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}], uneven>
// CHECK-DAG: #[[ROWS:.*]] = #spmd.sharding<#mesh, [{"x"}, {}], uneven>
// CHECK-LABEL: @axes_of_the_annotation
// CHECK-SAME: %arg0: tensor<10x16xf32, #[[ROWS]]>
func.func @axes_of_the_annotation(%x: tensor<10x16xf32, #rows>, %w: tensor<16x7xf32>) -> tensor<10x7xf32> {
  // CHECK: nn.einsum {{.*}} -> tensor<10x7xf32, #[[ROWS]]>
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<10x16xf32, #rows>, tensor<16x7xf32>) -> tensor<10x7xf32>
  // CHECK: nn.tanh {{.*}} -> tensor<10x7xf32, #[[ROWS]]>
  %1 = nn.tanh %0 : (tensor<10x7xf32>) -> tensor<10x7xf32>
  return %1 : tensor<10x7xf32>
}

// -----

// What divides is no uneven type, whatever the annotation says.
#mesh = #spmd.mesh<["x"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}], uneven>
// CHECK: #[[EVEN:.*]] = #spmd.sharding<#mesh, [{"x"}, {}]>
// CHECK-LABEL: @what_divides_is_even
// CHECK-SAME: %arg0: tensor<8x16xf32, #[[EVEN]]>
func.func @what_divides_is_even(%x: tensor<8x16xf32, #rows>) -> tensor<8x16xf32> {
  // CHECK: nn.tanh {{.*}} -> tensor<8x16xf32, #[[EVEN]]>
  %0 = nn.tanh %x : (tensor<8x16xf32, #rows>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// 9 heads of 4 on 4 ranks are 3 heads each, and 36 columns are 9 each: neighbors send what is missing.
#mesh = #spmd.mesh<["x"=4]>
#cols = #spmd.sharding<#mesh, [{}, {"x"}], uneven>
// CHECK-LABEL: @parts_of_a_dim_do_not_line_up
func.func @parts_of_a_dim_do_not_line_up(%x: tensor<3x36xf32, #cols>) -> tensor<3x9x4xf32> {
  // CHECK: nn.reshape {{.*}} -> tensor<3x9x4xf32, #replicated_x_replicated>
  // expected-remark @below {{departs from the plan: 108 bytes a rank instead of 324}}
  // expected-remark @below {{sends 108 bytes a rank where 88 would do: that follows the plan}}
  %0 = nn.reshape %x : (tensor<3x36xf32, #cols>) -> tensor<3x9x4xf32>
  return %0 : tensor<3x9x4xf32>
}

// -----

// Of one row there is no factor: a constant is made whole, and the first rank has it behind that.
#mesh = #spmd.mesh<["x"=2]>
#row = #spmd.sharding<#mesh, [{"x"}, {}], uneven>
// CHECK: #[[ROW:.*]] = #spmd.sharding<#mesh, [{"x"}, {}], uneven>
// CHECK-LABEL: @one_row_is_made_whole
func.func @one_row_is_made_whole(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  // CHECK: nn.constant {{.*}}spmd.results = [#replicated_replicated]{{.*}} -> tensor<1x4xf32, #[[ROW]]>
  %0 = nn.constant dense<[[1.0, 2.0, 3.0, 4.0]]> : tensor<1x4xf32> -> tensor<1x4xf32, #row>
  %1 = nn.add %x, %0 : (tensor<1x4xf32>, tensor<1x4xf32, #row>) -> tensor<1x4xf32>
  return %1 : tensor<1x4xf32>
}

// -----

// Nor is there one of no row.
#mesh = #spmd.mesh<["x"=2]>
#row = #spmd.sharding<#mesh, [{"x"}, {}]>
// CHECK: #[[ROW:.*]] = #spmd.sharding<#mesh, [{"x"}, {}]>
// CHECK-LABEL: @no_row_is_made_whole
func.func @no_row_is_made_whole(%x: tensor<0x4xf32>) -> tensor<0x4xf32> {
  // CHECK: nn.constant {{.*}}spmd.results = [#replicated_replicated]{{.*}} -> tensor<0x4xf32, #[[ROW]]>
  %0 = nn.constant dense<> : tensor<0x4xf32> -> tensor<0x4xf32, #row>
  %1 = nn.add %x, %0 : (tensor<0x4xf32>, tensor<0x4xf32, #row>) -> tensor<0x4xf32>
  return %1 : tensor<0x4xf32>
}
