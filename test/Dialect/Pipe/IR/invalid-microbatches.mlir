// Loops, parts, schedules and attributes that are none.
//
// RUN: cleave-opt %s --split-input-file -verify-diagnostics

func.func @part_of_other_shape(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{'pipe.part' op tensor<8x4xf32> is not 4 times tensor<3x4xf32> along dim 0}}
  %p = pipe.part %x[0] split 0 of 4 : tensor<8x4xf32> to tensor<3x4xf32>
  return
}

// -----

func.func @part_beyond(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{'pipe.part' op takes part 4 of 4 (C2)}}
  %p = pipe.part %x[4] split 0 of 4 : tensor<8x4xf32> to tensor<2x4xf32>
  return
}

// -----

func.func @part_in_blocks(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{'pipe.part' op 2 positions are not 3 blocks}}
  %p = pipe.part %x[0] split 0 of 4 blocks 3 : tensor<8x4xf32> to tensor<2x4xf32>
  return
}

// -----

func.func @join_of_other_shape(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'pipe.join' op joins 4 positions to 6 (C1)}}
  %p = pipe.join %x, %x split 0 : tensor<2x4xf32>, tensor<2x4xf32> to tensor<6x4xf32>
  return
}

// -----

func.func @join_of_other_dims(%x: tensor<2x4xf32>, %z: tensor<2x3xf32>) {
  // expected-error@+1 {{'pipe.join' op 'tensor<2x3xf32>' is not a part of 'tensor<4x4xf32>' along dim 0 (C1)}}
  %p = pipe.join %x, %z split 0 : tensor<2x4xf32>, tensor<2x3xf32> to tensor<4x4xf32>
  return
}

// -----

func.func @join_of_other_blocks(%x: tensor<2x4xf32>, %z: tensor<1x4xf32>) {
  // expected-error@+1 {{'pipe.join' op 1 positions are not 2 blocks}}
  %p = pipe.join %x, %z split 0 blocks 2 : tensor<2x4xf32>, tensor<1x4xf32> to tensor<3x4xf32>
  return
}

// -----

func.func @join_along_no_dim(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'pipe.join' op there is no dim 2}}
  %p = pipe.join %x, %x split 2 : tensor<2x4xf32>, tensor<2x4xf32> to tensor<4x4xf32>
  return
}

// -----

// Of 7 samples in 3 microbatches the first has 3, the others 2: rows are twice that.
func.func @uneven_part_of_other_size(%x: tensor<14x4xf32>) {
  // expected-error@+1 {{'pipe.part' op tensor<6x4xf32> is not what microbatch 1 of 3 has of 7 samples of tensor<14x4xf32>}}
  %p = pipe.part %x[1] split 0 of 3 samples 7 : tensor<14x4xf32> to tensor<6x4xf32>
  return
}

// -----

func.func @uneven_part_of_a_half(%x: tensor<14x4xf32>) {
  // expected-error@+1 {{'pipe.part' op tensor<5x4xf32> is not what some of 7 samples have of tensor<14x4xf32>}}
  %p = pipe.part %x split 0 of 3 samples 7 : tensor<14x4xf32> to tensor<5x4xf32>
  return
}

// -----

func.func @uneven_part_of_other_samples(%x: tensor<14x4xf32>) {
  // expected-error@+1 {{'pipe.part' op 14 positions are not 2 blocks of 4 samples}}
  %p = pipe.part %x[0] split 0 of 3 samples 4 blocks 2 : tensor<14x4xf32> to tensor<4x4xf32>
  return
}

// -----

func.func @uneven_part_of_too_few(%x: tensor<14x4xf32>) {
  // expected-error@+1 {{'pipe.part' op 2 samples are too few for 3 microbatches}}
  %p = pipe.part %x[0] split 0 of 3 samples 2 : tensor<14x4xf32> to tensor<4x4xf32>
  return
}

// -----

func.func @one_body_for_two_sizes(%x: tensor<7x4xf32>) {
  // expected-error@+1 {{'pipe.microbatches' op has one body, but microbatches of two sizes (C4)}}
  pipe.microbatches 3 samples 7 (%i = %x split 0) -> () : (tensor<7x4xf32>) -> () {
    pipe.yield
  }
  return
}

// -----

