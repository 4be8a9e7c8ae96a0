// What an order must not be.
//
// RUN: cleave-opt %s --split-input-file --exec-verify-plan=phase=ordered --verify-diagnostics

// E1
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
    exec.record 0
    // expected-error @below {{'exec.record' op records event 0 a second time (E1)}}
    exec.record 0
    return
  }
}

// -----

// E1
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
    // expected-error @below {{'exec.wait' op waits for event 0, which has not been recorded (E1)}}
    exec.wait 0
    return
  }
}

// -----

// E1
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
    // expected-error @below {{'exec.run' op is on stream 16 (E1)}}
    exec.run @exp_0(%x) into (%a) stream 16 : (memref<8xf32>) -> memref<8xf32>
    return
  }
}

// -----

// E2: a read.
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
    // expected-note @below {{they were written here}}
    exec.run @exp_0(%x) into (%a) stream 1 : (memref<8xf32>) -> memref<8xf32>
    // expected-error @below {{'exec.run' op reads bytes that another stream touches, and no event orders them, on rank 0 (E2)}}
    exec.run @exp_0(%a) into (%b) : (memref<8xf32>) -> memref<8xf32>
    return
  }
}

// -----

// E2: a write over what is being read; the event tells of the first command alone.
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
    // expected-note @below {{they were written here}}
    exec.run @exp_0(%x) into (%a) : (memref<8xf32>) -> memref<8xf32>
    exec.record 0
    exec.wait 0 stream 1
    exec.record 1 stream 1
    exec.run @exp_0(%a) into (%b) stream 1 : (memref<8xf32>) -> memref<8xf32>
    exec.wait 1
    // expected-error @below {{'exec.run' op writes bytes that another stream touches, and no event orders them, on rank 0 (E2)}}
    exec.run @exp_0(%x) into (%a) : (memref<8xf32>) -> memref<8xf32>
    return
  }
}

// -----

// E3
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
    exec.collective all_reduce by sum over {"x"} (%x) into (%a) : (memref<8xf32>) -> memref<8xf32>
    // expected-error @below {{'exec.collective' op meets other ranks on stream 1, and others do on 0 (E3)}}
    exec.collective all_reduce by sum over {"x"} (%x) into (%b) stream 1 : (memref<8xf32>) -> memref<8xf32>
    return
  }
}

// -----

// E2: the bytes of a value that goes are not others' before it is gone.
module {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @offloaded activations 64 align 64 host
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %a = exec.view @a[0] : memref<8xf32>
    %h = exec.view @offloaded[0] : memref<8xf32>
    %b = exec.view @a[0] : memref<8xf32>
    // expected-note @below {{they were written here}}
    exec.run @exp_0(%x) into (%a) : (memref<8xf32>) -> memref<8xf32>
    exec.record 0
    exec.wait 0 stream 2
    exec.copy %a into %h stream 2 : memref<8xf32> into memref<8xf32>
    // expected-error @below {{'exec.run' op writes bytes that another stream touches, and no event orders them, on rank 0 (E2)}}
    exec.run @exp_0(%x) into (%b) : (memref<8xf32>) -> memref<8xf32>
    return
  }
}

// -----

// E2: nor is a value read before it is back.
module {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 256 align 64
  exec.buffer @offloaded activations 64 align 64 host
  exec.kernel @exp_0(%a: tensor<8xf32>) {
    %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    exec.yield %0 : tensor<8xf32>
  }
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    %a = exec.view @a[0] : memref<8xf32>
    %h = exec.view @offloaded[0] : memref<8xf32>
    %b = exec.view @a[64] : memref<8xf32>
    %c = exec.view @a[128] : memref<8xf32>
    exec.run @exp_0(%x) into (%a) : (memref<8xf32>) -> memref<8xf32>
    exec.copy %a into %h : memref<8xf32> into memref<8xf32>
    exec.record 0
    exec.wait 0 stream 3
    // expected-note @below {{they were written here}}
    exec.copy %h into %b stream 3 : memref<8xf32> into memref<8xf32>
    // expected-error @below {{'exec.run' op reads bytes that another stream touches, and no event orders them, on rank 0 (E2)}}
    exec.run @exp_0(%b) into (%c) : (memref<8xf32>) -> memref<8xf32>
    return
  }
}
