// What a device's library computes, as commands of a program: matrices in any strides, with the kernel that stands in.
//
// RUN: cleave compile %s --target cuda:emulated --quiet -o %t.cleave
// RUN: cleave inspect %t.cleave | FileCheck %s
// RUN: cleave compile %s --target cuda:emulated --libraries none --quiet -o %t.none
// RUN: cleave inspect %t.none | FileCheck %s --check-prefix=NONE
// RUN: cleave run %s --mesh one=1 --device cuda-emulated --check --quiet | FileCheck %s --check-prefix=RIGHT --allow-empty
// NONE-COUNT-9: launch
// NONE-NOT: stream 0 {{matmul|convolution}}
// RIGHT-NOT: differs

// CHECK: commands:
func.func @main(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %x: tensor<2x6x32xf32>, %w: tensor<24x32xf32>, %b: tensor<24xf32>,
                %r: tensor<2x6x24xf32>, %h: tensor<20x40xf16>, %g: tensor<40x12xf16>, %d: tensor<3x5xf64>, %e: tensor<5x7xf64>,
                %i: tensor<1x4x9x9xf32>, %f: tensor<8x2x3x3xf32>, %c: tensor<8xf32>,
                %o: tensor<6x3x4xf32>, %p: tensor<4x3x5xf32>)
    -> (tensor<2x4x8x8xf32>, tensor<2x6x24xf32>, tensor<12x20xf16>, tensor<3x7xf64>, tensor<4x8x8xf32>, tensor<24x24xf32>, tensor<1x8x5x5xf32>, tensor<6x5xf32>) {
  // Heads beside each other: a batch of two dims, of which one stride leads through neither.
  // CHECK: matmul          transpose_b scale 0.250000 or matmul_mul_0(0+0 f32[2, 4, 8, 16] strides [512, 16, 64, 1], 1+0 f32[2, 4, 8, 16] strides [512, 16, 64, 1]) -> {{.*}} f32[2, 4, 8, 8]
  %quarter = nn.constant dense<0.25> : tensor<f32> -> tensor<f32>
  %0 = nn.einsum %q, %k "bihd,bjhd->bhij" : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>) -> tensor<2x4x8x8xf32>
  %1 = nn.mul %0, %quarter : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  // A batch that all has one weight is rows; bias, residual and relu are the library's.
  // CHECK: matmul          transpose_b bias residual relu or {{.*}}(2+0 f32[12, 32], 3+0 f32[24, 32], 4+0 f32[24], 5+0 f32[12, 24]) -> {{.*}} f32[12, 24]
  %2 = nn.einsum %x, %w "bik,jk->bij" : (tensor<2x6x32xf32>, tensor<24x32xf32>) -> tensor<2x6x24xf32>
  %3 = nn.add %2, %b : (tensor<2x6x24xf32>, tensor<24xf32>) -> tensor<2x6x24xf32>
  %4 = nn.add %3, %r : (tensor<2x6x24xf32>, tensor<2x6x24xf32>) -> tensor<2x6x24xf32>
  %5 = nn.relu %4 : (tensor<2x6x24xf32>) -> tensor<2x6x24xf32>
  // A result in columns is rows of the product with its operands exchanged.
  // CHECK: matmul          transpose_a transpose_b gelu_tanh or {{.*}}(7+0 f16[40, 12], 6+0 f16[20, 40]) -> {{.*}} f16[12, 20]
  %6 = nn.einsum %h, %g "ik,kj->ji" : (tensor<20x40xf16>, tensor<40x12xf16>) -> tensor<12x20xf16>
  %7 = nn.gelu %6 {tanh = true} : (tensor<12x20xf16>) -> tensor<12x20xf16>
  // CHECK: matmul          or {{.*}}(8+0 f64[3, 5], 9+0 f64[5, 7]) -> {{.*}} f64[3, 7]
  %8 = nn.einsum %d, %e "ik,kj->ij" : (tensor<3x5xf64>, tensor<5x7xf64>) -> tensor<3x7xf64>
  // A depth of two dims that lie apart is no depth of a matrix.
  // CHECK: launch          matmul_{{[0-9]}}
  %9 = nn.einsum %q, %k "bihd,bjhd->hij" : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>) -> tensor<4x8x8xf32>
  // So is one that lies in one run in the first operand only.
  // CHECK: launch          matmul_{{[0-9]}}
  %15 = nn.einsum %o, %p "ixy,yxj->ij" : (tensor<6x3x4xf32>, tensor<4x3x5xf32>) -> tensor<6x5xf32>
  // One tensor for two operands is a kernel alone.
  // CHECK: launch          matmul_{{[0-9]}}
  %10 = nn.einsum %w, %w "ik,jk->ij" : (tensor<24x32xf32>, tensor<24x32xf32>) -> tensor<24x24xf32>
  // Channels last, and a filter in the order of the model, in two groups.
  // CHECK: convolution     bias relu or {{.*}}f32[1, 9, 9, 4], {{.*}} f32[8, 3, 3, 2] strides [18, 3, 1, 9], {{.*}} f32[8]) -> {{.*}} f32[1, 5, 5, 8]
  %12 = nn.conv %i, %f, %c strides [2, 2] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 2 : (tensor<1x4x9x9xf32>, tensor<8x2x3x3xf32>, tensor<8xf32>) -> tensor<1x8x5x5xf32>
  %14 = nn.relu %12 : (tensor<1x8x5x5xf32>) -> tensor<1x8x5x5xf32>
  return %1, %5, %7, %8, %9, %10, %14, %15 : tensor<2x4x8x8xf32>, tensor<2x6x24xf32>, tensor<12x20xf16>, tensor<3x7xf64>, tensor<4x8x8xf32>, tensor<24x24xf32>, tensor<1x8x5x5xf32>, tensor<6x5xf32>
}
