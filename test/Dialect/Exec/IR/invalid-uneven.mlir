// What is said of shards that end behind their tensor, and is not so.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// exec.load C2: what is present lies in the box, and in the parameter.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>, exec.rank_table = {"x * 4" = array<i64: 0, 4>, "3 - x" = array<i64: 4, 3>}} {
  nn.param @p : tensor<6xf32> = dense<0.0> : tensor<6xf32>
  exec.buffer @w weights 64 align 64
  func.func @main() {
    %0 = exec.view @w[0] : memref<4xf32>
    // expected-error @below {{'exec.load' op takes a box that is not in the parameter, in dim 0 (C2)}}
    exec.load @p starts ["x * 4"] sizes [4] present ["3 - x"] into %0 : memref<4xf32>
    return
  }
}

// -----

nn.param @p : tensor<6xf32> = dense<0.0> : tensor<6xf32>
exec.buffer @w weights 64 align 64
func.func @main() {
  %0 = exec.view @w[0] : memref<4xf32>
  // expected-error @below {{'exec.load' op says of 2 dims what is present, of 1 (C2)}}
  exec.load @p starts [0] sizes [4] present [4, 4] into %0 : memref<4xf32>
  return
}

// -----

// exec.output C2: padding is told of just where it is.
exec.buffer @o output 64 align 64
func.func @main() {
  %0 = exec.view @o[0] : memref<8xf32>
  // expected-error @below {{'exec.output' op says of 1 dims what is present, expected 0 (C2)}}
  exec.output "y" in %0 : memref<8xf32> of tensor<8xf32> starts [0] present [8]
  return
}
