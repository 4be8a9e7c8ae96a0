// RUN: cleave-opt %s --nn-outline-step="train='{loss: {kind: mse, of: y}, optimizer: sgd, precision: {parameters: f16}, dropout: model, batch_norm: batch}'" | FileCheck %s
// RUN: cleave-opt %s --nn-outline-step="train='{loss: {kind: mse, of: y}, optimizer: sgd, precision: {parameters: bf16}}'" | FileCheck %s --check-prefix=OFF
// RUN: cleave-opt %s --nn-outline-step="train='{loss: {kind: mse, of: y}, optimizer: sgd, precision: {scale: 1024}}'" | FileCheck %s --check-prefix=FIXED
// RUN: cleave-opt %s --nn-outline-step="train='{loss: {kind: mse, of: y}, optimizer: sgd, precision: {parameters: f16, scale: none}}'" 2>&1 | FileCheck %s --check-prefix=VANISH
// RUN: cleave-opt %s --nn-outline-step="train='{loss: {kind: mse, of: y}, optimizer: sgd, precision: {parameters: f16}, dropout: model, batch_norm: batch}' eval=true" --nn-keep-loss | FileCheck %s --check-prefix=EVAL
// RUN: sed 's/nn.dropout = 0.25/nn.dropout = 1.0/' %s | not cleave-opt --nn-outline-step="train='{loss: {kind: mse, of: y}, optimizer: sgd, dropout: model}'" 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: sed 's/f32/f16/g' %s | cleave-opt --nn-outline-step="train='{loss: {kind: mse, of: y}, optimizer: sgd, precision: {parameters: f32}}'" | FileCheck %s --check-prefix=WIDE

// A parameter is kept in f16 and computed with as the model does; statistics of the norm are states; the loss has a scale, which begins as a
// weight of one number. What stays of `d` is what has a word of 2^30 at least.
// CHECK: nn.param @scale : tensor<3xf32>
// CHECK-LABEL: @main(
// CHECK-SAME: tensor<4x3x2xf32> {nn.name = "x", nn.role = "batch"}
// CHECK-SAME: %[[N:[^ ]*]]: tensor<i64> {nn.name = "count", nn.role = "count"}
// CHECK-SAME: %[[M:[^ ]*]]: tensor<3xf32> {nn.begins = @mean, nn.name = "mean", nn.role = "running"}
// CHECK-SAME: %[[V:[^ ]*]]: tensor<3xf32> {nn.begins = @variance, nn.name = "variance", nn.role = "running"}
// CHECK-SAME: %[[L:[^ ]*]]: tensor<f32> {nn.begins = @"scale(loss)", nn.name = "scale", nn.role = "scale"}
// CHECK-SAME: %[[S:[^ ]*]]: tensor<3xf16> {nn.begins = @gain, nn.name = "gain", nn.role = "parameter"}
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<f32> {nn.name = "scaled(loss)"}, tensor<3xf32> {nn.name = "next(mean)", spmd.state = "mean"}, tensor<3xf32> {nn.name = "next(variance)", spmd.state = "variance"})
// CHECK: %[[GAIN:.*]] = nn.cast %[[S]] : (tensor<3xf16>) -> tensor<3xf32>
// CHECK: nn.constant dense<1073741824> : tensor<i64>
// CHECK: %[[D:.*]] = nn.select
// CHECK: %[[P:.*]] = spmd.pin %[[D]] "d" : tensor<4x3x2xf32>
// CHECK: %[[MEAN:.*]] = nn.reduce mean %[[P]] dims [0, 2] keep
// CHECK: spmd.pin %[[MEAN]] "" {nn.detached}
// CHECK: %[[KEPT:.*]] = nn.mul %[[M]]
// CHECK: nn.add %[[KEPT]]
// CHECK: nn.batch_norm %[[P]], %[[GAIN]]
// CHECK: nn.mul %[[LOSS:.*]], %[[L]] : (tensor<f32>, tensor<f32>)
// CHECK: return %[[LOSS]],
// OFF-LABEL: @main(
// OFF-NOT: nn.role = "count"
// OFF-NOT: nn.role = "running"
// OFF-NOT: nn.role = "scale"
// OFF: tensor<3xbf16> {nn.begins = @gain, nn.name = "gain", nn.role = "parameter"}
// OFF-SAME: -> (tensor<f32> {nn.name = "loss"})
// FIXED-NOT: nn.role = "scale"
// FIXED: -> (tensor<f32> {nn.name = "loss"}, tensor<f32> {nn.name = "scaled(loss)"})
// FIXED: nn.constant dense<1.024000e+03> : tensor<f32>
// WIDE: tensor<3xf32> {nn.begins = @gain, nn.name = "gain", nn.role = "parameter"}
// WIDE-SAME: {nn.name = "scaled(loss)"}
// WIDE: nn.cast %{{.*}} : (tensor<3xf32>) -> tensor<3xf16>
// What evaluates has the arguments of that step, in their order; nothing is dropped, and the norm takes the running statistics.
// EVAL-LABEL: @main(
// EVAL-SAME: %[[X:[^ ]*]]: tensor<4x3x2xf32> {nn.name = "x", nn.role = "batch"}
// EVAL-SAME: %[[L:[^ ]*]]: tensor<4x3x2xf32> {nn.name = "labels", nn.role = "batch"}
// EVAL-NOT: tensor<i64> {{.*}}tensor<i64>
// EVAL: %[[P:.*]] = spmd.pin %[[X]] "d"
// EVAL: nn.batch_norm %[[P]], %{{.*}}, %{{.*}}, %{{[^ ]*}}, %{{[^ ]*}} epsilon
// EVAL-NOT: nn.select
// EVAL: return %{{[^ ,]*}} : tensor<f32>
// VANISH: --train:1:{{[0-9]+}}: warning: precision f16 with 'scale: none': gradients below 6e-8 vanish
// ALL: error: 'spmd.pin' op is a dropout of 1.000000e+00, expected less than 1
nn.param @scale : tensor<3xf32> = dense<1.0> : tensor<3xf32>
nn.param @gain : tensor<3xf32> = dense<1.0> : tensor<3xf32>
nn.param @bias : tensor<3xf32> = dense<1.0> : tensor<3xf32>
nn.param @mean : tensor<3xf32> = dense<0.0> : tensor<3xf32>
nn.param @variance : tensor<3xf32> = dense<1.0> : tensor<3xf32>
func.func @main(%x: tensor<4x3x2xf32> {nn.name = "x"}) -> (tensor<4x3x2xf32> {nn.name = "y"}) {
  %s = nn.load @gain : tensor<3xf32>
  %b = nn.load @bias : tensor<3xf32>
  %m = nn.load @mean : tensor<3xf32>
  %v = nn.load @variance : tensor<3xf32>
  %d = spmd.pin %x "d" {nn.dropout = 0.25 : f64} : tensor<4x3x2xf32>
  %y = nn.batch_norm %d, %s, %b, %m, %v epsilon 1.0e-5 {nn.momentum = 0.75 : f64} : (tensor<4x3x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3x2xf32>
  return %y : tensor<4x3x2xf32>
}
