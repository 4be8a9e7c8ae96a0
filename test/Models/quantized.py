"""Quantized models, made here: what onnxruntime's quantizer makes of fixtures, and a network with weights of 8 and 4 bits, whole, under
data, tensor and fully sharded plans; and onnxruntime's own quantized ops. Against onnxruntime.

Usage: quantized.py BUILD_DIR [NAME...]

The quantizer writes products of integers with scales found at run time (dynamic), pairs of quantizing and dequantizing (QDQ), or ops
on integers (QOperator). A sum that is rounded otherwise moves a quantized element by one step, and what depends on it by a little: so an
output may be off by 3 % of its largest element at most, and by 0.5 % on the average, but where all arithmetic is of integers to the
last, nothing is. Of the network with stored weights nothing is rounded, and what is gathered must have the bytes that the weights have.
"""

import json
import logging
import os
import shutil
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization as q

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

logging.disable(logging.WARNING)  # of the quantizer, about speed
HERE = os.path.dirname(os.path.abspath(__file__))
# Axis "data" cuts batches, "model" weights.
MESHES = ["one=1", "data=2", "model=2", "data=2,model=2"]
LARGEST, MEAN = 3e-2, 5e-3


class Recorded(q.CalibrationDataReader):
    """The recorded inputs of a fixture, once."""

    def __init__(self, inputs):
        self.rest = [inputs]

    def get_next(self):
        return self.rest.pop() if self.rest else None


def dynamic(source, target, inputs, **options):
    q.quantize_dynamic(source, target, weight_type=q.QuantType.QInt8, **options)


def static(source, target, inputs, **options):
    q.quantize_static(source, target, Recorded(inputs), **options)


# name: (fixture, quantizer, its options)
CASES = {
    "bert dynamic": ("bert_ts17", dynamic, {"per_channel": True}),
    "bert QDQ": ("bert_ts17", static, {"quant_format": q.QuantFormat.QDQ}),
    "gpt2 dynamic": ("gpt2_ts17", dynamic, {}),
    "vit QDQ by channels": ("vit_dyn18", static, {"quant_format": q.QuantFormat.QDQ, "per_channel": True}),
    "resnet QDQ": ("resnet_ts17", static, {"quant_format": q.QuantFormat.QDQ, "per_channel": True}),
    "resnet QOperator": ("resnet_ts17", static, {"quant_format": q.QuantFormat.QOperator}),
    "vit QDQ of 16 bits": ("vit_dyn18", static, {"quant_format": q.QuantFormat.QDQ, "activation_type": q.QuantType.QUInt16,
                                                 "weight_type": q.QuantType.QInt8}),
    "vit QDQ, weights of 4 bits": ("vit_dyn18", static, {"quant_format": q.QuantFormat.QDQ, "weight_type": q.QuantType.QInt4}),
}


def infer(path, inputs):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def rule(name, rank, dim, axis):
    return ["--shard", f"{name}=[{', '.join(axis if dim == other else '_' for other in range(rank))}]"]


def get_rules(model, inputs, mesh):
    """Batches over `data`; columns of every stored matrix and kernel that are even over `model`, by the name of the quantized weight."""
    rules = []
    if "data" in mesh:
        rules += [word for name, array in inputs.items() if array.ndim and array.shape[0] % 2 == 0 for word in rule(name, array.ndim, 0, "data")]
    if "model" in mesh:
        for tensor in model.graph.initializer:
            dims = list(tensor.dims)
            dim = 0 if len(dims) == 4 else 1
            is_weight = len(dims) in (2, 4) and tensor.data_type in (TensorProto.INT8, TensorProto.UINT8, TensorProto.INT4)
            # Of two numbers in a byte a shard has both.
            if is_weight and dims[dim] % 4 == 0 and min(dims[:2]) > 1:
                rules += rule(tensor.name, len(dims), dim, "model")
    return rules


def run(build, path, folder, inputs, options):
    """(outputs, report) or what went wrong."""
    np.savez(f"{folder}/in.npz", **inputs)
    done = harness.cleave(build, "run", path, "--inputs", f"{folder}/in.npz", "--outputs", f"{folder}/out.npz", "--report", f"{folder}/r.json",
                          "--quiet", *options)
    if done.returncode:
        return f"exit {done.returncode}: {(done.stderr + done.stdout)[-400:]}", None
    with np.load(f"{folder}/out.npz") as arrays, open(f"{folder}/r.json") as file:
        return dict(arrays), json.load(file)


def compare(got, want):
    for name, expected in want.items():
        have = got[name].astype(np.float64)
        scale = max(float(np.abs(expected).max(initial=0)), 1e-6)
        apart = np.abs(have - expected) / scale
        if not apart.max(initial=0) <= LARGEST or not apart.mean() <= MEAN:
            return f"{name} is off by {apart.max():.3g} of its largest element, {apart.mean():.3g} on the average"
    return ""


