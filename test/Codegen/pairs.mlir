// Products of bf16 that lie in pairs: by tiles, by pairs, or widened. What this machine can do is run, too.
// RUN: cleave-kernels %s --isa sapphirerapids | FileCheck %s --check-prefix=TILES
// RUN: cleave-kernels %s --isa znver4 | FileCheck %s --check-prefix=PAIRS
// RUN: cleave-kernels %s --isa x86-64-v3 | FileCheck %s --check-prefix=WIDE
// RUN: cleave-kernels %s --check | FileCheck %s --check-prefix=CHECKED
// RUN: cleave-kernels %s --isa x86-64 --check | FileCheck %s --check-prefix=CHECKED
// CHECKED: 5 passed, 0 failed

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

// A depth that is no number of tiles goes pair by pair.
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
