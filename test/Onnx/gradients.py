"""Gradients (ai.onnx.preview.training) against finite differences and formulas, whole and under plans that cut batch and weights.

    gradients.py BUILD_DIR [CASE...]

Each case is a function of float64 tensors written as ONNX text. Its model has a node `Gradient` by all of its inputs; what that gives is
compared with central differences of the same function in ONNX's own reference evaluator, element by element, and networks with what
numpy gives by the chain rule written out. Plans run with --check.
"""
import json
import math
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_conv_transpose import ConvTranspose as OneConvTranspose
from onnx.reference.ops.op_gru import GRU
from onnx.reference.ops.op_lstm import LSTM
from onnx.reference.ops.op_rnn import RNN_14

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

TBLGEN, LLVM_INCLUDE = "/usr/lib/llvm-22/bin/llvm-tblgen", "/usr/lib/llvm-22/include"
STEP = 1e-5
RTOL, ATOL = 2e-6, 2e-8
DOMAIN = "ai.onnx.preview.training"


def numbers(*shape, low=-1.0, high=1.0):
    """Numbers that are neither equal nor near a kink at 0."""
    random = np.random.default_rng(sum(shape) + len(shape))
    array = random.uniform(low, high, shape)
    return np.where(np.abs(array) < 0.05, 0.1, array)


def distinct(*shape):
    """Numbers of which no two are near each other: a maximum stays one."""
    size = math.prod(shape)
    return (np.random.default_rng(size).permutation(size).reshape(shape) - 0.45 * size) / size * 4 + 0.013


def function(body, fixed=None, **feeds):
    """`body` computes y of its inputs. Gradients are by those in feeds; `fixed` are arrays that are none."""
    return body, feeds, fixed or {}


def unary(op, low=-1.0, high=1.0):
    return lambda: function(f"a = {op}(x) y = Mul(a, w)", x=numbers(3, 4, low=low, high=high), w=numbers(3, 4))


def binary(op, low=-1.0):
    return lambda: function(f"a = {op}(x, z) y = Mul(a, w)", x=numbers(3, 4, low=low), z=numbers(4, 1, 4, low=low) * 0.9 + 0.02, w=numbers(4, 3, 4))


