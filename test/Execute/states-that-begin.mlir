// States of a step that nobody gives are what they begin as: a weight, a part of one, a narrow one cast, or zeros. On any mesh the step
// gives what it gives on one device, in the evaluator, and as a program, which loads them itself.
//
// RUN: %{python} -c "import numpy, sys; numpy.savez(sys.argv[1], x=numpy.ones(2, numpy.float32))" %t.in.npz
// RUN: cleave run %s --quiet --inputs %t.in.npz --outputs %t.npz
// RUN: %{python} -c "import numpy, sys; a = numpy.load(sys.argv[1]); print([a[n].tolist() for n in ('next(k)', 'next(a)', 'next(m(k))')])" %t.npz | FileCheck %s --check-prefix=VALUES
// RUN: cleave run %s --mesh x=2 --shard 'k=[x, _]' --check --emit=ordered | FileCheck %s
// RUN: cleave run %s --mesh x=3 --uneven --shard 'k=[x, _]' --shard 'm(k)=[_, x]' --check --executor=program | FileCheck %s
// RUN: cleave run %s --mesh x=4 --shard 'k=[x, _]' --check --executor=program | FileCheck %s
// RUN: cleave run %s --mesh x=2,y=2 --shard 'k=[x, y]' --check --executor=program | FileCheck %s
// RUN: cleave run %s --mesh x=2 --shard 'k=[_, x]' --check --executor=program --device=cuda-emulated | FileCheck %s
// RUN: cleave compile %s --mesh x=2 --shard 'k=[x, _]' -o %t.cleave
// RUN: cleave inspect %t.cleave | FileCheck %s --check-prefix=INSPECT
//
// VALUES: {{\[\[\[2.0, 3.0], \[6.0, 7.0], \[10.0, 11.0], \[14.0, 15.0]], \[0.5, 1.5], }}
// CHECK: check next(k): ok
// CHECK: check next(a): ok
// CHECK: check next(m(k)): ok
// INSPECT: k  f32[4, 2]  [x, _]  parameter  of qkv [4, 4] from [0, 2]
// INSPECT: m(k)  f32[4, 2]  [x, _]  optimizer
// INSPECT: state: output next(k) is the next input k, which begins as qkv
// INSPECT: state: output next(m(k)) is the next input m(k){{$}}
nn.param @qkv : tensor<4x4xf32> = dense<[[0., 1., 2., 3.], [4., 5., 6., 7.], [8., 9., 10., 11.], [12., 13., 14., 15.]]> : tensor<4x4xf32>
nn.param @a : tensor<2xbf16> = dense<[0.25, 1.25]> : tensor<2xbf16>
func.func @main(%x: tensor<2xf32> {nn.name = "x", nn.role = "batch"},
                %k: tensor<4x2xf32> {nn.name = "k", nn.role = "parameter",
                                     nn.begins = {param = @qkv, starts = array<i64: 0, 2>, sizes = array<i64: 4, 2>}},
                %a: tensor<2xf32> {nn.name = "a", nn.role = "parameter", nn.begins = @a},
                %m: tensor<4x2xf32> {nn.name = "m(k)", nn.role = "optimizer"})
    -> (tensor<4x2xf32> {nn.name = "y"}, tensor<4x2xf32> {nn.name = "next(k)", spmd.state = "k"},
        tensor<2xf32> {nn.name = "next(a)", spmd.state = "a"}, tensor<4x2xf32> {nn.name = "next(m(k))", spmd.state = "m(k)"}) {
  %c = nn.constant dense<0.25> : tensor<2xf32> -> tensor<2xf32>
  %y = nn.mul %k, %x : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %n = nn.add %k, %m : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %b = nn.add %a, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %o = nn.add %m, %k : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y, %n, %b, %o : tensor<4x2xf32>, tensor<4x2xf32>, tensor<2xf32>, tensor<4x2xf32>
}
