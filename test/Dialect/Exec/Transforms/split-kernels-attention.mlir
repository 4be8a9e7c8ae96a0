// RUN: cleave-opt %s --exec-fuse-kernels --exec-split-kernels --exec-verify-form | FileCheck %s
// RUN: cleave-opt %s --exec-fuse-kernels --exec-split-kernels=for-libraries | FileCheck %s --check-prefix=LIBRARIES
// RUN: cleave-opt %s --exec-fuse-kernels --exec-split-kernels="for-libraries=true narrows-floats=true" | FileCheck %s --check-prefix=NARROWED
// RUN: sed -n '/^func.func @floats(/,/^}/p' %s | sed 's/@floats/@main/' > %t.floats.mlir
// RUN: cleave run %t.floats.mlir --mesh one=1 --device cuda-emulated --check | FileCheck %s --check-prefix=RAN
// RAN: check {{.*}}: ok

// Of 16 queries and more a block has up to 64: here two blocks, which are 12 where keys are divided.
// CHECK-LABEL: @floats
// LIBRARIES-LABEL: @floats
// NARROWED-LABEL: @floats
func.func @floats(%q: tensor<1x2x40x64xf32>, %k: tensor<1x2x1500x64xf32>) -> tensor<1x2x40x64xf32> {
  // CHECK: exec.partial_attention {{.*}} part 256 {{.*}} -> (tensor<1x2x40x6x64xf32>, tensor<1x2x40x6xf32>)
  // CHECK: nn.attention {{.*}} -> tensor<80x1x1x64xf32>
  // LIBRARIES: exec.partial_attention
  // NARROWED-NOT: exec.partial_attention
  // NARROWED: return
  %0 = nn.attention %q, %k, %k scale 0.125 : (tensor<1x2x40x64xf32>, tensor<1x2x1500x64xf32>, tensor<1x2x1500x64xf32>) -> tensor<1x2x40x64xf32>
  return %0 : tensor<1x2x40x64xf32>
}

// Halves are whole where libraries may have them, but for few queries.
// CHECK-LABEL: @halves
// LIBRARIES-LABEL: @halves
func.func @halves(%q: tensor<1x2x40x64xbf16>, %f: tensor<1x2x1x64xbf16>, %k: tensor<1x2x1500x64xbf16>) -> (tensor<1x2x40x64xbf16>, tensor<1x2x1x64xbf16>) {
  // CHECK-COUNT-2: exec.partial_attention
  // LIBRARIES-NOT: exec.partial_attention
  // LIBRARIES: nn.attention {{.*}} -> tensor<1x2x40x64xbf16>
  // LIBRARIES: exec.partial_attention {{.*}} -> (tensor<1x2x1x6x64xf32>, tensor<1x2x1x6xf32>)
  %0 = nn.attention %q, %k, %k scale 0.125 : (tensor<1x2x40x64xbf16>, tensor<1x2x1500x64xbf16>, tensor<1x2x1500x64xbf16>) -> tensor<1x2x40x64xbf16>
  %1 = nn.attention %f, %k, %k scale 0.125 : (tensor<1x2x1x64xbf16>, tensor<1x2x1500x64xbf16>, tensor<1x2x1500x64xbf16>) -> tensor<1x2x1x64xbf16>
  return %0, %1 : tensor<1x2x40x64xbf16>, tensor<1x2x1x64xbf16>
}