TYPES = {"float64": "double", "int64": "int64", "int8": "int8", "bool": "bool"}
INDICES = np.array([[0, 2], [2, -1]])
CASES = {
    **{f"{op.lower()}": unary(op) for op in (
        "Neg Abs Exp Erf Sin Cos Tan Atan Sinh Cosh Tanh Asinh Relu Sigmoid Softplus Floor Gelu Gelu<approximate=\"tanh\"> LeakyRelu<alpha=0.2> "
        "Elu<alpha=0.7> HardSigmoid HardSwish Selu Softsign Asin Acos Atanh Mish").split()},
    **{f"{op.lower()} of what is positive": unary(op, 0.2, 2.0) for op in ("Sqrt", "Reciprocal", "Log")},
    "acosh": unary("Acosh", 1.2, 2.0),
    **{f"{op.lower()} broadcast": binary(op) for op in ("Add", "Sub", "Mul", "Max", "Min")},
    "div broadcast": binary("Div", 0.3), "pow broadcast": binary("Pow", 0.3),
    "prelu": lambda: function("a = PRelu(x, z) y = Mul(a, w)", x=numbers(3, 4), z=numbers(4), w=numbers(3, 4)),
    "pow by constants": lambda: function("two = Constant<value = double {2.0}>() zero = Constant<value = double {0.0}>() a = Pow(x, two) b = Pow(x, zero) y = Add(a, b)", x=numbers(5)),
    "where": lambda: function("zero = Constant<value = double {0.0}>() c = Less(x, zero) a = Where(c, x, z) y = Mul(a, a)", x=numbers(3, 4), z=numbers(4)),
    "clip": lambda: function("l = Constant<value = double {-0.5}>() h = Constant<value = double {0.5}>() a = Clip(x, l, h) y = Mul(a, x)", x=numbers(9)),
    "read many times": lambda: function("a = Mul(x, x) b = Mul(a, x) c = Add(a, b) d = Exp(c) y = Mul(d, a)", x=numbers(4)),
    "matmul": lambda: function("a = MatMul(x, z) y = Mul(a, a)", x=numbers(3, 4), z=numbers(4, 2)),
    "matmul of batches": lambda: function("a = MatMul(x, z) y = Mul(a, a)", x=numbers(2, 1, 3, 4), z=numbers(5, 4, 2)),
    "matmul of a vector": lambda: function("a = MatMul(x, z) y = Mul(a, a)", x=numbers(4), z=numbers(2, 4, 3)),
    "gemm": lambda: function("a = Gemm<transA = 1, transB = 1, alpha = 0.5, beta = 2.0>(x, z, b) y = Mul(a, a)", x=numbers(4, 3), z=numbers(2, 4), b=numbers(2)),
    "einsum": lambda: function('a = Einsum<equation = "bij,jk,b->ki">(x, z, b) y = Mul(a, a)', x=numbers(2, 3, 4), z=numbers(4, 2), b=numbers(2)),
    "einsum that sums one": lambda: function('a = Einsum<equation = "ij,k->k">(x, z) y = Mul(a, a)', x=numbers(3, 4), z=numbers(5)),
    "reshape and transpose": lambda: function("s = Constant<value = int64[2] {6, 4}>() a = Reshape(x, s) b = Transpose<perm = [1, 0]>(a) y = Mul(b, w)", x=numbers(2, 3, 4), w=numbers(4, 6)),
    "transpose of three": lambda: function("b = Transpose<perm = [1, 2, 0]>(x) y = Mul(b, w)", x=numbers(2, 3, 4), w=numbers(3, 4, 2)),
    "expand": lambda: function("s = Constant<value = int64[3] {2, 3, 4}>() a = Expand(x, s) y = Mul(a, w)", x=numbers(3, 1), w=numbers(2, 3, 4)),
    "concat and split": lambda: function("a = Concat<axis = 1>(x, z, x) p, q = Split<axis = 1, num_outputs = 2>(a) y = Mul(p, q)", x=numbers(3, 4), z=numbers(3, 2)),
    **{f"slice {name}": (lambda text=text: function(f"s = Constant<value = int64[2] {text[0]}>() e = Constant<value = int64[2] {text[1]}>() a = Constant<value = int64[2] {{0, 1}}>() "
                                                    f"t = Constant<value = int64[2] {text[2]}>() b = Slice(x, s, e, a, t) y = Mul(b, b)", x=numbers(5, 9)))
       for name, text in {"by one": ("{1, 2}", "{4, 7}", "{1, 1}"), "by steps": ("{0, 1}", "{5, 8}", "{2, 3}"), "from the end": ("{4, 8}", "{0, 0}", "{-1, -3}")}.items()},
    "pad": lambda: function("p = Constant<value = int64[4] {1, 0, 2, 3}>() a = Pad(x, p, v) b = Exp(a) y = Mul(b, b)", x=numbers(2, 3), v=numbers()),
    "gather": lambda: function("a = Gather<axis = 1>(x, i) y = Mul(a, a)", {"i": INDICES}, x=numbers(2, 3, 4)),
    "gather rows": lambda: function("a = Gather(x, i) y = Mul(a, a)", {"i": INDICES}, x=numbers(3, 4)),
    "gather elements": lambda: function("a = GatherElements<axis = 0>(x, i) y = Mul(a, a)", {"i": np.array([[0, 2, 1, 0], [2, -1, 1, 0]])}, x=numbers(3, 4)),
    "gather nd": lambda: function("a = GatherND(x, i) y = Mul(a, a)", {"i": INDICES}, x=numbers(3, 3, 2)),
    "gather nd of batches": lambda: function("a = GatherND<batch_dims = 1>(x, i) y = Mul(a, a)", {"i": INDICES[..., None]}, x=numbers(2, 3, 4)),
    "scatter elements": lambda: function("a = ScatterElements<axis = 0>(x, i, u) y = Mul(a, a)", {"i": np.array([[0, 2], [2, 1]])}, x=numbers(3, 4), u=numbers(2, 2)),
    "scatter nd": lambda: function('a = ScatterND<reduction = "add">(x, i, u) y = Mul(a, a)', {"i": INDICES[..., None]}, x=numbers(3, 4), u=numbers(2, 2, 4)),
    **{f"reduce {kind.lower()}": (lambda kind=kind: function(f"d = Constant<value = int64[2] {{0, 2}}>() a = Reduce{kind}<keepdims = 0>(x, d) y = Mul(a, a)", x=numbers(2, 3, 4)))
       for kind in ("Sum", "Mean", "Max", "Min", "L2", "LogSumExp", "SumSquare")},
    "softmax": lambda: function("a = Softmax<axis = 1>(x) y = Mul(a, w)", x=numbers(2, 3, 4), w=numbers(2, 3, 4)),
    "log softmax": lambda: function("a = LogSoftmax(x) y = Mul(a, w)", x=numbers(3, 4), w=numbers(3, 4)),
    "cumsum": lambda: function("d = Constant<value = int64 {1}>() a = CumSum<exclusive = 1>(x, d) y = Mul(a, a)", x=numbers(3, 4)),
    "top k": lambda: function("k = Constant<value = int64[1] {2}>() a, i = TopK(x, k) y = Mul(a, a)", x=numbers(3, 5)),
    "trilu": lambda: function("a = Trilu(x) y = Mul(a, a)", x=numbers(4, 4)),
    "layer norm": lambda: function("a = LayerNormalization(x, s, b) y = Mul(a, a)", x=numbers(2, 3, 4), s=numbers(4), b=numbers(4) + 0.1),
    "rms norm": lambda: function("a = RMSNormalization(x, s) y = Mul(a, a)", x=numbers(2, 3, 4), s=numbers(4)),
    "layer norm written out": lambda: function(
        "d = Constant<value = int64[1] {-1}>() e = Constant<value = double {0.001}>() m = ReduceMean(x, d) c = Sub(x, m) q = Mul(c, c) v = ReduceMean(q, d) u = Add(v, e) r = Sqrt(u) n = Div(c, r) a = Mul(n, s) y = Mul(a, a)",
        x=numbers(3, 4), s=numbers(4)),
    "batch norm": lambda: function("a = BatchNormalization(x, s, b, m, v) y = Mul(a, a)", x=numbers(2, 3, 4), s=numbers(3), b=numbers(3) + 0.3, m=numbers(3) - 0.2, v=numbers(3, low=0.3)),
    "through another float type": lambda: function("a = Cast<to = 1>(x) b = Cast<to = 11>(a) y = Mul(b, z)", x=np.array([0.5, -0.25]), z=numbers(2)),
    "cross entropy": lambda: function("y = SoftmaxCrossEntropyLoss(x, t)", {"t": np.array([1, 0, 3])}, x=numbers(3, 4)),
    "mod of floats": lambda: function("a = Mod<fmod = 1>(x, z) y = Mul(a, w)", x=numbers(3, 4) * 3, z=numbers(4, low=0.3), w=numbers(3, 4)),
    "reduce prod": lambda: function("d = Constant<value = int64[2] {0, 2}>() a = ReduceProd<keepdims = 0>(x, d) y = Mul(a, a)", x=numbers(2, 3, 4, low=0.4)),
    "split of which one part is read": lambda: function("p, q = Split<axis = 1, num_outputs = 2>(x) y = Mul(p, p)", x=numbers(3, 4)),
    **{f"pad {mode}": (lambda mode=mode: function(f'p = Constant<value = int64[4] {{2, 1, 2, 3}}>() a = Pad<mode = "{mode}">(x, p) b = Exp(a) y = Mul(b, w)', x=numbers(3, 4), w=numbers(7, 8)))
       for mode in ("edge", "reflect", "wrap")},
    "pad wrap around": lambda: function('p = Constant<value = int64[2] {5, 7}>() a = Pad<mode = "wrap">(x, p) b = Exp(a) y = Mul(b, w)', x=numbers(3), w=numbers(15)),
    "gather elements of one a line": lambda: function("a = GatherElements<axis = 1>(x, i) y = Mul(a, a)", {"i": np.array([[2], [-1], [0]])}, x=numbers(3, 4)),
    "one hot": lambda: function("n = Constant<value = int64 {4}>() a = OneHot<axis = 1>(i, n, x) y = Mul(a, w)", {"i": np.array([2, 0, 3])}, x=numbers(2), w=numbers(3, 4)),
    **{f"scatter elements {kind}": (lambda kind=kind: function(f'a = ScatterElements<axis = 0, reduction = "{kind}">(x, i, u) y = Mul(a, w)', {"i": np.array([[0, 2], [2, 1], [0, 2]])},
                                                               x=numbers(3, 4), u=numbers(3, 2) * 0.9 + 0.01, w=numbers(3, 4))) for kind in ("mul", "max", "min")},
    **{f"scatter nd {kind}": (lambda kind=kind: function(f'a = ScatterND<reduction = "{kind}">(x, i, u) y = Mul(a, w)', {"i": np.array([[0], [2], [0]])},
                                                         x=numbers(3, 4), u=numbers(3, 4)[::-1] * 0.9 + 0.01, w=numbers(3, 4))) for kind in ("mul", "max", "min")},
    # Windows: uneven pads, strides that leave a rest, dilations, groups; those that pads reach beyond.
    **{f"conv {name}": (lambda text=text: function(f"a = Conv<{text[0]}>(x, w, b) y = Mul(a, a)", x=numbers(*text[1]), w=numbers(*text[2]), b=numbers(text[2][0]))) for name, text in {
        "plain": ("pads = [0, 0, 0, 0]", (2, 3, 5, 4), (2, 3, 3, 2)), "padded": ("pads = [1, 2, 0, 1]", (1, 2, 5, 4), (2, 2, 3, 2)),
        "strided": ("strides = [2, 3], pads = [1, 1, 1, 0]", (1, 2, 6, 8), (2, 2, 3, 2)), "dilated": ("dilations = [2, 1], strides = [1, 2], pads = [2, 0, 2, 0]", (1, 2, 6, 5), (2, 2, 3, 2)),
        "grouped": ("group = 2, strides = [2, 1], pads = [1, 0, 1, 0]", (2, 4, 5, 3), (6, 2, 3, 2)), "depthwise": ("group = 3, pads = [1, 1, 1, 1]", (1, 3, 4, 4), (3, 1, 3, 3)),
        "padded beyond": ("pads = [3, 2, 3, 2], strides = [2, 1]", (1, 1, 4, 3), (2, 1, 2, 2)), "of a line": ("strides = [3], pads = [1, 2]", (2, 2, 9), (3, 2, 4)),
        "of volumes": ("strides = [1, 2, 1], pads = [1, 0, 0, 0, 1, 0]", (1, 2, 3, 4, 3), (2, 2, 2, 2, 2))}.items()},
    **{f"conv transpose {name}": (lambda text=text: function(f"a = ConvTranspose<{text[0]}>(x, w, b) y = Mul(a, a)", x=numbers(*text[1]), w=numbers(*text[2]), b=numbers(text[3]))) for name, text in {
        "plain": ("strides = [1, 1]", (2, 3, 3, 4), (3, 2, 3, 2), 2), "strided": ("strides = [2, 3], pads = [1, 0, 1, 1]", (1, 2, 3, 4), (2, 2, 3, 4), 2),
        "grouped": ("group = 2, strides = [2, 1], output_padding = [1, 0]", (1, 4, 3, 3), (4, 2, 3, 2), 4), "dilated": ("dilations = [2, 1], pads = [1, 1, 0, 0]", (1, 2, 4, 4), (2, 3, 2, 3), 3)}.items()},
    **{f"{kind.lower()} {name}": (lambda kind=kind, text=text: function(f"a = {kind}<{text[0]}>(x) y = Mul(a, a)", x=distinct(*text[1]))) for kind in ("MaxPool", "AveragePool", "LpPool") for name, text in {
        "plain": ("kernel_shape = [2, 2], strides = [2, 2]", (2, 3, 4, 6)), "that overlaps": ("kernel_shape = [3, 2], strides = [2, 1], pads = [1, 1, 1, 0]", (1, 2, 6, 5)),
        "dilated": ("kernel_shape = [2, 2], dilations = [2, 1], strides = [1, 2]", (1, 2, 5, 6)), "of a line": ("kernel_shape = [3], strides = [2], pads = [1, 1]", (2, 2, 8)),
        "over the end": ("kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], ceil_mode = 1", (1, 2, 6, 6))}.items() if (kind, name) != ("LpPool", "over the end")},
    "averagepool that counts pads": lambda: function("a = AveragePool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], count_include_pad = 1>(x) y = Mul(a, a)", x=numbers(1, 2, 5, 6)),
    "lppool of three": lambda: function("a = LpPool<kernel_shape = [2, 2], p = 3>(x) y = Mul(a, a)", x=numbers(1, 2, 4, 4)),
    "lppool of one": lambda: function("a = LpPool<kernel_shape = [2, 2], p = 1>(x) y = Mul(a, a)", x=numbers(1, 2, 4, 4)),
    **{f"global {kind.lower()}": (lambda kind=kind: function(f"a = Global{kind}(x) y = Mul(a, a)", x=distinct(2, 3, 4, 5))) for kind in ("MaxPool", "AveragePool")},
    **{f"resize {name}": (lambda text=text: function(f"r = Constant<value = float[0] {{}}>() s = Constant<value = float[4] {{1.0, 1.0, {text[1]}}}>() a = Resize<{text[0]}>(x, r, s) y = Mul(a, a)", x=numbers(1, 2, 4, 5)))
       for name, text in {"nearest": ('mode = "nearest"', "2.0, 3.0"), "nearest down": ('mode = "nearest"', "0.6, 0.5"), "linear": ('mode = "linear"', "2.0, 1.6"), "linear down": ('mode = "linear"', "0.5, 0.7"),
                          "linear by corners": ('mode = "linear", coordinate_transformation_mode = "align_corners"', "1.75, 2.0"), "cubic": ('mode = "cubic"', "1.5, 2.0"),
                          "cubic without the outside": ('mode = "cubic", exclude_outside = 1', "1.5, 0.8"), "linear antialiased": ('mode = "linear", antialias = 1', "0.5, 0.6")}.items()},
    "silu": lambda: function("s = Sigmoid(x) a = Mul(x, s) y = Mul(a, w)", x=numbers(3, 4), w=numbers(3, 4)),
    "lrn": lambda: function("a = LRN<size = 3, alpha = 0.5, beta = 0.75, bias = 1.5>(x) y = Mul(a, w)", x=numbers(2, 5, 2, 2), w=numbers(2, 5, 2, 2)),
    "lrn of an even size": lambda: function("a = LRN<size = 4, alpha = 0.5, beta = 0.6, bias = 1.0>(x) y = Mul(a, w)", x=numbers(1, 6, 3, 1), w=numbers(1, 6, 3, 1)),
    "group norm": lambda: function("a = GroupNormalization<num_groups = 2>(x, s, b) y = Mul(a, w)", x=numbers(2, 4, 3), s=numbers(4), b=numbers(4) + 0.2, w=numbers(2, 4, 3)[::-1, ::-1]),
    "instance norm": lambda: function("a = InstanceNormalization(x, s, b) y = Mul(a, w)", x=numbers(2, 3, 2, 3), s=numbers(3), b=numbers(3) + 0.2, w=numbers(2, 3, 2, 3)[::-1, ::-1]),
    **{f"attention {name}": (lambda text=text: function(f"a = Attention<{text[0]}>({text[1]}) y = Mul(a, w)", text[2], q=numbers(2, 4, 3, 2), k=numbers(2, text[3], 5, 2) * 0.8, v=numbers(2, text[3], 5, 3), w=numbers(2, 4, 3, 3), **text[4]))
       for name, text in {"plain": ("scale = 0.7", "q, k, v", {}, 4, {}), "causal": ("is_causal = 1", "q, k, v", {}, 4, {}), "of groups": ("scale = 0.5", "q, k, v", {}, 2, {}),
                          "with a cap": ("softcap = 0.8", "q, k, v", {}, 1, {}), "with a mask to add": ("scale = 0.7", "q, k, v, m", {}, 2, {"m": numbers(4, 3, 5)}),
                          "with a mask": ("scale = 0.7", "q, k, v, m", {"m": np.array([[True] * 5, [True, False] * 2 + [True], [False] * 2 + [True] * 3])}, 4, {})}.items()},
    "rotary embedding": lambda: function("a = RotaryEmbedding(x, c, s) y = Mul(a, a) ", {"c": np.cos(numbers(1, 3, 2)), "s": np.sin(numbers(1, 3, 2))}, x=numbers(1, 2, 3, 4)),
    "dequantize": lambda: function("a = DequantizeLinear<axis = 1>(i, x) y = Mul(a, w)", {"i": np.arange(-6, 6, dtype=np.int8).reshape(3, 4)}, x=numbers(4), w=numbers(3, 4)),
    "dequantize by blocks": lambda: function("a = DequantizeLinear<axis = 1, block_size = 3>(i, x) y = Mul(a, w)", {"i": np.arange(-8, 8, dtype=np.int8).reshape(2, 8)}, x=numbers(2, 3), w=numbers(2, 8)),
    "a product with quantized weights": lambda: function("s = Constant<value = double {0.125}>() a = DequantizeLinear(i, s) b = MatMul(x, a) y = Mul(b, b)", {"i": np.arange(-6, 6, dtype=np.int8).reshape(4, 3)}, x=numbers(2, 4)),
    **{f"{kind.lower()} {name}": (lambda kind=kind, gates=gates, text=text: function(
        f'none = Constant<value = double[0] {{}}>() h, n = {kind}<hidden_size = 2{text[0]}>(x, w, r, b) o = Constant<value = int64[1] {{1}}>() m = ReduceSum<keepdims = 0>(n) q = Mul(h, h) y = Add(q, m)',
        x=numbers(4, 2, 3), w=numbers(text[1], gates * 2, 3), r=numbers(text[1], gates * 2, 2) * 0.8, b=numbers(text[1], gates * 4)))
       for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)) for name, text in {"forward": ("", 1), "both ways": (', direction = "bidirectional"', 2)}.items()},
    "no dependence": lambda: function("a = Floor(x) b = Mul(z, z) y = Add(a, b)", x=numbers(4), z=numbers(4)),
}


