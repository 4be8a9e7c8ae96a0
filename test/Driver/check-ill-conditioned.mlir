// A sum that is canceled again: next to 5e3 floats are 2^-11 apart, and an order of summation decides where some of the
// sums are rounded to. That is told, and no error; the same tolerance finds nothing wrong without the cancellation.
// RUN: cleave run %s --check --seed 3 > %t; FileCheck %s < %t
// RUN: cleave run %s --check --seed 3 --quiet | count 0
// RUN: sed 's/5.0e+3/0.0/' %s > %t.mlir; cleave run %t.mlir --check --seed 3 | FileCheck %s --check-prefix=WELL

// CHECK: check result0: ok, ill-conditioned here, largest difference 4.88e-04
// CHECK-NEXT: at [{{.*}}]: {{.*}} on ranks, {{.*}} on one device (rtol 0.0001, atol 1e-05)
// CHECK-NEXT: in double they differ by {{0.00e\+00|[0-9.]+e-1[0-9]}}; rounding moves one device by 2.4{{.*}}e-04, the ranks by 2.4{{.*}}e-04
// WELL: check result0: ok, largest difference
#mesh = #spmd.mesh<["x"=4]>
#cols = #spmd.sharding<#mesh, [{}, {"x"}]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
func.func @main(%a: tensor<64x500xf32, #cols>, %b: tensor<500x64xf32, #rows>) -> tensor<64x64xf32> {
  %c = nn.einsum %a, %b "ik,kj->ij" : (tensor<64x500xf32, #cols>, tensor<500x64xf32, #rows>) -> tensor<64x64xf32>
  %k = nn.constant dense<5.0e+3> : tensor<64x64xf32> -> tensor<64x64xf32>
  %d = nn.add %c, %k : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = nn.sub %d, %k : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}
