// Every op has a rule. This test names each op once, on operands that can be split, with the beginning of its rule: first those
// that work element by element, which have one rule in common, then all others. The last function is the table of what must
// be replicated, with the reason that remarks give.
//
// RUN: %{python} %S/Inputs/uncovered.py %S/../../../../dialects/Nn/Ops %s | FileCheck %s --check-prefix=ALL
// RUN: rm -rf %t && split-file %s %t
// RUN: cleave-opt %t/unary.mlir --spmd-print-rules -o /dev/null 2>&1 | grep -o 'remark: .*' | sed 's/ linear.*//' | sort | uniq -c | FileCheck %t/unary.mlir --implicit-check-not=remark:
// RUN: cleave-opt %t/binary.mlir --spmd-print-rules -o /dev/null 2>&1 | grep -o 'remark: .*' | sed 's/ linear.*//' | sort | uniq -c | FileCheck %t/binary.mlir --implicit-check-not=remark:
// RUN: cleave-opt %t/others.mlir --spmd-print-rules --verify-diagnostics

// ALL: uncovered: none

//--- unary.mlir
// CHECK: {{^ *}}38 remark: ([i,j])->([i,j]) {i=8,j=4}{{$}}
func.func @the_result_is_cut_like_the_operand(%x: tensor<8x4xf32>, %n: tensor<8x4xi32>, %p: tensor<8x4xi1>) {
  %neg = nn.neg %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %abs = nn.abs %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %sign = nn.sign %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %sqrt = nn.sqrt %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %reciprocal = nn.reciprocal %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %exp = nn.exp %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %log = nn.log %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %erf = nn.erf %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %sin = nn.sin %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %cos = nn.cos %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %tan = nn.tan %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %asin = nn.asin %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %acos = nn.acos %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %atan = nn.atan %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %sinh = nn.sinh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %cosh = nn.cosh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %tanh = nn.tanh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %asinh = nn.asinh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %acosh = nn.acosh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %atanh = nn.atanh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %floor = nn.floor %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %ceil = nn.ceil %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %round = nn.round %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %relu = nn.relu %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %sigmoid = nn.sigmoid %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %silu = nn.silu %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %softplus = nn.softplus %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %gelu = nn.gelu %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %hard_swish = nn.hard_swish %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %leaky_relu = nn.leaky_relu %x {alpha = 0.1} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %elu = nn.elu %x {alpha = 1.0} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %hard_sigmoid = nn.hard_sigmoid %x {alpha = 0.2, beta = 0.5} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %is_nan = nn.is_nan %x : (tensor<8x4xf32>) -> tensor<8x4xi1>
  %is_inf = nn.is_inf %x : (tensor<8x4xf32>) -> tensor<8x4xi1>
  %bitwise_not = nn.bitwise_not %n : (tensor<8x4xi32>) -> tensor<8x4xi32>
  %not = nn.not %p : (tensor<8x4xi1>) -> tensor<8x4xi1>
  %cast = nn.cast %x : (tensor<8x4xf32>) -> tensor<8x4xf16>
  %bitcast = nn.bitcast %x : (tensor<8x4xf32>) -> tensor<8x4xi32>
  return
}

//--- binary.mlir
// CHECK: {{^ *}}21 remark: ([i,j],[i,j])->([i,j]) {i=8,j=4}{{$}}
func.func @the_result_is_cut_like_both_operands(%x: tensor<8x4xf32>, %n: tensor<8x4xi32>, %p: tensor<8x4xi1>) {
  %add = nn.add %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %sub = nn.sub %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %mul = nn.mul %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %div = nn.div %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %pow = nn.pow %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %min = nn.min %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %max = nn.max %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %prelu = nn.prelu %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %mod = nn.mod %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %bitwise_and = nn.bitwise_and %n, %n : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %bitwise_or = nn.bitwise_or %n, %n : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %bitwise_xor = nn.bitwise_xor %n, %n : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %shift = nn.shift %n, %n : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %and = nn.and %p, %p : (tensor<8x4xi1>, tensor<8x4xi1>) -> tensor<8x4xi1>
  %or = nn.or %p, %p : (tensor<8x4xi1>, tensor<8x4xi1>) -> tensor<8x4xi1>
  %xor = nn.xor %p, %p : (tensor<8x4xi1>, tensor<8x4xi1>) -> tensor<8x4xi1>
  %eq = nn.eq %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  %lt = nn.lt %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  %le = nn.le %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  %gt = nn.gt %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  %ge = nn.ge %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  return
}

