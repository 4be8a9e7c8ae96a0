// Stages that nobody can split: a loop is whole in one.
//
// RUN: cleave-opt %s --pipe-assign-stages="stages=2 starts=*/within" -verify-diagnostics

#first = loc(#nn.node<"/first", "Exp", ["x"], [["p"]]>)
#again = loc(#nn.node<"/again", "Loop", ["p"], [["y"]]>)
#within = loc(#nn.node<"/again/within", "Tanh", ["h"], [["n"]]>)
func.func @a_stage_starts_in_a_loop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %p = nn.exp %x {nn.node = #first} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{node '/again/within', at which stage 1 is to start, is in the body of loop '/again', which is whole in one stage}}
  %y = nn.loop count 2 carries (%p) {nn.node = #again} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%h: tensor<4xf32>):
    %n = nn.tanh %h {nn.node = #within} : (tensor<4xf32>) -> tensor<4xf32>
    nn.yield next (%n) : (tensor<4xf32>) -> ()
  }
  return %y : tensor<4xf32>
}
