// Masks that hide keys far away become `left` of attention; what else they hide stays a mask.
//
// RUN: cleave-opt %s --nn-fold-windows | FileCheck %s
// RUN: cleave-opt %s --nn-fold-windows --exec-recognize-attention | FileCheck %s --check-prefix=LATER

// As transformers write it: j <= i and j > i - 4, from counts of their own, and 0 or the least number added.
// CHECK-LABEL: @compared_counts
func.func @compared_counts(%q: tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32> {
  %i = nn.iota dim 0 start 0 step 1 : tensor<8xi64>
  %row = nn.reshape %i : (tensor<8xi64>) -> tensor<8x1xi64>
  %column = nn.iota dim 0 start 0 step 1 : tensor<8xi64>
  %seen = nn.le %column, %row : (tensor<8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %w = nn.constant dense<4> : tensor<i64> -> tensor<i64>
  %first = nn.sub %row, %w : (tensor<8x1xi64>, tensor<i64>) -> tensor<8x1xi64>
  %near = nn.gt %column, %first : (tensor<8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %both = nn.and %seen, %near : (tensor<8x8xi1>, tensor<8x8xi1>) -> tensor<8x8xi1>
  %zero = nn.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %least = nn.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %m = nn.select %both, %zero, %least : (tensor<8x8xi1>, tensor<f32>, tensor<f32>) -> tensor<8x8xf32>
  %m4 = nn.reshape %m : (tensor<8x8xf32>) -> tensor<1x1x8x8xf32>
  // CHECK: nn.attention %arg0, %arg0, %arg0 scale 5.000000e-01 causal {left = 3 : i64} :
  %0 = nn.attention %q, %q, %q mask %m4 scale 0.5 : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x1x8x8xf32>) -> tensor<1x2x8x4xf32>
  return %0 : tensor<1x2x8x4xf32>
}

// Padding is another matter; the queries are the last 4 of 8. Beside `causal` a mask can hide no less.
// CHECK-LABEL: @beside_padding
func.func @beside_padding(%q: tensor<2x2x4x4xf32>, %k: tensor<2x2x8x4xf32>, %padding: tensor<2x1x1x8xi1>) -> tensor<2x2x4x4xf32> {
  %row = nn.iota dim 2 start 4 step 1 : tensor<1x1x4x1xi64>
  %column = nn.iota dim 3 start 0 step 1 : tensor<1x1x1x8xi64>
  %far = nn.sub %row, %column : (tensor<1x1x4x1xi64>, tensor<1x1x1x8xi64>) -> tensor<1x1x4x8xi64>
  %w = nn.constant dense<3> : tensor<i64> -> tensor<i64>
  %hidden = nn.ge %far, %w : (tensor<1x1x4x8xi64>, tensor<i64>) -> tensor<1x1x4x8xi1>
  %near = nn.not %hidden : (tensor<1x1x4x8xi1>) -> tensor<1x1x4x8xi1>
  %m = nn.and %padding, %near : (tensor<2x1x1x8xi1>, tensor<1x1x4x8xi1>) -> tensor<2x1x4x8xi1>
  // CHECK: nn.attention %arg0, %arg1, %arg1 mask %arg2 scale 5.000000e-01 causal {causalOffset = 4 : i64, left = 2 : i64} : {{.*}}, tensor<2x1x1x8xi1>)
  %0 = nn.attention %q, %k, %k mask %m scale 0.5 causal {causalOffset = 4} : (tensor<2x2x4x4xf32>, tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>, tensor<2x1x4x8xi1>) -> tensor<2x2x4x4xf32>
  return %0 : tensor<2x2x4x4xf32>
}

// A constant, with a window on both sides: it is that of a causal attention one place further.
// CHECK-LABEL: @a_constant
func.func @a_constant(%q: tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32> {
  %m = nn.constant dense<[[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]> : tensor<4x4xi1> -> tensor<4x4xi1>
  // CHECK: nn.attention %arg0, %arg0, %arg0 scale 5.000000e-01 causal {causalOffset = 1 : i64, left = 2 : i64} :
  %0 = nn.attention %q, %q, %q mask %m scale 0.5 : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<4x4xi1>) -> tensor<1x1x4x4xf32>
  return %0 : tensor<1x1x4x4xf32>
}

// What is hidden is chosen first, and not (x or y); a bias stays to be added.
// CHECK-LABEL: @hidden_first
func.func @hidden_first(%q: tensor<1x1x8x4xf32>, %bias: tensor<1x1x8x8xf32>) -> tensor<1x1x8x4xf32> {
  %row = nn.iota dim 0 start 0 step 1 : tensor<8x1xi32>
  %column = nn.iota dim 1 start 0 step 1 : tensor<1x8xi32>
  %ahead = nn.gt %column, %row : (tensor<1x8xi32>, tensor<8x1xi32>) -> tensor<8x8xi1>
  %two = nn.constant dense<2> : tensor<i32> -> tensor<i32>
  %next = nn.add %column, %two : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
  %far = nn.lt %next, %row : (tensor<1x8xi32>, tensor<8x1xi32>) -> tensor<8x8xi1>
  %hidden = nn.or %ahead, %far : (tensor<8x8xi1>, tensor<8x8xi1>) -> tensor<8x8xi1>
  %none = nn.constant dense<0xFF800000> : tensor<f32> -> tensor<f32>
  %m = nn.select %hidden, %none, %bias : (tensor<8x8xi1>, tensor<f32>, tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32>
  // CHECK: nn.attention %arg0, %arg0, %arg0 mask %arg1 scale 5.000000e-01 causal {left = 2 : i64} :
  %0 = nn.attention %q, %q, %q mask %m scale 0.5 : (tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x8xf32>) -> tensor<1x1x8x4xf32>
  return %0 : tensor<1x1x8x4xf32>
}

// Keys that are hidden by a large number beside a bias could come back where all of a row are: this stays.
// CHECK-LABEL: @a_large_number_beside_a_bias
func.func @a_large_number_beside_a_bias(%q: tensor<1x1x8x4xf32>, %bias: tensor<8x8xf32>) -> tensor<1x1x8x4xf32> {
  %row = nn.iota dim 0 start 0 step 1 : tensor<8x1xi32>
  %column = nn.iota dim 1 start 2 step 1 : tensor<1x8xi32>
  %near = nn.ge %column, %row : (tensor<1x8xi32>, tensor<8x1xi32>) -> tensor<8x8xi1>
  %least = nn.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %m = nn.select %near, %bias, %least : (tensor<8x8xi1>, tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  // CHECK: nn.attention %arg0, %arg0, %arg0 mask %{{.*}} scale 5.000000e-01 :
  %0 = nn.attention %q, %q, %q mask %m scale 0.5 : (tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<8x8xf32>) -> tensor<1x1x8x4xf32>
  return %0 : tensor<1x1x8x4xf32>
}

// What is causal alone waits for kernels; a mask of blocks is no band; nor is a count that grows by two.
// CHECK-LABEL: @no_windows
// LATER-LABEL: @no_windows
func.func @no_windows(%q: tensor<1x1x4x4xf32>) -> (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) {
  %row = nn.iota dim 0 start 0 step 1 : tensor<4x1xi64>
  %column = nn.iota dim 1 start 0 step 1 : tensor<1x4xi64>
  %causal = nn.le %column, %row : (tensor<1x4xi64>, tensor<4x1xi64>) -> tensor<4x4xi1>
  // CHECK: nn.attention %arg0, %arg0, %arg0 mask %{{.*}} scale 5.000000e-01 :
  // LATER: nn.attention %arg0, %arg0, %arg0 scale 5.000000e-01 causal :
  %0 = nn.attention %q, %q, %q mask %causal scale 0.5 : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<4x4xi1>) -> tensor<1x1x4x4xf32>
  %blocks = nn.constant dense<[[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]> : tensor<4x4xi1> -> tensor<4x4xi1>
  // CHECK: nn.attention %arg0, %arg0, %arg0 mask %{{.*}} scale 5.000000e-01 :
  // LATER: nn.attention %arg0, %arg0, %arg0 mask
  %1 = nn.attention %q, %q, %q mask %blocks scale 0.5 : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<4x4xi1>) -> tensor<1x1x4x4xf32>
  %twice = nn.iota dim 1 start 0 step 2 : tensor<1x4xi64>
  %near = nn.ge %twice, %row : (tensor<1x4xi64>, tensor<4x1xi64>) -> tensor<4x4xi1>
  // CHECK: nn.attention %arg0, %arg0, %arg0 mask %{{.*}} scale 5.000000e-01 :
  // LATER: nn.attention %arg0, %arg0, %arg0 mask
  %2 = nn.attention %q, %q, %q mask %near scale 0.5 : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<4x4xi1>) -> tensor<1x1x4x4xf32>
  return %0, %1, %2 : tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>
}
