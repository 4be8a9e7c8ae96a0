// What becomes of a batch of 8 samples in 4 microbatches.
//
// RUN: cleave-opt %s --pipe-microbatch=microbatches=4 | FileCheck %s
// RUN: cleave-opt %s --pipe-microbatch=microbatch-size=2 | FileCheck %s

// CHECK: module attributes {{.*}}pipe.microbatches = 4 : i64
// CHECK-SAME: spmd.phase = "canonical"
#mesh = #spmd.mesh<["data"=2]>
#rows = #spmd.sharding<#mesh, [{"data"}, {}]>
#batch = #spmd.annotation<#rows, loc("p.yaml":3:5), loc("p.yaml":3:14)>
module attributes {spmd.mesh = #mesh, spmd.phase = "canonical"} {

nn.param @w : tensor<4x4xf32> = dense<0.5> : tensor<4x4xf32>

// Samples go their own ways; what is made of parameters alone stays as it is.
// CHECK-LABEL: func.func @samples_are_alone(
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32> {nn.name = "x", pipe.split = 0 : i64}) -> (tensor<2x4xf32> {nn.name = "y", pipe.split = 0 : i64}, tensor<4x4xf32> {nn.name = "v"})
// CHECK: %[[W:.*]] = nn.load @w : tensor<4x4xf32>
// CHECK: %[[V:.*]] = nn.exp %[[W]] : (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK: %[[Y:.*]] = nn.einsum %[[X]], %[[V]] "ik,kj->ij" : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
// CHECK: %[[Z:.*]] = nn.softmax %[[Y]] dim 1 {{.*}}tensor<2x4xf32>
// CHECK: return %[[Z]], %[[V]]
func.func @samples_are_alone(%x: tensor<8x4xf32> {nn.name = "x"}) -> (tensor<8x4xf32> {nn.name = "y"}, tensor<4x4xf32> {nn.name = "v"}) {
  %w = nn.load @w : tensor<4x4xf32>
  %v = nn.exp %w : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = nn.einsum %x, %v "ik,kj->ij" : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %z = nn.softmax %y dim 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %z, %v : tensor<8x4xf32>, tensor<4x4xf32>
}

// A mean loss: each microbatch has its part of the mean. What is made of it is the epilogue; an output in the middle is
// split all the same.
// CHECK-LABEL: func.func @a_mean_is_accumulated(
// CHECK-SAME: -> (tensor<2x4xf32> {pipe.split = 0 : i64}, tensor<f32>)
// CHECK: %[[SQUARES:.*]] = nn.mul
// CHECK: %[[MEAN:.*]] = nn.reduce mean %[[SQUARES]] dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
// CHECK: %[[SHARE:.*]] = nn.constant dense<2.500000e-01> : tensor<f32> -> tensor<f32>
// CHECK: %[[TERM:.*]] = nn.mul %[[MEAN]], %[[SHARE]]
// CHECK: %[[ALL:.*]] = pipe.accumulate sum %[[TERM]] {nn.node = #{{.*}}} : tensor<f32>
// CHECK: %[[ROOT:.*]] = nn.sqrt %[[ALL]] : (tensor<f32>) -> tensor<f32>
// CHECK: return %{{.*}}, %[[ROOT]]
func.func @a_mean_is_accumulated(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<f32>) {
  %d = nn.sub %x, %y : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %s = nn.mul %d, %d : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %m = nn.reduce mean %s dims [0, 1] {nn.node = #nn.node<"loss", "ReduceMean", ["s"], [["m"]]>} : (tensor<8x4xf32>) -> tensor<f32>
  %r = nn.sqrt %m : (tensor<f32>) -> tensor<f32>
  return %d, %r : tensor<8x4xf32>, tensor<f32>
}

// Sums, extrema, products, and a contraction over the batch.
// CHECK-LABEL: func.func @reductions_of_every_kind(
// CHECK: nn.reduce sum {{.*}}tensor<2x4xf32>
// CHECK-NEXT: pipe.accumulate sum %{{.*}} : tensor<4xf32>
// CHECK: pipe.accumulate max %{{.*}} : tensor<4xf32>
// CHECK: pipe.accumulate min %{{.*}} : tensor<1x4xf32>
// CHECK: pipe.accumulate prod %{{.*}} : tensor<4xf32>
// CHECK: nn.einsum %{{.*}} "bi,bj->ij" : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: pipe.accumulate sum %{{.*}} : tensor<4x4xf32>
func.func @reductions_of_every_kind(%x: tensor<8x4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<1x4xf32>, tensor<4xf32>, tensor<4x4xf32>) {
  %0 = nn.reduce sum %x dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  %1 = nn.reduce max %x dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  %2 = nn.reduce min %x dims [0] keep_dims : (tensor<8x4xf32>) -> tensor<1x4xf32>
  %3 = nn.reduce prod %x dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  %4 = nn.einsum %x, %x "bi,bj->ij" : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %2, %3, %4 : tensor<4xf32>, tensor<4xf32>, tensor<1x4xf32>, tensor<4xf32>, tensor<4x4xf32>
}

// A mask without the batch is invariant; one with it, spread from an invariant one, is made for a microbatch at once. Both are used
// everywhere, and made once.
// CHECK-LABEL: func.func @masks_are_used_everywhere(
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32> {pipe.split = 0 : i64}, %[[MASK:.*]]: tensor<1x4xf32>)
// CHECK: %[[NEGATED:.*]] = nn.neg %[[MASK]] : (tensor<1x4xf32>) -> tensor<1x4xf32>
// CHECK: %[[A:.*]] = nn.add %[[X]], %[[NEGATED]]
// CHECK-NOT: pipe.part
// CHECK: %[[SPREAD:.*]] = nn.broadcast %[[NEGATED]] : (tensor<1x4xf32>) -> tensor<2x4xf32>
// CHECK: %[[LARGE:.*]] = nn.exp %[[SPREAD]] : (tensor<2x4xf32>) -> tensor<2x4xf32>
// CHECK: %[[B:.*]] = nn.mul %[[A]], %[[LARGE]]
// CHECK: nn.add %[[B]], %[[LARGE]]
func.func @masks_are_used_everywhere(%x: tensor<8x4xf32>, %mask: tensor<1x4xf32>) -> tensor<8x4xf32> {
  %n = nn.neg %mask : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %s = nn.broadcast %n : (tensor<1x4xf32>) -> tensor<8x4xf32>
  %e = nn.exp %s : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %a = nn.add %x, %n : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32>
  %b = nn.mul %a, %e : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %c = nn.add %b, %e : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %c : tensor<8x4xf32>
}

