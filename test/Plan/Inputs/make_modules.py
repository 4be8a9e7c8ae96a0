"""Writes a model of two layers as torch exports it: tensors are called by numbers, and metadata says which module each node is of.

Usage: make_modules.py PATH [scopes|namespace|folders|none]

    x [batch, 8] ──embed──▶ layers.0, layers.1 (up, relu, down, and the input again) ──mix (two products)──▶ head ──▶ y [batch, 16]

The weights of layers are `val_N`, each up_proj has a bias. `mix` reads two matrices, `layers.1.down_proj` is called twice (`@1`), and the bias
of the head is made by a node without a module of half of it.
"""
import sys
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

path, style = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "scopes"
random = np.random.default_rng(1)
tensors, nodes = [], []


def weight(*shape):
    name = f"val_{len(tensors)}"
    tensors.append(numpy_helper.from_array(np.round(random.standard_normal(shape) * 4).astype("f4") / 32, name))
    return name


def node(op, module, inputs, name=None):
    number = len(nodes)
    output = f"t{number}"
    made = helper.make_node(op, inputs, [output], name=name or f"node_{op.lower()}_{number}")
    words = module.split(".") if module else []
    chain = [".".join(words[:count]) for count in range(len(words) + 1)]
    if style == "scopes" and module is not None:
        made.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=repr([*chain, op.lower()]))
        made.metadata_props.add(key="pkg.torch.onnx.stack_trace", value="File \"model.py\", line 1")
    if style == "namespace" and module is not None:
        made.metadata_props.add(key="namespace", value="/".join(f"{entry}: Class" for entry in chain) + f"/{op.lower()}: aten.{op.lower()}")
    if style == "folders" and module is not None:
        made.name = "/" + "/".join([*words, op]) if words else "/" + op
        made.name = made.name.replace("/layers/", "/layers.").replace("@1", "")
    nodes.append(made)
    return output


value = node("MatMul", "model.embed", ["x", weight(8, 32)])
for layer in range(2):
    inside = node("MatMul", f"model.layers.{layer}.up_proj", [value, weight(32, 64)])
    inside = node("Add", f"model.layers.{layer}.up_proj", [inside, weight(64)])
    inside = node("Relu", f"model.layers.{layer}.act", [inside])
    down = weight(64, 32)
    out = node("MatMul", f"model.layers.{layer}.down_proj", [inside, down])
    if layer == 1:
        again = node("MatMul", f"model.layers.{layer}.down_proj@1", [inside, down])
        out = node("Add", f"model.layers.{layer}", [out, again])
    value = node("Add", f"model.layers.{layer}", [value, out])
left, right = (node("MatMul", "model.mix", [value, weight(32, 32)]) for _ in range(2))
value = node("Mul", "model.mix", [left, right])
value = node("MatMul", "head", [value, weight(32, 16)])
half = node("Neg", None, [weight(32)])
half = node("Neg", None, [half])
value = node("Mul", "", [value, node("ReduceSum", "head", [half])])
nodes[-1].output[0] = "y"
graph = helper.make_graph(nodes, "modules", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 16])], tensors)
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
