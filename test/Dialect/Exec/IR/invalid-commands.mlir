// What memory and commands refuse.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// exec.buffer C1
// expected-error @below {{'exec.buffer' op has -1 bytes (C1)}}
exec.buffer @a activations -1 align 64

// -----

// exec.buffer C3
// expected-error @below {{'exec.buffer' op is a buffer of kind weights in the host's memory (C3)}}
exec.buffer @a weights 64 align 64 host

// -----

// exec.buffer C2
// expected-error @below {{'exec.buffer' op is aligned to 48, which is not a power of two up to 2^20 (C2)}}
exec.buffer @a activations 8 align 48

// -----

// expected-error @below {{column "c" of the rank table does not have 2 numbers, one per rank}}
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>, exec.rank_table = {c = array<i64: 0>}} {}

// -----

// expected-error @below {{'exec.rank_table' is a dictionary, of a module}}
module attributes {exec.rank_table = 1} {}

// -----

// expected-error @below {{has an attribute 'exec.table', which no pass reads}}
module attributes {exec.table = {}} {}

// -----

// exec.load C1
exec.buffer @w weights 64 align 64
func.func @main() {
  %0 = exec.view @w[0] : memref<8xf32>
  // expected-error @below {{'exec.load' op loads @w, which is not an nn.param (C1)}}
  exec.load @w starts [0] sizes [8] into %0 : memref<8xf32>
  return
}

// -----

// exec.load C2: on every rank.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>, exec.rank_table = {"x * 4" = array<i64: 0, 4>}} {
  nn.param @p : tensor<11xf32> = dense<0.0> : tensor<11xf32>
  exec.buffer @w weights 64 align 64
  func.func @main() {
    %0 = exec.view @w[0] : memref<8xf32>
    // expected-error @below {{'exec.load' op takes a box that is not in the parameter, in dim 0 (C2)}}
    exec.load @p starts ["x * 4"] sizes [8] into %0 : memref<8xf32>
    return
  }
}

// -----

// exec.load C3
nn.param @p : tensor<8xi32> = dense<0> : tensor<8xi32>
exec.buffer @w weights 64 align 64
func.func @main() {
  %0 = exec.view @w[0] : memref<8xf32>
  // expected-error @below {{'exec.load' op puts a box of 'tensor<8xi32>' into 'memref<8xf32>', which does not fit its layout (C3)}}
  exec.load @p starts [0] sizes [8] into %0 : memref<8xf32>
  return
}

// -----

// exec.load C4
nn.param @p : tensor<8xf32> = dense<0.0> : tensor<8xf32>
exec.buffer @w weights 64 align 64
func.func @main() {
  %0 = exec.view @w[0] : memref<8xf32>
  // expected-error @below {{'exec.load' op column "x" is not in the rank table (C4)}}
  exec.load @p starts ["x"] sizes [8] into %0 : memref<8xf32>
  return
}

// -----

// exec.input C1
exec.buffer @i input 64 align 64
func.func @main() {
  %0 = exec.view @i[0] : memref<8xf32>
  // expected-error @below {{'exec.input' op is a 'memref<8xf32>', but a shard of 'tensor<4xf32>' is 'tensor<4xf32>' (C1)}}
  exec.input "x" in %0 : memref<8xf32> of tensor<4xf32> starts [0]
  return
}

// -----

// exec.output C2
exec.buffer @o output 64 align 64
func.func @main() {
  %0 = exec.view @o[0] : memref<8xf32>
  // expected-error @below {{'exec.output' op has 0 starts for 1 dims (C2)}}
  exec.output "y" in %0 : memref<8xf32> of tensor<8xf32> starts []
  return
}

// -----

// exec.output C3
exec.buffer @o output 64 align 64
func.func @main() {
  %0 = exec.view @o[0] : memref<8xf32>
  // expected-error @below {{'exec.output' op is a term of 'tensor<8xf32>' (C3)}}
  exec.output "y" in %0 : memref<8xf32> of tensor<8xf32> starts [0] term 0
  return
}

// -----

// exec.input C4
exec.buffer @i input 64 align 64
func.func @main() {
  %0 = exec.view @i[0] : memref<8xf32>
  // expected-error @below {{'exec.input' op column "x" is not in the rank table (C4)}}
  exec.input "x" in %0 : memref<8xf32> of tensor<8xf32> starts ["x"]
  return
}

// -----

// exec.run C1
exec.buffer @a activations 64 align 64
func.func @main() {
  %0 = exec.view @a[0] : memref<8xf32>
  // expected-error @below {{'exec.run' op runs @a, which is not an exec.kernel (C1)}}
  exec.run @a(%0) into (%0) : (memref<8xf32>) -> memref<8xf32>
  return
}

// -----

// exec.run C2
exec.buffer @a activations 64 align 64
exec.kernel @k(%x: tensor<4xf32>) {
  %r = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  exec.yield %r : tensor<4xf32>
}
func.func @main() {
  %0 = exec.view @a[0] : memref<8xf32>
  // expected-error @below {{'exec.run' op has sources of other types than the arguments of @k (C2)}}
  exec.run @k(%0) into (%0) : (memref<8xf32>) -> memref<8xf32>
  return
}

// -----

// exec.run C3
exec.buffer @a activations 64 align 64
exec.kernel @k(%x: tensor<4xf32>) {
  %r = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  exec.yield %r : tensor<4xf32>
}
func.func @main() {
  %0 = exec.view @a[0] : memref<4xf32>
  // expected-error @below {{'exec.run' op has targets of other types than @k yields (C3)}}
  exec.run @k(%0) into () : (memref<4xf32>) -> ()
  return
}

