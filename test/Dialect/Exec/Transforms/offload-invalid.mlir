// What cannot wait in the host's memory: nothing that is asked for is passed over.
//
// RUN: cleave-opt %s --exec-offload="tensors=hiden,x,next,scores,w*" --verify-diagnostics
// RUN: not cleave-opt %s --exec-offload="tensors=[a" 2>&1 | FileCheck %s
// CHECK: error: {{.*}}[a

// expected-error @below {{'offload' asks for 'hiden', which names no tensor of the model; did you mean 'hidden'?}}
// expected-error @below {{'offload' asks for 'x', of which nothing can wait in the host's memory: 'x' is given: weights, inputs and what is made of weights alone stay where they are}}
// expected-error @below {{'offload' asks for 'next', of which nothing can wait in the host's memory: 'next' is what the step gives back, which has bytes of its own}}
// expected-error @below {{'offload' asks for 'scores', of which nothing can wait in the host's memory: 'scores' is not kept: no gradient reads it}}
// expected-error @below {{'offload' asks for 'w*', of which nothing can wait in the host's memory: 'w' is given}}
module {
  func.func @step(%x: tensor<64x64xf32> {nn.name = "x"}, %w: tensor<64x64xf32> {nn.name = "w", nn.role = "parameter"}, %m: tensor<64x64xf32> {nn.name = "m"})
      -> (tensor<f32> {nn.name = "loss"}, tensor<64x64xf32> {spmd.state = "w"}, tensor<64x64xf32> {spmd.state = "m"}) {
    %z = nn.einsum %x, %w "ik,kj->ij" {nn.node = #nn.node<"product", "MatMul", ["x", "w"], [["scores"]]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %h = nn.exp %z {nn.node = #nn.node<"exp", "Exp", ["z"], [["hidden"]]>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %n = nn.add %m, %h {nn.node = #nn.node<"add", "Add", ["m", "h"], [["next"]]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %loss = nn.reduce sum %h dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
    %g = nn.einsum %x, %h "ki,kj->ij" : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %nw = nn.sub %w, %g : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    return %loss, %nw, %n : tensor<f32>, tensor<64x64xf32>, tensor<64x64xf32>
  }
}
