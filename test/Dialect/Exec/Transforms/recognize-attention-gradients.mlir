// Attention and its gradients as exporters and rules write them: nobody reads the softmax any more. Kernels are run by the suites
// `gradients` and `training-losses`.
//
// RUN: cleave-opt %s --split-input-file --nn-differentiate --exec-recognize-attention=few-bytes=0 | FileCheck %s
// RUN: cleave-opt %s --split-input-file --nn-differentiate --exec-recognize-attention | FileCheck %s --check-prefix=FEW
// RUN: cleave-opt %s --split-input-file --nn-differentiate --exec-recognize-attention=for-devices=true | FileCheck %s --check-prefix=DEVICE
// DEVICE-NOT: exec.attention_grad
// Of few scores those of the forward are kept, but where it has none.
// FEW-COUNT-3: nn.softmax
// FEW-NOT: nn.softmax
// FEW: exec.attention_grad
// FEW-COUNT-2: nn.softmax

// GPT-2: heads are transposed, what is ahead gets a number, padding is added. The number's scores pass nothing on where a mask stays.
// CHECK-LABEL: @main(
// CHECK-SAME: %[[X:.*]]: tensor<2x6x4x8xf32> {{.*}}, %[[Y:.*]]: tensor<2x6x4x8xf32> {{.*}}, %[[Z:.*]]: tensor<2x6x4x8xf32>
// CHECK-DAG: %[[Q:.*]] = nn.transpose %[[X]] [0, 2, 1, 3]
// CHECK-DAG: %[[K:.*]] = nn.transpose %[[Y]] [0, 2, 1, 3]
// CHECK-DAG: %[[V:.*]] = nn.transpose %[[Z]] [0, 2, 1, 3]
// CHECK-NOT: nn.softmax
// CHECK: %[[A:.*]] = nn.attention %[[Q]], %[[K]], %[[V]] mask %[[M:.*]] scale 2.500000e-01
// CHECK-NOT: nn.softmax
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = exec.attention_grad %{{.*}}, %{{.*}}, %{{.*}} of %{{.*}} mask %[[M]] shown %{{.*}} scale 2.500000e-01
// CHECK-NOT: nn.einsum
// CHECK: return
func.func @main(%x: tensor<2x6x4x8xf32> {nn.name = "x", nn.role = "parameter"}, %y: tensor<2x6x4x8xf32> {nn.name = "y", nn.role = "parameter"}, %z: tensor<2x6x4x8xf32> {nn.name = "z", nn.role = "parameter"}, %m: tensor<2x1x1x6xf32>, %c: tensor<6x6xi1>) -> (tensor<f32> {nn.name = "loss"}) {
  %four = nn.constant dense<4.0> : tensor<f32> -> tensor<f32>
  %low = nn.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %q = nn.transpose %x [0, 2, 1, 3] : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %k = nn.transpose %y [0, 2, 3, 1] : (tensor<2x6x4x8xf32>) -> tensor<2x4x8x6xf32>
  %v = nn.transpose %z [0, 2, 1, 3] : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %0 = nn.einsum %q, %k "abmk,abkn->abmn" : (tensor<2x4x6x8xf32>, tensor<2x4x8x6xf32>) -> tensor<2x4x6x6xf32>
  %1 = nn.div %0, %four : (tensor<2x4x6x6xf32>, tensor<f32>) -> tensor<2x4x6x6xf32>
  %2 = nn.select %c, %1, %low : (tensor<6x6xi1>, tensor<2x4x6x6xf32>, tensor<f32>) -> tensor<2x4x6x6xf32>
  %3 = nn.add %2, %m : (tensor<2x4x6x6xf32>, tensor<2x1x1x6xf32>) -> tensor<2x4x6x6xf32>
  %4 = nn.softmax %3 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %5 = nn.einsum %4, %v "abmk,abkn->abmn" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %w = nn.mul %5, %5 : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %loss = nn.reduce sum %w dims [0, 1, 2, 3] : (tensor<2x4x6x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// LLaMA: one key for two heads, and NaN of a query that sees nothing put right, on the way back as well.
// CHECK-LABEL: @main(
// CHECK-NOT: nn.softmax
// CHECK: nn.attention %{{.*}} mask %arg3 scale 5.000000e-01 : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x1x6x6xf32>)
// CHECK-NOT: nn.is_nan
// CHECK: exec.attention_grad %{{.*}} of %{{.*}} mask %arg3 scale 5.000000e-01 : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>,
// CHECK-NOT: nn.einsum
// CHECK: return
func.func @main(%q: tensor<2x4x6x8xf32> {nn.name = "q", nn.role = "parameter"}, %k: tensor<2x2x6x8xf32> {nn.name = "k", nn.role = "parameter"}, %v: tensor<2x2x6x8xf32> {nn.name = "v", nn.role = "parameter"}, %m: tensor<2x1x6x6xf32>) -> (tensor<f32> {nn.name = "loss"}) {
  %half = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %k0 = nn.reshape %k : (tensor<2x2x6x8xf32>) -> tensor<2x2x1x6x8xf32>
  %k1 = nn.broadcast %k0 : (tensor<2x2x1x6x8xf32>) -> tensor<2x2x2x6x8xf32>
  %k2 = nn.reshape %k1 : (tensor<2x2x2x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v0 = nn.reshape %v : (tensor<2x2x6x8xf32>) -> tensor<2x2x1x6x8xf32>
  %v1 = nn.broadcast %v0 : (tensor<2x2x1x6x8xf32>) -> tensor<2x2x2x6x8xf32>
  %v2 = nn.reshape %v1 : (tensor<2x2x2x6x8xf32>) -> tensor<2x4x6x8xf32>
  %0 = nn.einsum %q, %k2 "abmk,abnk->abmn" : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  %1 = nn.mul %0, %half : (tensor<2x4x6x6xf32>, tensor<f32>) -> tensor<2x4x6x6xf32>
  %2 = nn.add %1, %m : (tensor<2x4x6x6xf32>, tensor<2x1x6x6xf32>) -> tensor<2x4x6x6xf32>
  %3 = nn.softmax %2 dim 3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %4 = nn.is_nan %3 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xi1>
  %5 = nn.select %4, %zero, %3 : (tensor<2x4x6x6xi1>, tensor<f32>, tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %6 = nn.einsum %5, %v2 "abmk,abkn->abmn" : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %w = nn.mul %6, %6 : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %loss = nn.reduce sum %w dims [0, 1, 2, 3] : (tensor<2x4x6x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Operands in any order: keys first, values first, heads behind.
// CHECK-LABEL: @main(
// CHECK-NOT: nn.softmax
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = exec.attention_grad %{{.*}} of %{{.*}} scale 1.000000e+00 : (tensor<2x4x6x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x7xf32>, tensor<2x4x6x7xf32>)
// CHECK-DAG: nn.transpose %[[DQ]] [0, 2, 3, 1]
// CHECK-DAG: nn.transpose %[[DK]] [1, 0, 2, 3]
// CHECK-DAG: nn.transpose %[[DV]] [0, 1, 3, 2]
func.func @main(%q: tensor<2x6x8x4xf32> {nn.name = "q", nn.role = "parameter"}, %k: tensor<4x2x5x8xf32> {nn.name = "k", nn.role = "parameter"}, %v: tensor<2x4x7x5xf32> {nn.name = "v", nn.role = "parameter"}) -> (tensor<f32> {nn.name = "loss"}) {
  %0 = nn.einsum %k, %q "hbjd,bidh->bhij" : (tensor<4x2x5x8xf32>, tensor<2x6x8x4xf32>) -> tensor<2x4x6x5xf32>
  %1 = nn.softmax %0 dim 3 : (tensor<2x4x6x5xf32>) -> tensor<2x4x6x5xf32>
  %2 = nn.einsum %v, %1 "bhej,bhij->ebih" : (tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>) -> tensor<7x2x6x4xf32>
  %w = nn.mul %2, %2 : (tensor<7x2x6x4xf32>, tensor<7x2x6x4xf32>) -> tensor<7x2x6x4xf32>
  %loss = nn.reduce sum %w dims [0, 1, 2, 3] : (tensor<7x2x6x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The rule of nn.attention: gradients alone read a softmax. A mask by places is a band.
// CHECK-LABEL: @main(
// CHECK: nn.attention %arg0, %arg1, %arg2 scale 2.500000e-01 causal {left = 3 : i64
// CHECK-NOT: nn.softmax
// CHECK: exec.attention_grad %arg0, %{{.*}}, %{{.*}} of %{{.*}} scale 2.500000e-01 causal {left = 3 : i64} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>)
// CHECK-NOT: nn.einsum
// CHECK: return
func.func @main(%q: tensor<2x4x6x8xf32> {nn.name = "q", nn.role = "parameter"}, %k: tensor<2x2x6x8xf32> {nn.name = "k", nn.role = "parameter"}, %v: tensor<2x2x6x8xf32> {nn.name = "v", nn.role = "parameter"}) -> (tensor<f32> {nn.name = "loss"}) {
  %0 = nn.attention %q, %k, %v scale 0.25 causal {left = 3 : i64} : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> tensor<2x4x6x8xf32>
  %w = nn.mul %0, %0 : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %loss = nn.reduce sum %w dims [0, 1, 2, 3] : (tensor<2x4x6x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// One head, without a batch; queries are not trained.
// CHECK-LABEL: @main(
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = exec.attention_grad
// CHECK: nn.reshape %[[DK]] : (tensor<1x1x4x8xf32>) -> tensor<4x8xf32>
func.func @main(%q: tensor<3x8xf32>, %k: tensor<4x8xf32> {nn.name = "k", nn.role = "parameter"}, %v: tensor<4x8xf32> {nn.name = "v", nn.role = "parameter"}) -> (tensor<f32> {nn.name = "loss"}) {
  %0 = nn.einsum %q, %k "id,jd->ij" : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
  %1 = nn.softmax %0 dim 1 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %2 = nn.einsum %1, %v "ij,jd->id" : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  %w = nn.mul %2, %2 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %loss = nn.reduce sum %w dims [0, 1] : (tensor<3x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Gemma: a cap, whose slope is on the way back.
// CHECK-LABEL: @main(
// CHECK: nn.attention %{{.*}} scale 5.000000e-01 {softcap = 2.000000e+01 : f64}
// CHECK-NOT: nn.softmax
// CHECK: exec.attention_grad %{{.*}} scale 5.000000e-01 {softcap = 2.000000e+01 : f64}
// CHECK-NOT: nn.tanh
// CHECK: return
func.func @main(%q: tensor<1x2x6x8xf32> {nn.name = "q", nn.role = "parameter"}, %k: tensor<1x2x6x8xf32> {nn.name = "k", nn.role = "parameter"}, %v: tensor<1x2x6x8xf32> {nn.name = "v", nn.role = "parameter"}) -> (tensor<f32> {nn.name = "loss"}) {
  %half = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %cap = nn.constant dense<20.0> : tensor<f32> -> tensor<f32>
  %0 = nn.einsum %q, %k "bhid,bhjd->bhij" : (tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x6xf32>
  %1 = nn.mul %0, %half : (tensor<1x2x6x6xf32>, tensor<f32>) -> tensor<1x2x6x6xf32>
  %2 = nn.div %1, %cap : (tensor<1x2x6x6xf32>, tensor<f32>) -> tensor<1x2x6x6xf32>
  %3 = nn.tanh %2 : (tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  %4 = nn.mul %3, %cap : (tensor<1x2x6x6xf32>, tensor<f32>) -> tensor<1x2x6x6xf32>
  %5 = nn.softmax %4 dim 3 : (tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  %6 = nn.einsum %5, %v "bhij,bhjd->bhid" : (tensor<1x2x6x6xf32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  %w = nn.mul %6, %6 : (tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  %loss = nn.reduce sum %w dims [0, 1, 2, 3] : (tensor<1x2x6x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
