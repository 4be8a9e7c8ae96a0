// A program of functions runs as it is, and under a plan, which may name a tensor inside a function: in each call of it.
// Two products of 8 x 16, split by rows because their operand is, and replicated again behind: nothing but the gather of the
// result, 8 x 8 x 4 bytes / 2 = 128.
//
// RUN: %{python} -c "import numpy as n, sys; r = n.random.default_rng(5); n.savez(sys.argv[1], x=r.normal(size=(8, 8)).astype('f'), w=r.normal(size=(8, 8)).astype('f'))" %t.in.npz
// RUN: cleave run %s --inputs %t.in.npz --outputs %t.out.npz
// RUN: %{python} -c "import numpy as n, sys; i, o = map(n.load, sys.argv[1:]); n.testing.assert_allclose(o['y'], n.tanh(n.tanh(i['x'] @ i['w']) @ i['w']), rtol=1e-4, atol=1e-5)" %t.in.npz %t.out.npz
// RUN: cleave run %s --mesh r=2 --shard 'hidden=[r, _]' --shard 'y=[_, _]' --check | FileCheck %s
// RUN: cleave shard %s --emit canonical | FileCheck %s --check-prefix=CANONICAL

// CHECK: 1 x all_gather over r 4x8xf32 128 B
// CHECK-NEXT: sent by a rank: 128 B
// CHECK: check y: ok
// CANONICAL-LABEL: func.func @main
// CANONICAL-NOT: func.
func.func @main(%x: tensor<8x8xf32> {nn.name = "x"}, %w: tensor<8x8xf32> {nn.name = "w"}) -> (tensor<8x8xf32> {nn.name = "y"}) {
  %0 = func.call @twice(%x, %w) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func private @twice(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = func.call @layer(%x, %w) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = func.call @layer(%0, %w) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
func.func private @layer(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc(#hidden)
  %1 = nn.tanh %0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
#hidden = loc(#nn.node<"/layer", "MatMul", ["x", "w"], [["hidden"]]>)
