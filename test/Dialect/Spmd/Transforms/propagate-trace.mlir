// RUN: cleave-opt %s --spmd-propagate=trace-decisions=true -o /dev/null 2>&1 | FileCheck %s
// RUN: cleave-opt %s --spmd-propagate -o /dev/null 2>&1 | FileCheck %s --check-prefix=QUIET --allow-empty

// QUIET-NOT: pass of

// The price of splitting rows: 8192 flops by 2 ranks at 1/128 byte are 32 bytes. Not splitting: all flops are 64 bytes, those
// beyond 1.25 times half of them 768, writing 512 bytes too many 2; and gathering half of 512 bytes on the way in
// costs 256 and half a byte for being a reshard.
// CHECK: {{^}}pass of x, annotations only: saves {{[0-9.]+}} bytes
// CHECK-NEXT: nn.einsum ([i,j],[j,k])->([i,k]) {i=8,j=16,k=32}
// CHECK-NEXT: {{^}}    > x: cut i    32.0 bytes: op 32.0, inside 0.0, reshards 0.0    [x, _], [_, _] -> [x, _]
// CHECK-NEXT: {{^}}      x: none    370.5 bytes: op 114.0, inside 0.0, reshards 256.5    [_, _], [_, _] -> [_, _]
#x = #spmd.sharding<#spmd.mesh<["x"=2]>, [{"x"}, {}]>
func.func @rows_stay_cut(%a: tensor<8x16xf32, #x>, %w: tensor<16x32xf32>) -> tensor<8x32xf32> {
  %0 = nn.einsum %a, %w "ik,kj->ij" : (tensor<8x16xf32, #x>, tensor<16x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}
