// RUN: cleave-opt --spmd-propagate %s 2>&1 | FileCheck %s --check-prefix=MOVES
// RUN: cleave-opt --spmd-propagate=keep-plan=true %s 2>&1 | FileCheck %s --check-prefix=KEEPS
// RUN: cleave run %s --keep-plan --check | FileCheck %s --check-prefix=EQUAL

// EQUAL: 1 x reduce_scatter
// EQUAL: check result0: ok

// FSDP: the batch brings the axis that the weight is cut along, so that gathering it is what was asked for. Kept where it is, rows
// are exchanged for columns (24,576 bytes), and terms of all ranks are added (98,304); the weight is 12,288.
#mesh = #spmd.mesh<["x"=4]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
// MOVES-NOT: remark
// MOVES-LABEL: @fsdp
// KEEPS: remark: 'nn.einsum' op sends 122880 bytes a rank where 12288 would do: that follows the plan
// KEEPS-LABEL: @fsdp
func.func @fsdp(%x: tensor<512x64xf32, #rows>, %w: tensor<64x64xf32, #rows> {nn.parameter}) -> tensor<512x64xf32, #rows> {
  // MOVES: nn.einsum {{.*}} {spmd.operands = [unit, #replicated_replicated]}
  // KEEPS: nn.einsum {{.*}} {spmd.operands = [#replicated_x, unit]
  %0 = nn.einsum %x, %w "ik,kj->ij" : (tensor<512x64xf32, #rows>, tensor<64x64xf32, #rows>) -> tensor<512x64xf32, #rows>
  return %0 : tensor<512x64xf32, #rows>
}
