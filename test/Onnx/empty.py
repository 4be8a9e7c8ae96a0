"""Tensors without elements: ops with each of their sizes 0, against onnxruntime and ONNX's reference.

Usage: empty.py BUILD_DIR [NAME...]

A case is a graph whose sizes are letters; it runs once for each letter, which is 0 then: on one device by the evaluator, as a program, and as one
for a device that this machine plays, and, with a dim of an input or of the result cut over two or three ranks, as a program for either.
"""
import os
import re
import sys
import tempfile
import warnings

import numpy as np
import onnx.parser
import onnxruntime
from onnx.reference import ReferenceEvaluator

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

SIZES = {"A": 4, "B": 6, "C": 3, "D": 5, "E": 2}
TYPES = {1: np.float32, 2: np.uint8, 7: np.int64, 10: np.float16, 11: np.float64}
# What onnxruntime refuses, or does not come back from, and what ONNX gives no meaning.
UNDEFINED = {"ArgMax_0.A", "ArgMax_1.B", "ArgMin_last.B", "AveragePool.B", "AveragePool.C", "Conv.B", "Conv.C", "Conv_relu.B", "Conv_relu.C",
             "ConvTranspose.B", "DynamicQuantizeLinear.A", "DynamicQuantizeLinear.B", "GatherElements.A", "GatherND.A", "Gather_0.A", "Gather_1.B",
             "GlobalAveragePool.B", "GlobalAveragePool.C", "GRU.A", "GRU.C", "GRU_both.A", "GRU_both.C", "LayerNormalization.B", "LSTM.A", "LSTM_from.A", "LSTM_from.C", "MatMul_vector.A",
             "MaxPool.B", "MaxPool.C", "ScatterElements.A", "ScatterND.A", "ScatterND_replace.A", "Split.B", "TopK_2.B"}
CASES = {}


def case(name, text):
    CASES[name] = text


for op in "Relu Exp Neg Sigmoid Softplus Erf Gelu Abs Floor Identity".split():
    case(op, f"(float[A,B] x) => (float[] y) {{ y = {op}(x) }}")
for op in "Add Sub Mul Div Pow Max Min".split():
    case(op, f"(float[A,B] x, float[B] z) => (float[] y) {{ y = {op}(x, z) }}")
    case(op + "_column", f"(float[A,B] x, float[A,1] z) => (float[] y) {{ y = {op}(x, z) }}")
case("Where", "(float[A,B] x, float[A,B] z) => (float[] y) { c = Greater(x, z)  y = Where(c, x, z) }")
case("Equal", "(float[A,B] x, float[A,B] z) => (bool[] y) { y = Equal(x, z) }")
case("cast", "(float[A,B] x) => (int64[] y) { y = Cast<to=7>(x) }")
for op in "ReduceSum ReduceMean ReduceProd ReduceMax ReduceLogSumExp".split():
    for keep, axes in ((0, "0"), (1, "1"), (0, "2"), (1, "0, 1"), (0, "0, 2")):
        case(f"{op}_{axes.replace(', ', '_')}_{keep}", f"(float[A,B,C] x) => (float[] y) <int64[{axes.count(',') + 1}] a = {{{axes}}}> {{ y = {op}<keepdims={keep}>(x, a) }}")
    case(f"{op}_all", f"(float[A,B] x) => (float[] y) {{ y = {op}(x) }}")
