"""Steps of training that ONNX files describe themselves: TrainingInfoProto, and onnxruntime's artifacts.

    onnx_forms.py BUILD_DIR [CASE...]

`training_info`: onnx.reference evaluates the model's graph and its algorithm's, one after the other, as the comments of onnx.proto say, and takes
update bindings over; of ops `Gradient` it takes the values of formulas, since it has none. `artifacts`: Artifacts/make.py has trained these with
onnxruntime-training. Losses of each step, states in the end and what is exported are compared, on one device and on meshes.
"""
import json
import os
import re
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
sys.path.insert(1, os.path.join(harness.ROOT, "test", "Runtime"))
from train import check, problem, read_safetensors  # noqa: E402

ARTIFACTS = os.path.join(harness.ROOT, "test", "Training", "Artifacts")
BATCH, STEPS = 48, 6
# Sums of f32 in another order, some steps on. A loss of onnxruntime is f32, too, and its gradients add up otherwise.
NEAR, PEER = 3e-6, 1e-5

MODEL = """f (float[48, 4] x) => (float[48, 2] y) { h = MatMul(x, W1) a = Tanh(h) m = MatMul(a, W2) y = Add(m, b) }"""
# The loss is the mean of squares, and its gradients are written out.
BACKWARD = """d = Sub(y, t) two = Constant<value = float {0.020833334}>() dy = Mul(d, two) at = Transpose(a) gW2 = MatMul(at, dy) zero = Constant<value = int64[1] {0}>() gb = ReduceSum<keepdims = 0>(dy, zero)
  w2t = Transpose(W2) da = MatMul(dy, w2t) aa = Mul(a, a) one = Constant<value = float {1.0}>() da1 = Sub(one, aa) dh = Mul(da, da1) xt = Transpose(x) gW1 = MatMul(xt, dh)"""
LOSS = "d0 = Sub(y, t) sq = Mul(d0, d0) loss = ReduceMean<keepdims = 0>(sq)"
GRADIENT = "gW1, gW2, gb = ai.onnx.preview.training.Gradient<xs = [\"W1\", \"W2\", \"b\"], zs = [\"x\"], y = \"loss\">(W1, W2, b, x)"
# Momentum by hand, with a rate that falls with the count of steps; the third weight is not trained.
BY_HAND = """tf = Cast<to = 1>(T) k = Constant<value = float {0.1}>() slow = Mul(tf, k) slower = Add(slow, one) r = Div(R, slower) oneI = Constant<value = int64 {1}>() Tn = Add(T, oneI)
  mu = Constant<value = float {0.9}>() v1 = Mul(V1, mu) V1n = Add(v1, gW1) u1 = Mul(V1n, r) W1n = Sub(W1, u1) v2 = Mul(V2, mu) V2n = Add(v2, gW2) u2 = Mul(V2n, r) W2n = Sub(W2, u2)"""
ADAM = """oneI = Constant<value = int64 {1}>() Tn = Add(T, oneI)
  W1n, W2n, bn, V1n, V2n, Vbn, H1n, H2n, Hbn = ai.onnx.preview.training.Adam<alpha = 0.9, beta = 0.99, epsilon = 0.0001, norm_coefficient = 0.01>(R, T, W1, W2, b, gW1, gW2, gb, V1, V2, Vb, H1, H2, Hb)"""
MOMENTUM = """oneI = Constant<value = int64 {1}>() Tn = Add(T, oneI)
  W1n, W2n, V1n, V2n = ai.onnx.preview.training.Momentum<alpha = 0.9, beta = 1.0, mode = "nesterov", norm_coefficient = 0.0>(rate, T, W1, W2, gW1, gW2, V1, V2)"""
INITIALIZATION = """g () => (float[4, 8] W1o, int64 To, float[4, 8] V1o) { n = Constant<value = int64 {32}>() z = Constant<value = int64 {0}>() oneI = Constant<value = int64 {1}>() i = Range(z, n, oneI) f = Cast<to = 1>(i)
  s = Sin(f) half = Constant<value = float {0.5}>() w = Mul(s, half) shape = Constant<value = int64[2] {4, 8}>() W1o = Reshape(w, shape) To = Identity(z) V1o = ConstantOfShape(shape) }"""
