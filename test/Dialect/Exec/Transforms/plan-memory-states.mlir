// States: what the next call finds as an argument lies where the argument does.
//
// RUN: cleave-opt %s --split-input-file --exec-plan-memory --exec-verify-plan | FileCheck %s
// RUN: cleave-opt %s --split-input-file --exec-plan-memory -o %t.mlir 2>&1 | FileCheck %s --check-prefix=REMARK

// One that grows is the last positions of its buffer. It moves towards the beginning, and what is new comes behind it.
// CHECK-LABEL: @grows
// CHECK: %[[PAST:.*]] = exec.view @state_0[16] : memref<2x3x4xf32, strided<[16, 4, 1]>>
// CHECK: exec.input "past" in %[[PAST]]
// CHECK: %[[NEW:.*]] = exec.view @input_1[0]
// CHECK: %[[ALL:.*]] = exec.view @state_0[0] : memref<2x4x4xf32>
// CHECK: %[[KEPT:.*]] = exec.view @state_0[0] of %[[ALL]] : memref<2x3x4xf32, strided<[16, 4, 1]>> of memref<2x4x4xf32>
// CHECK: exec.copy %[[PAST]] into %[[KEPT]]
// CHECK: %[[END:.*]] = exec.view @state_0[48] of %[[ALL]] : memref<2x1x4xf32, strided<[16, 4, 1]>> of memref<2x4x4xf32>
// CHECK: exec.copy %[[NEW]] into %[[END]]
// CHECK-NOT: exec.copy
// CHECK: exec.output "present" in %[[ALL]] : memref<2x4x4xf32> of tensor<2x4x4xf32> starts [0, 0, 0] {spmd.state = "past"}
func.func @grows(%past: tensor<2x3x4xf32> {nn.name = "past"}, %new: tensor<2x1x4xf32>)
    -> (tensor<2x4x4xf32> {nn.name = "present", spmd.state = "past"}) {
  %all = exec.append %past, %new dim 1 : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4x4xf32>
  return %all : tensor<2x4x4xf32>
}

// -----

