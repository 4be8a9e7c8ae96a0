// Where a function is split into stages. Rates of one flop and one byte a nanosecond make times plain: a product of
// tensors of 8x8 takes 1024 ns, an op of the same shape that reads one and writes one 512.
//
// RUN: cleave-opt %s --pipe-assign-stages="stages=2 flops-per-ns=1 bytes-per-ns=1 launch-ns=0 link-bytes-per-ns=1 link-ns=0" 2>%t.said | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID < %t.said

// Two products on each side; the parameters are of the stages that use them.
// SAID: remark: 2 stages: the slowest takes 2048 ns, no split is faster than 2048 ns
// SAID: note: stage 0: 2 ops, 2048 ns, 512 bytes of parameters, sends 256 bytes in 1 values
// SAID: note: stage 1: 2 ops, 2048 ns, 512 bytes of parameters
// CHECK-LABEL: @four_products_are_halved
// CHECK-COUNT-2: nn.einsum {{.*}}pipe.stage = 0 : i64
// CHECK-COUNT-2: nn.einsum {{.*}}pipe.stage = 1 : i64
nn.param @a : tensor<8x8xf32> = dense<0.5> : tensor<8x8xf32>
nn.param @b : tensor<8x8xf32> = dense<0.5> : tensor<8x8xf32>
func.func @four_products_are_halved(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = nn.load @a : tensor<8x8xf32>
  %b = nn.load @b : tensor<8x8xf32>
  %0 = nn.einsum %x, %a "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = nn.einsum %0, %b "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = nn.einsum %1, %a "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = nn.einsum %2, %b "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// A state stays in one stage with all between its old value and its next one: four products, and one behind them.
// SAID: remark: 2 stages: the slowest takes 4096 ns, no split is faster than 4096 ns
// SAID: note: stage 0: 4 ops
// SAID: note: stage 1: 1 ops
// CHECK-LABEL: @a_state_stays_in_one_stage
// CHECK-COUNT-4: nn.einsum {{.*}}pipe.stage = 0 : i64
// CHECK: nn.einsum {{.*}}pipe.stage = 1 : i64
func.func @a_state_stays_in_one_stage(%old: tensor<8x8xf32> {nn.name = "old"})
    -> (tensor<8x8xf32> {spmd.state = "old"}, tensor<8x8xf32>) {
  %a = nn.load @a : tensor<8x8xf32>
  %0 = nn.einsum %old, %a "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = nn.einsum %0, %a "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = nn.einsum %1, %a "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %next = nn.einsum %2, %a "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = nn.einsum %next, %a "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %next, %y : tensor<8x8xf32>, tensor<8x8xf32>
}

// Products and softmax of attention become one kernel, and are in one stage where the slowest is at most 5 % slower for it. Six products of
// 65536 ns and two of 8192, as three loops would be halved between the add and the softmax.
// CHECK-LABEL: @attention_is_parted_for_no_small_gain
// CHECK: nn.loop {{.*}}pipe.stage = 0 : i64
// CHECK: nn.einsum {{.*}}pipe.stage = [[STAGE:.]] : i64
// CHECK: nn.add {{.*}}pipe.stage = [[STAGE]] : i64
// CHECK: nn.softmax {{.*}}pipe.stage = [[STAGE]] : i64
// CHECK: nn.einsum {{.*}}pipe.stage = [[STAGE]] : i64
// CHECK: nn.loop {{.*}}pipe.stage = 1 : i64
nn.param @w : tensor<64x64xf32> = dense<0.5> : tensor<64x64xf32>
func.func @attention_is_parted_for_no_small_gain(%x: tensor<8x64xf32>, %mask: tensor<8x8xf32>) -> tensor<8x64xf32> {
  %w = nn.load @w : tensor<64x64xf32>
  %before = nn.loop count 3 carries (%x) captures (%w) : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> {
  ^bb0(%h: tensor<8x64xf32>, %v: tensor<64x64xf32>):
    %n = nn.einsum %h, %v "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    nn.yield next (%n) : (tensor<8x64xf32>) -> ()
  }
  %scores = nn.einsum %before, %before "id,jd->ij" : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x8xf32>
  %masked = nn.add %scores, %mask : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %weights = nn.softmax %masked dim 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %mixed = nn.einsum %weights, %before "ij,jd->id" : (tensor<8x8xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %after = nn.loop count 3 carries (%mixed) captures (%w) : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> {
  ^bb0(%h: tensor<8x64xf32>, %v: tensor<64x64xf32>):
    %n = nn.einsum %h, %v "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    nn.yield next (%n) : (tensor<8x64xf32>) -> ()
  }
  return %after : tensor<8x64xf32>
}

// Of four products, the gain is 6 %.
// CHECK-LABEL: @attention_is_parted_for_a_large_gain
// CHECK: nn.einsum {{.*}}pipe.stage = 0 : i64
// CHECK: nn.einsum {{.*}}pipe.stage = 1 : i64
func.func @attention_is_parted_for_a_large_gain(%x: tensor<8x64xf32>, %mask: tensor<8x8xf32>) -> tensor<8x64xf32> {
  %w = nn.load @w : tensor<64x64xf32>
  %before = nn.loop count 2 carries (%x) captures (%w) : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> {
  ^bb0(%h: tensor<8x64xf32>, %v: tensor<64x64xf32>):
    %n = nn.einsum %h, %v "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    nn.yield next (%n) : (tensor<8x64xf32>) -> ()
  }
  %scores = nn.einsum %before, %before "id,jd->ij" : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x8xf32>
  %masked = nn.add %scores, %mask : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %weights = nn.softmax %masked dim 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %mixed = nn.einsum %weights, %before "ij,jd->id" : (tensor<8x8xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %after = nn.loop count 2 carries (%mixed) captures (%w) : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> {
  ^bb0(%h: tensor<8x64xf32>, %v: tensor<64x64xf32>):
    %n = nn.einsum %h, %v "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    nn.yield next (%n) : (tensor<8x64xf32>) -> ()
  }
  return %after : tensor<8x64xf32>
}

// A loop takes its body as often as it runs: three products in a loop are one stage, two behind it the other.
// SAID: remark: 2 stages: the slowest takes 3072 ns, no split is faster than 3072 ns
// SAID: note: stage 0: 1 ops, 3072 ns, 256 bytes of parameters, sends 256 bytes in 1 values
// SAID: note: stage 1: 2 ops, 2048 ns
// CHECK-LABEL: @a_loop_is_as_long_as_its_iterations
// CHECK: nn.loop {{.*}}pipe.stage = 0 : i64
// CHECK-COUNT-2: nn.einsum {{.*}}pipe.stage = 1 : i64
func.func @a_loop_is_as_long_as_its_iterations(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = nn.load @a : tensor<8x8xf32>
  %b = nn.load @b : tensor<8x8xf32>
  %0 = nn.loop count 3 carries (%x) captures (%a) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%h: tensor<8x8xf32>, %v: tensor<8x8xf32>):
    %n = nn.einsum %h, %v "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    nn.yield next (%n) : (tensor<8x8xf32>) -> ()
  }
  %1 = nn.einsum %0, %b "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = nn.einsum %1, %b "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
