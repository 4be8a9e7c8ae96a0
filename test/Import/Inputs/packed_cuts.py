"""Weights of 4 and 2 bits under plans that cut each of their dims, evenly and not: by the evaluator, by a program, on the emulated device, and
as exported files, equal to onnxruntime (of 2 bits, which it has not, to DequantizeLinear's formula). What a plan may cut is told by elements:
of each size of a mesh the formula of bytes and blocks says whether it is refused.

Prints `N passed, N failed of N`; what failed comes before. `packed_cuts.py FOLDER`
"""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[1:1] = [TESTS, os.path.join(TESTS, "Export")]
import harness  # noqa: E402
import lockstep  # noqa: E402

ort.set_default_logger_severity(4)
WAYS = {"evaluator": [], "program": ["--executor=program"], "emulated": ["--device", "cuda-emulated"]}


class Case:
    """A model whose weight `w` shares bytes: shape in elements, how many share a byte, and how many a scale along each dim."""

    def __init__(self, folder, name, node, inputs, shape, blocks, bits=4, weight=None, outer=None):
        self.path, self.name = os.path.join(folder, name + ".onnx"), name
        self.shape, self.blocks, self.bits = shape, blocks, bits
        rng = np.random.default_rng(len(name))
        self.inputs = {key: value(rng) if callable(value) else value for key, value in inputs.items()}
        packed = rng.integers(0, 256, (*shape[:-1], shape[-1] * bits // 8)).astype(np.uint8)
        tensor = numpy_helper.from_array(packed, "w")
        if weight is not None:
            tensor = TensorProto(name="w", data_type=weight, dims=shape, raw_data=packed.tobytes())
        scales = numpy_helper.from_array((rng.random(outer) * 0.1 + 0.01).astype(np.float32), "s")
        nodes = [node] if isinstance(node, onnx.NodeProto) else node
        infos = [helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for key, value in self.inputs.items()]
        graph = helper.make_graph(nodes, "g", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [tensor, scales])
        opsets = [helper.make_opsetid("", 25 if bits == 2 else 21), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=13 if bits == 2 else 10), self.path)
        np.savez(self.path[:-5] + ".npz", **self.inputs)
        if bits == 2:
            numbers = ((packed[..., None] >> np.arange(0, 8, 2)) & 3).reshape(shape).astype(np.float64)
            if weight == TensorProto.INT2:
                numbers -= 4 * (numbers > 1)
            scale = numpy_helper.to_array(scales).astype(np.float64)
            for dim, block in enumerate(blocks if outer else ()):
                scale = np.repeat(scale, block, axis=dim)
            self.want = (self.inputs["x"].astype(np.float64) @ (numbers * scale)).astype(np.float32)
        else:
            # Optimized, it rounds what it multiplies to 8 bits.
            options = ort.SessionOptions()
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
            self.want = ort.InferenceSession(self.path, options, providers=["CPUExecutionProvider"]).run(None, self.inputs)[0]

    def reason(self, dim, ranks):
        """What an even cut is refused with, or an empty string."""
        extent = self.shape[dim]
        if extent % ranks:
            return f"has size {extent} in dim {dim}, which axis \"a\"={ranks} does not divide"
        size = extent // ranks
        for shared, what in ((8 // self.bits if dim == len(self.shape) - 1 else 1, "byte"), (self.blocks[dim], "scale")):
            if size % shared:
                return f"has size {extent} in dim {dim}, of which axis \"a\"={ranks} makes shards of {size}: {shared} elements share a {what}"
        return ""


def product(folder, name, kind, bits, shape, axis=None, block=0):
    """x times a weight of `shape`, with a scale for all or for each block along `axis`."""
    blocks = [block if dim == axis else 1 for dim in range(2)]
    outer = [extent // (block if dim == axis else 1) for dim, extent in enumerate(shape)] if block else ()
    attributes = {"axis": axis, "block_size": block} if block else {}
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["d"], **attributes), helper.make_node("MatMul", ["x", "d"], ["y"])]
    return Case(folder, name, nodes, {"x": lambda rng: rng.standard_normal((8, shape[0])).astype(np.float32)}, shape, blocks, bits,
                getattr(TensorProto, kind), outer)


def cases(folder):
    def f32(*shape):
        return lambda rng: rng.standard_normal(shape).astype(np.float32)

    made = [product(folder, kind.lower(), kind, bits, [64, 96]) for kind, bits in (("INT4", 4), ("UINT4", 4), ("INT2", 2), ("UINT2", 2))]
    made += [product(folder, f"{kind.lower()}_rows", kind, bits, [64, 96], 0, 16) for kind, bits in (("UINT4", 4), ("UINT2", 2))]
    made += [product(folder, f"{kind.lower()}_columns", kind, bits, [64, 96], 1, 16) for kind, bits in (("INT4", 4), ("INT2", 2))]
    nbits = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=96, N=40, bits=4, block_size=16)
    made.append(Case(folder, "nbits", nbits, {"x": f32(8, 96)}, [40, 6, 16], [1, 1, 1], outer=(40, 6)))
    rows = helper.make_node("GatherBlockQuantized", ["w", "i", "s"], ["y"], domain="com.microsoft", bits=4, block_size=16)
    ids = np.array([[3, 0, 39], [7, 7, 12]], np.int64)
    made.append(Case(folder, "rows", rows, {"i": ids}, [40, 96], [1, 16], outer=(40, 6)))
    return made


def plan(case, dim, ranks, uneven):
    path = f"{case.path[:-5]}-{dim}-{ranks}-{uneven}.yaml"
    dims = ", ".join("a" if at == dim else "_" for at in range(len(case.shape)))
    with open(path, "w") as file:
        file.write(f"mesh: {{a: {ranks}}}\nuneven: {str(uneven).lower()}\nshard:\n  - {{tensor: w, dims: [{dims}]}}\n")
    return path


def run(case, path, way):
    out = case.path[:-5] + ".out.npz"
    done = subprocess.run(["cleave", "run", case.path, "--plan", path, "--inputs", case.path[:-5] + ".npz", "--outputs", out, "--quiet", *WAYS[way]],
                          capture_output=True, text=True)
    return done.stderr.strip() or "fails" if done.returncode else harness.difference(np.load(out), {"out:y": case.want}, 1e-4, 2e-5)


def export(case, path):
    folder = path[:-5]
    done = subprocess.run(["cleave", "export", case.path, "--plan", path, "-o", folder, "--quiet"], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip() or "fails"
    # onnxruntime, optimizing these files, rounds what it multiplies to 8 bits; a wrong shard is off by about 1.
    return harness.difference(lockstep.Program(folder).run(case.inputs), {"out:y": case.want}, 2e-2, 1e-2)


def evenly(case, dim, ranks):
    """Refused where and as the formula says; right elsewhere."""
    reason = case.reason(dim, ranks)
    text = run(case, plan(case, dim, ranks, False), "evaluator")
    place = f"{case.path[:-5]}-{dim}-{ranks}-False.yaml:4:"
    return text if not reason else "" if reason in text and place in text else f"got {text!r}, expected {reason!r}"


def report(case):
    """A weight that is an input: its own shape and a rank's, in elements, beside those of the bytes."""
    model = onnx.load(case.path)
    weight = next(tensor for tensor in model.graph.initializer if tensor.name == "w")
    if weight.data_type != TensorProto.UINT8:
        return ""
    model.graph.initializer.remove(weight)
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.UINT8, weight.dims))
    path = case.path[:-5] + "-given.onnx"
    onnx.save(model, path)
    done = subprocess.run(["cleave", "shard", path, "--mesh", "a=2", "--shard", f"w=[a{', _' * (len(case.shape) - 1)}]", "--report", path + ".json",
                           "-o", os.devnull], capture_output=True, text=True)
    if done.returncode:
        return done.stderr
    with open(path + ".json") as file:
        found = next(entry for entry in json.load(file)["inputs"] if entry["name"] == "w")
    want = {"type": "ui4", "shape": case.shape, "local_shape": [case.shape[0] // 2, *case.shape[1:]]}
    return "" if found.get("holds") == want and found["shape"] == list(weight.dims) else f"{found}, expected {want}"


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    bad, count, left_out = [], 0, 0
    for case in cases(sys.argv[1]):
        tried = []
        for dim, extent in enumerate(case.shape):
            tried += [(evenly, (dim, ranks)) for ranks in (2, 3, 4, 5, 8, extent // 4, extent // 2, extent) if 1 < ranks <= 96]
            for ranks in (3, 5, 7):
                path = plan(case, dim, ranks, True)
                tried += [(run, (path, way)) for way in WAYS if way != "emulated" or ranks == 5]
                if ranks == 5:
                    tried.append((export, (path,)))
        if case.name == "nbits":
            tried.append((report, ()))
        count += len(tried)
        due = [(check, rest) for check, rest in tried if harness.is_due(f"{case.name} {check.__name__} {[os.path.basename(str(word)) for word in rest]}")]
        left_out += len(tried) - len(due)
        tried, results = due, [check(case, *rest) for check, rest in due]
        bad += [f"{case.name} {check.__name__} {rest}: {text}" for (check, rest), text in zip(tried, results) if text]
    return harness.sum_up(bad, count, left_out)


if __name__ == "__main__":
    sys.exit(main())