def build_model(body, feeds, fixed, constants=()):
    """The function, and the model that differentiates it by all of feeds; those in `constants` are initializers."""
    def declare(arrays):
        return ", ".join(f"{TYPES[array.dtype.name]}{list(array.shape) if array.ndim else ''} {name}" for name, array in arrays.items())
    head = '<ir_version: 10, opset_import: ["": 23, "%s": 1]> f (%s) => (%s) { %s %s }'
    inputs = declare({**feeds, **fixed})
    plain = parser.parse_model(head % (DOMAIN, inputs, "double y", body, ""))
    outputs = ", ".join(f"double d_{name}" for name in feeds)
    model = parser.parse_model(head % (DOMAIN, inputs, outputs, body, ""))
    model.graph.node.append(helper.make_node("Gradient", list(feeds), [f"d_{name}" for name in feeds], "gradient", domain=DOMAIN, xs=list(feeds), y="y"))
    for graph in (plain.graph, model.graph):
        for output in graph.output:
            output.type.tensor_type.ClearField("shape")
    for name in constants:
        model.graph.initializer.append(numpy_helper.from_array(feeds[name], name))
        model.graph.input.remove(next(info for info in model.graph.input if info.name == name))
    return plain, model


class Erf(OpRun):
    """In f64: the evaluator's own has 32 bits."""
    op_domain = ""

    def _run(self, x):
        return (np.vectorize(math.erf, otypes=[np.float64])(x),)


