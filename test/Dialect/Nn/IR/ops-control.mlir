// Loops, read and printed in custom form, in generic form and as bytecode.
//
// RUN: cleave-opt %s | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --mlir-print-op-generic | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --emit-bytecode | cleave-opt | FileCheck %s

// So many times, or fewer.
// CHECK-LABEL: @a_loop_has_a_count_and_a_condition
func.func @a_loop_has_a_count_and_a_condition(%go: tensor<i1>, %x: tensor<4xf32>, %n: tensor<i64>, %w: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %[[Y:.*]]:2 = nn.loop count 8 while %arg0 carries(%arg1, %arg2) captures(%arg3) : (tensor<i1>, tensor<4xf32>, tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<i64>) {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4xf32>, %[[I:.*]]: tensor<i64>, %[[W:.*]]: tensor<4xf32>):
  // CHECK-NEXT: %[[B:.*]] = nn.mul %[[A]], %[[W]]
  // CHECK-NEXT: %[[MORE:.*]] = nn.lt %[[I]], %[[I]]
  // CHECK-NEXT: nn.yield while %[[MORE]] next(%[[B]], %[[I]]) : (tensor<i1>, tensor<4xf32>, tensor<i64>) -> ()
  // CHECK-NEXT: }
  %y:2 = nn.loop count 8 while %go carries (%x, %n) captures (%w) : (tensor<i1>, tensor<4xf32>, tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<i64>) {
  ^bb0(%a: tensor<4xf32>, %i: tensor<i64>, %v: tensor<4xf32>):
    %b = nn.mul %a, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %more = nn.lt %i, %i : (tensor<i64>, tensor<i64>) -> tensor<i1>
    nn.yield while %more next (%b, %i) : (tensor<i1>, tensor<4xf32>, tensor<i64>) -> ()
  }
  // CHECK: return %[[Y]]#0
  return %y#0 : tensor<4xf32>
}

// Either is enough, and a loop may stand in a loop.
// CHECK-LABEL: @a_loop_in_a_loop
func.func @a_loop_in_a_loop(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: nn.loop count 3 carries(%arg0) : (tensor<4xf32>) -> tensor<4xf32> {
  %y = nn.loop count 3 carries (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // CHECK: nn.loop count 0 carries(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32> {
    %z = nn.loop count 0 carries (%a) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%b: tensor<4xf32>):
      %c = nn.neg %b : (tensor<4xf32>) -> tensor<4xf32>
      // CHECK: nn.yield next(%{{.*}}) : (tensor<4xf32>) -> ()
      nn.yield next (%c) : (tensor<4xf32>) -> ()
    }
    nn.yield next (%z) : (tensor<4xf32>) -> ()
  }
  return %y : tensor<4xf32>
}
