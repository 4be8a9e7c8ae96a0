"""Functions whose gradients are tried (gradients.py): by name, ONNX text of float64 tensors, and the tensors."""
import math

import numpy as np


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
    "gather nd of one a batch": lambda: function("a = GatherND<batch_dims = 2>(x, i) y = Mul(a, a)", {"i": np.array([[[1], [-1], [0]], [[0], [2], [3]]])}, x=numbers(2, 3, 4, 2)),
    "gather nd of pairs in batches": lambda: function("a = GatherND<batch_dims = 1>(x, i) y = Mul(a, a)", {"i": np.array([[[0, 2], [2, -1], [-3, 2]], [[1, 1], [1, 1], [-1, -3]]])}, x=numbers(2, 3, 4, 2)),
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
    "reduce prod of zeros": lambda: function("d = Constant<value = int64[1] {1}>() a = ReduceProd<keepdims = 0>(x, d) y = Mul(a, w)",
                                             x=np.array([[0.5, 0.0, -2.0], [0.0, 0.0, 3.0], [1.5, 2.0, -0.5]]), w=numbers(3)),
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
                          "of groups, with a cap and a mask": ("softcap = 0.9, scale = 0.8", "q, k, v, m", {"m": np.array([[True] * 5, [False] + [True] * 4, [True] * 3 + [False] * 2])}, 2, {}),
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
