// Messages name nodes in a file that has lost its locations too: names are attributes. The place is that of the file.
//
// RUN: cleave-opt %s --nn-store-nodes --strip-debuginfo -o %t.mlir
// RUN: cleave-opt %t.mlir --spmd-shard='mesh=x=2 shard=x=[_,x,_,_]' -o /dev/null 2>&1 | FileCheck %s
// RUN: cleave shard %t.mlir --mesh x=2 --shard 'x=[_,x,_,_]' --remarks -o %t.out.mlir 2>&1 | FileCheck %s --check-prefix=DRIVER

// CHECK: stripped-names.mlir.tmp.mlir:4:10: remark: node "/net/Lrn" (LRN): 'nn.lrn' op is resharded over x
// DRIVER: stripped-names.mlir.tmp.mlir:4:10: remark: node '/net/Lrn': 'nn.lrn' op is resharded over x
func.func @main(%x: tensor<2x8x4x4xf32> {nn.name = "x"}) -> tensor<2x8x4x4xf32> {
  %0 = nn.lrn %x size 3 alpha 1.0e-4 beta 0.75 k 1.0 : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32> loc(#lrn)
  return %0 : tensor<2x8x4x4xf32>
}
#lrn = loc(#nn.node<"/net/Lrn", "LRN", ["x"], [["y"]]>)
