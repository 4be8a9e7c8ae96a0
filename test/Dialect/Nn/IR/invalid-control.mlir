// What a loop refuses.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C1: something must end it.
func.func @a_loop_ends(%x: tensor<4xf32>) {
  // expected-error @below {{'nn.loop' op has neither a condition nor a count (C1)}}
  %y = nn.loop carries (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    nn.yield next (%a) : (tensor<4xf32>) -> ()
  }
  return
}

// -----

func.func @a_count_is_not_negative(%x: tensor<4xf32>) {
  // expected-error @below {{'nn.loop' op has a count of -1, expected at least 0 (C1)}}
  %y = nn.loop count -1 carries (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    nn.yield next (%a) : (tensor<4xf32>) -> ()
  }
  return
}

// -----

// C2: an argument for each value that goes in.
func.func @what_is_captured_has_an_argument(%x: tensor<4xf32>) {
  // expected-error @below {{'nn.loop' op takes 1 values, expected 2 (C2)}}
  %y = nn.loop count 2 carries (%x) captures (%x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    nn.yield next (%a) : (tensor<4xf32>) -> ()
  }
  return
}

// -----

// C3: a value keeps its shape.
func.func @what_is_carried_keeps_its_shape(%x: tensor<4xf32>) {
  // expected-error @below {{'nn.loop' op yields 'tensor<8xf32>' as value 0, expected 'tensor<4xf32>' (C3)}}
  %y = nn.loop count 2 carries (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = nn.concat %a, %a dim 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
    nn.yield next (%b) : (tensor<8xf32>) -> ()
  }
  return
}

// -----

func.func @results_are_what_is_carried(%x: tensor<4xf32>) {
  // expected-error @below {{'nn.loop' op gives 'tensor<4xi64>' as value 0, expected 'tensor<4xf32>' (C3)}}
  %y = nn.loop count 2 carries (%x) : (tensor<4xf32>) -> tensor<4xi64> {
  ^bb0(%a: tensor<4xf32>):
    nn.yield next (%a) : (tensor<4xf32>) -> ()
  }
  return
}

// -----

// C4: who asks at the beginning asks again.
func.func @a_condition_is_asked_again(%go: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error @below {{'nn.loop' op yields no condition, but has one (C4)}}
  %y = nn.loop while %go carries (%x) : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    nn.yield next (%a) : (tensor<4xf32>) -> ()
  }
  return
}

// -----

func.func @nobody_asks_only_later(%x: tensor<4xf32>) {
  // expected-error @below {{'nn.loop' op yields a condition, but has none (C4)}}
  %y = nn.loop count 4 carries (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %go = nn.constant dense<true> : tensor<i1> -> tensor<i1>
    nn.yield while %go next (%a) : (tensor<i1>, tensor<4xf32>) -> ()
  }
  return
}

// -----

func.func @a_condition_is_a_scalar(%go: tensor<1xi1>, %x: tensor<4xf32>) {
  // expected-error @below {{'nn.loop' op has a condition of type 'tensor<1xi1>', expected a scalar (C4)}}
  %y = nn.loop while %go carries (%x) : (tensor<1xi1>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %more = nn.constant dense<true> : tensor<i1> -> tensor<i1>
    nn.yield while %more next (%a) : (tensor<i1>, tensor<4xf32>) -> ()
  }
  return
}
