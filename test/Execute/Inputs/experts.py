"""Mixtures of experts as exporters write a loop over them, held against onnxruntime: `experts.py FOLDER`.

Writes FOLDER/{sum,concat,update,gated}.onnx and .yaml, runs each on one rank, and with its experts cut over two and four
ranks, by the evaluator and as a program, and prints `N passed, N failed`; what failed comes before.
"""

import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(5)
TOKENS, HIDDEN, INNER, EXPERTS, PLACES = 16, 32, 64, 8, 4


class Graph:
    """Nodes and weights under names as torch.onnx gives them."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def add(self, op, *inputs, count=1, **attributes):
        name = f"/{op}_{len(self.nodes)}"
        outputs = [f"{name}_output_{index}" for index in range(count)]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, name=name, **attributes))
        return outputs[0] if count == 1 else outputs

    def weight(self, name, array):
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def random(self, name, *shape):
        return self.weight(name, (RNG.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def ints(self, *values):
        return self.weight(f"ints_{len(self.weights)}", np.array(values, np.int64))

    def save(self, path, result):
        self.nodes[-1].output[0] = "y"
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [TOKENS, HIDDEN])]
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [TOKENS, HIDDEN])]
        graph = helper.make_graph(self.nodes, "experts", inputs, outputs, self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)


def expert(graph, index, x):
    """Linear, ReLU, Linear, each with a bias."""
    name = f"experts.{index}"
    hidden = graph.add("MatMul", x, graph.random(f"{name}.up.weight", HIDDEN, INNER))
    hidden = graph.add("Relu", graph.add("Add", hidden, graph.random(f"{name}.up.bias", INNER)))
    result = graph.add("MatMul", hidden, graph.random(f"{name}.down.weight", INNER, HIDDEN))
    return graph.add("Add", result, graph.random(f"{name}.down.bias", HIDDEN))


def route(graph):
    """The share of each expert in each token: softmax over all."""
    return graph.add("Softmax", graph.add("MatMul", "x", graph.random("router.weight", HIDDEN, EXPERTS)), axis=-1)


def make_sum(graph):
    """Every expert sees every token; what it gives counts where it is one of the two chosen."""
    values, chosen = graph.add("TopK", route(graph), graph.ints(2), count=2, axis=-1)
    total = None
    for index in range(EXPERTS):
        is_chosen = graph.add("Equal", chosen, graph.weight(f"expert_{index}", np.int64(index)))
        share = graph.add("Mul", values, graph.add("Cast", is_chosen, to=TensorProto.FLOAT))
        share = graph.add("ReduceSum", share, graph.ints(-1), keepdims=1)
        term = graph.add("Mul", expert(graph, index, "x"), share)
        total = term if total is None else graph.add("Add", total, term)
    return graph.add("Add", "x", total)


def make_gated(graph):
    """Mixtral's experts, dense: weights [out, in], SiLU of one product times another; shares are columns of the router."""
    shares, total = route(graph), None

    def linear(x, name, *shape):
        return graph.add("MatMul", x, graph.add("Transpose", graph.random(name, *shape), perm=[1, 0]))

    for index in range(EXPERTS):
        gate = linear("x", f"experts.{index}.w1.weight", INNER, HIDDEN)
        gate = graph.add("Mul", gate, graph.add("Sigmoid", gate))
        both = graph.add("Mul", gate, linear("x", f"experts.{index}.w3.weight", INNER, HIDDEN))
        result = linear(both, f"experts.{index}.w2.weight", HIDDEN, INNER)
        share = graph.add("Unsqueeze", graph.add("Gather", shares, graph.weight(f"column_{index}", np.int64(index)), axis=1),
                          graph.ints(1))
        term = graph.add("Mul", result, share)
        total = term if total is None else graph.add("Add", total, term)
    return graph.add("Tanh", total)


def make_concat(graph):
    """torch.stack of what all experts give, weighed afterwards."""
    given = [graph.add("Unsqueeze", expert(graph, index, "x"), graph.ints(1)) for index in range(EXPERTS)]
    stacked = graph.add("Concat", *given, axis=1)
    return graph.add("Einsum", stacked, route(graph), equation="neh,ne->nh")


def make_update(graph):
    """Each expert takes the tokens that want it most: rows are looked up and added where they came from."""
    shares = graph.add("Transpose", route(graph), perm=[1, 0])
    values, places = graph.add("TopK", shares, graph.ints(PLACES), count=2, axis=-1)
    total = graph.add("Mul", "x", graph.weight("half", np.float32(0.5)))
    for index in range(EXPERTS):
        column = graph.weight(f"column_{index}", np.int64(index))
        own = graph.add("Gather", places, column, axis=0)
        result = expert(graph, index, graph.add("Gather", "x", own, axis=0))
        share = graph.add("Unsqueeze", graph.add("Gather", values, column, axis=0), graph.ints(1))
        update = graph.add("Mul", result, share)
        total = graph.add("ScatterND", total, graph.add("Unsqueeze", own, graph.ints(1)), update, reduction="add")
    return total


MODELS = {"sum": make_sum, "gated": make_gated, "concat": make_concat, "update": make_update}
PLAN = """mesh: {{e: {0}}}
shard:
  - {{tensor: "experts.*.weight", experts: e, dims: [...]}}
"""


def run(path, folder, options):
    """What a model gives, or what is wrong."""
    command = ["cleave", "run", path, "--inputs", f"{folder}/in.npz", "--outputs", f"{folder}/out.npz", "--quiet", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else np.load(f"{folder}/out.npz")["y"]


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    x = RNG.standard_normal((TOKENS, HIDDEN)).astype(np.float32)
    np.savez(f"{folder}/in.npz", x=x)
    for ranks in (2, 4):
        with open(f"{folder}/{ranks}.yaml", "w") as file:
            file.write(PLAN.format(ranks))
    passed = failed = 0
    for name, make in MODELS.items():
        path, graph = f"{folder}/{name}.onnx", Graph()
        graph.save(path, make(graph))
        want = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        plans = [["--plan", f"{folder}/{ranks}.yaml"] for ranks in (2, 4)]
        for options in [[]] + plans + [plans[1] + ["--executor=program"]]:
            got = run(path, folder, options)
            # Sums of up to 64 products, over 8 experts in another order.
            problem = got if isinstance(got, str) else "" if np.allclose(got, want, rtol=1e-4, atol=1e-5) else "differs"
            passed, failed = passed + (not problem), failed + bool(problem)
            if problem:
                print(f"{name} {' '.join(options)}: {problem}")
    print(f"{passed} passed, {failed} failed")


if __name__ == "__main__":
    main()