# Block coordinate descent: the first layer, then the second one with what the first has become. Both use the same names, R for two rates; what
# the second one keeps, beside the weights, is what the model gives by then.
OF_FIRST = "gW1 = ai.onnx.preview.training.Gradient<xs = [\"W1\"], zs = [\"x\"], y = \"loss\">(W1, x)"
OF_SECOND = "gW2, gb = ai.onnx.preview.training.Gradient<xs = [\"W2\", \"b\"], zs = [\"x\"], y = \"loss\">(W2, b, x)"
FIRST = """oneI = Constant<value = int64 {1}>() Tn = Add(T, oneI) mu = Constant<value = float {0.9}>() v1 = Mul(V1, mu) V1n = Add(v1, gW1) u = Mul(V1n, R) W1n = Sub(W1, u)"""
SECOND = "u = Mul(gW2, R) W2n = Sub(W2, u) ub = Mul(gb, R) bn = Sub(b, ub)"
THIRD = "half = Constant<value = float {0.5}>() y2 = Mul(y, y) mean = ReduceMean<keepdims = 0>(y2) r = Mul(mean, half) Zn = Add(Z, r)"
SHAPES = {"W1": (4, 8), "W2": (8, 2), "b": (2,)}
ALL_STATES = ["W1", "W2", "V1", "V2", "T"]
CASES = {  # what each algorithm computes, of which states; whether an initialization comes first, what it is fed with besides
    "formulas": ([(f"{LOSS} {BACKWARD} {BY_HAND}", ALL_STATES)], False, {}),
    "initialization": ([(f"{LOSS} {BACKWARD} {BY_HAND}", ALL_STATES)], True, {}),
    "Adam": ([(f"{LOSS} {GRADIENT} {ADAM}", ["W1", "W2", "b", "V1", "V2", "Vb", "H1", "H2", "Hb", "T"])], False, {}),
    "Momentum": ([(f"{LOSS} {GRADIENT} {MOMENTUM}", ALL_STATES)], False, {"rate": np.float32(0.1)}),
    "blocks": ([(f"{LOSS} {OF_FIRST} {FIRST}", ["W1", "V1", "T"]), (f"{LOSS} {OF_SECOND} {SECOND}", ["W2", "b", "S"])], False, {}),
    "blocks by formulas": ([(f"{LOSS} {BACKWARD} {FIRST}", ["W1", "V1", "T"]), (f"{LOSS} {BACKWARD} {SECOND}", ["W2", "b"]), (THIRD, ["Z"])], True, {}),
}
# By algorithm: no two move at one rate.
RATES = [0.2, 0.15, 0.1]
# States that become an output of the model.
BOUND = {"S": "y"}


def has_gradients(case):
    return any("Gradient" in algorithm for algorithm, _ in CASES[case][0])

ROWS = "shard: [{tensor: x, dims: [data, _]}, {tensor: t, dims: [data, _]}]\n"
MESHES = {"one": "", "data": "mesh: {data: 2}\n" + ROWS, "three": "mesh: {data: 3}\n" + ROWS,
          # States of the algorithm over ranks that share the batch: ZeRO, by their own names.
          "states": "mesh: {data: 2}\n" + ROWS.rstrip("]\n") + ", {tensor: \"V{1,2}\", dims: [data, _]}, {tensor: \"W{1,2}\", dims: [_, _]}]\n",
          "microbatches": "mesh: {data: 2, one: 1}\npipeline: {axis: one, microbatches: 4}\n" + ROWS,
          "tensor": "mesh: {model: 2}\nshard: [{tensor: W1, dims: [_, model]}, {tensor: W2, dims: [model, _]}]\n"}


def parse(graph):
    return parser.parse_graph(graph)


