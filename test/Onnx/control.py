"""Recurrent nets and control flow against onnxruntime: every option of LSTM, GRU and RNN, loops, scans, branches, sequences
and optional values.

    control.py BUILD_DIR [--program|--emulated] [CASE...]

Each model is made here, with random weights, and computed by onnxruntime. The evaluator runs it whole, and recurrent nets under plans
that cut the batch, directions, hidden units, and several of them, evenly and not, too. What branches and loops ask of data is known then; where it is not,
a program is compiled without, which computes what may be wanted. With --program, it is compiled and run; with
--emulated likewise for CUDA, on a device that this machine plays.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, parser

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

# So many hidden units that cutting them pays.
STEPS, BATCH, INPUTS = 5, 4, 6
HIDDEN = {"LSTM": 64, "GRU": 64, "RNN": 256}
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ACTIVATIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
RTOL, ATOL = 1e-4, 1e-5


def recurrent(kind, direction="forward", hidden=None, given=(), lengths=None, steps=STEPS, **attributes):
    """A model of one node and its inputs. `given`: of B, initial_h, initial_c, P; `lengths` may be 'input': known only to data.
    Of a sample without steps onnxruntime forgets the initial state, so that there is none where one is given."""
    hidden = hidden or HIDDEN[kind]
    random = np.random.default_rng(len(kind) + len(direction) + hidden + len(given))
    directions = 2 if direction == "bidirectional" else 1
    shapes = {"W": [directions, GATES[kind] * hidden, INPUTS], "R": [directions, GATES[kind] * hidden, hidden],
              "B": [directions, 2 * GATES[kind] * hidden], "initial_h": [directions, BATCH, hidden],
              "initial_c": [directions, BATCH, hidden], "P": [directions, 3 * hidden]}
    arrays = {name: (random.uniform(-1, 1, shape) * (1.5 / hidden**0.5 if name in ("W", "R") else 0.6)).astype(np.float32) for name, shape in shapes.items()
              if name in ("W", "R", *given)}
    feeds = {"X": random.uniform(-1, 1, [steps, BATCH, INPUTS]).astype(np.float32)}
    inputs = [helper.make_tensor_value_info("X", TensorProto.FLOAT, [steps, BATCH, INPUTS])]
    if lengths is not None:
        numbers = np.array([steps, 2, 0 if "initial_h" not in given and "initial_c" not in given else 1, steps - 1], np.int32)
        if lengths == "input":
            feeds["lengths"] = numbers
            inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, [BATCH]))
        else:
            arrays["lengths"] = numbers
    names = ["X", "W", "R", "B", "lengths", "initial_h", "initial_c", "P"][:8 if kind == "LSTM" else 6]
    names = [name if name in arrays or name in feeds else "" for name in names]
    while not names[-1]:
        names.pop()
    outputs = ["Y", "Y_h", "Y_c"][:3 if kind == "LSTM" else 2]
    node = helper.make_node(kind, names, outputs, "net", direction=direction, hidden_size=hidden, **attributes)
    graph = helper.make_graph([node], "recurrent", inputs,
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
                              [numpy_helper.from_array(array, name) for name, array in arrays.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), feeds


def text(body, opset=17, **feeds):
    """A model written as text, and its inputs."""
    return parser.parse_model(f'<ir_version: 9, opset_import: ["": {opset}]> ' + body), feeds


def samples(lengths="", length=4, given=None, **feeds):
    """A Scan of opset 8: three samples, a scalar and a vector carried, one input from each end. `lengths`: of sequences, as text; `given` as data."""
    return text(f"""scan ({"int64[3] given, " if given else ""}float[3] k, float[3, 2] s, float[3, {length}, 2] pairs, float[3, {length}] z) => (float[3] n, float[3, 2] last, float[3, {length}, 2] sums) <int64[3] lengths = {{{lengths or "0, 0, 0"}}}> {{
        n, last, sums = Scan<num_scan_inputs = 2, directions = [0, 1], body = b (float c, float[2] a, float[2] p, float q) => (float d, float[2] o, float[2] u) {{
            d = Add(c, q) t = Mul(p, q) h = Tanh(a) o = Add(h, t) u = Mul(o, c) }}>({"given" if given else "lengths" if lengths else ""}, k, s, pairs, z) }}""",
                opset=8, k=ramp(3), s=ramp(3, 2), pairs=ramp(3, length, 2), z=ramp(3, length) + 0.5, **({"given": np.array(given)} if given else {}))


def ramp(*shape):
    return (np.arange(np.prod(shape)).reshape(shape) / np.prod(shape) - 0.4).astype(np.float32)


RECURRENT = {
    "lstm": lambda: recurrent("LSTM"),
    "lstm of one step": lambda: recurrent("LSTM", steps=1, given=["B"]),
    "lstm with all": lambda: recurrent("LSTM", given=["B", "initial_h", "initial_c", "P"]),
    "lstm reverse": lambda: recurrent("LSTM", "reverse", given=["B", "P"]),
    "lstm bidirectional": lambda: recurrent("LSTM", "bidirectional", given=["B", "initial_h", "initial_c", "P"]),
    "lstm with lengths": lambda: recurrent("LSTM", "bidirectional", given=["B", "initial_h"], lengths="known"),
    "lstm with lengths of data": lambda: recurrent("LSTM", "bidirectional", given=["B", "initial_c"], lengths="input"),
    "lstm clipped": lambda: recurrent("LSTM", given=["B", "P"], clip=0.3),
    "lstm coupled": lambda: recurrent("LSTM", given=["B"], input_forget=1),
    "lstm of 61 units": lambda: recurrent("LSTM", hidden=61, given=["B", "P", "initial_c"]),
    "lstm activations": lambda: recurrent("LSTM", given=["B"], activations=["HardSigmoid", "ScaledTanh", "Softsign"],
                                          activation_alpha=[0.3, 0.9], activation_beta=[0.4, 0.8]),
    "lstm with two kinds of directions": lambda: recurrent(
        "LSTM", "bidirectional", given=["B", "initial_h"], activations=["Sigmoid", "Tanh", "Tanh", "Sigmoid", "Softsign", "Tanh"]),
    "gru": lambda: recurrent("GRU"),
    "gru bidirectional": lambda: recurrent("GRU", "bidirectional", given=["B", "initial_h"]),
    "gru reset last": lambda: recurrent("GRU", "bidirectional", given=["B", "initial_h"], linear_before_reset=1),
    "gru reset last without bias": lambda: recurrent("GRU", linear_before_reset=1),
    "gru with lengths of data": lambda: recurrent("GRU", "reverse", given=["B"], lengths="input", linear_before_reset=1),
    "gru clipped": lambda: recurrent("GRU", given=["B"], clip=0.2),
    "gru of 61 units": lambda: recurrent("GRU", hidden=61, given=["B", "initial_h"]),
    "rnn": lambda: recurrent("RNN"),
    "rnn bidirectional": lambda: recurrent("RNN", "bidirectional", given=["B", "initial_h"], activations=["Relu", "Relu"]),
    "rnn with lengths": lambda: recurrent("RNN", "reverse", given=["B"], lengths="known"),
    # With numbers: onnxruntime has other ones than ONNX where none are given.
    **{f"rnn {name.lower()}": lambda name=name: recurrent("RNN", given=["B", "initial_h"], activations=[name],
                                                          activation_alpha=[0.3], activation_beta=[0.7])
       for name in ("Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus")},
}

# What a loop is unrolled into, folded, or chosen between; sequences that are gone; each in onnx's text form.
CONTROL = {
    "loop": lambda: text("""loop (float[3] x) => (float[3] y, float[4, 3] all) <int64 n = {4}, bool c = {1}> {
        y, all = Loop(n, c, x) <body = b (int64 i, bool ci, float[3] s) => (bool co, float[3] o, float[3] p) {
            co = Identity(ci) k = Cast<to = 1>(i) t = Mul(s, s) o = Add(t, k) p = Neg(o) }> }""", x=ramp(3)),
    "loop that its condition ends": lambda: text("""loop (float[3] x) => (float[3] y, float[n, 3] all) <int64 most = {5}, bool c = {1}> {
        y, all = Loop("", c, x) <body = b (int64 i, bool ci, float[3] s) => (bool co, float[3] o, float[3] p) {
            co = Less(i, most) o = Tanh(s) p = Add(s, o) }> }""".replace('""', ""), x=ramp(3)),
    "loop of data": lambda: text("""loop (float[3] x) => (float[3] y, int64[1] n) <int64 most = {6}, bool c = {1}, float limit = {1.0}, int64[1] zero = {0}, int64[1] one = {1}> {
        y, n = Loop(most, c, x, zero) <body = b (int64 i, bool ci, float[3] s, int64[1] k) => (bool co, float[3] o, int64[1] m) {
            o = Add(s, s) t = ReduceSum<keepdims = 0>(o) a = Abs(t) co = Less(a, limit) m = Add(k, one) }> }""", x=ramp(3)),
    "loop of data that never begins": lambda: text("""loop (float[3] x, bool c) => (float[3] y) <int64 most = {3}> {
        y = Loop(most, c, x) <body = b (int64 i, bool ci, float[3] s) => (bool co, float[3] o) { co = Identity(ci) o = Exp(s) }> }""",
                                                   x=ramp(3), c=np.array(False)),
    "loop of data that a constant never begins": lambda: text("""loop (float[4, 8] x, int64 n) => (float[4, 8] y, float[m, 4, 8] all) <bool c = {0}> {
        y, all = Loop(n, c, x) <body = b (int64 i, bool ci, float[4, 8] s) => (bool co, float[4, 8] o, float[4, 8] p) { co = Identity(ci) o = Exp(s) p = Neg(s) }> }""",
                             x=ramp(4, 8), n=np.array(2)),
    "loop that grows": lambda: text("""loop (float[2] x) => (float[16] y) <int64 n = {3}, bool c = {1}> {
        y = Loop(n, c, x) <body = b (int64 i, bool ci, float[k] s) => (bool co, float[l] o) { co = Identity(ci) t = Neg(s) o = Concat<axis = 0>(s, t) }> }""",
                                    x=ramp(2)),
    "loop in a loop": lambda: text("""loop (float[3] x) => (float[3] y) <int64 n = {3}, bool c = {1}> {
        y = Loop(n, c, x) <body = b (int64 i, bool ci, float[3] s) => (bool co, float[3] o) { co = Identity(ci)
            k = Add(i, n)
            o = Loop(k, ci, s) <body = d (int64 j, bool cj, float[3] u) => (bool cp, float[3] v) { cp = Identity(cj) w = Sin(u) v = Add(w, x) }> }> }""",
                                   x=ramp(3)),
    "scan": lambda: text("""scan (float[3] s, float[4, 3] x, float[3, 4] z) => (float[3] last, float[4, 3] sums, float[3, 4] both) {
        last, sums, both = Scan<num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1], scan_output_axes = [0, 1], scan_output_directions = [1, 0],
            body = b (float[3] a, float[3] p, float[3] q) => (float[3] o, float[3] u, float[3] v) { o = Add(a, p) u = Mul(o, q) v = Sub(p, q) }>(s, x, z) }""",
                         s=ramp(3), x=ramp(4, 3), z=ramp(3, 4)),
    "scan of samples": lambda: samples(),
    "scan of samples with lengths": lambda: samples("2, 4, 1"),
    "scan of samples with lengths of data": lambda: samples(given=[2, 4, 1]),
    **{f"if {holds}".lower(): lambda holds=holds: text("""branch (float[3] x, bool c) => (float[3] y, int64[1] k) <int64[1] one = {1}> {
        t = Exp(x)
        y, k = If(c) <then_branch = a () => (float[3] p, int64[1] q) { p = Add(t, x) q = Identity(one) }, else_branch = b () => (float[3] r, int64[1] u) { r = Neg(t) u = Neg(one) }> }""",
                                                       x=ramp(3), c=np.array(holds)) for holds in (True, False)},
    "if in a loop": lambda: text("""loop (float[3] x) => (float[3] y) <int64 n = {4}, int64 two = {2}, bool c = {1}> {
        y = Loop(n, c, x) <body = b (int64 i, bool ci, float[3] s) => (bool co, float[3] o) { co = Identity(ci) d = Less(i, two)
            o = If(d) <then_branch = a () => (float[3] p) { p = Add(s, x) }, else_branch = e () => (float[3] q) { q = Mul(s, x) }> }> }""", x=ramp(3)),
    "sequences": lambda: text("""seq (float[2, 3] x, float[1, 3] z) => (float[4, 3] y, int64 n, float[3, 1, 3] stacked) <int64 zero = {0}, int64 last = {-1}, int64 one = {1}> {
        a = SplitToSequence<axis = 0>(x) b = SequenceInsert(a, z) c = SequenceInsert(b, z, zero) y = ConcatFromSequence<axis = 0>(c)
        d = SequenceErase(c, one) n = SequenceLength(d) stacked = ConcatFromSequence<axis = 0, new_axis = 1>(d) }""", x=ramp(2, 3), z=ramp(1, 3)),
    "sequence of a loop": lambda: text("""seq (float[3] x) => (float[12] y, float[3] z) <int64 n = {4}, bool c = {1}, int64 two = {2}> {
        e = SequenceEmpty<dtype = 1>()
        s = Loop(n, c, e) <body = b (int64 i, bool ci, seq(float[3]) l) => (bool co, seq(float[3]) m) { co = Identity(ci) k = Cast<to = 1>(i) t = Add(x, k) m = SequenceInsert(l, t) }>
        y = ConcatFromSequence<axis = 0>(s) z = SequenceAt(s, two) }""", x=ramp(3)),
    "parts of a sequence": lambda: text("""seq (float[7, 2] x) => (float[3, 2] y, float[1, 2] z, float[2] w) <int64 three = {3}, int64 zero = {0}, int64 last = {-1}> {
        a = SplitToSequence<axis = 0>(x, three) y = SequenceAt(a, zero) z = SequenceAt(a, last) b = SplitToSequence<axis = 0, keepdims = 0>(x) w = SequenceAt(b, last) }""",
                                        x=ramp(7, 2)),
    "map": lambda: text("""seq (float[2, 3] x, float[1, 3] z) => (float[2, 3] y) {
        a = SplitToSequence<axis = 0>(x)
        b = SequenceMap<body = m (float[1, 3] p, float[1, 3] q) => (float[1, 3] r) { r = Mul(p, q) }>(a, z)
        y = ConcatFromSequence<axis = 0>(b) }""", x=ramp(2, 3), z=ramp(1, 3)),
    "optional": lambda: text("""opt (float[3] x) => (float[3] y, bool h) { o = Optional(x) h = OptionalHasElement(o) g = OptionalGetElement(o) y = Neg(g) }""",
                             x=ramp(3)),
}

# Loops that stay loops: whose trip count only data tells, or that are too long to be unrolled.
LOOPS = {
    "trips of data": lambda: text("""loop (float[4, 8] x, int64 n) => (float[4, 8] y) <bool c = {1}, float k = {0.5}> {
        e = Exp(x)
        y = Loop(n, c, x) <body = b (int64 i, bool ci, float[4, 8] s) => (bool co, float[4, 8] o) { co = Identity(ci)
            t = Mul(s, k) f = Cast<to = 1>(i) u = Add(t, f) v = Add(u, e) o = Sin(v) }> }""", x=ramp(4, 8), n=np.array(9)),
    "no trips": lambda: text("""loop (float[4, 8] x, int64 n) => (float[4, 8] y) <bool c = {1}> {
        y = Loop(n, c, x) <body = b (int64 i, bool ci, float[4, 8] s) => (bool co, float[4, 8] o) { co = Identity(ci) o = Exp(s) }> }""",
                             x=ramp(4, 8), n=np.array(0)),
    "newton": lambda: text("""loop (float[4, 8] x) => (float[4, 8] y, int64 n) <bool c = {1}, float half = {0.5}, float eps = {0.00001}, int64 zero = {0}, int64 one = {1}> {
        y, n = Loop(, c, x, zero) <body = b (int64 i, bool ci, float[4, 8] s, int64 k) => (bool co, float[4, 8] o, int64 m) {
            q = Div(x, s) t = Add(s, q) o = Mul(t, half) d = Sub(o, s) a = Abs(d) w = ReduceMax<keepdims = 0>(a) co = Less(eps, w) m = Add(k, one) }> }""",
                           x=ramp(4, 8) + 1),
    "condition of data at first": lambda: text("""loop (float[4, 8] x, bool c) => (float[4, 8] y) <float limit = {30.0}> {
        y = Loop(, c, x) <body = b (int64 i, bool ci, float[4, 8] s) => (bool co, float[4, 8] o) {
            o = Add(s, s) a = Abs(o) w = ReduceSum<keepdims = 0>(a) co = Less(w, limit) }> }""", x=ramp(4, 8), c=np.array(True)),
    "bound and condition": lambda: text("""loop (float[4, 8] x, int64 n) => (float[4, 8] y) <bool c = {1}, float limit = {30.0}> {
        y = Loop(n, c, x) <body = b (int64 i, bool ci, float[4, 8] s) => (bool co, float[4, 8] o) {
            o = Add(s, s) a = Abs(o) w = ReduceSum<keepdims = 0>(a) co = Less(w, limit) }> }""", x=ramp(4, 8), n=np.array(3)),
    "counter": lambda: text("""loop (float[4, 8] x) => (float[4, 8] y) <int64 n = {26000}, bool c = {1}, float k = {0.5}> {
        y = Loop(n, c, x) <body = b (int64 i, bool ci, float[4, 8] s) => (bool co, float[4, 8] o) { co = Identity(ci) t = Mul(s, k) o = Add(t, x) }> }""", x=ramp(4, 8)),
    "scan outputs": lambda: text("""loop (float[4, 8] x) => (float[4, 8] y, float[26000, 4, 8] all) <int64 n = {26000}, bool c = {1}, float k = {0.99}> {
        y, all = Loop(n, c, x) <body = b (int64 i, bool ci, float[4, 8] s) => (bool co, float[4, 8] o, float[4, 8] p) { co = Identity(ci) o = Mul(s, k) p = Neg(o) }> }""",
                                 x=ramp(4, 8)),
    "long scan": lambda: text("""scan (float[4, 8] x, float[4, 8, 26000] steps) => (float[4, 8] last, float[4, 26000, 8] sums) {
        last, sums = Scan<num_scan_inputs = 1, scan_input_axes = [2], scan_input_directions = [1], scan_output_axes = [1], scan_output_directions = [1],
            body = b (float[4, 8] a, float[4, 8] p) => (float[4, 8] o, float[4, 8] q) { o = Add(a, p) q = Neg(o) }>(x, steps) }""", x=ramp(4, 8), steps=ramp(4, 8, 26000)),
    "long scan of samples": lambda: samples("12000, 7, 20000", 20000),
    "long scan of samples with lengths of data": lambda: samples(given=[12000, 7, 20000], length=20000),
    "scan outputs of data": lambda: text("""loop (float[4, 8] x) => (float[4, 8] y, float[k, 4, 8] all, float[k] sums) <int64 n = {12}, bool c = {1}, float limit = {30.0}> {
        y, all, sums = Loop(n, c, x) <body = b (int64 i, bool ci, float[4, 8] s) => (bool co, float[4, 8] o, float[4, 8] p, float w) {
            o = Add(s, s) a = Abs(o) w = ReduceSum<keepdims = 0>(a) co = Less(w, limit) p = Neg(o) }> }""", x=ramp(4, 8)),
    "scan outputs of a loop that never begins": lambda: text("""loop (float[4, 8] x, bool c) => (float[4, 8] y, float[k, 4, 8] all) <int64 n = {12}> {
        y, all = Loop(n, c, x) <body = b (int64 i, bool ci, float[4, 8] s) => (bool co, float[4, 8] o, float[4, 8] p) {
            o = Add(s, s) co = Identity(ci) p = Neg(o) }> }""", x=ramp(4, 8), c=np.array(False)),
    "loop in a loop of data": lambda: text("""loop (float[4, 8] x, int64 n) => (float[4, 8] y) <bool c = {1}> {
        y = Loop(n, c, x) <body = b (int64 i, bool ci, float[4, 8] s) => (bool co, float[4, 8] o) { co = Identity(ci)
            o = Loop(n, ci, s) <body = d (int64 j, bool cj, float[4, 8] u) => (bool cp, float[4, 8] v) { cp = Identity(cj) w = Sin(u) f = Cast<to = 1>(i) z = Mul(w, f) v = Add(z, x) }> }> }""",
                                           x=ramp(4, 8), n=np.array(4)),
    "if in a loop of data": lambda: text("""loop (float[4, 8] x, int64 n) => (float[4, 8] y) <int64 two = {2}, bool c = {1}> {
        y = Loop(n, c, x) <body = b (int64 i, bool ci, float[4, 8] s) => (bool co, float[4, 8] o) { co = Identity(ci) d = Less(i, two)
            o = If(d) <then_branch = a () => (float[4, 8] p) { p = Add(s, x) }, else_branch = e () => (float[4, 8] q) { q = Mul(s, x) }> }> }""",
                                         x=ramp(4, 8), n=np.array(5)),
    "swap": lambda: text("""loop (float[4, 8] x, float[4, 8] z, int64 n) => (float[4, 8] a, float[4, 8] b) <bool c = {1}> {
        a, b = Loop(n, c, x, z) <body = b (int64 i, bool ci, float[4, 8] s, float[4, 8] t) => (bool co, float[4, 8] u, float[4, 8] v) { co = Identity(ci) u = Identity(t) v = Identity(s) }> }""",
                         x=ramp(4, 8), z=ramp(4, 8) + 2, n=np.array(5)),
    "weights": lambda: layers(),
    "greedy decoding": lambda: decoder(),
    "sum of products": lambda: products(),
}


def layers():
    """A product with a weight in each of as many iterations as data say."""
    random = np.random.default_rng(7)
    arrays = {"w": random.uniform(-0.2, 0.2, [64, 64]), "v": random.uniform(-0.2, 0.2, [64, 64])}
    model, feeds = text("""loop (float[4, 64] x, int64 n) => (float[4, 64] y) <bool c = {1}, float[64, 64] w = {0}, float[64, 64] v = {0}> {
        y = Loop(n, c, x) <body = b (int64 i, bool ci, float[4, 64] s) => (bool co, float[4, 64] o) { co = Identity(ci)
            h = MatMul(s, w) g = Relu(h) t = MatMul(g, v) r = Add(t, s) o = Tanh(r) }> }""".replace("= {0}", "= {" + ", ".join(["0"] * 4096) + "}"),
                        x=random.uniform(-1, 1, [4, 64]).astype(np.float32), n=np.array(6))
    return with_weights(model, arrays), feeds


def products():
    """A small product on top of what was there, 600 times: what is carried counts further than bf16 can."""
    random = np.random.default_rng(9)
    model, feeds = text("""loop (float[4, 64] x, int64 n) => (float[4, 64] y) <bool c = {1}, float k = {0.01}, float[64, 64] w = {%s}> {
        first = MatMul(x, w)
        y = Loop(n, c, first) <body = b (int64 i, bool ci, float[4, 64] s) => (bool co, float[4, 64] o) { co = Identity(ci)
            h = MatMul(x, w) a = Relu(h) g = MatMul(a, w) t = Mul(g, k) o = Add(s, t) }> }""" % ", ".join(["0"] * 4096),
                        x=random.uniform(0.1, 1, [4, 64]).astype(np.float32), n=np.array(600))
    return with_weights(model, {"w": random.uniform(-0.2, 0.3, [64, 64])}), feeds


def with_weights(model, arrays):
    """The model with these initializers instead of its own of the same names."""
    kept = [tensor for tensor in model.graph.initializer if tensor.name not in arrays]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept + [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()])
    return model


def decoder():
    """Tokens one by one, each the likeliest after those before, into a row of 12, until one of them is token 3."""
    random = np.random.default_rng(3)
    arrays = {"table": random.uniform(-1, 1, [32, 64]), "w": random.uniform(-0.4, 0.4, [64, 64]), "head": random.uniform(-1, 1, [64, 32])}
    model, feeds = text("""greedy (int64[1] first) => (int64[12] tokens, int64 used) <bool c = {1}, int64 most = {1000000}, int64 zero = {0}, int64 one = {1}, int64 end = {3}, int64 last = {11}, int64[12] empty = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, float[1, 64] rest = {%s}, float[1] table = {0}, float[1] w = {0}, float[1] head = {0}, int64[1] at = {0}> {
        tokens, used, t, h = Loop(most, c, empty, zero, first, rest) <body = b (int64 i, bool ci, int64[12] row, int64 k, int64[1] token, float[1, 64] state) => (bool co, int64[12] next, int64 m, int64[1] now, float[1, 64] after) {
            e = Gather<axis = 0>(table, token) p = MatMul(state, w) q = Add(p, e) after = Tanh(q) scores = MatMul(after, head)
            now = ArgMax<axis = 1, keepdims = 0>(scores) place = Unsqueeze(k, at) next = ScatterElements<axis = 0>(row, place, now)
            m = Add(k, one) s = Squeeze(now, at) same = Equal(s, end) other = Not(same) room = Less(k, last) co = And(other, room) }> }""" % ", ".join(["0"] * 64),
                        first=np.array([5]))
    return with_weights(model, arrays), feeds


# Those of tens of thousands of iterations, one plan each; a device that is played would take minutes.
LONG = ("counter", "scan outputs", "long scan", "long scan of samples", "long scan of samples with lengths of data")

# Of loops: what is read and what is inside, by the axes that cut it.
LOOP_PLANS = {
    "rows": ("data=2", ["x=[data, _]", "pairs=[data, _, _]"]),
    "columns": ("model=2", ["x=[_, model]"]),
    "inside": ("model=2", ["o=[_, model]"]),
    "weights": ("model=2", ["w=[_, model]", "v=[model, _]", "table=[_, model]", "head=[_, model]"]),
    "weights by rows": ("data=2", ["w=[data, _]", "v=[data, _]", "table=[data, _]"]),
    "weights in two ways": ("data=2,model=2", ["x=[data, _]", "w=[_, model]", "v=[model, _]", "first=[_]"]),
}

# Of recurrent nets: dims of what a node reads and gives, by the axes that cut them.
PLANS = {
    "data": ("data=2", ["X=[_, data, _]"]),
    "data uneven": ("data=3", ["X=[_, data, _]"]),
    "hidden": ("model=2", ["Y=[_, _, _, model]", "Y_h=[_, _, model]"]),
    "hidden uneven": ("model=3", ["Y=[_, _, _, model]", "Y_h=[_, _, model]"]),
    "directions": ("way=2", ["Y=[_, way, _, _]"]),
    "mixed": ("data=2,model=2", ["X=[_, data, _]", "Y=[_, _, data, model]", "Y_h=[_, data, model]"]),
}


# A program that was compiled without knowing its inputs.
BLIND = "any data"
# A program with floats stored as bf16; what may then be off, of the largest element.
NARROW, NARROW_TOLERANCE = "bf16", 2e-2
# Rows that there is room for where a loop has as many at most, and data say how many.
ROOM = 12
WITH_WEIGHTS = ("weights", "greedy decoding", "sum of products")


def run_blind(build, path, inputs, outputs):
    """Compiles the model, and runs the program; the last process."""
    program = path + ".cleave"
    done = harness.cleave(build, "compile", path, "--mesh", "one=1", "-o", program)
    if done.returncode == 0:
        done = subprocess.run([f"{build}/bin/cleave-run", program, "--inputs", inputs, "--outputs", outputs], capture_output=True, text=True)
    return done


def bodies(graph):
    """The graphs within a graph."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield attribute.g
                yield from bodies(attribute.g)


