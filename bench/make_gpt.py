"""Writes a GPT-like ONNX model of any depth, and the plan that shards it the way Megatron does.

    make_gpt.py OUT.onnx [--layers 12] [--batch 8] [--seq 512] [--hidden 768] [--heads 12] [--decode 1] [--seed 1]

Three files appear: OUT.onnx, OUT.bin (the weights as external data: a sparse file, so that hundreds of layers cost no
disk) and OUT.yaml (the plan, for the mesh data=2,model=4). Weights are zeros, for compiling; with a seed they are random, for
running. To decode, keys and values of `past` positions come in, all of them go out, and a mask says which of the `total` count.

A layer has exactly 34 nodes, spelled as the TorchScript exporter writes GPT-2 (linear layers flatten batch and
sequence into a Gemm, Gelu is in its parts), the fused projection of queries, keys and values laid out by heads.
"""

import argparse
import math
import os

import numpy as np
from onnx import TensorProto, helper

NODES_PER_LAYER = 34
DATA_TYPE = TensorProto.FLOAT
ELEMENT_BYTES = 4
# Weights start at multiples of this in the external file.
ALIGNMENT = 64


class GraphWriter:
    """Nodes and tensors of one graph, in order. Every method that adds a node returns the name of its output."""

    def __init__(self, weights_file):
        self.nodes, self.initializers = [], []
        self.weights_file, self.weights_bytes = weights_file, 0

    def node(self, name, op, inputs, outputs=1, **attributes):
        names = [f"{name}_output_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name, **attributes))
        return names[0] if outputs == 1 else names

    def weight(self, name, shape):
        """A tensor of zeros in the external file."""
        tensor = self.declare(name, shape)
        length = math.prod(shape) * ELEMENT_BYTES
        tensor.data_location = TensorProto.EXTERNAL
        places = (("location", self.weights_file), ("offset", self.weights_bytes), ("length", length))
        for key, value in places:
            tensor.external_data.add(key=key, value=str(value))
        self.weights_bytes += -(-length // ALIGNMENT) * ALIGNMENT
        return name

    def declare(self, name, shape):
        tensor = TensorProto(name=name, dims=shape, data_type=DATA_TYPE)
        self.initializers.append(tensor)
        return tensor

    def constant(self, name, data_type, shape, values):
        self.initializers.append(helper.make_tensor(name, data_type, shape, values))
        return name


class Gpt:
    def __init__(self, graph, batch, seq, hidden, heads, decode):
        self.graph, self.hidden, self.heads = graph, hidden, heads
        self.batch, self.seq, self.head, self.decode = batch, seq, hidden // heads, decode
        # By name: types and shapes of what comes in and goes out beside the hidden states.
        self.inputs, self.outputs = {}, {}
        self.add_shared_constants()

    def add_shared_constants(self):
        scalars = {"sqrt_head": math.sqrt(self.head), "lowest": -3.4e38, "three": 3.0, "gelu_cubic": 0.044715,
                   "gelu_scale": math.sqrt(2 / math.pi), "one": 1.0, "half": 0.5}
        for name, value in scalars.items():
            self.graph.constant(name, DATA_TYPE, [], [value])
        rows = self.batch * self.seq
        shapes = {"flat": [rows, self.hidden], "flat_wide": [rows, 4 * self.hidden],
                  "sequences": [self.batch, self.seq, self.hidden],
                  "sequences_wide": [self.batch, self.seq, 4 * self.hidden],
                  "by_head": [self.batch, self.seq, self.heads, 3 * self.head]}
        for name, shape in shapes.items():
            self.graph.constant(name, TensorProto.INT64, [len(shape)], shape)
        self.graph.constant("qkv_sizes", TensorProto.INT64, [3], [self.head] * 3)
        if self.decode:
            self.inputs["attention_mask"] = TensorProto.BOOL, [self.batch, "total"]
            self.graph.constant("mask_dims", TensorProto.INT64, [2], [1, 2])
            self.mask = self.graph.node("/mask/Unsqueeze", "Unsqueeze", ["attention_mask", "mask_dims"])
            return
        mask = [key <= query for query in range(self.seq) for key in range(self.seq)]
        self.mask = self.graph.constant("causal", TensorProto.BOOL, [1, 1, self.seq, self.seq], mask)

    def norm(self, path, x):
        scale = self.graph.weight(f"{path[1:]}.weight", [self.hidden])
        bias = self.graph.weight(f"{path[1:]}.bias", [self.hidden])
        return self.graph.node(f"{path}/LayerNormalization", "LayerNormalization", [x, scale, bias], axis=-1)

    def linear(self, path, x, width_in, width_out, flat, shape):
        """[batch, seq, width_in] to `shape`: 3 nodes. `flat` is None if x is flat already: 2 nodes."""
        weight = self.graph.weight(f"{path[1:]}.weight", [width_in, width_out])
        bias = self.graph.weight(f"{path[1:]}.bias", [width_out])
        if flat:
            x = self.graph.node(f"{path}/Reshape", "Reshape", [x, flat])
        x = self.graph.node(f"{path}/Gemm", "Gemm", [x, weight, bias])
        return self.graph.node(f"{path}/Reshape_1", "Reshape", [x, shape])

    def cache(self, path, name, new):
        """What is new behind what came in: [batch, heads, total, head]."""
        layer = path.split("/")[1].split(".")[1]
        past, present = f"past.{layer}.{name}", f"present.{layer}.{name}"
        self.inputs[past] = DATA_TYPE, [self.batch, self.heads, "past", self.head]
        self.outputs[present] = DATA_TYPE, [self.batch, self.heads, "total", self.head]
        self.graph.nodes.append(helper.make_node("Concat", [past, new], [present], f"{path}/Concat_{name}", axis=2))
        return present

    def attention(self, path, x):
        """18 nodes with its norm and its residual add; 3 more to decode."""
        node = self.graph.node
        residual, x = x, self.norm(f"{path}/ln_1", x)
        path += "/attn"
        qkv = self.linear(f"{path}/c_attn", x, self.hidden, 3 * self.hidden, "flat", "by_head")
        q, k, v = node(f"{path}/Split", "Split", [qkv, "qkv_sizes"], outputs=3, axis=3)
        q = node(f"{path}/Transpose", "Transpose", [q], perm=[0, 2, 1, 3])
        v = node(f"{path}/Transpose_2", "Transpose", [v], perm=[0, 2, 1, 3])
        if self.decode:
            k = self.cache(path, "key", node(f"{path}/Transpose_1", "Transpose", [k], perm=[0, 2, 1, 3]))
            k = node(f"{path}/Transpose_4", "Transpose", [k], perm=[0, 1, 3, 2])
            v = self.cache(path, "value", v)
        else:
            k = node(f"{path}/Transpose_1", "Transpose", [k], perm=[0, 2, 3, 1])
        scores = node(f"{path}/MatMul", "MatMul", [q, k])
        scores = node(f"{path}/Div", "Div", [scores, "sqrt_head"])
        scores = node(f"{path}/Where", "Where", [self.mask, scores, "lowest"])
        scores = node(f"{path}/Softmax", "Softmax", [scores], axis=-1)
        x = node(f"{path}/MatMul_1", "MatMul", [scores, v])
        x = node(f"{path}/Transpose_3", "Transpose", [x], perm=[0, 2, 1, 3])
        x = node(f"{path}/Reshape", "Reshape", [x, "flat"])
        x = self.linear(f"{path}/c_proj", x, self.hidden, self.hidden, None, "sequences")
        return node(f"{path}/Add", "Add", [x, residual])

    def gelu(self, path, x):
        """The tanh form in its 8 parts."""
        node = self.graph.node
        inner = node(f"{path}/Pow", "Pow", [x, "three"])
        inner = node(f"{path}/Mul", "Mul", [inner, "gelu_cubic"])
        inner = node(f"{path}/Add", "Add", [x, inner])
        inner = node(f"{path}/Mul_1", "Mul", [inner, "gelu_scale"])
        inner = node(f"{path}/Tanh", "Tanh", [inner])
        inner = node(f"{path}/Add_1", "Add", [inner, "one"])
        half = node(f"{path}/Mul_2", "Mul", [x, "half"])
        return node(f"{path}/Mul_3", "Mul", [half, inner])

    def feed_forward(self, path, x):
        """16 nodes with its norm and its residual add."""
        residual, x = x, self.norm(f"{path}/ln_2", x)
        path += "/mlp"
        x = self.linear(f"{path}/c_fc", x, self.hidden, 4 * self.hidden, "flat", "sequences_wide")
        x = self.gelu(f"{path}/act", x)
        x = self.linear(f"{path}/c_proj", x, 4 * self.hidden, self.hidden, "flat_wide", "sequences")
        return self.graph.node(f"{path}/Add", "Add", [residual, x])

    def layer(self, number, x):
        before = len(self.graph.nodes)
        x = self.feed_forward(f"/h.{number}", self.attention(f"/h.{number}", x))
        assert len(self.graph.nodes) - before == NODES_PER_LAYER + 3 * bool(self.decode)
        return x


PLAN = """\
mesh: {data: 2, model: 4}
shard:
  - {tensor: hidden_in, dims: [data, _, _]}
  # Wide layers by columns, so that the narrow ones after them sum over their rows: one all_reduce each.
  - {node: "/h.*/{attn/c_attn,mlp/c_fc}/Gemm", operand: 1, dims: [_, model]}
  - {node: "/h.*/{attn/c_attn,mlp/c_fc}/Gemm", operand: 2, dims: [model]}
  - {node: "/h.*/{attn,mlp}/c_proj/Gemm", operand: 1, dims: [model, _]}
"""


def fill(path, graph, seed):
    """Weights of the size that training leaves them at; those of norms are around 1."""
    random = np.random.default_rng(seed)
    with open(path, "wb") as file:
        for tensor in graph.initializers:
            if not tensor.external_data:
                continue
            values = random.standard_normal(tensor.dims, np.float32) * np.float32(0.02)
            if "ln_" in tensor.name and tensor.name.endswith("weight"):
                values += 1
            file.seek(int(tensor.external_data[1].value))
            file.write(values.tobytes())
        file.truncate(graph.weights_bytes)


def make_gpt(path, layers, batch=8, seq=512, hidden=768, heads=12, decode=0, seed=0):
    """Writes the three files; returns the plan's path. Without a seed weights are zeros."""
    stem = os.path.splitext(path)[0]
    graph = GraphWriter(os.path.basename(stem) + ".bin")
    gpt = Gpt(graph, batch, seq, hidden, heads, decode)
    x = "hidden_in"
    for number in range(layers):
        x = gpt.layer(number, x)
    x = gpt.norm("/ln_f", x)
    shape = [batch, seq, hidden]
    inputs, outputs = ([helper.make_tensor_value_info(name, *entry) for name, entry in part.items()]
                       for part in ({"hidden_in": (DATA_TYPE, shape), **gpt.inputs}, {x: (DATA_TYPE, shape), **gpt.outputs}))
    model = helper.make_model(helper.make_graph(graph.nodes, "gpt", inputs, outputs, graph.initializers),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="make_gpt")
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
    if seed:
        fill(stem + ".bin", graph, seed)
    else:
        with open(stem + ".bin", "wb") as file:
            file.truncate(graph.weights_bytes)
    with open(stem + ".yaml", "w") as file:
        file.write(PLAN)
    return stem + ".yaml"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    for name, default in (("layers", 12), ("batch", 8), ("seq", 512), ("hidden", 768), ("heads", 12), ("decode", 0),
                          ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = vars(parser.parse_args())
    make_gpt(arguments.pop("out"), **arguments)


if __name__ == "__main__":
    main()
