// Padding, of all ranks together. Figures worked out by hand:
//
//   x and y   f32 5x4, rows on 4 ranks: 2 on each, 128 B of which there are 80: 48 B of padding, 3/8
//   w and z   f32 4x10, columns: 3 on each, 192 B of which there are 160: 32 B, 1/6
//   outputs   80 of 320 B, and so of all values: these, and the operands that they are computed from
//
// RUN: cleave shard %s --report %t.json -o %t.mlir | FileCheck %s --check-prefix=TABLE
// RUN: FileCheck %s < %t.json
// The same once memory is planned.
// RUN: cleave shard %s --emit planned --report %t.planned.json -o %t.planned.mlir
// RUN: FileCheck %s < %t.planned.json
// RUN: cleave explain %s | FileCheck %s --check-prefix=EXPLAIN
// RUN: cleave run %s --check --executor=program | FileCheck %s --check-prefix=EQUAL

// TABLE: padding of all ranks: 32 B (16.7 %) of parameters, 48 B (37.5 %) of inputs, 80 B (25.0 %) of outputs, 160 B (25.0 %) of values
// EXPLAIN: [x, _]
// EQUAL: check {{.*}}: ok

// CHECK: "padding": {
// CHECK-NEXT: "parameters": {
// CHECK-NEXT: "bytes": 32,
// CHECK-NEXT: "share": 0.1666
// CHECK: "inputs": {
// CHECK-NEXT: "bytes": 48,
// CHECK-NEXT: "share": 0.375
// CHECK: "outputs": {
// CHECK-NEXT: "bytes": 80,
// CHECK-NEXT: "share": 0.25
// CHECK: "values": {
// CHECK-NEXT: "bytes": 160,
// CHECK-NEXT: "share": 0.25
#mesh = #spmd.mesh<["x"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}], uneven>
#cols = #spmd.sharding<#mesh, [{}, {"x"}], uneven>
module attributes {spmd.mesh = #mesh} {
  nn.param @w : tensor<4x10xf32> = dense<1.5> : tensor<4x10xf32>
  // CHECK-LABEL: "seconds"
  func.func @main(%x: tensor<5x4xf32, #rows> {nn.name = "x"}) -> (tensor<5x4xf32, #rows> {nn.name = "y"}, tensor<4x10xf32, #cols> {nn.name = "z"}) {
    %w = nn.load @w : tensor<4x10xf32, #cols>
    %y = nn.relu %x : (tensor<5x4xf32, #rows>) -> tensor<5x4xf32, #rows>
    %z = nn.exp %w : (tensor<4x10xf32, #cols>) -> tensor<4x10xf32, #cols>
    return %y, %z : tensor<5x4xf32, #rows>, tensor<4x10xf32, #cols>
  }
}
