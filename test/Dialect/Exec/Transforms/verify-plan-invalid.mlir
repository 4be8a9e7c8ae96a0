// What a plan must not be.
//
// RUN: cleave-opt %s --split-input-file --exec-verify-plan=phase=ordered --verify-diagnostics

// M1
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @out output 64 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    // expected-error @below {{'nn.constant' op is not a command on memory (M1)}}
    %c = nn.constant dense<0.0> : tensor<f32> -> tensor<f32>
    return
  }
}

// -----

// M1
// expected-error @below {{is not one function of one block, without arguments and results (M1)}}
module {
  func.func @arguments(%x: tensor<8xf32>) {
    return
  }
}

// -----

// M2: on rank 1.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>, exec.rank_table = {c = array<i64: 0, 240>}} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @out output 64 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    // expected-error @below {{'exec.view' op does not lie in its buffer, aligned to its elements, on every rank (M2)}}
    %a = exec.view @a["c"] : memref<8xf32>
    return
  }
}

// -----

// M2: a part outside of its whole.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @out output 64 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %a = exec.view @a[0] : memref<8xf32>
    // expected-error @below {{'exec.view' op does not lie in the tensor that it is of (M2)}}
    %p = exec.view @a[16] of %a : memref<8xf32> of memref<8xf32>
    return
  }
}

// -----

// M3
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @out output 64 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %a = exec.view @a[0] : memref<8xf32>
    %b = exec.view @a[32] : memref<8xf32>
    // expected-error @below {{'exec.run' op reads byte 0 of @a, which nothing has written, on rank 0 (M3)}}
    exec.run @exp_0(%a) into (%b) : (memref<8xf32>) -> memref<8xf32>
    return
  }
}

// -----

// M3: the last 16 bytes of %a have become %b before %a is read.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @out output 64 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %a = exec.view @a[0] : memref<8xf32>
    %b = exec.view @a[16] : memref<8xf32>
    %c = exec.view @a[64] : memref<8xf32>
    exec.run @exp_0(%x) into (%a) : (memref<8xf32>) -> memref<8xf32>
    // expected-note @below {{it was written here}}
    exec.run @exp_0(%x) into (%b) : (memref<8xf32>) -> memref<8xf32>
    // expected-error @below {{'exec.run' op reads byte 16 of @a, where another tensor is by now, on rank 0 (M3)}}
    exec.run @exp_0(%a) into (%c) : (memref<8xf32>) -> memref<8xf32>
    return
  }
}

// -----

// M4
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @out output 64 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    // expected-error @below {{'exec.run' op writes to a buffer of kind input (M4)}}
    exec.run @exp_0(%x) into (%x) : (memref<8xf32>) -> memref<8xf32>
    return
  }
}

// -----

// M4: the kernel does not say that it may.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @out output 64 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %a = exec.view @a[0] : memref<8xf32>
    %b = exec.view @a[0] : memref<8xf32>
    exec.run @exp_0(%x) into (%a) : (memref<8xf32>) -> memref<8xf32>
    // expected-error @below {{'exec.run' op writes result 0 where it reads operand 0, and not in place, on rank 0 (M4)}}
    exec.run @exp_0(%a) into (%b) : (memref<8xf32>) -> memref<8xf32>
    return
  }
}

// -----

// M4: a row that comes to where rows are sent from.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @out output 64 align 64
  exec.pieces @pieces_0 dims 2 [
    0 -> 1 box [1, 4] from [3, 0] to [1, 0],
    1 -> 0 box [1, 4] from [0, 0] to [5, 0]
  ]
  exec.kernel @exp_0(%a: tensor<4x4xf32>) {
    %0 = nn.exp %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
    exec.yield %0 : tensor<4x4xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<4x4xf32>
    exec.input "x" in %x : memref<4x4xf32> of tensor<4x4xf32> starts [0, 0]
    %w = exec.view @a[0] : memref<6x4xf32>
    %a = exec.view @a[16] of %w : memref<4x4xf32> of memref<6x4xf32>
    exec.run @exp_0(%x) into (%a) : (memref<4x4xf32>) -> memref<4x4xf32>
    // expected-error @below {{'exec.exchange' op writes result 0 where it reads operand 0, and not in place, on rank 0 (M4)}}
    exec.exchange @pieces_0 over {"x"} %a into %w : memref<4x4xf32> into memref<6x4xf32>
    return
  }
}