case("ArgMax_0", "(float[A,B] x) => (int64[] y) { y = ArgMax<axis=0>(x) }")
case("ArgMax_1", "(float[A,B] x) => (int64[] y) { y = ArgMax<axis=1>(x) }")
case("ArgMin_last", "(float[A,B] x) => (int64[] y) { y = ArgMin<axis=1, select_last_index=1>(x) }")
case("kept_and_summed", "(float[A,B] x) => (float[] y, float[] s) <int64[1] a = {0}> { y = Relu(x)  s = ReduceSum<keepdims=0>(y, a) }")
case("kept_and_summed_1", "(float[A,B] x) => (float[] y, float[] s) <int64[1] a = {1}> { y = Relu(x)  s = ReduceSum<keepdims=0>(y, a) }")
case("kept_and_summed_keep", "(float[A,B] x) => (float[] y, float[] s) <int64[1] a = {1}> { y = Relu(x)  s = ReduceSum<keepdims=1>(y, a) }")
case("normalized", "(float[A,B] x) => (float[] y) <int64[1] a = {1}> { m = ReduceMean(x, a)  d = Sub(x, m)  s = ReduceSumSquare(d, a)  y = Div(d, s) }")
case("summed_twice", "(float[A,B] x) => (float[] y, float[] z) <int64[1] a = {1}, int64[1] b = {0}> { e = Exp(x)  y = ReduceSum(e, a)  z = ReduceSum(e, b) }")
case("summed_all_and_kept", "(float[A,B] x) => (float[] y, float[] z) { y = Exp(x)  z = ReduceSum<keepdims=0>(y) }")
case("mean_of_summed", "(float[A,B,C] x) => (float[] y, float[] z, float[] w) <int64[1] a = {1}, int64[1] b = {0}> { e = Exp(x)  y = ReduceSum<keepdims=0>(e, a)  z = ReduceMean<keepdims=0>(y, b)  w = Relu(y) }")
for op in "Softmax LogSoftmax Hardmax".split():
    for axis in (0, 1, -1):
        case(f"{op}_{axis}", f"(float[A,B,C] x) => (float[] y) {{ y = {op}<axis={axis}>(x) }}")
case("LayerNormalization", "(float[A,B] x, float[B] s, float[B] b) => (float[] y) { y = LayerNormalization<axis=-1>(x, s, b) }")
case("BatchNormalization", "(float[A,C,B] x, float[C] s, float[C] b, float[C] m) => (float[] y) <float[1] one = {1}> { v = Abs(m)  w = Add(v, one)  y = BatchNormalization(x, s, b, m, w) }")
case("InstanceNormalization", "(float[A,C,B] x, float[C] s, float[C] b) => (float[] y) { y = InstanceNormalization(x, s, b) }")
case("MatMul", "(float[A,B] x, float[B,C] w) => (float[] y) { y = MatMul(x, w) }")
case("MatMul_relu", "(float[A,B] x, float[B,C] w, float[C] b) => (float[] y) { m = MatMul(x, w)  s = Add(m, b)  y = Relu(s) }")
case("MatMul_batch", "(float[D,A,B] x, float[D,B,C] w) => (float[] y) { y = MatMul(x, w) }")
case("MatMul_one_batch", "(float[D,A,B] x, float[B,C] w) => (float[] y) { y = MatMul(x, w) }")
case("MatMul_vector", "(float[A,B] x, float[B] w) => (float[] y) { y = MatMul(x, w) }")
case("dot", "(float[B] x, float[B] w) => (float[] y) { y = MatMul(x, w) }")
case("Gemm", "(float[A,B] x, float[B,C] w, float[C] b) => (float[] y) { y = Gemm(x, w, b) }")
case("Gemm_turned", "(float[B,A] x, float[C,B] w, float[C] b) => (float[] y) { y = Gemm<transA=1, transB=1, alpha=0.5>(x, w, b) }")
case("two_products", "(float[A,B] x, float[B,C] w, float[C,D] v) => (float[] y) { h = MatMul(x, w)  r = Relu(h)  y = MatMul(r, v) }")
case("MatMulInteger", "(uint8[A,B] x, uint8[B,C] w) => (int32[] y) { y = MatMulInteger(x, w) }")
case("Einsum", "(float[A,B,C] x, float[A,C,D] z) => (float[] y) { y = Einsum<equation=\"bij,bjk->bik\">(x, z) }")
case("Einsum_outer", "(float[A] x, float[B] z) => (float[] y) { y = Einsum<equation=\"i,j->ij\">(x, z) }")
case("Einsum_sum", "(float[A,B] x) => (float[] y) { y = Einsum<equation=\"ij->j\">(x) }")
case("Einsum_three", "(float[A,B] x, float[B,C] z, float[C,D] w) => (float[] y) { y = Einsum<equation=\"ij,jk,kl->il\">(x, z, w) }")
case("attention", "(float[A,B,C,D] x, float[A,B,E,D] k, float[A,B,E,D] v) => (float[] y) { t = Transpose<perm=[0,1,3,2]>(k)  s = MatMul(x, t)  p = Softmax<axis=-1>(s)  y = MatMul(p, v) }")
for name, perm in (("turned", "[1,0,2]"), ("turned_last", "[0,2,1]"), ("turned_all", "[2,1,0]")):
    case(f"Transpose_{name}", f"(float[A,B,C] x) => (float[] y) {{ y = Transpose<perm={perm}>(x) }}")
