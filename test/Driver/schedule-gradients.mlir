// What I and W of a model take and what is kept for them, by hand, for 2 of 8 rows. Times are bytes / 2300 (and 2000 for a product; flops are
// fewer), rounded; bytes are 1024 for a value of 128 columns and 512 for one of 64; the parameters have 32768 each, the bias 256.
//
//   op       F                                  I      W      I reads   W reads
//   %h       2000 + (512 + 32768 + 1024) / 2300                          (an input of the model)
//            = 2015                             -      2015
//   %r       (1024 + 1024) / 2300 = 1           1      -      %r
//   %y       2000 + (1024 + 32768 + 512) / 2300
//            = 2015                             2015   2015             %r
//   %c       (512 + 256 + 512) / 2300 = 1       1      -
//   %t       1                                  1      -      %t
//   %s       2000 + (1024 + 1024 + 8) / 2300
//            = 2001                             4002   -      %r, %t
//
// A stage takes 6034 + 6020 + 4030 in all. F leaves %r and %t behind: 2048. I releases %t, and the gradients of %h and %y wait for W: - 1024 + 1024 + 512. In inference the most at a
// time is held at the end: %r, %c, %t and %s, 1024 + 512 + 1024 + 8.
//
// RUN: cleave schedule %s --ranks 1 --microbatches 4 --schedule zb-h1 --quiet --report %t.json | FileCheck %s --check-prefix=STAGES
// RUN: %{python} -c "import json; r = json.load(open('%t.json')); print(*(part[k] for part in (r['costs'], r['memory']) for k in 'FIW'))" | FileCheck %s
// STAGES: {{^}}    0     0      6        16084          65792
// STAGES-NEXT: {{^}}slowest
// STAGES-NEXT: {{^}}zb-h1: 1 ranks
// CHECK: [6034] [6020] [4030] [2048] [512] [-2560]
//
// RUN: cleave schedule %s --ranks 1 --microbatches 4 --schedule forward --quiet --report %t.json
// RUN: %{python} -c "import json; r = json.load(open('%t.json')); print(r['memory']['F'], r['peak']['memory'])" | FileCheck %s --check-prefix=FORWARD
// FORWARD: [2568] [2568]
//
// On two ranks %h, then the rest: rank 1 has the message, 1024, while it computes. Its I waits for no %h: 512 - 1024; that of rank 0 does.
//
// RUN: cleave schedule %s --ranks 2 --microbatches 4 --schedule forward --quiet --report %t.json
// RUN: %{python} -c "import json; r = json.load(open('%t.json')); print(*r['memory'].values(), r['peak']['memory'])" | FileCheck %s --check-prefix=TWO
// TWO: [1024, 2568] [1024, -512] [-1024, -1536] 1 None [1024, 3592]
// In training stages are split by all that they take, 4030, 2, 6045, 2, 2 and 6003: behind %y, where F alone (and the link of 5 us) would be split behind %h.
//
// RUN: cleave schedule %s --ranks 2 --microbatches 4 --quiet | FileCheck %s --check-prefix=TRAINING
// TRAINING: {{^}}    0     0      3        10077
// TRAINING-NEXT: {{^}}    1     1      3         6007
// TRAINING-NEXT: {{^}}slowest stage or link 10077 ns, no split is faster than 8042 ns
nn.param @w1 : tensor<64x128xf32> = dense<0.5> : tensor<64x128xf32>
nn.param @w2 : tensor<128x64xf32> = dense<0.5> : tensor<128x64xf32>
nn.param @b : tensor<64xf32> = dense<0.5> : tensor<64xf32>
func.func @main(%x: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8xf32>) {
  %w1 = nn.load @w1 : tensor<64x128xf32>
  %w2 = nn.load @w2 : tensor<128x64xf32>
  %b = nn.load @b : tensor<64xf32>
  %h = nn.einsum %x, %w1 "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x128xf32>) -> tensor<8x128xf32>
  %r = nn.relu %h : (tensor<8x128xf32>) -> tensor<8x128xf32>
  %y = nn.einsum %r, %w2 "ik,kj->ij" : (tensor<8x128xf32>, tensor<128x64xf32>) -> tensor<8x64xf32>
  %c = nn.add %y, %b : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  %t = nn.tanh %r : (tensor<8x128xf32>) -> tensor<8x128xf32>
  %s = nn.einsum %r, %t "ij,ij->i" : (tensor<8x128xf32>, tensor<8x128xf32>) -> tensor<8xf32>
  return %c, %s : tensor<8x64xf32>, tensor<8xf32>
}
