// Meshes, axes and shardings: what is read is printed again, once, under an alias.
//
// RUN: cleave-opt %s --split-input-file | cleave-opt --split-input-file | FileCheck %s
// RUN: cleave-opt %s --split-input-file --mlir-print-op-generic | cleave-opt --split-input-file | FileCheck %s

// The alias of a sharding names its axes, dim by dim.
// CHECK: #[[MESH:.*]] = #spmd.mesh<["data"=2, "model"=4]>
// CHECK: #[[ROWS:data_replicated]] = #spmd.sharding<#[[MESH]], [{"data"}, {}]>
#mesh = #spmd.mesh<["data"=2, "model"=4]>
#rows = #spmd.sharding<#mesh, [{"data"}, {}]>
// CHECK-LABEL: @a_sharding_is_printed_as_an_alias
// CHECK-SAME: (%{{.*}}: tensor<8x4xf32, #[[ROWS]]>)
func.func @a_sharding_is_printed_as_an_alias(%x: tensor<8x4xf32, #rows>) {
  return
}

// -----

// Without aliases the text form is the same.
// CHECK: #spmd.mesh<["a"=2]>
// CHECK: #spmd.sharding<#mesh, [{"a"}]>
// CHECK-LABEL: @a_sharding_is_read_without_aliases
func.func @a_sharding_is_read_without_aliases(%x: tensor<8xf32, #spmd.sharding<#spmd.mesh<["a"=2]>, [{"a"}]>>) {
  return
}

// -----

// Ranks may stand on other devices; an axis of size 1, and names that need quotes, are fine.
// CHECK: #mesh = #spmd.mesh<["x y"=2, "\22quoted\22"=1, "z"=2], devices=[3, 1, 2, 0]>
// CHECK: module attributes {spmd.mesh = #mesh}
module attributes {spmd.mesh = #spmd.mesh<["x y"=2, "\22quoted\22"=1, "z"=2], devices=[3, 1, 2, 0]>} {
}

// -----

// One device is a mesh without axes.
// CHECK: #mesh = #spmd.mesh<[]>
module attributes {spmd.mesh = #spmd.mesh<[]>} {
}

// -----

// Axes and dims are attributes of their own, too.
// CHECK: test.axes = [#spmd.axis<"model">, #spmd.axis<"model":(2)4>]
// CHECK-SAME: test.dim = #spmd.dim<{"data", "model":(1)2, ?}p3>
module attributes {test.axes = [#spmd.axis<"model">, #spmd.axis<"model":(2)4>],
                   test.dim = #spmd.dim<{"data", "model":(1)2, ?}p3>} {
}

// -----

#mesh = #spmd.mesh<["x"=2, "y"=2, "z"=2, "model"=8]>

// Several axes on one dim, major to minor.
// CHECK-DAG: = #spmd.sharding<#mesh, [{"y", "x"}, {"z"}]>
// Sub-axes: of axis 8 = 2 * 2 * 2 the first digit on rows, the two others on columns.
// CHECK-DAG: = #spmd.sharding<#mesh, [{"model":(1)2}, {"model":(2)4}]>
// Open dims, with what they already have and without.
// CHECK-DAG: = #spmd.sharding<#mesh, [{"x", ?}, {?}]>
// Priorities stand after a dim; 0 is the default and not printed.
// CHECK-DAG: = #spmd.sharding<#mesh, [{"x"}p2, {?}p10]>
// Replicated: these axes may not be used.
// CHECK-DAG: = #spmd.sharding<#mesh, [{}, {?}], replicated = {"x", "model":(1)2}>
// 5 and 3 do not divide, which is what uneven is for.
// CHECK-DAG: = #spmd.sharding<#mesh, [{"x"}, {"y"}], uneven>
// Everything at once, in this order.
// CHECK-DAG: = #spmd.sharding<#mesh, [{"x"}, {}], partial = {"y": sum}, replicated = {"z"}, uneven>
func.func private @shardings(tensor<8x4xf32, #spmd.sharding<#mesh, [{"y", "x"}, {"z"}]>>,
  tensor<8x4xf32, #spmd.sharding<#mesh, [{"model":(1)2}, {"model":(2)4}]>>,
  tensor<8x4xf32, #spmd.sharding<#mesh, [{"x", ?}, {?}]>>,
  tensor<8x4xf32, #spmd.sharding<#mesh, [{"x"}p2, {?}p10]>>,
  tensor<8x4xf32, #spmd.sharding<#mesh, [{}p0, {?}], replicated = {"x", "model":(1)2}>>,
  tensor<5x3xf32, #spmd.sharding<#mesh, [{"x"}, {"y"}], uneven>>,
  tensor<5x3xf32, #spmd.sharding<#mesh, [{"x"}, {}], uneven, replicated = {"z"}, partial = {"y": sum}>>)

// -----

#mesh = #spmd.mesh<["x"=2, "y"=4]>

// Partial over whole axes and digits of axes, by all four kinds. Bool has a maximum and a minimum.
// CHECK-DAG: = #spmd.sharding<#mesh, [{"x"}], partial = {"y": sum}>
// CHECK-DAG: = #spmd.sharding<#mesh, [{}], partial = {"x": prod, "y":(1)2: prod}>
// CHECK-DAG: = #spmd.sharding<#mesh, [{}], partial = {"y":(2)2: max}>
// CHECK-DAG: = #spmd.sharding<#mesh, [], partial = {"x": min}>
func.func private @partial_values(tensor<8xf32, #spmd.sharding<#mesh, [{"x"}], partial = {"y": sum}>>,
  tensor<8xi32, #spmd.sharding<#mesh, [{}], partial = {"x": prod, "y":(1)2: prod}>>,
  tensor<8xi1, #spmd.sharding<#mesh, [{}], partial = {"y":(2)2: max}>>,
  tensor<i1, #spmd.sharding<#mesh, [], partial = {"x": min}>>)

// -----

#mesh = #spmd.mesh<["x"=4]>

// Zero elements divide into any number of shards.
// CHECK-LABEL: @an_empty_dim_divides
func.func @an_empty_dim_divides(%x: tensor<0xf32, #spmd.sharding<#mesh, [{"x"}]>>) {
  return
}
