// What cannot be planned.
//
// RUN: cleave-opt %s --split-input-file --exec-plan-memory --verify-diagnostics

// A program is one function.
// expected-note @below {{the first one is here}}
func.func @first() {
  return
}
// expected-error @below {{'func.func' op is a second function, and a program is one}}
func.func @second() {
  return
}

// -----

// expected-error @below {{has no function}}
module {
  func.func private @somewhere_else()
}

// -----

// Memory is planned for kernels.
// expected-error @below {{the module is clustered, and must be outlined before it can become planned}}
module attributes {spmd.phase = "clustered"} {
  func.func @main() {
    return
  }
}

// -----

// What computes is in kernels.
module attributes {spmd.phase = "outlined"} {
  func.func @alone(%a: tensor<2x4xf32>) -> tensor<2x4xf32> {
    // expected-error @below {{'nn.relu' op cannot be made a command}}
    %0 = nn.relu %a : (tensor<2x4xf32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
}

// -----

// Bytes are counted in 62 bits.
// expected-error @below {{'func.func' op has values of more than 2^61 bytes}}
func.func @too_large(%a: tensor<288230376151711744xf64>) -> tensor<288230376151711744xf64> {
  return %a : tensor<288230376151711744xf64>
}

// -----

// Weights are packed once.
func.func @packed(%a: tensor<2x4xf32>) -> tensor<1x2x4x1xf32> {
  // expected-error @below {{'exec.pack' op packs what is computed, which programs cannot do yet}}
  %0 = exec.pack %a order [0, 1] batch 0 width 4 interleave 1 : (tensor<2x4xf32>) -> tensor<1x2x4x1xf32>
  return %0 : tensor<1x2x4x1xf32>
}

// -----

module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  nn.param @w : tensor<4xf32> = dense<1.0> : tensor<4xf32>
  func.func @another_mesh() -> tensor<2xf32> {
    // expected-error @below {{which is not a sharding of it over the module's mesh}}
    %w = nn.load @w shard(#spmd.sharding<#spmd.mesh<["y"=2]>, [{"y"}]>) : tensor<2xf32>
    return %w : tensor<2xf32>
  }
}
