// By time, small reductions that do not need each other are one. Otherwise each is sent by itself. Equal either way, also as
// a program. On this machine each takes 6.6 us to begin, two steps of 0.6 us, and a nanosecond for its bytes.
//
// RUN: cleave run %s --mesh x=2 --shard 'p=[x, _]' --shard 'q=[x, _]' --shard 's=[_]' --shard 't=[_]' --cluster 8xH100-nvlink --check | FileCheck %s --check-prefixes=EACH,EQUAL
// RUN: cleave run %s --mesh x=2 --shard 'p=[x, _]' --shard 'q=[x, _]' --shard 's=[_]' --shard 't=[_]' --cluster 8xH100-nvlink --optimize=time --check | FileCheck %s --check-prefixes=ONE,EQUAL
// RUN: cleave run %s --mesh x=2 --shard 'p=[x, _]' --shard 'q=[x, _]' --shard 's=[_]' --shard 't=[_]' --cluster 8xH100-nvlink --optimize=time --check --executor=program | FileCheck %s --check-prefix=EQUAL

// EACH-LABEL: mesh x=2
// EACH-NEXT: 1 x all_reduce over x 64xf32 256 B
// EACH-NEXT: 1 x all_reduce over x 50xf32 200 B
// EACH-NEXT: sent by a rank: 456 B
// EACH: time of a rank: {{.*}}, 15.60 us of communication

// ONE-LABEL: mesh x=2
// ONE-NEXT: 1 x all_reduce over x 114xf32 456 B
// ONE-NEXT: sent by a rank: 456 B
// ONE: time of a rank: {{.*}}, 7.80 us of communication

// EQUAL: check s: ok
// EQUAL: check t: ok
func.func @main(%p: tensor<8192x64xf32> {nn.name = "p"}, %q: tensor<8192x50xf32> {nn.name = "q"}) -> (tensor<64xf32> {nn.name = "s"}, tensor<50xf32> {nn.name = "t"}) {
  %s = nn.reduce sum %p dims [0] : (tensor<8192x64xf32>) -> tensor<64xf32>
  %t = nn.reduce sum %q dims [0] : (tensor<8192x50xf32>) -> tensor<50xf32>
  return %s, %t : tensor<64xf32>, tensor<50xf32>
}
