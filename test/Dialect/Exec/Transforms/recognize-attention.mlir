// Attention as exporters write it. What comes out is run beside what went in.
//
// RUN: cleave-opt %s --exec-recognize-attention | FileCheck %s
// RUN: cleave-opt %s --nn-inline-calls -o %t.parts.mlir
// RUN: cleave-opt %t.parts.mlir --exec-lower=last=outlined -o %t.mlir
// RUN: FileCheck %s --check-prefix=ALL < %t.mlir
// RUN: cleave run %t.mlir --against %t.parts.mlir | FileCheck %s --check-prefix=RAN
// ALL-NOT: nn.softmax
// RAN-COUNT-9: ok
// RAN-NOT: wrong

// BERT, GPT-2: heads are transposed, scores scaled and masked. The transposes are what is in front and behind.
// CHECK-LABEL: @bert(
func.func @bert(%x: tensor<2x6x4x8xf32>, %y: tensor<2x6x4x8xf32>, %z: tensor<2x6x4x8xf32>, %m: tensor<2x1x6x6xf32>) -> tensor<2x6x4x8xf32> {
  // CHECK-DAG: %[[Q:.*]] = nn.transpose %arg0 [0, 2, 1, 3]
  // CHECK-DAG: %[[K:.*]] = nn.transpose %arg1 [0, 2, 1, 3]
  // CHECK-DAG: %[[V:.*]] = nn.transpose %arg2 [0, 2, 1, 3]
  // CHECK: %[[A:.*]] = nn.attention %[[Q]], %[[K]], %[[V]] mask %arg3 scale 2.500000e-01 :
  // CHECK-NEXT: %[[R:.*]] = nn.transpose %[[A]] [0, 2, 1, 3]
  // CHECK-NEXT: return %[[R]]
  %c = nn.constant dense<4.0> : tensor<f32> -> tensor<f32>
  %q = nn.transpose %x [0, 2, 1, 3] : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %k = nn.transpose %y [0, 2, 3, 1] : (tensor<2x6x4x8xf32>) -> tensor<2x4x8x6xf32>
  %v = nn.transpose %z [0, 2, 1, 3] : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %0 = nn.einsum %q, %k "abmk,abkn->abmn" : (tensor<2x4x6x8xf32>, tensor<2x4x8x6xf32>) -> tensor<2x4x6x6xf32>
  %1 = nn.div %0, %c : (tensor<2x4x6x6xf32>, tensor<f32>) -> tensor<2x4x6x6xf32>
  %2 = nn.add %m, %1 : (tensor<2x1x6x6xf32>, tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %3 = nn.softmax %2 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %4 = nn.einsum %3, %v "abmk,abkn->abmn" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %5 = nn.transpose %4 [0, 2, 1, 3] : (tensor<2x4x6x8xf32>) -> tensor<2x6x4x8xf32>
  return %5 : tensor<2x6x4x8xf32>
}

// LLaMA: the root of the scale on queries and keys, one key for two heads, NaN for a query that sees nothing put right.
// CHECK-LABEL: @llama(
func.func @llama(%x: tensor<2x4x6x8xf32>, %y: tensor<2x2x6x8xf32>, %z: tensor<2x6x2x8xf32>, %m: tensor<2x1x6x6xf32>) -> tensor<2x4x6x8xf32> {
  // CHECK: %[[V:.*]] = nn.transpose %arg2 [0, 2, 1, 3]
  // CHECK: %[[A:.*]] = nn.attention %arg0, %arg1, %[[V]] mask %arg3 scale 2.500000e-01 :
  // CHECK-NEXT: return %[[A]]
  %c = nn.constant dense<0.5> : tensor<1xf32> -> tensor<1xf32>
  %zero = nn.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %q = nn.mul %x, %c : (tensor<2x4x6x8xf32>, tensor<1xf32>) -> tensor<2x4x6x8xf32>
  %k0 = nn.reshape %y : (tensor<2x2x6x8xf32>) -> tensor<2x2x1x6x8xf32>
  %k1 = nn.broadcast %k0 : (tensor<2x2x1x6x8xf32>) -> tensor<2x2x2x6x8xf32>
  %k2 = nn.transpose %k1 [0, 1, 2, 4, 3] : (tensor<2x2x2x6x8xf32>) -> tensor<2x2x2x8x6xf32>
  %k3 = nn.mul %k2, %c : (tensor<2x2x2x8x6xf32>, tensor<1xf32>) -> tensor<2x2x2x8x6xf32>
  %k = nn.reshape %k3 : (tensor<2x2x2x8x6xf32>) -> tensor<2x4x8x6xf32>
  %v0 = nn.transpose %z [0, 2, 1, 3] : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v1 = nn.reshape %v0 : (tensor<2x2x6x8xf32>) -> tensor<2x2x1x6x8xf32>
  %v2 = nn.broadcast %v1 : (tensor<2x2x1x6x8xf32>) -> tensor<2x2x2x6x8xf32>
  %v = nn.reshape %v2 : (tensor<2x2x2x6x8xf32>) -> tensor<2x4x6x8xf32>
  %0 = nn.einsum %q, %k "abmk,abkn->abmn" : (tensor<2x4x6x8xf32>, tensor<2x4x8x6xf32>) -> tensor<2x4x6x6xf32>
  %1 = nn.add %0, %m : (tensor<2x4x6x6xf32>, tensor<2x1x6x6xf32>) -> tensor<2x4x6x6xf32>
  %2 = nn.softmax %1 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %3 = nn.is_nan %2 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xi1>
  %4 = nn.select %3, %zero, %2 : (tensor<2x4x6x6xi1>, tensor<f32>, tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %5 = nn.einsum %4, %v "abmk,abkn->abmn" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %5 : tensor<2x4x6x8xf32>
}

// T5: no scale, a bias for each distance and a mask, which are added once.
// CHECK-LABEL: @t5(
func.func @t5(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %b: tensor<1x4x6x6xf32>, %m: tensor<2x1x6x6xf32>) -> tensor<2x4x6x8xf32> {
  // CHECK: %[[M:.*]] = nn.add %arg3, %arg4
  // CHECK: nn.attention %arg0, %arg1, %arg2 mask %[[M]] scale 1.000000e+00
  %0 = nn.einsum %q, %k "bhid,bhjd->bhij" : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  %1 = nn.add %0, %b : (tensor<2x4x6x6xf32>, tensor<1x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %2 = nn.add %1, %m : (tensor<2x4x6x6xf32>, tensor<2x1x6x6xf32>) -> tensor<2x4x6x6xf32>
  %3 = nn.softmax %2 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %4 = nn.einsum %3, %v "bhij,bhjd->bhid" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %4 : tensor<2x4x6x8xf32>
}

// Operands in any order: keys first, values first, heads behind, the result as the next layer wants it.
// CHECK-LABEL: @any_order(
func.func @any_order(%q: tensor<2x6x8x4xf32>, %k: tensor<4x2x5x8xf32>, %v: tensor<2x4x7x5xf32>) -> tensor<7x2x6x4xf32> {
  // CHECK-DAG: %[[Q:.*]] = nn.transpose %arg0 [0, 3, 1, 2]
  // CHECK-DAG: %[[K:.*]] = nn.transpose %arg1 [1, 0, 2, 3]
  // CHECK-DAG: %[[V:.*]] = nn.transpose %arg2 [0, 1, 3, 2]
  // CHECK: %[[A:.*]] = nn.attention %[[Q]], %[[K]], %[[V]] scale 1.000000e+00
  // CHECK-NEXT: nn.transpose %[[A]] [3, 0, 2, 1]
  %0 = nn.einsum %k, %q "hbjd,bidh->bhij" : (tensor<4x2x5x8xf32>, tensor<2x6x8x4xf32>) -> tensor<2x4x6x5xf32>
  %1 = nn.softmax %0 dim 3 : (tensor<2x4x6x5xf32>) -> tensor<2x4x6x5xf32>
  %2 = nn.einsum %v, %1 "bhej,bhij->ebih" : (tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>) -> tensor<7x2x6x4xf32>
  return %2 : tensor<7x2x6x4xf32>
}

// A causal mask that is constant is not read; one head, without a batch.
// CHECK-LABEL: @causal(
func.func @causal(%q: tensor<3x8xf32>, %k: tensor<4x8xf32>, %v: tensor<4x8xf32>) -> tensor<3x8xf32> {
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 causal {causalOffset = 1 : i64} : (tensor<1x1x3x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>)
  %m = nn.constant dense<[[0.0, 0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0, 0.0]]> : tensor<3x4xf32> -> tensor<3x4xf32>
  %0 = nn.einsum %q, %k "id,jd->ij" : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
  %1 = nn.add %0, %m : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %2 = nn.softmax %1 dim 1 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %3 = nn.einsum %2, %v "ij,jd->id" : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  return %3 : tensor<3x8xf32>
}

// The same of a parameter, as a choice between nothing and a number that excludes.
nn.param @seen : tensor<1x1x3x3xi1> = dense<[[[[true, false, false], [true, true, false], [true, true, true]]]]> : tensor<1x1x3x3xi1>
// CHECK-LABEL: @causal_by_choice(
func.func @causal_by_choice(%q: tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32> {
  // CHECK: nn.attention %arg0, %arg0, %arg0 scale 1.000000e+00 causal :
  %c = nn.load @seen : tensor<1x1x3x3xi1>
  %zero = nn.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %low = nn.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %m = nn.select %c, %zero, %low : (tensor<1x1x3x3xi1>, tensor<f32>, tensor<f32>) -> tensor<1x1x3x3xf32>
  %0 = nn.einsum %q, %q "bhid,bhjd->bhij" : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x3xf32>
  %1 = nn.add %0, %m : (tensor<1x2x3x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x2x3x3xf32>
  %2 = nn.softmax %1 dim 3 : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %3 = nn.einsum %2, %q "bhij,bhjd->bhid" : (tensor<1x2x3x3xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %3 : tensor<1x2x3x8xf32>
}

// A window of two, by comparisons of counts.
// CHECK-LABEL: @window(
func.func @window(%q: tensor<3x8xf32>, %k: tensor<3x8xf32>, %v: tensor<3x8xf32>) -> tensor<3x8xf32> {
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 causal {left = 1 : i64} : (tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32>) ->
  // CHECK-NOT: nn.softmax
  %row = nn.iota dim 0 start 0 step 1 : tensor<3x1xi64>
  %column = nn.iota dim 1 start 0 step 1 : tensor<1x3xi64>
  %two = nn.constant dense<2> : tensor<i64> -> tensor<i64>
  %far = nn.add %column, %two : (tensor<1x3xi64>, tensor<i64>) -> tensor<1x3xi64>
  %near = nn.lt %row, %far : (tensor<3x1xi64>, tensor<1x3xi64>) -> tensor<3x3xi1>
  %seen = nn.ge %row, %column : (tensor<3x1xi64>, tensor<1x3xi64>) -> tensor<3x3xi1>
  %both = nn.and %near, %seen : (tensor<3x3xi1>, tensor<3x3xi1>) -> tensor<3x3xi1>
  %none = nn.constant dense<0xFF800000> : tensor<f32> -> tensor<f32>
  %0 = nn.einsum %q, %k "id,jd->ij" : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x3xf32>
  %1 = nn.select %both, %0, %none : (tensor<3x3xi1>, tensor<3x3xf32>, tensor<f32>) -> tensor<3x3xf32>
  %2 = nn.softmax %1 dim 1 : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %3 = nn.einsum %2, %v "ij,jd->id" : (tensor<3x3xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  return %3 : tensor<3x8xf32>
}

// Nor is a constant of that form; what has gaps is.
// CHECK-LABEL: @a_window(
func.func @a_window(%q: tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32> {
  // CHECK: nn.attention %arg0, %arg0, %arg0 scale 1.000000e+00 causal {left = 1 : i64}
  %m = nn.constant dense<[[0.0, -1.0e38, -1.0e38], [0.0, 0.0, -1.0e38], [-1.0e38, 0.0, 0.0]]> : tensor<3x3xf32> -> tensor<3x3xf32>
  %0 = nn.einsum %q, %q "bhid,bhjd->bhij" : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x3xf32>
  %1 = nn.add %0, %m : (tensor<1x2x3x3xf32>, tensor<3x3xf32>) -> tensor<1x2x3x3xf32>
  %2 = nn.softmax %1 dim 3 : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %3 = nn.einsum %2, %q "bhij,bhjd->bhid" : (tensor<1x2x3x3xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %3 : tensor<1x2x3x8xf32>
}

// CHECK-LABEL: @a_gap(
func.func @a_gap(%q: tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32> {
  // CHECK: nn.attention %arg0, %arg0, %arg0 mask
  %m = nn.constant dense<[[0.0, -1.0e38, -1.0e38], [0.0, 0.0, -1.0e38], [0.0, -1.0e38, 0.0]]> : tensor<3x3xf32> -> tensor<3x3xf32>
  %0 = nn.einsum %q, %q "bhid,bhjd->bhij" : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x3xf32>
  %1 = nn.add %0, %m : (tensor<1x2x3x3xf32>, tensor<3x3xf32>) -> tensor<1x2x3x3xf32>
  %2 = nn.softmax %1 dim 3 : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %3 = nn.einsum %2, %q "bhij,bhjd->bhid" : (tensor<1x2x3x3xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %3 : tensor<1x2x3x8xf32>
}

// Scores that are replaced where they do not count; three dims, one of them heads of all samples.
// CHECK-LABEL: @replaced(
func.func @replaced(%q: tensor<8x6x8xf32>, %k: tensor<8x6x8xf32>, %v: tensor<8x6x8xf32>, %y: tensor<6x6xf32>) -> tensor<8x6x8xf32> {
  // CHECK: %[[M:.*]] = nn.select %{{.*}}, %{{.*}}, %{{.*}} : (tensor<6x6xi1>, tensor<f32>, tensor<f32>) -> tensor<6x6xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} mask %[[M]] scale 5.000000e-01
  %c = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %low = nn.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %cond = nn.lt %y, %c : (tensor<6x6xf32>, tensor<f32>) -> tensor<6x6xi1>
  %0 = nn.einsum %q, %k "hid,hjd->hij" : (tensor<8x6x8xf32>, tensor<8x6x8xf32>) -> tensor<8x6x6xf32>
  %1 = nn.mul %c, %0 : (tensor<f32>, tensor<8x6x6xf32>) -> tensor<8x6x6xf32>
  %2 = nn.select %cond, %1, %low : (tensor<6x6xi1>, tensor<8x6x6xf32>, tensor<f32>) -> tensor<8x6x6xf32>
  %3 = nn.softmax %2 dim 2 : (tensor<8x6x6xf32>) -> tensor<8x6x6xf32>
  %4 = nn.einsum %3, %v "hij,hjd->hid" : (tensor<8x6x6xf32>, tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  return %4 : tensor<8x6x8xf32>
}

// One key for all heads, repeated without a dim of its own; heads apart before they are brought in front. Queries are scaled with others,
// which are in one tensor with them.
// CHECK-LABEL: @one_key(
func.func @one_key(%q: tensor<2x4x6x8xf32>, %k: tensor<2x1x6x8xf32>, %v: tensor<2x6x1x8xf32>) -> tensor<2x4x6x8xf32> {
  // CHECK: %[[WIDE:.*]] = nn.concat %arg0, %arg0
  // CHECK: %[[Q:.*]] = nn.slice %[[WIDE]] starts [0, 0, 0, 0]
  // CHECK: nn.attention %[[Q]], %arg1, %{{.*}} scale 5.000000e-01 : (tensor<2x4x6x8xf32>, tensor<2x1x6x8xf32>, tensor<2x1x6x8xf32>)
  %half = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %all = nn.concat %q, %q dim 1 : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x8x6x8xf32>
  %scaled = nn.mul %all, %half : (tensor<2x8x6x8xf32>, tensor<f32>) -> tensor<2x8x6x8xf32>
  %q0 = nn.slice %scaled starts [0, 0, 0, 0] sizes [2, 4, 6, 8] steps [1, 1, 1, 1] : (tensor<2x8x6x8xf32>) -> tensor<2x4x6x8xf32>
  %k0 = nn.broadcast %k : (tensor<2x1x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v0 = nn.reshape %v : (tensor<2x6x1x8xf32>) -> tensor<2x6x1x1x8xf32>
  %v1 = nn.broadcast %v0 : (tensor<2x6x1x1x8xf32>) -> tensor<2x6x1x4x8xf32>
  %v2 = nn.reshape %v1 : (tensor<2x6x1x4x8xf32>) -> tensor<2x6x4x8xf32>
  %v3 = nn.transpose %v2 [0, 2, 1, 3] : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %0 = nn.einsum %q0, %k0 "bhid,bhjd->bhij" : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  %1 = nn.softmax %0 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %2 = nn.einsum %1, %v3 "bhij,bhjd->bhid" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %2 : tensor<2x4x6x8xf32>
}

// CHECK-LABEL: @main(
// CHECK-COUNT-9: call @
func.func @main(%a0: tensor<2x6x4x8xf32>, %a1: tensor<2x6x4x8xf32>, %a2: tensor<2x6x4x8xf32>, %a3: tensor<2x1x6x6xf32>, %a4: tensor<2x4x6x8xf32>, %a5: tensor<2x2x6x8xf32>, %a6: tensor<2x6x2x8xf32>, %a7: tensor<2x1x6x6xf32>, %a8: tensor<2x4x6x8xf32>, %a9: tensor<2x4x6x8xf32>, %a10: tensor<2x4x6x8xf32>, %a11: tensor<1x4x6x6xf32>, %a12: tensor<2x1x6x6xf32>, %a13: tensor<2x6x8x4xf32>, %a14: tensor<4x2x5x8xf32>, %a15: tensor<2x4x7x5xf32>, %a16: tensor<3x8xf32>, %a17: tensor<4x8xf32>, %a18: tensor<4x8xf32>, %a19: tensor<8x6x8xf32>, %a20: tensor<8x6x8xf32>, %a21: tensor<8x6x8xf32>, %a22: tensor<6x6xf32>, %a23: tensor<2x4x6x8xf32>, %a24: tensor<2x1x6x8xf32>, %a25: tensor<2x6x1x8xf32>, %a26: tensor<1x2x3x8xf32>) -> (tensor<2x6x4x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<7x2x6x4xf32>, tensor<3x8xf32>, tensor<8x6x8xf32>, tensor<2x4x6x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) {
  %r0 = func.call @bert(%a0, %a1, %a2, %a3) : (tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x1x6x6xf32>) -> tensor<2x6x4x8xf32>
  %r1 = func.call @llama(%a4, %a5, %a6, %a7) : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x6x2x8xf32>, tensor<2x1x6x6xf32>) -> tensor<2x4x6x8xf32>
  %r2 = func.call @t5(%a8, %a9, %a10, %a11, %a12) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<1x4x6x6xf32>, tensor<2x1x6x6xf32>) -> tensor<2x4x6x8xf32>
  %r3 = func.call @any_order(%a13, %a14, %a15) : (tensor<2x6x8x4xf32>, tensor<4x2x5x8xf32>, tensor<2x4x7x5xf32>) -> tensor<7x2x6x4xf32>
  %r4 = func.call @causal(%a16, %a17, %a18) : (tensor<3x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  %r5 = func.call @replaced(%a19, %a20, %a21, %a22) : (tensor<8x6x8xf32>, tensor<8x6x8xf32>, tensor<8x6x8xf32>, tensor<6x6xf32>) -> tensor<8x6x8xf32>
  %r6 = func.call @one_key(%a23, %a24, %a25) : (tensor<2x4x6x8xf32>, tensor<2x1x6x8xf32>, tensor<2x6x1x8xf32>) -> tensor<2x4x6x8xf32>
  %r7 = func.call @causal_by_choice(%a26) : (tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  %r8 = func.call @a_window(%a26) : (tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8 : tensor<2x6x4x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<7x2x6x4xf32>, tensor<3x8xf32>, tensor<8x6x8xf32>, tensor<2x4x6x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>
}
