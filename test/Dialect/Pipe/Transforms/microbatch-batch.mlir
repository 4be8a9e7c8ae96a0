// Which dim of which input is the batch: by a line, by what the model calls it, by sizes.
//
// RUN: cleave-opt %s --split-input-file --pipe-microbatch=microbatches=2 | FileCheck %s
// RUN: cleave-opt %s --split-input-file --pipe-microbatch="microbatches=2 batch=x=1,{mask,same}=none" | FileCheck %s --check-prefix=LINES
// RUN: not cleave-opt %s --pipe-microbatch="microbatches=2 batch=y=0" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not cleave-opt %s --pipe-microbatch="microbatches=2 batch=mask=2" 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: not cleave-opt %s --pipe-microbatch="microbatches=2 batch=mask=0,m*=1" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not cleave-opt %s --pipe-microbatch="microbatches=2 batch=lengths=0" 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not cleave-opt %s --pipe-microbatch="microbatches=2 batch=x" 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not cleave-opt %s --pipe-microbatch="microbatches=2 microbatch-size=2" 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not cleave-opt %s --pipe-microbatch 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not cleave-opt %s --pipe-microbatch=microbatch-size=3 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not cleave-opt %s --pipe-microbatch="microbatches=5 uneven" 2>&1 | FileCheck %s --check-prefix=UNEVEN
// RUN: cleave-opt %s --pipe-microbatch=microbatches=1 | FileCheck %s --check-prefix=ONE

// NAME: error: no input is called 'y'; did you mean 'x'?
// DIM: error: the batch of 'mask' is to be dim 2, but it has 2 dims
// TWICE: error: two lines say where 'mask' has its batch
// TWICE: note: the other one is here
// VALUE: error: 'lengths' has no batch: shapes of the model were computed from its elements
// WORD: error: expected an input and its batch dim, such as input_ids=0 or mask=none, got 'x'
// BOTH: error: either microbatches or microbatch-size is a number above 0
// SIZE: error: the batch of 'x' has 4 samples, which is not a multiple of microbatches of 3; 2 or 4 would do, or 'uneven: true' in 'pipeline:' (P4)
// UNEVEN: error: the batch of 'x' has 4 samples, too few for 5 microbatches (P4)

// The model names dims: one of them says "batch", so inputs with other names are invariant. One without names goes by its size,
// one that shapes depend on by nothing.
// CHECK-LABEL: @named(
// CHECK-SAME: tensor<2x4xf32> {nn.dims = ["Batch_size", ""], nn.name = "x", pipe.split = 0 : i64}
// CHECK-SAME: tensor<4x4xf32> {nn.dims = ["seq", "seq"], nn.name = "mask"}
// CHECK-SAME: tensor<2xf32> {nn.name = "same", pipe.split = 0 : i64}
// CHECK-SAME: tensor<3xf32> {nn.name = "other"}
// CHECK-SAME: tensor<4xi64> {nn.name = "lengths", nn.value
// LINES-LABEL: @named(
// LINES-SAME: tensor<4x2xf32> {nn.dims = ["Batch_size", ""], nn.name = "x", pipe.split = 1 : i64}
// LINES-SAME: tensor<4x4xf32> {nn.dims = ["seq", "seq"], nn.name = "mask"}
// LINES-SAME: tensor<4xf32> {nn.name = "same"}
// ONE: module attributes {pipe.microbatches = 1 : i64}
// ONE-LABEL: @named(
// ONE-NOT: pipe.split
func.func @named(%x: tensor<4x4xf32> {nn.name = "x", nn.dims = ["Batch_size", ""]},
                 %mask: tensor<4x4xf32> {nn.name = "mask", nn.dims = ["seq", "seq"]}, %same: tensor<4xf32> {nn.name = "same"},
                 %other: tensor<3xf32> {nn.name = "other"},
                 %lengths: tensor<4xi64> {nn.name = "lengths", nn.value = dense<[1, 2, 3, 4]> : tensor<4xi64>}) -> tensor<4x4xf32> {
  return %x : tensor<4x4xf32>
}

// -----

// No name says "batch": dim 0 of all inputs that have one.
// CHECK-LABEL: @by_size(
// CHECK-SAME: tensor<3x4xf32> {nn.dims = ["n", "m"], nn.name = "x", pipe.split = 0 : i64}
// CHECK-SAME: tensor<3x2xf32> {nn.name = "same", pipe.split = 0 : i64}
// CHECK-SAME: tensor<1x4xf32> {nn.name = "mask"}
// CHECK-SAME: tensor<f32>)
// LINES-LABEL: @by_size(
// LINES-SAME: tensor<6x2xf32> {nn.dims = ["n", "m"], nn.name = "x", pipe.split = 1 : i64}
// LINES-SAME: tensor<6x2xf32> {nn.name = "same"}
func.func @by_size(%x: tensor<6x4xf32> {nn.name = "x", nn.dims = ["n", "m"]}, %y: tensor<6x2xf32> {nn.name = "same"},
                   %mask: tensor<1x4xf32> {nn.name = "mask"}, %s: tensor<f32>) -> tensor<6x4xf32> {
  return %x : tensor<6x4xf32>
}