// -----

// M4: an all_reduce of another place.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @out output 64 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %a = exec.view @a[0] : memref<8xf32>
    %b = exec.view @a[16] : memref<8xf32>
    exec.run @exp_0(%x) into (%a) : (memref<8xf32>) -> memref<8xf32>
    // expected-error @below {{'exec.collective' op writes result 0 where it reads operand 0, and not in place, on rank 0 (M4)}}
    exec.collective all_reduce by sum over {"x"} (%a) into (%b) : (memref<8xf32>) -> memref<8xf32>
    return
  }
}

// -----

// M6: rank 1 has the row of rank 0.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>, exec.rank_table = {c = array<i64: 0, 64>}} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @out output 64 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %g = exec.view @a[0] : memref<16xf32>
    %r = exec.view @a[0] of %g : memref<8xf32> of memref<16xf32>
    exec.run @exp_0(%x) into (%r) : (memref<8xf32>) -> memref<8xf32>
    // expected-error @below {{'exec.collective' op does not have its own row in place on rank 1 (M6)}}
    exec.collective all_gather over {"x"} (%r) into (%g) gather [2] : (memref<8xf32>) -> memref<16xf32>
    return
  }
}

// -----

// M4
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @out output 64 align 64
  exec.kernel @two_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    %1 = nn.relu %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0, %1 : tensor<8xf32>, tensor<8xf32>
  }
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %a = exec.view @a[0] : memref<8xf32>
    %b = exec.view @a[16] : memref<8xf32>
    // expected-error @below {{'exec.run' op writes the same bytes twice, on rank 0 (M4)}}
    exec.run @two_0(%x) into (%a, %b) : (memref<8xf32>) -> (memref<8xf32>, memref<8xf32>)
    return
  }
}

// -----

// M5
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @out output 64 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %y = exec.view @out[0] : memref<8xf32>
    // expected-error @below {{'exec.output' op reads byte 0 of @out, which nothing has written, on rank 0 (M3)}}
    exec.output "y" in %y : memref<8xf32> of tensor<8xf32> starts [0]
    return
  }
}

// -----

// M5
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @out output 64 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %y = exec.view @a[0] : memref<8xf32>
    exec.run @exp_0(%x) into (%y) : (memref<8xf32>) -> memref<8xf32>
    // expected-error @below {{'exec.output' op has no buffer of its own of kind output (M5)}}
    exec.output "y" in %y : memref<8xf32> of tensor<8xf32> starts [0]
    return
  }
}

// -----

// M5
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @out output 64 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %z = exec.view @in[32] : memref<8xf32>
    // expected-error @below {{'exec.input' op has no buffer of its own of kind input (M5)}}
    exec.input "z" in %z : memref<8xf32> of tensor<8xf32> starts [0]
    return
  }
}

// -----

// M6
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>, exec.rank_table = {c = array<i64: 0, 64>}} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @out output 64 align 64
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %a = exec.view @a["c"] : memref<8xf32>
    %b = exec.view @a[128] : memref<8xf32>
    exec.run @exp_0(%x) into (%a) : (memref<8xf32>) -> memref<8xf32>
    // expected-error @below {{'exec.collective' op does not find its operands at one offset on all ranks (M6)}}
    exec.collective all_reduce by sum over {"x"} (%a) into (%b) : (memref<8xf32>) -> memref<8xf32>
    return
  }
}

// -----

// M8
module {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64 host
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %a = exec.view @a[0] : memref<8xf32>
    // expected-error @below {{'exec.run' op reads or writes what is in the host's memory (M8)}}
    exec.run @exp_0(%x) into (%a) : (memref<8xf32>) -> memref<8xf32>
    return
  }
}