for axis in (0, 1):
    case(f"Concat_{axis}", f"(float[A,B] x, float[{'D' if axis == 0 else 'A'},{'B' if axis == 0 else 'D'}] z) => (float[] y) {{ y = Concat<axis={axis}>(x, z) }}")
case("Concat_self", "(float[A,B] x, float[D,B] z) => (float[] y) { e = Exp(x)  y = Concat<axis=0>(e, z, x) }")
case("Slice", "(float[A,B] x) => (float[] y) <int64[1] s = {1}, int64[1] e = {2}, int64[1] a = {1}> { y = Slice(x, s, e, a) }")
case("Slice_empty", "(float[A,B] x) => (float[] y, float[] z) <int64[1] s = {2}, int64[1] a = {0}, int64[1] n = {-1}> { y = Slice(x, s, s, a)  z = Slice(x, s, s, n) }")
case("Slice_product", "(float[A,12] x) => (float[] y) <float[12,3] w = {"+", ".join(str(i*0.1) for i in range(36))+"}, int64[1] s = {2}> { t = Slice(x, s, s)  y = MatMul(t, w) }")
case("Slice_reversed", "(float[A,B] x) => (float[] y) <int64[1] s = {-1}, int64[1] e = {-100}, int64[1] a = {0}, int64[1] n = {-1}> { y = Slice(x, s, e, a, n) }")
case("Split", "(float[A,B] x) => (float[] y, float[] z) <int64[2] s = {0, 6}> { y, z = Split<axis=1>(x, s) }")
case("Reshape", "(float[A,B,C] x) => (float[] y) <int64[2] s = {-1, 3}> { e = Exp(x)  y = Reshape(e, s) }")
case("Flatten", "(float[A,B,C] x) => (float[] y) { y = Flatten<axis=1>(x) }")
case("Gather_0", "(float[A,B] x, int64[D] i) => (float[] y) { y = Gather<axis=0>(x, i) }")
case("Gather_1", "(float[A,B] x, int64[D,E] i) => (float[] y) { y = Gather<axis=1>(x, i) }")
case("GatherElements", "(float[A,B] x, int64[D,B] i) => (float[] y) { y = GatherElements<axis=0>(x, i) }")
case("GatherND", "(float[A,B] x, int64[D,1] i) => (float[] y) { y = GatherND(x, i) }")
case("ScatterElements", "(float[A,B] x, int64[D,B] i, float[D,B] u) => (float[] y) { y = ScatterElements<axis=0, reduction=\"add\">(x, i, u) }")
case("ScatterND", "(float[A,B] x, int64[D,1] i, float[D,B] u) => (float[] y) { y = ScatterND<reduction=\"add\">(x, i, u) }")
case("ScatterND_replace", "(float[A,B] x, int64[1,1] i, float[1,B] u) => (float[] y) { y = ScatterND(x, i, u) }")
case("Expand", "(float[A,1] x) => (float[] y) <int64[3] s = {0, 1, 3}> { y = Expand(x, s) }")
case("Tile", "(float[A,B] x) => (float[] y) <int64[2] r = {2, 0}> { y = Tile(x, r) }")
case("Tile_twice", "(float[A,B] x) => (float[] y) <int64[2] r = {2, 1}> { y = Tile(x, r) }")
case("Pad", "(float[A,B] x) => (float[] y) <int64[4] p = {1, 0, 2, 3}> { y = Pad(x, p) }")
case("CumSum", "(float[A,B] x) => (float[] y) <int64 a = {1}> { y = CumSum(x, a) }")
case("CumSum_0", "(float[A,B] x) => (float[] y) <int64 a = {0}> { y = CumSum<reverse=1>(x, a) }")
case("TopK", "(float[A,B] x) => (float[] y, int64[] i) <int64[1] k = {0}> { y, i = TopK<axis=1>(x, k) }")
case("TopK_2", "(float[A,B] x) => (float[] y, int64[] i) <int64[1] k = {2}> { y, i = TopK<axis=1>(x, k) }")
case("Trilu", "(float[A,B] x) => (float[] y) { y = Trilu(x) }")
case("OneHot", "(int64[A] x) => (float[] y) <int64 d = {3}, float[2] v = {0, 1}> { y = OneHot(x, d, v) }")
case("Conv", "(float[A,C,B,B] x, float[D,C,2,2] w, float[D] b) => (float[] y) { y = Conv(x, w, b) }")
case("Conv_relu", "(float[A,C,B] x, float[D,C,3] w) => (float[] y) { c = Conv<pads=[1,1]>(x, w)  y = Relu(c) }")
case("ConvTranspose", "(float[A,C,B,B] x, float[C,D,2,2] w) => (float[] y) { y = ConvTranspose<strides=[2,2]>(x, w) }")
for op in ("MaxPool", "AveragePool"):
    case(op, f"(float[A,C,B,B] x) => (float[] y) {{ y = {op}<kernel_shape=[2,2]>(x) }}")
