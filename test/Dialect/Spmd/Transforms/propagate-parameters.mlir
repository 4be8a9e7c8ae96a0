// RUN: cleave-opt %s --split-input-file --spmd-propagate --spmd-insert-reshards | FileCheck %s

// A parameter that is split over an axis which nothing else brings stays as it is, however large the batch: no weight is
// moved, and terms of a sum are reduced.

#m = #spmd.mesh<["m"=4]>
#r = #spmd.sharding<#m, [{}, {}]>
#col = #spmd.sharding<#m, [{}, {"m"}]>
#row = #spmd.sharding<#m, [{"m"}, {}]>

// An argument is a parameter where it says so.
// CHECK-LABEL: func.func @an_argument_that_is_a_parameter_stays
// CHECK: %[[UP:.*]] = nn.einsum %arg0, %arg1 {{.*}} -> tensor<1024x128xf32, #replicated_m>
// CHECK: nn.einsum {{.*}}, %arg2 {{.*}} -> tensor<1024x32xf32, #[[SUM:replicated_replicated_sum_m]]>
// CHECK-NEXT: spmd.reshard {{.*}} : tensor<1024x32xf32, #[[SUM]]> to tensor<1024x32xf32, #replicated_replicated>
func.func @an_argument_that_is_a_parameter_stays(%x: tensor<1024x32xf32, #r>, %a: tensor<32x128xf32, #col> {nn.parameter},
                                                 %b: tensor<128x32xf32, #row> {nn.parameter}) -> tensor<1024x32xf32, #r> {
  %1 = nn.einsum %x, %a "bi,ij->bj" : (tensor<1024x32xf32, #r>, tensor<32x128xf32, #col>) -> tensor<1024x128xf32>
  %2 = nn.tanh %1 : (tensor<1024x128xf32>) -> tensor<1024x128xf32>
  %3 = nn.einsum %2, %b "bi,ij->bj" : (tensor<1024x128xf32>, tensor<128x32xf32, #row>) -> tensor<1024x32xf32, #r>
  return %3 : tensor<1024x32xf32, #r>
}

// Others move where that sends less: both weights whole and the result's rows are 123 kB, reducing terms is 197.
// CHECK-LABEL: func.func @any_other_argument_moves
// CHECK: spmd.reshard %arg1
// CHECK: nn.einsum {{.*}} -> tensor<1024x128xf32, #m_replicated>
// CHECK: return
func.func @any_other_argument_moves(%x: tensor<1024x32xf32, #r>, %a: tensor<32x128xf32, #col>, %b: tensor<128x32xf32, #row>)
    -> tensor<1024x32xf32, #r> {
  %1 = nn.einsum %x, %a "bi,ij->bj" : (tensor<1024x32xf32, #r>, tensor<32x128xf32, #col>) -> tensor<1024x128xf32>
  %2 = nn.tanh %1 : (tensor<1024x128xf32>) -> tensor<1024x128xf32>
  %3 = nn.einsum %2, %b "bi,ij->bj" : (tensor<1024x128xf32>, tensor<128x32xf32, #row>) -> tensor<1024x32xf32, #r>
  return %3 : tensor<1024x32xf32, #r>
}

// -----

// What two layers share would move once for both, and that is no reason either.
#m = #spmd.mesh<["m"=4]>
#r = #spmd.sharding<#m, [{}, {}]>
#col = #spmd.sharding<#m, [{}, {"m"}]>
#row = #spmd.sharding<#m, [{"m"}, {}]>
nn.param @a : tensor<32x128xf32> = dense<0.1> : tensor<32x128xf32>
nn.param @b : tensor<128x32xf32> = dense<0.1> : tensor<128x32xf32>
// CHECK-LABEL: func.func @a_parameter_of_two_users_stays
// CHECK: %[[A:.*]] = nn.load @a
// CHECK: %[[B:.*]] = nn.load @b
// CHECK: nn.einsum %arg0, %[[A]]
// CHECK: nn.einsum {{.*}}, %[[B]]
// CHECK-NEXT: spmd.reshard {{.*}}x32xf32, #replicated_replicated_sum_m> to
// CHECK: nn.einsum {{.*}}, %[[A]]
// CHECK: nn.einsum {{.*}}, %[[B]]
// CHECK-NEXT: spmd.reshard {{.*}}x32xf32, #replicated_replicated_sum_m> to
func.func @a_parameter_of_two_users_stays(%x: tensor<1024x32xf32, #r>) -> tensor<1024x32xf32, #r> {
  %a = nn.load @a : tensor<32x128xf32, #col>
  %b = nn.load @b : tensor<128x32xf32, #row>
  %1 = nn.einsum %x, %a "bi,ij->bj" : (tensor<1024x32xf32, #r>, tensor<32x128xf32, #col>) -> tensor<1024x128xf32>
  %2 = nn.tanh %1 : (tensor<1024x128xf32>) -> tensor<1024x128xf32>
  %3 = nn.einsum %2, %b "bi,ij->bj" : (tensor<1024x128xf32>, tensor<128x32xf32, #row>) -> tensor<1024x32xf32>
  %4 = nn.einsum %3, %a "bi,ij->bj" : (tensor<1024x32xf32>, tensor<32x128xf32, #col>) -> tensor<1024x128xf32>
  %5 = nn.tanh %4 : (tensor<1024x128xf32>) -> tensor<1024x128xf32>
  %6 = nn.einsum %5, %b "bi,ij->bj" : (tensor<1024x128xf32>, tensor<128x32xf32, #row>) -> tensor<1024x32xf32, #r>
  return %6 : tensor<1024x32xf32, #r>
}
