"""Steps of training (`--train`) against numpy: the loss and every next weight and state, step after step, on one device and on meshes.

    steps.py BUILD_DIR [CASE...]

A model is ONNX text with its weights; its loss is written once more in numpy, whose gradients are central differences in f64, and so are
the formulas of the optimizers (those of torch.optim). Three steps are taken, each from what the one before has left.
"""
import json
import os
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper, parser

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
from step_models import classifier, dropped, given, grouped, image, image_by_batch, looked_up, many, regression, single, softmax, tied

STEPS = 3
RTOL, ATOL = 1e-6, 1e-9


#===--- Losses ---------------------------------------------------------------===#

def cross_entropy(ignore=None, smoothing=0.0):
    def loss(y, t):
        logs = np.log(softmax(y)).reshape(-1, y.shape[-1])
        t = t.reshape(-1)
        counts = np.ones(t.shape, bool) if ignore is None else t != ignore
        picked = logs[np.arange(len(t)), np.where(counts, t, 0)]
        terms = -(1 - smoothing) * picked - smoothing * logs.mean(-1)
        return terms[counts].mean()
    return loss


def next_tokens(y, ids):
    return cross_entropy()(y[:, :-1], ids[:, 1:])


LOSSES = {
    "mse": ("{kind: mse, of: y}", lambda y, t: np.mean((y - t)**2)), "l1": ("{kind: l1, of: y}", lambda y, t: np.mean(np.abs(y - t))),
    "bce": ("{kind: bce, of: y}", lambda y, t: np.mean(np.log1p(np.exp(y)) - y * t)),
    "classes": ("{kind: cross_entropy, of: y}", cross_entropy()),
    "ignored": ("{kind: cross_entropy, of: y, ignore: 2}", cross_entropy(2)),
    "smoothed": ("{kind: cross_entropy, of: y, smoothing: 0.1}", cross_entropy(smoothing=0.1)),
    "next": ("{kind: cross_entropy, of: y, labels: {next: ids}}", next_tokens),
    "output": ("{output: y}", lambda y, t: y),
    "two ignored": ("[{kind: cross_entropy, of: y, ignore: 2}, {kind: cross_entropy, of: y, ignore: 1, weight: 0.5}, {kind: cross_entropy, of: y}]",
                    lambda y, t: cross_entropy(2)(y, t) + 0.5 * cross_entropy(1)(y, t) + cross_entropy()(y, t)),
    "two next": ("[{kind: cross_entropy, of: y, labels: {next: ids}}, {kind: cross_entropy, of: y, labels: {next: ids}, smoothing: 0.1, weight: 0.5}]",
                 lambda y, ids: next_tokens(y, ids) + 0.5 * cross_entropy(smoothing=0.1)(y[:, :-1], ids[:, 1:])),
    "two": ("[{kind: mse, of: y, weight: 0.25}, {kind: l1, of: y}]", lambda y, t: 0.25 * np.mean((y - t)**2) + np.mean(np.abs(y - t))),
}


#===--- Optimizers: (weight, gradient, states, n, rate, decay) -> (weight, states) ---===#

def sgd(w, g, s, n, r, d):
    return w - r * (g + d * w), s


def momentum(w, g, s, n, r, d, nesterov=False):
    g = g + d * w
    m = 0.8 * s["m"] + g
    return w - r * (g + 0.8 * m if nesterov else m), {"m": m}


def moments(g, s, n):
    m, v = 0.9 * s["m"] + 0.1 * g, 0.99 * s["v"] + 0.01 * g * g
    return m / (1 - 0.9**n) / (np.sqrt(v / (1 - 0.99**n)) + 1e-6), {"m": m, "v": v}


def adam(w, g, s, n, r, d):
    u, s = moments(g + d * w, s, n)
    return w - r * u, s


def adamw(w, g, s, n, r, d):
    u, s = moments(g, s, n)
    return w * (1 - r * d) - r * u, s


