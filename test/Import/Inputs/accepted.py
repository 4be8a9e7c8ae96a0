"""Models that onnxruntime takes although their nodes are out of order, tensors are sparse, lengths are left out, or weights are inputs.

    accepted.py FOLDER

Each is computed by onnxruntime, by the evaluator and by a compiled program, and on two ranks; all give the same.
"""
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T
from onnx import helper, numpy_helper, parser

FOLDER = sys.argv[1]
RANDOM = np.random.default_rng(7)
X = RANDOM.standard_normal((4, 6)).astype(np.float32)
HEAD = '<ir_version: 10, opset_import: ["": 18, "own": 1]>\n'


def run(*words, code=0):
    done = subprocess.run(words, cwd=FOLDER, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == code, f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}"
    return done.stdout


def check(name, model, feeds, wanted=None):
    """Expected values are onnxruntime's of `wanted`, the same model in the usual form; else of the model."""
    onnx.save(model, os.path.join(FOLDER, name + ".onnx"))
    np.savez(os.path.join(FOLDER, "in.npz"), **feeds)
    session = onnxruntime.InferenceSession((wanted or model).SerializeToString())
    wanted = session.run(None, feeds)
    for words in ([], ["--executor", "program"], ["--mesh", "d=2", "--shard", "x=[d, _]"]):
        run("cleave", "run", name + ".onnx", "--inputs", "in.npz", "--outputs", "out.npz", "--quiet", *words)
        got = np.load(os.path.join(FOLDER, "out.npz"))
        for output, value in zip(model.graph.output, wanted):
            assert got[output.name].shape == value.shape and np.allclose(got[output.name], value, 1e-5, 1e-5), \
                f"{name} {words}: {got[output.name]}, expected {value}"


def parse(text):
    return parser.parse_model(HEAD + text)


def check_order():
    sorted_text = "[a] a = Neg(x) [b] b = Exp(a) [c] c = Add(a, b) [d] y = Mul(c, x)"
    for seed in range(4):
        model = parse("m (float[4,6] x) => (float[4,6] y) { " + sorted_text + " }")
        order = np.random.default_rng(seed).permutation(4)
        shuffled = parse("m (float[4,6] x) => (float[4,6] y) { " + sorted_text + " }")
        del shuffled.graph.node[:]
        shuffled.graph.node.extend(model.graph.node[at] for at in order)
        check(f"order{seed}", shuffled, {"x": X}, model)
    # Within a branch and a function, and a node that comes before what its body reads of the graph around it.
    branches = ("<then_branch = t () => (float[4,6] p) { [q] p = Neg(q) [q0] q = Add(late, x) }, "
                "else_branch = e () => (float[4,6] r) { r = Abs(late) }>")
    sorted_branches = branches.replace("[q] p = Neg(q) [q0] q = Add(late, x)", "q = Add(late, x) p = Neg(q)")
    graph = "m (float[4,6] x, bool k) => (float[4,6] y) {{ {} }}"
    check("bodies", parse(graph.format(f"y = If(k) {branches} late = Relu(x)")), {"x": X, "k": np.array(True)},
          parse(graph.format(f"late = Relu(x) y = If(k) {sorted_branches}")))
    function = '\n<domain: "own", opset_import: ["": 18]>\nf (a) => (c) {{ {} }}'
    graph = "m (float[4,6] x) => (float[4,6] y) { y = own.f(x) }"
    check("function", parse(graph + function.format("c = Neg(b) b = Exp(a)")), {"x": X}, parse(graph + function.format("b = Exp(a) c = Neg(b)")))


def sparse(array, name, linear):
    places = np.flatnonzero(array)
    indices = places if linear else np.stack(np.unravel_index(places, array.shape), -1)
    made = onnx.SparseTensorProto(dims=array.shape)
    made.values.CopyFrom(numpy_helper.from_array(array.ravel()[places], name))
    made.indices.CopyFrom(numpy_helper.from_array(indices.astype(np.int64)))
    return made


