// What the loop gives back, where one value of a microbatch is several results.
//
// RUN: cleave-opt %s --pipe-split | FileCheck %s

#full = #spmd.mesh<["stage"=2]>
#inner = #spmd.mesh<["device"=1]>
module attributes {pipe.mesh = #full, pipe.axis = "stage", pipe.microbatches = 4 : i64, spmd.mesh = #inner, spmd.phase = "optimized"} {
// Rows one below the other are 4x4, rows side by side 1x16: of one row they are the same, so the value is handed out twice, and
// a third time nothing new.
// CHECK-LABEL: func.func @rows_below_and_beside_each_other
// CHECK: %[[Y:.*]]:2 = pipe.microbatches 4 {{.*}} -> (split 0, split 1)
// CHECK: %[[H:.*]] = func.call @rows_below_and_beside_each_other.stage1
// CHECK-NEXT: pipe.yield %[[H]], %[[H]]
// CHECK: return %[[Y]]#0, %[[Y]]#1, %[[Y]]#0 : tensor<4x4xf32>, tensor<1x16xf32>, tensor<4x4xf32>
func.func @rows_below_and_beside_each_other(%x: tensor<1x4xf32> {pipe.split = 0 : i64, spmd.global = tensor<1x4xf32>})
    -> (tensor<1x4xf32> {pipe.split = 0 : i64, spmd.global = tensor<1x4xf32>},
        tensor<1x4xf32> {pipe.split = 1 : i64, spmd.global = tensor<1x4xf32>},
        tensor<1x4xf32> {pipe.split = 0 : i64, spmd.global = tensor<1x4xf32>}) {
  %0 = nn.exp %x {pipe.stage = 0 : i64} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %1 = nn.neg %0 {pipe.stage = 1 : i64} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %1, %1, %1 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>
}
}