def make(case):
    algorithms, begins, fed = CASES[case]
    random = np.random.default_rng(11)
    values = {name: (random.standard_normal(shape) / 2).astype(np.float32) for name, shape in SHAPES.items()}
    graph = parse(MODEL)
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in values.items())
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.preview.training", 1)], ir_version=9)
    for number, (algorithm, states) in enumerate(algorithms):
        moments = {name: np.zeros(SHAPES[{"1": "W1", "2": "W2", "b": "b"}[name[1]]], np.float32) + (0 if name[0] == "V" else 0.001) for name in states if name[0] in "VH"}
        own = {"R": np.float32(RATES[number]), "T": np.int64(5 if begins else 0), "Z": np.float32(0.25), "S": np.ones((BATCH, 2), np.float32), **moments}
        kinds = {**values, **own}
        inputs = ", ".join(["float[48, 2] t", *(f"float {name}" for name in fed)]) if "t)" in algorithm else ""
        shape = lambda value: f"[{', '.join(map(str, value.shape))}]" if value.shape else ""
        outputs = [f"{'int64' if name == 'T' else 'float'}{shape(np.asarray(kinds[name]))} {name}n" for name in states if name not in BOUND]
        step = parse(f"step ({inputs}) => ({', '.join(['float loss'] * (' loss =' in algorithm) + outputs)}) {{ {algorithm} }}")
        used = {name: value for name, value in own.items() if name in states or name == "R" and re.search(r"\bR\b", algorithm)}
        step.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in used.items() if not (name == "R" and "rate" in fed))
        info = model.training_info.add()
        info.algorithm.CopyFrom(step)
        for name in states:
            info.update_binding.add(key=name, value=BOUND.get(name, name + "n"))
    if begins:
        info = model.training_info[0]
        info.initialization.CopyFrom(parse(INITIALIZATION))
        for name in ("W1", "T", "V1"):
            info.initialization_binding.add(key=name, value=name + "o")
    return model


def gradients(values, x, t):
    """By hand, in f64, of the mean of squares."""
    w1, w2, b = (values[name].astype(np.float64) for name in ("W1", "W2", "b"))
    a = np.tanh(x @ w1)
    d = 2 * (a @ w2 + b - t) / t.size
    return {"W1": x.T @ ((d @ w2.T) * (1 - a * a)), "W2": a.T @ d, "b": d.sum(0)}


class Algorithm:
    """One execution of `info`, by the comments of onnx.proto: the lists of both graphs are joined. States are inputs here, and what a node
    `Gradient` gives, for which onnx.reference has no op: values of formulas."""

    def __init__(self, model, info, states):
        joined = onnx.GraphProto()
        joined.CopyFrom(model.graph)
        for field in ("input", "initializer", "output", "node"):
            getattr(joined, field).extend(getattr(info.algorithm, field))
        self.slopes = {}
        for node in [node for node in joined.node if node.op_type == "Gradient"]:
            names = next(each.strings for each in node.attribute if each.name == "xs")
            self.slopes.update({output: name.decode() for output, name in zip(node.output, names)})
            joined.node.remove(node)
        own = {each.name for each in joined.initializer}
        fixed = [each for each in joined.initializer if each.name not in states]
        del joined.initializer[:]
        joined.initializer.extend(fixed)
        joined.input.extend(helper.make_tensor_value_info(name, 1, None) for name in [*self.slopes, *(own & states)])
        whole = onnx.ModelProto()
        whole.CopyFrom(model)
        whole.graph.CopyFrom(joined)
        self.session, self.inputs, self.outputs = ReferenceEvaluator(whole), {each.name for each in joined.input}, [each.name for each in joined.output]
        self.bindings = {each.key: each.value for each in info.update_binding}

    def run(self, values, x, t, fed):
        """All outputs; changes `values`."""
        by_hand = gradients(values, x, t)
        given = {**values, "x": x, "t": t, **fed, **{output: by_hand[name].astype(np.float32) for output, name in self.slopes.items()}}
        got = dict(zip(self.outputs, self.session.run(None, {name: given[name] for name in self.inputs})))
        values.update({name: np.asarray(got[output]) for name, output in self.bindings.items()})
        return got


