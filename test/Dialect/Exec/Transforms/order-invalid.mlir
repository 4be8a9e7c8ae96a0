// Only what is planned is ordered.
//
// RUN: cleave-opt %s --split-input-file --exec-order --verify-diagnostics

// expected-error @below {{the module is outlined, and must be planned before it can become ordered}}
module attributes {spmd.phase = "outlined"} {
  func.func @main() {
    return
  }
}

// -----

// expected-error @below {{the module is ordered already, and cannot become ordered}}
module attributes {spmd.phase = "ordered"} {
  func.func @main() {
    return
  }
}
