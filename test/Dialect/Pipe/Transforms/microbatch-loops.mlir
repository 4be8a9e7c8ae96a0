// What becomes of loops, of a batch of 8 samples in 4 microbatches.
//
// RUN: cleave-opt %s --pipe-microbatch=microbatches=4 --mlir-print-local-scope | FileCheck %s

nn.param @w : tensor<4x4xf32> = dense<0.5> : tensor<4x4xf32>

// What is carried is split because what comes back is, although zeros go in; weights stay invariant; scan inputs and outputs have the batch behind
// the iterations. The number of iterations is the same for all samples: a loop without them makes it, of what it needs.
// CHECK-LABEL: func.func @a_scan_runs_on_the_samples_of_a_microbatch(
// CHECK-SAME: %[[XS:[a-z0-9]+]]: tensor<5x2x4xf32> {{.*}}pipe.split = 1 : i64}, %[[N:[a-z0-9]+]]: tensor<i64>
// CHECK-SAME: -> (tensor<2x4xf32> {pipe.split = 0 : i64}, tensor<5x2x4xf32> {pipe.split = 1 : i64}, tensor<i64>)
// CHECK: %[[R:.*]]:3 = nn.loop count 5 while %[[GO:.*]] carries(%[[ZERO:[0-9]+]], {{.*}}) captures(%[[XS]], %{{.*}}, %[[N]]) : (tensor<i1>, tensor<i64>, tensor<2x4xf32>, tensor<5x2x4xf32>, tensor<5x2x4xf32>, tensor<4x4xf32>, tensor<i64>)
// CHECK: nn.scatter_nd set {{.*}} : (tensor<5x2x4xf32>, tensor<1x1xi64>, tensor<1x2x4xf32>)
// CHECK: %[[COUNT:.*]] = nn.loop count 5 while %[[GO]] carries(%[[ZERO]]) captures(%[[N]]) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64> {
// CHECK-NOT: nn.einsum
// CHECK: return %[[R]]#1, %[[R]]#2, %[[COUNT]]
func.func @a_scan_runs_on_the_samples_of_a_microbatch(%x: tensor<5x8x4xf32> {nn.name = "xs", nn.dims = ["time", "batch", ""]}, %n: tensor<i64> {nn.name = "n"}) -> (tensor<8x4xf32>, tensor<5x8x4xf32>, tensor<i64>) {
  %w = nn.load @w : tensor<4x4xf32>
  %h0 = nn.constant dense<0.0> : tensor<8x4xf32> -> tensor<8x4xf32>
  %all0 = nn.constant dense<0.0> : tensor<5x8x4xf32> -> tensor<5x8x4xf32>
  %zero = nn.constant dense<0> : tensor<i64> -> tensor<i64>
  %go = nn.lt %zero, %n : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %r:3 = nn.loop count 5 while %go carries (%zero, %h0, %all0) captures (%x, %w, %n) : (tensor<i1>, tensor<i64>, tensor<8x4xf32>, tensor<5x8x4xf32>, tensor<5x8x4xf32>, tensor<4x4xf32>, tensor<i64>) -> (tensor<i64>, tensor<8x4xf32>, tensor<5x8x4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<8x4xf32>, %all: tensor<5x8x4xf32>, %xs: tensor<5x8x4xf32>, %v: tensor<4x4xf32>, %m: tensor<i64>):
    %one = nn.constant dense<1> : tensor<i64> -> tensor<i64>
    %xi = nn.gather %xs, %i dim 0 : (tensor<5x8x4xf32>, tensor<i64>) -> tensor<8x4xf32>
    %p = nn.einsum %h, %v "ik,kj->ij" : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %s = nn.add %p, %xi : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %t = nn.tanh %s : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %at = nn.reshape %i : (tensor<i64>) -> tensor<1x1xi64>
    %row = nn.reshape %t : (tensor<8x4xf32>) -> tensor<1x8x4xf32>
    %put = nn.scatter_nd set %all, %at, %row : (tensor<5x8x4xf32>, tensor<1x1xi64>, tensor<1x8x4xf32>) -> tensor<5x8x4xf32>
    %j = nn.add %i, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %more = nn.lt %j, %m : (tensor<i64>, tensor<i64>) -> tensor<i1>
    nn.yield while %more next (%j, %t, %put) : (tensor<i1>, tensor<i64>, tensor<8x4xf32>, tensor<5x8x4xf32>) -> ()
  }
  return %r#1, %r#2, %r#0 : tensor<8x4xf32>, tensor<5x8x4xf32>, tensor<i64>
}

