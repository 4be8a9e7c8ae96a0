// Attention in exported files. The suite `export` runs these programs, too.
//
// RUN: %{each} %s %t "cleave export {} -o {}.out --quiet && %{python} %S/show.py {}.out | FileCheck {}"

//--- plain.mlir
// What each query sees from the first key on is ONNX's own.
// CHECK: Attention(arg0, arg1, arg2) is_causal = 1 scale = 0.5 -> [1, 4, 6, 8]
func.func @main(%q: tensor<1x4x6x8xf32>, %k: tensor<1x2x6x8xf32>, %v: tensor<1x2x6x8xf32>) -> tensor<1x4x6x8xf32> {
  %y = nn.attention %q, %k, %v scale 0.5 causal : (tensor<1x4x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> tensor<1x4x6x8xf32>
  return %y : tensor<1x4x6x8xf32>
}

//--- blind.mlir
// The first two queries see nothing and give zeros; the others see two keys before them at most. Places are compared.
// CHECK-NOT: Attention(
// CHECK: Range({{.*}}) -> [6]
// CHECK: GreaterOrEqual({{.*}}) -> [6, 6]
// CHECK: LessOrEqual({{.*}}) -> [6, 6]
// CHECK: Softmax({{.*}}) axis = 3 -> [1, 4, 6, 6]
// CHECK: ReduceMax
// CHECK: Where({{.*}}) -> [1, 4, 6, 6]
func.func @main(%q: tensor<1x4x6x8xf32>, %k: tensor<1x2x6x8xf32>, %v: tensor<1x2x6x8xf32>) -> tensor<1x4x6x8xf32> {
  %y = nn.attention %q, %k, %v scale 0.5 causal {causalOffset = -2 : i64, left = 1 : i64} : (tensor<1x4x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> tensor<1x4x6x8xf32>
  return %y : tensor<1x4x6x8xf32>
}

//--- masked.mlir
// A mask may leave a query nothing: which ones is not known here.
// CHECK: Where(arg3, {{.*}}) -> [2, 4, 6, 6]
// CHECK: ReduceMax
func.func @main(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %m: tensor<2x1x6x6xi1>) -> tensor<2x4x6x8xf32> {
  %y = nn.attention %q, %k, %v mask %m scale 0.5 causal : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x1x6x6xi1>) -> tensor<2x4x6x8xf32>
  return %y : tensor<2x4x6x8xf32>
}

//--- scales.mlir
// Two scales that differ behind the ninth digit are two numbers, called alike.
// CHECK: {{^}}Mul({{.*}}, [[FIRST:[^ ]*]]) ->
// CHECK: {{^}}Mul({{.*}}, [[FIRST]]_2) ->
func.func @main(%q: tensor<1x1x2x2xf64>, %m: tensor<2x2xi1>) -> (tensor<1x1x2x2xf64>, tensor<1x1x2x2xf64>) {
  %a = nn.attention %q, %q, %q mask %m scale 0.1234567891 : (tensor<1x1x2x2xf64>, tensor<1x1x2x2xf64>, tensor<1x1x2x2xf64>, tensor<2x2xi1>) -> tensor<1x1x2x2xf64>
  %b = nn.attention %q, %q, %q mask %m scale 0.1234567894 : (tensor<1x1x2x2xf64>, tensor<1x1x2x2xf64>, tensor<1x1x2x2xf64>, tensor<2x2xi1>) -> tensor<1x1x2x2xf64>
  return %a, %b : tensor<1x1x2x2xf64>, tensor<1x1x2x2xf64>
}
