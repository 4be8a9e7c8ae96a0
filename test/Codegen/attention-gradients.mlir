// Gradients of attention, against the evaluator: what each attribute changes, and blocks that end anywhere.
//
// RUN: cleave-kernels %s --check | FileCheck %s --check-prefix=CHECKED
// RUN: cleave-kernels %s --isa x86-64-v3 --check | FileCheck %s --check-prefix=CHECKED
// RUN: cleave-kernels %s --isa x86-64 --check | FileCheck %s --check-prefix=CHECKED
// RUN: cleave-kernels %s --isa x86-64-v3 | FileCheck %s --check-prefix=NAMED
// CHECKED: 20 passed, 0 failed

// All in whole vectors and blocks.
// NAMED-LABEL: func.func @whole
// NAMED: vector
func.func @whole(%q: tensor<2x2x64x32xf32>, %k: tensor<2x2x64x32xf32>, %v: tensor<2x2x64x32xf32>, %dy: tensor<2x2x64x32xf32>) -> (tensor<2x2x64x32xf32>, tensor<2x2x64x32xf32>, tensor<2x2x64x32xf32>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy scale 0.25 : (tensor<2x2x64x32xf32>, tensor<2x2x64x32xf32>, tensor<2x2x64x32xf32>, tensor<2x2x64x32xf32>) -> (tensor<2x2x64x32xf32>, tensor<2x2x64x32xf32>, tensor<2x2x64x32xf32>)
  return %dq, %dk, %dv : tensor<2x2x64x32xf32>, tensor<2x2x64x32xf32>, tensor<2x2x64x32xf32>
}

// Nothing is.
// NAMED-LABEL: func.func @ragged
// NAMED: vector
func.func @ragged(%q: tensor<1x3x37x19xf32>, %k: tensor<1x3x53x19xf32>, %v: tensor<1x3x53x21xf32>, %dy: tensor<1x3x37x21xf32>) -> (tensor<1x3x37x19xf32>, tensor<1x3x53x19xf32>, tensor<1x3x53x21xf32>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy scale 0.25 : (tensor<1x3x37x19xf32>, tensor<1x3x53x19xf32>, tensor<1x3x53x21xf32>, tensor<1x3x37x21xf32>) -> (tensor<1x3x37x19xf32>, tensor<1x3x53x19xf32>, tensor<1x3x53x21xf32>)
  return %dq, %dk, %dv : tensor<1x3x37x19xf32>, tensor<1x3x53x19xf32>, tensor<1x3x53x21xf32>
}

// More queries than one block of weights holds, and keys that end in the middle of a vector.
// NAMED-LABEL: func.func @blocks
// NAMED: vector
func.func @blocks(%q: tensor<1x1x150x24xf32>, %k: tensor<1x1x1030x24xf32>, %v: tensor<1x1x1030x8xf32>, %dy: tensor<1x1x150x8xf32>) -> (tensor<1x1x150x24xf32>, tensor<1x1x1030x24xf32>, tensor<1x1x1030x8xf32>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy scale 0.25 : (tensor<1x1x150x24xf32>, tensor<1x1x1030x24xf32>, tensor<1x1x1030x8xf32>, tensor<1x1x150x8xf32>) -> (tensor<1x1x150x24xf32>, tensor<1x1x1030x24xf32>, tensor<1x1x1030x8xf32>)
  return %dq, %dk, %dv : tensor<1x1x150x24xf32>, tensor<1x1x1030x24xf32>, tensor<1x1x1030x8xf32>
}

// Heads that share keys.
// NAMED-LABEL: func.func @groups
// NAMED: vector
func.func @groups(%q: tensor<2x6x20x16xf32>, %k: tensor<2x2x35x16xf32>, %v: tensor<2x2x35x24xf32>, %dy: tensor<2x6x20x24xf32>) -> (tensor<2x6x20x16xf32>, tensor<2x2x35x16xf32>, tensor<2x2x35x24xf32>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy scale 0.25 : (tensor<2x6x20x16xf32>, tensor<2x2x35x16xf32>, tensor<2x2x35x24xf32>, tensor<2x6x20x24xf32>) -> (tensor<2x6x20x16xf32>, tensor<2x2x35x16xf32>, tensor<2x2x35x24xf32>)
  return %dq, %dk, %dv : tensor<2x6x20x16xf32>, tensor<2x2x35x16xf32>, tensor<2x2x35x24xf32>
}

