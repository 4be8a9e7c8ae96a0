// Loops that are no recurrent nets.
//
// RUN: cleave-opt %s --exec-unroll-recurrences --verify-diagnostics

func.func @a_loop(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error@+1 {{'nn.loop' op is a loop, which no program holds yet: run it with --executor=reference}}
  %y = nn.loop count 2 carries (%x) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>):
    %b = nn.exp %a : (tensor<8x4xf32>) -> tensor<8x4xf32>
    nn.yield next (%b) : (tensor<8x4xf32>) -> ()
  }
  return %y : tensor<8x4xf32>
}
