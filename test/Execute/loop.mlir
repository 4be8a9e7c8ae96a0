// A loop is partitioned with what is around it: what it carries lies in one sharding all the way, collectives in its body count
// once for each iteration, and what is cheaper before the loop is done there.
//
// RUN: %{each} %s %t "cleave-opt {} --spmd-shard | FileCheck {}" "cleave run {} --check | FileCheck {} --check-prefix=EQUAL" "cleave run {} --check --executor=program | FileCheck {} --check-prefix=EQUAL"
//
// In kernels, and as commands on memory, its body stands in the list of the function, between marks.
// RUN: %{each} %s %t "cleave-opt {} --spmd-shard --exec-lower=last=outlined | cleave run - --against {} | FileCheck {} --check-prefix=EQUAL" "cleave-opt {} --spmd-shard --exec-lower | cleave run - --against {} | FileCheck {} --check-prefix=EQUAL"

// EQUAL: check result0: ok

#mesh = #spmd.mesh<["x"=2]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
#cols = #spmd.sharding<#mesh, [{}, {"x"}]>
#terms = #spmd.sharding<#mesh, [{}, {}], partial = {"x": sum}>
#list = #spmd.sharding<#mesh, [{"x"}]>
#scalar = #spmd.sharding<#mesh, []>

//--- batch.mlir
// Samples know nothing of each other: nothing is sent. The condition counts, and is the same on all ranks.
// CHECK-LABEL: @samples_stay_where_they_are
// CHECK-SAME: (%{{.*}}: tensor<4x8xf32>
func.func @samples_stay_where_they_are(%x: tensor<8x8xf32, #rows>, %n: tensor<i64>) -> tensor<8x8xf32> {
  %zero = nn.constant dense<0> : tensor<i64> -> tensor<i64>
  %go = nn.lt %zero, %n : (tensor<i64>, tensor<i64>) -> tensor<i1>
  // CHECK-NOT: spmd.all
  // CHECK: nn.loop while %{{.*}} carries(%{{.*}}, %arg0) captures(%arg1) {spmd.times = 16 : i64} : (tensor<i1>, tensor<i64>, tensor<4x8xf32>, tensor<i64>) -> (tensor<i64>, tensor<4x8xf32>)
  // CHECK-NOT: spmd.all
  %y:2 = nn.loop while %go carries (%zero, %x) captures (%n) : (tensor<i1>, tensor<i64>, tensor<8x8xf32, #rows>, tensor<i64>) -> (tensor<i64>, tensor<8x8xf32>) {
  ^bb0(%i: tensor<i64>, %a: tensor<8x8xf32>, %most: tensor<i64>):
    %b = nn.softmax %a dim 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %one = nn.constant dense<1> : tensor<i64> -> tensor<i64>
    %j = nn.add %i, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %more = nn.lt %j, %most : (tensor<i64>, tensor<i64>) -> tensor<i1>
    nn.yield while %more next (%j, %b) : (tensor<i1>, tensor<i64>, tensor<8x8xf32>) -> ()
  }
  return %y#1 : tensor<8x8xf32>
}

//--- hidden.mlir
// A product over a split dim: terms of 8x1024 numbers in each of 5 iterations, of which a rank keeps one half and sends the other: 5 * 16,384 bytes.
// CHECK-LABEL: @a_sum_over_ranks_in_each_iteration
func.func @a_sum_over_ranks_in_each_iteration(%x: tensor<8x1024xf32, #cols>, %w: tensor<1024x1024xf32, #rows>) -> tensor<8x1024xf32> {
  // CHECK: nn.loop count 5 carries(%arg0) captures(%arg1) {spmd.times = 5 : i64} : (tensor<8x512xf32>, tensor<512x1024xf32>) -> tensor<8x512xf32>
  // CHECK: nn.einsum {{.*}} -> tensor<8x1024xf32>
  // CHECK: spmd.reduce_scatter {{.*}} : (tensor<8x1024xf32>) -> tensor<8x512xf32>
  // CHECK: nn.tanh {{.*}} -> tensor<8x512xf32>
  // CHECK-NOT: = spmd.
  // CHECK: nn.yield
  %y = nn.loop count 5 carries (%x) captures (%w) : (tensor<8x1024xf32, #cols>, tensor<1024x1024xf32, #rows>) -> tensor<8x1024xf32> {
  ^bb0(%a: tensor<8x1024xf32>, %v: tensor<1024x1024xf32>):
    %b = nn.einsum %a, %v "bi,ij->bj" : (tensor<8x1024xf32>, tensor<1024x1024xf32>) -> tensor<8x1024xf32>
    %k = nn.constant dense<0.02> : tensor<f32> -> tensor<f32>
    %s = nn.mul %b, %k : (tensor<8x1024xf32>, tensor<f32>) -> tensor<8x1024xf32>
    %c = nn.tanh %s : (tensor<8x1024xf32>) -> tensor<8x1024xf32>
    nn.yield next (%c) : (tensor<8x1024xf32>) -> ()
  }
  return %y : tensor<8x1024xf32>
}

