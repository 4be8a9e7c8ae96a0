// RUN: cleave shard %s --mesh m=2 --shard 'w=[m, _]' | FileCheck %s
// RUN: cleave run %s --mesh m=2 --shard 'w=[m, _]' --check --quiet

// A rule for a tensor that is a parameter and an output is about both: a rank stores its half and returns its half.

nn.param @w : tensor<8x4xf32> = dense<2.0> : tensor<8x4xf32>

// CHECK-LABEL: @main
// CHECK-SAME: tensor<4x4xf32> {nn.name = "w"
// CHECK: nn.load @w {{.*}}: tensor<4x4xf32>
// CHECK-NOT: nn.load
func.func @main(%x: tensor<2x8xf32>) -> (tensor<2x4xf32> {nn.name = "y"}, tensor<8x4xf32> {nn.name = "w"}) {
  %w = nn.load @w : tensor<8x4xf32>
  %y = nn.einsum %x, %w "mk,kn->mn" : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  return %y, %w : tensor<2x4xf32>, tensor<8x4xf32>
}