// Of causal ones whole blocks of keys are left out.
// NAMED-LABEL: func.func @causal
// NAMED: vector
func.func @causal(%q: tensor<1x2x130x16xf32>, %k: tensor<1x2x130x16xf32>, %v: tensor<1x2x130x16xf32>, %dy: tensor<1x2x130x16xf32>) -> (tensor<1x2x130x16xf32>, tensor<1x2x130x16xf32>, tensor<1x2x130x16xf32>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy scale 0.25 causal : (tensor<1x2x130x16xf32>, tensor<1x2x130x16xf32>, tensor<1x2x130x16xf32>, tensor<1x2x130x16xf32>) -> (tensor<1x2x130x16xf32>, tensor<1x2x130x16xf32>, tensor<1x2x130x16xf32>)
  return %dq, %dk, %dv : tensor<1x2x130x16xf32>, tensor<1x2x130x16xf32>, tensor<1x2x130x16xf32>
}

// A window, away from the diagonal.
// NAMED-LABEL: func.func @window
// NAMED: vector
func.func @window(%q: tensor<1x2x70x16xf32>, %k: tensor<1x1x200x16xf32>, %v: tensor<1x1x200x16xf32>, %dy: tensor<1x2x70x16xf32>) -> (tensor<1x2x70x16xf32>, tensor<1x1x200x16xf32>, tensor<1x1x200x16xf32>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy scale 0.25 causal {causalOffset = 130 : i64, left = 40 : i64} : (tensor<1x2x70x16xf32>, tensor<1x1x200x16xf32>, tensor<1x1x200x16xf32>, tensor<1x2x70x16xf32>) -> (tensor<1x2x70x16xf32>, tensor<1x1x200x16xf32>, tensor<1x1x200x16xf32>)
  return %dq, %dk, %dv : tensor<1x2x70x16xf32>, tensor<1x1x200x16xf32>, tensor<1x1x200x16xf32>
}

// A query that sees nothing: the first ones are before all keys.
// NAMED-LABEL: func.func @unseen
// NAMED: vector
func.func @unseen(%q: tensor<1x2x40x8xf32>, %k: tensor<1x2x33x8xf32>, %v: tensor<1x2x33x8xf32>, %dy: tensor<1x2x40x8xf32>) -> (tensor<1x2x40x8xf32>, tensor<1x2x33x8xf32>, tensor<1x2x33x8xf32>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy scale 0.25 causal {causalOffset = -9 : i64} : (tensor<1x2x40x8xf32>, tensor<1x2x33x8xf32>, tensor<1x2x33x8xf32>, tensor<1x2x40x8xf32>) -> (tensor<1x2x40x8xf32>, tensor<1x2x33x8xf32>, tensor<1x2x33x8xf32>)
  return %dq, %dk, %dv : tensor<1x2x40x8xf32>, tensor<1x2x33x8xf32>, tensor<1x2x33x8xf32>
}

// A cap on scores.
// NAMED-LABEL: func.func @cap
// NAMED: vector
func.func @cap(%q: tensor<1x2x18x16xf32>, %k: tensor<1x2x27x16xf32>, %v: tensor<1x2x27x16xf32>, %dy: tensor<1x2x18x16xf32>) -> (tensor<1x2x18x16xf32>, tensor<1x2x27x16xf32>, tensor<1x2x27x16xf32>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy scale 0.25 {softcap = 0.5 : f64} : (tensor<1x2x18x16xf32>, tensor<1x2x27x16xf32>, tensor<1x2x27x16xf32>, tensor<1x2x18x16xf32>) -> (tensor<1x2x18x16xf32>, tensor<1x2x27x16xf32>, tensor<1x2x27x16xf32>)
  return %dq, %dk, %dv : tensor<1x2x18x16xf32>, tensor<1x2x27x16xf32>, tensor<1x2x27x16xf32>
}

// Numbers that are added, for each head.
// NAMED-LABEL: func.func @added
// NAMED: vector
func.func @added(%q: tensor<2x4x21x16xf32>, %k: tensor<2x2x30x16xf32>, %v: tensor<2x2x30x16xf32>, %dy: tensor<2x4x21x16xf32>, %m: tensor<1x4x21x30xf32>) -> (tensor<2x4x21x16xf32>, tensor<2x2x30x16xf32>, tensor<2x2x30x16xf32>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy mask %m scale 0.25 : (tensor<2x4x21x16xf32>, tensor<2x2x30x16xf32>, tensor<2x2x30x16xf32>, tensor<1x4x21x30xf32>, tensor<2x4x21x16xf32>) -> (tensor<2x4x21x16xf32>, tensor<2x2x30x16xf32>, tensor<2x2x30x16xf32>)
  return %dq, %dk, %dv : tensor<2x4x21x16xf32>, tensor<2x2x30x16xf32>, tensor<2x2x30x16xf32>
}