//--- weight.mlir
// A weight that lies in pieces (as with FSDP), and rows that know nothing of each other: gathered once, before the loop.
// CHECK-LABEL: @a_weight_is_gathered_once
func.func @a_weight_is_gathered_once(%x: tensor<512x16xf32, #rows>, %w: tensor<16x16xf32, #rows>) -> tensor<512x16xf32, #rows> {
  // CHECK: %[[W:.*]] = spmd.all_gather %arg1
  // CHECK: nn.loop count 5 carries(%arg0) captures(%[[W]]) {{.*}} : (tensor<256x16xf32>, tensor<16x16xf32>) -> tensor<256x16xf32>
  // CHECK-NOT: = spmd.
  %y = nn.loop count 5 carries (%x) captures (%w) : (tensor<512x16xf32, #rows>, tensor<16x16xf32, #rows>) -> tensor<512x16xf32, #rows> {
  ^bb0(%a: tensor<512x16xf32>, %v: tensor<16x16xf32>):
    %b = nn.einsum %a, %v "bi,ij->bj" : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %c = nn.tanh %b : (tensor<512x16xf32>) -> tensor<512x16xf32>
    nn.yield next (%c) : (tensor<512x16xf32>) -> ()
  }
  return %y : tensor<512x16xf32, #rows>
}

//--- swap.mlir
// Two values that change places lie alike.
// CHECK-LABEL: @what_changes_places_lies_alike
func.func @what_changes_places_lies_alike(%x: tensor<8x8xf32, #rows>, %z: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: nn.loop count 3 {{.*}} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  // CHECK-NOT: = spmd.
  // CHECK: nn.yield
  %y:2 = nn.loop count 3 carries (%x, %z) : (tensor<8x8xf32, #rows>, tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  ^bb0(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>):
    %c = nn.exp %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %d = nn.neg %c : (tensor<8x8xf32>) -> tensor<8x8xf32>
    nn.yield next (%b, %d) : (tensor<8x8xf32>, tensor<8x8xf32>) -> ()
  }
  return %y#0 : tensor<8x8xf32>
}

//--- outside.mlir
// What the body reads from outside stays as it is for all iterations, though a kernel could have worked in place on it; and what the loop
// carries is there though no iteration runs.
// CHECK-LABEL: @what_is_outside_stays
func.func @what_is_outside_stays(%x: tensor<8x8xf32, #rows>, %n: tensor<i64>) -> tensor<8x8xf32> {
  %t = nn.exp %x : (tensor<8x8xf32, #rows>) -> tensor<8x8xf32>
  %s = nn.softmax %t dim 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK: nn.loop count 4
  %y = nn.loop count 4 carries (%x) captures (%s) : (tensor<8x8xf32, #rows>, tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>):
    %c = nn.neg %b : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %d = nn.softmax %c dim 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %e = nn.add %a, %d : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    nn.yield next (%e) : (tensor<8x8xf32>) -> ()
  }
  // CHECK: nn.loop count 0
  %z = nn.loop count 0 carries (%y) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a: tensor<8x8xf32>):
    %c = nn.neg %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
    nn.yield next (%c) : (tensor<8x8xf32>) -> ()
  }
  return %z : tensor<8x8xf32>
}

