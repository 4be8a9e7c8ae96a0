// What has no form in ONNX is told, with its place, and nothing is written.
//
// RUN: %{each} %s %t "not cleave export {} -o %t/no 2>&1 | FileCheck {}" "not ls %t/no/export.json 2> /dev/null"

//--- saturating.mlir
// CHECK: saturating.mlir:[[#@LINE+2]]:{{[0-9]+}}: error: 'nn.cast' op from 'f32' to 'i8' that saturates has no form in ONNX
func.func @main(%x: tensor<4xf32>) -> tensor<4xi8> {
  %y = nn.cast %x {saturate} : (tensor<4xf32>) -> tensor<4xi8>
  return %y : tensor<4xi8>
}

//--- bits.mlir
// CHECK: bits.mlir:[[#@LINE+2]]:{{[0-9]+}}: error: 'nn.cast' op of bits to 'f8E4M3FN' has no form in ONNX's opset 23
func.func @main(%x: tensor<4xui8>) -> tensor<4xf8E4M3FN> {
  %y = nn.cast %x bits : (tensor<4xui8>) -> tensor<4xf8E4M3FN>
  return %y : tensor<4xf8E4M3FN>
}

//--- powers.mlir
// CHECK: powers.mlir:[[#@LINE+2]]:{{[0-9]+}}: error: 'nn.cast' op cannot be exported: ONNX's opset 23 has no tensors of 'f8E8M0FNU'
func.func @main(%x: tensor<4xf32>) -> tensor<4xf8E8M0FNU> {
  %y = nn.cast %x : (tensor<4xf32>) -> tensor<4xf8E8M0FNU>
  return %y : tensor<4xf8E8M0FNU>
}

//--- nibbles.mlir
// CHECK: nibbles.mlir:{{.*}}: error: 'func.func' op cannot be exported: argument 'arg0' is of 'i4', which is a byte in exported graphs
func.func @main(%x: tensor<4xi4>, %s: tensor<f32>) -> tensor<4xf32> {
  %y = nn.dequantize %x, %s dim 0 : (tensor<4xi4>, tensor<f32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

//--- quantized.mlir
// CHECK: quantized.mlir:[[#@LINE+2]]:{{[0-9]+}}: error: 'nn.quantize' op to 'i32' has no form in ONNX
func.func @main(%x: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xi32> {
  %y = nn.quantize %x, %s dim 0 : (tensor<4xf32>, tensor<f32>) -> tensor<4xi32>
  return %y : tensor<4xi32>
}

//--- dequantized.mlir
// CHECK: dequantized.mlir:[[#@LINE+2]]:{{[0-9]+}}: error: 'nn.dequantize' op of 'i64' has no form in ONNX
func.func @main(%x: tensor<4xi64>, %s: tensor<f32>) -> tensor<4xf32> {
  %y = nn.dequantize %x, %s dim 0 : (tensor<4xi64>, tensor<f32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

//--- convolved.mlir
// CHECK: convolved.mlir:[[#@LINE+2]]:{{[0-9]+}}: error: 'nn.conv' op of 'i64' has no form in ONNX
func.func @main(%x: tensor<1x1x4xi64>, %w: tensor<1x1x2xi64>) -> tensor<1x1x3xi64> {
  %y = nn.conv %x, %w strides [1] pads_low [0] pads_high [0] dilations [1] groups 1 : (tensor<1x1x4xi64>, tensor<1x1x2xi64>) -> tensor<1x1x3xi64>
  return %y : tensor<1x1x3xi64>
}

//--- resized.mlir
// CHECK: resized.mlir:[[#@LINE+2]]:{{[0-9]+}}: error: 'nn.resize' op to 'tensor<1x1x9xf32>' has scales that do not give these extents: it has no form in ONNX
func.func @main(%x: tensor<1x1x4xf32>) -> tensor<1x1x9xf32> {
  %y = nn.resize linear %x coordinates half_pixel rounding floor scales [1.0, 1.0, 2.0] : (tensor<1x1x4xf32>) -> tensor<1x1x9xf32>
  return %y : tensor<1x1x9xf32>
}

//--- missing.mlir
// CHECK: missing.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'nn.param' op @w is in 'nothing.bin', which is not in the folder of this file
nn.param @w : tensor<4xf32> = #nn.weight<"nothing.bin", 0, 16>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = nn.load @w : tensor<4xf32>
  %y = nn.add %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

//--- other-mesh.mlir
#mesh = #spmd.mesh<["x"=2]>
#other = #spmd.mesh<["y"=2]>
module attributes {spmd.mesh = #mesh, spmd.phase = "optimized"} {
  // CHECK: other-mesh.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'func.func' op cannot be exported: argument 'arg0' is 'tensor<2xf32>', which is not a shard of tensor<4xf32, {{.*}}> on the module's mesh
  func.func @main(%x: tensor<2xf32> {spmd.global = tensor<4xf32, #spmd.sharding<#other, [{"y"}]>>}) -> (tensor<2xf32> {spmd.global = tensor<4xf32, #spmd.sharding<#mesh, [{"x"}]>>}) {
    return %x : tensor<2xf32>
  }
}

//--- weight-on-other-mesh.mlir
#mesh = #spmd.mesh<["x"=2]>
#other = #spmd.mesh<["y"=2]>
module attributes {spmd.mesh = #mesh, spmd.phase = "optimized"} {
  nn.param @w : tensor<4xf32> = dense<1.0> : tensor<4xf32>
  func.func @main(%x: tensor<2xf32> {spmd.global = tensor<4xf32, #spmd.sharding<#mesh, [{"x"}]>>}) -> (tensor<2xf32> {spmd.global = tensor<4xf32, #spmd.sharding<#mesh, [{"x"}]>>}) {
    // CHECK: weight-on-other-mesh.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'nn.load' op cannot be exported: #spmd.sharding<{{.*}}> is not a sharding over the mesh of the module
    %w = nn.load @w shard(#spmd.sharding<#other, [{"y"}]>) : tensor<2xf32>
    %y = nn.add %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
}

//--- loop.mlir
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = nn.loop count 100000 carries (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // CHECK: loop.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'nn.bitcast' op cannot be exported: it has no form in ONNX
    %b = nn.bitcast %a : (tensor<4xf32>) -> tensor<4xi32>
    %c = nn.bitcast %b : (tensor<4xi32>) -> tensor<4xf32>
    nn.yield next (%c) : (tensor<4xf32>) -> ()
  }
  return %y : tensor<4xf32>
}

//--- step.mlir
// Steps of rings have one part; several are those of a kernel.
#mesh = #spmd.mesh<["x"=2]>
#replicated = #spmd.sharding<#mesh, [{}, {}, {}, {}]>
module attributes {spmd.mesh = #mesh, spmd.phase = "optimized"} {
  func.func @main(%q: tensor<1x2x4x8xf32> {spmd.global = tensor<1x2x4x8xf32, #replicated>}, %k: tensor<1x2x32x8xf32> {spmd.global = tensor<1x2x32x8xf32, #replicated>}) -> (tensor<1x2x4x2xf32> {spmd.global = tensor<1x2x4x2xf32, #replicated>}) {
    // CHECK: step.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'exec.partial_attention' op cannot be exported: it has no form in ONNX
    %y, %l = exec.partial_attention %q, %k, %k part 16 scale 0.5 : (tensor<1x2x4x8xf32>, tensor<1x2x32x8xf32>, tensor<1x2x32x8xf32>) -> (tensor<1x2x4x2x8xf32>, tensor<1x2x4x2xf32>)
    return %l : tensor<1x2x4x2xf32>
  }
}