def expected(model, batches, fed):
    """The losses of the batches and the states behind them. Of several algorithms each sees what those before it have changed."""
    states = {each.key for info in model.training_info for each in info.update_binding}
    values = in_graphs(model)
    for info in model.training_info:
        if info.initialization_binding:
            begun = onnx.ModelProto()
            begun.CopyFrom(model)
            begun.graph.CopyFrom(info.initialization)
            outputs = dict(zip((each.name for each in info.initialization.output), ReferenceEvaluator(begun).run(None, {})))
            values.update({each.key: outputs[each.value] for each in info.initialization_binding})
    algorithms = [Algorithm(model, info, states) for info in model.training_info]
    losses = [float([algorithm.run(values, x, t, fed) for algorithm in algorithms][0]["loss"]) for x, t in batches]
    return losses, {name: values[name] for name in states}


class Folder(harness.Folder):
    def __init__(self, build):
        super().__init__(build, "cleave-forms-")

    def call(self, *words, expect=0):
        done = harness.cleave(self.build, *words, cwd=self.path, timeout=60)
        check(done.returncode == expect, f"cleave {' '.join(words)}: exit {done.returncode}: {done.stderr[-700:]}")
        return done.stdout + done.stderr

    def plan(self, text):
        with open(self.at("plan.yaml"), "w") as file:
            file.write(text or "{}")
        return ["--plan", "plan.yaml"] if text else []

    def losses(self):
        with open(self.at("l.jsonl")) as file:
            return [json.loads(line)["loss"] for line in file if "loss" in json.loads(line)]


def is_quiet(told):
    """But for what is said of small models, which are split little."""
    return all("each rank computes" in line for line in told.strip().splitlines())


def check_near(got, want, tolerance, what):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    check(got.shape == want.shape, f"{what} is {got.shape}, expected {want.shape}")
    scale = max(np.abs(want).max(initial=0), 1e-3)
    check(np.abs(got - want).max(initial=0) <= tolerance * scale, f"{what} is off by {np.abs(got - want).max():.3g} of {scale:.3g}")


def in_graphs(model):
    """All initializers of a model, and those of its algorithm."""
    return {each.name: numpy_helper.to_array(each) for graph in (model.graph, *(info.algorithm for info in model.training_info)) for each in graph.initializer}


def trained(build, case, mesh):
    """Six steps; then three, a checkpoint, and three more on one device. States, and the exported file, whose inference is onnxruntime's."""
    random = np.random.default_rng(5)
    x, t = (random.standard_normal((STEPS * BATCH, width)).astype(np.float32) for width in (4, 2))
    batches = [(x[at:at + BATCH], t[at:at + BATCH]) for at in range(0, len(x), BATCH)]
    model, fed = make(case), CASES[case][2]
    want, states = expected(model, batches, fed)
    check(np.abs(states["W1"] - in_graphs(model)["W1"]).max() > 0.05, "the reference learns nothing")
    with Folder(build) as folder:
        onnx.save(model, folder.at("m.onnx"))
        np.savez(folder.at("d.npz"), x=x, t=t, **fed)
        plan = folder.plan(MESHES[mesh] if "V2" in states else MESHES[mesh].replace("V{1,2}", "V1"))
        data = ["--data", "d.npz", "--order", "given", "--log", "l.jsonl", "--quiet"]
        told = folder.call("train", "m.onnx", *plan, *data, "--steps", str(STEPS), "--save", "s.safetensors", "--export", "tuned.onnx", "--eval-data", "d.npz")
        check(is_quiet(told), f"said {told}")
        check_near(folder.losses(), want, NEAR, "the loss")
        saved = read_safetensors(folder.at("s.safetensors"))[0]
        check(set(saved) == set(states), f"saved {sorted(saved)}, expected {sorted(states)}")
        exported = in_graphs(onnx.load(folder.at("tuned.onnx")))
        for name, value in states.items():
            check_near(saved[name], value, 2 * NEAR, name)
            check(exported[name].dtype == value.dtype and np.array_equal(exported[name], saved[name]), f"{name} of the exported file is another one")
        folder.call("train", "m.onnx", *plan, *data, "--steps", "3", "--save", "half.safetensors")
        folder.call("train", "m.onnx", *data, "--steps", str(STEPS), "--resume", "half.safetensors")
        check_near(folder.losses()[-3:], want[3:], NEAR, "the loss of a resumed training")
        w1, w2, b = (exported[name].astype(np.float64) for name in ("W1", "W2", "b"))
        y = onnxruntime.InferenceSession(folder.at("tuned.onnx"), providers=["CPUExecutionProvider"]).run(["y"], {"x": x[:BATCH]})[0]
        check_near(y, np.tanh(x[:BATCH] @ w1) @ w2 + b, 1e-5, "what onnxruntime makes of the exported model")
        if mesh != "one":
            told = folder.call("run", "m.onnx", "--train", *plan, "--check")
            wanted = ["check grad(W1): ok"] * has_gradients(case) + ["check grad(W2, algorithm1/loss): ok"] * (case == "blocks")
            check(all(words in told for words in wanted), f"gradients are not compared: {told}")
        if has_gradients(case):
            told = folder.call("run", "m.onnx", "--train", *plan, "--check=differences")
            check("slope W1: ok" in told, f"slopes are not compared: {told}")


