"""Gradients (ai.onnx.preview.training) against finite differences and formulas, whole and under plans that cut batch and weights.

    gradients.py BUILD_DIR [CASE...]

Each case is a function of float64 tensors written as ONNX text. Its model has a node `Gradient` by all of its inputs; what that gives is
compared with central differences of the same function in ONNX's own reference evaluator, element by element, and networks with what
numpy gives by the chain rule written out. Plans run with --check.
"""
import math
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

STEP = 1e-5
RTOL, ATOL = 2e-6, 2e-8
DOMAIN = "ai.onnx.preview.training"


def numbers(*shape, low=-1.0, high=1.0):
    """Numbers that are neither equal nor near a kink at 0."""
    random = np.random.default_rng(sum(shape) + len(shape))
    array = random.uniform(low, high, shape)
    return np.where(np.abs(array) < 0.05, 0.1, array)


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
    "no dependence": lambda: function("a = Floor(x) b = Mul(z, z) y = Add(a, b)", x=numbers(4), z=numbers(4)),
}


def build_model(body, feeds, fixed, constants=()):
    """The function, and the model that differentiates it by all of feeds; those in `constants` are initializers."""
    def declare(arrays):
        return ", ".join(f"{'double' if array.dtype == np.float64 else 'int64'}{list(array.shape) if array.ndim else ''} {name}" for name, array in arrays.items())
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


def differences(plain, feeds, fixed):
    """Of the sum of y by each element of feeds, central differences."""
    session = ReferenceEvaluator(plain, new_ops=[Erf, Gelu])
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
    return wrong or harness.difference(got, expected, RTOL, ATOL)


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


def main():
    build, names, _ = harness.arguments()
    cases = {name: lambda *at, make=make: by_differences(build, make, False, *at) for name, make in CASES.items()}
    cases |= {f"{name} of constants": lambda *at, make=CASES[name]: by_differences(build, make, True, *at) for name in ("gemm", "clip", "layer norm", "pad", "where")}
    cases |= {f"{network}, {plan}{', weights of the model' * isConstant}": lambda *at, key=(network, plan, isConstant): by_formula(build, *key, *at)
              for network in NETWORKS for plan in PLANS for isConstant in (False, True)}
    cases |= {name: lambda *at, name=name: by_node(build, name, *at) for name in NODES}
    cases = harness.select(cases, names)
    with tempfile.TemporaryDirectory() as folder:
        numbered = {name: (case, number) for number, (name, case) in enumerate(cases.items())}
        return harness.run(numbered, lambda case: case[0](folder, case[1]))


if __name__ == "__main__":
    sys.exit(main())
