// Every op of the nn dialect but the elementwise ones (ops-elementwise.mlir), read and printed in custom form, in generic form and as bytecode.
//
// RUN: cleave-opt %s | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --mlir-print-op-generic | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --emit-bytecode | cleave-opt | FileCheck %s

// A parameter is a module-level symbol: a range of a file, or elements.
// CHECK: nn.param @weight : tensor<768x2xf32> = #nn.weight<"model.bin", 64, 6144>
nn.param @weight : tensor<768x2xf32> = #nn.weight<"model.bin", 64, 6144>
// CHECK: nn.param @digested : tensor<2xf32> = #nn.weight<"model.bin", 64, 8 of 6208 digest "ec8cf713063aea6c">
nn.param @digested : tensor<2xf32> = #nn.weight<"model.bin", 64, 8 of 6208 digest "ec8cf713063aea6c">
// CHECK: nn.param @zeros : tensor<1000x1000xf16> = dense<0.000000e+00> : tensor<1000x1000xf16>
nn.param @zeros : tensor<1000x1000xf16> = dense<0.0> : tensor<1000x1000xf16>
// CHECK: nn.param visibility "private" @mask : tensor<3xi1> = #nn.weight<"a \22b\22.bin", 0, 3>
nn.param visibility "private" @mask : tensor<3xi1> = #nn.weight<"a \22b\22.bin", 0, 3>

// A load names its parameter; a partitioned one says which shard of it.
// CHECK-LABEL: @data_ops
func.func @data_ops() {
  // CHECK: nn.load @weight : tensor<768x2xf32>
  %0 = nn.load @weight : tensor<768x2xf32>
  // CHECK: nn.load @weight starts [384, 0] sizes [384, 1] : tensor<384x1xf32>
  %part = nn.load @weight starts [384, 0] sizes [384, 1] : tensor<384x1xf32>
  // CHECK: nn.constant dense<[1, 2]> : tensor<2xi64> -> tensor<2xi64>
  %1 = nn.constant dense<[1, 2]> : tensor<2xi64> -> tensor<2xi64>
  // CHECK: nn.constant dense<1.500000e+00> : tensor<f32> -> tensor<f32>
  %2 = nn.constant dense<1.500000e+00> : tensor<f32> -> tensor<f32>
  // CHECK: nn.iota dim 0 start 0 step 1 : tensor<8xi64>
  %3 = nn.iota dim 0 start 0 step 1 : tensor<8xi64>
  // CHECK: nn.iota dim 1 start -3 step 2 : tensor<8x4xf32>
  %4 = nn.iota dim 1 start -3 step 2 : tensor<8x4xf32>
  return
}

// One letter per dim; what the result lacks is summed; a dim of size 1 repeats.
// CHECK-LABEL: @contractions
func.func @contractions(%a: tensor<2x4x8xf32>, %b: tensor<2x8x4xf32>, %v: tensor<8xf32>, %o: tensor<1x8x4xf32>) {
  // CHECK: nn.einsum %{{.*}}, %{{.*}} "bik,bkj->bij" : (tensor<2x4x8xf32>, tensor<2x8x4xf32>) -> tensor<2x4x4xf32>
  %0 = nn.einsum %a, %b "bik,bkj->bij" : (tensor<2x4x8xf32>, tensor<2x8x4xf32>) -> tensor<2x4x4xf32>
  // CHECK: nn.einsum %{{.*}}, %{{.*}} "bik,bkj->bij" : (tensor<2x4x8xf32>, tensor<1x8x4xf32>) -> tensor<2x4x4xf32>
  %1 = nn.einsum %a, %o "bik,bkj->bij" : (tensor<2x4x8xf32>, tensor<1x8x4xf32>) -> tensor<2x4x4xf32>
  // CHECK: nn.einsum %{{.*}}, %{{.*}} "k,k->" : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  %2 = nn.einsum %v, %v "k,k->" : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  // CHECK: nn.einsum %{{.*}} "k->k" : (tensor<8xf32>) -> tensor<8xf32>
  %3 = nn.einsum %v "k->k" : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: nn.einsum %{{.*}}, %{{.*}}, %{{.*}} "bik,bkj,k->ji" : (tensor<2x4x8xf32>, tensor<2x8x4xf32>, tensor<8xf32>) -> tensor<4x4xf32>
  %4 = nn.einsum %a, %b, %v "bik,bkj,k->ji" : (tensor<2x4x8xf32>, tensor<2x8x4xf32>, tensor<8xf32>) -> tensor<4x4xf32>
  return
}