// Who else reads one that grows gets a dense copy, made before it moves.
// CHECK-LABEL: @old_value_is_read
// CHECK: %[[PAST:.*]] = exec.view @state_0[16] : memref<3x4xf32, strided<[4, 1]>>
// CHECK: %[[COPY:.*]] = exec.view @output_1[0] : memref<3x4xf32>
// CHECK: exec.copy %[[PAST]] into
// CHECK: exec.copy %[[PAST]] into
// CHECK: exec.run @relu_0(%[[COPY]])
func.func @old_value_is_read(%past: tensor<3x4xf32> {nn.name = "past"}, %new: tensor<1x4xf32>)
    -> (tensor<4x4xf32> {spmd.state = "past"}, tensor<3x4xf32>) {
  %all = exec.append %past, %new dim 0 : (tensor<3x4xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
  %y = exec.launch @relu_0(%past) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %all, %y : tensor<4x4xf32>, tensor<3x4xf32>
}
exec.kernel @relu_0(%a: tensor<3x4xf32>) {
  %0 = nn.relu %a : (tensor<3x4xf32>) -> tensor<3x4xf32>
  exec.yield %0 : tensor<3x4xf32>
}

// -----

// Of one shape: the kernel that reads the old value last writes over it.
// CHECK-LABEL: @updated_in_place
// CHECK: %[[OLD:.*]] = exec.view @state_0[0] : memref<8xf32>
// CHECK: %[[NEXT:.*]] = exec.view @state_0[0] : memref<8xf32>
// CHECK: exec.run @add_0(%[[OLD]], %{{.*}}) into (%[[NEXT]])
// CHECK-NOT: exec.copy
// CHECK: exec.output "result0" in %[[NEXT]]
// CHECK: exec.kernel @add_0({{.*}}) attributes {in_place = array<i64: 0>}
func.func @updated_in_place(%old: tensor<8xf32> {nn.name = "old"}, %x: tensor<8xf32>)
    -> (tensor<8xf32> {spmd.state = "old"}) {
  %next = exec.launch @add_0(%old, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %next : tensor<8xf32>
}
exec.kernel @add_0(%a: tensor<8xf32>, %b: tensor<8xf32>) {
  %0 = nn.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  exec.yield %0 : tensor<8xf32>
}

// -----

// While the old value is still read, the next one lies elsewhere, and is copied at the end of the call.
// REMARK: remark: state 'result0' is copied at the end of a call
// CHECK-LABEL: @copied
// CHECK: %[[OLD:.*]] = exec.view @state_0[0] : memref<8xf32>
// CHECK: %[[NEXT:.*]] = exec.view @activations[{{.*}}] : memref<8xf32>
// CHECK: exec.run @exp_0(%[[OLD]]) into (%[[NEXT]])
// CHECK: exec.run @add_0(%[[NEXT]], %[[OLD]])
// CHECK: %[[PLACE:.*]] = exec.view @state_0[0] : memref<8xf32>
// CHECK: exec.copy %[[NEXT]] into %[[PLACE]]
// CHECK: exec.output "result0" in %[[PLACE]]
func.func @copied(%old: tensor<8xf32> {nn.name = "old"}) -> (tensor<8xf32> {spmd.state = "old"}, tensor<8xf32>) {
  %next = exec.launch @exp_0(%old) : (tensor<8xf32>) -> tensor<8xf32>
  %y = exec.launch @add_0(%next, %old) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %next, %y : tensor<8xf32>, tensor<8xf32>
}
exec.kernel @exp_0(%a: tensor<8xf32>) {
  %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
  exec.yield %0 : tensor<8xf32>
}
exec.kernel @add_0(%a: tensor<8xf32>, %b: tensor<8xf32>) {
  %0 = nn.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  exec.yield %0 : tensor<8xf32>
}

// -----

// Two states that change places: one old value is kept aside.
// CHECK-LABEL: @swapped
// CHECK: exec.input "a" in %[[A:.*]] : memref<8xf32>
// CHECK: exec.input "b" in %[[B:.*]] : memref<8xf32>
// CHECK: exec.copy %[[A]] into %[[C:.*]] : memref<8xf32> into memref<8xf32, strided<[1]>>
// CHECK: exec.copy %[[B]] into %[[D:.*]] : memref<8xf32> into memref<8xf32, strided<[1]>>
// CHECK: exec.output "result0"
func.func @swapped(%a: tensor<8xf32> {nn.name = "a"}, %b: tensor<8xf32> {nn.name = "b"})
    -> (tensor<8xf32> {spmd.state = "a"}, tensor<8xf32> {spmd.state = "b"}) {
  return %b, %a : tensor<8xf32>, tensor<8xf32>
}

// -----

// A state that begins as a part of a fused weight is loaded into its own bytes, each rank its rows of that part; where rows do not divide,
// what there is of them.
// CHECK-LABEL: @begins
// CHECK: %[[K:.*]] = exec.view @state_0[0] : memref<2x2xf32>
// CHECK: exec.input "k" in %[[K]] : memref<2x2xf32> of tensor<4x2xf32, #{{.*}}> starts ["x * 2", 0] {nn.begins = {param = @qkv,
// CHECK: exec.load @qkv starts ["x * 2", 2] sizes [2, 2] into %[[K]] : memref<2x2xf32>
// CHECK: %[[B:.*]] = exec.view @state_1[0] : memref<2xf32>
// CHECK: exec.load @b starts ["x * 2 up to 3"] sizes [2] present ["3 - (x * 2) up to 2"] into %[[B]] : memref<2xf32>
#mesh = #spmd.mesh<["x"=2]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
#row = #spmd.sharding<#mesh, [{"x"}], uneven>
module attributes {spmd.mesh = #mesh} {
  nn.param @qkv : tensor<4x6xf32> = dense<1.0> : tensor<4x6xf32>
  nn.param @b : tensor<3xbf16> = dense<1.0> : tensor<3xbf16>
  func.func @begins(%k: tensor<2x2xf32> {nn.name = "k", spmd.global = tensor<4x2xf32, #rows>,
                                         nn.begins = {param = @qkv, starts = array<i64: 0, 2>, sizes = array<i64: 4, 2>}},
                    %b: tensor<2xf32> {nn.name = "b", spmd.global = tensor<3xf32, #row>, nn.begins = @b})
      -> (tensor<2x2xf32> {spmd.state = "k", spmd.global = tensor<4x2xf32, #rows>},
          tensor<2xf32> {spmd.state = "b", spmd.global = tensor<3xf32, #row>}) {
    return %k, %b : tensor<2x2xf32>, tensor<2xf32>
  }
}

// -----

// A function of another entry leaves a state as it is, and finds it where that has it: in its own buffer, not in one of an input.
// CHECK-LABEL: @kept
// CHECK: %[[W:.*]] = exec.view @state_0[0] : memref<8xf32>
// CHECK: exec.input "w" in %[[W]] : memref<8xf32>
// CHECK: exec.run @exp_0(%[[W]]) into
func.func @kept(%w: tensor<8xf32> {nn.name = "w", spmd.kept}) -> tensor<8xf32> {
  %y = exec.launch @exp_0(%w) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
exec.kernel @exp_0(%a: tensor<8xf32>) {
  %0 = nn.exp %a : (tensor<8xf32>) -> tensor<8xf32>
  exec.yield %0 : tensor<8xf32>
}
