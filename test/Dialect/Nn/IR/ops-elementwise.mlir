// Every elementwise op, read and printed in custom form, in generic form and as bytecode.
//
// RUN: cleave-opt %s | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --mlir-print-op-generic | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --emit-bytecode | cleave-opt | FileCheck %s

// One operand: the result has its type, or says yes or no per element.
// CHECK-LABEL: @unary_ops
func.func @unary_ops(%x: tensor<8x4xf32>, %i: tensor<8x4xi32>, %b: tensor<8x4xi1>) {
  // CHECK: nn.neg %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %0 = nn.neg %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.abs %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = nn.abs %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.sign %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = nn.sign %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.sqrt %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = nn.sqrt %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.reciprocal %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = nn.reciprocal %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.exp %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = nn.exp %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.log %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = nn.log %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.erf %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %7 = nn.erf %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.sin %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %8 = nn.sin %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.cos %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %9 = nn.cos %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.tan %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %10 = nn.tan %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.asin %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %11 = nn.asin %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.acos %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %12 = nn.acos %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.atan %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %13 = nn.atan %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.sinh %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %14 = nn.sinh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.cosh %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %15 = nn.cosh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.tanh %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %16 = nn.tanh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.asinh %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %17 = nn.asinh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.acosh %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %18 = nn.acosh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.atanh %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %19 = nn.atanh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.floor %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %20 = nn.floor %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.ceil %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %21 = nn.ceil %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.round %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %22 = nn.round %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.relu %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %23 = nn.relu %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.sigmoid %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %24 = nn.sigmoid %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.silu %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %25 = nn.silu %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.softplus %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %26 = nn.softplus %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.hard_swish %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %27 = nn.hard_swish %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.gelu %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %28 = nn.gelu %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.gelu %{{.*}} {tanh = true} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %29 = nn.gelu %x {tanh = true} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.leaky_relu %{{.*}} {alpha = 1.000000e-02 : f64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %30 = nn.leaky_relu %x {alpha = 1.000000e-02 : f64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.elu %{{.*}} {alpha = 1.000000e+00 : f64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %31 = nn.elu %x {alpha = 1.000000e+00 : f64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.hard_sigmoid %{{.*}} {alpha = 2.000000e-01 : f64, beta = 5.000000e-01 : f64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %32 = nn.hard_sigmoid %x {alpha = 2.000000e-01 : f64, beta = 5.000000e-01 : f64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.neg %{{.*}} : (tensor<8x4xi32>) -> tensor<8x4xi32>
  %33 = nn.neg %i : (tensor<8x4xi32>) -> tensor<8x4xi32>
  // CHECK: nn.bitwise_not %{{.*}} : (tensor<8x4xi32>) -> tensor<8x4xi32>
  %34 = nn.bitwise_not %i : (tensor<8x4xi32>) -> tensor<8x4xi32>
  // CHECK: nn.not %{{.*}} : (tensor<8x4xi1>) -> tensor<8x4xi1>
  %35 = nn.not %b : (tensor<8x4xi1>) -> tensor<8x4xi1>
  // CHECK: nn.is_nan %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xi1>
  %36 = nn.is_nan %x : (tensor<8x4xf32>) -> tensor<8x4xi1>
  // CHECK: nn.is_inf %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xi1>
  %37 = nn.is_inf %x : (tensor<8x4xf32>) -> tensor<8x4xi1>
  // CHECK: nn.is_inf %{{.*}} {negative = false} : (tensor<8x4xf32>) -> tensor<8x4xi1>
  %38 = nn.is_inf %x {negative = false} : (tensor<8x4xf32>) -> tensor<8x4xi1>
  // CHECK: nn.cast %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xi32>
  %39 = nn.cast %x : (tensor<8x4xf32>) -> tensor<8x4xi32>
  // CHECK: nn.cast %{{.*}} {saturate} : (tensor<8x4xf32>) -> tensor<8x4xi8>
  %40 = nn.cast %x {saturate} : (tensor<8x4xf32>) -> tensor<8x4xi8>
  // CHECK: nn.cast %{{.*}} : (tensor<8x4xi1>) -> tensor<8x4xbf16>
  %41 = nn.cast %b : (tensor<8x4xi1>) -> tensor<8x4xbf16>
  return
}