// Of a whole value with a row for each sample every microbatch takes its rows, once.
// CHECK-LABEL: func.func @rows_of_a_table(
// CHECK: %[[PLACES:.*]] = nn.iota dim 0 start 0 step 1 : tensor<8x1xf32>
// CHECK: %[[MINE:.*]] = pipe.part %[[PLACES]] split 0 of 4 : tensor<8x1xf32> to tensor<2x1xf32>
// CHECK: nn.mul %{{.*}}, %[[MINE]] : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
// CHECK: nn.add %{{.*}}, %[[MINE]] : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
// CHECK: %[[TABLE:.*]] = nn.constant dense<{{.*}}> : tensor<8xf32> -> tensor<8xf32>
// CHECK: pipe.part %[[TABLE]] split 0 of 4 : tensor<8xf32> to tensor<2xf32>
// CHECK-NOT: pipe.part
func.func @rows_of_a_table(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>) {
  %i = nn.iota dim 0 start 0 step 1 : tensor<8x1xf32>
  %a = nn.mul %x, %i : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
  %b = nn.add %a, %i : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
  %t = nn.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32> -> tensor<8xf32>
  %s = nn.reduce sum %b dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  %c = nn.add %s, %t : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %b, %c : tensor<8x4xf32>, tensor<8xf32>
}

// A constant that is one number is made smaller, and so is a folded mask of which all samples have the same; positions
// along another dim than the batch are the same for all samples.
// CHECK-LABEL: func.func @what_all_samples_have(
// CHECK-NOT: pipe.part
// CHECK-DAG: nn.constant dense<1.000000e+00> : tensor<2x4xf32>
// CHECK-DAG: nn.constant dense<{{\[}}[true, false, true, false], [true, false, true, false]]> : tensor<2x4xi1>
// CHECK-DAG: nn.iota dim 1 start 0 step 1 : tensor<2x4xf32>
// CHECK: return
func.func @what_all_samples_have(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %one = nn.constant dense<1.0> : tensor<8x4xf32> -> tensor<8x4xf32>
  %m = nn.constant dense<[[true, false, true, false], [true, false, true, false], [true, false, true, false], [true, false, true, false],
                          [true, false, true, false], [true, false, true, false], [true, false, true, false], [true, false, true, false]]> : tensor<8x4xi1> -> tensor<8x4xi1>
  %i = nn.iota dim 1 start 0 step 1 : tensor<8x4xf32>
  %a = nn.add %x, %one : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %b = nn.select %m, %a, %i : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %b : tensor<8x4xf32>
}

