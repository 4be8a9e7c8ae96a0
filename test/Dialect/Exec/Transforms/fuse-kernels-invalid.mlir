// What is too early or too late for kernels.
//
// RUN: cleave-opt %s --split-input-file --exec-fuse-kernels --verify-diagnostics

// expected-error @below {{the module is clustered already, and cannot become clustered}}
module attributes {spmd.phase = "clustered"} {
  func.func @once(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}

// -----

// With a mesh there is one program per device first.
// expected-error @below {{the module is propagated, and must be partitioned before it can become clustered}}
module attributes {spmd.phase = "propagated", spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func @local(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}

// -----

// Files that say nothing show it.
// expected-error @below {{the module is clustered already, and cannot become clustered}}
module {
  func.func @guessed(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = exec.fused (%a = %x) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
      %r = nn.relu %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
      exec.yield %r : tensor<8x8xf32>
    }
    return %0 : tensor<8x8xf32>
  }
}