def hf_adamw(w, g, s, n, r, d):
    """transformers.AdamW: epsilon is not corrected, and the decay is of the next weight."""
    _, s = moments(g, s, n)
    w = w - r * np.sqrt(1 - 0.99**n) / (1 - 0.9**n) * s["m"] / (np.sqrt(s["v"]) + 1e-6)
    return w - r * d * w, s


def uncorrected(w, g, s, n, r, d):
    _, s = moments(g, s, n)
    return w * (1 - r * d) - r * s["m"] / (np.sqrt(s["v"]) + 1e-6), s


def adagrad(w, g, s, n, r, d):
    g = g + d * w
    v = s["v"] + g * g
    return w - r * g / (np.sqrt(v) + 1e-6), {"v": v}


def lamb(w, g, s, n, r, d):
    u, s = moments(g, s, n)
    u = u + d * w
    return w - r * np.linalg.norm(w) / np.linalg.norm(u) * u, s


BETAS = "betas: [0.9, 0.99], epsilon: 1e-6"
OPTIMIZERS = {
    "sgd": ("kind: sgd", sgd, ""), "momentum": ("kind: momentum, beta: 0.8", momentum, "m"),
    "nesterov": ("kind: nesterov, beta: 0.8", lambda *x: momentum(*x, nesterov=True), "m"), "adam": (f"kind: adam, {BETAS}", adam, "mv"),
    "adamw": (f"kind: adamw, {BETAS}", adamw, "mv"), "adagrad": ("kind: adagrad, epsilon: 1e-6", adagrad, "v"), "lamb": (f"kind: lamb, {BETAS}", lamb, "mv"),
    "hf_adamw": (f"kind: hf_adamw, {BETAS}", hf_adamw, "mv"), "uncorrected adamw": (f"kind: adamw, {BETAS}, correct_bias: false", uncorrected, "mv"),
}


def cosine(n):
    return 0.05 * (n + 1) / 2 if n < 2 else 0.01 + 0.04 * (1 + np.cos(np.pi * (n - 2) / 6)) / 2


RATES = {"constant": ("0.05", lambda n: 0.05), "cosine": ("{kind: cosine, peak: 0.05, floor: 0.01, warmup: 2, steps: 8}", cosine),
         "linear": ("{kind: linear, peak: 0.05, steps: 4}", lambda n: 0.05 * (1 - n / 4)),
         "warmup": ("{kind: constant, peak: 0.05, warmup: 4}", lambda n: 0.05 * min(1, (n + 1) / 4))}


#===--- A step in numpy ------------------------------------------------------===#

