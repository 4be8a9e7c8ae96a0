// RUN: cleave-opt %s --nn-stack-experts --split-input-file | FileCheck %s

#mesh = #spmd.mesh<["e"=2]>
#experts = #spmd.sharding<#mesh, [{"e"}, {}, {}]>
#asked = #spmd.annotation<#experts, loc("p.yaml":3:5), loc("p.yaml":3:14)>

// Two experts that see all tokens: their weights are one parameter of references, the sum is one over the new dim.
// CHECK: nn.param @"w*" : tensor<2x4x8xf32> = [dense<1.000000e+00> : tensor<4x8xf32>, #nn.weight<"m.bin", 0, 128>]
// CHECK-LABEL: @experts_are_summed
// CHECK-DAG: %[[LOAD:.*]] = nn.load @"w*" : tensor<2x4x8xf32>
// CHECK-DAG: %[[W:.*]] = spmd.pin %[[LOAD]] "w*" wants
// CHECK: %[[H:.*]] = nn.einsum %arg0, %[[W]] "nh,ahf->anf"
// CHECK-NEXT: %[[R:.*]] = nn.relu %[[H]] : (tensor<2x3x8xf32>)
// CHECK-NEXT: %[[S:.*]] = nn.reduce sum %[[R]] dims [0]
// CHECK-NEXT: nn.add %[[S]], %arg1
// CHECK-NEXT: return
module {
  nn.param @w0 : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>
  nn.param @w1 : tensor<4x8xf32> = #nn.weight<"m.bin", 0, 128>
  func.func @experts_are_summed(%x: tensor<3x4xf32>, %r: tensor<3x8xf32>) -> tensor<3x8xf32> {
    %l0 = nn.load @w0 : tensor<4x8xf32>
    %l1 = nn.load @w1 : tensor<4x8xf32>
    %p0 = spmd.pin %l0 "w0" wants #asked : tensor<4x8xf32>
    %p1 = spmd.pin %l1 "w1" wants #asked : tensor<4x8xf32>
    %h0 = nn.einsum %x, %p0 "nh,hf->nf" : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %h1 = nn.einsum %x, %p1 "nh,hf->nf" : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %y0 = nn.relu %h0 : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %y1 = nn.relu %h1 : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %s = nn.add %r, %y0 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %y = nn.add %s, %y1 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    return %y : tensor<3x8xf32>
  }
}

// -----

#mesh = #spmd.mesh<["e"=2]>
#experts = #spmd.sharding<#mesh, [{"e"}, {}, {}]>
#asked = #spmd.annotation<#experts, loc("p.yaml":3:5), loc("p.yaml":3:14)>

// Columns of the router that follow each other are the router itself, its last dim in front.
// CHECK-LABEL: @shares_are_a_dim_of_the_router
// CHECK: %[[ALL:.*]] = nn.slice %arg1 starts [0, 1] sizes [3, 2]
// CHECK-NEXT: %[[APART:.*]] = nn.reshape %[[ALL]] : (tensor<3x2xf32>) -> tensor<3x2x1xf32>
// CHECK-NEXT: %[[SHARES:.*]] = nn.transpose %[[APART]] [1, 0, 2]
// CHECK: nn.mul %{{.*}}, %[[SHARES]] : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
module {
  nn.param @w0 : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>
  nn.param @w1 : tensor<4x8xf32> = dense<2.0> : tensor<4x8xf32>
  func.func @shares_are_a_dim_of_the_router(%x: tensor<3x4xf32>, %r: tensor<3x4xf32>) -> tensor<3x8xf32> {
    %l0 = nn.load @w0 : tensor<4x8xf32>
    %l1 = nn.load @w1 : tensor<4x8xf32>
    %p0 = spmd.pin %l0 "w0" wants #asked : tensor<4x8xf32>
    %p1 = spmd.pin %l1 "w1" wants #asked : tensor<4x8xf32>
    %h0 = nn.einsum %x, %p0 "nh,hf->nf" : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %h1 = nn.einsum %x, %p1 "nh,hf->nf" : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %s0 = nn.slice %r starts [0, 1] sizes [3, 1] steps [1, 1] : (tensor<3x4xf32>) -> tensor<3x1xf32>
    %s1 = nn.slice %r starts [0, 2] sizes [3, 1] steps [1, 1] : (tensor<3x4xf32>) -> tensor<3x1xf32>
    %y0 = nn.mul %h0, %s0 : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
    %y1 = nn.mul %h1, %s1 : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
    %y = nn.add %y0, %y1 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    return %y : tensor<3x8xf32>
  }
}

// -----

// Nobody asks: experts stay what they are.
// CHECK-LABEL: @experts_stay_apart
// CHECK-COUNT-2: nn.einsum %{{.*}}, %{{.*}} "nh,hf->nf"
// CHECK: nn.add
module {
  nn.param @w0 : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>
  nn.param @w1 : tensor<4x8xf32> = dense<2.0> : tensor<4x8xf32>
  func.func @experts_stay_apart(%x: tensor<3x4xf32>) -> tensor<3x8xf32> {
    %l0 = nn.load @w0 : tensor<4x8xf32>
    %l1 = nn.load @w1 : tensor<4x8xf32>
    %h0 = nn.einsum %x, %l0 "nh,hf->nf" : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %h1 = nn.einsum %x, %l1 "nh,hf->nf" : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %y = nn.add %h0, %h1 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    return %y : tensor<3x8xf32>
  }
}

// -----

#mesh = #spmd.mesh<["e"=2]>
#experts = #spmd.sharding<#mesh, [{"e"}, {}, {}]>
#asked = #spmd.annotation<#experts, loc("p.yaml":3:5), loc("p.yaml":3:14)>

// What is alike behind experts, and not asked for, stays apart.
// CHECK-LABEL: @what_stands_behind_stays_apart
// CHECK: %[[S:.*]] = nn.reduce sum %{{.*}} dims [0]
// CHECK-COUNT-2: nn.einsum %[[S]], %{{.*}} "nf,fg->ng" : (tensor<3x8xf32>, tensor<8x5xf32>)
// CHECK-NEXT: nn.add
// CHECK-NEXT: return
module {
  nn.param @w0 : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>
  nn.param @w1 : tensor<4x8xf32> = dense<2.0> : tensor<4x8xf32>
  nn.param @u0 : tensor<8x5xf32> = dense<3.0> : tensor<8x5xf32>
  nn.param @u1 : tensor<8x5xf32> = dense<4.0> : tensor<8x5xf32>
  func.func @what_stands_behind_stays_apart(%x: tensor<3x4xf32>) -> tensor<3x5xf32> {
    %l0 = nn.load @w0 : tensor<4x8xf32>
    %l1 = nn.load @w1 : tensor<4x8xf32>
    %u0 = nn.load @u0 : tensor<8x5xf32>
    %u1 = nn.load @u1 : tensor<8x5xf32>
    %p0 = spmd.pin %l0 "w0" wants #asked : tensor<4x8xf32>
    %p1 = spmd.pin %l1 "w1" wants #asked : tensor<4x8xf32>
    %h0 = nn.einsum %x, %p0 "nh,hf->nf" : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %h1 = nn.einsum %x, %p1 "nh,hf->nf" : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %s = nn.add %h0, %h1 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %t0 = nn.einsum %s, %u0 "nf,fg->ng" : (tensor<3x8xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
    %t1 = nn.einsum %s, %u1 "nf,fg->ng" : (tensor<3x8xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
    %y = nn.add %t0, %t1 : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
    return %y : tensor<3x5xf32>
  }
}
