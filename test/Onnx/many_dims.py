"""Tensors of more dims than programs once had, up to the 64 that numpy has, against ONNX's reference.

Usage: many_dims.py BUILD_DIR [NAME...]

Each op on tensors of 17, 30 and 64 dims, a few of which have more than one element: by the evaluator, as a program, and as one for a device that
this machine plays; and, with the first dim cut over two ranks, as a program.
"""
import os
import sys
import tempfile

import numpy as np
import onnx.parser
from onnx.reference import ReferenceEvaluator

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

RANKS = (17, 30, 64)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def words(numbers):
    return ", ".join(map(str, numbers))


def bodies(rank):
    """{op: (inputs, constants, nodes)} on x of `rank` dims."""
    shape = [2 if dim in (0, rank // 3, rank - 1) else 1 for dim in range(rank)]
    x = f"float[{words(shape)}] x"
    turned, first, last = list(range(rank))[::-1], rank // 3, rank - 1
    made = {
        "relu": (x, "", "y = Relu(x)"),
        "add": (f"{x}, float[2] z", "", "y = Add(x, z)"),
        "transpose": (x, "", f"e = Exp(x) y = Transpose<perm = [{words(turned)}]>(e)"),
        "reduce": (x, f"int64[2] a = {{{first}, {last}}}", "y = ReduceSum(x, a)"),
        "softmax": (x, "", f"y = Softmax<axis = {first}>(x)"),
        "concat": (x, "", f"y = Concat<axis = {first}>(x, x)"),
        "slice": (x, f"int64[1] s = {{1}}, int64[1] e = {{2}}, int64[1] a = {{{first}}}", "y = Slice(x, s, e, a)"),
        "gather": (f"{x}, int64[2] i", "", f"y = Gather<axis = {first}>(x, i)"),
        "reshape": ("float[2, 4] x", f"int64[{rank}] s = {{{words(shape)}}}", f"e = Exp(x) r = Reshape(e, s) y = Transpose<perm = [{words(turned)}]>(r)"),
        "there and back": (x, "int64[2] s = {2, 4}", f"t = Transpose<perm = [{words(turned)}]>(x) y = Reshape(t, s)"),
        "pad": (x, f"int64[{2 * rank}] p = {{{words([1] + [0] * (2 * rank - 1))}}}", "y = Pad(x, p)"),
        "expand": ("float[2] x", f"int64[{rank}] s = {{{words([1] * (rank - 2) + [3, 2])}}}", "y = Expand(x, s)"),
        "top_k": (x, "int64[1] k = {1}", "y, i = TopK(x, k)"),
    }
    if rank == 64:
        del made["top_k"]  # the reference takes one dim more
    if rank <= 24:
        made["matmul"] = (f"{x}, float[2, 3] z", "", "y = MatMul(x, z)")
    if rank <= len(LETTERS):
        term = LETTERS[:rank]
        made["einsum"] = (f"{x}, float[2] z", "", f'y = Einsum<equation = "{term},{term[0]}->{term[::-1]}">(x, z)')
    return made


def write(path, inputs, constants, nodes):
    """A model, its inputs, and these with what comes of them."""
    outputs = "float[] y" + (", int64[] i" if "TopK" in nodes else "")
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> g ({inputs}) => ({outputs}) <{constants}> {{ {nodes} }}')
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    random, arrays = np.random.default_rng(3), {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        is_index = value.type.tensor_type.elem_type == onnx.TensorProto.INT64
        arrays[value.name] = random.integers(0, 2, shape) if is_index else random.standard_normal(shape).astype(np.float32)
    results = ReferenceEvaluator(model).run(None, arrays)
    onnx.save(model, path + ".onnx")
    np.savez(path + ".in.npz", **arrays)
    np.savez(path + ".npz", **{f"in:{key}": value for key, value in arrays.items()},
             **{f"out:{value.name}": result for value, result in zip(model.graph.output, results)})
    return model.graph.input[0].type.tensor_type.shape.dim


def run_cut(build, path, rank):
    done = harness.cleave(build, "run", path + ".onnx", "--inputs", path + ".in.npz", "--mesh", "m=2", "--shard", f"x=[m{', _' * (rank - 1)}]",
                          "--executor", "program", "--check", "--outputs", path + ".out.npz", "--quiet")
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr[-300:]}"
    return harness.difference(dict(np.load(path + ".out.npz")), dict(np.load(path + ".npz")), 1e-4, 1e-5)


def main():
    build, wanted, _ = harness.arguments()
    os.environ["CLEAVE_CUDA_LIBRARY"] = "libcleave_emulated_cuda.so"
    cases = {f"{op} of {rank}": body for rank in RANKS for op, body in bodies(rank).items()}
    with tempfile.TemporaryDirectory() as folder:
        paths, ranks = {}, {}
        for name, body in harness.select(cases, wanted).items():
            paths[name] = os.path.join(folder, name.replace(" ", "_"))
            ranks[name] = len(write(paths[name], *body))
        rows = [(name, path + ".onnx", path + ".npz", 1e-4, 1e-5) for name, path in paths.items()]
        results = harness.each(lambda flags: harness.conformance(build, rows, *flags), [[], ["--program"], ["--emulated"]])
        texts = {f"{name}{way}": "" if status == "PASS" else f"{status} {reason}"
                 for way, result in zip(("", ", program", ", emulated"), results) for name, (status, reason) in result.items()}
        texts |= dict(zip((f"{name}, cut" for name in paths), harness.each(lambda name: run_cut(build, paths[name], ranks[name]), paths)))
        return harness.run(texts, lambda text: text)


if __name__ == "__main__":
    sys.exit(main())
