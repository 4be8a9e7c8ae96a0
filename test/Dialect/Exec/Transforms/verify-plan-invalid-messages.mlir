// What messages between ranks of a pipeline must not be.
//
// RUN: cleave-opt %s --split-input-file --exec-verify-plan --verify-diagnostics

// M7: a send is missing
module attributes {spmd.mesh = #spmd.mesh<["device"=1]>, pipe.mesh = #spmd.mesh<["stage"=2]>, pipe.axis = "stage"} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 128 align 64
  func.func @main.rank0() attributes {pipe.rank = 0 : i64} {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0] index 0
    exec.send %x to 1 channel 0 microbatch 0 : memref<8xf32>
    return
  }
  func.func @main.rank1() attributes {pipe.rank = 1 : i64} {
    %a = exec.view @a[0] : memref<8xf32>
    %b = exec.view @a[64] : memref<4xf32>
    exec.receive %a from 0 channel 0 microbatch 0 : memref<8xf32>
    // expected-error @below {{'exec.receive' op is the other end of no message from rank 0 to rank 1 (M7)}}
    exec.receive %a from 0 channel 0 microbatch 1 : memref<8xf32>
    return
  }
}

// -----

// M7: a receive is missing
module attributes {spmd.mesh = #spmd.mesh<["device"=1]>, pipe.mesh = #spmd.mesh<["stage"=2]>, pipe.axis = "stage"} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 128 align 64
  func.func @main.rank0() attributes {pipe.rank = 0 : i64} {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0] index 0
    exec.send %x to 1 channel 0 microbatch 0 : memref<8xf32>
    // expected-error @below {{'exec.send' op is the other end of no message from rank 0 to rank 1 (M7)}}
    exec.send %x to 1 channel 0 microbatch 1 : memref<8xf32>
    return
  }
  func.func @main.rank1() attributes {pipe.rank = 1 : i64} {
    %a = exec.view @a[0] : memref<8xf32>
    %b = exec.view @a[64] : memref<4xf32>
    exec.receive %a from 0 channel 0 microbatch 0 : memref<8xf32>
    return
  }
}

// -----

// M7: to a rank that is not there
module attributes {spmd.mesh = #spmd.mesh<["device"=1]>, pipe.mesh = #spmd.mesh<["stage"=2]>, pipe.axis = "stage"} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 128 align 64
  func.func @main.rank0() attributes {pipe.rank = 0 : i64} {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0] index 0
    // expected-error @below {{'exec.send' op is the other end of no message from rank 0 to rank 2 (M7)}}
    exec.send %x to 2 channel 0 microbatch 0 : memref<8xf32>
    return
  }
  func.func @main.rank1() attributes {pipe.rank = 1 : i64} {
    %a = exec.view @a[0] : memref<8xf32>
    %b = exec.view @a[64] : memref<4xf32>
    return
  }
}

// -----

// M7: from the wrong one
module attributes {spmd.mesh = #spmd.mesh<["device"=1]>, pipe.mesh = #spmd.mesh<["stage"=2]>, pipe.axis = "stage"} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 128 align 64
  func.func @main.rank0() attributes {pipe.rank = 0 : i64} {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0] index 0
    // expected-error @below {{'exec.send' op is the other end of no message from rank 0 to rank 1 (M7)}}
    exec.send %x to 1 channel 0 microbatch 0 : memref<8xf32>
    return
  }
  func.func @main.rank1() attributes {pipe.rank = 1 : i64} {
    %a = exec.view @a[0] : memref<8xf32>
    %b = exec.view @a[64] : memref<4xf32>
    exec.receive %a from 1 channel 0 microbatch 0 : memref<8xf32>
    return
  }
}

// -----

// M7: in another order
module attributes {spmd.mesh = #spmd.mesh<["device"=1]>, pipe.mesh = #spmd.mesh<["stage"=2]>, pipe.axis = "stage"} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 128 align 64
  func.func @main.rank0() attributes {pipe.rank = 0 : i64} {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0] index 0
    // expected-error @below {{'exec.send' op is another message, or of another type, than what rank 1 receives as number 0 from rank 0 (M7)}}
    exec.send %x to 1 channel 0 microbatch 0 : memref<8xf32>
    exec.send %x to 1 channel 0 microbatch 1 : memref<8xf32>
    return
  }
  func.func @main.rank1() attributes {pipe.rank = 1 : i64} {
    %a = exec.view @a[0] : memref<8xf32>
    %b = exec.view @a[64] : memref<4xf32>
    // expected-note @below {{this is the other end}}
    exec.receive %a from 0 channel 0 microbatch 1 : memref<8xf32>
    exec.receive %a from 0 channel 0 microbatch 0 : memref<8xf32>
    return
  }
}

// -----

// M7: of another type
module attributes {spmd.mesh = #spmd.mesh<["device"=1]>, pipe.mesh = #spmd.mesh<["stage"=2]>, pipe.axis = "stage"} {
  exec.buffer @in input 64 align 64
  exec.buffer @a activations 128 align 64
  func.func @main.rank0() attributes {pipe.rank = 0 : i64} {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0] index 0
    // expected-error @below {{'exec.send' op is another message, or of another type, than what rank 1 receives as number 0 from rank 0 (M7)}}
    exec.send %x to 1 channel 0 microbatch 0 : memref<8xf32>
    return
  }
  func.func @main.rank1() attributes {pipe.rank = 1 : i64} {
    %a = exec.view @a[0] : memref<8xf32>
    %b = exec.view @a[64] : memref<4xf32>
    // expected-note @below {{this is the other end}}
    exec.receive %b from 0 channel 0 microbatch 0 : memref<4xf32>
    return
  }
}

// -----

// M7: of no rank
module attributes {spmd.mesh = #spmd.mesh<["device"=1]>} {
  exec.buffer @in input 64 align 64
  func.func @main() {
    %x = exec.view @in[0] : memref<8xf32>
    exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
    // expected-error @below {{'exec.send' op is in no function of a rank of a pipeline (M7)}}
    exec.send %x to 1 channel 0 microbatch 0 : memref<8xf32>
    return
  }
}

// -----

// M1
// expected-error @below {{is not one function of one block, without arguments and results (M1)}}
module {
  func.func @main.rank0() attributes {pipe.rank = 0 : i64} {
    return
  }
  func.func @main() {
    return
  }
}