// -----

// exec.run C4
exec.buffer @a activations 64 align 64
exec.kernel @k(%x: tensor<4xf32>, %y: tensor<1xf32>) attributes {in_place = array<i64: 1>} {
  %r = nn.add %x, %y : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  exec.yield %r : tensor<4xf32>
}
func.func @main() {
  %0 = exec.view @a[0] : memref<4xf32>
  %1 = exec.view @a[0] : memref<1xf32>
  // expected-error @below {{'exec.run' op runs @k, whose 'in_place' does not name an argument of as many bytes, or -1, for each result (C4)}}
  exec.run @k(%0, %1) into (%0) : (memref<4xf32>, memref<1xf32>) -> memref<4xf32>
  return
}

// -----

// exec.copy C1
exec.buffer @a activations 64 align 64
func.func @main() {
  %0 = exec.view @a[0] : memref<4xf32>
  %1 = exec.view @a[0] : memref<2x2xf32>
  // expected-error @below {{'exec.copy' op copies 'memref<4xf32>' into 'memref<2x2xf32>' (C1)}}
  exec.copy %0 into %1 : memref<4xf32> into memref<2x2xf32>
  return
}

// -----

// exec.record C1
func.func @main() {
  // expected-error @below {{'exec.record' op has event -1 on stream 0 (C1)}}
  exec.record -1
  return
}

// -----

// exec.collective C1
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  func.func @main() {
    // expected-error @below {{'exec.collective' op has 0 sources and 0 targets (C1)}}
    exec.collective all_reduce by sum over {"x"} () into () : () -> ()
    return
  }
}

// -----

// exec.collective C2
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @a activations 64 align 64
  func.func @main() {
    %0 = exec.view @a[0] : memref<4xf32>
    // expected-error @below {{'exec.collective' op does not say how it reduces in an all_reduce (C2)}}
    exec.collective all_reduce over {"x"} (%0) into (%0) : (memref<4xf32>) -> memref<4xf32>
    return
  }
}

// -----

// exec.collective C3: groups have two members.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @a activations 64 align 64
  func.func @main() {
    %0 = exec.view @a[0] : memref<2xf32>
    %1 = exec.view @a[0] : memref<6xf32>
    // expected-error @below {{'exec.collective' op gathers 3 pieces in an all_gather of groups of 2 (C3)}}
    exec.collective all_gather over {"x"} (%0) into (%1) gather [3] : (memref<2xf32>) -> memref<6xf32>
    return
  }
}

// -----

// exec.collective C4
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @a activations 64 align 64
  func.func @main() {
    %0 = exec.view @a[0] : memref<2xf32>
    // expected-error @below {{'exec.collective' op makes 'memref<2xf32>' of 'memref<2xf32>' (C4)}}
    exec.collective all_gather over {"x"} (%0) into (%0) gather [2] : (memref<2xf32>) -> memref<2xf32>
    return
  }
}

// -----

// exec.collective: what spmd asks of every collective.
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @a activations 64 align 64
  func.func @main() {
    %0 = exec.view @a[0] : memref<2xi1>
    // expected-error @below {{'exec.collective' op cannot combine 'i1' by sum (S6)}}
    exec.collective all_reduce by sum over {"x"} (%0) into (%0) : (memref<2xi1>) -> memref<2xi1>
    return
  }
}

// -----

// exec.pieces C1
// expected-error @below {{'exec.pieces' op has 2 ends and 3 numbers of boxes of 2 dims (C1)}}
exec.pieces @p dims 2 [0 -> 0 box [1] from [0] to [0]]

// -----

// exec.pieces C1
// expected-error @below {{'exec.pieces' op piece 0 has an extent or a start below 0 (C1)}}
exec.pieces @p dims 1 [0 -> 0 box [1] from [-1] to [0]]

// -----

// exec.pieces C2
// expected-error @below {{'exec.pieces' op piece 0 goes from rank 0 to 1 of 1 (C2)}}
exec.pieces @p dims 1 [0 -> 1 box [1] from [0] to [0]]

// -----

// exec.pieces C3
// expected-error @below {{'exec.pieces' op piece 0 is empty (C3)}}
exec.pieces @p dims 1 [0 -> 0 box [0] from [0] to [0]]

// -----

// exec.exchange C1
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @a activations 64 align 64
  exec.pieces @p dims 2 []
  func.func @main() {
    %0 = exec.view @a[0] : memref<2xf32>
    // expected-error @below {{'exec.exchange' op moves @p, which is not an exec.pieces of 1 dims (C1)}}
    exec.exchange @p over {"x"} %0 into %0 : memref<2xf32> into memref<2xf32>
    return
  }
}

// -----

// exec.exchange C2
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @a activations 64 align 64
  exec.pieces @p dims 1 [0 -> 1 box [2] from [0] to [1]]
  func.func @main() {
    %0 = exec.view @a[0] : memref<2xf32>
    // expected-error @below {{'exec.exchange' op moves piece 0 of @p, which is not in 'memref<2xf32>' or 'memref<2xf32>' (C2)}}
    exec.exchange @p over {"x"} %0 into %0 : memref<2xf32> into memref<2xf32>
    return
  }
}

// -----

// exec.exchange C3
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  exec.buffer @a activations 64 align 64
  exec.pieces @p dims 1 []
  func.func @main() {
    %0 = exec.view @a[0] : memref<2xf32>
    %1 = exec.view @a[0] : memref<2xi32>
    // expected-error @below {{'exec.exchange' op moves 'f32' into 'i32' (C3)}}
    exec.exchange @p over {"x"} %0 into %1 : memref<2xf32> into memref<2xi32>
    return
  }
}