// Two operands broadcast: vectors of 4 repeat along the rows.
// CHECK-LABEL: @binary_ops
func.func @binary_ops(%x: tensor<8x4xf32>, %v: tensor<4xf32>, %i: tensor<8x4xi32>, %w: tensor<4xi32>, %b: tensor<8x4xi1>, %c: tensor<4xi1>) {
  // CHECK: nn.add %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %0 = nn.add %x, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.sub %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %1 = nn.sub %x, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.mul %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %2 = nn.mul %x, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.div %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %3 = nn.div %x, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.pow %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %4 = nn.pow %x, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.min %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %5 = nn.min %x, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.max %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %6 = nn.max %x, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.prelu %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %7 = nn.prelu %x, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.mod %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %8 = nn.mod %x, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.mod %{{.*}}, %{{.*}} {truncated} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %9 = nn.mod %x, %v {truncated} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.bitwise_and %{{.*}}, %{{.*}} : (tensor<8x4xi32>, tensor<4xi32>) -> tensor<8x4xi32>
  %10 = nn.bitwise_and %i, %w : (tensor<8x4xi32>, tensor<4xi32>) -> tensor<8x4xi32>
  // CHECK: nn.bitwise_or %{{.*}}, %{{.*}} : (tensor<8x4xi32>, tensor<4xi32>) -> tensor<8x4xi32>
  %11 = nn.bitwise_or %i, %w : (tensor<8x4xi32>, tensor<4xi32>) -> tensor<8x4xi32>
  // CHECK: nn.bitwise_xor %{{.*}}, %{{.*}} : (tensor<8x4xi32>, tensor<4xi32>) -> tensor<8x4xi32>
  %12 = nn.bitwise_xor %i, %w : (tensor<8x4xi32>, tensor<4xi32>) -> tensor<8x4xi32>
  // CHECK: nn.shift %{{.*}}, %{{.*}} : (tensor<8x4xi32>, tensor<4xi32>) -> tensor<8x4xi32>
  %13 = nn.shift %i, %w : (tensor<8x4xi32>, tensor<4xi32>) -> tensor<8x4xi32>
  // CHECK: nn.shift %{{.*}}, %{{.*}} {right} : (tensor<8x4xi32>, tensor<4xi32>) -> tensor<8x4xi32>
  %14 = nn.shift %i, %w {right} : (tensor<8x4xi32>, tensor<4xi32>) -> tensor<8x4xi32>
  // CHECK: nn.and %{{.*}}, %{{.*}} : (tensor<8x4xi1>, tensor<4xi1>) -> tensor<8x4xi1>
  %15 = nn.and %b, %c : (tensor<8x4xi1>, tensor<4xi1>) -> tensor<8x4xi1>
  // CHECK: nn.or %{{.*}}, %{{.*}} : (tensor<8x4xi1>, tensor<4xi1>) -> tensor<8x4xi1>
  %16 = nn.or %b, %c : (tensor<8x4xi1>, tensor<4xi1>) -> tensor<8x4xi1>
  // CHECK: nn.xor %{{.*}}, %{{.*}} : (tensor<8x4xi1>, tensor<4xi1>) -> tensor<8x4xi1>
  %17 = nn.xor %b, %c : (tensor<8x4xi1>, tensor<4xi1>) -> tensor<8x4xi1>
  // CHECK: nn.eq %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi1>
  %18 = nn.eq %x, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi1>
  // CHECK: nn.lt %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi1>
  %19 = nn.lt %x, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi1>
  // CHECK: nn.le %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi1>
  %20 = nn.le %x, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi1>
  // CHECK: nn.gt %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi1>
  %21 = nn.gt %x, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi1>
  // CHECK: nn.ge %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi1>
  %22 = nn.ge %x, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi1>
  // CHECK: nn.eq %{{.*}}, %{{.*}} : (tensor<8x4xi1>, tensor<4xi1>) -> tensor<8x4xi1>
  %23 = nn.eq %b, %c : (tensor<8x4xi1>, tensor<4xi1>) -> tensor<8x4xi1>
  // CHECK: nn.select %{{.*}}, %{{.*}}, %{{.*}} : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %24 = nn.select %b, %x, %v : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return
}

