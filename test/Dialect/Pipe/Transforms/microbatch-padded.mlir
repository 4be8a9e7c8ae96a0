// A plan lets an axis split samples that it does not divide: of a microbatch these are padded inside. Callers give and get as many shards as
// divide a microbatch.
//
// RUN: cleave-opt %s --pipe-microbatch="microbatches=2 batch=x=0,unused=0" | FileCheck %s
// RUN: cleave-opt %s --pipe-microbatch="microbatches=3 batch=x=0,unused=0" | FileCheck %s --check-prefix=DIVIDED

// Of 12 samples, 6 each, axis "a" divides a microbatch, and "b" does not: callers have two shards, and each device its part of four. What
// nothing uses has no pin, which would be a rule that nothing follows.
#mesh = #spmd.mesh<["a"=2, "b"=2]>
// CHECK-DAG: #[[INSIDE:[^ ]+]] = #spmd.sharding<#mesh, [{"a", "b"}, {}], uneven>
// CHECK-DAG: #[[CALLERS:.*]] = #spmd.sharding<#mesh, [{"a"}, {}], uneven>
#rows = #spmd.sharding<#mesh, [{"a", "b"}, {}], uneven>
module attributes {spmd.mesh = #mesh} {
// CHECK-LABEL: func.func @rows(
// CHECK-SAME: %[[X:.*]]: tensor<6x4xf32> {nn.name = "x", pipe.split = 0 : i64, spmd.annotation = #spmd.annotation<#[[CALLERS]], {{[^>]*}}>, spmd.even = 0 : i64}
// CHECK-SAME: tensor<6x4xf32> {nn.name = "unused", pipe.split = 0 : i64, spmd.annotation = #spmd.annotation<#[[CALLERS]],
// CHECK-SAME: -> (tensor<6x4xf32> {nn.name = "y", pipe.split = 0 : i64, spmd.annotation = #spmd.annotation<#[[CALLERS]], {{[^>]*}}>, spmd.even = 0 : i64})
// CHECK-NEXT: %[[OWN:.*]] = spmd.pin %[[X]] "x" wants <#[[INSIDE]],
// CHECK-NEXT: %[[Y:.*]] = nn.exp %[[OWN]]
// CHECK-NEXT: %[[GIVEN:.*]] = spmd.pin %[[Y]] "y" wants <#[[INSIDE]],
// CHECK-NEXT: return %[[GIVEN]]
// DIVIDED-NOT: spmd.pin
func.func @rows(%x: tensor<12x4xf32> {nn.name = "x", spmd.annotation = #spmd.annotation<#rows, loc(unknown), loc(unknown)>}, %unused: tensor<12x4xf32> {nn.name = "unused", spmd.annotation = #spmd.annotation<#rows, loc(unknown), loc(unknown)>}) -> (tensor<12x4xf32> {nn.name = "y", spmd.annotation = #spmd.annotation<#rows, loc(unknown), loc(unknown)>}) {
  %y = nn.exp %x : (tensor<12x4xf32>) -> tensor<12x4xf32>
  return %y : tensor<12x4xf32>
}
}
