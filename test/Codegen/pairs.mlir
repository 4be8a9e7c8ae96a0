// Products of bf16 that lie in pairs: by tiles, by pairs, or widened. What this machine can do is run, too.
// RUN: cleave-kernels %s --isa sapphirerapids | FileCheck %s --check-prefix=TILES
// RUN: cleave-kernels %s --isa znver4 | FileCheck %s --check-prefix=PAIRS
// RUN: cleave-kernels %s --isa x86-64-v3 | FileCheck %s --check-prefix=WIDE
// RUN: cleave-kernels %s --check | FileCheck %s --check-prefix=CHECKED
// RUN: cleave-kernels %s --isa x86-64 --check | FileCheck %s --check-prefix=CHECKED
// CHECKED: 16 passed, 0 failed

// Two by two tiles: 45 rows are 32 and 13, of which the last tile computes 3 a second time.
// TILES-LABEL: func.func @blocks
// TILES-COUNT-4: tilezero
// TILES: scf.for
// TILES-COUNT-3: tileloadd64
// TILES-COUNT-2: tdpbf16ps
// TILES: tileloadd64
// TILES-COUNT-2: tdpbf16ps
// TILES-COUNT-4: tilestored64
// PAIRS-LABEL: func.func @blocks
// PAIRS-COUNT-24: dpbf16ps
// WIDE-LABEL: func.func @blocks
// WIDE-NOT: call_intrinsic
// WIDE: arith.shli
// WIDE: arith.andi
// WIDE: math.fma
func.func @blocks(%x: tensor<45x96xbf16>, %p: tensor<3x48x16x2xbf16>) -> tensor<45x40xf32> {
  %u = exec.unpack %p order [0, 1] batch 0 width 16 interleave 2 : (tensor<3x48x16x2xbf16>) -> tensor<96x40xbf16>
  %a = nn.cast %x : (tensor<45x96xbf16>) -> tensor<45x96xf32>
  %b = nn.cast %u : (tensor<96x40xbf16>) -> tensor<96x40xf32>
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<45x96xf32>, tensor<96x40xf32>) -> tensor<45x40xf32>
  return %0 : tensor<45x40xf32>
}

// One row: a tile of one row, by four columns.
// TILES-LABEL: func.func @one_row
// TILES-COUNT-4: tilezero{{.*}}(%c1_i16
// PAIRS-LABEL: func.func @one_row
// PAIRS-COUNT-5: dpbf16ps
func.func @one_row(%x: tensor<1x64xbf16>, %p: tensor<5x32x16x2xbf16>) -> tensor<1x80xf32> {
  %u = exec.unpack %p order [0, 1] batch 0 width 16 interleave 2 : (tensor<5x32x16x2xbf16>) -> tensor<64x80xbf16>
  %a = nn.cast %x : (tensor<1x64xbf16>) -> tensor<1x64xf32>
  %b = nn.cast %u : (tensor<64x80xbf16>) -> tensor<64x80xf32>
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<1x64xf32>, tensor<64x80xf32>) -> tensor<1x80xf32>
  return %0 : tensor<1x80xf32>
}

// A depth that is not a number of tiles goes pair by pair.
// TILES-LABEL: func.func @short_depth
// TILES-NOT: tile
// TILES: math.fma
func.func @short_depth(%x: tensor<17x34xbf16>, %p: tensor<2x17x16x2xbf16>) -> tensor<17x20xf32> {
  %u = exec.unpack %p order [0, 1] batch 0 width 16 interleave 2 : (tensor<2x17x16x2xbf16>) -> tensor<34x20xbf16>
  %a = nn.cast %x : (tensor<17x34xbf16>) -> tensor<17x34xf32>
  %b = nn.cast %u : (tensor<34x20xbf16>) -> tensor<34x20xf32>
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<17x34xf32>, tensor<34x20xf32>) -> tensor<17x20xf32>
  return %0 : tensor<17x20xf32>
}