// Numpy broadcasting goes both ways: a dim of size 1 repeats, a missing major dim is added.
// CHECK-LABEL: @operands_broadcast_each_other
func.func @operands_broadcast_each_other(%x: tensor<8x1xf32>, %y: tensor<3x1x4xf32>, %s: tensor<f32>, %e: tensor<0x4xf32>) {
  // CHECK: nn.add %{{.*}}, %{{.*}} : (tensor<8x1xf32>, tensor<3x1x4xf32>) -> tensor<3x8x4xf32>
  %0 = nn.add %x, %y : (tensor<8x1xf32>, tensor<3x1x4xf32>) -> tensor<3x8x4xf32>
  // CHECK: nn.add %{{.*}}, %{{.*}} : (tensor<f32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  %1 = nn.add %s, %x : (tensor<f32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  // CHECK: nn.add %{{.*}}, %{{.*}} : (tensor<0x4xf32>, tensor<f32>) -> tensor<0x4xf32>
  %2 = nn.add %e, %s : (tensor<0x4xf32>, tensor<f32>) -> tensor<0x4xf32>
  return
}

// Scale and zero point are scalars, or vectors along a dim.
// CHECK-LABEL: @quantization_ops
func.func @quantization_ops(%x: tensor<8x4xf32>, %s: tensor<f32>, %v: tensor<4xf32>, %z: tensor<4xi8>, %q: tensor<8x4xi8>) {
  // CHECK: nn.quantize %{{.*}}, %{{.*}} dim 0 : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xi8>
  %0 = nn.quantize %x, %s dim 0 : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xi8>
  // CHECK: nn.quantize %{{.*}}, %{{.*}}, %{{.*}} dim 1 : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<8x4xi8>
  %1 = nn.quantize %x, %v, %z dim 1 : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<8x4xi8>
  // CHECK: nn.dequantize %{{.*}}, %{{.*}} dim 0 : (tensor<8x4xi8>, tensor<f32>) -> tensor<8x4xf32>
  %2 = nn.dequantize %q, %s dim 0 : (tensor<8x4xi8>, tensor<f32>) -> tensor<8x4xf32>
  // CHECK: nn.dequantize %{{.*}}, %{{.*}}, %{{.*}} dim 1 : (tensor<8x4xi8>, tensor<4xf32>, tensor<4xi8>) -> tensor<8x4xf32>
  %3 = nn.dequantize %q, %v, %z dim 1 : (tensor<8x4xi8>, tensor<4xf32>, tensor<4xi8>) -> tensor<8x4xf32>
  // CHECK: nn.quantize %{{.*}}, %{{.*}} dim 1 {overflow} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf8E5M2>
  %4 = nn.quantize %x, %v dim 1 {overflow} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf8E5M2>
  // CHECK: nn.cast %{{.*}} bits : (tensor<8x4xui8>) -> tensor<8x4xi4>
  %b = nn.cast %q : (tensor<8x4xi8>) -> tensor<8x4xui8>
  %5 = nn.cast %b bits : (tensor<8x4xui8>) -> tensor<8x4xi4>
  // CHECK: nn.dequantize %{{.*}}, %{{.*}} dim 0 block 8 : (tensor<8x4xi4>, tensor<1x4xf32>) -> tensor<8x4xf32>
  %w = nn.reshape %v : (tensor<4xf32>) -> tensor<1x4xf32>
  %6 = nn.dequantize %5, %w dim 0 block 8 : (tensor<8x4xi4>, tensor<1x4xf32>) -> tensor<8x4xf32>
  // CHECK: nn.cast %{{.*}} rounding up {saturate} : (tensor<8x4xf32>) -> tensor<8x4xf8E8M0FNU>
  %7 = nn.cast %x rounding up {saturate} : (tensor<8x4xf32>) -> tensor<8x4xf8E8M0FNU>
  // CHECK: nn.bitcast %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xui32>
  %8 = nn.bitcast %x : (tensor<8x4xf32>) -> tensor<8x4xui32>
  return
}
