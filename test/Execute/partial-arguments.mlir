// An argument may arrive in terms, as some other program left it: the ranks of a group hold tensors that combine to its
// value. A linear op takes it as it is; any other waits for the reduction. Constants and parameters are replicated, and made
// partial where that is asked.
//
//   x    8 x 8 x 4 bytes over y=2, in halves over x=2: all_reduce of 128 bytes * 2 * 1 / 2 = 128
//   n    over both axes: 16 x 8 (i64) bytes * 2 * 3 / 4 = 192
//   p    twice p is linear, and returned in terms: nothing; a weight in terms, nothing
//
// RUN: cleave run %s --check --report %t.json | FileCheck %s
// RUN: FileCheck %s --check-prefix=REPORT < %t.json
// RUN: cleave shard %s --emit propagated -o %t.mlir
// RUN: cleave run %t.mlir --check | FileCheck %s
// RUN: cleave shard %s -o %t.mlir
// RUN: cleave run %t.mlir --check | FileCheck %s --check-prefix=ALONE
// RUN: not cleave run %s --shard 'x=[x, _]' 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: cleave explain %s x | FileCheck %s --check-prefix=WHY

// CHECK-LABEL: mesh x=2, y=2 (4 ranks)
// CHECK-NEXT: 1 x all_reduce over y 4x8xf32 128 B
// CHECK-NEXT: 1 x all_reduce over x, y 16xi64 192 B
// CHECK-NEXT: sent by a rank: 320 B
// CHECK: check tanh: ok
// CHECK: check abs: ok
// CHECK: check twice: ok, largest difference 0.00e+00
// CHECK: check weight: ok
// CHECK: check constant: ok
// REPORT: "sharding": "[{x}, {}] partial {y}: sum"
// ALONE: check: copies on all ranks agree
// TWO: --shard:1:1: error: 'x' already has another sharding in the program
// TWO-NEXT: note: it is 'tensor<8x8xf32, #spmd.sharding<{{.*}}, [{"x"}, {}], partial = {"y": sum}>>
// WHY: x: f32[8, 8] [x, _] partial(y: sum)
// WHY-NEXT: dim 0 over x:
// WHY: partial over y:
// WHY-NEXT: asked for in {{.*}}partial-arguments.mlir:
#mesh = #spmd.mesh<["x"=2, "y"=2]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}], partial = {"y": sum}>
#least = #spmd.sharding<#mesh, [{}], partial = {"x": min, "y": min}>
#sums = #spmd.sharding<#mesh, [{}, {}], partial = {"x": sum, "y": sum}>
#largest = #spmd.sharding<#mesh, [{"y"}], partial = {"x": max}>
module {
  nn.param @w : tensor<8x8xf32> = dense<2.0> : tensor<8x8xf32>
  func.func @main(%x: tensor<8x8xf32, #rows> {nn.name = "x"}, %n: tensor<16xi64, #least>, %p: tensor<8x8xf32, #sums>)
      -> (tensor<8x8xf32> {nn.name = "tanh"}, tensor<16xi64> {nn.name = "abs"}, tensor<8x8xf32, #sums> {nn.name = "twice"},
          tensor<8x8xf32, #rows> {nn.name = "weight"}, tensor<4xi32, #largest> {nn.name = "constant"}) {
    %0 = nn.tanh %x : (tensor<8x8xf32, #rows>) -> tensor<8x8xf32>
    %1 = nn.abs %n : (tensor<16xi64, #least>) -> tensor<16xi64>
    %2 = nn.add %p, %p : (tensor<8x8xf32, #sums>, tensor<8x8xf32, #sums>) -> tensor<8x8xf32, #sums>
    %3 = nn.load @w : tensor<8x8xf32, #rows>
    %4 = nn.constant dense<[-3, 5, 7, -11]> : tensor<4xi32> -> tensor<4xi32, #largest>
    return %0, %1, %2, %3, %4 : tensor<8x8xf32>, tensor<16xi64>, tensor<8x8xf32, #sums>, tensor<8x8xf32, #rows>, tensor<4xi32, #largest>
  }
}
