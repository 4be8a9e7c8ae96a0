// RUN: cleave-opt --spmd-propagate %s 2>&1 >/dev/null | grep remark: | FileCheck %s

// A window cannot be cut along the channels that it looks at: gathering the larger tensor is dearer, so it is told
// first; what sends less than a hundredth of all is only counted.
// CHECK: propagate-remarks.mlir:[[#@LINE+10]]:8: remark: 'nn.lrn' op is replicated over x: it cannot be split along this dim
// CHECK-NOT: 'nn.lrn'
// CHECK: remark: and 1 remark about less than 1 % of the bytes
#mesh = #spmd.mesh<["x"=2]>
#cut = #spmd.sharding<#mesh, [{}, {"x"}, {}, {}]>
#whole = #spmd.sharding<#mesh, [{}, {}, {}, {}]>
module attributes {spmd.mesh = #mesh} {
func.func @dearest_first(%a: tensor<1x2x2x2xf32, #cut>, %b: tensor<2x8x64x64xf32, #cut>)
    -> (tensor<1x2x2x2xf32, #whole>, tensor<2x8x64x64xf32, #whole>) {
  %0 = nn.lrn %a size 1 alpha 1.0e-4 beta 0.75 k 1.0 : (tensor<1x2x2x2xf32, #cut>) -> tensor<1x2x2x2xf32, #whole>
  %1 = nn.lrn %b size 5 alpha 1.0e-4 beta 0.75 k 1.0 : (tensor<2x8x64x64xf32, #cut>) -> tensor<2x8x64x64xf32, #whole>
  return %0, %1 : tensor<1x2x2x2xf32, #whole>, tensor<2x8x64x64xf32, #whole>
}
}
