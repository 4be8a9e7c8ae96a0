// Every op with a rule gets a remark, functions and returns do not, and the program stays as it is.
//
// RUN: cleave-opt %s --spmd-print-rules 2>/dev/null | FileCheck %s
// RUN: cleave-opt %s --spmd-print-rules -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// CHECK-LABEL: @rules_are_printed_in_program_order
// CHECK-SAME: (%[[A:.*]]: tensor<8x16xf32>, %[[B:.*]]: tensor<16x4xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[C:.*]] = nn.einsum %[[A]], %[[B]] "ik,kj->ij"
// CHECK-NEXT: %[[D:.*]] = nn.reduce max %[[C]] dims [1]
// CHECK-NEXT: return %[[D]]

// REMARK-NOT: remark
// REMARK: remark: ([i,j],[j,k])->([i,k]) {i=8,j=16,k=4} reduce={j} linear(sum)={0} linear(sum)={1}
// REMARK-NOT: remark
// REMARK: remark: ([i,j])->([i]) {i=8,j=4} reduce={j} linear(max)={0}
// REMARK-NOT: remark
func.func @rules_are_printed_in_program_order(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>) -> tensor<8xf32> {
  %c = nn.einsum %a, %b "ik,kj->ij" : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %d = nn.reduce max %c dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  return %d : tensor<8xf32>
}