//--- others.mlir
nn.param @w : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>

func.func @every_other_op_has_a_rule(%x: tensor<8x4xf32>, %p: tensor<8x4xi1>, %c: tensor<4xf32>, %q: tensor<8x4xi8>,
                               %i: tensor<8x4xi64>, %h: tensor<2x4x8x6xf32>, %r: tensor<1x8x3xf32>, %k: tensor<4x4x3x3xf32>,
                               %v: tensor<2xf32>, %steps: tensor<3x1x4x1x6xf32>, %square: tensor<1x1x6x6xf32>, %state: tensor<1x4x6xf32>) {
  // expected-remark @below {{([i,j],[i,j],[i,j])->([i,j]) {i=8,j=4}}}
  %select = nn.select %p, %x, %x : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  // expected-remark @below {{([i,j],[j])->([i,j]) {i=8,j=4}}}
  %quantize = nn.quantize %x, %c dim 1 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi8>
  // expected-remark @below {{([i,j],[j])->([i,j]) {i=8,j=4}}}
  %dequantize = nn.dequantize %q, %c dim 1 : (tensor<8x4xi8>, tensor<4xf32>) -> tensor<8x4xf32>
  // expected-remark @below {{()->([i,j]) {i=8,j=4}}}
  %constant = nn.constant dense<0> : tensor<8x4xi64> -> tensor<8x4xi64>
  // expected-remark @below {{()->([i,j]) {i=8,j=4}}}
  %load = nn.load @w : tensor<8x4xf32>
  // expected-remark @below {{()->([i,j]) {i=8,j=4}}}
  %iota = nn.iota dim 0 start 0 step 1 : tensor<8x4xi64>
  // expected-remark @below {{([i,j],[k,j])->([i,k]) {i=8,j=4,k=8} reduce={j}}}
  %einsum = nn.einsum %x, %x "ik,jk->ij" : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  // expected-remark @below {{([i,j])->([i]) {i=8,j=4} reduce={j}}}
  %reduce = nn.reduce sum %x dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  // expected-remark @below {{([i,j])->([i]) {i=8,j=4} ordered={j}}}
  %arg_reduce = nn.arg_reduce max %x dim 1 : (tensor<8x4xf32>) -> tensor<8xi64>
  // expected-remark @below {{([i,j])->([i,j]) {i=8,j=4} ordered={j}}}
  %softmax = nn.softmax %x dim 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // expected-remark @below {{([i,j])->([i,j]) {i=8,j=4} ordered={j}}}
  %log_softmax = nn.log_softmax %x dim 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // expected-remark @below {{([i,j])->([i,j]) {i=8,j=4} ordered={j}}}
  %cumsum = nn.cumsum %x dim 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // expected-remark @below {{([i,j])->([i,k],[i,k]) {i=8,j=4,k=2} replicate={k} ordered={j}}}
  %top_k:2 = nn.top_k %x k 2 dim 1 : (tensor<8x4xf32>) -> (tensor<8x2xf32>, tensor<8x2xi64>)
  // expected-remark @below {{([i,j],[j],[j])->([i,j]) {i=8,j=4} ordered={j}}}
  %layer_norm = nn.layer_norm %x, %c bias %c dim 1 epsilon 1.0e-5 : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // expected-remark @below {{([i,j],[j])->([i,j]) {i=8,j=4} ordered={j}}}
  %rms_norm = nn.rms_norm %x, %c dim 1 epsilon 1.0e-5 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // expected-remark @below {{([i,j,k,l],[j],[j],[j],[j])->([i,j,k,l])}}
  %batch_norm = nn.batch_norm %h, %c, %c, %c, %c epsilon 1.0e-5 : (tensor<2x4x8x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x8x6xf32>
  // expected-remark @below {{([i,jk,l,m],[jk],[jk])->([i,jk,l,m]) {i=2,j=2,k=2,l=8,m=6}}}
  %group_norm = nn.group_norm %h, %c, %c groups 2 epsilon 1.0e-5 : (tensor<2x4x8x6xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x8x6xf32>
  // expected-remark @below {{([i,k,l,m])->([i,j,l,m]) {i=2,j=4,k=4,l=8,m=6} exchange={k>j}}}
  %lrn = nn.lrn %h size 3 alpha 1.0e-4 beta 0.75 k 1.0 : (tensor<2x4x8x6xf32>) -> tensor<2x4x8x6xf32>
  // expected-remark @below {{([i,j,k,n],[i,j,l,n],[i,j,l,m])->([i,j,k,m])}}
  %attention = nn.attention %h, %h, %h scale 0.5 : (tensor<2x4x8x6xf32>, tensor<2x4x8x6xf32>, tensor<2x4x8x6xf32>) -> tensor<2x4x8x6xf32>
  // expected-remark @below {{([i,j,k,l],[1,k,m],[1,k,m])->([i,j,k,l])}}
  %rotary_embedding = nn.rotary_embedding %h, %r, %r rotated 6 : (tensor<2x4x8x6xf32>, tensor<1x8x3xf32>, tensor<1x8x3xf32>) -> tensor<2x4x8x6xf32>
  // expected-remark @below {{([i,1,j,1,k],[1,1,k,l],[1,j,k])->([i,1,j,k],[1,j,k])}}
  %recurrence:2 = nn.recurrence rnn %steps, %square initial (%state) activations ["tanh"] alphas [0.0] betas [0.0] : (tensor<3x1x4x1x6xf32>, tensor<1x1x6x6xf32>, tensor<1x4x6xf32>) -> (tensor<3x1x4x6xf32>, tensor<1x4x6xf32>)
  // expected-remark @below {{([i,k,m,p],[j,k,n,q])->([i,j,l,o]) {i=2,j=4,k=4,l=6,m=8,n=3,o=4,p=6,q=3} reduce={k}}}
  %conv = nn.conv %h, %k strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<2x4x8x6xf32>, tensor<4x4x3x3xf32>) -> tensor<2x4x6x4xf32>
  // expected-remark @below {{([i,k,m,p],[k,j,n,q])->([i,j,l,o]) {i=2,j=4,k=4,l=10,m=8,n=3,o=8,p=6,q=3} reduce={k}}}
  %conv_transpose = nn.conv_transpose %h, %k strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] output_pads [0, 0] groups 1 : (tensor<2x4x8x6xf32>, tensor<4x4x3x3xf32>) -> tensor<2x4x10x8xf32>
  // expected-remark @below {{([i,j,kl,mn])->([i,j,k,m]) {i=2,j=4,k=4,l=2,m=3,n=2}}}
  %pool = nn.pool max %h kernel [2, 2] strides [2, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] : (tensor<2x4x8x6xf32>) -> tensor<2x4x4x3xf32>
  // expected-remark @below {{([i,j,k,m])->([i,j,kl,m]) {i=2,j=4,k=8,l=2,m=6}}}
  %resize = nn.resize nearest %h coordinates asymmetric rounding floor scales [1.0, 1.0, 2.0, 1.0] : (tensor<2x4x8x6xf32>) -> tensor<2x4x16x6xf32>
  // expected-remark @below {{([i,j])->([ij]) {i=8,j=4}}}
  %reshape = nn.reshape %x : (tensor<8x4xf32>) -> tensor<32xf32>
  // expected-remark @below {{([i,j])->([j,i]) {i=8,j=4}}}
  %transpose = nn.transpose %x [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  // expected-remark @below {{([j,k])->([i,j,k]) {i=2,j=8,k=4}}}
  %broadcast = nn.broadcast %x : (tensor<8x4xf32>) -> tensor<2x8x4xf32>
  // expected-remark @below {{([j,l],[k,l])->([i,l]) {i=16,j=8,k=8,l=4} exchange={jk>i}}}
  %concat = nn.concat %x, %x dim 0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  // expected-remark @below {{([i,j])->([i,k]) {i=8,j=4,k=2} reduce={j} exchange={j>k}}}
  %slice = nn.slice %x starts [0, 1] sizes [8, 2] steps [1, 1] : (tensor<8x4xf32>) -> tensor<8x2xf32>
  // expected-remark @below {{([i,k])->([i,j]) {i=8,j=5,k=4} exchange={k>j} linear(sum)={0} linear(prod)={0} linear(max)={0} linear(min)={0}}}
  %pad = nn.pad edge %x low [0, 1] high [0, 0] : (tensor<8x4xf32>) -> tensor<8x5xf32>
  // expected-remark @below {{([i,k])->([i,j]) {i=8,j=4,k=4} exchange={k>j}}}
  %rotate = nn.rotate %x dim 1 by 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // expected-remark @below {{([i,j])->([i,k],[i,l]) {i=8,j=4,k=2,l=2} exchange={j>kl}}}
  %split:2 = nn.split %x dim 1 parts [2, 2] : (tensor<8x4xf32>) -> (tensor<8x2xf32>, tensor<8x2xf32>)
  // expected-remark @below {{([i,j])->([i,j]) {i=8,j=4}}}
  %trilu = nn.trilu %x offset 0 upper : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // expected-remark @below {{([l,k],[i,j])->([i,j,k]) {i=8,j=4,k=4,l=8} reduce={l}}}
  %gather = nn.gather %x, %i dim 0 : (tensor<8x4xf32>, tensor<8x4xi64>) -> tensor<8x4x4xf32>
  // expected-remark @below {{([i,k],[i,j])->([i,j]) {i=8,j=4,k=4} reduce={k}}}
  %gather_elements = nn.gather_elements %x, %i dim 1 : (tensor<8x4xf32>, tensor<8x4xi64>) -> tensor<8x4xf32>
  // expected-remark @below {{([j,k,l,m],[i,n])->([i]) {i=8,j=2,k=4,l=8,m=6,n=4} reduce={j,k,l,m} replicate={n}}}
  %gather_nd = nn.gather_nd %h, %i batch_dims 0 : (tensor<2x4x8x6xf32>, tensor<8x4xi64>) -> tensor<8xf32>
  // expected-remark @below {{([i,k],[j,k],[j,k])->([i,k]) {i=8,j=8,k=4}}}
  %scatter_elements = nn.scatter_elements set %x, %i, %x dim 0 : (tensor<8x4xf32>, tensor<8x4xi64>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %u = nn.reduce sum %x dims [1] : (tensor<8x4xf32>) -> tensor<8xf32> // expected-remark {{reduce={j}}}
  // expected-remark @below {{([i,j,k,l],[m,n],[m])->([i,j,k,l]) {i=2,j=4,k=8,l=6,m=8,n=4} replicate={m,n}}}
  %scatter_nd = nn.scatter_nd set %h, %i, %u : (tensor<2x4x8x6xf32>, tensor<8x4xi64>, tensor<8xf32>) -> tensor<2x4x8x6xf32>
  // expected-remark @below {{([i,k],[l])->([i,j,k]) {i=8,j=5,k=4,l=2}}}
  %one_hot = nn.one_hot %i, %v depth 5 dim 1 : (tensor<8x4xi64>, tensor<2xf32>) -> tensor<8x5x4xf32>
  return
}

func.func @what_must_be_whole(%x: tensor<8xf32>, %n: tensor<8xi32>, %c: tensor<1x8xf32>, %i: tensor<1x1x8xf32>, %h: tensor<1x1x1x8xf32>, %t: tensor<1x1x4xf32>) {
  // expected-remark @below {{must_replicate="a mean of integers rounds once, after the whole sum"}}
  %0 = nn.reduce mean %n dims [0] : (tensor<8xi32>) -> tensor<i32>
  // expected-remark @below {{must_replicate="the elements of the last dim are rotated in pairs"}}
  %4 = nn.rotary_embedding %h, %t, %t rotated 8 : (tensor<1x1x1x8xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x1x1x8xf32>
  // expected-remark @below {{must_replicate="windows over the spatial dims overlap"}}
  %5 = nn.pool max %i kernel [8] strides [1] pads_low [0] pads_high [0] dilations [1] : (tensor<1x1x8xf32>) -> tensor<1x1x1xf32>
  // expected-remark @below {{must_replicate="samples between the shards of every dim would be needed"}}
  %6 = nn.resize linear %i coordinates align_corners rounding floor scales [1.0, 1.0, 2.125] : (tensor<1x1x8xf32>) -> tensor<1x1x17xf32>
  return
}
