"""Imports models that are large in one way or another, each within 10 seconds and 1 GB; prints how it went.

The last one is an attack: thirty functions that each call the next one twice.
"""

import os
import resource
import subprocess
import tempfile

import onnx
from onnx import TensorProto, helper

SECONDS, KILOBYTES, NODES = 10, 1 << 20, 20_000


def vector(name):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [4])


def model(nodes, last, initializers=(), functions=()):
    graph = helper.make_graph(nodes, "g", [vector("t0")] if not initializers else [], [vector(last)], initializers)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("l", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


def chain(op, *more):
    return [helper.make_node(op, [f"t{i}", *more], [f"t{i + 1}"], name=f"n{i}") for i in range(NODES)]


def doubling(depth):
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("l", 1)]
    for i in range(depth):
        callee, domain = (f"f{i + 1}", "l") if i + 1 < depth else ("Relu", "")
        body = [helper.make_node(callee, ["a"], ["b"], domain=domain), helper.make_node(callee, ["b"], ["c"], domain=domain)]
        yield helper.make_function("l", f"f{i}", ["a"], ["c"], body, opsets)


def models():
    last = f"t{NODES}"
    yield "chain", model(chain("Relu"), last)
    yield "identities", model(chain("Identity"), last)
    ones = helper.make_tensor("t0", TensorProto.FLOAT, [4], [1, 1, 1, 1])
    yield "constants", model(chain("Add", "t0"), last, [ones])
    yield "many_calls", model([helper.make_node("f0", [f"t{i}"], [f"t{i + 1}"], domain="l") for i in range(NODES)], last,
                              functions=list(doubling(2)))
    yield "doubling", model([helper.make_node("f0", ["t0"], ["y"], domain="l", name="n")], "y", functions=list(doubling(30)))


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, proto in models():
            onnx.save(proto, os.path.join(folder, "model.onnx"))
            done = subprocess.run(["cleave-translate", "--import-onnx", "model.onnx", "-o", "out.mlir"], cwd=folder, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
            text = done.stdout.strip()
            if done.returncode == 0:
                with open(os.path.join(folder, "out.mlir")) as file:
                    text = f"{sum(' = nn.' in line for line in file)} ops"
            print(f"{name}: exit {done.returncode}, {text}")
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < KILOBYTES, "too much memory"


if __name__ == "__main__":
    main()
