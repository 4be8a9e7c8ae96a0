// What marks of loops refuse.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

func.func @entering_changes_no_type(%x: tensor<4xf32>) {
  // expected-error @below {{'exec.enter' op does not give what it takes (C1)}}
  %a = exec.enter count 8 carries (%x) : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @leaving_changes_no_type(%x: tensor<4xf32>) {
  %a = exec.enter count 8 carries (%x) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{'exec.leave' op does not give what it takes (C1)}}
  %y = exec.leave next (%a) : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @something_ends_a_loop() {
  // expected-error @below {{'exec.loop' op has neither a condition nor a count (C1)}}
  exec.loop
  exec.end_loop
  return
}
