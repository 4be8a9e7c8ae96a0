// Small integers of weights are bytes with the same values, however their own bits were held.
//
// RUN: %{each} %s %t "cleave export {} -o {}.out --quiet" "od -A n -t d1 {}.out/rank-0.data | FileCheck {}"

//--- nibbles.mlir
// CHECK: {{^ *}}-8{{ +}}-1{{ +}}3{{ +}}7{{$}}
module {
  nn.param @w : tensor<4xi4> = dense<[-8, -1, 3, 7]> : tensor<4xi4>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %w = nn.load @w : tensor<4xi4>
    %c = nn.cast %w : (tensor<4xi4>) -> tensor<4xf32>
    %y = nn.mul %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

//--- unsigned.mlir
// CHECK: {{^ *}}15{{ +}}0{{ +}}3{{ +}}8{{$}}
module {
  nn.param @w : tensor<4xui4> = dense<[15, 0, 3, 8]> : tensor<4xui4>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %w = nn.load @w : tensor<4xui4>
    %c = nn.cast %w : (tensor<4xui4>) -> tensor<4xf32>
    %y = nn.mul %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

//--- equal.mlir
// CHECK: {{^ *}}-2{{ +}}-2{{ +}}-2{{ +}}-2{{$}}
module {
  nn.param @w : tensor<4xi2> = dense<-2> : tensor<4xi2>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %w = nn.load @w : tensor<4xi2>
    %c = nn.cast %w : (tensor<4xi2>) -> tensor<4xf32>
    %y = nn.mul %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

//--- shards.mlir
// The first of two columns, whose rows lie apart.
// CHECK: {{^ *}}-8{{ +}}3{{ +}}-5{{$}}
#mesh = #spmd.mesh<["x"=2]>
#columns = #spmd.sharding<#mesh, [{}, {"x"}]>
module attributes {spmd.mesh = #mesh} {
  nn.param @w : tensor<3x2xi4> = dense<[[-8, -1], [3, 7], [-5, 1]]> : tensor<3x2xi4>
  func.func @main(%x: tensor<3x2xf32, #columns>) -> tensor<3x2xf32, #columns> {
    %w = nn.load @w : tensor<3x2xi4, #columns>
    %c = nn.cast %w : (tensor<3x2xi4, #columns>) -> tensor<3x2xf32, #columns>
    %y = nn.mul %x, %c : (tensor<3x2xf32, #columns>, tensor<3x2xf32, #columns>) -> tensor<3x2xf32, #columns>
    return %y : tensor<3x2xf32, #columns>
  }
}