def check_sparse():
    x, y = helper.make_tensor_value_info("x", T.FLOAT, [4, 6]), helper.make_tensor_value_info("y", T.FLOAT, None)
    for number, (shape, keep) in enumerate([((6, 5), 0.3), ((6, 40), 0.05), ((6, 1), 0), ((6, 3), 1)]):
        for dtype in (np.float32, np.float16, np.float64):
            dense = (RANDOM.standard_normal(shape) * (RANDOM.random(shape) < keep)).astype(dtype)
            for linear in (True, False):
                cast = [helper.make_node("Cast", ["w"], ["v"], to=T.FLOAT), helper.make_node("MatMul", ["x", "v"], ["y"])]
                name, opset = f"sparse{number}{np.dtype(dtype)}{linear}", [helper.make_opsetid("", 18)]
                plain = helper.make_graph(cast, "g", [x], [y], [numpy_helper.from_array(dense, "w")])
                plain = helper.make_model(plain, opset_imports=opset, ir_version=10)
                node = helper.make_node("Constant", [], ["w"], sparse_value=sparse(dense, "", linear))
                as_node = helper.make_model(helper.make_graph([node, *cast], "g", [x], [y]), opset_imports=opset, ir_version=10)
                as_weight = helper.make_graph(cast, "g", [x], [y], sparse_initializer=[sparse(dense, "w", linear)])
                as_weight = helper.make_model(as_weight, opset_imports=opset, ir_version=10)
                check(name + "node", as_node, {"x": X}, plain)
                check(name + "weight", as_weight, {"x": X}, plain)


def check_external():
    weight = RANDOM.standard_normal((6, 50)).astype(np.float32)
    with open(os.path.join(FOLDER, "w.bin"), "wb") as file:
        file.write(bytes(8) + weight.tobytes() + bytes(16))
    tensor = T(dims=weight.shape, data_type=T.FLOAT, name="w", data_location=T.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", "8")):
        tensor.external_data.add(key=key, value=value)
    x, y = helper.make_tensor_value_info("x", T.FLOAT, [4, 6]), helper.make_tensor_value_info("y", T.FLOAT, [4, 50])
    node = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    model, plain = (helper.make_model(helper.make_graph(node, "g", [x], [y], [each]), opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
                    for each in (tensor, numpy_helper.from_array(weight, "w")))
    check("external", model, {"x": X}, plain)
    tensor.external_data[1].value = "32"
    model.graph.initializer[0].CopyFrom(tensor)
    onnx.save(model, os.path.join(FOLDER, "short.onnx"))
    told = run("cleave", "run", "short.onnx", code=1)
    assert "external data needs 1200 bytes from byte 32 of 'w.bin', which has 1224 bytes" in told, told


def check_defaults():
    for name, shape in (("small", [6]), ("large", [4, 6])):
        weight, other = RANDOM.standard_normal((2, *shape)).astype(np.float32)
        graph = parse(f"m (float[4,6] x, float{shape} w) => (float[4,6] y) {{ y = Mul(x, w) }}").graph
        graph.initializer.append(numpy_helper.from_array(weight, "w"))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=3 if name == "small" else 10)
        given = {"x": X, "w": other}
        plain = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
        check(f"default-{name}", model, {"x": X}, plain)
        check(f"given-{name}", model, given, plain)
        path = f"given-{name}.onnx"
        # Compiled, stored and exported for a value of the caller's, which is an input then.
        np.savez(os.path.join(FOLDER, "in.npz"), **given)
        np.savez(os.path.join(FOLDER, "x.npz"), x=X)
        run("cleave", "compile", path, "--inputs", "in.npz", "-o", "p.cleave", "--quiet")
        run("cleave-run", "p.cleave", "--inputs", "in.npz", "--outputs", "out.npz")
        assert np.allclose(np.load(os.path.join(FOLDER, "out.npz"))["y"], X * other, 1e-6)
        run("cleave", "compile", path, "--shape", "w=" + "x".join(map(str, shape)), "-o", "p.cleave", "--quiet")
        run("cleave-run", "p.cleave", "--inputs", "in.npz", "--outputs", "out.npz")
        assert np.allclose(np.load(os.path.join(FOLDER, "out.npz"))["y"], X * other, 1e-6)
        run("cleave", "export", path, "--inputs", "in.npz", "-o", f"ranks-{name}", "--quiet")
        session = onnxruntime.InferenceSession(os.path.join(FOLDER, f"ranks-{name}", "rank-0.onnx"))
        assert np.allclose(session.run(None, given)[0], X * other, 1e-6)
        # Made without one, they say so.
        run("cleave", "compile", path, "-o", "p.cleave", "--quiet")
        assert 'the program has no input "w"' in run("cleave-run", "p.cleave", "--inputs", "in.npz", code=1)
        run("cleave", "shard", path, "--mesh", "d=2", "--shard", "x=[d, _]", "-o", "p.mlir", "--quiet")
        run("cleave", "run", "p.mlir", "--inputs", "x.npz", "--quiet")
        told = run("cleave", "run", "p.mlir", "--inputs", "in.npz", code=1)
        assert "in.npz: 'w' is an input of the model that has a default, and this file was imported without another value for it" in told, told


for each in (check_order, check_sparse, check_external, check_defaults):
    each()
print("all accepted")