// Reduced dims go, or stay with size 1.
// CHECK-LABEL: @reductions
func.func @reductions(%x: tensor<8x4xf32>, %b: tensor<8x4xi1>) {
  // CHECK: nn.reduce sum %{{.*}} dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  %0 = nn.reduce sum %x dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  // CHECK: nn.reduce mean %{{.*}} dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  %1 = nn.reduce mean %x dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  // CHECK: nn.reduce prod %{{.*}} dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  %2 = nn.reduce prod %x dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  // CHECK: nn.reduce max %{{.*}} dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  %3 = nn.reduce max %x dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  // CHECK: nn.reduce min %{{.*}} dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  %4 = nn.reduce min %x dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  // CHECK: nn.reduce sum %{{.*}} dims [0, 1] keep_dims : (tensor<8x4xf32>) -> tensor<1x1xf32>
  %5 = nn.reduce sum %x dims [0, 1] keep_dims : (tensor<8x4xf32>) -> tensor<1x1xf32>
  // CHECK: nn.reduce max %{{.*}} dims [0] : (tensor<8x4xi1>) -> tensor<4xi1>
  %6 = nn.reduce max %b dims [0] : (tensor<8x4xi1>) -> tensor<4xi1>
  // CHECK: nn.reduce sum %{{.*}} dims [] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %7 = nn.reduce sum %x dims [] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.arg_reduce max %{{.*}} dim 1 : (tensor<8x4xf32>) -> tensor<8xi64>
  %8 = nn.arg_reduce max %x dim 1 : (tensor<8x4xf32>) -> tensor<8xi64>
  // CHECK: nn.arg_reduce min %{{.*}} dim 0 keep_dims last : (tensor<8x4xf32>) -> tensor<1x4xi64>
  %9 = nn.arg_reduce min %x dim 0 keep_dims last : (tensor<8x4xf32>) -> tensor<1x4xi64>
  // CHECK: nn.softmax %{{.*}} dim 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %10 = nn.softmax %x dim 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.log_softmax %{{.*}} dim 0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %11 = nn.log_softmax %x dim 0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.cumsum %{{.*}} dim 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %12 = nn.cumsum %x dim 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.cumsum %{{.*}} dim 0 exclusive reverse : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %13 = nn.cumsum %x dim 0 exclusive reverse : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.top_k %{{.*}} k 2 dim 1 smallest : (tensor<8x4xf32>) -> (tensor<8x2xf32>, tensor<8x2xi64>)
  %14:2 = nn.top_k %x k 2 dim 1 smallest : (tensor<8x4xf32>) -> (tensor<8x2xf32>, tensor<8x2xi64>)
  return
}

