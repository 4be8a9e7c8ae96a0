// Norms over split dims all-reduce their moments, and nothing else.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-partition | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"
// The same on four ranks of one axis.
// RUN: sed 's/"x"=2, "y"=2/"x"=4, "y"=1/' %s > %t.mlir
// RUN: %{each} %t.mlir %t.4 "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2, "y"=2]>
#xy = #spmd.sharding<#mesh, [{"x"}, {"y"}]>
#y = #spmd.sharding<#mesh, [{"y"}]>
#xoy = #spmd.sharding<#mesh, [{"x"}, {}, {"y"}]>
#o = #spmd.sharding<#mesh, [{}]>
#oXo = #spmd.sharding<#mesh, [{}, {"x", "y"}, {}]>
#X = #spmd.sharding<#mesh, [{"x", "y"}]>

//--- layer-norm.mlir
// The sum of a row gives its mean, and the sum of squared distances its variance.
// CHECK-LABEL: @a_layer_norm_reduces_two_moments
func.func @a_layer_norm_reduces_two_moments(%x: tensor<8x16xf32, #xy>, %s: tensor<16xf32, #y>) -> tensor<8x16xf32, #xy> {
  // CHECK-COUNT-2: spmd.all_reduce sum {{.*}} over {"y"} : tensor<4x1xf32>
  // CHECK-NOT: = spmd.
  // CHECK: nn.sqrt
  // CHECK-NOT: = spmd.
  %0 = nn.layer_norm %x, %s bias %s dim 1 epsilon 1.0e-5 : (tensor<8x16xf32, #xy>, tensor<16xf32, #y>, tensor<16xf32, #y>) -> tensor<8x16xf32, #xy>
  return %0 : tensor<8x16xf32, #xy>
}

//--- rms-norm.mlir
// Only the sum of squares.
// CHECK-LABEL: @an_rms_norm_reduces_one_moment
func.func @an_rms_norm_reduces_one_moment(%x: tensor<8x16xf32, #xy>, %s: tensor<16xf32, #y>) -> tensor<8x16xf32, #xy> {
  // CHECK: spmd.all_reduce sum {{.*}} over {"y"} : tensor<4x1xf32>
  // CHECK-NOT: = spmd.
  // CHECK: nn.sqrt
  // CHECK-NOT: = spmd.
  %0 = nn.rms_norm %x, %s dim 1 epsilon 1.0e-5 : (tensor<8x16xf32, #xy>, tensor<16xf32, #y>) -> tensor<8x16xf32, #xy>
  return %0 : tensor<8x16xf32, #xy>
}

//--- group-norm.mlir
// Two moments of each of two groups, where the positions of a group are split.
// CHECK-LABEL: @a_cut_group_reduces_two_moments
func.func @a_cut_group_reduces_two_moments(%h: tensor<4x8x16xf32, #xoy>, %c: tensor<8xf32, #o>) -> tensor<4x8x16xf32, #xoy> {
  // CHECK-COUNT-2: spmd.all_reduce sum {{.*}} over {"y"} : tensor<2x2x1x1xf32>
  // CHECK-NOT: = spmd.all
  // CHECK: nn.sqrt
  // CHECK-NOT: = spmd.all
  %0 = nn.group_norm %h, %c, %c groups 2 epsilon 1.0e-5 : (tensor<4x8x16xf32, #xoy>, tensor<8xf32, #o>, tensor<8xf32, #o>) -> tensor<4x8x16xf32, #xoy>
  return %0 : tensor<4x8x16xf32, #xoy>
}

//--- whole-groups.mlir
// Whole groups stay on their ranks.
// CHECK-LABEL: @whole_groups_are_local
func.func @whole_groups_are_local(%h: tensor<4x8x16xf32, #oXo>, %c: tensor<8xf32, #X>) -> tensor<4x8x16xf32, #oXo> {
  // CHECK-NEXT: nn.group_norm {{.*}} groups 1
  // CHECK-NEXT: return
  %0 = nn.group_norm %h, %c, %c groups 4 epsilon 1.0e-5 : (tensor<4x8x16xf32, #oXo>, tensor<8xf32, #X>, tensor<8xf32, #X>) -> tensor<4x8x16xf32, #oXo>
  return %0 : tensor<4x8x16xf32, #oXo>
}
