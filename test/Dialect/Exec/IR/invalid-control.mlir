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

// -----

// C2: marks pair like brackets.
func.func @a_loop_ends(%x: tensor<4xf32>) {
  // expected-error @below {{'exec.enter' op begins a loop that does not end (C2)}}
  %a = exec.enter count 8 carries (%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = exec.enter count 8 carries (%a) : (tensor<4xf32>) -> tensor<4xf32>
  %c = exec.leave next (%b) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @what_ends_a_loop_has_one(%x: tensor<4xf32>) {
  // expected-error @below {{'exec.leave' op ends no loop (C2)}}
  %y = exec.leave next (%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @it_is_ended_once(%x: tensor<4xf32>) {
  %a = exec.enter count 8 carries (%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = exec.leave next (%a) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{'exec.leave' op ends no loop (C2)}}
  %c = exec.leave next (%b) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @a_loop_on_memory_ends() {
  // expected-error @below {{'exec.loop' op begins a loop that does not end (C2)}}
  exec.loop count 8
  return
}

// -----

func.func @what_ends_a_loop_on_memory_has_one() {
  // expected-error @below {{'exec.end_loop' op ends no loop (C2)}}
  exec.end_loop
  return
}

// -----

// A loop on tensors within one on memory does not end behind it.
func.func @loops_do_not_cross(%x: tensor<4xf32>) {
  // expected-error @below {{'exec.loop' op begins a loop that does not end (C2)}}
  exec.loop count 8
  %a = exec.enter count 8 carries (%x) : (tensor<4xf32>) -> tensor<4xf32>
  exec.end_loop
  %b = exec.leave next (%a) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// C3: what goes round.
func.func @what_is_yielded_is_what_is_carried(%x: tensor<4xf32>, %z: tensor<8xf32>) {
  // expected-note @below {{the loop begins here}}
  %a:2 = exec.enter count 8 carries (%x) captures (%z) : (tensor<4xf32>, tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>)
  // expected-error @below {{'exec.leave' op yields ('tensor<8xf32>'), expected what its loop carries, ('tensor<4xf32>') (C3)}}
  %b = exec.leave next (%a#1) : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// C4: who asks at the beginning asks again.
func.func @a_condition_is_asked_again(%go: tensor<i1>, %x: tensor<4xf32>) {
  // expected-note @below {{the loop begins here}}
  %a = exec.enter while %go carries (%x) : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{'exec.leave' op has no condition, unlike its loop (C4)}}
  %b = exec.leave next (%a) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

exec.buffer @activations activations 64 align 64
func.func @nobody_asks_only_later() {
  %go = exec.view @activations[0] : memref<i1>
  // expected-note @below {{the loop begins here}}
  exec.loop count 8
  // expected-error @below {{'exec.end_loop' op has a condition, unlike its loop (C4)}}
  exec.end_loop while %go : memref<i1>
  return
}