def cut_rows(outputs):
    """By name; of what has room for more rows than there are, those that there are."""
    outputs = dict(outputs)
    counts = {name: int(outputs.pop(name)) for name in list(outputs) if name.endswith(".count")}
    rows = next(iter(counts.values()), None)
    return {name: array[:rows] if counts and array.ndim and len(array) == ROOM else array for name, array in outputs.items()}


def has_two_directions(model):
    return any(attribute.s == b"bidirectional" for attribute in model.graph.node[0].attribute)


def problem(build, make, plan, how, folder, number, keeps_loops=False):
    model, feeds = make()
    path, inputs, outputs, rules, report = (os.path.join(folder, f"{number}.{suffix}")
                                            for suffix in ("onnx", "in.npz", "out.npz", "yaml", "json"))
    onnx.save(model, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = session.run(None, feeds)
    wanted = {f"out:{info.name}": array for info, array in zip(session.get_outputs(), expected)}
    np.savez(inputs, **feeds)
    mesh, shards = {**PLANS, **LOOP_PLANS}.get(plan, ("one=1", []))
    named = {value.name for graph in (model.graph, *bodies(model.graph)) for value in (*graph.input, *graph.output, *graph.initializer)}
    shards = [rule for rule in shards if plan in PLANS or rule.split("=")[0] in named]
    with open(rules, "w") as file:
        file.write("uneven: true\n")
    # With its inputs at hand a loop would be unrolled, or computed at import.
    if keeps_loops and plan != BLIND:
        kept = path.replace(".onnx", ".mlir")
        done = harness.cleave(build, "import", path, "-o", kept)
        if done.returncode:
            return f"import: exit {done.returncode}: {done.stderr[-400:]}"
        with open(kept) as file:
            if "nn.loop" not in file.read():
                return "no loop is left"
        path = kept
    done = run_blind(build, path, inputs, outputs) if plan == BLIND else harness.cleave(
        build, "run", path, "--inputs", inputs, "--outputs", outputs, "--mesh", mesh, "--quiet", "--report", report, *how,
        *(["--precision", "bf16"] if plan == NARROW else ["--check"]), *["--plan", rules] * bool(plan), *[word for rule in shards for word in ("--shard", rule)])
    if done.returncode:
        return f"exit {done.returncode}: {(done.stderr + done.stdout)[-400:]}"
    if plan in PLANS:
        with open(report) as file:
            flops = json.load(file)["flops"]
        if flops["per_rank"] > 0.8 * flops["total"]:
            return f"a rank does most of the work: {flops['per_rank']} of {flops['total']} flops"
    if plan == NARROW:
        most = max(np.abs(array).max() for array in wanted.values())
        return harness.difference(cut_rows(np.load(outputs)), wanted, 0, NARROW_TOLERANCE * most)
    return harness.difference(cut_rows(np.load(outputs)), wanted, RTOL, ATOL)


def main():
    build, names, flags = harness.arguments("--program", "--emulated")
    loops = {name: make for name, make in LOOPS.items() if "--emulated" not in flags or name not in LONG}
    cases = {name: (make, None) for name, make in {**RECURRENT, **CONTROL, **loops}.items()}
    cases |= {f"{name}, {BLIND}": (make, BLIND) for name, make in CONTROL.items() if not flags}
    for name, make in RECURRENT.items():
        for plan in PLANS:
            if plan != "directions" or has_two_directions(make()[0]):
                cases[f"{name}, {plan}"] = (make, plan)
    for name, make in loops.items():
        for plan in LOOP_PLANS:
            if plan.startswith("weights") == (name in WITH_WEIGHTS) and (plan == "rows" or name not in LONG):
                cases[f"{name}, {plan}"] = (make, plan)
    cases |= {f"{name}, {NARROW}": (loops[name], NARROW) for name in WITH_WEIGHTS if flags}
    cases = harness.select(cases, names)
    with tempfile.TemporaryDirectory() as folder:
        numbered = {name: (*case, number) for number, (name, case) in enumerate(cases.items())}
        return harness.run(numbered, lambda case: problem(build, *case[:2], harness.lower(flags), folder, case[2], case[0] in LOOPS.values()))


if __name__ == "__main__":
    sys.exit(main())
