// RUN: cleave-opt %s --split-input-file --spmd-verify-phase=phase=annotated | FileCheck %s
// RUN: cleave-opt %s --split-input-file --spmd-verify-phase=phase=propagated | FileCheck %s
// RUN: cleave-opt %s --split-input-file --spmd-verify-phase=phase=resharded | FileCheck %s

// A gate lets through what holds, and changes nothing.
#mesh = #spmd.mesh<["x"=2]>
#x_ = #spmd.sharding<#mesh, [{"x"}, {}]>
#part = #spmd.sharding<#mesh, [{}, {}], partial = {"x": sum}>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
#_x = #spmd.sharding<#mesh, [{}, {"x"}]>
module attributes {spmd.mesh = #mesh} {
  // CHECK-LABEL: @operands_and_results_agree
  func.func @operands_and_results_agree(%a: tensor<8x4xf32, #_x>, %b: tensor<4x8xf32, #x_>) -> tensor<8x8xf32, #replicated> {
    // CHECK-NEXT: nn.einsum
    // CHECK-NEXT: spmd.reshard
    // CHECK-NEXT: return
    %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<8x4xf32, #_x>, tensor<4x8xf32, #x_>) -> tensor<8x8xf32, #part>
    %1 = spmd.reshard %0 : tensor<8x8xf32, #part> to tensor<8x8xf32, #replicated>
    return %1 : tensor<8x8xf32, #replicated>
  }
}
