// Shards of which the last ones end behind their tensor: how much of each there is stands in the rank table.
//
// RUN: cleave-opt %s --split-input-file --exec-plan-memory --exec-verify-plan | FileCheck %s

// 5 rows on 4 ranks: 2, 2, 1 and none. So of an input, of a parameter, and of what is returned; an exchange brings what there
// is, and leaves the rest as it was.
// CHECK: exec.rank_table = {
// CHECK-SAME: "3 - (x) up to 1" = array<i64: 1, 1, 1, 0>
// CHECK-SAME: "5 - (x * 2) up to 2" = array<i64: 2, 2, 1, 0>
// CHECK-SAME: "x * 2 up to 5" = array<i64: 0, 2, 4, 5>
// CHECK-SAME: "x up to 3" = array<i64: 0, 1, 2, 3>
// CHECK: exec.pieces @pieces_0 dims 1 [
// CHECK-NEXT: 0 -> 0 box [1] from [0] to [0],
// CHECK-NEXT: 1 -> 1 box [1] from [1] to [0],
// CHECK-NEXT: 2 -> 2 box [1] from [2] to [0]
// CHECK-NEXT: ]
// CHECK-LABEL: @input_parameter_and_exchange
// CHECK-DAG: exec.input "x" in %{{.*}} : memref<2xf32> of tensor<5xf32, #{{.*}}> starts ["x * 2 up to 5"] present ["5 - (x * 2) up to 2"]
// CHECK-DAG: exec.load @w starts ["x * 2 up to 5"] sizes [2] present ["5 - (x * 2) up to 2"] into %{{.*}} : memref<2xf32>
// CHECK: exec.exchange @pieces_0
// CHECK: exec.output "y" in %{{.*}} : memref<2xf32> of tensor<5xf32, #{{.*}}> starts ["x * 2 up to 5"] present ["5 - (x * 2) up to 2"]
// CHECK: exec.output "z" in %{{.*}} : memref<1xf32> of tensor<3xf32, #{{.*}}> starts ["x up to 3"] present ["3 - (x) up to 1"]
#mesh = #spmd.mesh<["x"=4]>
#cut = #spmd.sharding<#mesh, [{"x"}], uneven>
module attributes {spmd.mesh = #mesh} {
  nn.param @w : tensor<5xf32> = dense<1.0> : tensor<5xf32>
  func.func @input_parameter_and_exchange(%x: tensor<2xf32> {nn.name = "x", spmd.global = tensor<5xf32, #cut>}, %t: tensor<3xf32>)
      -> (tensor<2xf32> {nn.name = "y", spmd.global = tensor<5xf32, #cut>}, tensor<1xf32> {nn.name = "z", spmd.global = tensor<3xf32, #cut>}) {
    %w = nn.load @w shard(#cut) : tensor<2xf32>
    %y = exec.launch @add_0(%x, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %z = spmd.permute %t from #spmd.sharding<#mesh, [{}]> to #cut of tensor<3xf32> : (tensor<3xf32>) -> tensor<1xf32>
    return %y, %z : tensor<2xf32>, tensor<1xf32>
  }
  exec.kernel @add_0(%a: tensor<2xf32>, %b: tensor<2xf32>) {
    %0 = nn.add %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    exec.yield %0 : tensor<2xf32>
  }
}

// -----

// Of a part of a parameter, columns 2 to 7, the last rank has one; behind it lies what is another part's. A slice of a shard along
// another axis keeps what there is of that.
// CHECK-DAG: "5 - (x * 3) up to 3" = array<i64: 3, 3, 2, 2>
// CHECK-LABEL: @part_of_a_parameter
// CHECK-DAG: exec.load @w starts [2 + "x * 3 up to 5"] sizes [3] present ["5 - (x * 3) up to 3"]
// CHECK-DAG: exec.load @w starts [2 + "{{.*}}"] sizes [2] present ["{{.*}}"]
#mesh2 = #spmd.mesh<["x"=2, "y"=2]>
module attributes {spmd.mesh = #mesh2} {
  nn.param @w : tensor<9xf32> = dense<1.0> : tensor<9xf32>
  func.func @part_of_a_parameter() -> (tensor<3xf32> {spmd.global = tensor<5xf32, #spmd.sharding<#mesh2, [{"x"}], uneven>>}, tensor<2xf32>) {
    %w = nn.load @w starts [2] sizes [5] shard(#spmd.sharding<#mesh2, [{"x"}], uneven>) : tensor<3xf32>
    %v = nn.load @w starts [2] sizes [7] shard(#spmd.sharding<#mesh2, [{"x"}], uneven>) : tensor<4xf32>
    %s = spmd.local_slice %v dims [{"y"}] : (tensor<4xf32>) -> tensor<2xf32>
    return %w, %s : tensor<3xf32>, tensor<2xf32>
  }
}