func.func @two_bodies_for_one_size(%x: tensor<6x4xf32>) {
  // expected-error@+1 {{'pipe.microbatches' op has a second body, but all microbatches are of one size (C4)}}
  pipe.microbatches 3 (%i = %x split 0) -> () : (tensor<6x4xf32>) -> () {
    pipe.yield
  } rest {
  ^bb0(%i: tensor<2x4xf32>):
    pipe.yield
  }
  return
}

// -----

func.func @second_body_of_the_larger_size(%x: tensor<7x4xf32>) {
  // expected-error@+1 {{'pipe.microbatches' op operand 0: tensor<3x4xf32> is not what microbatch 2 of 3 has of 7 samples of tensor<7x4xf32>}}
  pipe.microbatches 3 samples 7 (%i = %x split 0) -> () : (tensor<7x4xf32>) -> () {
    pipe.yield
  } rest {
  ^bb0(%i: tensor<3x4xf32>):
    pipe.yield
  }
  return
}

// -----

func.func @more_microbatches_than_samples(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'pipe.microbatches' op has 2 samples for 3 microbatches}}
  pipe.microbatches 3 samples 2 (%i = %x whole) -> () : (tensor<2x4xf32>) -> () {
    pipe.yield
  }
  return
}

// -----

func.func @sum_of_bools(%x: tensor<4xi1>) {
  // expected-error@+1 {{'pipe.accumulate' op combines 'i1' by sum (C1)}}
  %p = pipe.accumulate sum %x : tensor<4xi1>
  return
}

// -----

func.func @loop_of_other_shape(%x: tensor<7x4xf32>) {
  // expected-error@+1 {{'pipe.microbatches' op operand 0: tensor<7x4xf32> is not 2 times tensor<3x4xf32> along dim 0}}
  pipe.microbatches 2 (%i = %x split 0) -> () : (tensor<7x4xf32>) -> () {
    pipe.yield
  }
  return
}

// -----

func.func @unknown_word(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{'pipe.microbatches' op operand 0: 'halved' is none of split, whole, sum, prod, max, min}}
  pipe.microbatches 2 (%i = %x halved) -> () : (tensor<8x4xf32>) -> () {
    pipe.yield
  }
  return
}

// -----

func.func @combined_operand(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{'pipe.microbatches' op operand 0 is to be combined}}
  pipe.microbatches 2 (%i = %x sum) -> () : (tensor<8x4xf32>) -> () {
    pipe.yield
  }
  return
}

// -----

func.func @missing_result(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{'pipe.microbatches' op has 1 results, but its body yields 0 (C1)}}
  %y = pipe.microbatches 2 (%i = %x split 0) -> (split 0) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
    pipe.yield
  }
  return
}

// -----

// expected-error@+1 {{'pipe.schedule' op has 1 rows for 2 ranks (C1)}}
pipe.schedule @rows ranks 2 stages 2 microbatches 1 placement [0, 1] {
  pipe.rank 0 "0F0"
}

// -----

pipe.schedule @order ranks 2 stages 2 microbatches 1 placement [0, 1] {
  // expected-error@+1 {{'pipe.rank' op is where the row of rank 0 should be (C1)}}
  pipe.rank 1 "1F0"
  pipe.rank 0 "0F0"
}

// -----

// expected-error@+1 {{'pipe.schedule' op places a stage on rank 2 of 2 (C2)}}
pipe.schedule @placement ranks 2 stages 2 microbatches 1 placement [0, 2] {
  pipe.rank 0 "0F0"
  pipe.rank 1 "1F0"
}

// -----

// expected-error@+1 {{has "stage" as pipe.axis, which names an axis of its pipe.mesh (P1)}}
module attributes {pipe.axis = "stage", pipe.mesh = #spmd.mesh<["data"=2]>} {}

// -----

// expected-error@+1 {{has the pipeline's axis "stage" in the mesh inside of a stage (P1)}}
module attributes {pipe.axis = "stage", pipe.mesh = #spmd.mesh<["stage"=2]>, spmd.mesh = #spmd.mesh<["stage"=2]>} {}

// -----

// expected-error@+1 {{has 0 : i64 as pipe.microbatches, which is an integer of 64 bits}}
module attributes {pipe.microbatches = 0 : i64} {}

// -----

// expected-error@+1 {{has 2 : i64 as 'pipe.split' of a value of type 'tensor<4x4xf32>'; there are pipe.split, one of its dims, and pipe.index and pipe.home, numbers}}
func.func @split(%x: tensor<4x4xf32> {pipe.split = 2 : i64}) {
  return
}
