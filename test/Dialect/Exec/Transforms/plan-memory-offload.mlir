// Values that go to the host's memory and come back: an arena there, bytes of the device that are others' meanwhile, and streams of their own.
//
// RUN: cleave-opt %s --exec-plan-memory --exec-verify-plan --exec-order --exec-verify-plan=phase=ordered | FileCheck %s

// A kernel takes 2 us to start, and 4 KiB go in 0.16 us: a copy takes less than a kernel. %a goes while %b is made of it, so that %c may have its
// bytes, and comes back while the last kernel before its reader runs. Of the device there are two values at a time, where there would be three.
// CHECK: exec.buffer @activations activations 8192 align 64 bound 8192
// CHECK-NEXT: exec.buffer @offloaded activations 4096 align 64 bound 4096 host
// CHECK-LABEL: @main
// CHECK-SAME: nn.transfers = {bytes = 4096 : i64, exposed_ns = 0.000000e+00 : f64, stayed = 0 : i64, values = 1 : i64}
// CHECK: %[[A:.*]] = exec.view @activations[[PLACE:\[.*\]]]
// CHECK-NEXT: exec.run @exp_0({{.*}}) into (%[[A]])
// CHECK-NEXT: %[[HOST:.*]] = exec.view @offloaded[0]
// CHECK-NEXT: exec.record 0
// CHECK-NEXT: exec.wait 0 stream 2
// CHECK-NEXT: exec.copy %[[A]] into %[[HOST]] stream 2
// CHECK-NEXT: exec.record 1 stream 2
// CHECK: exec.run @exp_0(%[[A]])
// The first that writes where %a was waits until that is gone.
// CHECK-NEXT: %[[C:.*]] = exec.view @activations[[PLACE]]
// CHECK-NEXT: exec.wait 1
// CHECK-NEXT: exec.run @exp_0(%{{.*}}) into (%[[C]])
// CHECK: exec.copy %[[HOST]] into %[[BACK:.*]] stream 3
// CHECK-NEXT: exec.record 3 stream 3
// CHECK: exec.run @exp_0
// CHECK: exec.wait 3
// CHECK-NEXT: exec.run @add_0(%[[BACK]]
module {
  exec.kernel @exp_0(%a: tensor<1024xf32>) {
    %0 = nn.exp %a : (tensor<1024xf32>) -> tensor<1024xf32>
    exec.yield %0 : tensor<1024xf32>
  }
  exec.kernel @add_0(%a: tensor<1024xf32>, %b: tensor<1024xf32>) {
    %0 = nn.add %a, %b : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
    exec.yield %0 : tensor<1024xf32>
  }
  func.func @main(%x: tensor<1024xf32> {nn.name = "x"}) -> (tensor<1024xf32> {nn.name = "y"}) {
    %a = exec.launch @exp_0(%x) : (tensor<1024xf32>) -> tensor<1024xf32>
    %o = exec.offload %a : tensor<1024xf32>
    %b = exec.launch @exp_0(%a) : (tensor<1024xf32>) -> tensor<1024xf32>
    %c = exec.launch @exp_0(%b) : (tensor<1024xf32>) -> tensor<1024xf32>
    %d = exec.launch @add_0(%b, %c) : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
    %e = exec.launch @exp_0(%d) : (tensor<1024xf32>) -> tensor<1024xf32>
    %f = exec.launch @exp_0(%e) : (tensor<1024xf32>) -> tensor<1024xf32>
    %back = exec.fetch %o : tensor<1024xf32>
    %y = exec.launch @add_0(%back, %f) : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
    return %y : tensor<1024xf32>
  }
}
