// RUN: cleave-opt %s --nn-group-slices | FileCheck %s

// CHECK: #[[NAMES:loc.*]] = #nn.node<"s", "Split", ["x"], {{\[\[}}"a"], ["b"]]>

// In the order of the dim, whatever the order of the slices; the annotation of a result stays.
// CHECK-LABEL: @slices_of_all_become_one_op
// CHECK-NEXT: %[[P:.*]]:3 = nn.split %arg0 dim 1 parts [2, 2, 4] : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x4xf32, #{{.*}}>)
// CHECK-NEXT: return %[[P]]#0, %[[P]]#1, %[[P]]#2
#mesh = #spmd.mesh<["x"=2]>
#ox = #spmd.sharding<#mesh, [{}, {"x"}]>
func.func @slices_of_all_become_one_op(%x: tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x4xf32, #ox>) {
  %c = nn.slice %x starts [0, 4] sizes [4, 4] steps [1, 1] : (tensor<4x8xf32>) -> tensor<4x4xf32, #ox>
  %a = nn.slice %x starts [0, 0] sizes [4, 2] steps [1, 1] : (tensor<4x8xf32>) -> tensor<4x2xf32>
  %b = nn.slice %x starts [0, 2] sizes [4, 2] steps [1, 1] : (tensor<4x8xf32>) -> tensor<4x2xf32>
  return %a, %b, %c : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x4xf32, #ox>
}

// Halves of rows, and a slice of both dims that belongs to neither.
// CHECK-LABEL: @other_slices_stay
// CHECK-NEXT: nn.split %arg0 dim 0 parts [2, 2]
// CHECK-NEXT: nn.slice %arg0 starts [0, 0] sizes [2, 4]
// CHECK-NEXT: return
func.func @other_slices_stay(%x: tensor<4x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x4xf32>) {
  %a = nn.slice %x starts [0, 0] sizes [2, 8] steps [1, 1] : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %c = nn.slice %x starts [0, 0] sizes [2, 4] steps [1, 1] : (tensor<4x8xf32>) -> tensor<2x4xf32>
  %b = nn.slice %x starts [2, 0] sizes [2, 8] steps [1, 1] : (tensor<4x8xf32>) -> tensor<2x8xf32>
  return %a, %b, %c : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x4xf32>
}

// Row 2 is in none of them.
// CHECK-LABEL: @slices_that_leave_something_stay
// CHECK-NOT: nn.split
func.func @slices_that_leave_something_stay(%x: tensor<5x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %a = nn.slice %x starts [0, 0] sizes [2, 8] steps [1, 1] : (tensor<5x8xf32>) -> tensor<2x8xf32>
  %b = nn.slice %x starts [3, 0] sizes [2, 8] steps [1, 1] : (tensor<5x8xf32>) -> tensor<2x8xf32>
  return %a, %b : tensor<2x8xf32>, tensor<2x8xf32>
}

// A token stays replicated, so that the rest would not be split with it.
// CHECK-LABEL: @a_part_of_one_position_stays
// CHECK-NOT: nn.split
func.func @a_part_of_one_position_stays(%x: tensor<5x8xf32>) -> (tensor<1x8xf32>, tensor<4x8xf32>) {
  %a = nn.slice %x starts [0, 0] sizes [1, 8] steps [1, 1] : (tensor<5x8xf32>) -> tensor<1x8xf32>
  %b = nn.slice %x starts [1, 0] sizes [4, 8] steps [1, 1] : (tensor<5x8xf32>) -> tensor<4x8xf32>
  return %a, %b : tensor<1x8xf32>, tensor<4x8xf32>
}

// Of a parameter any rank splits what it needs.
// CHECK-LABEL: @parts_of_a_parameter_stay
// CHECK-NOT: nn.split
nn.param @w : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>
func.func @parts_of_a_parameter_stay() -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %w = nn.load @w : tensor<4x8xf32>
  %a = nn.slice %w starts [0, 0] sizes [2, 8] steps [1, 1] : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %b = nn.slice %w starts [2, 0] sizes [2, 8] steps [1, 1] : (tensor<4x8xf32>) -> tensor<2x8xf32>
  return %a, %b : tensor<2x8xf32>, tensor<2x8xf32>
}

// Names of tensors are those of the parts.
// CHECK-LABEL: @parts_have_their_names
// CHECK: nn.split {{.*}} {nn.node = #[[NAMES]]}
func.func @parts_have_their_names(%x: tensor<4x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %a = nn.slice %x starts [0, 0] sizes [2, 8] steps [1, 1] {nn.node = #nn.node<"s", "Split", ["x"], [["a"]]>} : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %b = nn.slice %x starts [2, 0] sizes [2, 8] steps [1, 1] {nn.node = #nn.node<"s", "Split", ["x"], [["b"]]>} : (tensor<4x8xf32>) -> tensor<2x8xf32>
  return %a, %b : tensor<2x8xf32>, tensor<2x8xf32>
}
