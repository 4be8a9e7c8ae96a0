// Annotations for partial values.
//
// RUN: cleave-opt %s --spmd-propagate 2>/dev/null | FileCheck %s
// RUN: cleave-opt %s --spmd-propagate --spmd-insert-reshards 2>/dev/null | FileCheck %s --check-prefix=RESHARD

#mesh = #spmd.mesh<["x"=2]>
#sum = #spmd.sharding<#mesh, [{}, {}], partial = {"x": sum}>
#max = #spmd.sharding<#mesh, [{}, {}], partial = {"x": max}>
#replicated = #spmd.sharding<#mesh, [{}, {}]>

// A product asked to be partial is split along the dim that it sums over, back through the linear op behind it.
// CHECK-LABEL: @what_is_summed_over_is_cut
// CHECK-SAME: tensor<8x16xf32, #[[COLS:replicated_x]]>, %{{.*}}: tensor<16x8xf32, #[[ROWS:x_replicated]]>
func.func @what_is_summed_over_is_cut(%a: tensor<8x16xf32>, %b: tensor<16x8xf32>) -> tensor<8x8xf32, #sum> {
  // CHECK: nn.einsum {{.*}} -> tensor<8x8xf32, #[[SUM:replicated_replicated_sum_x]]>
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  // CHECK-NEXT: nn.neg {{.*}} -> tensor<8x8xf32, #[[SUM]]>
  %1 = nn.neg %0 : (tensor<8x8xf32>) -> tensor<8x8xf32, #sum>
  return %1 : tensor<8x8xf32, #sum>
}

// A maximum likewise, but not for terms of a sum.
// CHECK-LABEL: @only_for_its_kind
func.func @only_for_its_kind(%a: tensor<4x8x8xf32>) -> (tensor<8x8xf32, #max>, tensor<8x8xf32, #sum>) {
  // CHECK: nn.reduce max {{.*}} : (tensor<4x8x8xf32{{.*}}>) -> tensor<8x8xf32, #[[MAX:.*]]>
  // CHECK-NOT: spmd.results
  %0 = nn.reduce max %a dims [0] : (tensor<4x8x8xf32>) -> tensor<8x8xf32, #max>
  // CHECK: nn.reduce max {{.*}}spmd.results = [#[[WHOLE:.*]]]
  %1 = nn.reduce max %a dims [0] : (tensor<4x8x8xf32>) -> tensor<8x8xf32, #sum>
  return %0, %1 : tensor<8x8xf32, #max>, tensor<8x8xf32, #sum>
}

// What no op computes is made whole, and partial behind that.
// CHECK-LABEL: @a_partial_constant
// RESHARD-LABEL: @a_partial_constant
func.func @a_partial_constant() -> tensor<8x8xf32, #sum> {
  // CHECK: nn.constant dense<3.000000e+00> : tensor<8x8xf32> {spmd.results = [#[[WHOLE]]]} -> tensor<8x8xf32, #[[SUM]]>
  // RESHARD: %[[C:.*]] = nn.constant dense<3.000000e+00> : tensor<8x8xf32> -> tensor<8x8xf32, #replicated_replicated>
  // RESHARD-NEXT: spmd.reshard %[[C]] : tensor<8x8xf32, #replicated_replicated> to tensor<8x8xf32, #replicated_replicated_sum_x>
  %0 = nn.constant dense<3.0> : tensor<8x8xf32> -> tensor<8x8xf32, #sum>
  return %0 : tensor<8x8xf32, #sum>
}

// Nobody but an annotation makes a result partial.
// CHECK-LABEL: @results_are_whole_unless_asked
func.func @results_are_whole_unless_asked(%a: tensor<8x8xf32, #sum>) -> tensor<8x8xf32> {
  %0 = nn.neg %a : (tensor<8x8xf32, #sum>) -> tensor<8x8xf32>
  // CHECK: return {spmd.operands = [#[[WHOLE]]]}
  return %0 : tensor<8x8xf32>
}