class Gelu(OpRun):
    op_domain = ""

    def _run(self, x, approximate=None):
        if approximate == "tanh":
            return (0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),)
        return (x * (1 + np.vectorize(math.erf, otypes=[np.float64])(x / np.sqrt(2))) / 2,)


class ConvTranspose(OpRun):
    """Of groups: the evaluator's own knows one."""
    op_domain = ""

    def _run(self, x, w, b=None, group=1, **attributes):
        parts = [OneConvTranspose._run(self, *part, group=1, **attributes)[0] for part in zip(np.split(x, group, 1), np.split(w, group, 0))]
        return (np.concatenate(parts, 1) + (0 if b is None else b.reshape(-1, *[1] * (x.ndim - 2))),)


class LRN(OpRun):
    """The evaluator's own sums other channels than onnxruntime, and the operator's description."""
    op_domain = ""

    def _run(self, x, size, alpha=1e-4, beta=0.75, bias=1.0):
        low = (size - 1) // 2
        padded = np.pad(x * x, [(0, 0), (low, size - 1 - low)] + [(0, 0)] * (x.ndim - 2))
        return (x / (bias + alpha / size * sum(padded[:, i:i + x.shape[1]] for i in range(size)))**beta,)


class GroupNormalization(OpRun):
    """In f64: the evaluator's own has moments of 32 bits."""
    op_domain = ""

    def _run(self, x, scale, bias, num_groups, epsilon=1e-5, stash_type=1):
        apart = x.reshape(x.shape[0], num_groups, -1)
        normal = ((apart - apart.mean(-1, keepdims=True)) / np.sqrt(apart.var(-1, keepdims=True) + epsilon)).reshape(x.shape)
        channel = (-1, *[1] * (x.ndim - 2))
        return (normal * scale.reshape(channel) + bias.reshape(channel),)


