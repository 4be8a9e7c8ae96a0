// A difference ends with code 3 and is shown: on four ranks the sum is taken in another order, which exactness forbids.
// RUN: not cleave run %s --check --rtol 0 --atol 0 --seed 3 > %t; FileCheck %s < %t
// RUN: %{python} -c "import subprocess, sys; sys.exit(subprocess.run(['cleave', 'run', '%s', '--check', '--rtol', '0', '--atol', '0', '--seed', '3'], stdout=subprocess.DEVNULL).returncode != 3)"
// RUN: cleave run %s --check --seed 3 | FileCheck %s --check-prefix=CLOSE

// CHECK: 1 x all_reduce over x
// CHECK: check result0: DIFFERS, largest difference
// CHECK-NEXT: on ranks, {{.*}} on one device (rtol 0, atol 0)
// CHECK-NEXT: in double they differ by {{.*}}; rounding moves one device by
// CLOSE: check result0: ok
#mesh = #spmd.mesh<["x"=4]>
#cols = #spmd.sharding<#mesh, [{}, {"x"}]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
func.func @main(%a: tensor<64x500xf32, #cols>, %b: tensor<500x64xf32, #rows>) -> tensor<64x64xf32, #replicated> {
  %c = nn.einsum %a, %b "ik,kj->ij" : (tensor<64x500xf32, #cols>, tensor<500x64xf32, #rows>) -> tensor<64x64xf32>
  %d = spmd.constrain %c : tensor<64x64xf32> to tensor<64x64xf32, #replicated>
  return %d : tensor<64x64xf32, #replicated>
}