// Norms over trailing dims take scale and bias of any shape that broadcasts to these; norms per channel take vectors.
// CHECK-LABEL: @norms
func.func @norms(%x: tensor<8x4xf32>, %v: tensor<4xf32>, %s: tensor<f32>, %i: tensor<2x4x8x8xf32>) {
  // CHECK: nn.layer_norm %{{.*}}, %{{.*}} bias %{{.*}} dim 1 epsilon 1.000000e-05 : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %0 = nn.layer_norm %x, %v bias %v dim 1 epsilon 1.000000e-05 : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.layer_norm %{{.*}} bias %{{.*}} dim 0 epsilon 1.000000e-05 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %1 = nn.layer_norm %x bias %v dim 0 epsilon 1.000000e-05 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.layer_norm %{{.*}} dim 0 epsilon 1.000000e-05 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = nn.layer_norm %x dim 0 epsilon 1.000000e-05 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.rms_norm %{{.*}}, %{{.*}} dim 1 epsilon 1.000000e-05 : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  %3 = nn.rms_norm %x, %s dim 1 epsilon 1.000000e-05 : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  // CHECK: nn.rms_norm %{{.*}} dim 1 epsilon 1.000000e-05 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = nn.rms_norm %x dim 1 epsilon 1.000000e-05 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.batch_norm %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} epsilon 1.000000e-05 : (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x8x8xf32>
  %5 = nn.batch_norm %i, %v, %v, %v, %v epsilon 1.000000e-05 : (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x8x8xf32>
  // CHECK: nn.group_norm %{{.*}}, %{{.*}}, %{{.*}} groups 2 epsilon 1.000000e-05 : (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x8x8xf32>
  %6 = nn.group_norm %i, %v, %v groups 2 epsilon 1.000000e-05 : (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x8x8xf32>
  // CHECK: nn.lrn %{{.*}} size 5 alpha 1.000000e-04 beta 7.500000e-01 k 1.000000e+00 : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %7 = nn.lrn %i size 5 alpha 1.000000e-04 beta 7.500000e-01 k 1.000000e+00 : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  return
}

// Eight query heads share two key heads; the mask is bool or a number.
// CHECK-LABEL: @recurrence
func.func @recurrence(%p: tensor<5x2x3x4x8xf32>, %w: tensor<2x4x8x8xf32>, %h: tensor<2x3x8xf32>, %q: tensor<2x3x8xf32>, %l: tensor<3xi64>, %g: tensor<5x2x3x3x8xf32>, %v: tensor<2x3x8x8xf32>, %b: tensor<2x8xf32>) {
  // CHECK: nn.recurrence lstm %{{.*}}, %{{.*}} initial(%{{.*}}, %{{.*}}) peepholes %{{.*}} lengths %{{.*}} activations ["sigmoid", "tanh", "relu"] alphas [0.000000e+00, 0.000000e+00, 0.000000e+00] betas [0.000000e+00, 0.000000e+00, 0.000000e+00] {clip = 3.000000e+00 : f64, inputForget} :
  %0:3 = nn.recurrence lstm %p, %w initial (%h, %h) peepholes %q lengths %l activations ["sigmoid", "tanh", "relu"] alphas [0.0, 0.0, 0.0] betas [0.0, 0.0, 0.0] {clip = 3.0, inputForget} : (tensor<5x2x3x4x8xf32>, tensor<2x4x8x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<3xi64>) -> (tensor<5x2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>)
  // CHECK: nn.recurrence gru %{{.*}}, %{{.*}} initial(%{{.*}}) bias %{{.*}} activations ["hard_sigmoid", "tanh"] alphas [2.000000e-01, 0.000000e+00] betas [5.000000e-01, 0.000000e+00] {linearBeforeReset} :
  %1:2 = nn.recurrence gru %g, %v initial (%h) bias %b activations ["hard_sigmoid", "tanh"] alphas [0.2, 0.0] betas [0.5, 0.0] {linearBeforeReset} : (tensor<5x2x3x3x8xf32>, tensor<2x3x8x8xf32>, tensor<2x3x8xf32>, tensor<2x8xf32>) -> (tensor<5x2x3x8xf32>, tensor<2x3x8xf32>)
  return
}

// CHECK-LABEL: @attention
func.func @attention(%q: tensor<2x8x16x64xf32>, %k: tensor<2x2x24x64xf32>, %v: tensor<2x2x24x32xf32>, %m: tensor<16x24xi1>, %b: tensor<1x8x1x24xf32>, %c: tensor<1x16x16xf32>) {
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01 : (tensor<2x8x16x64xf32>, tensor<2x2x24x64xf32>, tensor<2x2x24x32xf32>) -> tensor<2x8x16x32xf32>
  %0 = nn.attention %q, %k, %v scale 1.250000e-01 : (tensor<2x8x16x64xf32>, tensor<2x2x24x64xf32>, tensor<2x2x24x32xf32>) -> tensor<2x8x16x32xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} scale 1.250000e-01 causal {causalOffset = 8 : i64} : (tensor<2x8x16x64xf32>, tensor<2x2x24x64xf32>, tensor<2x2x24x32xf32>, tensor<16x24xi1>) -> tensor<2x8x16x32xf32>
  %1 = nn.attention %q, %k, %v mask %m scale 1.250000e-01 causal {causalOffset = 8 : i64} : (tensor<2x8x16x64xf32>, tensor<2x2x24x64xf32>, tensor<2x2x24x32xf32>, tensor<16x24xi1>) -> tensor<2x8x16x32xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} scale 1.250000e-01 {softcap = 3.000000e+01 : f64} : (tensor<2x8x16x64xf32>, tensor<2x2x24x64xf32>, tensor<2x2x24x32xf32>, tensor<1x8x1x24xf32>) -> tensor<2x8x16x32xf32>
  %2 = nn.attention %q, %k, %v mask %b scale 1.250000e-01 {softcap = 3.000000e+01 : f64} : (tensor<2x8x16x64xf32>, tensor<2x2x24x64xf32>, tensor<2x2x24x32xf32>, tensor<1x8x1x24xf32>) -> tensor<2x8x16x32xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01 causal {causalOffset = 8 : i64, left = 3 : i64} :
  %w0 = nn.attention %q, %k, %v scale 1.250000e-01 causal {causalOffset = 8 : i64, left = 3 : i64} : (tensor<2x8x16x64xf32>, tensor<2x2x24x64xf32>, tensor<2x2x24x32xf32>) -> tensor<2x8x16x32xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01 {left = 3 : i64, right = 5 : i64} :
  %w1 = nn.attention %q, %k, %v scale 1.250000e-01 {left = 3 : i64, right = 5 : i64} : (tensor<2x8x16x64xf32>, tensor<2x2x24x64xf32>, tensor<2x2x24x32xf32>) -> tensor<2x8x16x32xf32>
  // CHECK: nn.rotary_embedding %{{.*}}, %{{.*}}, %{{.*}} rotated 32 interleaved : (tensor<2x8x16x64xf32>, tensor<1x16x16xf32>, tensor<1x16x16xf32>) -> tensor<2x8x16x64xf32>
  %3 = nn.rotary_embedding %q, %c, %c rotated 32 interleaved : (tensor<2x8x16x64xf32>, tensor<1x16x16xf32>, tensor<1x16x16xf32>) -> tensor<2x8x16x64xf32>
  // CHECK: nn.rotary_embedding %{{.*}}, %{{.*}}, %{{.*}} rotated 32 : (tensor<2x8x16x64xf32>, tensor<1x16x16xf32>, tensor<1x16x16xf32>) -> tensor<2x8x16x64xf32>
  %4 = nn.rotary_embedding %q, %c, %c rotated 32 : (tensor<2x8x16x64xf32>, tensor<1x16x16xf32>, tensor<1x16x16xf32>) -> tensor<2x8x16x64xf32>
  return
}