def compiled(build, mesh):
    """The step as a program, under `cleave-run`, and its entry `eval`."""
    random = np.random.default_rng(5)
    x, t = (random.standard_normal((STEPS * BATCH, width)).astype(np.float32) for width in (4, 2))
    model = make("Adam")
    want, _ = expected(model, [(x[at:at + BATCH], t[at:at + BATCH]) for at in range(0, len(x), BATCH)], {})
    with Folder(build) as folder:
        onnx.save(model, folder.at("m.onnx"))
        np.savez(folder.at("d.npz"), x=x, t=t)
        folder.call("compile", "m.onnx", "--train", *folder.plan(MESHES[mesh]), "-o", "step.cleave")
        words = [f"{build}/bin/cleave-run", "step.cleave", "--data", "d.npz"]
        done = harness.subprocess.run([*words, "--order", "given", "--steps", str(STEPS), "--log", "l.jsonl"], cwd=folder.path, capture_output=True, text=True, timeout=60)
        check(done.returncode == 0, done.stderr[-500:])
        check_near(folder.losses(), want, NEAR, "the loss")
        done = harness.subprocess.run([*words, "--entry", "eval"], cwd=folder.path, capture_output=True, text=True, timeout=60)
        # All batches with the weights that the model has: the first one's loss is the first loss.
        check(done.returncode == 0 and "eval" in done.stdout, done.stdout + done.stderr[-500:])


def overridden(build):
    """A plan's `train` goes before what the model says, and without --train the model is the model."""
    model = make("Adam")
    with Folder(build) as folder:
        onnx.save(model, folder.at("m.onnx"))
        told = folder.call("run", "m.onnx", "--train={loss: {kind: mse, of: y}, optimizer: sgd}", "--verbose")
        check("remark: training_info is left out: 'train' of the plan says how the model is trained" in told and "next(m(" not in told and "next(W1)" in told, told[-800:])
        told = folder.call("run", "m.onnx")
        check("warning: training_info is left out" in told and "output y" in told and "next(" not in told, told[-800:])


#===--- onnxruntime's artifacts ---===#

EXTRAS = {"one": "", "data": "", "zero": "zero: {axis: data, stage: 1, min_bytes: 0}", "microbatches": "microbatches: 2"}