// Of an odd depth the last pair is half of one: number by number.
// PAIRS-LABEL: func.func @odd_depth
// PAIRS-NOT: dpbf16ps
func.func @odd_depth(%x: tensor<7x33xbf16>, %p: tensor<2x17x16x2xbf16>) -> tensor<7x20xf32> {
  %u = exec.unpack %p order [0, 1] batch 0 width 16 interleave 2 : (tensor<2x17x16x2xbf16>) -> tensor<33x20xbf16>
  %a = nn.cast %x : (tensor<7x33xbf16>) -> tensor<7x33xf32>
  %b = nn.cast %u : (tensor<33x20xbf16>) -> tensor<33x20xf32>
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<7x33xf32>, tensor<33x20xf32>) -> tensor<7x20xf32>
  return %0 : tensor<7x20xf32>
}

// The sums go on in f32, and are rounded last.
// PAIRS-LABEL: func.func @epilogue
// TILES-LABEL: func.func @epilogue
// TILES: tilestored64
// TILES: arith.addf
// TILES: arith.truncf
func.func @epilogue(%x: tensor<31x32xbf16>, %p: tensor<2x16x16x2xbf16>, %c: tensor<20xf32>) -> tensor<31x20xbf16> {
  %u = exec.unpack %p order [0, 1] batch 0 width 16 interleave 2 : (tensor<2x16x16x2xbf16>) -> tensor<32x20xbf16>
  %a = nn.cast %x : (tensor<31x32xbf16>) -> tensor<31x32xf32>
  %b = nn.cast %u : (tensor<32x20xbf16>) -> tensor<32x20xf32>
  %0 = nn.einsum %a, %b "ik,kj->ij" : (tensor<31x32xf32>, tensor<32x20xf32>) -> tensor<31x20xf32>
  %1 = nn.add %0, %c : (tensor<31x20xf32>, tensor<20xf32>) -> tensor<31x20xf32>
  %2 = nn.cast %1 : (tensor<31x20xf32>) -> tensor<31x20xbf16>
  return %2 : tensor<31x20xbf16>
}

// Both products of attention are of pairs: scores go through memory in f32, weights in bf16. 33 queries and 45 keys fill no tiles.
// TILES-LABEL: func.func @attention
// TILES: vector.transpose {{.*}}vector<16x16xi32>
// TILES: tdpbf16ps
// TILES: tilestored64
// TILES: cvtneps2bf16
// TILES: tdpbf16ps
// PAIRS-LABEL: func.func @attention
// PAIRS: dpbf16ps
// PAIRS: cvtneps2bf16
// PAIRS: dpbf16ps
func.func @attention(%q: tensor<1x3x33x64xbf16>, %k: tensor<1x3x45x64xbf16>, %v: tensor<1x3x45x48xbf16>) -> tensor<1x3x33x48xbf16> {
  %a = nn.cast %q : (tensor<1x3x33x64xbf16>) -> tensor<1x3x33x64xf32>
  %b = nn.cast %k : (tensor<1x3x45x64xbf16>) -> tensor<1x3x45x64xf32>
  %c = nn.cast %v : (tensor<1x3x45x48xbf16>) -> tensor<1x3x45x48xf32>
  %0 = nn.attention %a, %b, %c scale 0.125 causal {causalOffset = 12 : i64} : (tensor<1x3x33x64xf32>, tensor<1x3x45x64xf32>, tensor<1x3x45x48xf32>) -> tensor<1x3x33x48xf32>
  %1 = nn.cast %0 : (tensor<1x3x33x48xf32>) -> tensor<1x3x33x48xbf16>
  return %1 : tensor<1x3x33x48xbf16>
}

// Heads that share keys, a mask that is added, an odd number of keys, and components that are no number of squares.
// TILES-LABEL: func.func @grouped
func.func @grouped(%q: tensor<2x4x17x18xbf16>, %k: tensor<2x2x23x18xbf16>, %v: tensor<2x2x23x16xbf16>, %m: tensor<2x1x17x23xf32>) -> tensor<2x4x17x16xbf16> {
  %a = nn.cast %q : (tensor<2x4x17x18xbf16>) -> tensor<2x4x17x18xf32>
  %b = nn.cast %k : (tensor<2x2x23x18xbf16>) -> tensor<2x2x23x18xf32>
  %c = nn.cast %v : (tensor<2x2x23x16xbf16>) -> tensor<2x2x23x16xf32>
  %0 = nn.attention %a, %b, %c mask %m scale 0.25 : (tensor<2x4x17x18xf32>, tensor<2x2x23x18xf32>, tensor<2x2x23x16xf32>, tensor<2x1x17x23xf32>) -> tensor<2x4x17x16xf32>
  %1 = nn.cast %0 : (tensor<2x4x17x16xf32>) -> tensor<2x4x17x16xbf16>
  return %1 : tensor<2x4x17x16xbf16>
}

