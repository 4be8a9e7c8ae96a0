// RUN: cleave-opt %s --nn-look-up-first | FileCheck %s

#mesh = #spmd.mesh<["data"=2]>
#cut = #spmd.sharding<#mesh, [{"data"}, {}]>
#rows = #spmd.annotation<#cut, loc("p.yaml":3:5), loc("p.yaml":3:14)>

// Rows are found as bytes, and only these become floats.
// CHECK-LABEL: @rows_are_found_before_they_are_scaled
// CHECK: %[[FOUND:.*]] = nn.gather %arg0, %arg1 dim 0 {{.*}} -> tensor<2x4x8xi8>
// CHECK-NEXT: nn.dequantize %[[FOUND]], %{{.*}}, %{{.*}} dim 0 {{.*}} -> tensor<2x4x8xf32>
// CHECK-NEXT: return
func.func @rows_are_found_before_they_are_scaled(%q: tensor<100x8xi8>, %i: tensor<2x4xi64>, %s: tensor<f32>, %z: tensor<i8>) -> tensor<2x4x8xf32> {
  %t = nn.dequantize %q, %s, %z dim 0 : (tensor<100x8xi8>, tensor<f32>, tensor<i8>) -> tensor<100x8xf32>
  %y = nn.gather %t, %i dim 0 : (tensor<100x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// A scale by columns stays what it is, along the dim that columns have then.
// CHECK-LABEL: @scales_by_column_stay
// CHECK: %[[FOUND:.*]] = nn.gather %arg0
// CHECK-NEXT: nn.dequantize %[[FOUND]], %arg2 dim 2 {{.*}} -> tensor<2x4x8xf32>
func.func @scales_by_column_stay(%q: tensor<100x8xi8>, %i: tensor<2x4xi64>, %s: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %t = nn.dequantize %q, %s dim 1 : (tensor<100x8xi8>, tensor<8xf32>) -> tensor<100x8xf32>
  %y = nn.gather %t, %i dim 0 : (tensor<100x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// Each row has its own scale and zero: both are looked up too.
// CHECK-LABEL: @scales_by_row_are_looked_up
// CHECK-DAG: %[[FOUND:.*]] = nn.gather %arg0, %arg1 dim 0 {{.*}} -> tensor<2x4x8xui8>
// CHECK-DAG: %[[SCALE:.*]] = nn.gather %arg2, %arg1 dim 0 {{.*}} -> tensor<2x4xf32>
// CHECK-DAG: %[[ZERO:.*]] = nn.gather %arg3, %arg1 dim 0 {{.*}} -> tensor<2x4xui8>
// CHECK-NOT: nn.dequantize
// CHECK: nn.sub {{.*}} (tensor<2x4x8xi32>, tensor<2x4x1xi32>)
// CHECK: nn.mul {{.*}} (tensor<2x4x8xf32>, tensor<2x4x1xf32>)
// CHECK-NEXT: return
func.func @scales_by_row_are_looked_up(%q: tensor<100x8xui8>, %i: tensor<2x4xi64>, %s: tensor<100xf32>, %z: tensor<100xui8>) -> tensor<2x4x8xf32> {
  %t = nn.dequantize %q, %s, %z dim 0 : (tensor<100x8xui8>, tensor<100xf32>, tensor<100xui8>) -> tensor<100x8xf32>
  %y = nn.gather %t, %i dim 0 : (tensor<100x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// Scales by blocks of 32 rows, spelled out: place i has the scale of block i / 32, also where it counts from the end.
// CHECK-LABEL: @blocks_of_rows_have_one_scale
// CHECK-DAG: nn.gather %arg0, %arg1 dim 0 {{.*}} -> tensor<4x8xi8>
// CHECK-DAG: %[[EXTENT:.*]] = nn.constant dense<100>
// CHECK: %[[END:.*]] = nn.add %arg1, %[[EXTENT]]
// CHECK: %[[PLACES:.*]] = nn.select %{{.*}}, %[[END]], %arg1
// CHECK: %[[TIMES:.*]] = nn.constant dense<32>
// CHECK: %[[BLOCKS:.*]] = nn.div %[[PLACES]], %[[TIMES]]
// CHECK: nn.gather %{{.*}}, %[[BLOCKS]] dim 0 : (tensor<4x8xf32>, tensor<4xi64>)
// CHECK-NOT: tensor<100x8xf32>
// CHECK: return
func.func @blocks_of_rows_have_one_scale(%q: tensor<100x8xi8>, %i: tensor<4xi64>, %s: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = nn.reshape %s : (tensor<4x8xf32>) -> tensor<4x1x8xf32>
  %1 = nn.broadcast %0 : (tensor<4x1x8xf32>) -> tensor<4x32x8xf32>
  %2 = nn.reshape %1 : (tensor<4x32x8xf32>) -> tensor<128x8xf32>
  %3 = nn.slice %2 starts [0, 0] sizes [100, 8] steps [1, 1] : (tensor<128x8xf32>) -> tensor<100x8xf32>
  %4 = nn.cast %q : (tensor<100x8xi8>) -> tensor<100x8xf32>
  %t = nn.mul %4, %3 : (tensor<100x8xf32>, tensor<100x8xf32>) -> tensor<100x8xf32>
  %y = nn.gather %t, %i dim 0 : (tensor<100x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// A table that is stored transposed is looked up by columns.
// CHECK-LABEL: @a_transposed_table_is_looked_up_by_columns
// CHECK: %[[FOUND:.*]] = nn.gather %arg0, %arg1 dim 1 {{.*}} -> tensor<8x2x4xi8>
// CHECK-NEXT: %[[WIDE:.*]] = nn.dequantize %[[FOUND]], %arg2 dim 0
// CHECK-NEXT: nn.transpose %[[WIDE]] [1, 2, 0]
func.func @a_transposed_table_is_looked_up_by_columns(%q: tensor<8x100xi8>, %i: tensor<2x4xi64>, %s: tensor<f32>) -> tensor<2x4x8xf32> {
  %0 = nn.dequantize %q, %s dim 0 : (tensor<8x100xi8>, tensor<f32>) -> tensor<8x100xf32>
  %t = nn.transpose %0 [1, 0] : (tensor<8x100xf32>) -> tensor<100x8xf32>
  %y = nn.gather %t, %i dim 0 : (tensor<100x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// One row, by a scalar: its dim goes.
// CHECK-LABEL: @one_row_loses_its_dim
// CHECK: %[[FOUND:.*]] = nn.gather %arg0, %arg1 dim 0 {{.*}} -> tensor<8xf16>
// CHECK: nn.cast %[[FOUND]] {{.*}} -> tensor<8xf32>
// CHECK: nn.reshape %arg2 : (tensor<1x8xf32>) -> tensor<8xf32>
func.func @one_row_loses_its_dim(%q: tensor<100x8xf16>, %i: tensor<i64>, %s: tensor<1x8xf32>) -> tensor<8xf32> {
  %0 = nn.cast %q : (tensor<100x8xf16>) -> tensor<100x8xf32>
  %t = nn.mul %0, %s : (tensor<100x8xf32>, tensor<1x8xf32>) -> tensor<100x8xf32>
  %y = nn.gather %t, %i dim 0 : (tensor<100x8xf32>, tensor<i64>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// Tied weights: the product keeps a table of its own.
// CHECK-LABEL: @a_product_with_the_same_table_keeps_it
// CHECK-DAG: %[[TABLE:.*]] = nn.dequantize %arg0, %arg2 dim 0 {{.*}} -> tensor<100x8xf32>
// CHECK-DAG: nn.gather %arg0, %arg1 dim 0
// CHECK: nn.einsum %{{.*}}, %[[TABLE]]
func.func @a_product_with_the_same_table_keeps_it(%q: tensor<100x8xi8>, %i: tensor<4xi64>, %s: tensor<f32>) -> tensor<4x100xf32> {
  %t = nn.dequantize %q, %s dim 0 : (tensor<100x8xi8>, tensor<f32>) -> tensor<100x8xf32>
  %x = nn.gather %t, %i dim 0 : (tensor<100x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %y = nn.einsum %x, %t "nh,vh->nv" : (tensor<4x8xf32>, tensor<100x8xf32>) -> tensor<4x100xf32>
  return %y : tensor<4x100xf32>
}

// More rows are asked for than there are: each is computed once.
// CHECK-LABEL: @a_small_table_is_computed_once
// CHECK: nn.dequantize %arg0
// CHECK-NEXT: nn.gather
func.func @a_small_table_is_computed_once(%q: tensor<4x8xi8>, %i: tensor<5xi64>, %s: tensor<f32>) -> tensor<5x8xf32> {
  %t = nn.dequantize %q, %s dim 0 : (tensor<4x8xi8>, tensor<f32>) -> tensor<4x8xf32>
  %y = nn.gather %t, %i dim 0 : (tensor<4x8xf32>, tensor<5xi64>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// What is as wide before is looked up where it is, and so is what a plan names.
// CHECK-LABEL: @nothing_is_won_where_the_table_is_as_wide
// CHECK: nn.exp
// CHECK-NEXT: nn.gather
// CHECK: spmd.pin
// CHECK-NEXT: nn.gather
func.func @nothing_is_won_where_the_table_is_as_wide(%q: tensor<100x8xf32>, %r: tensor<100x8xi8>, %i: tensor<4xi64>, %s: tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %t = nn.exp %q : (tensor<100x8xf32>) -> tensor<100x8xf32>
  %y = nn.gather %t, %i dim 0 : (tensor<100x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %0 = nn.dequantize %r, %s dim 0 : (tensor<100x8xi8>, tensor<f32>) -> tensor<100x8xf32>
  %1 = spmd.pin %0 "table" wants #rows : tensor<100x8xf32>
  %z = nn.gather %1, %i dim 0 : (tensor<100x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
}
