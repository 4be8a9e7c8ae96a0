"""Small models, and all their placements: none is better than what `cleave plan` finds, and more memory never makes a plan slower.

Usage: placements.py BUILD_DIR [NAME...]

    placements of NAME    a model of one to four nodes; on 2 devices, on 4 in one axis and in two, each input, weight and output is split along
                          each of its dims or none, or not named, in all ways together (or a part of them, drawn, where these are more than MOST), with the
                          rest decided by time, free and as propagation leads: none takes a hundredth less than what is found
    memory of NAME        a fixture and limits that are less and less: what is found takes no longer than what was found in less

Both predict with kernels formed, as `cleave shard --emit clustered` does of any plan.
"""
import itertools
import json
import os
import random
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

MODELS = os.path.dirname(os.path.abspath(__file__))
CLUSTER = "cpu-threads"
# What a placement may take less than the found plan.
SLACK = 0.99
# Placements of a mesh that are looked at, of all.
MOST = 28
MESHES = ({"x": 2}, {"x": 4}, {"x": 2, "y": 2})
# Limits of memory, as parts of what the fastest plan takes.
LADDER = (1.0, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
# Fixtures, their devices and sizes.
LIMITED = {"gpt2_dyn18": (4, "batch=4,seq=16"), "llama_gqa_dyn18": (4, "batch=4,seq=16"), "moe_dyn18": (4, ""), "bert_ts17": (4, "batch=4,seq=16"),
           "t5_like_dyn18": (2, ""), "resnet_ts17": (2, "batch=4")}


class Net:
    """A model node by node; weights are drawn, inputs and outputs have the shapes that are said."""

    def __init__(self):
        self.nodes, self.weights, self.inputs, self.outputs, self.shapes = [], [], [], [], {}
        self.random = np.random.default_rng(5)

    def input(self, name, *shape, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        self.shapes[name] = shape
        return name

    def weight(self, name, *shape):
        self.shapes[name] = shape
        return self.constant(name, self.random.standard_normal(shape).astype(np.float32))

    def constant(self, name, array):
        self.weights.append(onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, kind, *operands, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}" + "abc"[:index] for index in range(outputs)]
        self.nodes.append(helper.make_node(kind, operands, names, name=f"n{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def returns(self, name, *shape, kind=TensorProto.FLOAT):
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))
        self.shapes[name] = shape

    def save(self, path):
        graph = helper.make_graph(self.nodes, "small", self.inputs, self.outputs, self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)


def product(net):
    net.returns(net.node("MatMul", net.input("x", 64, 128), net.weight("w", 128, 256)), 64, 256)


def tall_product(net):
    net.returns(net.node("MatMul", net.input("x", 1024, 64), net.weight("w", 64, 6)), 1024, 6)


def perceptron(net):
    up = net.node("Relu", net.node("MatMul", net.input("x", 32, 64), net.weight("a", 64, 256)))
    net.returns(net.node("MatMul", up, net.weight("b", 256, 64)), 32, 64)


def gemm_of_transposed(net):
    net.returns(net.node("Gemm", net.input("x", 128, 64), net.weight("w", 128, 128), net.weight("b", 128), transA=1, transB=1), 64, 128)


def convolution(net):
    net.returns(net.node("Conv", net.input("x", 2, 16, 24, 24), net.weight("w", 32, 16, 3, 3), pads=[1] * 4), 2, 32, 24, 24)


def strided_convolution(net):
    net.returns(net.node("Conv", net.input("x", 1, 8, 32, 32), net.weight("w", 16, 8, 4, 4), strides=[4, 4]), 1, 16, 8, 8)


def depthwise(net):
    net.returns(net.node("Conv", net.input("x", 1, 32, 16, 16), net.weight("w", 32, 1, 3, 3), pads=[1] * 4, group=32), 1, 32, 16, 16)


def depthwise_of_batch(net):
    net.returns(net.node("Conv", net.input("x", 4, 32, 16, 16), net.weight("w", 32, 1, 3, 3), pads=[1] * 4, group=32), 4, 32, 16, 16)


def separable(net):
    deep = net.node("Conv", net.input("x", 1, 16, 32, 32), net.weight("w", 16, 1, 3, 3), pads=[1] * 4, group=16)
    net.returns(net.node("Conv", deep, net.weight("p", 32, 16, 1, 1)), 1, 32, 32, 32)


def transposed_convolution(net):
    net.returns(net.node("ConvTranspose", net.input("x", 1, 16, 8, 8), net.weight("w", 16, 8, 2, 2), strides=[2, 2]), 1, 8, 16, 16)


def pooled(net):
    made = net.node("Conv", net.input("x", 2, 8, 16, 16), net.weight("w", 16, 8, 3, 3), pads=[1] * 4)
    net.returns(net.node("MaxPool", net.node("Relu", made), kernel_shape=[2, 2], strides=[2, 2]), 2, 16, 8, 8)


def recurrent(net):
    made = net.node("LSTM", net.input("x", 8, 4, 64), net.weight("w", 1, 256, 64), net.weight("r", 1, 256, 64), hidden_size=64, outputs=1)
    net.returns(made, 8, 1, 4, 64)


def gated(net):
    made = net.node("GRU", net.input("x", 8, 8, 32), net.weight("w", 1, 96, 32), net.weight("r", 1, 96, 32), hidden_size=32, outputs=1)
    net.returns(made, 8, 1, 8, 32)


def embedding(net):
    net.returns(net.node("Gather", net.weight("w", 256, 64), net.input("ids", 8, 32, kind=TensorProto.INT64)), 8, 32, 64)


def embedded_product(net):
    rows = net.node("Gather", net.weight("w", 256, 64), net.input("ids", 4, 16, kind=TensorProto.INT64))
    net.returns(net.node("MatMul", rows, net.weight("p", 64, 128)), 4, 16, 128)


def scattered(net):
    net.returns(net.node("ScatterND", net.input("x", 128, 64), net.input("i", 32, 1, kind=TensorProto.INT64), net.input("u", 32, 64),
                         reduction="add"), 128, 64)


def scattered_elements(net):
    net.returns(net.node("ScatterElements", net.input("x", 64, 64), net.input("i", 64, 16, kind=TensorProto.INT64), net.input("u", 64, 16),
                         axis=1), 64, 64)


def scattered_product(net):
    made = net.node("MatMul", net.input("x", 32, 64), net.weight("w", 64, 64))
    net.returns(net.node("ScatterND", net.input("to", 128, 64), net.input("i", 32, 1, kind=TensorProto.INT64), made), 128, 64)


def softmax(net):
    net.returns(net.node("Softmax", net.input("x", 64, 512), axis=-1), 64, 512)


def normalized(net):
    norm = net.node("LayerNormalization", net.input("x", 64, 128), net.weight("s", 128), net.weight("b", 128), axis=-1)
    net.returns(net.node("MatMul", norm, net.weight("w", 128, 128)), 64, 128)


def sums(net):
    net.returns(net.node("CumSum", net.input("x", 64, 256), net.constant("axis", np.int64(1))), 64, 256)


def largest(net):
    values, places = net.node("TopK", net.input("x", 64, 256), net.constant("k", np.array([8], np.int64)), outputs=2)
    net.returns(values, 64, 8)


def attended(net):
    q, k, v = (net.input(name, 4, 32, 32) for name in "qkv")
    scores = net.node("Softmax", net.node("MatMul", q, net.node("Transpose", k, perm=[0, 2, 1])), axis=-1)
    net.returns(net.node("MatMul", scores, v), 4, 32, 32)


def reduced(net):
    made = net.node("MatMul", net.input("x", 128, 64), net.weight("w", 64, 64))
    net.returns(net.node("ReduceSum", made, net.constant("axes", np.array([0], np.int64)), keepdims=0), 64)


def transposed(net):
    turned = net.node("Transpose", net.node("MatMul", net.input("x", 64, 64), net.weight("a", 64, 64)), perm=[1, 0])
    net.returns(net.node("MatMul", turned, net.weight("b", 64, 128)), 64, 128)


def joined(net):
    both = net.node("Concat", net.input("x", 64, 64), net.input("y", 64, 64), axis=1)
    net.returns(net.node("MatMul", both, net.weight("w", 128, 64)), 64, 64)


def heads(net):
    split = net.node("Reshape", net.node("MatMul", net.input("x", 32, 64), net.weight("w", 64, 96)), net.constant("to", np.array([32, 6, 16], np.int64)))
    net.returns(net.node("Softmax", split, axis=-1), 32, 6, 16)


def resized(net):
    net.returns(net.node("Resize", net.input("x", 1, 16, 16, 16), "", net.constant("by", np.array([1, 1, 2, 2], np.float32)), mode="nearest"), 1, 16, 32, 32)


def elements(net):
    net.returns(net.node("Tanh", net.node("Mul", net.input("x", 256, 256), net.weight("w", 256))), 256, 256)


SMALL = {each.__name__: each for each in (
    product, tall_product, perceptron, gemm_of_transposed, convolution, strided_convolution, depthwise, depthwise_of_batch, separable,
    transposed_convolution, pooled, recurrent, gated, embedding, embedded_product, scattered, scattered_elements, scattered_product, softmax,
    normalized, sums, largest, attended, reduced, transposed, joined, heads, resized, elements)}


def load(path):
    with open(path) as file:
        return json.load(file)


def list_states(shape, mesh):
    """Ways to split a tensor, as a plan writes them: each axis along a dim that it divides, or none."""
    for dims in itertools.product([None, *range(len(shape))], repeat=len(mesh)):
        words = [[] for _ in shape]
        for axis, dim in zip(mesh, dims):
            if dim is not None:
                words[dim].append(axis)
        if all(size % int(np.prod([mesh[axis] for axis in axes])) == 0 for size, axes in zip(shape, words)):
            yield "[" + ", ".join("[" + ", ".join(axes) + "]" if axes else "_" for axes in words) + "]"


def draw_placements(name, shapes, mesh):
    """A rule for each tensor, or None, of all of them together; all ways, or as many as are looked at, drawn."""
    states = [[None, *list_states(shape, mesh)] for shape in shapes.values()]
    count = int(np.prod([len(each) for each in states]))
    if count <= MOST:
        return list(itertools.product(*states))
    rng = random.Random(f"{name} {mesh}")
    return list({tuple(rng.choice(each) for each in states) for _ in range(MOST)})


def predict(build, model, plan, stem, *words):
    """Nanoseconds of a call of a plan; None: there is no such program."""
    done = harness.cleave(build, "shard", model, "--plan", plan, "--optimize", "time", "--cluster", CLUSTER, "--emit", "clustered",
                          "--report", stem + ".json", "-o", stem + ".mlir", "--quiet", *words)
    if done.returncode == 1 and "error:" in done.stderr:
        return None
    if done.returncode:
        raise harness.Failed(f"exit {done.returncode}: {done.stderr[-300:]}")
    report = load(stem + ".json")
    return report["time"].get("call_ns", harness.predicted_ns(report))


def find(build, model, stem, *words):
    """(nanoseconds, bytes of a rank) of what is found; None: nothing fits."""
    done = harness.cleave(build, "plan", model, "--cluster", CLUSTER, "--report", stem + ".json", "-o", stem + ".yaml", "--quiet", *words)
    if done.returncode == 1 and ("no plan was found in" in done.stderr or "no plan fits in" in done.stderr):
        return None
    if done.returncode:
        raise harness.Failed(f"exit {done.returncode}: {done.stderr[-300:]}")
    best = load(stem + ".json")["best"]
    return best["seconds"] * 1e9, best["memory"]["peak"]


def compare_placements(build, folder, name):
    """What is wrong, or an empty string."""
    net, stem, worse = Net(), os.path.join(folder, name), []
    SMALL[name](net)
    model = stem + ".onnx"
    net.save(model)
    found = {ranks: find(build, model, stem, "--devices", str(ranks))[0] for ranks in (2, 4)}
    for mesh in MESHES:
        ranks = int(np.prod(list(mesh.values())))
        for number, placement in enumerate(draw_placements(name, net.shapes, mesh)):
            lines = [f"mesh: {{{', '.join(f'{axis}: {size}' for axis, size in mesh.items())}}}", "shard:"]
            lines += [f"  - {{tensor: {tensor}, dims: {dims}}}" for tensor, dims in zip(net.shapes, placement) if dims]
            with open(stem + ".hand.yaml", "w") as file:
                file.write("\n".join(lines[:1 if len(lines) == 2 else None] + ["free: true"] * (number % 2)) + "\n")
            ns = predict(build, model, stem + ".hand.yaml", stem)
            if ns is not None and ns < found[ranks] * SLACK:
                worse.append((ns / found[ranks], f"{ns:.0f} ns where {found[ranks]:.0f} were found on {ranks} devices: {' '.join(lines)}"))
    return f"{len(worse)} placements are better, the best takes {min(worse)[1]}" if worse else ""


def compare_limits(build, folder, name):
    """Likewise: the fastest first, each limit a part of what that takes."""
    devices, sizes = LIMITED[name]
    model, stem = os.path.join(MODELS, name + ".onnx"), os.path.join(folder, name)
    words = ["--devices", str(devices), *(["--dim", sizes] if sizes else [])]
    free, peak = find(build, model, stem, *words)
    ladder = [("no limit", free)]
    for part in LADDER:
        limit = int(part * peak)
        found = find(build, model, stem, *words, "--memory", f"{limit}B")
        if found is None:
            break
        if found[1] > limit:
            return f"{found[1]} bytes were found in {limit}"
        for more, ns in ladder:
            if ns > found[0] * (1 + 1e-9):
                return f"{found[0]:.0f} ns were found in {limit} bytes, and {ns:.0f} in {more}"
        ladder.append((f"{limit} bytes", found[0]))
    return "" if len(ladder) > 4 else f"of {len(LADDER)} limits {len(ladder) - 1} have a plan"


def main():
    build, names, _ = harness.arguments()
    cases = {f"placements of {name}": (compare_placements, name) for name in SMALL}
    cases |= {f"memory of {name}": (compare_limits, name) for name in LIMITED}
    with tempfile.TemporaryDirectory() as folder:
        return harness.run(harness.select(cases, names), lambda case: case[0](build, folder, case[1]))


if __name__ == "__main__":
    sys.exit(main())
