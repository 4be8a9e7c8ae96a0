"""Programs and exports that were made for the value of an input take no other one: fixed_values.py FOLDER

Each model below computes a shape, axes, a count or a branch from an input. It is compiled and exported for one value; with that the
program gives what onnxruntime does, with another one it is refused, wherever its ranks are, and the exported model has no such input.
"""
import json
import os
import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
import onnxruntime

HEAD = '<ir_version: 10, opset_import: ["": 18]>\n'
X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
# Name: graph, its value, another one.
CASES = {
    "shape": ("(float[3,4] x, int64[2] v) => (float[a,b] y) { y = Reshape(x, v) }", [2, 6], [6, 2]),
    "axes": ("(float[3,4] x, int64[1] v) => (float[a,1] y) { y = ReduceSum(x, v) }", [1], [-1]),
    "ends": ("(float[3,4] x, int64[1] v) => (float[3,b] y) <int64[1] z = {0}, int64[1] one = {1}> { y = Slice(x, z, v, one) }", [2], [3]),
    "computed": ("(float[3,4] x, int64[2] v) => (float[a,b] y) <int64[2] one = {1, 1}> { w = Mul(v, one) y = Reshape(x, w) }", [4, 3], [12, 1]),
    "top": ("(float[3,4] x, int64[1] v) => (float[3,k] y) { y, i = TopK(x, v) }", [2], [3]),
    "repeats": ("(float[3,4] x, int64[2] v) => (float[a,b] y) { y = Tile(x, v) }", [1, 2], [2, 1]),
    "scales": ("(float[3,4] x, float[2] v) => (float[a,b] y) { y = Resize(x, , v) }", [1, 2], [2, 1]),
    "bound": ("(float[3,4] x, float v) => (float[n] y) <float z = {0}, float d = {1}> { r = Range(z, v, d) s = Size(r) f = Cast<to = 1>(s) "
              "m = ReduceMax<keepdims = 0>(x) p = Mul(m, f) y = Add(r, p) }", 4, 5),
    "branch": ("(float[3,4] x, bool v) => (float[a,b] y) { y = If(v) <then_branch = t () => (float[3,4] p) { p = Neg(x) }, "
               "else_branch = e () => (float[4,3] q) { q = Transpose(x) }> }", True, False),
    "trips": ("(float[3,4] x, int64 v) => (float[a,4] y) <bool c = {1}> { y = Loop(v, c, x) <body = b (int64 i, bool k, float[m,4] s) => "
              "(bool k2, float[m2,4] s2) { k2 = Identity(k) s2 = Concat<axis = 0>(s, s) }> }", 2, 1),
    "pads": ("(float[3,4] x, int64[4] v) => (float[a,b] y) { y = Pad(x, v) }", [0, 1, 0, 0], [0, 0, 0, 1]),
    "steps": ("(float[3,4] x, int64[2] v) => (float[a,b] y) { y = Expand(x, v) }", [3, 4], [1, 4]),
}


def run(folder, *words, code=0):
    done = subprocess.run(words, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == code, f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}"
    return done.stdout


def check(folder, name, text, value, other):
    model = onnx.parser.parse_model(HEAD + f"{name} {text}")
    onnx.save(model, os.path.join(folder, name + ".onnx"))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    dtype = onnx.helper.tensor_dtype_to_np_dtype(model.graph.input[1].type.tensor_type.elem_type)
    feeds = [{"x": X, "v": np.array(each, dtype)} for each in (value, other)]
    wanted = session.run(None, feeds[0])[0]
    for number, feed in enumerate(feeds):
        np.savez(os.path.join(folder, f"{name}{number}.npz"), **feed)
    for where, words in (("one", []), ("two", ["--mesh", "d=2", "--shard", "x=[_, d]"])):
        program = f"{name}.{where}.cleave"
        run(folder, "cleave", "compile", name + ".onnx", "--inputs", name + "0.npz", *words, "-o", program, "--quiet")
        run(folder, "cleave-run", program, "--inputs", name + "0.npz", "--outputs", "y.npz")
        got = np.load(os.path.join(folder, "y.npz"))["y"]
        assert got.shape == wanted.shape and np.array_equal(got, wanted), f"{name}: {got}, expected {wanted}"
        told = run(folder, "cleave-run", program, "--inputs", name + "1.npz", code=1)
        assert 'input "v" has another value than the one that the program was compiled for' in told, told
        run(folder, "cleave-run", program)  # without inputs it is the value that there is
        assert json.loads(run(folder, "cleave", "inspect", program, "--json"))["variants"][0]["inputs"][1]["fixed"] is True
    run(folder, "cleave", "export", name + ".onnx", "--inputs", name + "0.npz", "-o", name, "--quiet")
    exported = os.path.join(folder, name)
    with open(os.path.join(exported, "export.json")) as file:
        told = json.load(file)
    assert [port["name"] for port in told["inputs"]] == ["x"] and [port["name"] for port in told["fixed_inputs"]] == ["v"], told
    onnx.checker.check_model(os.path.join(exported, "rank-0.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(os.path.join(exported, "rank-0.onnx"))
    assert [each.name for each in session.get_inputs()] == ["x"]
    assert np.array_equal(session.run(None, {"x": X})[0], wanted), name


def main():
    for name, case in CASES.items():
        check(sys.argv[1], name, *case)
    print(f"{len(CASES)} models hold for their values")


if __name__ == "__main__":
    main()
