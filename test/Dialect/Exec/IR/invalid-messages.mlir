// What messages between ranks of a pipeline refuse.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// exec.send C1
module {
  exec.buffer @a activations 64 align 64
  func.func @main() {
    %0 = exec.view @a[0] : memref<2xf32>
    // expected-error @below {{'exec.send' op is about rank 1, channel 0, microbatch -2 (C1)}}
    exec.send %0 to 1 channel 0 microbatch -2 : memref<2xf32>
    return
  }
}

// -----

// exec.receive C1
module {
  exec.buffer @a activations 64 align 64
  func.func @main() {
    %0 = exec.view @a[0] : memref<2xf32>
    // expected-error @below {{'exec.receive' op is about rank -1, channel 0, microbatch 0 (C1)}}
    exec.receive %0 from -1 channel 0 microbatch 0 : memref<2xf32>
    return
  }
}
