// Samples that microbatches do not divide: the program of one size, its stages for two, messages of both, and parts as slices.
//
// RUN: cleave-opt %s --pipe-microbatch="microbatches=3 uneven" | FileCheck %s
// RUN: cleave-opt %s --pipe-microbatch="microbatch-size=3 uneven" | FileCheck %s --check-prefix=SIZE
// RUN: cleave-opt %s --pipe-microbatch="microbatches=3 uneven" --pipe-split | FileCheck %s --check-prefix=SPLIT
// RUN: cleave-opt %s --pipe-microbatch="microbatches=3 uneven" --pipe-split --pipe-schedule --pipe-lower --pipe-verify-phase=phase=per-rank | FileCheck %s --check-prefix=LOWER
// RUN: cleave-opt %s --pipe-microbatch="microbatches=3 uneven" --pipe-split --pipe-schedule --pipe-lower --pipe-inline | FileCheck %s --check-prefix=INLINE

// Three times 3 or fewer.
// SIZE: pipe.microbatches = 3

#full = #spmd.mesh<["stage"=2]>
module attributes {pipe.mesh = #full, pipe.axis = "stage"} {

// 7 samples in 3, 2 and 2. A mean has of each microbatch the share that its samples are: 3/7 and 2/7 of the means.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME: tensor<3x4xf32> {{{.*}}pipe.split = 0 : i64}, %[[B:.*]]: tensor<7x4xf32> {{.*}}) -> (tensor<3x4xf32> {pipe.split = 0 : i64}, tensor<4xf32>)
// CHECK-SAME: attributes {pipe.per_shard = 3 : i64, pipe.samples = 7 : i64, pipe.shards = 1 : i64}
// CHECK: %[[E:.*]] = nn.exp %[[B]] : (tensor<7x4xf32>)
// CHECK: pipe.part %[[E]] split 0 of 3 samples 7 : tensor<7x4xf32> to tensor<3x4xf32>
// CHECK: nn.reduce mean %{{.*}} dims [0] {{.*}}: (tensor<3x4xf32>)
// CHECK: nn.constant dense<0.428571433>
// CHECK: pipe.accumulate sum

// SPLIT-LABEL: func.func private @rows.stage0(
// SPLIT: nn.neg %arg0 : (tensor<3x4xf32>) -> tensor<3x4xf32>
// SPLIT-LABEL: func.func private @rows.stage0.rest(
// SPLIT: nn.neg %arg0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
// SPLIT-LABEL: func.func private @rows.stage1(
// SPLIT: nn.reduce mean {{.*}} : (tensor<3x4xf32>) -> tensor<4xf32>
// SPLIT-LABEL: func.func private @rows.stage1.rest(
// SPLIT: %[[M:.*]] = nn.reduce mean {{.*}} : (tensor<2x4xf32>) -> tensor<4xf32>
// SPLIT: %[[TWO_THIRDS:.*]] = nn.constant dense<0.666666686>
// SPLIT: %[[N:.*]] = nn.mul %[[M]], %[[TWO_THIRDS]]
// SPLIT: %[[THREE_SEVENTHS:.*]] = nn.constant dense<0.428571433>
// SPLIT: nn.mul %[[N]], %[[THREE_SEVENTHS]]
// SPLIT-LABEL: func.func @rows(
// SPLIT-SAME: %arg0: tensor<7x4xf32> {{{.*}}pipe.split = 0 : i64}
// SPLIT: pipe.microbatches 3 samples 7 (%[[X:.*]] = %arg0 split 0, %[[P:.*]] = %{{.*}} split 0) -> (split 0, sum) : (tensor<7x4xf32>, tensor<7x4xf32>) -> (tensor<7x4xf32>, tensor<4xf32>) {
// SPLIT-NEXT: %[[H:.*]] = func.call @rows.stage0(%[[X]])
// SPLIT-NEXT: %[[Y:.*]]:2 = func.call @rows.stage1(%[[P]], %[[H]])
// SPLIT-NEXT: pipe.yield %[[Y]]#1, %[[Y]]#0 : tensor<3x4xf32>, tensor<4xf32>
// SPLIT-NEXT: } rest {
// SPLIT-NEXT: ^bb0(%[[X:.*]]: tensor<2x4xf32>, %[[P:.*]]: tensor<2x4xf32>):
// SPLIT-NEXT: %[[H:.*]] = func.call @rows.stage0.rest(%[[X]])
// SPLIT-NEXT: %[[Y:.*]]:2 = func.call @rows.stage1.rest(%[[P]], %[[H]])
// SPLIT-NEXT: pipe.yield %[[Y]]#1, %[[Y]]#0 : tensor<2x4xf32>, tensor<4xf32>

// LOWER-LABEL: func.func @rows.rank0(
// LOWER: pipe.part %arg0[0] split 0 of 3 samples 7 : tensor<7x4xf32> to tensor<3x4xf32>
// LOWER: call @rows.stage0(
// LOWER: pipe.send %{{.*}} to 1 channel 0 microbatch 0 : tensor<3x4xf32>
// LOWER: pipe.part %arg0[1] split 0 of 3 samples 7 : tensor<7x4xf32> to tensor<2x4xf32>
// LOWER: call @rows.stage0.rest(
// LOWER: pipe.send %{{.*}} to 1 channel 0 microbatch 1 : tensor<2x4xf32>
// LOWER: pipe.send %{{.*}} to 1 channel 0 microbatch 2 : tensor<2x4xf32>
// LOWER-LABEL: func.func @rows.rank1(
// LOWER: pipe.recv from 0 channel 0 microbatch 0 : tensor<3x4xf32>
// LOWER: pipe.recv from 0 channel 0 microbatch 2 : tensor<2x4xf32>
// LOWER: pipe.join {{.*}} split 0 : tensor<3x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> to tensor<7x4xf32>

// INLINE-LABEL: func.func @rows.rank0(
// INLINE: nn.slice %arg0 starts [0, 0] sizes [3, 4]
// INLINE: nn.slice %arg0 starts [3, 0] sizes [2, 4]
// INLINE: nn.slice %arg0 starts [5, 0] sizes [2, 4]
func.func @rows(%x: tensor<7x4xf32> {nn.dims = ["batch", ""]}, %b: tensor<7x4xf32> {nn.dims = ["seq", ""]}) -> (tensor<7x4xf32>, tensor<4xf32>) {
  %h = nn.neg %x {pipe.stage = 0 : i64} : (tensor<7x4xf32>) -> tensor<7x4xf32>
  %e = nn.exp %b : (tensor<7x4xf32>) -> tensor<7x4xf32>
  %y = nn.add %h, %e {pipe.stage = 1 : i64} : (tensor<7x4xf32>, tensor<7x4xf32>) -> tensor<7x4xf32>
  %m = nn.reduce mean %y dims [0] {pipe.stage = 1 : i64} : (tensor<7x4xf32>) -> tensor<4xf32>
  return %y, %m : tensor<7x4xf32>, tensor<4xf32>
}
}
