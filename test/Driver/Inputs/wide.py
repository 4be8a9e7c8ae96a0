"""Takes nodes of thousands of operands and outputs all the way, each command within seconds of processor time: wide.py FOLDER
[COUNT [SECONDS]]

What is spent for an operand must not grow with the number of operands. Machine code takes four times as long as all else may.
"""
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(1, os.path.join(sys.path[0], "..", ".."))
import harness  # noqa: E402

FOLDER = sys.argv[1]
COUNT, SECONDS = (float(word) for word in (sys.argv[2:] + ["2000", "2.5"][len(sys.argv) - 2:]))
COUNT = int(COUNT)
PARTS = [f"p{i}" for i in range(COUNT)]
X = np.random.default_rng(3).standard_normal((2 * COUNT, 4)).astype(np.float32)


def models():
    """Each with the function that it computes."""
    split = helper.make_node("Split", ["x"], PARTS, axis=0, num_outputs=COUNT)
    relus = [helper.make_node("Relu", [part], ["r" + part]) for part in PARTS]
    made = ["r" + part for part in PARTS]
    parts = np.maximum(X, 0).reshape(COUNT, 2, 4)
    yield "concat", [split, *relus, helper.make_node("Concat", made, ["y"], axis=0)], np.maximum(X, 0)
    yield "aside", [split, *relus, helper.make_node("Concat", made, ["y"], axis=1)], np.concatenate(list(parts), 1)
    for op, wanted in (("Sum", parts.sum(0)), ("Max", parts.max(0)), ("Min", parts.min(0)), ("Mean", parts.mean(0))):
        yield op, [split, *relus, helper.make_node(op, made, ["y"])], wanted
    sequence = [helper.make_node("SequenceConstruct", made, ["s"]), helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)]
    yield "sequence", [split, *relus, *sequence], np.maximum(X, 0)
    letters = ",".join(["ij"] * COUNT) + "->ij"
    yield "einsum", [helper.make_node("Slice", ["x", "zero", "two"], ["z"]), helper.make_node("Sign", ["z"], ["w"]),
                     helper.make_node("Einsum", ["w"] * COUNT, ["y"], equation=letters)], np.sign(X[:2]) ** (COUNT % 2 or 2)


def main():
    slow = []
    known = {name: rest for name, *rest in models()}
    for name in harness.draw(list(known)):
        nodes, wanted = known[name]
        numbers = [helper.make_tensor(key, TensorProto.INT64, [1], [value]) for key, value in (("zero", 0), ("two", 2))]
        graph = helper.make_graph(nodes, "wide", [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, wanted.shape)], numbers)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), os.path.join(FOLDER, "m.onnx"))
        np.savez(os.path.join(FOLDER, "x.npz"), x=X)
        for words in (["import", "-o", "m.mlir"], ["shard", "--mesh", "a=2", "--shard", "x=[a, _]", "-o", "m.mlir"],
                      ["shard", "--mesh", "a=2", "--shard", "x=[_, a]", "-o", "m.mlir"], ["compile", "-o", "m.cleave"],
                      ["export", "-o", "ranks"], ["run", "--inputs", "x.npz", "--outputs", "y.npz"],
                      ["run", "--inputs", "x.npz", "--outputs", "y.npz", "--mesh", "a=2", "--shard", "x=[a, _]"]):
            begin = os.times()
            done = subprocess.run(["cleave", words[0], "m.onnx", *words[1:], "--quiet"] if words[0] != "import" else ["cleave", "import", "m.onnx", *words[1:]],
                                  cwd=FOLDER, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            end = os.times()
            seconds = end.children_user + end.children_system - begin.children_user - begin.children_system
            assert done.returncode == 0, f"{name}: {words}: exit {done.returncode}\n{done.stdout}"
            if words[0] == "run":
                got = np.load(os.path.join(FOLDER, "y.npz"))["y"]
                assert got.shape == wanted.shape and np.allclose(got, wanted, 1e-3, 1e-3), f"{name}: {got}, expected {wanted}"
            if seconds > SECONDS * (4 if words[0] == "compile" else 1) or os.environ.get("WIDE_TIMES"):
                slow.append(f"{name}: cleave {' '.join(words)} took {seconds:.2f} s")
    print("\n".join(slow or ["all within seconds"]))


if __name__ == "__main__":
    main()
