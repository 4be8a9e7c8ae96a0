// The pipeline from annotations to collectives takes them from a plan, from options, or from the types of the file.
//
// RUN: cleave-opt %s "--spmd-shard=plan=%S/Inputs/mlp.yaml" | FileCheck %s
// RUN: cleave-opt %s "--spmd-shard=mesh=m=2 shard={up=[_, m]},{down=[m, _]}" | FileCheck %s
// RUN: not cleave-opt %s --spmd-shard 2>&1 | FileCheck %s --check-prefix=NOMESH

// NOMESH: error: there is no mesh: give one by --mesh, in the plan, or in the sharding of a type

// CHECK-LABEL: @main
func.func @main(%x: tensor<8x16xf32> {nn.name = "x"}, %a: tensor<16x64xf32> {nn.name = "up"},
                %b: tensor<64x16xf32> {nn.name = "down"}) -> (tensor<8x16xf32> {nn.name = "y"}) {
  // CHECK-NEXT: nn.einsum {{.*}} -> tensor<8x32xf32>
  // CHECK-NEXT: nn.relu
  // CHECK-NEXT: %[[P:.*]] = nn.einsum
  // CHECK-NEXT: %[[Y:.*]] = spmd.all_reduce sum %[[P]] over {"m"} : tensor<8x16xf32>
  // CHECK-NEXT: return %[[Y]]
  %0 = nn.einsum %x, %a "ik,kj->ij" : (tensor<8x16xf32>, tensor<16x64xf32>) -> tensor<8x64xf32>
  %1 = nn.relu %0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %2 = nn.einsum %1, %b "ik,kj->ij" : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