case("GlobalAveragePool", "(float[A,C,B,B] x) => (float[] y) { y = GlobalAveragePool(x) }")
case("Resize", "(float[A,C,B,B] x) => (float[] y) <float[4] s = {1, 1, 2, 2}> { y = Resize<mode=\"linear\">(x, , s) }")
case("DepthToSpace", "(float[A,4,B,B] x) => (float[] y) { y = DepthToSpace<blocksize=2>(x) }")
case("LSTM", "(float[D,A,C] x, float[1,20,C] w, float[1,20,5] r) => (float[] y, float[] h) { y, h = LSTM<hidden_size=5>(x, w, r) }")
case("GRU", "(float[D,A,C] x, float[1,15,C] w, float[1,15,5] r) => (float[] y, float[] h) { y, h = GRU<hidden_size=5>(x, w, r) }")
case("RNN", "(float[D,A,C] x, float[1,5,C] w, float[1,5,5] r) => (float[] y, float[] h) { y, h = RNN<hidden_size=5>(x, w, r) }")
case("LSTM_from", "(float[D,A,C] x, float[1,20,C] w, float[1,20,5] r, float[1,A,5] i, float[1,A,5] j) => (float[] y, float[] h, float[] c) { y, h, c = LSTM<hidden_size=5>(x, w, r, , , i, j) }")
case("GRU_both", "(float[D,A,C] x, float[2,15,C] w, float[2,15,5] r, float[2,A,5] i) => (float[] y, float[] h) { y, h = GRU<hidden_size=5, direction=\"bidirectional\">(x, w, r, , , i) }")
case("RNN_batch_first", "(float[A,D,C] x, float[1,5,C] w, float[1,5,5] r) => (float[] y, float[] h) { t = Transpose<perm=[1,0,2]>(x)  y, h = RNN<hidden_size=5>(t, w, r) }")
case("Shape", "(float[A,B] x) => (int64[] y) { e = Exp(x)  y = Shape(e) }")
case("QuantizeLinear", "(float[A,B] x, float s) => (uint8[] y) { y = QuantizeLinear(x, s) }")
case("DynamicQuantizeLinear", "(float[A,B] x) => (uint8[] y, float[] s, uint8[] z) { y, s, z = DynamicQuantizeLinear(x) }")
case("f64", "(double[A,B] x, double[B,C] w) => (double[] y) { m = MatMul(x, w)  y = Tanh(m) }")
case("f16", "(float16[A,B] x, float16[B,C] w) => (float16[] y) { m = MatMul(x, w)  y = Relu(m) }")
case("integers", "(int64[A,B] x) => (int64[] y, int64[] z) <int64[1] a = {1}> { y = ReduceSum(x, a)  z = ReduceMax(x, a) }")
case("NonZero", "(float[A,B] x) => (int64[] y) { y = NonZero(x) }")
case("Unsqueeze", "(float[A,B] x) => (float[] y) <int64[1] a = {1}> { e = Exp(x)  y = Unsqueeze(e, a) }")
case("Clip", "(float[A,B] x, float l) => (float[] y) { y = Clip(x, l) }")
case("PRelu", "(float[A,B] x, float[B] s) => (float[] y) { y = PRelu(x, s) }")


def variants():
    """{name: text of a model} for each letter that a case has."""
    for name, text in CASES.items():
        for zero in sorted(set(re.findall(r"\b[A-E]\b", text[:text.index("=>")]))):
            sizes = {**SIZES, zero: 0}
            shapes = re.sub(r"\[([A-E0-9,]+)\]", lambda m: "[" + ",".join(str(sizes.get(s, s)) for s in m[1].split(",")) + "]", text)
            if f"{name}.{zero}" not in UNDEFINED:
                yield f"{name}.{zero}", f'<ir_version: 10, opset_import: ["": 20]> g {shapes}'


