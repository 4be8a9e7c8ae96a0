// Whole values that several stages read: what takes longer to make than to send, the first of them makes, and the others get
// it before the first microbatch; what is cheap, each makes, also of what it gets. Times by the rates of pipe-assign-stages:
//
//   product     2 * 1024^3 flops at 47000 a ns and a start of 2000 ns     47691 ns
//   negation    2 * 4 MiB at 2300 bytes a ns                               3647 ns
//   message     4 MiB at 300 bytes a ns and 5000 ns                       18981 ns
//
// RUN: cleave-opt %s --pipe-split 2>/dev/null | FileCheck %s
// RUN: cleave-opt %s --pipe-split -o /dev/null 2>&1 | FileCheck %s --check-prefix=TOLD
// RUN: cleave-opt %s --pipe-split --pipe-schedule --pipe-lower --pipe-verify-phase="phase=per-rank" 2>/dev/null | FileCheck %s --check-prefix=RANKS
// RUN: sed 's/"stage"=3/"stage"=2/' %s | cleave-opt --pipe-split --pipe-schedule="schedule=circular ranks=0,1,0" --pipe-lower --pipe-verify-phase="phase=per-rank" 2>/dev/null | FileCheck %s --check-prefix=BACK

#full = #spmd.mesh<["stage"=3]>
#inner = #spmd.mesh<["device"=1]>
module attributes {pipe.mesh = #full, pipe.axis = "stage", pipe.microbatches = 2 : i64, spmd.mesh = #inner, spmd.phase = "optimized"} {

// TOLD: remark: whole value 'nn.exp', 16384 bytes, takes 14 ns to make and 5055 ns to send: stages 0, 1 each make it
// TOLD: remark: whole value 'nn.einsum', 4194304 bytes, takes 47691 ns to make and 18981 ns to send: stage 0 makes it for stages 1, 2
// TOLD: remark: whole value 'nn.neg', 4194304 bytes, takes 3647 ns to make and 18981 ns to send: stages 1, 2 each make it
// What is of a microbatch, and cheap.
// TOLD: remark: value 'nn.exp', 8192 bytes, takes 7 ns to make and 5027 ns to send: stages 0, 2 each make it
// TOLD-NOT: remark

// CHECK-LABEL: func.func private @main.before0
// CHECK: nn.einsum
// CHECK-NOT: nn.neg
// CHECK-LABEL: func.func private @main.before1(%arg0: tensor<4096xf32>, %arg1: tensor<1024x1024xf32>)
// CHECK-NOT: nn.einsum
// CHECK: nn.neg
// CHECK-LABEL: func.func private @main.before2(%arg0: tensor<1024x1024xf32>)
// CHECK-NOT: nn.einsum
// CHECK: nn.neg
// What is returned comes from the stage that made it.
// CHECK-LABEL: func.func private @main.after(%arg0: tensor<1024x1024xf32>)
// CHECK-NEXT: return %arg0
// CHECK-LABEL: func.func @main(
// CHECK: %[[A:.*]]:2 = call @main.before0
// CHECK: %[[B:.*]]:2 = call @main.before1(%{{.*}}, %[[A]]#[[DEAR:[01]]])
// CHECK: %[[C:.*]] = call @main.before2(%[[A]]#[[DEAR]])
// CHECK: pipe.microbatches
// CHECK: call @main.after(%[[A]]#[[DEAR]])

// RANKS-LABEL: func.func @main.rank0(
// RANKS: call @main.before0
// RANKS-NEXT: pipe.send %{{.*}} to 1 channel 0 microbatch -1 : tensor<1024x1024xf32>
// RANKS-NEXT: pipe.send %{{.*}} to 2 channel {{[0-9]+}} microbatch -1 : tensor<1024x1024xf32>
// RANKS: call @main.stage0
// RANKS-LABEL: func.func @main.rank1(
// RANKS: pipe.recv from 0 channel 0 microbatch -1
// RANKS-NEXT: pipe.recv from 0 channel 0 microbatch 0
// RANKS-NEXT: call @main.before1
// RANKS-LABEL: func.func @main.rank2(
// RANKS: pipe.recv from 0 channel {{[0-9]+}} microbatch -1
// RANKS-NOT: microbatch -1
// RANKS: call @main.stage2
// RANKS-LABEL: func.func @main(

// A rank has it once for all of its stages.
// BACK-LABEL: func.func @main.rank0(
// BACK: call @main.before0
// BACK-NEXT: pipe.send %{{.*}} to 1 channel 0 microbatch -1 : tensor<1024x1024xf32>
// BACK-NOT: microbatch -1
// BACK-LABEL: func.func @main.rank1(
func.func @main(%x: tensor<2x1024xf32> {nn.name = "x", pipe.split = 0 : i64}, %t: tensor<1024x1024xf32> {nn.name = "t"},
                %m: tensor<4096xf32> {nn.name = "m"})
    -> (tensor<2x1024xf32> {nn.name = "y", pipe.split = 0 : i64}, tensor<1024x1024xf32> {nn.name = "dear"}) {
  %mask = nn.exp %m : (tensor<4096xf32>) -> tensor<4096xf32>
  %dear = nn.einsum %t, %t "ik,kj->ij" : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %cheap = nn.neg %dear : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %s = nn.exp %x {pipe.stage = 0 : i64} : (tensor<2x1024xf32>) -> tensor<2x1024xf32>
  %h = nn.einsum %s, %dear "ik,kj->ij" {pipe.stage = 0 : i64} : (tensor<2x1024xf32>, tensor<1024x1024xf32>) -> tensor<2x1024xf32>
  %a = nn.einsum %h, %mask "ik,j->ik" {pipe.stage = 0 : i64} : (tensor<2x1024xf32>, tensor<4096xf32>) -> tensor<2x1024xf32>
  %g = nn.einsum %a, %cheap "ik,kj->ij" {pipe.stage = 1 : i64} : (tensor<2x1024xf32>, tensor<1024x1024xf32>) -> tensor<2x1024xf32>
  %b = nn.einsum %g, %mask "ik,j->ik" {pipe.stage = 1 : i64} : (tensor<2x1024xf32>, tensor<4096xf32>) -> tensor<2x1024xf32>
  %y = nn.einsum %b, %cheap "ik,kj->ij" {pipe.stage = 2 : i64} : (tensor<2x1024xf32>, tensor<1024x1024xf32>) -> tensor<2x1024xf32>
  %z = nn.add %y, %s {pipe.stage = 2 : i64} : (tensor<2x1024xf32>, tensor<2x1024xf32>) -> tensor<2x1024xf32>
  return %z, %dear : tensor<2x1024xf32>, tensor<1024x1024xf32>
}
}