def both_ways(one):
    """A recurrent net of two directions: the evaluator's own know the first one."""
    def run(self, x, w, r, b=None, direction="forward", **attributes):
        ways = [one._run(self, x[::step], w[i:i + 1], r[i:i + 1], b[i:i + 1], direction="forward", **attributes)[:2] for i, step in enumerate((1, -1)[:w.shape[0]])]
        return np.concatenate([way[0][::(1, -1)[i]] for i, way in enumerate(ways)], 1), np.concatenate([way[1] for way in ways], 0)
    return type(one.__name__.split("_")[0], (one,), {"op_domain": "", "_run": run})


OWN_OPS = [Erf, Gelu, LRN, GroupNormalization, ConvTranspose, *map(both_ways, (LSTM, GRU, RNN_14))]


def differences(plain, feeds, fixed):
    """Of the sum of y by each element of feeds, central differences."""
    session = ReferenceEvaluator(plain, new_ops=OWN_OPS)
    total = lambda arrays: float(np.sum(session.run(None, {**arrays, **fixed})[0]))
    gradients = {}
    for name, array in feeds.items():
        gradients[f"out:d_{name}"] = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            ends = []
            for step in (STEP, -STEP):
                moved = array.copy()
                moved[place] += step
                ends.append(total({**feeds, name: moved}))
            gradients[f"out:d_{name}"][place] = (ends[0] - ends[1]) / (2 * STEP)
    return gradients


