// Sums over several dims are sums over one, in vectors and in several parts: added one after the other, 65,536 equal numbers are off by 1e-5.
//
// RUN: %{python} -c "import numpy as np; np.savez('%t.npz', x=np.full((64, 32, 32), 0.1, np.float32))"
// RUN: cleave run %s --executor=program --inputs %t.npz --outputs %t.out.npz --quiet
// RUN: %{python} -c "import numpy as np; d = {k: v.astype(float) for k, v in np.load('%t.out.npz').items()}; print(*(f'{k} {np.abs(v / w - 1).max() < 1e-6}' for k, v, w in [('all', d['all'], 6553.6), ('mean', d['mean'], 0.01), ('rows', d['rows'], 204.8)]))" | FileCheck %s
// CHECK: all True mean True rows True
func.func @main(%x: tensor<64x32x32xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "all"}, tensor<f32> {nn.name = "mean"}, tensor<32xf32> {nn.name = "rows"}) {
  %a = nn.reduce sum %x dims [0, 1, 2] : (tensor<64x32x32xf32>) -> tensor<f32>
  %s = nn.mul %x, %x : (tensor<64x32x32xf32>, tensor<64x32x32xf32>) -> tensor<64x32x32xf32>
  %m = nn.reduce mean %s dims [0, 1, 2] : (tensor<64x32x32xf32>) -> tensor<f32>
  %r = nn.reduce sum %x dims [0, 1] : (tensor<64x32x32xf32>) -> tensor<32xf32>
  return %a, %m, %r : tensor<f32>, tensor<f32>, tensor<32xf32>
}
