// Each constraint of exec.view, violated.
//
// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// exec.view C1
func.func @main() {
  // expected-error @below {{'exec.view' op sees @a, which is not an exec.buffer (C1)}}
  %0 = exec.view @a[0] : memref<8xf32>
  return
}

// -----

// exec.view C2
exec.buffer @a activations 64 align 64
func.func @main() {
  // expected-error @below {{'exec.view' op has the layout of 'memref<8xf32, strided<[1], offset: 1>>', expected strides from 0 up and no offset (C2)}}
  %0 = exec.view @a[0] : memref<8xf32, strided<[1], offset: 1>>
  return
}

// -----

// exec.view C6: how many bytes such elements take is not known.
exec.buffer @a activations 64 align 64
func.func @main() {
  // expected-error @below {{'exec.view' op has elements of 'index', which tensors of programs do not have (C6)}}
  %0 = exec.view @a[0] : memref<8xindex>
  return
}

// -----

// exec.view C6
exec.buffer @a activations 64 align 64
func.func @main() {
  // expected-error @below {{'exec.view' op has elements of 'i3', which tensors of programs do not have (C6)}}
  %0 = exec.view @a[0] : memref<8xi3>
  return
}

// -----

// exec.view C3
exec.buffer @a activations 64 align 64
func.func @main() {
  // expected-error @below {{'exec.view' op column "x" is not in the rank table (C3)}}
  %0 = exec.view @a["x"] : memref<8xf32>
  return
}

// -----

// exec.view C4: the last element of a view with strides.
exec.buffer @a activations 64 align 64
func.func @main() {
  %0 = exec.view @a[0] : memref<2x4xf32, strided<[12, 1]>>
  // expected-error @below {{'exec.view' op 'memref<2x4xf32, strided<[13, 1]>>' at 0 does not lie in the 64 bytes of @a, aligned to its elements (C4)}}
  %1 = exec.view @a[0] : memref<2x4xf32, strided<[13, 1]>>
  return
}

// -----

// exec.view C4: alignment.
exec.buffer @a activations 64 align 64
func.func @main() {
  // expected-error @below {{at 2 does not lie in the 64 bytes of @a, aligned to its elements (C4)}}
  %0 = exec.view @a[2] : memref<8xf32>
  return
}

// -----

// exec.view C5
exec.buffer @a activations 64 align 64
exec.buffer @b activations 64 align 64
func.func @main() {
  %0 = exec.view @a[0] : memref<8xf32>
  // expected-error @below {{'exec.view' op is of what is not a view of a tensor in @b (C5)}}
  %1 = exec.view @b[0] of %0 : memref<8xf32> of memref<8xf32>
  return
}
