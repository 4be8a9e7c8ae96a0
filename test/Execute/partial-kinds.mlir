// A whole value is made partial for nothing, of any kind; what ends it is what the next annotation says: an all_reduce to be
// replicated, a reduce_scatter to be split. Over four ranks, 8 x 8 x 4 = 256 bytes:
//
//   max to whole    all_reduce        256 * 2 * 3 / 4 = 384
//   min to split    reduce_scatter    256 * 3 / 4     = 192
//   max to sum      all_reduce        384: terms of a maximum are no terms of a sum
//   prod, returned  nothing
//
// RUN: cleave run %s --check | FileCheck %s --check-prefix=RAN
// RUN: cleave shard %s | FileCheck %s

// RAN: mesh x=4 (4 ranks)
// RAN-NEXT: 2 x all_reduce over x 8x8xf32 768 B
// RAN-NEXT: 1 x reduce_scatter over x 8x8xf32 192 B
// RAN-NEXT: sent by a rank: 960 B
// RAN: check whole: ok
// RAN: check cut: ok
// RAN: check sum: ok
// RAN: check prod: ok
#mesh = #spmd.mesh<["x"=4]>
#max = #spmd.sharding<#mesh, [{}, {}], partial = {"x": max}>
#min = #spmd.sharding<#mesh, [{}, {}], partial = {"x": min}>
#sum = #spmd.sharding<#mesh, [{}, {}], partial = {"x": sum}>
#prod = #spmd.sharding<#mesh, [{}, {}], partial = {"x": prod}>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
#cut = #spmd.sharding<#mesh, [{"x"}, {}]>
// CHECK-LABEL: @main
func.func @main(%a: tensor<8x8xf32, #replicated>)
    -> (tensor<8x8xf32, #replicated> {nn.name = "whole"}, tensor<8x8xf32, #cut> {nn.name = "cut"},
        tensor<8x8xf32, #sum> {nn.name = "sum"}, tensor<8x8xf32, #prod> {nn.name = "prod"}) {
  %0 = nn.tanh %a : (tensor<8x8xf32, #replicated>) -> tensor<8x8xf32>
  // CHECK-DAG: spmd.all_reduce max
  %1 = spmd.constrain %0 : tensor<8x8xf32> to tensor<8x8xf32, #max>
  %2 = spmd.constrain %1 : tensor<8x8xf32, #max> to tensor<8x8xf32, #replicated>
  // CHECK-DAG: spmd.reduce_scatter min {{.*}} dims {{\[}}{"x"}, {}]
  %3 = nn.sin %a : (tensor<8x8xf32, #replicated>) -> tensor<8x8xf32, #min>
  %4 = spmd.constrain %3 : tensor<8x8xf32, #min> to tensor<8x8xf32, #cut>
  // CHECK-DAG: spmd.all_reduce max
  %5 = nn.exp %a : (tensor<8x8xf32, #replicated>) -> tensor<8x8xf32, #max>
  %6 = spmd.constrain %5 : tensor<8x8xf32, #max> to tensor<8x8xf32, #sum>
  // CHECK-DAG: spmd.keep_on_first prod
  %7 = nn.sigmoid %a : (tensor<8x8xf32, #replicated>) -> tensor<8x8xf32, #prod>
  return %2, %4, %6, %7 : tensor<8x8xf32, #replicated>, tensor<8x8xf32, #cut>, tensor<8x8xf32, #sum>, tensor<8x8xf32, #prod>
}