// Bools that decide, for each sample.
// NAMED-LABEL: func.func @decided
// NAMED: vector
func.func @decided(%q: tensor<2x2x21x16xf32>, %k: tensor<2x2x30x16xf32>, %v: tensor<2x2x30x16xf32>, %dy: tensor<2x2x21x16xf32>, %m: tensor<2x1x1x30xi1>) -> (tensor<2x2x21x16xf32>, tensor<2x2x30x16xf32>, tensor<2x2x30x16xf32>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy mask %m scale 0.25 : (tensor<2x2x21x16xf32>, tensor<2x2x30x16xf32>, tensor<2x2x30x16xf32>, tensor<2x1x1x30xi1>, tensor<2x2x21x16xf32>) -> (tensor<2x2x21x16xf32>, tensor<2x2x30x16xf32>, tensor<2x2x30x16xf32>)
  return %dq, %dk, %dv : tensor<2x2x21x16xf32>, tensor<2x2x30x16xf32>, tensor<2x2x30x16xf32>
}

// Scores that got a number pass nothing on; under a cap and a mask, too.
// NAMED-LABEL: func.func @shown
// NAMED: vector
func.func @shown(%q: tensor<2x2x21x16xf32>, %k: tensor<2x1x30x16xf32>, %v: tensor<2x1x30x16xf32>, %dy: tensor<2x2x21x16xf32>, %m: tensor<21x30xf32>, %c: tensor<2x1x21x30xi1>) -> (tensor<2x2x21x16xf32>, tensor<2x1x30x16xf32>, tensor<2x1x30x16xf32>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy mask %m shown %c scale 0.25 {softcap = 2.0 : f64} : (tensor<2x2x21x16xf32>, tensor<2x1x30x16xf32>, tensor<2x1x30x16xf32>, tensor<21x30xf32>, tensor<2x2x21x16xf32>, tensor<2x1x21x30xi1>) -> (tensor<2x2x21x16xf32>, tensor<2x1x30x16xf32>, tensor<2x1x30x16xf32>)
  return %dq, %dk, %dv : tensor<2x2x21x16xf32>, tensor<2x1x30x16xf32>, tensor<2x1x30x16xf32>
}

// In f64, one key and one component.
// NAMED-LABEL: func.func @wide
// NAMED: scf.for
func.func @wide(%q: tensor<1x2x7x1xf64>, %k: tensor<1x2x1x1xf64>, %v: tensor<1x2x1x3xf64>, %dy: tensor<1x2x7x3xf64>) -> (tensor<1x2x7x1xf64>, tensor<1x2x1x1xf64>, tensor<1x2x1x3xf64>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy scale 0.25 : (tensor<1x2x7x1xf64>, tensor<1x2x1x1xf64>, tensor<1x2x1x3xf64>, tensor<1x2x7x3xf64>) -> (tensor<1x2x7x1xf64>, tensor<1x2x1x1xf64>, tensor<1x2x1x3xf64>)
  return %dq, %dk, %dv : tensor<1x2x7x1xf64>, tensor<1x2x1x1xf64>, tensor<1x2x1x3xf64>
}

// In bf16, which is widened.
// NAMED-LABEL: func.func @narrow
// NAMED: vector
func.func @narrow(%q: tensor<1x2x33x16xbf16>, %k: tensor<1x2x47x16xbf16>, %v: tensor<1x2x47x16xbf16>, %dy: tensor<1x2x33x16xbf16>) -> (tensor<1x2x33x16xbf16>, tensor<1x2x47x16xbf16>, tensor<1x2x47x16xbf16>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy scale 0.25 causal {causalOffset = 14 : i64} : (tensor<1x2x33x16xbf16>, tensor<1x2x47x16xbf16>, tensor<1x2x47x16xbf16>, tensor<1x2x33x16xbf16>) -> (tensor<1x2x33x16xbf16>, tensor<1x2x47x16xbf16>, tensor<1x2x47x16xbf16>)
  return %dq, %dk, %dv : tensor<1x2x33x16xbf16>, tensor<1x2x47x16xbf16>, tensor<1x2x47x16xbf16>
}

