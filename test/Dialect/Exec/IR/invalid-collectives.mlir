// RUN: cleave-opt %s --split-input-file -verify-diagnostics

// What waits and moves nothing is of programs alone.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func @main() {
    // expected-error @below {{'barrier' is not a kind of collective}}
    // expected-error @below {{failed to parse Exec_CollectiveKindAttr parameter 'value'}}
    exec.collective barrier over {"x"} () into () : () -> ()
    return
  }
}

// -----

// A permute is an exchange once memory is planned.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func @main() {
    // expected-error @below {{'permute' is not a kind of collective}}
    // expected-error @below {{failed to parse Exec_CollectiveKindAttr parameter 'value'}}
    exec.collective permute over {"x"} () into () : () -> ()
    return
  }
}
