// Stages that there are not, and options that say nothing.
//
// RUN: cleave-opt %s --pipe-assign-stages=stages=3 -verify-diagnostics
// RUN: not cleave-opt %s --pipe-assign-stages="stages=2 starts=*/nowhere" 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: not cleave-opt %s --pipe-assign-stages="stages=2 starts=a,b" 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not cleave-opt %s --pipe-assign-stages="stages=2 placement=ring" 2>&1 | FileCheck %s --check-prefix=RING
// RUN: not cleave-opt %s --pipe-assign-stages="stages=3 ranks=2 placement=v" 2>&1 | FileCheck %s --check-prefix=ODD
// RUN: not cleave-opt %s --pipe-assign-stages="stages=2 objective=both" 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not cleave-opt %s --pipe-assign-stages="stages=2 memory-limit=100" 2>&1 | FileCheck %s --check-prefix=MEMORY
// RUN: not cleave-opt %s --pipe-assign-stages=stages=0 2>&1 | FileCheck %s --check-prefix=NONE

// NOWHERE: error: no node after the starts before it is called '*/nowhere', at which stage 1 is to start
// COUNT: error: 2 stages have 1 starts after the first, got 2
// RING: error: 'ring' is not a placement: linear, loop, v, wave
// ODD: error: 3 stages have no placement 'v' on 2 ranks: linear has a stage on each, v two, wave an even number, loop any
// BOTH: error: 'both' is not an objective: throughput, latency
// MEMORY: error: 2 stages do not fit into 100 bytes on each rank; the least limit that would do is 128
// NONE: error: there are no 0 stages or ranks
// expected-error@+1 {{3 stages are more than the 2 parts that can be cut apart}}
func.func @two_ops(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = nn.exp %x : (tensor<16xf32>) -> tensor<16xf32>
  %1 = nn.neg %0 : (tensor<16xf32>) -> tensor<16xf32>
  return %1 : tensor<16xf32>
}
