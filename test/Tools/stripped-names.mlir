// Messages name nodes in a file that has lost its locations too: names are attributes. The place is that of the file.
//
// RUN: cleave-opt %s --nn-store-nodes --strip-debuginfo -o %t.mlir
// RUN: cleave-opt %t.mlir --spmd-shard='mesh=x=2 shard=x=[_,x,_,_]' -o /dev/null 2>&1 | FileCheck %s
// RUN: cleave shard %t.mlir --mesh x=2 --shard 'x=[_,x,_,_]' --remarks -o %t.out.mlir 2>&1 | FileCheck %s --check-prefix=DRIVER

// CHECK: stripped-names.mlir.tmp.mlir:4:10: remark: node "/net/Resize" (Resize): 'nn.resize' op is resharded over x
// DRIVER: stripped-names.mlir.tmp.mlir:4:10: remark: node '/net/Resize': 'nn.resize' op is resharded over x
func.func @main(%x: tensor<2x8x4x4xf32> {nn.name = "x"}) -> tensor<2x9x4x4xf32> {
  %0 = nn.resize linear %x coordinates align_corners rounding floor scales [1.0, 1.125, 1.0, 1.0] : (tensor<2x8x4x4xf32>) -> tensor<2x9x4x4xf32> loc(#resize)
  return %0 : tensor<2x9x4x4xf32>
}
#resize = loc(#nn.node<"/net/Resize", "Resize", ["x"], [["y"]]>)