def quantized(build, name, mesh):
    fixture, quantizer, options = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        with np.load(f"{HERE}/{fixture}.npz") as arrays:
            inputs = {key[3:]: arrays[key] for key in arrays if key.startswith("in:")}
        path, copy = f"{folder}/q.onnx", f"{folder}/{fixture}.onnx"
        shutil.copy(f"{HERE}/{fixture}.onnx", copy)  # beside which the quantizer writes
        quantizer(copy, path, inputs, **options)
        model = onnx.load(path)
        got, report = run(build, path, folder, inputs, ["--mesh", mesh, *get_rules(model, inputs, mesh)])
        if report is None:
            return got
        if mesh == "model=2" and not report["parameters"]["bytes_per_rank"] < 0.9 * report["parameters"]["bytes"]:
            return f"a rank holds all weights: {report['parameters']}"
        return compare(got, infer(path, inputs))


# ===--- Weights that are stored small, and travel so -------------------------===


HIDDEN = 256
STORED = {"INT8": (TensorProto.INT8, 8), "INT4": (TensorProto.INT4, 4), "UINT4": (TensorProto.UINT4, 4)}
SCALES = {"by columns": (1, 0), "by blocks of 32": (0, 32)}


def make_network(kind, scales, rows, path):
    """Two layers whose weights are dequantized where they are used; the inputs."""
    rng = np.random.default_rng(3)
    number, bits = STORED[kind]
    axis, block = SCALES[scales]
    nodes, weights, last = [], [], "x"
    for layer in range(2):
        low = 0 if kind[0] == "U" else -(1 << (bits - 1))
        values = rng.integers(low, low + (1 << bits), (HIDDEN, HIDDEN))
        dtype = helper.tensor_dtype_to_np_dtype(number)
        shape = (HIDDEN // block, HIDDEN) if block else (HIDDEN,)
        weights += [numpy_helper.from_array(values.astype(dtype), f"w{layer}"),
                    numpy_helper.from_array((rng.random(shape, np.float32) + 0.5) / 100, f"s{layer}"),
                    numpy_helper.from_array(rng.integers(low, low + (1 << bits), shape).astype(dtype), f"z{layer}")]
        nodes += [helper.make_node("DequantizeLinear", [f"w{layer}", f"s{layer}", f"z{layer}"], [f"f{layer}"], axis=axis, block_size=block),
                  helper.make_node("MatMul", [last, f"f{layer}"], [f"y{layer}"]), helper.make_node("Tanh", [f"y{layer}"], [f"t{layer}"])]
        last = f"t{layer}"
    graph = helper.make_graph(nodes, "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows, HIDDEN))],
                              [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return {"x": rng.standard_normal((rows, HIDDEN)).astype(np.float32)}


# plan: (mesh, rules of the weights, rows, rule of rows; what a rank sends in bytes, by bytes of a weight)
PLANS = {
    # ZeRO-3: each weight is gathered, of which a rank has a quarter that three others get. Of few rows activations would be sent instead.
    "fully sharded": ("data=4", ["[data, _]"] * 2, 2048, "[data, _]", lambda weight: 2 * 3 * weight // 4),
    "fully sharded by columns": ("data=4", ["[_, data]"] * 2, 2048, "[data, _]", lambda weight: 2 * 3 * weight // 4),
    # Megatron: one sum of activations, weights stay.
    "tensor": ("model=4", ["[_, model]", "[model, _]"], 8, "[_, _]", lambda weight: 2 * 3 * 8 * HIDDEN * 4 // 4),
}


def stored(build, kind, scales, plan, how):
    mesh, rules, count, rows, formula = PLANS[plan]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/n.onnx"
        inputs = make_network(kind, scales, count, path)
        options = ["--mesh", mesh, *[word for layer in range(2) for word in ("--shard", f"w{layer}={rules[layer]}")]]
        options += ["--shard", f"x={rows}", "--shard", f"t1={rows}"]
        got, report = run(build, path, folder, inputs, [*options, *how])
        if report is None:
            return got
        weight = HIDDEN * HIDDEN * STORED[kind][1] // 8
        sent = sum(total["wire_bytes_per_rank"] for total in report["totals"].values())
        if sent != formula(weight):
            return f"a rank sends {sent} bytes, expected {formula(weight)}"
        want = infer(path, inputs)
        return "" if all(np.allclose(got[name], want[name], rtol=1e-4, atol=1e-4) for name in want) else "other values than onnxruntime's"


# ===--- onnxruntime's ops, one by one --------------------------------------===


def numbers(seed, *shape, kind=np.uint8):
    info = np.iinfo(kind)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, endpoint=True).astype(kind)


X, A, B = numbers(1, 2, 4, 6, 6), numbers(2, 3, 8), numbers(3, 8, 5, kind=np.int8)
SCALE, ZERO = np.float32(0.02), np.uint8(120)
# Operands: x with scale and zero point, then those of y.
UNARY, SMALL = [X, SCALE, ZERO, np.float32(0.01), np.uint8(100)], [X, SCALE, ZERO, np.float32(1 / 256), np.uint8(0)]
BINARY = [A, SCALE, ZERO, A[1], SCALE, ZERO, np.float32(0.03), np.uint8(110)]
POOL = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
SUMS, SCALES_OF_B = np.arange(5).astype(np.int32) * 1000, np.linspace(0.01, 0.03, 5).astype(np.float32)
# name: (op, its operands, attributes)
OPS = {
    "QLinearAdd": ("QLinearAdd", BINARY, {}),
    "QLinearMul": ("QLinearMul", BINARY, {}),
    "QLinearSigmoid": ("QLinearSigmoid", SMALL, {}),
    "QLinearLeakyRelu": ("QLinearLeakyRelu", UNARY, {"alpha": 0.2}),
    "QLinearSoftmax": ("QLinearSoftmax", SMALL, {"axis": 1, "opset": 13}),
    "QLinearSoftmax of old": ("QLinearSoftmax", SMALL, {"axis": 2, "opset": 11}),
    "QLinearAveragePool": ("QLinearAveragePool", UNARY, POOL),
    "QLinearAveragePool with padding": ("QLinearAveragePool", UNARY, {**POOL, "count_include_pad": 1}),
    "QLinearAveragePool, channels last": ("QLinearAveragePool", UNARY, {**POOL, "channels_last": 1}),
    "QLinearGlobalAveragePool": ("QLinearGlobalAveragePool", UNARY, {"channels_last": 0}),
    "QLinearGlobalAveragePool, channels last": ("QLinearGlobalAveragePool", UNARY, {"channels_last": 1}),
    "QLinearConcat": ("QLinearConcat", [*UNARY[3:], X, SCALE, ZERO, X, np.float32(0.005), np.uint8(7)], {"axis": 1}),
    "QGemm": ("QGemm", [A, SCALE, ZERO, B, np.float32(0.01), np.int8(3), SUMS, np.float32(0.2), np.uint8(90)], {}),
    "QGemm of columns": ("QGemm", [A, SCALE, ZERO, B.T.copy(), SCALES_OF_B, np.zeros(5, np.int8), SUMS, np.float32(0.2), np.uint8(90)],
                         {"transB": 1, "alpha": 0.5}),
    "QGemm to floats": ("QGemm", [A, SCALE, ZERO, B, np.float32(0.01), np.int8(3), SUMS], {}),
    "DequantizeLinear": ("DequantizeLinear", [X, SCALE, ZERO], {}),
    "QuantizeLinear": ("QuantizeLinear", [X.astype(np.float32), np.float32(0.01), np.uint16(30000)], {}),
}


def make_op(name, path):
    """A model of one op of domain com.microsoft; its inputs."""
    kind, arrays, attributes = OPS[name]
    place = 2 if kind == "QLinearConcat" else 0
    names = ["x" if index == place else f"w{index}" for index in range(len(arrays))]
    weights = [numpy_helper.from_array(np.asarray(array), word) for word, array in zip(names, arrays) if word != "x"]
    info = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(arrays[place].dtype), arrays[place].shape)
    kinds = {"DequantizeLinear": TensorProto.FLOAT, "QGemm to floats": TensorProto.FLOAT, "QuantizeLinear": TensorProto.UINT16}
    graph = helper.make_graph([helper.make_node(kind, names, ["y"], domain="com.microsoft", **attributes)], "op", [info],
                              [helper.make_tensor_value_info("y", kinds.get(name, TensorProto.UINT8), None)], weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return {"x": arrays[place]}


def single(build, name):
    """Where a quotient lies between two integers, onnxruntime may round it the other way: one step, for few elements."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/op.onnx"
        inputs = make_op(name, path)
        want = infer(path, inputs)["y"]
        got, report = run(build, path, folder, inputs, ["--mesh", "one=1"])
        if report is None:
            return got
        got = got["y"]
        if got.dtype != want.dtype or got.shape != want.shape:
            return f"{got.dtype}{got.shape}, expected {want.dtype}{want.shape}"
        apart = np.abs(got.astype(np.float64) - want.astype(np.float64))
        if want.dtype == np.float32:
            return "" if apart.max() <= 1e-5 * np.abs(want).max() else f"off by {apart.max()}"
        share = (apart > 0).mean()
        return "" if apart.max() <= 1 and share <= 0.1 else f"off by {apart.max()}, {share:.0%} of the elements"


def main():
    build, names, _ = harness.arguments()
    cases = {f"{name} on {mesh}": (quantized, name, mesh) for name in CASES for mesh in MESHES}
    cases.update({name: (single, name) for name in OPS})
    for kind in STORED:
        for scales in SCALES:
            for plan in PLANS:
                for way, how in {"": [], " as a program": ["--executor", "program"]}.items():
                    cases[f"{kind} {scales}, {plan}{way}"] = (stored, kind, scales, plan, how)
    return harness.run(harness.select(cases, names), lambda case: case[0](build, *case[1:]))


if __name__ == "__main__":
    sys.exit(main())