// One query, as in decoding; keys and values seen by way of a transpose.
// TILES-LABEL: func.func @decode
func.func @decode(%q: tensor<1x2x1x64xbf16>, %k: tensor<1x100x2x64xbf16>, %v: tensor<1x100x2x64xbf16>) -> tensor<1x2x1x64xbf16> {
  %a = nn.cast %q : (tensor<1x2x1x64xbf16>) -> tensor<1x2x1x64xf32>
  %x = nn.cast %k : (tensor<1x100x2x64xbf16>) -> tensor<1x100x2x64xf32>
  %b = nn.transpose %x [0, 2, 1, 3] : (tensor<1x100x2x64xf32>) -> tensor<1x2x100x64xf32>
  %y = nn.transpose %v [0, 2, 1, 3] : (tensor<1x100x2x64xbf16>) -> tensor<1x2x100x64xbf16>
  %c = nn.cast %y : (tensor<1x2x100x64xbf16>) -> tensor<1x2x100x64xf32>
  %0 = nn.attention %a, %b, %c scale 0.125 : (tensor<1x2x1x64xf32>, tensor<1x2x100x64xf32>, tensor<1x2x100x64xf32>) -> tensor<1x2x1x64xf32>
  %1 = nn.cast %0 : (tensor<1x2x1x64xf32>) -> tensor<1x2x1x64xbf16>
  return %1 : tensor<1x2x1x64xbf16>
}

// Of what a mask of bools and a diagonal exclude nothing is left: zeros.
// TILES-LABEL: func.func @excluded
func.func @excluded(%q: tensor<1x1x64x32xbf16>, %k: tensor<1x1x96x32xbf16>, %v: tensor<1x1x96x20xbf16>, %m: tensor<64x96xi1>) -> tensor<1x1x64x20xbf16> {
  %a = nn.cast %q : (tensor<1x1x64x32xbf16>) -> tensor<1x1x64x32xf32>
  %b = nn.cast %k : (tensor<1x1x96x32xbf16>) -> tensor<1x1x96x32xf32>
  %c = nn.cast %v : (tensor<1x1x96x20xbf16>) -> tensor<1x1x96x20xf32>
  %0 = nn.attention %a, %b, %c mask %m scale 0.25 causal {causalOffset = -3 : i64} : (tensor<1x1x64x32xf32>, tensor<1x1x96x32xf32>, tensor<1x1x96x20xf32>, tensor<64x96xi1>) -> tensor<1x1x64x20xf32>
  %1 = nn.cast %0 : (tensor<1x1x64x20xf32>) -> tensor<1x1x64x20xbf16>
  return %1 : tensor<1x1x64x20xbf16>
}

// Windows: tiles of keys that no query of a block sees are skipped at both ends; of 150 keys the last tile is not whole.
// TILES-LABEL: func.func @window
// TILES: tdpbf16ps
func.func @window(%q: tensor<1x2x70x32xbf16>, %k: tensor<1x1x150x32xbf16>, %v: tensor<1x1x150x20xbf16>) -> tensor<1x2x70x20xbf16> {
  %a = nn.cast %q : (tensor<1x2x70x32xbf16>) -> tensor<1x2x70x32xf32>
  %b = nn.cast %k : (tensor<1x1x150x32xbf16>) -> tensor<1x1x150x32xf32>
  %c = nn.cast %v : (tensor<1x1x150x20xbf16>) -> tensor<1x1x150x20xf32>
  %0 = nn.attention %a, %b, %c scale 0.25 causal {causalOffset = 80 : i64, left = 40 : i64} : (tensor<1x2x70x32xf32>, tensor<1x1x150x32xf32>, tensor<1x1x150x20xf32>) -> tensor<1x2x70x20xf32>
  %1 = nn.cast %0 : (tensor<1x2x70x20xf32>) -> tensor<1x2x70x20xbf16>
  return %1 : tensor<1x2x70x20xbf16>
}

