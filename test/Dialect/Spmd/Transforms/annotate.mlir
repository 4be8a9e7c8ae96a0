// RUN: cleave-opt %s --spmd-annotate=plan=%S/Inputs/annotate.yaml | FileCheck %s
// RUN: cleave-opt %s --spmd-annotate="mesh=data=4,model=2 shard={x=[data, _]},{q=[_, [data, model]]}" \
// RUN:   | FileCheck %s --check-prefix=OPTIONS
// RUN: cleave-opt %s --spmd-annotate="plan=%S/Inputs/annotate.yaml" --strip-debuginfo | FileCheck %s --check-prefix=PLACE

// An argument gets the annotation in its type, a parameter where it is loaded, a value inside in its result type; what the
// function returns gets it through a constraint, which leaves the value inside free. The plan's place stays known.
// CHECK-DAG: #[[$MESH:.*]] = #spmd.mesh<["data"=2, "model"=4], devices=[1, 0, 3, 2, 5, 4, 7, 6]>
// CHECK-DAG: #[[$X:.*]] = #spmd.sharding<#[[$MESH]], [{"data", ?}p2, {?}p2]>
// CHECK-DAG: #[[$W:.*]] = #spmd.sharding<#[[$MESH]], [{}, {"model":(1)2}], replicated = {"data"}>
// CHECK-DAG: #[[$Q:.*]] = #spmd.sharding<#[[$MESH]], [{"data", "model"}, {}]>
// CHECK-DAG: #[[$OUT:.*]] = #spmd.sharding<#[[$MESH]], [{}, {"data"}]>
// CHECK: module attributes {spmd.mesh = #[[$MESH]]}
// CHECK-LABEL: @annotations_go_into_types
// CHECK-SAME: %[[X:.*]]: tensor<8x16xf32, #[[$X]]>
// CHECK-SAME: -> (tensor<8x8xf32, #[[$OUT]]> {nn.name = "y"}, tensor<8x8xf32, #[[$OUT]]> {nn.name = "z"})
// CHECK: %[[W:.*]] = nn.load @wq {spmd.annotation = #{{.*}}} : tensor<16x8xf32, #[[$W]]>
// CHECK: nn.load @wk {{.*}} : tensor<16x8xf32, #[[$W]]>
// CHECK: %[[Q:.*]] = nn.einsum %[[X]], %[[W]] {{.*}} -> tensor<8x8xf32, #[[$Q]]>
// CHECK: %[[K:.*]] = nn.einsum {{.*}} -> tensor<8x8xf32>
// CHECK: %[[Y:.*]] = spmd.constrain %[[Q]] : tensor<8x8xf32, #[[$Q]]> to tensor<8x8xf32, #[[$OUT]]>
// CHECK: %[[Z:.*]] = spmd.constrain %[[K]] : tensor<8x8xf32> to tensor<8x8xf32, #[[$OUT]]>
// CHECK: return %[[Y]], %[[Z]]

// Options say the same as a plan, and nothing is touched that no rule names.
// OPTIONS-DAG: #[[$MESH:.*]] = #spmd.mesh<["data"=4, "model"=2]>
// OPTIONS-DAG: #[[$X:.*]] = #spmd.sharding<#[[$MESH]], [{"data"}, {}]>
// OPTIONS-DAG: #[[$Q:.*]] = #spmd.sharding<#[[$MESH]], [{}, {"data", "model"}]>
// OPTIONS-LABEL: @annotations_go_into_types
// OPTIONS-SAME: tensor<8x16xf32, #[[$X]]>
// OPTIONS-SAME: -> (tensor<8x8xf32, #[[$Q]]> {nn.name = "y"}, tensor<8x8xf32> {nn.name = "z"})
// OPTIONS: nn.load @wq : tensor<16x8xf32>
// OPTIONS: nn.einsum {{.*}} -> tensor<8x8xf32, #[[$Q]]>
// OPTIONS-NOT: spmd.constrain

// PLACE-DAG: #[[$Q:loc[0-9]*]] = loc("{{.*}}annotate.yaml":6:5)
// PLACE-DAG: #[[$Y:loc[0-9]*]] = loc("{{.*}}annotate.yaml":7:5)
// PLACE-LABEL: @annotations_go_into_types
// PLACE-SAME: {nn.name = "x", spmd.annotation = loc("{{.*}}annotate.yaml":4:5)}
// PLACE: nn.einsum {{.*}} {spmd.annotation = #[[$Q]]}
// PLACE: spmd.constrain {{.*}} for "y" {spmd.annotation = #[[$Y]]}
module {
  nn.param @wq : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>
  nn.param @wk : tensor<16x8xf32> = dense<2.0> : tensor<16x8xf32>
  func.func @annotations_go_into_types(%x: tensor<8x16xf32> {nn.name = "x"})
      -> (tensor<8x8xf32> {nn.name = "y"}, tensor<8x8xf32> {nn.name = "z"}) {
    %wq = nn.load @wq : tensor<16x8xf32>
    %wk = nn.load @wk : tensor<16x8xf32>
    %q = nn.einsum %x, %wq "ik,kj->ij" : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32> loc(#query)
    %k = nn.einsum %x, %wk "ik,kj->ij" : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32> loc(#key)
    return %q, %k : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
#query = loc(#nn.node<"/enc/query/MatMul", "MatMul", ["x", "wq"], [["q", "y"]]>)
#key = loc(#nn.node<"/enc/key/MatMul", "MatMul", ["x", "wk"], [["z"]]>)
