// Totals of other ranks are added before a running sum is rounded to f16: of 2048, 1, -2048 and 8, one a rank, the third
// sum is 1, but 2048 + 1 is no f16, and would be 2048.
//
// RUN: cleave run %s --check --outputs %t.npz | FileCheck %s
// RUN: %{python} -c "import numpy as np; print(np.load('%t.npz')['sums'][::8].tolist())" | FileCheck %s --check-prefix=SUMS

// CHECK: 1 x all_gather over x 1xf32
// CHECK: check sums: ok
// SUMS: [2048.0, 2048.0, 1.0, 9.0]
#x = #spmd.sharding<#spmd.mesh<["x"=4]>, [{"x"}]>
func.func @main() -> (tensor<32xf16, #x> {nn.name = "sums"}) {
  %0 = nn.constant dense<[2048.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -2048.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 8.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]> : tensor<32xf16> -> tensor<32xf16, #x>
  %1 = nn.cumsum %0 dim 0 : (tensor<32xf16, #x>) -> tensor<32xf16, #x>
  return %1 : tensor<32xf16, #x>
}