// The first queries see nothing, and the last ones nothing either.
// TILES-LABEL: func.func @beyond
func.func @beyond(%q: tensor<1x1x200x32xbf16>, %k: tensor<1x1x64x32xbf16>, %v: tensor<1x1x64x16xbf16>) -> tensor<1x1x200x16xbf16> {
  %a = nn.cast %q : (tensor<1x1x200x32xbf16>) -> tensor<1x1x200x32xf32>
  %b = nn.cast %k : (tensor<1x1x64x32xbf16>) -> tensor<1x1x64x32xf32>
  %c = nn.cast %v : (tensor<1x1x64x16xbf16>) -> tensor<1x1x64x16xf32>
  %0 = nn.attention %a, %b, %c scale 0.25 {causalOffset = -60 : i64, left = 5 : i64, right = 3 : i64} : (tensor<1x1x200x32xf32>, tensor<1x1x64x32xf32>, tensor<1x1x64x16xf32>) -> tensor<1x1x200x16xf32>
  %1 = nn.cast %0 : (tensor<1x1x200x16xf32>) -> tensor<1x1x200x16xbf16>
  return %1 : tensor<1x1x200x16xbf16>
}

// Operands of two types are read number by number.
// TILES-LABEL: func.func @mixed
// TILES-NOT: tdpbf16ps
func.func @mixed(%q: tensor<1x2x16x32xbf16>, %k: tensor<1x2x16x32xf32>, %v: tensor<1x2x16x32xbf16>) -> tensor<1x2x16x32xbf16> {
  %a = nn.cast %q : (tensor<1x2x16x32xbf16>) -> tensor<1x2x16x32xf32>
  %c = nn.cast %v : (tensor<1x2x16x32xbf16>) -> tensor<1x2x16x32xf32>
  %0 = nn.attention %a, %k, %c scale 0.25 : (tensor<1x2x16x32xf32>, tensor<1x2x16x32xf32>, tensor<1x2x16x32xf32>) -> tensor<1x2x16x32xf32>
  %1 = nn.cast %0 : (tensor<1x2x16x32xf32>) -> tensor<1x2x16x32xbf16>
  return %1 : tensor<1x2x16x32xbf16>
}

// A band of input is copied with its borders; rows of windows are one line, over their ends.
// TILES-LABEL: func.func @padded_conv
// TILES: scf.if
// TILES-COUNT-4: tdpbf16ps
func.func @padded_conv(%x0: tensor<1x14x14x32xbf16>, %w0: tensor<3x3x3x16x16x2xbf16>, %b: tensor<40xf32>) -> tensor<1x14x14x40xbf16> {
  %u = exec.unpack %w0 order [2, 3, 1, 0] batch 0 width 16 interleave 2 : (tensor<3x3x3x16x16x2xbf16>) -> tensor<40x32x3x3xbf16>
  %x = nn.cast %x0 : (tensor<1x14x14x32xbf16>) -> tensor<1x14x14x32xf32>
  %w = nn.cast %u : (tensor<40x32x3x3xbf16>) -> tensor<40x32x3x3xf32>
  %n = nn.transpose %x [0, 3, 1, 2] : (tensor<1x14x14x32xf32>) -> tensor<1x32x14x14xf32>
  %c = nn.conv %n, %w, %b strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<1x32x14x14xf32>, tensor<40x32x3x3xf32>, tensor<40xf32>) -> tensor<1x40x14x14xf32>
  %r = nn.relu %c : (tensor<1x40x14x14xf32>) -> tensor<1x40x14x14xf32>
  %y = nn.transpose %r [0, 2, 3, 1] : (tensor<1x40x14x14xf32>) -> tensor<1x14x14x40xf32>
  %z = nn.cast %y : (tensor<1x14x14x40xf32>) -> tensor<1x14x14x40xbf16>
  return %z : tensor<1x14x14x40xbf16>
}

