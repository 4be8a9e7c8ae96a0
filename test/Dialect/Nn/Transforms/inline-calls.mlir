// RUN: cleave-opt %s --split-input-file --nn-inline-calls | FileCheck %s
// RUN: cleave-opt %s --split-input-file --nn-inline-calls --mlir-print-debuginfo | FileCheck %s --check-prefix=LOC

// A call becomes the body, twice where it is called twice; the private function goes.
// CHECK-LABEL: @called_twice
// CHECK-NEXT: %[[A:.*]] = nn.exp %arg0
// CHECK-NEXT: %[[B:.*]] = nn.add %[[A]], %arg1
// CHECK-NEXT: %[[C:.*]] = nn.exp %[[B]]
// CHECK-NEXT: %[[D:.*]] = nn.add %[[C]], %arg1
// CHECK-NEXT: return %[[D]]
// CHECK-NOT: @layer
func.func @called_twice(%x: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @layer(%x, %b) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = func.call @layer(%0, %b) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @layer(%x: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %0 = nn.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %1 = nn.add %0, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// Calls of calls, several results, an argument returned as it is. Public functions stay, and so do private ones that
// nobody called.
// CHECK-LABEL: @calls_of_calls
// CHECK-NEXT: %[[A:.*]] = nn.neg %arg0
// CHECK-NEXT: return %[[A]], %arg0
// CHECK-LABEL: func.func @middle
// CHECK-NEXT: %[[B:.*]] = nn.neg %arg0
// CHECK-NEXT: return %arg0, %[[B]]
// CHECK-NOT: @leaf
// CHECK-LABEL: func.func private @never_called
func.func @calls_of_calls(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0:2 = func.call @middle(%x) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#1, %0#0 : tensor<8xf32>, tensor<8xf32>
}
func.func @middle(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = func.call @leaf(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %x, %0 : tensor<8xf32>, tensor<8xf32>
}
func.func private @leaf(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = nn.neg %x : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @never_called(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// Annotations stand in types and constraints, which come along; so do the names of tensors.
// CHECK-LABEL: @annotations_survive
// CHECK-NEXT: %[[A:.*]] = nn.exp %arg0 : (tensor<8xf32, #x>) -> tensor<8xf32, #replicated_sum_x>
// CHECK-NEXT: %[[B:.*]] = spmd.constrain %[[A]] : tensor<8xf32, #replicated_sum_x> to tensor<8xf32, #replicated>
// CHECK-NEXT: return %[[B]]
// LOC-LABEL: @annotations_survive
// LOC: nn.exp {{.*}} loc(#[[NAME:.*]])
// LOC: #[[NAME]] = loc({{.*}}"hidden"
#mesh = #spmd.mesh<["x"=2]>
#x = #spmd.sharding<#mesh, [{"x"}]>
#p = #spmd.sharding<#mesh, [{}], partial = {"x": sum}>
#replicated = #spmd.sharding<#mesh, [{}]>
func.func @annotations_survive(%x: tensor<8xf32, #x>) -> tensor<8xf32, #replicated> {
  %0 = func.call @f(%x) : (tensor<8xf32, #x>) -> tensor<8xf32, #replicated>
  return %0 : tensor<8xf32, #replicated>
}
func.func private @f(%x: tensor<8xf32, #x>) -> tensor<8xf32, #replicated> {
  %0 = nn.exp %x : (tensor<8xf32, #x>) -> tensor<8xf32, #p> loc("hidden")
  %1 = spmd.constrain %0 : tensor<8xf32, #p> to tensor<8xf32, #replicated>
  return %1 : tensor<8xf32, #replicated>
}
