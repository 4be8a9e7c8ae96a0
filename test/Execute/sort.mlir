// The largest elements along a split dim: candidates of all ranks where they are few; else the elements move, to another dim that
// is free, or to every rank. The price decides: over 4 ranks k candidates are 3 k (4 + 4) bytes, a gather of n elements 3 n.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-shard | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok
// EQUAL: check result1: ok

#mesh = #spmd.mesh<["x"=4]>
#x = #spmd.sharding<#mesh, [{"x"}]>
#o = #spmd.sharding<#mesh, [{}]>
#ox = #spmd.sharding<#mesh, [{}, {"x"}]>
#xo = #spmd.sharding<#mesh, [{"x"}, {}]>
#oo = #spmd.sharding<#mesh, [{}, {}]>

//--- few.mlir
// 30 of 256: 720 bytes against 768.
// CHECK-LABEL: @few_candidates_are_gathered
func.func @few_candidates_are_gathered(%x: tensor<256xf32, #x>) -> (tensor<30xf32>, tensor<30xi64>) {
  // CHECK: nn.top_k {{.*}} k 30 dim 0 : (tensor<64xf32>)
  // CHECK: spmd.all_gather {{.*}} (tensor<30xf32>) -> tensor<120xf32>
  // CHECK: spmd.all_gather {{.*}} (tensor<30xi32>) -> tensor<120xi32>
  // CHECK-NOT: = spmd.
  %0:2 = nn.top_k %x k 30 dim 0 : (tensor<256xf32, #x>) -> (tensor<30xf32>, tensor<30xi64>)
  return %0#0, %0#1 : tensor<30xf32>, tensor<30xi64>
}

//--- many.mlir
// 40 of 256: 960 bytes against 768.
// CHECK-LABEL: @many_candidates_are_more_than_the_elements
func.func @many_candidates_are_more_than_the_elements(%x: tensor<256xf32, #x>) -> (tensor<40xf32>, tensor<40xi64>) {
  // CHECK-NEXT: spmd.all_gather %{{.*}} (tensor<64xf32>) -> tensor<256xf32>
  // CHECK-NEXT: = nn.top_k
  // CHECK-NOT: = spmd.
  %0:2 = nn.top_k %x k 40 dim 0 : (tensor<256xf32, #x>) -> (tensor<40xf32>, tensor<40xi64>)
  return %0#0, %0#1 : tensor<40xf32>, tensor<40xi64>
}

//--- rows.mlir
// A whole sort, with rows that nobody splits: three quarters of a rank's piece go to other ranks, and results stay there.
// CHECK-LABEL: @a_sort_moves_to_the_rows
func.func @a_sort_moves_to_the_rows(%x: tensor<8x256xf32, #ox>) -> (tensor<8x256xf32>, tensor<8x256xi64>) {
  // CHECK-NEXT: spmd.all_to_all {{.*}} (tensor<8x64xf32>) -> tensor<2x256xf32>
  // CHECK-NEXT: = nn.top_k
  // CHECK-NOT: = spmd.
  %0:2 = nn.top_k %x k 256 dim 1 : (tensor<8x256xf32, #ox>) -> (tensor<8x256xf32>, tensor<8x256xi64>)
  return %0#0, %0#1 : tensor<8x256xf32>, tensor<8x256xi64>
}

//--- back.mlir
// The same where the values are to lie as the elements did: all_to_all there, and back.
// CHECK-LABEL: @a_sort_moves_to_the_rows_and_back
func.func @a_sort_moves_to_the_rows_and_back(%x: tensor<8x256xf32, #ox>) -> (tensor<8x256xf32, #ox>, tensor<8x256xi64, #xo>) {
  // CHECK-NEXT: spmd.all_to_all {{.*}} (tensor<8x64xf32>) -> tensor<2x256xf32>
  // CHECK: spmd.all_to_all {{.*}} (tensor<2x256xf32>) -> tensor<8x64xf32>
  // CHECK-NOT: = spmd.
  %0, %1 = nn.top_k %x k 256 dim 1 : (tensor<8x256xf32, #ox>) -> (tensor<8x256xf32, #ox>, tensor<8x256xi64, #xo>)
  return %0, %1 : tensor<8x256xf32, #ox>, tensor<8x256xi64, #xo>
}

//--- odd.mlir
// Three rows do not divide: every rank gets all elements.
// CHECK-LABEL: @no_other_dim_is_free
func.func @no_other_dim_is_free(%x: tensor<3x256xf32, #ox>) -> (tensor<3x200xf32, #oo>, tensor<3x200xi64, #oo>) {
  // CHECK-NEXT: spmd.all_gather {{.*}} (tensor<3x64xf32>) -> tensor<3x256xf32>
  // CHECK-NEXT: = nn.top_k
  // CHECK-NOT: = spmd.
  %0:2 = nn.top_k %x k 200 dim 1 : (tensor<3x256xf32, #ox>) -> (tensor<3x200xf32, #oo>, tensor<3x200xi64, #oo>)
  return %0#0, %0#1 : tensor<3x200xf32, #oo>, tensor<3x200xi64, #oo>
}
