// What the body of a loop holds counts towards the peak, beside the loop's operands and results.
//
// RUN: %{each} %s %t "cleave shard {} --mesh x=1 --report {}.json -o {}.out" "FileCheck {} < {}.json"

//--- body.mlir
// Two tensors of 4,000,000 numbers at a time, and a vector of 4 before and behind.
// CHECK: "peak_bytes_per_rank": 32000032
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = nn.loop count 8 carries (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = nn.broadcast %a : (tensor<4xf32>) -> tensor<1000000x4xf32>
    %c = nn.exp %b : (tensor<1000000x4xf32>) -> tensor<1000000x4xf32>
    %d = nn.reduce sum %c dims [0] : (tensor<1000000x4xf32>) -> tensor<4xf32>
    nn.yield next (%d) : (tensor<4xf32>) -> ()
  }
  return %y : tensor<4xf32>
}

//--- captured.mlir
// What is captured is there once: 1000 x 1000 numbers, and as many that are computed of them.
// CHECK: "peak_bytes_per_rank": 8008000
func.func @main(%x: tensor<1000xf32>, %w: tensor<1000x1000xf32>) -> tensor<1000xf32> {
  %y = nn.loop count 8 carries (%x) captures (%w) : (tensor<1000xf32>, tensor<1000x1000xf32>) -> tensor<1000xf32> {
  ^bb0(%a: tensor<1000xf32>, %v: tensor<1000x1000xf32>):
    %b = nn.exp %v : (tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
    %c = nn.einsum %a, %b "i,ij->j" : (tensor<1000xf32>, tensor<1000x1000xf32>) -> tensor<1000xf32>
    nn.yield next (%c) : (tensor<1000xf32>) -> ()
  }
  return %y : tensor<1000xf32>
}

//--- read-again.mlir
// An initial value that is read again stays while others are carried: it, theirs and the next one's, and 1000 x 1000 numbers.
// CHECK: "peak_bytes_per_rank": 4012000
func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %y = nn.loop count 8 carries (%x) : (tensor<1000xf32>) -> tensor<1000xf32> {
  ^bb0(%a: tensor<1000xf32>):
    %b = nn.broadcast %a : (tensor<1000xf32>) -> tensor<1000x1000xf32>
    %c = nn.einsum %a, %b "i,ij->j" : (tensor<1000xf32>, tensor<1000x1000xf32>) -> tensor<1000xf32>
    nn.yield next (%c) : (tensor<1000xf32>) -> ()
  }
  %z = nn.mul %y, %x : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  return %z : tensor<1000xf32>
}

//--- nested.mlir
// A loop in a loop: its 1000 x 1000 numbers beside as many of the outer one, which are read behind it.
// CHECK: "peak_bytes_per_rank": 8016000
func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %y = nn.loop count 8 carries (%x) : (tensor<1000xf32>) -> tensor<1000xf32> {
  ^bb0(%a: tensor<1000xf32>):
    %b = nn.broadcast %a : (tensor<1000xf32>) -> tensor<1000x1000xf32>
    %c = nn.cos %a : (tensor<1000xf32>) -> tensor<1000xf32>
    %d = nn.loop count 4 carries (%c) : (tensor<1000xf32>) -> tensor<1000xf32> {
    ^bb0(%e: tensor<1000xf32>):
      %f = nn.broadcast %e : (tensor<1000xf32>) -> tensor<1000x1000xf32>
      %g = nn.reduce sum %f dims [0] : (tensor<1000x1000xf32>) -> tensor<1000xf32>
      nn.yield next (%g) : (tensor<1000xf32>) -> ()
    }
    %h = nn.einsum %d, %b "i,ij->j" : (tensor<1000xf32>, tensor<1000x1000xf32>) -> tensor<1000xf32>
    nn.yield next (%h) : (tensor<1000xf32>) -> ()
  }
  return %y : tensor<1000xf32>
}