def gradients(total, weights, trained):
    found = {}
    for name in trained:
        found[name] = np.zeros(weights[name].shape)
        for place in np.ndindex(weights[name].shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = np.array(weights[name])
                moved[place] += step
                ends.append(total({**weights, name: moved}))
            found[name][place] = (ends[0] - ends[1]) / 2e-5
    return found


class Case:
    def __init__(self, model, loss, optimizer="sgd", rate="constant", decay=0.0, mesh="", rules=(), frozen=(), groups="", clip=None, zero="", microbatches=1, accumulate="", also="", kept=None, scale=None, good=0,
                 stays=False, wide=False, rtol=RTOL, atol=ATOL):
        """`also`: further keys; `kept`: the floats of parameters, whose loss has a scale, which is a state unless it stays; gradients are of
        these floats, or wide."""
        self.stays, self.wide = stays, wide
        self.kept, self.scale, self.good, self.rtol, self.atol = kept, scale, good, rtol, atol
        self.model, self.loss, self.optimizer, self.rate, self.decay = model(), loss, optimizer, rate, decay
        self.mesh, self.rules, self.groups, self.clip, self.zero, self.also = mesh, rules, groups, clip, zero, also
        self.microbatches, self.accumulate = microbatches, accumulate
        self.frozen = set(frozen) | self.model.get("frozen", set())
        self.freeze = frozen

    def plan(self):
        words = [f"loss: {LOSSES[self.loss][0]}", f"optimizer: {{{OPTIMIZERS[self.optimizer][0]}, decay: {self.decay}}}", f"rate: {RATES[self.rate][0]}"]
        words += [f"freeze: [{', '.join(self.freeze)}]"] * bool(self.freeze) + [f"groups: {self.groups}"] * bool(self.groups)
        words += [f"clip: {self.clip}"] * (self.clip is not None) + [f"zero: {self.zero}"] * bool(self.zero) + [self.also] * bool(self.also)
        words += [f"microbatches: {self.microbatches}"] * (self.microbatches > 1) + [f"accumulate: {self.accumulate}"] * bool(self.accumulate)
        lines = ["train:", *("  " + word for word in words)]
        if self.mesh:
            lines += [f"mesh: {{{self.mesh}}}", *["uneven: true"] * ("3" in self.mesh), "shard:", *(f"  - {{tensor: {name}, dims: {dims}}}" for name, dims in self.rules)]
        return "\n".join(lines) + "\n"

    def group(self, name):
        """(decay, factor of the rate): `groups` are of biases."""
        return (0.0, 0.5) if self.groups and name == "b" else (self.decay, 1.0)

    def narrow(self, array):
        """Rounded to the floats of parameters."""
        with np.errstate(over="ignore"):
            return array if self.kept is None else array.astype(np.float32).astype(self.kept).astype(np.float64)

    def expect(self, weights, states, n):
        """Loss, weights, states after the step; the scale goes on, and `weights` are masters where parameters are narrow."""
        model, loss = self.model, LOSSES[self.loss][1]
        inputs = model["inputs"] | {"step": n}
        labels = model["inputs"].get("ids") if self.loss.endswith("next") else model["labels"]
        total = lambda w: float(loss(model["of"](w, inputs), labels))
        trained = self.trained()
        read = {name: self.narrow(array) if name in trained else array for name, array in weights.items()}
        scale = self.scale or 1.0
        found = raw = {name: g if self.wide else self.narrow(g * scale) / scale for name, g in gradients(total, read, trained).items()}
        new, kept = dict(weights) | (model["running"](read, inputs) if "running" in model else {}), {}
        if not all(np.isfinite(g).all() for g in found.values()):
            self.scale, self.good = scale if self.stays else scale / 2, 0
            return total(read), weights, states, raw
        if self.clip is not None:
            norm = np.sqrt(sum(np.sum(g * g) for g in found.values()))
            found = {name: g * min(1, self.clip / (norm + 1e-6)) for name, g in found.items()}
        for name in trained:
            decay, factor = self.group(name)
            new[name], kept[name] = OPTIMIZERS[self.optimizer][1](weights[name], found[name], states[name], n + 1, RATES[self.rate][1](n) * factor, decay)
        if self.scale:
            self.good += 1
            if self.good == 2000:
                self.scale, self.good = scale * 2, 0
        return total(read), new, kept, raw

    def trained(self):
        return [name for name in self.model["weights"] if name not in self.frozen]


def onnx_model(model):
    made = parser.parse_model('<ir_version: 10, opset_import: ["": 18]> ' + model["text"])
    for name, array in model["weights"].items():
        made.graph.initializer.append(numpy_helper.from_array(array, name))
    return made


def begin(case, weights, states):
    """What the step is given as its states. Without narrow parameters all of them; else what does not begin as the file says."""
    if case.kept is not None:
        return {} if case.scale is None or case.stays else {"scale": np.float32(case.scale), "good": np.int64(case.good)}
    return {"count": np.int64(0), **{name: weights[name] for name in case.trained()}, **{name: weights[name] for name in case.model.get("running", {}) and ("mean", "variance")},
            **{f"{word}({name})": array for name, kept in states.items() for word, array in kept.items()}}


def problem(build, case, folder, number):
    path, plan, inputs, outputs = (os.path.join(folder, f"{number}.{suffix}") for suffix in ("onnx", "yaml", "in.npz", "out.npz"))
    onnx.save(onnx_model(case.model), path)
    with open(plan, "w") as file:
        file.write(case.plan())
    weights = case.model["weights"]
    trained, words = case.trained(), OPTIMIZERS[case.optimizer][2]
    states = {name: {word: np.zeros(weights[name].shape) for word in words} for name in trained}
    got, count = begin(case, weights, states), 0
    for n in range(STEPS):
        labels = {} if case.model["labels"] is None else {"labels": case.model["labels"]}
        np.savez(inputs, **case.model["inputs"], **labels, **got)
        done = harness.cleave(build, "run", path, "--train", "--plan", plan, "--inputs", inputs, "--outputs", outputs, "--quiet", *(["--check"] if case.mesh else []))
        if done.returncode:
            return f"step {n}, exit {done.returncode}: {(done.stderr + done.stdout)[-700:]}"
        scale, before = case.scale, weights
        loss, weights, states, slopes = case.expect(weights, states, count)
        count += weights is not before
        expected = {"out:loss": loss, "out:next(count)": count, **{f"out:next({name})": case.narrow(weights[name]) for name in trained},
                    **{f"out:next({word}({name}))": states[name][word] for name in trained for word in words}}
        if case.kept is not None:
            expected |= {f"out:next(master({name}))": weights[name] for name in trained}
        if scale is not None and not case.stays:
            expected |= {"out:scale": scale, "out:next(scale)": case.scale, "out:next(good)": case.good}
        if "running" in case.model:
            expected |= {f"out:next({name})": weights[name] for name in ("mean", "variance")}
        if case.mesh:
            # What overflows does so by parts: which elements of a bad gradient are infinite is up to the mesh.
            expected |= {f"out:grad({name})": slopes[name] for name in trained if np.isfinite(slopes[name]).all()}
        # Outputs of ranks have a prefix.
        found = {key.removeprefix("out:"): value for key, value in np.load(outputs).items()}
        rate = found["rate"]
        if abs(rate - RATES[case.rate][1](n)) > 1e-7:
            return f"step {n}: the rate is {rate}"
        wrong = harness.difference(found, {key: np.asarray(value) for key, value in expected.items()}, case.rtol, case.atol)
        if wrong:
            return f"step {n}: {wrong}"
        got = {key[len("next("):-1]: value for key, value in found.items() if key.startswith("next(")}
    return None


def resumed(build, folder):
    """Four steps with dropout, and two and two: the same losses to the last bit; that of the same batch differs from step to step."""
    model, plan, data, saved = (os.path.join(folder, name) for name in ("r.onnx", "r.yaml", "r.npz", "r.safetensors"))
    case = Case(dropped, "mse", also="dropout: model", mesh="data: 2", rules=DATA)
    onnx.save(onnx_model(case.model), model)
    with open(plan, "w") as file:
        file.write(case.plan().replace("rate: 0.05", "rate: 0"))
    np.savez(data, labels=case.model["labels"], **case.model["inputs"])

    def train(log, *words):
        done = harness.cleave(build, "train", model, "--plan", plan, "--data", data, "--log", log, *words)
        if done.returncode:
            raise RuntimeError(done.stderr)
        with open(log) as file:
            return [json.loads(line)["loss"] for line in file]
    whole = train(os.path.join(folder, "whole.jsonl"), "--steps", "4")
    train(os.path.join(folder, "parts.jsonl"), "--steps", "2", "--save", saved)
    parts = train(os.path.join(folder, "parts.jsonl"), "--steps", "4", "--resume", saved)
    return None if whole == parts and len(set(whole)) == 4 else f"{whole} and {parts}"


DATA = [("x", "[data, _]"), ("labels", "[data, _]")]
BF16, F16 = "precision: {parameters: bf16}", "precision: {parameters: f16}"
# Masters are f32, and what is added up over ranks is rounded once more.
NEAR, SUMMED = dict(rtol=1e-5, atol=1e-6), dict(rtol=2e-2, atol=1e-2)
CASES = {
    **{f"loss {name}": (regression, name) for name in ("mse", "l1", "bce", "two")},
    **{f"loss of {name}": (classifier, name) for name in ("classes", "ignored", "smoothed")},
    "loss that the model gives": (given, "output"), "next tokens, a tied table": (tied, "next", "adam"), "a convolution": (image, "classes", "momentum"),
    **{name: (regression, "mse", name) for name in OPTIMIZERS}, **{f"{name} with decay": (regression, "mse", name, "constant", 0.1) for name in OPTIMIZERS},
    **{f"rate {name}": (regression, "mse", "sgd", name) for name in RATES},
}
KEYS = {
    "frozen": dict(model=regression, loss="mse", optimizer="adamw", frozen=("w", "b")),
    "groups": dict(model=regression, loss="mse", optimizer="adamw", decay=0.1, groups='[{tensors: ["b"], decay: 0, rate: 0.5}]'),
    "clipped": dict(model=regression, loss="mse", clip=0.1), "not clipped": dict(model=regression, loss="mse", clip=100.0),
    "data parallel": dict(model=regression, loss="mse", optimizer="adamw", mesh="data: 2", rules=DATA),
    "data parallel over four, clipped": dict(model=regression, loss="mse", optimizer="adam", mesh="data: 4", rules=DATA, clip=0.1),
    "data parallel classes with labels that do not count": dict(model=classifier, loss="ignored", optimizer="adam", mesh="data: 4", rules=[("ids", "[data]")]),
    "tensor parallel": dict(model=regression, loss="mse", optimizer="adamw", mesh="model: 2", rules=[("w", "[_, model]"), ("v", "[model, _]")]),
    "vocabulary parallel": dict(model=tied, loss="next", optimizer="adam", mesh="model: 2", rules=[("table", "[model, _]")]),
    "classes over ranks": dict(model=classifier, loss="smoothed", optimizer="adam", mesh="model: 2", rules=[("v", "[_, model]")]),
    **{f"ZeRO-{stage}": dict(model=regression, loss="mse", optimizer="adamw", mesh="data: 2", rules=DATA, zero=f"{{axis: data, stage: {stage}, min_bytes: 0}}") for stage in (1, 2, 3)},
    **{f"{policy} again{' on two ranks' * bool(mesh)}": dict(model=regression, loss="mse", optimizer="adamw", mesh=mesh, rules=DATA * bool(mesh), also=f"recompute: {policy}")
       for policy in ("cheap", "blocks") for mesh in ("", "data: 2")},
    "ZeRO-3, gathered twice": dict(model=regression, loss="mse", optimizer="adamw", mesh="data: 2", rules=DATA, zero="{axis: data, stage: 3, gather: twice, min_bytes: 0}"),
    **{f"{policy} again, microbatches{' on two ranks' * bool(mesh)}": dict(model=regression, loss="mse", optimizer="adamw", mesh=mesh, rules=DATA * bool(mesh), also=f"recompute: {policy}", microbatches=2)
       for policy in ("cheap", "blocks") for mesh in ("", "data: 2")},
    "a convolution, blocks again": dict(model=image, loss="classes", optimizer="adam", also="recompute: blocks"), "a tied table, blocks again": dict(model=tied, loss="next", optimizer="adam", also="recompute: blocks"),
    "ZeRO-1 and tensor parallel": dict(model=regression, loss="mse", optimizer="lamb", decay=0.1, mesh="data: 2, model: 2", rules=[*DATA, ("w", "[_, model]"), ("v", "[model, _]")],
                                       zero="{axis: data, stage: 1, min_bytes: 0}"),
    "bf16": dict(model=regression, loss="mse", optimizer="adamw", also=BF16, kept=ml_dtypes.bfloat16, **NEAR),
    "f16": dict(model=regression, loss="mse", optimizer="momentum", also=F16, kept=np.float16, scale=65536.0, **NEAR),
    "f16 overflows": dict(model=regression, loss="mse", optimizer="adamw", also=F16, kept=np.float16, scale=2.0**19, good=77, **NEAR),
    "f16 grows": dict(model=regression, loss="mse", optimizer="sgd", clip=0.1, also=F16, kept=np.float16, scale=1024.0, good=1998, **NEAR),
    "f16 with a scale that stays": dict(model=regression, loss="mse", also="precision: {parameters: f16, scale: 1024}", kept=np.float16, scale=1024.0, stays=True, **NEAR),
    "f16 with a scale that is too large": dict(model=regression, loss="mse", optimizer="adam", also="precision: {parameters: f16, scale: 1e6}", kept=np.float16, scale=1e6, stays=True, **NEAR),
    "bf16 sent in f32": dict(model=regression, loss="mse", optimizer="adamw", also="precision: {parameters: bf16, wire: f32}", kept=ml_dtypes.bfloat16, wide=True, mesh="data: 2",
                             rules=DATA, **NEAR),
    "f16 without a scale": dict(model=regression, loss="mse", also="precision: {parameters: f16, scale: none}", kept=np.float16, **NEAR),
    "bf16, data parallel, ZeRO-1": dict(model=regression, loss="mse", optimizer="adamw", also=BF16, kept=ml_dtypes.bfloat16, mesh="data: 2", rules=DATA,
                                        zero="{axis: data, stage: 1, min_bytes: 0}", **SUMMED),
    "f16 overflows, ZeRO-3": dict(model=regression, loss="mse", optimizer="momentum", also=F16, kept=np.float16, scale=2.0**19, mesh="data: 2", rules=DATA,
                                  zero="{axis: data, stage: 3, min_bytes: 0}", **SUMMED),
    "dropout": dict(model=dropped, loss="mse", optimizer="adam", also="dropout: model"),
    "dropout of a number, with a seed": dict(model=lambda: dropped((0.125, 0.125), 7), loss="mse", also="dropout: 0.125\n  seed: 7"),
    "no dropout": dict(model=lambda: dropped((0, 0)), loss="mse"), "dropout keeps its rate": dict(model=many, loss="mse", also="dropout: model"),
    "dropout, data parallel": dict(model=dropped, loss="mse", optimizer="adam", also="dropout: model", mesh="data: 2", rules=DATA),
    "dropout, data parallel, uneven": dict(model=dropped, loss="mse", also="dropout: model", mesh="data: 3", rules=DATA),
    "dropout, tensor parallel": dict(model=dropped, loss="mse", also="dropout: model", mesh="model: 2", rules=[("w", "[_, model]"), ("v", "[model, _]")]),
    "dropout, tensor parallel, uneven": dict(model=dropped, loss="mse", also="dropout: model", mesh="model: 3", rules=[("w", "[_, model]"), ("v", "[model, _]")]),
    "a batch norm by its batch": dict(model=image_by_batch, loss="classes", optimizer="momentum", also="batch_norm: batch"),
    "a batch norm over ranks": dict(model=image_by_batch, loss="classes", optimizer="adam", also="batch_norm: batch", mesh="data: 2", rules=[("x", "[data, _, _, _]")]),
    "a batch norm over ranks, uneven": dict(model=image_by_batch, loss="classes", also="batch_norm: batch", mesh="data: 3", rules=[("x", "[data, _, _, _]")]),
    "a convolution, data parallel, ZeRO-3": dict(model=image, loss="classes", optimizer="adam", mesh="data: 2", rules=[("x", "[data, _, _, _]")], zero="{axis: data, stage: 3, min_bytes: 0}"),
}


KEYS |= {
    "weights of one number": dict(model=lambda: single(False), loss="mse", optimizer="adamw", decay=0.1),
    "a number that the plan names": dict(model=lambda: single(True), loss="mse", optimizer="momentum", also="only: [w, b, p, g]"),
    "weights of one number, data parallel, ZeRO-1": dict(model=lambda: single(False), loss="mse", optimizer="adamw", mesh="data: 2", rules=DATA, zero="{axis: data, stage: 1, min_bytes: 0}"),
}
IMAGES = [("x", "[data, _, _, _]"), ("labels", "[data]")]
KEYS |= {f"a convolution of groups, {name}": dict(model=lambda extents=extents: grouped(extents), loss="classes", optimizer="momentum", mesh=mesh, rules=IMAGES * bool(mesh), microbatches=parts)
         for name, extents, mesh, parts in (("sample by sample", (6, 5), "", 1), ("sample by sample, in microbatches, data parallel", (6, 5), "data: 2", 2),
                                            ("group by group", (2, 3), "", 1), ("group by group, in microbatches, data parallel", (2, 3), "data: 2", 2))}


# The same steps in microbatches, some of which have more labels that count than others.
ZERO = "{{axis: data, stage: {}, min_bytes: 0}}"
KEYS |= {
    "microbatches": dict(model=regression, loss="mse", optimizer="adamw", microbatches=4),
    "microbatches of two losses": dict(model=regression, loss="two", optimizer="adamw", microbatches=2),
    "microbatches, labels that do not count": dict(model=classifier, loss="ignored", optimizer="adam", microbatches=4, clip=0.1),
    "microbatches of three losses, labels that do not count": dict(model=classifier, loss="two ignored", optimizer="adam", microbatches=4, atol=1e-7),  # three terms cancel in some gradients, and so do digits of differences
    "microbatches of three losses, data parallel": dict(model=classifier, loss="two ignored", optimizer="adam", mesh="data: 2", rules=[("ids", "[data]"), ("labels", "[data]")], microbatches=4),
    "microbatches of two losses, next tokens": dict(model=tied, loss="two next", optimizer="adam", microbatches=2),
    "microbatches, next tokens": dict(model=tied, loss="next", optimizer="adam", microbatches=2),
    "microbatches, a convolution": dict(model=image, loss="classes", optimizer="momentum", microbatches=4),
    "microbatches, a loss that the model gives": dict(model=given, loss="output", microbatches=8),
    "microbatches, dropout": dict(model=dropped, loss="mse", optimizer="adam", also="dropout: model", microbatches=2),
    "microbatches, f16 overflows": dict(model=regression, loss="mse", optimizer="adamw", also=F16, kept=np.float16, scale=2.0**19, good=77, microbatches=2, **NEAR),
    "dropout, blocks again": dict(model=dropped, loss="mse", optimizer="adam", also="dropout: model\n  recompute: blocks"),
    "microbatches, data parallel": dict(model=regression, loss="mse", optimizer="adamw", mesh="data: 2", rules=DATA, microbatches=4, clip=0.1),
    "microbatches, data parallel, labels that do not count": dict(model=classifier, loss="ignored", optimizer="adam", mesh="data: 2", rules=[("ids", "[data]")], microbatches=4),
    "microbatches, tensor parallel": dict(model=regression, loss="mse", optimizer="adamw", mesh="model: 2", rules=[("w", "[_, model]"), ("v", "[model, _]")], microbatches=2),
    **{f"microbatches, ZeRO-{stage}": dict(model=regression, loss="mse", optimizer="adamw", mesh="data: 2", rules=DATA, zero=ZERO.format(stage), microbatches=2) for stage in (1, 2, 3)},
    "microbatches, ZeRO-1 with sharded accumulators": dict(model=regression, loss="mse", optimizer="adamw", mesh="data: 2", rules=DATA, zero=ZERO.format(1), microbatches=2, accumulate="split"),
    "microbatches, ZeRO-2 with partial accumulators": dict(model=regression, loss="mse", optimizer="adamw", mesh="data: 2", rules=DATA, zero=ZERO.format(2), microbatches=2, accumulate="partial"),
}


KEYS |= {f"places that samples look up{name}": dict(model=looked_up, loss="mse", optimizer="adam", mesh=mesh, rules=[("x", "[data, _, _, _]")] * bool(mesh), microbatches=parts)
         for name, mesh, parts in (("", "", 1), (", in microbatches", "", 4), (", uneven", "data: 3", 1), (", in microbatches, data parallel", "data: 2", 2))}


def main():
    build, names, _ = harness.arguments()
    cases = {name: Case(*words) for name, words in CASES.items()} | {name: Case(**keys) for name, keys in KEYS.items()}
    cases = harness.select(cases | {"dropout, resumed": None}, names)
    with tempfile.TemporaryDirectory() as folder:
        numbered = {name: (case, number) for number, (name, case) in enumerate(cases.items())}
        return harness.run(numbered, lambda case: problem(build, case[0], folder, case[1]) if case[0] else resumed(build, folder))


if __name__ == "__main__":
    sys.exit(main())