// Operands and results that are turned are read and written where they lie.
// NAMED-LABEL: func.func @turned
// NAMED: vector
func.func @turned(%q: tensor<2x20x3x16xf32>, %k: tensor<2x40x3x16xf32>, %v: tensor<2x3x16x40xf32>, %dy: tensor<2x20x3x16xf32>) -> (tensor<2x20x3x16xf32>, tensor<2x3x40x16xf32>, tensor<2x3x40x16xf32>) {
  %0 = nn.transpose %q [0, 2, 1, 3] : (tensor<2x20x3x16xf32>) -> tensor<2x3x20x16xf32>
  %1 = nn.transpose %k [0, 2, 1, 3] : (tensor<2x40x3x16xf32>) -> tensor<2x3x40x16xf32>
  %2 = nn.transpose %v [0, 1, 3, 2] : (tensor<2x3x16x40xf32>) -> tensor<2x3x40x16xf32>
  %3 = nn.transpose %dy [0, 2, 1, 3] : (tensor<2x20x3x16xf32>) -> tensor<2x3x20x16xf32>
  %dq, %dk, %dv = exec.attention_grad %0, %1, %2 of %3 scale 0.25 : (tensor<2x3x20x16xf32>, tensor<2x3x40x16xf32>, tensor<2x3x40x16xf32>, tensor<2x3x20x16xf32>) -> (tensor<2x3x20x16xf32>, tensor<2x3x40x16xf32>, tensor<2x3x40x16xf32>)
  %4 = nn.transpose %dq [0, 2, 1, 3] : (tensor<2x3x20x16xf32>) -> tensor<2x20x3x16xf32>
  return %4, %dk, %dv : tensor<2x20x3x16xf32>, tensor<2x3x40x16xf32>, tensor<2x3x40x16xf32>
}

// Blocks of causal queries that end between whole blocks of keys.
// NAMED-LABEL: func.func @ahead
// NAMED: vector
func.func @ahead(%q: tensor<1x1x100x8xf32>, %k: tensor<1x1x1040x8xf32>, %v: tensor<1x1x1040x8xf32>, %dy: tensor<1x1x100x8xf32>) -> (tensor<1x1x100x8xf32>, tensor<1x1x1040x8xf32>, tensor<1x1x1040x8xf32>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy scale 0.25 causal {causalOffset = 900 : i64} : (tensor<1x1x100x8xf32>, tensor<1x1x1040x8xf32>, tensor<1x1x1040x8xf32>, tensor<1x1x100x8xf32>) -> (tensor<1x1x100x8xf32>, tensor<1x1x1040x8xf32>, tensor<1x1x1040x8xf32>)
  return %dq, %dk, %dv : tensor<1x1x100x8xf32>, tensor<1x1x1040x8xf32>, tensor<1x1x1040x8xf32>
}

// With statistics of rows, of keys that are some of those that are seen: results are not rounded.
// NAMED-LABEL: func.func @statistics
// NAMED: vector
func.func @statistics(%q: tensor<2x4x37x19xf32>, %k: tensor<2x2x53x19xf32>, %v: tensor<2x2x53x21xf32>, %dy: tensor<2x4x37x21xf32>, %l: tensor<2x4x37xf32>, %d: tensor<2x4x37xf32>) -> (tensor<2x4x37x19xf32>, tensor<2x2x53x19xf32>, tensor<2x2x53x21xf32>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy logs %l means %d scale 0.25 causal {causalOffset = 11 : i64, left = 20 : i64} : (tensor<2x4x37x19xf32>, tensor<2x2x53x19xf32>, tensor<2x2x53x21xf32>, tensor<2x4x37x21xf32>, tensor<2x4x37xf32>, tensor<2x4x37xf32>) -> (tensor<2x4x37x19xf32>, tensor<2x2x53x19xf32>, tensor<2x2x53x21xf32>)
  return %dq, %dk, %dv : tensor<2x4x37x19xf32>, tensor<2x2x53x19xf32>, tensor<2x2x53x21xf32>
}

// Under a cap, a mask and numbers in the place of scores; more keys than a block of weights holds.
// NAMED-LABEL: func.func @statistics_shown
// NAMED: vector
func.func @statistics_shown(%q: tensor<1x2x70x16xf32>, %k: tensor<1x1x1030x16xf32>, %v: tensor<1x1x1030x8xf32>, %dy: tensor<1x2x70x8xf32>, %m: tensor<70x1030xf32>, %c: tensor<1x1x1x1030xi1>, %l: tensor<1x2x70xf32>, %d: tensor<1x2x70xf32>) -> (tensor<1x2x70x16xf32>, tensor<1x1x1030x16xf32>, tensor<1x1x1030x8xf32>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy mask %m shown %c logs %l means %d scale 0.25 {softcap = 2.0 : f64} : (tensor<1x2x70x16xf32>, tensor<1x1x1030x16xf32>, tensor<1x1x1030x8xf32>, tensor<70x1030xf32>, tensor<1x2x70x8xf32>, tensor<1x1x1x1030xi1>, tensor<1x2x70xf32>, tensor<1x2x70xf32>) -> (tensor<1x2x70x16xf32>, tensor<1x1x1030x16xf32>, tensor<1x1x1030x8xf32>)
  return %dq, %dk, %dv : tensor<1x2x70x16xf32>, tensor<1x1x1030x16xf32>, tensor<1x1x1030x8xf32>
}

