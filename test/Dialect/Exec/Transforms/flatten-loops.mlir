// The bodies of loops come to stand in the one list that there is, between marks; two values that change places get bytes of their own
// first.
//
// RUN: cleave-opt %s --exec-flatten-loops | FileCheck %s

// CHECK-LABEL: @a_loop_in_a_loop
func.func @a_loop_in_a_loop(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %[[A:.*]]:2 = exec.enter count 3 carries(%arg0) captures(%arg1)
  // CHECK-NEXT: %[[B:.*]] = nn.add %[[A]]#0, %[[A]]#1
  // CHECK-NEXT: %[[C:.*]] = exec.enter count 2 carries(%[[B]])
  // CHECK-NEXT: %[[D:.*]] = nn.exp %[[C]]
  // CHECK-NEXT: %[[E:.*]] = exec.leave next(%[[D]])
  // CHECK-NEXT: %[[F:.*]] = exec.leave next(%[[E]])
  // CHECK-NEXT: return %[[F]]
  %y = nn.loop count 3 carries (%x) captures (%w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %v: tensor<4xf32>):
    %b = nn.add %a, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %e = nn.loop count 2 carries (%b) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%c: tensor<4xf32>):
      %d = nn.exp %c : (tensor<4xf32>) -> tensor<4xf32>
      nn.yield next (%d) : (tensor<4xf32>) -> ()
    }
    nn.yield next (%e) : (tensor<4xf32>) -> ()
  }
  return %y : tensor<4xf32>
}

// A weight is read where it lies, in a loop in a loop, too.
nn.param @w : tensor<4xf32> = dense<2.0> : tensor<4xf32>
// CHECK-LABEL: @a_weight_in_a_loop
func.func @a_weight_in_a_loop(%x: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %[[W:.*]] = nn.load @w
  // CHECK-NEXT: %[[A:.*]]:2 = exec.enter count 3 carries(%arg0) captures(%arg1) :
  // CHECK-NEXT: %[[B:.*]]:2 = exec.enter count 2 carries(%[[A]]#0) captures(%[[A]]#1) :
  // CHECK-NEXT: nn.mul %[[B]]#0, %[[W]]
  %w = nn.load @w : tensor<4xf32>
  %y = nn.loop count 3 carries (%x) captures (%w, %z) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %v: tensor<4xf32>, %t: tensor<4xf32>):
    %e = nn.loop count 2 carries (%a) captures (%v, %t) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%b: tensor<4xf32>, %u: tensor<4xf32>, %s: tensor<4xf32>):
      %c = nn.mul %b, %u : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %d = nn.add %c, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      nn.yield next (%d) : (tensor<4xf32>) -> ()
    }
    nn.yield next (%e) : (tensor<4xf32>) -> ()
  }
  return %y : tensor<4xf32>
}

// CHECK-LABEL: @values_that_change_places
func.func @values_that_change_places(%x: tensor<2x2xf32>, %z: tensor<2x2xf32>) -> tensor<2x2xf32> {
  // CHECK-NEXT: %[[A:.*]]:2 = exec.enter count 3
  // CHECK-COUNT-2: exec.append
  // CHECK: exec.leave next
  %y:2 = nn.loop count 3 carries (%x, %z) : (tensor<2x2xf32>, tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  ^bb0(%a: tensor<2x2xf32>, %b: tensor<2x2xf32>):
    nn.yield next (%b, %a) : (tensor<2x2xf32>, tensor<2x2xf32>) -> ()
  }
  return %y#0 : tensor<2x2xf32>
}
