// By time, what is gathered from rows and from columns, and sums of which each rank keeps rows or columns, are sent together
// where nothing has to wait. Equal either way, also as a program.
//
// RUN: cleave run %s --mesh x=2 --shard 'a=[x, _, _]' --shard 'b=[x, _, _]' --shard 's=[x, _]' --shard 't=[_, x]' --shard 'p=[x, _]' --shard 'q=[_, x]' --shard 'u=[_, _]' --shard 'v=[_, _]' --cluster 8xH100-nvlink --check | FileCheck %s --check-prefixes=EACH,EQUAL
// RUN: cleave run %s --mesh x=2 --shard 'a=[x, _, _]' --shard 'b=[x, _, _]' --shard 's=[x, _]' --shard 't=[_, x]' --shard 'p=[x, _]' --shard 'q=[_, x]' --shard 'u=[_, _]' --shard 'v=[_, _]' --cluster 8xH100-nvlink --optimize=time --check | FileCheck %s --check-prefixes=ONE,EQUAL
// RUN: cleave run %s --mesh x=2 --shard 'a=[x, _, _]' --shard 'b=[x, _, _]' --shard 's=[x, _]' --shard 't=[_, x]' --shard 'p=[x, _]' --shard 'q=[_, x]' --shard 'u=[_, _]' --shard 'v=[_, _]' --cluster 8xH100-nvlink --optimize=time --check --executor=program | FileCheck %s --check-prefix=EQUAL

// A rank sends half of 8x8 and of 6x10 elements in terms, and half of 6x8 and 8x10: 128, 120, 96 and 160 bytes.
// EACH-LABEL: mesh x=2
// EACH-DAG: 1 x all_gather over x 3x8xf32 96 B
// EACH-DAG: 1 x all_gather over x 8x5xf32 160 B
// EACH-DAG: 1 x reduce_scatter over x 8x8xf32 128 B
// EACH-DAG: 1 x reduce_scatter over x 6x10xf32 120 B
// EACH: sent by a rank: 504 B

// ONE-LABEL: mesh x=2
// ONE-DAG: 1 x all_gather over x 64xf32 256 B
// ONE-DAG: 1 x reduce_scatter over x 124xf32 248 B
// ONE: sent by a rank: 504 B

// EQUAL: check s: ok
// EQUAL: check t: ok
// EQUAL: check u: ok
// EQUAL: check v: ok
func.func @main(%a: tensor<8192x8x8xf32> {nn.name = "a"}, %b: tensor<8192x6x10xf32> {nn.name = "b"}, %p: tensor<6x8xf32> {nn.name = "p"}, %q: tensor<8x10xf32> {nn.name = "q"})
    -> (tensor<8x8xf32> {nn.name = "s"}, tensor<6x10xf32> {nn.name = "t"}, tensor<6x8xf32> {nn.name = "u"}, tensor<8x10xf32> {nn.name = "v"}) {
  %s = nn.reduce sum %a dims [0] : (tensor<8192x8x8xf32>) -> tensor<8x8xf32>
  %t = nn.reduce sum %b dims [0] : (tensor<8192x6x10xf32>) -> tensor<6x10xf32>
  %u = nn.exp %p : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %v = nn.exp %q : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return %s, %t, %u, %v : tensor<8x8xf32>, tensor<6x10xf32>, tensor<6x8xf32>, tensor<8x10xf32>
}
