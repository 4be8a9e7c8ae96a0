// Arguments and results without a name are called by their number: in plans, by inspect and explain, in .npz files.
//
// RUN: cleave inspect %s | FileCheck %s --check-prefix=INSPECT
// RUN: cleave run %s --mesh d=2 --shard 'arg0=[d, _]' --shard 'result1=[_, d]' --outputs %t.npz --check | FileCheck %s --check-prefix=CHECKED
// RUN: cleave explain %s --mesh d=2 --shard 'arg0=[d, _]' --shard 'result1=[_, d]' arg0 | FileCheck %s --check-prefix=EXPLAIN
// RUN: cleave shard %s --mesh d=2 --shard 'arg0=[d, _]' --shard 'result1=[_, d]' --quiet -o %t.mlir --report %t.json
// RUN: %{python} -c "import json; r = json.load(open('%t.json')); print(*([t['name'], t['sharding']] for s in ('inputs', 'outputs') for t in r[s]))" | FileCheck %s --check-prefix=REPORT
// RUN: %{python} -c "import numpy as np; print(sorted(np.load('%t.npz'))); np.savez('%t.in.npz', arg0=np.ones((4, 4), 'f4'), x=np.ones((4, 4), 'f4'))" | FileCheck %s --check-prefix=OUTPUTS
// RUN: cleave run %s --inputs %t.in.npz --mesh d=2 --shard 'arg0=[d, _]' --check | FileCheck %s --check-prefix=CHECKED
// RUN: not cleave run %s --mesh d=2 --shard 'arg1=[d, _]' 2>&1 | FileCheck %s --check-prefix=NAMED
//
// INSPECT: arg0
// INSPECT: x
// INSPECT: y
// INSPECT: result1
// CHECKED: check y: ok
// CHECKED: check result1: ok
// EXPLAIN: arg0: f32[4, 4] [d, _]
// REPORT: ['arg0', '[{d}, {}]'] ['x', {{.*}}] ['y', {{.*}}] ['result1', '[{}, {d}]']
// OUTPUTS: ['result1', 'y']
// NAMED: error: there is no tensor 'arg1'; did you mean 'arg0'
func.func @main(%0: tensor<4x4xf32>, %1: tensor<4x4xf32> {nn.name = "x"}) -> (tensor<4x4xf32> {nn.name = "y"}, tensor<4x4xf32>) {
  %2 = nn.add %0, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = nn.exp %2 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>
}