def draw(model, random):
    """Inputs; indices are 0 or 1, scalars a half."""
    inputs = {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        kind = np.dtype(TYPES[value.type.tensor_type.elem_type])
        drawn = random.standard_normal(shape) if kind.kind == "f" else random.integers(0, 2, shape)
        inputs[value.name] = np.asarray(drawn if shape else 0.5).astype(kind)
    return inputs


def expect(name, model, inputs):
    """ONNX's reference says what is right where it can; onnxruntime reduces what is empty to 0 and leaves sums of nothing as their memory was.
    Of a recurrent net without steps onnxruntime ends, or has states of 0, and the reference divides by 0: by the formulas states are the
    initial ones."""
    names = [value.name for value in model.graph.output]
    if name.startswith(("LSTM", "GRU", "RNN")) and name.endswith(".D"):
        directions, samples = inputs["w"].shape[0], SIZES["A"]
        zeros = np.zeros((directions, samples, 5), np.float32)
        return dict(zip(names, [np.zeros((0, *zeros.shape), np.float32), inputs.get("i", zeros), inputs.get("j", zeros)]))
    if not name.startswith(("Gather", "Flatten", "Conv", "GlobalAveragePool")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dict(zip(names, map(np.asarray, ReferenceEvaluator(model).run(None, inputs))))
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip(names, session.run(names, inputs)))


class Model:
    """A file of a variant, of its inputs, of these and its outputs, and how it is cut: each another way."""

    def __init__(self, name, text, folder, number):
        random, model = np.random.default_rng(number), onnx.parser.parse_model(text)
        for value in model.graph.output:
            value.type.tensor_type.ClearField("shape")
        inputs = draw(model, random)
        outputs = expect(name, model, inputs)
        self.path = os.path.join(folder, name)
        onnx.save(model, self.path + ".onnx")
        np.savez(self.path + ".in.npz", **inputs)
        np.savez(self.path + ".npz", **{f"in:{key}": value for key, value in inputs.items()},
                 **{f"out:{key}": value for key, value in outputs.items()})
        self.way = [["--executor", "program"], ["--device", "cuda-emulated"]][number % 2]
        cut = [(key, value.ndim, dim, 2 + (value.shape[dim] % 2 or number % 2))
               for key, value in {**inputs, **outputs}.items() for dim in range(value.ndim)]
        with open(self.path + ".yaml", "w") as file:
            key, rank, dim, ranks = cut[number // 2 % len(cut)]
            dims = ["x" if i == dim else "_" for i in range(rank)]
            file.write(f"mesh: {{x: {ranks}}}\nuneven: true\nshard: [{{tensor: {key}, dims: [{', '.join(dims)}]}}]\n")

    def run_cut(self, build):
        """What is wrong on several ranks, or nothing."""
        done = harness.cleave(build, "run", self.path + ".onnx", "--inputs", self.path + ".in.npz", "--plan", self.path + ".yaml", "--check",
                              "--outputs", self.path + ".out.npz", "--quiet", *self.way)
        if done.returncode:
            return f"exit {done.returncode}: {done.stderr[-300:]}"
        return harness.difference(dict(np.load(self.path + ".out.npz")), dict(np.load(self.path + ".npz")), 1e-4, 1e-5)


def main():
    build, wanted, _ = harness.arguments()
    os.environ["CLEAVE_CUDA_LIBRARY"] = "libcleave_emulated_cuda.so"
    with tempfile.TemporaryDirectory() as folder:
        texts = harness.select(dict(variants()), wanted)
        models = {name: Model(name, text, folder, number) for number, (name, text) in enumerate(texts.items())}
        rows = [(name, model.path + ".onnx", model.path + ".npz", 1e-4, 1e-5) for name, model in models.items()]
        results = harness.each(lambda flags: harness.conformance(build, rows, *flags), [[], ["--program"], ["--emulated"]])
        cases = {f"{name}{way}": "" if status == "PASS" else f"{status} {reason}"
                 for way, result in zip(("", ", program", ", emulated"), results) for name, (status, reason) in result.items()}
        cases |= {f"{name}, cut": text for name, text in zip(models, harness.each(lambda model: model.run_cut(build), models.values()))}
        return harness.run(cases, lambda text: text)


if __name__ == "__main__":
    sys.exit(main())