// Extents: floor((9 + 1 + 1 - 3) / 2) + 1 = 5; transposed 2 * 8 + 1 + 3 - 2 = 18; pooled floor((9 - 2) / 2) + 1 = 4, with ceil 5.
// CHECK-LABEL: @windows
func.func @windows(%x: tensor<1x4x9x9xf32>, %w: tensor<6x2x3x3xf32>, %b: tensor<6xf32>, %t: tensor<4x3x3x3xf32>, %l: tensor<1x4x9xf32>) {
  // CHECK: nn.conv %{{.*}}, %{{.*}}, %{{.*}} strides [2, 2] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 2 : (tensor<1x4x9x9xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<1x6x5x5xf32>
  %0 = nn.conv %x, %w, %b strides [2, 2] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 2 : (tensor<1x4x9x9xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<1x6x5x5xf32>
  // CHECK: nn.conv %{{.*}}, %{{.*}} strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [4, 1] groups 2 : (tensor<1x4x9x9xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x1x7xf32>
  %1 = nn.conv %x, %w strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [4, 1] groups 2 : (tensor<1x4x9x9xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x1x7xf32>
  // CHECK: nn.conv_transpose %{{.*}}, %{{.*}}, %{{.*}} strides [2, 2] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] output_pads [1, 1] groups 2 : (tensor<1x4x9x9xf32>, tensor<4x3x3x3xf32>, tensor<6xf32>) -> tensor<1x6x18x18xf32>
  %2 = nn.conv_transpose %x, %t, %b strides [2, 2] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] output_pads [1, 1] groups 2 : (tensor<1x4x9x9xf32>, tensor<4x3x3x3xf32>, tensor<6xf32>) -> tensor<1x6x18x18xf32>
  // CHECK: nn.pool max %{{.*}} kernel [2, 2] strides [2, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] : (tensor<1x4x9x9xf32>) -> tensor<1x4x4x4xf32>
  %3 = nn.pool max %x kernel [2, 2] strides [2, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] : (tensor<1x4x9x9xf32>) -> tensor<1x4x4x4xf32>
  // CHECK: nn.pool average %{{.*}} kernel [2, 2] strides [2, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] count_pads ceil : (tensor<1x4x9x9xf32>) -> tensor<1x4x5x5xf32>
  %4 = nn.pool average %x kernel [2, 2] strides [2, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] count_pads ceil : (tensor<1x4x9x9xf32>) -> tensor<1x4x5x5xf32>
  // CHECK: nn.pool lp %{{.*}} kernel [3] strides [3] pads_low [0] pads_high [2] dilations [1] {p = 3 : i64} : (tensor<1x4x9xf32>) -> tensor<1x4x3xf32>
  %5 = nn.pool lp %l kernel [3] strides [3] pads_low [0] pads_high [2] dilations [1] {p = 3 : i64} : (tensor<1x4x9xf32>) -> tensor<1x4x3xf32>
  // CHECK: nn.resize nearest %{{.*}} coordinates asymmetric rounding floor scales [1.000000e+00, 1.000000e+00, 2.000000e+00, 5.000000e-01] : (tensor<1x4x9x9xf32>) -> tensor<1x4x18x4xf32>
  %6 = nn.resize nearest %x coordinates asymmetric rounding floor scales [1.000000e+00, 1.000000e+00, 2.000000e+00, 5.000000e-01] : (tensor<1x4x9x9xf32>) -> tensor<1x4x18x4xf32>
  // CHECK: nn.resize cubic %{{.*}} coordinates half_pixel rounding round_prefer_floor scales [1.000000e+00, 1.000000e+00, 2.000000e+00, 2.000000e+00] exclude_outside antialias : (tensor<1x4x9x9xf32>) -> tensor<1x4x18x18xf32>
  %7 = nn.resize cubic %x coordinates half_pixel rounding round_prefer_floor scales [1.000000e+00, 1.000000e+00, 2.000000e+00, 2.000000e+00] exclude_outside antialias : (tensor<1x4x9x9xf32>) -> tensor<1x4x18x18xf32>
  return
}

// A last window that would start on the high padding does not count: ceil((4 + 3 - 2) / 3) + 1 = 3 starts at 6, beyond 4.
// CHECK-LABEL: @ceil_ignores_a_window_that_starts_on_padding
func.func @ceil_ignores_a_window_that_starts_on_padding(%x: tensor<1x1x4xf32>) {
  // CHECK: nn.pool max %{{.*}} kernel [2] strides [3] pads_low [0] pads_high [3] dilations [1] ceil : (tensor<1x1x4xf32>) -> tensor<1x1x2xf32>
  %0 = nn.pool max %x kernel [2] strides [3] pads_low [0] pads_high [3] dilations [1] ceil : (tensor<1x1x4xf32>) -> tensor<1x1x2xf32>
  return
}

// Movement ops change places only.
// CHECK-LABEL: @movement
func.func @movement(%x: tensor<8x4xf32>, %v: tensor<4xf32>, %s: tensor<f32>) {
  // CHECK: nn.reshape %{{.*}} : (tensor<8x4xf32>) -> tensor<2x16xf32>
  %0 = nn.reshape %x : (tensor<8x4xf32>) -> tensor<2x16xf32>
  // CHECK: nn.transpose %{{.*}} [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = nn.transpose %x [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  // CHECK: nn.broadcast %{{.*}} : (tensor<4xf32>) -> tensor<8x4xf32>
  %2 = nn.broadcast %v : (tensor<4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.concat %{{.*}}, %{{.*}}, %{{.*}} dim 0 : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<24x4xf32>
  %3 = nn.concat %x, %x, %x dim 0 : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<24x4xf32>
  // CHECK: nn.slice %{{.*}} starts [7, 1] sizes [8, 2] steps [-1, 2] : (tensor<8x4xf32>) -> tensor<8x2xf32>
  %4 = nn.slice %x starts [7, 1] sizes [8, 2] steps [-1, 2] : (tensor<8x4xf32>) -> tensor<8x2xf32>
  // CHECK: nn.split %{{.*}} dim 1 parts [1, 3] : (tensor<8x4xf32>) -> (tensor<8x1xf32>, tensor<8x3xf32>)
  %parts:2 = nn.split %x dim 1 parts [1, 3] : (tensor<8x4xf32>) -> (tensor<8x1xf32>, tensor<8x3xf32>)
  // CHECK: nn.slice %{{.*}} starts [0, 0] sizes [0, 4] steps [1, 1] : (tensor<8x4xf32>) -> tensor<0x4xf32>
  %5 = nn.slice %x starts [0, 0] sizes [0, 4] steps [1, 1] : (tensor<8x4xf32>) -> tensor<0x4xf32>
  // CHECK: nn.pad constant %{{.*}} low [0, 1] high [0, 2] : (tensor<8x4xf32>) -> tensor<8x7xf32>
  %6 = nn.pad constant %x low [0, 1] high [0, 2] : (tensor<8x4xf32>) -> tensor<8x7xf32>
  // CHECK: nn.pad edge %{{.*}} low [0, 1] high [0, 2] : (tensor<8x4xf32>) -> tensor<8x7xf32>
  %7 = nn.pad edge %x low [0, 1] high [0, 2] : (tensor<8x4xf32>) -> tensor<8x7xf32>
  // CHECK: nn.pad reflect %{{.*}} low [0, 1] high [0, 2] : (tensor<8x4xf32>) -> tensor<8x7xf32>
  %8 = nn.pad reflect %x low [0, 1] high [0, 2] : (tensor<8x4xf32>) -> tensor<8x7xf32>
  // CHECK: nn.pad wrap %{{.*}} low [0, 1] high [0, 2] : (tensor<8x4xf32>) -> tensor<8x7xf32>
  %9 = nn.pad wrap %x low [0, 1] high [0, 2] : (tensor<8x4xf32>) -> tensor<8x7xf32>
  // CHECK: nn.pad constant %{{.*}} value %{{.*}} low [0, 1] high [0, 2] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x7xf32>
  %10 = nn.pad constant %x value %s low [0, 1] high [0, 2] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x7xf32>
  // CHECK: nn.rotate %{{.*}} dim 0 by 7 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %11 = nn.rotate %x dim 0 by 7 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.trilu %{{.*}} offset 1 upper : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %12 = nn.trilu %x offset 1 upper : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.trilu %{{.*}} offset -1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %13 = nn.trilu %x offset -1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// Indices are operands; their dims stand where the indexed dim was.
// CHECK-LABEL: @indexing
func.func @indexing(%t: tensor<100x8xf32>, %i: tensor<2x3xi64>, %e: tensor<50x2xi32>, %n: tensor<3x1xi64>, %u: tensor<50x2xf32>, %w: tensor<3x8xf32>, %o: tensor<2xf32>, %p: tensor<100x2x1xi64>) {
  // CHECK: nn.gather %{{.*}}, %{{.*}} dim 0 : (tensor<100x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  %0 = nn.gather %t, %i dim 0 : (tensor<100x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  // CHECK: nn.gather %{{.*}}, %{{.*}} dim 1 : (tensor<100x8xf32>, tensor<2x3xi64>) -> tensor<100x2x3xf32>
  %1 = nn.gather %t, %i dim 1 : (tensor<100x8xf32>, tensor<2x3xi64>) -> tensor<100x2x3xf32>
  // CHECK: nn.gather_elements %{{.*}}, %{{.*}} dim 1 : (tensor<100x8xf32>, tensor<50x2xi32>) -> tensor<50x2xf32>
  %2 = nn.gather_elements %t, %e dim 1 : (tensor<100x8xf32>, tensor<50x2xi32>) -> tensor<50x2xf32>
  // CHECK: nn.gather_nd %{{.*}}, %{{.*}} batch_dims 0 : (tensor<100x8xf32>, tensor<3x1xi64>) -> tensor<3x8xf32>
  %3 = nn.gather_nd %t, %n batch_dims 0 : (tensor<100x8xf32>, tensor<3x1xi64>) -> tensor<3x8xf32>
  // CHECK: nn.gather_nd %{{.*}}, %{{.*}} batch_dims 1 : (tensor<100x8xf32>, tensor<100x2x1xi64>) -> tensor<100x2xf32>
  %4 = nn.gather_nd %t, %p batch_dims 1 : (tensor<100x8xf32>, tensor<100x2x1xi64>) -> tensor<100x2xf32>
  // CHECK: nn.scatter_elements set %{{.*}}, %{{.*}}, %{{.*}} dim 1 : (tensor<100x8xf32>, tensor<50x2xi32>, tensor<50x2xf32>) -> tensor<100x8xf32>
  %5 = nn.scatter_elements set %t, %e, %u dim 1 : (tensor<100x8xf32>, tensor<50x2xi32>, tensor<50x2xf32>) -> tensor<100x8xf32>
  // CHECK: nn.scatter_elements add %{{.*}}, %{{.*}}, %{{.*}} dim 1 : (tensor<100x8xf32>, tensor<50x2xi32>, tensor<50x2xf32>) -> tensor<100x8xf32>
  %6 = nn.scatter_elements add %t, %e, %u dim 1 : (tensor<100x8xf32>, tensor<50x2xi32>, tensor<50x2xf32>) -> tensor<100x8xf32>
  // CHECK: nn.scatter_elements mul %{{.*}}, %{{.*}}, %{{.*}} dim 1 : (tensor<100x8xf32>, tensor<50x2xi32>, tensor<50x2xf32>) -> tensor<100x8xf32>
  %7 = nn.scatter_elements mul %t, %e, %u dim 1 : (tensor<100x8xf32>, tensor<50x2xi32>, tensor<50x2xf32>) -> tensor<100x8xf32>
  // CHECK: nn.scatter_elements max %{{.*}}, %{{.*}}, %{{.*}} dim 1 : (tensor<100x8xf32>, tensor<50x2xi32>, tensor<50x2xf32>) -> tensor<100x8xf32>
  %8 = nn.scatter_elements max %t, %e, %u dim 1 : (tensor<100x8xf32>, tensor<50x2xi32>, tensor<50x2xf32>) -> tensor<100x8xf32>
  // CHECK: nn.scatter_elements min %{{.*}}, %{{.*}}, %{{.*}} dim 1 : (tensor<100x8xf32>, tensor<50x2xi32>, tensor<50x2xf32>) -> tensor<100x8xf32>
  %9 = nn.scatter_elements min %t, %e, %u dim 1 : (tensor<100x8xf32>, tensor<50x2xi32>, tensor<50x2xf32>) -> tensor<100x8xf32>
  // CHECK: nn.scatter_nd add %{{.*}}, %{{.*}}, %{{.*}} : (tensor<100x8xf32>, tensor<3x1xi64>, tensor<3x8xf32>) -> tensor<100x8xf32>
  %10 = nn.scatter_nd add %t, %n, %w : (tensor<100x8xf32>, tensor<3x1xi64>, tensor<3x8xf32>) -> tensor<100x8xf32>
  // CHECK: nn.one_hot %{{.*}}, %{{.*}} depth 10 dim 2 : (tensor<2x3xi64>, tensor<2xf32>) -> tensor<2x3x10xf32>
  %11 = nn.one_hot %i, %o depth 10 dim 2 : (tensor<2x3xi64>, tensor<2xf32>) -> tensor<2x3x10xf32>
  return
}

// Operands and results may differ in sharding: types are compared by shape and element type.
#mesh = #spmd.mesh<["x"=2]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
#cols = #spmd.sharding<#mesh, [{}, {"x"}]>
// CHECK-LABEL: @shardings_do_not_hinder_types
func.func @shardings_do_not_hinder_types(%x: tensor<8x4xf32, #rows>, %y: tensor<8x4xf32>) -> tensor<8x4xf32, #cols> {
  // CHECK: nn.add %{{.*}}, %{{.*}} : (tensor<8x4xf32, #[[ROWS:.*]]>, tensor<8x4xf32>) -> tensor<8x4xf32, #[[COLS:.*]]>
  %0 = nn.add %x, %y : (tensor<8x4xf32, #rows>, tensor<8x4xf32>) -> tensor<8x4xf32, #cols>
  // CHECK: nn.constant dense<1.000000e+00> : tensor<8x4xf32> -> tensor<8x4xf32, #[[COLS]]>
  %1 = nn.constant dense<1.0> : tensor<8x4xf32> -> tensor<8x4xf32, #cols>
  // CHECK: nn.load @grid : tensor<8x4xf32, #[[COLS]]>
  %2 = nn.load @grid : tensor<8x4xf32, #cols>
  // CHECK: nn.load @grid shard(#[[ROWS]]) : tensor<4x4xf32>
  %3 = nn.load @grid shard(#rows) : tensor<4x4xf32>
  // CHECK: nn.load @grid starts [2, 0] sizes [6, 4] shard(#[[ROWS]]) : tensor<3x4xf32>
  %4 = nn.load @grid starts [2, 0] sizes [6, 4] shard(#rows) : tensor<3x4xf32>
  return %0 : tensor<8x4xf32, #cols>
}
nn.param @grid : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32>