def artifacts(build, case, mesh):
    """Ten steps: losses and weights of onnxruntime-training, which has computed them with its own gradients."""
    folder_of = os.path.join(ARTIFACTS, case)
    known = dict(np.load(os.path.join(folder_of, "steps.npz")))
    inputs = {name: value for name, value in known.items() if name not in ("losses", "rate") and not name.startswith("w:")}
    with Folder(build) as folder:
        np.savez(folder.at("d.npz"), **inputs)
        more = ", ".join(filter(None, [f"rate: {known['rate']}" if known["rate"] != 1e-3 else "", EXTRAS[mesh]]))
        rows = "" if mesh == "one" else "mesh: {data: 2}\nshard: [" + ", ".join(f"{{tensor: {name}, dims: [data, ...]}}" for name in inputs) + "]\n"
        plan = folder.plan(rows + (f"train: {{{more}}}\n" if more else ""))
        done = folder.call("train", "--artifacts", folder_of, *plan, "--dim", "batch=4", "--data", "d.npz", "--order", "given", "--steps", str(len(known["losses"])), "--log", "l.jsonl",
                           "--save", "s.safetensors", "--export", "tuned.onnx", "--quiet")
        check(is_quiet(done), f"said {done}")
        losses = folder.losses()
        off = np.abs(np.array(losses) / known["losses"] - 1)
        check(off.max() <= PEER, f"losses are off by {off.max():.2g}: {losses}, onnxruntime has {known['losses']}")
        saved = read_safetensors(folder.at("s.safetensors"))[0]
        weights = {name[2:]: value for name, value in known.items() if name.startswith("w:")}
        check({name for name in saved if "(" not in name and name != "count"} == set(weights), f"trained {sorted(saved)}")
        exported = in_graphs(onnx.load(folder.at("tuned.onnx")))
        for name, value in weights.items():
            check_near(saved[name], value, 10 * PEER, name)
            check(np.array_equal(exported[name], saved[name]), f"{name} of the exported model is another one")
        session = onnxruntime.InferenceSession(folder.at("tuned.onnx"), providers=["CPUExecutionProvider"])
        check({each.name for each in session.get_inputs()} == set(inputs), "weights are inputs of the exported model")
        loss = float(np.ravel(session.run(None, {name: value[:4] for name, value in inputs.items()})[0])[0])
        check(np.isfinite(loss), "the exported model has no loss")


def begun(build):
    """A checkpoint that onnxruntime has saved with its optimizer's states: weights and rate count, moments do not. What differs in training is said."""
    source = os.path.join(ARTIFACTS, "mlp")
    known = dict(np.load(os.path.join(source, "steps.npz")))
    with Folder(build) as folder:
        shutil.copytree(source, folder.at("a"))
        shutil.copy(os.path.join(source, "trained_checkpoint"), folder.at("a/checkpoint"))
        training = onnx.load(folder.at("a/training_model.onnx"))
        training.graph.node.append(helper.make_node("BitmaskDropout", ["h2"], ["d", "m"], name="drop", domain="com.microsoft"))
        onnx.save(training, folder.at("a/training_model.onnx"))
        told = folder.call("run", "--artifacts", "a", "--dim", "batch=4", "--verbose", "--outputs", "o.npz")
        for words in ("remark: the checkpoint has moments of an optimizer that has begun: they begin anew", "warning: node 'drop' (BitmaskDropout) and its like are as in eval_model.onnx"):
            check(words in told, f"nothing is said of it: {told[-600:]}")
        check_near(np.load(folder.at("o.npz"))["rate"], 1e-3, 1e-7, "the rate that it began with")
        np.savez(folder.at("d.npz"), x=known["x"], labels=known["labels"])
        folder.call("train", "--artifacts", "a", "--dim", "batch=4", "--train={rate: 0}", "--data", "d.npz", "--steps", "1", "--save", "s.safetensors", "--quiet")
        saved = read_safetensors(folder.at("s.safetensors"))[0]
        for name in ("fc1.weight", "fc2.weight"):
            check(np.array_equal(saved[name], known["w:" + name]), f"{name} does not begin as onnxruntime has left it")


ALL = {"artifacts begun": (begun,), **{f"training_info {case} {mesh}": (trained, case, mesh) for case in CASES for mesh in MESHES if mesh != "microbatches" or len(CASES[case][0]) == 1}, "training_info compiled": (compiled, "data"), "training_info overridden": (overridden,),
       **{f"artifacts {case} {mesh}": (artifacts, case, mesh) for case in ("mlp", "cnn", "attention") for mesh in EXTRAS}}


def main():
    build, names, _ = harness.arguments()
    return harness.run(harness.select(ALL, names), lambda case: problem(build, *case))


if __name__ == "__main__":
    sys.exit(main())
