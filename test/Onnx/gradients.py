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
from gradient_cases import CASES, numbers

TBLGEN, LLVM_INCLUDE = "/usr/lib/llvm-22/bin/llvm-tblgen", "/usr/lib/llvm-22/include"
STEP = 1e-5
RTOL, ATOL = 2e-6, 2e-8
DOMAIN = "ai.onnx.preview.training"


TYPES = {"float64": "double", "int64": "int64", "int8": "int8", "bool": "bool"}


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


def by_differences(build, make, isConstant, folder, number, *words):
    body, feeds, fixed = make()
    constants = list(feeds) if isConstant else []
    plain, model = build_model(body, feeds, fixed, constants)
    wrong, got = run_model(build, model, {name: array for name, array in {**feeds, **fixed}.items() if name not in constants}, folder, number, *words)
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


def ties():
    """Of equal elements of a window the first one has all."""
    model = make_nodes("a = MaxPool<kernel_shape = [3], strides = [2]>(x) b = MaxPool<kernel_shape = [4]>(z) y = Add(a, b)",
                       [(["x", "z"], ["dx", "dz"], {"xs": ["x", "z"], "y": "y"})], "double[1, 1, 5] x, double[1, 1, 4] z", "double[1, 1, 5] dx, double[1, 1, 4] dz")
    x, z = np.array([[[2.0, 2, 1, 1, 1]]]), np.array([[[1.0, 3, 0, 3]]])
    return model, {"x": x, "z": z}, {"dx": np.array([[[1.0, 0, 1, 0, 0]]]), "dz": np.array([[[0.0, 2, 0, 0]]])}


NODES = {"gradient of a gradient": second, "of equal maxima": ties, "at other places": elsewhere, "by tensors in the middle": inside}


def by_node(build, name, folder, number):
    model, feeds, expected = NODES[name]()
    wrong, got = run_model(build, model, feeds, folder, number)
    return wrong or harness.difference(got, {f"out:{key}": array for key, array in expected.items()}, 1e-12, 1e-12)


#===--- Ops that the canonical form makes ------------------------------------===#

# By op: functions of x of 3 x 4, whose sum is differentiated by the pass, and the same in numpy.
MADE = {
    "nn.silu": ("%a = nn.silu %x : (tensor<3x4xf64>) -> tensor<3x4xf64>", lambda x: x / (1 + np.exp(-x))),
    "nn.rotate": ("%a = nn.rotate %x dim 1 by 3 : (tensor<3x4xf64>) -> tensor<3x4xf64>", lambda x: np.roll(x, -3, 1)),
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
    # Kernels of their own, which the evaluator does not run.
    cases |= {f"{name}, as a program": lambda *at, make=make: by_differences(build, make, False, *at, "--executor=program", "--mesh", "one=1")
              for name, make in CASES.items() if name.startswith("attention")}
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
