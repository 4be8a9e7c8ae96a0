"""Writes ONNX models that are hard to decide for their shape rather than their depth, and a plan for each.

    make_wide.py KIND OUT.onnx [--size N]

`skips`: a U-Net-like network of 2N blocks at one resolution, block i of the way up joined with block N - i of the way down,
so that N values are alive at once; 10 nodes a block. `experts`: N layers of 64 experts, each with weights of its own, in the
dense form that exporters write: every expert on every token, weighted by the gate; 326 nodes a layer. `irregular`: N layers
of which no two have equal sizes; 12 nodes a layer.

Weights are external and zeros, a sparse file; the plan is for the mesh data=2,model=4.
"""

import argparse
import os

from make_gpt import DATA_TYPE, GraphWriter
from onnx import helper

EXPERTS = 64
MESH = "mesh: {data: 2, model: 4}\nshard:\n"


def add_skips(graph, size):
    """[8, 64, 32, 32] through; channels of the convolutions are cut in pairs."""
    def block(path, x, width):
        residual = x
        x = graph.node(f"{path}/norm", "InstanceNormalization",
                       [x, graph.weight(f"{path}.scale", [width]), graph.weight(f"{path}.shift", [width])])
        x = graph.node(f"{path}/gate", "Sigmoid", [x])
        x = graph.node(f"{path}/act", "Mul", [x, x])
        x = graph.node(f"{path}/wide", "Conv", [x, graph.weight(f"{path}.wide", [128, width, 3, 3])], pads=[1] * 4)
        x = graph.node(f"{path}/relu", "Relu", [x])
        x = graph.node(f"{path}/narrow", "Conv", [x, graph.weight(f"{path}.narrow", [64, 128, 3, 3])], pads=[1] * 4)
        if width != 64:
            residual = graph.node(f"{path}/short", "Conv", [residual, graph.weight(f"{path}.short", [64, width, 1, 1])])
        x = graph.node(f"{path}/add", "Add", [x, residual])
        x = graph.node(f"{path}/tanh", "Tanh", [x])
        return graph.node(f"{path}/abs", "Abs", [x])

    x, kept = "x", []
    for number in range(size):
        x = block(f"/down.{number}", x, 64)
        kept.append(x)
    for number in range(size):
        x = graph.node(f"/up.{number}/join", "Concat", [x, kept.pop()], axis=1)
        x = block(f"/up.{number}", x, 128)
    return [8, 64, 32, 32], x, ["{tensor: x, dims: [data, _, _, _]}", '{node: "/*/wide", operand: 1, dims: [model, _, _, _]}',
                                '{node: "/*/narrow", operand: 1, dims: [_, model, _, _]}']


def add_experts(graph, size):
    """[8, 128, 256] through; each expert's hidden dim is cut."""
    x = "x"
    for layer in range(size):
        path = f"/h.{layer}"
        gate = graph.node(f"{path}/gate", "MatMul", [x, graph.weight(f"{path}.gate", [256, EXPERTS])])
        gate = graph.node(f"{path}/softmax", "Softmax", [gate], axis=-1)
        shares = graph.node(f"{path}/split", "Split", [gate], outputs=EXPERTS, axis=2)
        total = x
        for expert, share in enumerate(shares):
            of = f"{path}/expert.{expert}"
            hidden = graph.node(f"{of}/up", "MatMul", [x, graph.weight(f"{of}.up", [256, 512])])
            hidden = graph.node(f"{of}/relu", "Relu", [hidden])
            out = graph.node(f"{of}/down", "MatMul", [hidden, graph.weight(f"{of}.down", [512, 256])])
            total = graph.node(f"{of}/add", "Add", [total, graph.node(f"{of}/mul", "Mul", [out, share])])
        x = graph.node(f"{path}/norm", "LayerNormalization",
                       [total, graph.weight(f"{path}.scale", [256]), graph.weight(f"{path}.shift", [256])], axis=-1)
        x = graph.node(f"{path}/tanh", "Tanh", [x])
    return [8, 128, 256], x, ["{tensor: x, dims: [data, _, _]}", '{node: "/*/up", operand: 1, dims: [_, model]}',
                              '{node: "/*/down", operand: 1, dims: [model, _]}']


def add_irregular(graph, size):
    """[8, 128, 256] in; the hidden widths of layer i are of its number, so that nothing is looked up twice."""
    x, width = "x", 256
    for layer in range(size):
        path, inner, following = f"/h.{layer}", 1024 + 8 * layer, 256 + 8 * layer
        normed = graph.node(f"{path}/norm", "LayerNormalization",
                            [x, graph.weight(f"{path}.scale", [width]), graph.weight(f"{path}.shift", [width])], axis=-1)
        hidden = graph.node(f"{path}/up", "MatMul", [normed, graph.weight(f"{path}.up", [width, inner])])
        hidden = graph.node(f"{path}/bias", "Add", [hidden, graph.weight(f"{path}.bias", [inner])])
        gate = graph.node(f"{path}/sigmoid", "Sigmoid", [hidden])
        hidden = graph.node(f"{path}/mul", "Mul", [hidden, gate])
        hidden = graph.node(f"{path}/tanh", "Tanh", [hidden])
        y = graph.node(f"{path}/down", "MatMul", [hidden, graph.weight(f"{path}.down", [inner, following])])
        y = graph.node(f"{path}/add", "Add", [y, graph.weight(f"{path}.out", [following])])
        short = graph.node(f"{path}/short", "MatMul", [x, graph.weight(f"{path}.short", [width, following])])
        y = graph.node(f"{path}/join", "Add", [y, short])
        y = graph.node(f"{path}/relu", "Relu", [y])
        x, width = graph.node(f"{path}/abs", "Abs", [y]), following
    return [8, 128, 256], x, ["{tensor: x, dims: [data, _, _]}", '{node: "/*/up", operand: 1, dims: [_, model]}',
                              '{node: "/*/down", operand: 1, dims: [model, _]}']


KINDS = {"skips": (add_skips, 1000), "experts": (add_experts, 32), "irregular": (add_irregular, 1000)}


def make(kind, path, size=None):
    """Writes model, weights and plan; returns the plan's path and the number of nodes."""
    stem = os.path.splitext(path)[0]
    graph = GraphWriter(os.path.basename(stem) + ".bin")
    add, usual = KINDS[kind]
    shape, result, rules = add(graph, size or usual)
    values = [[helper.make_tensor_value_info(name, DATA_TYPE, dims)] for name, dims in (("x", shape), (result, None))]
    model = helper.make_model(helper.make_graph(graph.nodes, kind, *values, graph.initializers),
                              opset_imports=[helper.make_opsetid("", 18)], ir_version=9, producer_name="make_wide")
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
    with open(stem + ".bin", "wb") as file:
        file.truncate(graph.weights_bytes)
    with open(stem + ".yaml", "w") as file:
        file.write(MESH + "".join(f"  - {rule}\n" for rule in rules))
    return stem + ".yaml", len(graph.nodes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("out")
    parser.add_argument("--size", type=int)
    arguments = parser.parse_args()
    print(make(arguments.kind, arguments.out, arguments.size)[1], "nodes")


if __name__ == "__main__":
    main()
