// RUN: cleave-opt --spmd-propagate %s 2>&1 >/dev/null | grep remark: | FileCheck %s

// A dim of 8 that becomes one of 9 cannot be split together with it: gathering the larger tensor is
// dearer, so it is told first; what sends less than a hundredth of all is only counted.
// CHECK: propagate-remarks.mlir:[[#@LINE+10]]:8: remark: 'nn.resize' op is replicated over x: it cannot be split along this dim
// CHECK-NOT: 'nn.resize'
// CHECK: remark: and 1 remark about less than 1 % of the bytes
#mesh = #spmd.mesh<["x"=2]>
#cut = #spmd.sharding<#mesh, [{}, {"x"}, {}, {}]>
#replicated = #spmd.sharding<#mesh, [{}, {}, {}, {}]>
module attributes {spmd.mesh = #mesh} {
func.func @dearest_first(%a: tensor<1x2x2x2xf32, #cut>, %b: tensor<2x8x64x64xf32, #cut>)
    -> (tensor<1x3x2x2xf32, #replicated>, tensor<2x9x64x64xf32, #replicated>) {
  %0 = nn.resize linear %a coordinates align_corners rounding floor scales [1.0, 1.5, 1.0, 1.0] : (tensor<1x2x2x2xf32, #cut>) -> tensor<1x3x2x2xf32, #replicated>
  %1 = nn.resize linear %b coordinates align_corners rounding floor scales [1.0, 1.125, 1.0, 1.0] : (tensor<2x8x64x64xf32, #cut>) -> tensor<2x9x64x64xf32, #replicated>
  return %0, %1 : tensor<1x3x2x2xf32, #replicated>, tensor<2x9x64x64xf32, #replicated>
}
}