// Halves are widened, and gradients stay wide, for others are added to them. Whether anything is seen is drawn: a block is zeros, or not.
// NAMED-LABEL: func.func @statistics_narrow
// NAMED: vector
func.func @statistics_narrow(%q: tensor<1x2x33x16xbf16>, %k: tensor<1x2x47x16xbf16>, %v: tensor<1x2x47x16xbf16>, %dy: tensor<1x2x33x16xbf16>, %l: tensor<1x2x33xf32>, %d: tensor<1x2x33xf32>, %s: tensor<1x1xi1>) -> (tensor<1x2x33x16xf32>, tensor<1x2x47x16xf32>, tensor<1x2x47x16xf32>) {
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy logs %l means %d seen %s scale 0.25 : (tensor<1x2x33x16xbf16>, tensor<1x2x47x16xbf16>, tensor<1x2x47x16xbf16>, tensor<1x2x33x16xbf16>, tensor<1x2x33xf32>, tensor<1x2x33xf32>, tensor<1x1xi1>) -> (tensor<1x2x33x16xf32>, tensor<1x2x47x16xf32>, tensor<1x2x47x16xf32>)
  return %dq, %dk, %dv : tensor<1x2x33x16xf32>, tensor<1x2x47x16xf32>, tensor<1x2x47x16xf32>
}

// Nothing is seen: zeros.
// NAMED-LABEL: func.func @nothing
// NAMED: scf.if
func.func @nothing(%q: tensor<1x2x9x8xf32>, %k: tensor<1x2x11x8xf32>, %v: tensor<1x2x11x8xf32>, %dy: tensor<1x2x9x8xf32>, %l: tensor<1x2x9xf32>, %d: tensor<1x2x9xf32>, %a: tensor<i64>) -> (tensor<1x2x9x8xf32>, tensor<1x2x11x8xf32>, tensor<1x2x11x8xf32>) {
  %s = nn.lt %a, %a : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy logs %l means %d seen %s scale 0.25 : (tensor<1x2x9x8xf32>, tensor<1x2x11x8xf32>, tensor<1x2x11x8xf32>, tensor<1x2x9x8xf32>, tensor<1x2x9xf32>, tensor<1x2x9xf32>, tensor<i1>) -> (tensor<1x2x9x8xf32>, tensor<1x2x11x8xf32>, tensor<1x2x11x8xf32>)
  return %dq, %dk, %dv : tensor<1x2x9x8xf32>, tensor<1x2x11x8xf32>, tensor<1x2x11x8xf32>
}

// A row that sees nothing of all keys has the logarithm of 0, and gives nothing.
// NAMED-LABEL: func.func @blind
// NAMED: vector
func.func @blind(%q: tensor<1x1x7x8xf64>, %k: tensor<1x1x5x8xf64>, %v: tensor<1x1x5x3xf64>, %dy: tensor<1x1x7x3xf64>, %d: tensor<1x1x7xf64>) -> (tensor<1x1x7x8xf64>, tensor<1x1x5x8xf64>, tensor<1x1x5x3xf64>) {
  %l = nn.constant dense<[[[0xFFF0000000000000, 1.0, 2.0, -1.0, 3.0, 4.0, 5.0]]]> : tensor<1x1x7xf64> -> tensor<1x1x7xf64>
  %dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy logs %l means %d scale 0.25 causal {causalOffset = -1 : i64} : (tensor<1x1x7x8xf64>, tensor<1x1x5x8xf64>, tensor<1x1x5x3xf64>, tensor<1x1x7x3xf64>, tensor<1x1x7xf64>, tensor<1x1x7xf64>) -> (tensor<1x1x7x8xf64>, tensor<1x1x5x8xf64>, tensor<1x1x5x3xf64>)
  return %dq, %dk, %dv : tensor<1x1x7x8xf64>, tensor<1x1x5x8xf64>, tensor<1x1x5x3xf64>
}