// The batch may move to another dim, and be the major part of a merged one.
// CHECK-LABEL: func.func @the_batch_moves(
// CHECK-SAME: tensor<5x2x6xf32> {pipe.split = 1 : i64}
// CHECK-SAME: tensor<10x6xf32> {pipe.split = 0 : i64}
// CHECK: nn.transpose {{.*}} : (tensor<2x5x6xf32>) -> tensor<5x2x6xf32>
// CHECK: nn.reshape {{.*}} : (tensor<2x5x6xf32>) -> tensor<10x6xf32>
func.func @the_batch_moves(%x: tensor<8x5x6xf32>) -> (tensor<5x8x6xf32>, tensor<40x6xf32>) {
  %t = nn.transpose %x [1, 0, 2] : (tensor<8x5x6xf32>) -> tensor<5x8x6xf32>
  %r = nn.reshape %x : (tensor<8x5x6xf32>) -> tensor<40x6xf32>
  return %t, %r : tensor<5x8x6xf32>, tensor<40x6xf32>
}

// A cache is split over the batch like any value; positions are added along another dim.
// CHECK-LABEL: func.func @a_cache_grows(
// CHECK-SAME: tensor<2x3x4xf32> {nn.name = "past", pipe.split = 0 : i64}
// CHECK-SAME: -> (tensor<2x4x4xf32> {nn.name = "present", pipe.split = 0 : i64, spmd.state = "past"})
func.func @a_cache_grows(%past: tensor<8x3x4xf32> {nn.name = "past"}, %new: tensor<8x1x4xf32> {nn.name = "new"})
    -> (tensor<8x4x4xf32> {nn.name = "present", spmd.state = "past"}) {
  %all = nn.concat %past, %new dim 1 : (tensor<8x3x4xf32>, tensor<8x1x4xf32>) -> tensor<8x4x4xf32>
  return %all : tensor<8x4x4xf32>
}

// What a plan wants stays, of the part: it fits 2 rows on 2 devices.
// CHECK-LABEL: func.func @annotations_stay(
// CHECK-SAME: tensor<2x4xf32> {pipe.split = 0 : i64, spmd.annotation = #{{.*}}}
// CHECK: spmd.pin %{{.*}} "h" wants <#{{.*}}> : tensor<2x4xf32>
func.func @annotations_stay(%x: tensor<8x4xf32> {spmd.annotation = #batch}) -> tensor<8x4xf32> {
  %h = nn.exp %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %p = spmd.pin %h "h" wants #batch : tensor<8x4xf32>
  %y = nn.neg %p : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// A weight and its state are no batch, whatever their sizes, and change once, after the last microbatch. Where sums are to be kept in
// shares, each addend is, whatever moves its numbers; zeros that microbatches add to are theirs alone.
// CHECK-LABEL: func.func @a_step(
// CHECK-SAME: %{{.*}}: tensor<2x4xf32> {nn.role = "batch", pipe.split = 0 : i64}
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<8x4xf32> {nn.name = "w", nn.role = "parameter"}
// CHECK-SAME: -> (tensor<8x4xf32> {spmd.state = "w"}, tensor<4x1xf32>)
// CHECK: %[[D:.*]] = nn.scatter_nd add
// CHECK: %[[ADDEND:.*]] = spmd.pin %[[D]] "grad(w)" wants
// CHECK: %[[SUM:.*]] = pipe.accumulate sum %[[ADDEND]]
// CHECK: %[[G:.*]] = spmd.pin %[[SUM]] "grad(w)" wants
// CHECK: %[[NEXT:.*]] = nn.sub %[[W]], %[[G]]
// CHECK: %[[TERM:.*]] = nn.reduce sum %{{.*}} dims [0] : (tensor<2x4xf32>) -> tensor<4xf32>
// CHECK: %[[MOVED:.*]] = nn.reshape %[[TERM]]
// CHECK: %[[SHARE:.*]] = spmd.pin %[[MOVED]] "grad(b)" wants
// CHECK: %[[ALL:.*]] = pipe.accumulate sum %[[SHARE]]
// CHECK: %[[B:.*]] = spmd.pin %[[ALL]] "grad(b)" wants
// CHECK: return %[[NEXT]], %[[B]]
func.func @a_step(%x: tensor<8x4xf32> {nn.role = "batch"}, %i: tensor<8x1xi64> {nn.role = "batch"}, %w: tensor<8x4xf32> {nn.name = "w", nn.role = "parameter"})
    -> (tensor<8x4xf32> {spmd.state = "w"}, tensor<4x1xf32>) {
  %z = nn.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %o = nn.broadcast %z : (tensor<f32>) -> tensor<8x4xf32>
  %d = nn.scatter_nd add %o, %i, %x : (tensor<8x4xf32>, tensor<8x1xi64>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %g = spmd.pin %d "grad(w)" wants #batch {spmd.of_parts} : tensor<8x4xf32>
  %n = nn.sub %w, %g : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %t = nn.reduce sum %x dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  %r = nn.reshape %t : (tensor<4xf32>) -> tensor<4x1xf32>
  %b = spmd.pin %r "grad(b)" wants #batch {spmd.of_parts} : tensor<4x1xf32>
  return %n, %b : tensor<8x4xf32>, tensor<4x1xf32>
}

}