// A table with a row for each sample that the body captures comes in as a part beside itself.
// CHECK-LABEL: func.func @a_captured_table_is_cut_outside(
// CHECK: %[[PART:.*]] = pipe.part %arg1 split 0 of 4 : tensor<8x4xf32> to tensor<2x4xf32>
// CHECK: nn.loop count 3 carries(%arg0) captures(%arg1, %[[PART]])
// CHECK: ^bb0(%[[A:.*]]: tensor<2x4xf32>, %[[TABLE:.*]]: tensor<8x4xf32>, %[[OWN:.*]]: tensor<2x4xf32>):
// CHECK: nn.reduce sum %[[TABLE]] dims [0]
// CHECK: nn.add %[[A]], %[[OWN]]
func.func @a_captured_table_is_cut_outside(%x: tensor<8x4xf32> {nn.name = "x", nn.dims = ["batch", ""]}, %table: tensor<8x4xf32> {nn.name = "table", nn.dims = ["", ""]}) -> tensor<8x4xf32> {
  %y = nn.loop count 3 carries (%x) captures (%table) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>, %t: tensor<8x4xf32>):
    %all = nn.reduce sum %t dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
    %b = nn.add %a, %t : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = nn.mul %b, %all : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    nn.yield next (%c) : (tensor<8x4xf32>) -> ()
  }
  return %y : tensor<8x4xf32>
}

// What is carried invariant, and read beside samples, is split from the beginning on; so is what the loop within carries.
// CHECK-LABEL: func.func @a_loop_in_a_loop(
// CHECK: nn.loop count 2 carries(%arg0, %{{.*}}) : (tensor<2x4xf32>, tensor<2x1xf32>) -> (tensor<2x4xf32>, tensor<2x1xf32>)
// CHECK: nn.loop count 3 carries({{.*}}) captures({{.*}}) : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
func.func @a_loop_in_a_loop(%x: tensor<8x4xf32> {nn.name = "x", nn.dims = ["batch", ""]}) -> tensor<8x4xf32> {
  %one = nn.constant dense<1.0> : tensor<8x1xf32> -> tensor<8x1xf32>
  %y:2 = nn.loop count 2 carries (%x, %one) : (tensor<8x4xf32>, tensor<8x1xf32>) -> (tensor<8x4xf32>, tensor<8x1xf32>) {
  ^bb0(%a: tensor<8x4xf32>, %s: tensor<8x1xf32>):
    %z = nn.loop count 3 carries (%a) captures (%s) : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32> {
    ^bb0(%b: tensor<8x4xf32>, %t: tensor<8x1xf32>):
      %c = nn.mul %b, %t : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
      nn.yield next (%c) : (tensor<8x4xf32>) -> ()
    }
    %u = nn.exp %s : (tensor<8x1xf32>) -> tensor<8x1xf32>
    nn.yield next (%z, %u) : (tensor<8x4xf32>, tensor<8x1xf32>) -> ()
  }
  return %y#0 : tensor<8x4xf32>
}

// Without samples it runs once, for all.
// CHECK-LABEL: func.func @a_loop_without_samples_stays(
// CHECK: nn.loop count 3 carries({{.*}}) : (tensor<4x4xf32>) -> tensor<4x4xf32>
func.func @a_loop_without_samples_stays(%x: tensor<8x4xf32> {nn.name = "x", nn.dims = ["batch", ""]}) -> tensor<8x4xf32> {
  %w = nn.load @w : tensor<4x4xf32>
  %v = nn.loop count 3 carries (%w) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %b = nn.exp %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
    nn.yield next (%b) : (tensor<4x4xf32>) -> ()
  }
  %y = nn.einsum %x, %v "ik,kj->ij" : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// A sum over samples that nobody reads is no reason to refuse the loop, and goes.
// CHECK-LABEL: func.func @a_sum_that_nobody_reads(
// CHECK: nn.loop count 3
// CHECK-NEXT: ^bb0(
// CHECK-NEXT: %[[B:.*]] = nn.exp
// CHECK-NEXT: nn.yield next(%[[B]])
func.func @a_sum_that_nobody_reads(%x: tensor<8x4xf32> {nn.name = "x", nn.dims = ["batch", ""]}) -> tensor<8x4xf32> {
  %y = nn.loop count 3 carries (%x) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>):
    %b = nn.exp %a : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %sum = nn.reduce sum %b dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
    nn.yield next (%b) : (tensor<8x4xf32>) -> ()
  }
  return %y : tensor<8x4xf32>
}

// What the body does not read, and comes back split, goes in split.
// CHECK-LABEL: func.func @zeros_that_samples_take_the_place_of(
// CHECK: %[[ZERO:.*]] = nn.constant dense<0.000000e+00> : tensor<2x4xf32>
// CHECK: nn.loop count 3 carries(%[[ZERO]]) captures(%arg0) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
func.func @zeros_that_samples_take_the_place_of(%x: tensor<8x4xf32> {nn.name = "x", nn.dims = ["batch", ""]}) -> tensor<8x4xf32> {
  %zero = nn.constant dense<0.0> : tensor<8x4xf32> -> tensor<8x4xf32>
  %y = nn.loop count 3 carries (%zero) captures (%x) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%h: tensor<8x4xf32>, %a: tensor<8x4xf32>):
    %b = nn.exp %a : (tensor<8x4xf32>) -> tensor<8x4xf32>
    nn.yield next (%b) : (tensor<8x4xf32>) -> ()
  }
  return %y : tensor<8x4xf32>
}
