// Every op of the dialect, as it is printed.
//
// RUN: cleave-opt %s | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --mlir-print-op-generic | cleave-opt | FileCheck %s

// CHECK-LABEL: @fused
func.func @fused(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: %[[R:.*]] = exec.fused (%[[A:.*]] = %arg0, %[[B:.*]] = %arg1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[S:.*]] = nn.add %[[A]], %[[B]]
  // CHECK-NEXT: exec.yield %[[S]] : tensor<8xf32>
  %0 = exec.fused (%a = %x, %b = %y) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    %s = nn.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    exec.yield %s : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: @fused_of_nothing_with_two_results
func.func @fused_of_nothing_with_two_results() -> (tensor<8xi64>, tensor<8xi64>) {
  // CHECK: exec.fused () : () -> (tensor<8xi64>, tensor<8xi64>) {
  %0:2 = exec.fused () : () -> (tensor<8xi64>, tensor<8xi64>) {
    %i = nn.iota dim 0 start 0 step 1 : tensor<8xi64>
    %n = nn.neg %i : (tensor<8xi64>) -> tensor<8xi64>
    exec.yield %i, %n : tensor<8xi64>, tensor<8xi64>
  }
  return %0#0, %0#1 : tensor<8xi64>, tensor<8xi64>
}

// CHECK-LABEL: @launch
func.func @launch(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: exec.launch @relu_0(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  %0 = exec.launch @relu_0(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// CHECK: exec.kernel @relu_0(%[[A:.*]]: tensor<8xf32>) {
// CHECK-NEXT: nn.relu %[[A]]
exec.kernel @relu_0(%a: tensor<8xf32>) {
  %r = nn.relu %a : (tensor<8xf32>) -> tensor<8xf32>
  exec.yield %r : tensor<8xf32>
}

// CHECK-LABEL: @stages
func.func @stages(%q: tensor<1x4x1x8xf16>, %k: tensor<1x2x40x8xf16>) -> tensor<1x4x1x3x8xf32> {
  // CHECK: %[[R:.*]]:2 = exec.fused
  // CHECK-NEXT: exec.partial_attention %{{.*}}, %{{.*}}, %{{.*}} part 16 scale 5.000000e-01 causal {causalOffset = 39 : i64}
  %0:2 = exec.fused (%a = %q, %b = %k) : (tensor<1x4x1x8xf16>, tensor<1x2x40x8xf16>) -> (tensor<1x4x1x3x8xf32>, tensor<1x4x1x3xf32>) {
    %s, %l = exec.partial_attention %a, %b, %b part 16 scale 0.5 causal {causalOffset = 39 : i64} : (tensor<1x4x1x8xf16>, tensor<1x2x40x8xf16>, tensor<1x2x40x8xf16>) -> (tensor<1x4x1x3x8xf32>, tensor<1x4x1x3xf32>)
    exec.yield %s, %l : tensor<1x4x1x3x8xf32>, tensor<1x4x1x3xf32>
  }
  return %0#0 : tensor<1x4x1x3x8xf32>
}

// CHECK-LABEL: @seen
func.func @seen(%q: tensor<1x4x1x8xf16>, %k: tensor<1x2x40x8xf16>, %mask: tensor<1x40xi1>, %seen: tensor<i1>) -> tensor<1x4x1x1x8xf32> {
  // CHECK: exec.partial_attention %{{.*}}, %{{.*}}, %{{.*}} mask %arg2 seen %arg3 part 40 scale 5.000000e-01 :
  %s, %l = exec.partial_attention %q, %k, %k mask %mask seen %seen part 40 scale 0.5 : (tensor<1x4x1x8xf16>, tensor<1x2x40x8xf16>, tensor<1x2x40x8xf16>, tensor<1x40xi1>, tensor<i1>) -> (tensor<1x4x1x1x8xf32>, tensor<1x4x1x1xf32>)
  return %s : tensor<1x4x1x1x8xf32>
}

// CHECK-LABEL: @states
func.func @states(%past: tensor<2x3x4xf32>, %new: tensor<2x1x4xf32>) -> tensor<2x4x4xf32> {
  // CHECK: exec.append %arg0, %arg1 dim 1 : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4x4xf32>
  %0 = exec.append %past, %new dim 1 : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4x4xf32>
  return %0 : tensor<2x4x4xf32>
}

// CHECK-LABEL: @layouts
func.func @layouts(%w: tensor<64x40xf32>, %f: tensor<8x4x3x3xf32>) -> tensor<64x40xf32> {
  // CHECK: exec.pack %arg0 order [0, 1] batch 0 width 16 interleave 2 : (tensor<64x40xf32>) -> tensor<3x32x16x2xf32>
  %0 = exec.pack %w order [0, 1] batch 0 width 16 interleave 2 : (tensor<64x40xf32>) -> tensor<3x32x16x2xf32>
  // CHECK: exec.pack %arg1 order [2, 3, 1, 0] batch 0 width 0 interleave 1 : (tensor<8x4x3x3xf32>) -> tensor<3x3x4x8xf32>
  %1 = exec.pack %f order [2, 3, 1, 0] batch 0 width 0 interleave 1 : (tensor<8x4x3x3xf32>) -> tensor<3x3x4x8xf32>
  %2 = exec.fused (%a = %0) : (tensor<3x32x16x2xf32>) -> tensor<64x40xf32> {
    // CHECK: exec.unpack %{{.*}} order [0, 1] batch 0 width 16 interleave 2 : (tensor<3x32x16x2xf32>) -> tensor<64x40xf32>
    %u = exec.unpack %a order [0, 1] batch 0 width 16 interleave 2 : (tensor<3x32x16x2xf32>) -> tensor<64x40xf32>
    exec.yield %u : tensor<64x40xf32>
  }
  return %2 : tensor<64x40xf32>
}

// CHECK-LABEL: @waits_in_the_hosts_memory
func.func @waits_in_the_hosts_memory(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK: %[[OUT:.*]] = exec.offload %arg0 : tensor<8x4xf32>
  %0 = exec.offload %x : tensor<8x4xf32>
  // CHECK: exec.fetch %[[OUT]] : tensor<8x4xf32>
  %1 = exec.fetch %0 : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// CHECK-LABEL: @made_again
func.func @made_again(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK: exec.again %arg0 : tensor<8x4xf32>
  %0 = exec.again %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
