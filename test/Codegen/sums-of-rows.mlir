// Gradients of tables: rows are sorted by where they go, and a row is made once, in the kernel that goes on with it. Rows that nothing goes to,
// rows that many go to, tuples of two indices, some from the end, columns that fill no vector, numbers that are rounded once.
//
// RUN: %{python} %S/Inputs/sums_of_rows.py draw %t.npz
// RUN: cleave run %s --executor=program --inputs %t.npz --outputs %t.out.npz --quiet
// RUN: %{python} %S/Inputs/sums_of_rows.py compare %t.npz %t.out.npz | FileCheck %s
// RUN: cleave run %s --executor=program --device cuda-emulated --inputs %t.npz --outputs %t.device.npz --quiet
// RUN: %{python} %S/Inputs/sums_of_rows.py compare %t.npz %t.device.npz | FileCheck %s
// CHECK: table equal
// CHECK-NEXT: next equal
// CHECK-NEXT: pairs equal
// CHECK-NEXT: halves equal
// CHECK-NEXT: wide equal
//
// Ranks that share the batch, the table or its columns.
// RUN: cleave run %s --executor=program --mesh a=2 --shard 'ids=[a]' --shard 'rows=[a,_]' --check --quiet
// RUN: cleave run %s --executor=program --mesh a=3 --shard 'w=[a,_]' --check --quiet
// RUN: cleave run %s --executor=program --mesh a=2 --shard 'rows=[_,a]' --check --quiet
//
// RUN: cleave shard %s --mesh one=1 --emit clustered -o - --quiet 2>/dev/null | FileCheck %s --check-prefix=KERNEL
// KERNEL: exec.fused
// KERNEL: %[[ZEROS:.*]] = nn.broadcast
// KERNEL-NEXT: %[[TABLE:.*]] = nn.scatter_nd add %[[ZEROS]]
// KERNEL: %[[STEP:.*]] = nn.mul %[[TABLE]]
// KERNEL-NEXT: %[[NEXT:.*]] = nn.sub %{{.*}}, %[[STEP]]
// KERNEL-NEXT: exec.yield %[[TABLE]], %[[NEXT]]
func.func @main(%ids: tensor<40xi64> {nn.name = "ids"}, %rows: tensor<40x20xf32> {nn.name = "rows"}, %w: tensor<30x20xf32> {nn.name = "w"},
                %pair: tensor<3x5x2xi64> {nn.name = "pair"}, %some: tensor<3x5x9xf32> {nn.name = "some"},
                %half: tensor<40x20xf16> {nn.name = "half"}, %double: tensor<40x20xf64> {nn.name = "double"})
    -> (tensor<30x20xf32> {nn.name = "table"}, tensor<30x20xf32> {nn.name = "next"}, tensor<4x6x9xf32> {nn.name = "pairs"},
        tensor<30x20xf16> {nn.name = "halves"}, tensor<30x20xf64> {nn.name = "wide"}) {
  %at = nn.reshape %ids : (tensor<40xi64>) -> tensor<40x1xi64>
  %zero = nn.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %zeros = nn.broadcast %zero : (tensor<f32>) -> tensor<30x20xf32>
  %table = nn.scatter_nd add %zeros, %at, %rows : (tensor<30x20xf32>, tensor<40x1xi64>, tensor<40x20xf32>) -> tensor<30x20xf32>
  %rate = nn.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %step = nn.mul %table, %rate : (tensor<30x20xf32>, tensor<f32>) -> tensor<30x20xf32>
  %next = nn.sub %w, %step : (tensor<30x20xf32>, tensor<30x20xf32>) -> tensor<30x20xf32>
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %ones = nn.broadcast %one : (tensor<f32>) -> tensor<4x6x9xf32>
  %pairs = nn.scatter_nd add %ones, %pair, %some : (tensor<4x6x9xf32>, tensor<3x5x2xi64>, tensor<3x5x9xf32>) -> tensor<4x6x9xf32>
  %none = nn.constant dense<0.0> : tensor<f16> -> tensor<f16>
  %nones = nn.broadcast %none : (tensor<f16>) -> tensor<30x20xf16>
  %halves = nn.scatter_nd add %nones, %at, %half : (tensor<30x20xf16>, tensor<40x1xi64>, tensor<40x20xf16>) -> tensor<30x20xf16>
  %nil = nn.constant dense<0.0> : tensor<f64> -> tensor<f64>
  %nils = nn.broadcast %nil : (tensor<f64>) -> tensor<30x20xf64>
  %wide = nn.scatter_nd add %nils, %at, %double : (tensor<30x20xf64>, tensor<40x1xi64>, tensor<40x20xf64>) -> tensor<30x20xf64>
  return %table, %next, %pairs, %halves, %wide : tensor<30x20xf32>, tensor<30x20xf32>, tensor<4x6x9xf32>, tensor<30x20xf16>, tensor<30x20xf64>
}