// Windows two pixels apart: each row of windows is a line.
// TILES-LABEL: func.func @strided_conv
// TILES: tdpbf16ps
func.func @strided_conv(%x0: tensor<1x9x11x64xbf16>, %w0: tensor<3x3x3x32x16x2xbf16>, %b: tensor<33xf32>) -> tensor<1x5x6x33xbf16> {
  %u = exec.unpack %w0 order [2, 3, 1, 0] batch 0 width 16 interleave 2 : (tensor<3x3x3x32x16x2xbf16>) -> tensor<33x64x3x3xbf16>
  %x = nn.cast %x0 : (tensor<1x9x11x64xbf16>) -> tensor<1x9x11x64xf32>
  %w = nn.cast %u : (tensor<33x64x3x3xbf16>) -> tensor<33x64x3x3xf32>
  %n = nn.transpose %x [0, 3, 1, 2] : (tensor<1x9x11x64xf32>) -> tensor<1x64x9x11xf32>
  %c = nn.conv %n, %w, %b strides [2, 2] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<1x64x9x11xf32>, tensor<33x64x3x3xf32>, tensor<33xf32>) -> tensor<1x33x5x6xf32>
  %r = nn.relu %c : (tensor<1x33x5x6xf32>) -> tensor<1x33x5x6xf32>
  %y = nn.transpose %r [0, 2, 3, 1] : (tensor<1x33x5x6xf32>) -> tensor<1x5x6x33xf32>
  %z = nn.cast %y : (tensor<1x5x6x33xf32>) -> tensor<1x5x6x33xbf16>
  return %z : tensor<1x5x6x33xbf16>
}

// All pixels of both images are one line, and nothing is copied.
// TILES-LABEL: func.func @pointwise_conv
// TILES-NOT: scf.if
// TILES-COUNT-4: tdpbf16ps
func.func @pointwise_conv(%x0: tensor<2x7x7x32xbf16>, %w0: tensor<2x1x1x16x16x2xbf16>, %b: tensor<32xf32>) -> tensor<2x7x7x32xbf16> {
  %u = exec.unpack %w0 order [2, 3, 1, 0] batch 0 width 16 interleave 2 : (tensor<2x1x1x16x16x2xbf16>) -> tensor<32x32x1x1xbf16>
  %x = nn.cast %x0 : (tensor<2x7x7x32xbf16>) -> tensor<2x7x7x32xf32>
  %w = nn.cast %u : (tensor<32x32x1x1xbf16>) -> tensor<32x32x1x1xf32>
  %n = nn.transpose %x [0, 3, 1, 2] : (tensor<2x7x7x32xf32>) -> tensor<2x32x7x7xf32>
  %c = nn.conv %n, %w, %b strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<2x32x7x7xf32>, tensor<32x32x1x1xf32>, tensor<32xf32>) -> tensor<2x32x7x7xf32>
  %r = nn.relu %c : (tensor<2x32x7x7xf32>) -> tensor<2x32x7x7xf32>
  %y = nn.transpose %r [0, 2, 3, 1] : (tensor<2x32x7x7xf32>) -> tensor<2x7x7x32xf32>
  %z = nn.cast %y : (tensor<2x7x7x32xf32>) -> tensor<2x7x7x32xbf16>
  return %z : tensor<2x7x7x32xbf16>
}

// Channels that fill no tiles go pair by pair.
// TILES-LABEL: func.func @odd_conv
// TILES-NOT: tdpbf16ps
// TILES: math.fma
func.func @odd_conv(%x0: tensor<1x9x9x34xbf16>, %w0: tensor<2x3x3x17x16x2xbf16>, %b: tensor<18xf32>) -> tensor<1x9x9x18xbf16> {
  %u = exec.unpack %w0 order [2, 3, 1, 0] batch 0 width 16 interleave 2 : (tensor<2x3x3x17x16x2xbf16>) -> tensor<18x34x3x3xbf16>
  %x = nn.cast %x0 : (tensor<1x9x9x34xbf16>) -> tensor<1x9x9x34xf32>
  %w = nn.cast %u : (tensor<18x34x3x3xbf16>) -> tensor<18x34x3x3xf32>
  %n = nn.transpose %x [0, 3, 1, 2] : (tensor<1x9x9x34xf32>) -> tensor<1x34x9x9xf32>
  %c = nn.conv %n, %w, %b strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (tensor<1x34x9x9xf32>, tensor<18x34x3x3xf32>, tensor<18xf32>) -> tensor<1x18x9x9xf32>
  %r = nn.relu %c : (tensor<1x18x9x9xf32>) -> tensor<1x18x9x9xf32>
  %y = nn.transpose %r [0, 2, 3, 1] : (tensor<1x18x9x9xf32>) -> tensor<1x9x9x18xf32>
  %z = nn.cast %y : (tensor<1x9x9x18xf32>) -> tensor<1x9x9x18xbf16>
  return %z : tensor<1x9x9x18xbf16>
}