def run_model(build, model, feeds, folder, number, *words):
    path, inputs, outputs = (os.path.join(folder, f"{number}.{suffix}") for suffix in ("onnx", "in.npz", "out.npz"))
    onnx.save(model, path)
    np.savez(inputs, **feeds)
    done = harness.cleave(build, "run", path, "--inputs", inputs, "--outputs", outputs, "--quiet", *(words or ("--mesh", "one=1")))
    return (None, np.load(outputs)) if done.returncode == 0 else (f"exit {done.returncode}: {(done.stderr + done.stdout)[-500:]}", None)


def by_differences(build, make, isConstant, folder, number):
    body, feeds, fixed = make()
    constants = list(feeds) if isConstant else []
    plain, model = build_model(body, feeds, fixed, constants)
    wrong, got = run_model(build, model, {name: array for name, array in {**feeds, **fixed}.items() if name not in constants}, folder, number)
    # Numbers of a type of 32 bits are too coarse for steps so small: what is linear may take large ones.
    if "Cast" in body:
        expected = {"out:d_x": feeds["z"], "out:d_z": feeds["x"]}
    else:
        expected = differences(plain, feeds, fixed)
    # The evaluator's cubic coefficients have 32 bits.
    loose = 100 if "cubic" in body else 1
    return wrong or harness.difference(got, expected, RTOL * loose, ATOL * loose)


#===--- Networks -----------------------------------------------------------===#

def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def mlp():
    """Two layers and the mean of squares: the chain rule in four lines."""
    x, w, v, b, t = numbers(8, 16), numbers(16, 32) * 0.3, numbers(32, 8) * 0.3, numbers(32), numbers(8, 8) + 0.2
    h = x @ w + b
    a = np.maximum(h, 0)
    e = 2 * (a @ v - t) / t.size
    dh = (e @ v.T) * (h > 0)
    return ("h = MatMul(x, w) k = Add(h, b) a = Relu(k) o = MatMul(a, v) e = Sub(o, t) q = Mul(e, e) y = ReduceMean<keepdims = 0>(q)",
            {"w": w, "v": v, "b": b, "x": x}, {"t": t}, {"w": x.T @ dh, "v": a.T @ e, "b": dh.sum(0), "x": dh @ w.T})