//--- unchanged.mlir
// What an iteration hands on as it came stays as it is, though the body wants it in parts: the terms are added up where they are fewest, in
// each of 3 iterations, and what they are made of is not put together again.
// CHECK-LABEL: @what_stays_goes_no_way_back
func.func @what_stays_goes_no_way_back(%x: tensor<8x16xf32, #replicated>, %z: tensor<16xf32>) -> (tensor<8x16xf32>, tensor<16xf32>) {
  // CHECK: nn.loop count 3
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<8x16xf32>, %{{.*}}: tensor<8xf32>):
  // CHECK-NEXT: spmd.keep_on_first sum %[[A]]
  // CHECK: spmd.reduce_scatter sum {{.*}} : (tensor<16xf32>) -> tensor<8xf32>
  // CHECK-NOT: = spmd.
  // CHECK: nn.yield next(%[[A]],
  %y:2 = nn.loop count 3 carries (%x, %z) : (tensor<8x16xf32, #replicated>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<16xf32>) {
  ^bb0(%a: tensor<8x16xf32, #terms>, %b: tensor<16xf32>):
    %c = nn.reduce sum %a dims [0] : (tensor<8x16xf32, #terms>) -> tensor<16xf32>
    %d = nn.add %b, %c : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield next (%a, %d) : (tensor<8x16xf32, #terms>, tensor<16xf32>) -> ()
  }
  return %y#0, %y#1 : tensor<8x16xf32>, tensor<16xf32>
}

//--- view.mlir
// A rank's own rows of what is replicated are a view with an offset of the rank's, unless ranks meet with it: also where they do so in a loop.
// CHECK-LABEL: @ranks_meet_with_what_a_loop_captures
func.func @ranks_meet_with_what_a_loop_captures(%x: tensor<8x8xf32, #replicated>, %z: tensor<8x8xf32, #replicated>) -> tensor<8x8xf32, #replicated> {
  // CHECK: %[[T:.*]] = nn.tanh
  // CHECK: %[[S:.*]] = spmd.local_slice %[[T]]
  // CHECK: nn.loop count 2 carries(%arg1) captures(%[[S]])
  // CHECK-NEXT: ^bb0(%{{.*}}: tensor<8x8xf32>, %[[B:.*]]: tensor<4x8xf32>):
  // CHECK-NEXT: spmd.all_gather %[[B]]
  %t = nn.tanh %x : (tensor<8x8xf32, #replicated>) -> tensor<8x8xf32, #replicated>
  %s = spmd.constrain %t : tensor<8x8xf32, #replicated> to tensor<8x8xf32, #rows>
  %y = nn.loop count 2 carries (%z) captures (%s) : (tensor<8x8xf32, #replicated>, tensor<8x8xf32, #rows>) -> tensor<8x8xf32, #replicated> {
  ^bb0(%a: tensor<8x8xf32, #replicated>, %b: tensor<8x8xf32, #rows>):
    %c = spmd.constrain %b : tensor<8x8xf32, #rows> to tensor<8x8xf32, #replicated>
    %d = nn.softmax %c dim 0 : (tensor<8x8xf32, #replicated>) -> tensor<8x8xf32, #replicated>
    %e = nn.add %a, %d : (tensor<8x8xf32, #replicated>, tensor<8x8xf32, #replicated>) -> tensor<8x8xf32, #replicated>
    nn.yield next (%e) : (tensor<8x8xf32, #replicated>) -> ()
  }
  return %y : tensor<8x8xf32, #replicated>
}

//--- lookup.mlir
// Random inputs: what a loop looks up is a place in the table, which has one row, through two iterations.
// CHECK-LABEL: @places_are_drawn_through_loops
func.func @places_are_drawn_through_loops(%table: tensor<1x8xf32>, %ids: tensor<16xi64, #list>, %z: tensor<16x8xf32>) -> tensor<16x8xf32> {
  // CHECK: nn.loop count 2 carries(%{{.*}}, %{{.*}}) captures(%{{.*}}) {{.*}} : (tensor<8xi64>, tensor<8x8xf32>, tensor<1x8xf32>)
  %y:2 = nn.loop count 2 carries (%ids, %z) captures (%table) : (tensor<16xi64, #list>, tensor<16x8xf32>, tensor<1x8xf32>) -> (tensor<16xi64>, tensor<16x8xf32>) {
  ^bb0(%i: tensor<16xi64>, %a: tensor<16x8xf32>, %t: tensor<1x8xf32>):
    %b = nn.gather %t, %i dim 0 : (tensor<1x8xf32>, tensor<16xi64>) -> tensor<16x8xf32>
    %c = nn.add %a, %b : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    nn.yield next (%i, %c) : (tensor<16xi64>, tensor<16x8xf32>) -> ()
  }
  return %y#1 : tensor<16x8xf32>
}

//--- nested.mlir
// A loop in a loop, of which the inner one carries what the outer one splits.
// CHECK-LABEL: @a_loop_in_a_loop
func.func @a_loop_in_a_loop(%x: tensor<8x8xf32, #rows>) -> tensor<8x8xf32> {
  // CHECK: nn.loop count 3 {{.*}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: nn.loop count 2 {{.*}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = nn.loop count 3 carries (%x) : (tensor<8x8xf32, #rows>) -> tensor<8x8xf32> {
  ^bb0(%a: tensor<8x8xf32>):
    %z = nn.loop count 2 carries (%a) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
    ^bb0(%b: tensor<8x8xf32>):
      %c = nn.sin %b : (tensor<8x8xf32>) -> tensor<8x8xf32>
      nn.yield next (%c) : (tensor<8x8xf32>) -> ()
    }
    %d = nn.softmax %z dim 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    nn.yield next (%d) : (tensor<8x8xf32>) -> ()
  }
  return %y : tensor<8x8xf32>
}

//--- deep.mlir
// Ten loops in each other of a thousand iterations each: prices stay in range. (Of the outermost there is none, so that it can be run.)
// CHECK-LABEL: @ten_loops_in_each_other
func.func @ten_loops_in_each_other(%x: tensor<8x8xf32, #rows>) -> tensor<8x8xf32> {
  // CHECK-COUNT-10: nn.loop count {{.*}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y0 = nn.loop count 0 carries (%x) : (tensor<8x8xf32, #rows>) -> tensor<8x8xf32> {
  ^bb0(%a0: tensor<8x8xf32>):
  %y1 = nn.loop count 1000 carries (%a0) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a1: tensor<8x8xf32>):
  %y2 = nn.loop count 1000 carries (%a1) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a2: tensor<8x8xf32>):
  %y3 = nn.loop count 1000 carries (%a2) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a3: tensor<8x8xf32>):
  %y4 = nn.loop count 1000 carries (%a3) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a4: tensor<8x8xf32>):
  %y5 = nn.loop count 1000 carries (%a4) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a5: tensor<8x8xf32>):
  %y6 = nn.loop count 1000 carries (%a5) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a6: tensor<8x8xf32>):
  %y7 = nn.loop count 1000 carries (%a6) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a7: tensor<8x8xf32>):
  %y8 = nn.loop count 1000 carries (%a7) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a8: tensor<8x8xf32>):
  %y9 = nn.loop count 1000 carries (%a8) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a9: tensor<8x8xf32>):
    %z = nn.softmax %a9 dim 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    nn.yield next (%z) : (tensor<8x8xf32>) -> ()
  }
    nn.yield next (%y9) : (tensor<8x8xf32>) -> ()
  }
    nn.yield next (%y8) : (tensor<8x8xf32>) -> ()
  }
    nn.yield next (%y7) : (tensor<8x8xf32>) -> ()
  }
    nn.yield next (%y6) : (tensor<8x8xf32>) -> ()
  }
    nn.yield next (%y5) : (tensor<8x8xf32>) -> ()
  }
    nn.yield next (%y4) : (tensor<8x8xf32>) -> ()
  }
    nn.yield next (%y3) : (tensor<8x8xf32>) -> ()
  }
    nn.yield next (%y2) : (tensor<8x8xf32>) -> ()
  }
    nn.yield next (%y1) : (tensor<8x8xf32>) -> ()
  }
  return %y0 : tensor<8x8xf32>
}