def attention():
    """softmax(x wq (x wk)^T / 4) (x wv), four samples and two heads; the sum of its product with u."""
    x, wq, wk, wv, u = numbers(4, 6, 8), numbers(2, 8, 16) * 0.5, numbers(2, 8, 16)[::-1] * 0.4, numbers(2, 8, 4), numbers(4, 2, 6, 4)
    q, k, v = (x[:, None] @ w for w in (wq, wk, wv))
    p = softmax(q @ k.swapaxes(-1, -2) / 4)
    dp = u @ v.swapaxes(-1, -2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / 4
    dq, dk, dv = ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ u
    back = lambda g: np.einsum("bsi,bhso->hio", x, g)
    dx = sum(np.einsum("bhso,hio->bsi", g, w) for g, w in ((dq, wq), (dk, wk), (dv, wv)))
    return ("o = Constant<value = int64[1] {1}>() c = Unsqueeze(x, o) q = MatMul(c, wq) k = MatMul(c, wk) v = MatMul(c, wv) kt = Transpose<perm = [0, 1, 3, 2]>(k) "
            "four = Constant<value = double {4.0}>() s = MatMul(q, kt) r = Div(s, four) p = Softmax(r) a = MatMul(p, v) b = Mul(a, u) y = ReduceSum<keepdims = 0>(b)",
            {"wq": wq, "wk": wk, "wv": wv, "x": x}, {"u": u}, {"wq": back(dq), "wk": back(dk), "wv": back(dv), "x": dx})


def classifier():
    """Embeddings, a product and cross-entropy: the gradient of scores is softmax less the target, and rows of the table add up."""
    table, w, b = numbers(12, 16), numbers(16, 8) * 0.5, numbers(8)
    ids, targets = np.arange(16) * 5 % 7, np.arange(16) * 3 % 8
    d = (softmax(table[ids] @ w + b) - np.eye(8)[targets]) / 16
    dtable = np.zeros_like(table)
    np.add.at(dtable, ids, d @ w.T)
    return ("e = Gather(table, ids) h = MatMul(e, w) s = Add(h, b) y = SoftmaxCrossEntropyLoss(s, targets)",
            {"table": table, "w": w, "b": b}, {"ids": ids, "targets": targets}, {"table": dtable, "w": table[ids].T @ d, "b": d.sum(0)})


NETWORKS = {"mlp": mlp, "attention": attention, "classifier": classifier}
# By network: shardings of inputs.
PLANS = {
    "whole": ("one=1", {}),
    "data": ("data=2", {"mlp": ["x=[data, _]", "t=[data, _]"], "attention": ["x=[data, _, _]", "u=[data, _, _, _]"],
                        "classifier": ["ids=[data]", "targets=[data]"]}),
    "tensor": ("model=2", {"mlp": ["w=[_, model]", "v=[model, _]", "b=[model]"], "attention": ["wq=[model, _, _]", "wk=[model, _, _]", "wv=[model, _, _]"],
                           "classifier": ["table=[_, model]", "w=[model, _]"]}),
    "both": ("data=2,model=2", {"mlp": ["x=[data, _]", "w=[_, model]", "v=[model, _]"], "attention": ["x=[data, _, _]", "wq=[model, _, _]"],
                                "classifier": ["ids=[data]", "w=[_, model]"]}),
}


def by_formula(build, network, plan, isConstant, folder, number):
    body, feeds, fixed, expected = NETWORKS[network]()
    constants = [name for name in feeds if name != "x"] if isConstant else []
    _, model = build_model(body, feeds, fixed, constants)
    mesh, shards = PLANS[plan]
    wrong, got = run_model(build, model, {name: array for name, array in {**feeds, **fixed}.items() if name not in constants}, folder, number,
                           "--mesh", mesh, "--check", *[word for rule in shards.get(network, []) for word in ("--shard", rule)])
    return wrong or harness.difference(got, {f"out:d_{name}": array for name, array in expected.items()}, 1e-9, 1e-11)


#===--- The node itself ----------------------------------------------------===#

def make_nodes(body, nodes, inputs, outputs):
    model = parser.parse_model('<ir_version: 10, opset_import: ["": 23, "%s": 1]> f (%s) => (%s) { %s }' % (DOMAIN, inputs, outputs, body))
    model.graph.node.extend(helper.make_node("Gradient", operands, results, f"g{i}", domain=DOMAIN, **names) for i, (operands, results, names) in enumerate(nodes))
    return model


def second():
    """Of x^3 the first and second derivatives; the gradient of a gradient."""
    model = make_nodes("a = Mul(x, x) y = Mul(a, x)", [(["x"], ["d"], {"xs": ["x"], "y": "y"}), (["x"], ["dd"], {"xs": ["x"], "y": "d"})],
                       "double[3] x", "double[3] d, double[3] dd")
    x = numbers(3)
    return model, {"x": x}, {"d": 3 * x**2, "dd": 6 * x}


def elsewhere():
    """y = x^2 z at other places than x and z: one value for both, and a constant that y itself reads."""
    model = make_nodes("one = Constant<value = double[2] {1.5, -2.0}>() a = Mul(x, x) b = Mul(a, z) y = Mul(b, one)",
                       [(["p", "p"], ["dx", "dz"], {"xs": ["x", "z"], "y": "y"}), (["one", "p"], ["cx"], {"xs": ["x"], "zs": ["z"], "y": "y"})],
                       "double[2] x, double[2] z, double[2] p", "double[2] dx, double[2] dz, double[2] cx")
    p, one = numbers(2), np.array([1.5, -2.0])
    return model, {"x": numbers(2) + 3, "z": numbers(2) - 3, "p": p}, {"dx": 2 * p * p * one, "dz": p * p * one, "cx": 2 * one * p * one}


def inside():
    """By a tensor in the middle, which nothing goes past; one output left out."""
    model = make_nodes("h = Exp(x) a = Mul(h, h) y = Mul(a, x)", [(["h", "x"], ["dh", ""], {"xs": ["h", "x"], "y": "y"}), (["h", "x"], ["", "dx"], {"xs": ["h", "x"], "y": "y"})],
                       "double[3] x", "double[3] dh, double[3] dx")
    x = numbers(3)
    return model, {"x": x}, {"dh": 2 * np.exp(x) * x, "dx": np.exp(2 * x)}


NODES = {"gradient of a gradient": second, "at other places": elsewhere, "by tensors in the middle": inside}


def by_node(build, name, folder, number):
    model, feeds, expected = NODES[name]()
    wrong, got = run_model(build, model, feeds, folder, number)
    return wrong or harness.difference(got, {f"out:{key}": array for key, array in expected.items()}, 1e-12, 1e-12)


#===--- Ops that the canonical form makes ------------------------------------===#

# By op: functions of x of 3 x 4, whose sum is differentiated by the pass, and the same in numpy.
MADE = {
    "nn.silu": ("%a = nn.silu %x : (tensor<3x4xf64>) -> tensor<3x4xf64>", lambda x: x / (1 + np.exp(-x))),
    "nn.rotate": ("%a = nn.rotate %x dim 1 by 3 : (tensor<3x4xf64>) -> tensor<3x4xf64>", lambda x: np.roll(x, 3, 1)),
    "nn.split": ("%p:2 = nn.split %x dim 1 parts [1, 3] : (tensor<3x4xf64>) -> (tensor<3x1xf64>, tensor<3x3xf64>)\n"
                 "%a = nn.concat %p#1, %p#0, %p#1, %p#0 dim 1 : (tensor<3x3xf64>, tensor<3x1xf64>, tensor<3x3xf64>, tensor<3x1xf64>) -> tensor<3x8xf64>\n",
                 lambda x: np.concatenate([x[:, 1:], x[:, :1]] * 2, 1)),
}


def by_pass(build, op, folder, number):
    text, function = MADE[op]
    x = numbers(3, 4)
    wide = function(x).shape[1]
    weights = numbers(3, wide, low=-2)
    path, inputs, outputs = (os.path.join(folder, f"{number}.{suffix}") for suffix in ("mlir", "in.npz", "out.npz"))
    with open(path, "w") as file:
        file.write(f"""func.func @main(%x: tensor<3x4xf64> {{nn.name = "x"}}, %w: tensor<3x{wide}xf64> {{nn.name = "w"}}) -> (tensor<f64> {{nn.name = "y"}}) {{
{text}
%b = nn.mul %a, %a : (tensor<3x{wide}xf64>, tensor<3x{wide}xf64>) -> tensor<3x{wide}xf64>
%c = nn.mul %b, %w : (tensor<3x{wide}xf64>, tensor<3x{wide}xf64>) -> tensor<3x{wide}xf64>
%y = nn.reduce sum %c dims [0, 1] : (tensor<3x{wide}xf64>) -> tensor<f64>
return %y : tensor<f64> }}""")
    made = subprocess.run([f"{build}/bin/cleave-opt", path, "--nn-differentiate=of=y by=x", "-o", path + ".mlir"], capture_output=True, text=True)
    if made.returncode:
        return made.stderr
    np.savez(inputs, x=x, w=weights)
    done = harness.cleave(build, "run", path + ".mlir", "--inputs", inputs, "--outputs", outputs, "--quiet")
    if done.returncode:
        return done.stderr
    expected = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        ends = []
        for step in (STEP, -STEP):
            moved = x.copy()
            moved[place] += step
            ends.append(np.sum(function(moved)**2 * weights))
        expected[place] = (ends[0] - ends[1]) / (2 * STEP)
    return harness.difference(np.load(outputs), {"out:grad(x)": expected}, RTOL, ATOL)


#===--- Which rule is tested where ------------------------------------------===#

def read_rules():
    """{op: how gradients come through it}, as its definition says."""
    definitions = os.path.join(harness.ROOT, "dialects")
    done = subprocess.run([TBLGEN, "-dump-json", "-I", LLVM_INCLUDE, "-I", definitions, "-I", f"{definitions}/Nn", f"{definitions}/Nn/NnOps.td"],
                          capture_output=True, text=True, check=True)
    records = json.loads(done.stdout)
    rules = {}
    for name in records["!instanceof"]["Op"]:
        traits = [records[trait["def"]] for trait in records[name]["traits"]]
        for trait in traits:
            if "Nn_SaysGradient" in trait["!superclasses"]:
                reason = next(iter(re.findall(r'refuseGradient\(gradients, "(.*?)"', trait["extraConcreteClassDeclaration"])), "")
                rules["nn." + records[name]["opName"]] = f"none: {reason}" if reason else "nothing comes through" if trait["!name"] == "Nn_NoGradient" else "a rule"
    return rules


def find_ops(build, name, folder, number):
    """Ops of nn that the function of a case is made of."""
    path = os.path.join(folder, f"plain{number}.onnx")
    onnx.save(build_model(*CASES[name]())[0], path)
    done = harness.cleave(build, "import", path, "--quiet")
    return set(re.findall(r"= (nn\.\w+)", done.stdout))


def format_rules(rules, cases_of):
    lines = ["<!-- Generated by test/Onnx/gradients.py --fix-table; do not edit. -->", "", "# Gradients, op by op", "",
             "For: engineers who add an op, or a rule ([how rules are written](../training.md#gradients)).", "",
             "Rules stand in `lib/Dialect/Nn/Gradients`. Each is held against central differences in f64 by the cases named.", "",
             "| op | how gradients come through | cases | such as |", "|---|---|---|---|"]
    for op, rule in sorted(rules.items()):
        cases = cases_of.get(op, [])
        lines.append(f"| `{op}` | {rule} | {len(cases) if rule == 'a rule' else '-'} | {', '.join(cases[:2]) if rule == 'a rule' else '-'} |")
    return "\n".join(lines) + "\n"


def check_rules(build, folder, fixes):
    """The number of rules without a case, and 1 more where the page is stale."""
    names = list(CASES)
    found = harness.each(lambda item: find_ops(build, item[1], folder, item[0]), list(enumerate(names)))
    cases_of = {}
    for name, ops in zip(names, found):
        for op in ops:
            cases_of.setdefault(op, []).append(name)
    for op in MADE:
        cases_of.setdefault(op, []).append(f"{op}, made by the canonical form")
    rules = read_rules()
    untested = [op for op, rule in rules.items() if rule == "a rule" and op not in cases_of]
    for op in untested:
        print(f"{op} has a rule that no case tests")
    print(f"{sum(rule == 'a rule' for rule in rules.values())} rules, {len(untested)} of them untested")
    return len(untested) + harness.check_generated("gradients.md", format_rules(rules, cases_of), fixes)


def main():
    build, names, flags = harness.arguments("--fix-table")
    cases = {name: lambda *at, make=make: by_differences(build, make, False, *at) for name, make in CASES.items()}
    cases |= {f"{name} of constants": lambda *at, make=CASES[name]: by_differences(build, make, True, *at) for name in ("gemm", "clip", "layer norm", "pad", "where")}
    cases |= {f"{network}, {plan}{', weights of the model' * isConstant}": lambda *at, key=(network, plan, isConstant): by_formula(build, *key, *at)
              for network in NETWORKS for plan in PLANS for isConstant in (False, True)}
    cases |= {name: lambda *at, name=name: by_node(build, name, *at) for name in NODES}
    cases |= {f"{op}, made by the canonical form": lambda *at, op=op: by_pass(build, op, *at) for op in MADE}
    chosen = harness.select(cases, names)
    with tempfile.TemporaryDirectory() as folder:
        numbered = {name: (case, number) for number, (name, case) in enumerate(chosen.items())}
        results = harness.each(lambda case: case[0](folder, case[1]), numbered.values())
        failed = harness.tell_failures(numbered, results)
        if len(chosen) == len(cases):
            failed += check_rules(build, folder, "--fix-table" in flags)
        return harness.close(len(chosen), failed)


if __name__ == "__main__":
    sys.exit(main())
