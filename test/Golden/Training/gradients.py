"""That gradients are right, by numpy: a step of SGD in f64 moves each parameter by -RATE times its gradient, which must
be the slope of a loss that is written here by hand, between two points. And that updates are right: Adam, clipping,
accumulation and master copies, computed here from those gradients.
"""
import math
import os
from dataclasses import dataclass, field
from typing import Callable

import numpy as np

import harness
from steps import ADAM_EPSILON, ADAM_RATE, BETA1, BETA2, RATE, Plan, Step, cnn, draw, gpt, mlp

WIDTH = 1e-5  # of a difference: rounding makes an error of 1e-11 times the loss, curvature one of 1e-10
RTOL, ATOL = 1e-6, 1e-9
ENTRIES = 2  # slopes by parameter: along so many of its entries drawn, its steepest, and one direction through all
ALONE = {"data": 1}


@dataclass
class Sample:
    model: Callable
    loss: Callable  # of the arguments by name
    sizes: dict = field(default_factory=dict)
    plan: Plan = field(default_factory=lambda: Plan(ALONE, "data"))
    options: dict = field(default_factory=dict)  # of a step whose update is compared, too


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def standardized(x, axes):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def cross_entropy(logits, labels):
    """The mean over all but the last dim; labels without it."""
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return -np.take_along_axis(logs, labels[..., None], -1).mean()


def mlp_loss(a, microbatches=1):
    losses = []
    for at in range(microbatches):
        x = a[f"x{at}"]
        for layer in range(3):
            inner = gelu(x @ a[f"up.{layer}"] + a[f"up.bias.{layer}"])
            x = x + inner @ a[f"down.{layer}"] + a[f"down.bias.{layer}"]
        losses.append(np.square(x - a[f"t{at}"]).mean())
    return np.mean(losses)


def attend(x, a, layer, heads=4):
    """Causal; all products of a sample and a head by themselves."""
    out = np.zeros_like(x)
    size = x.shape[2] // heads
    future = np.triu(np.full((x.shape[1], x.shape[1]), -np.inf), 1)
    for sample in range(len(x)):
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            q, k, v = (x[sample] @ a[f"{name}.{layer}"][:, part] for name in "qkv")
            share = np.exp(q @ k.T / math.sqrt(size) + future)
            out[sample, :, part] = share / share.sum(1, keepdims=True) @ v
    return out


def gpt_loss(a, layers=1):
    def norm(x, at):
        return standardized(x, 2) * a[f"norm{at}"] + a[f"shift{at}"]

    x = a["embedding"][a["ids"]] if "ids" in a else a["x"]
    for at in range(layers):
        x = x + attend(norm(x, f"1.{at}"), a, at) @ a[f"out.{at}"]
        x = x + gelu(norm(x, f"2.{at}") @ a[f"up.{at}"] + a[f"up.bias.{at}"]) @ a[f"down.{at}"] + a[f"down.bias.{at}"]
    if "ids" not in a:
        return np.square(x - a["t"]).mean()
    return cross_entropy(norm(x, "") @ a.get("head", a["embedding"]).T, a["labels"])


def cnn_loss(a):
    def layer(image, at, stride=1):
        padded, filters = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1))), a[f"conv.{at}"]
        height, width = image.shape[2:]
        taps = [np.einsum("ncyx,oc->noyx", padded[:, :, y:y + height:stride, x:x + width:stride], filters[:, :, y, x])
                for y in range(3) for x in range(3)]
        return standardized(sum(taps), (0, 2, 3)) * a[f"norm.{at}"] + a[f"shift.{at}"]

    def relu(x):
        return np.maximum(x, 0)

    x = relu(layer(a["x"], 0))
    x = relu(x + layer(relu(layer(x, 1)), 2))
    x = relu(layer(x, 3, 2)).mean((2, 3))
    return cross_entropy(x @ a["classifier"] + a["classifier.bias"], a["labels"])


def run(build, step, arrays, path):
    """The outputs of a step on one device."""
    with open(path + ".mlir", "w") as file:
        file.write(step.tape.text(ALONE))
    np.savez(path + ".in.npz", **{name: arrays[name] for name in step.tape.arguments})
    done = harness.cleave(build, "run", path + ".mlir", "--inputs", path + ".in.npz", "--outputs", path + ".out.npz",
                          "--quiet")
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()[:500]}")
    return dict(np.load(path + ".out.npz"))


def slope(loss, arrays, name, direction):
    def at(distance):
        return loss(arrays | {name: arrays[name] + distance * direction})

    return (at(WIDTH) - at(-WIDTH)) / (2 * WIDTH)


def directions(gradient, rng):
    """Some entries, the steepest, and one of all entries."""
    for entry in [*rng.integers(0, gradient.size, ENTRIES), np.abs(gradient).argmax()]:
        alone = np.zeros(gradient.size)
        alone[entry] = 1
        yield f"entry {entry}", alone.reshape(gradient.shape)
    yield "all entries", rng.standard_normal(gradient.shape) / math.sqrt(gradient.size)


def expected(step, gradients, arrays):
    """The outputs of an update, by name."""
    length = math.sqrt(sum(np.square(one).sum() for one in gradients.values()))
    factor = min(step.clip / length, 1) if step.clip else 1
    for name, gradient in gradients.items():
        gradient = gradient * factor
        if step.accumulate:
            yield f"{name}.sum'", arrays[f"{name}.sum"] + gradient
            continue
        move = RATE * gradient
        if step.optimizer == "adam":
            mean = BETA1 * arrays[f"{name}.m"] + (1 - BETA1) * gradient
            square = BETA2 * arrays[f"{name}.v"] + (1 - BETA2) * gradient ** 2
            unbiased = (mean / (1 - BETA1 ** arrays["step"]), square / (1 - BETA2 ** arrays["step"]))
            move = ADAM_RATE * unbiased[0] / (np.sqrt(unbiased[1]) + ADAM_EPSILON)
            yield f"{name}.m'", mean
            yield f"{name}.v'", square
        new = arrays[f"{name}.master" if step.master else name] - move
        yield f"{name}'", new
        if step.master:
            yield f"{name}.master'", new


def gradient_problem(build, name, folder):
    sample = GRADIENTS[name]
    path = os.path.join(folder, name.replace(" ", "-"))
    step = sample.model(Step(sample.plan, "sgd", "f64"), **sample.sizes)
    arrays = draw(step)
    got = run(build, step, arrays, path)
    if not np.isclose(got["loss"], sample.loss(arrays), rtol=1e-10, atol=0):
        return f"loss {got['loss']}, expected {sample.loss(arrays)}"
    gradients = {one: (arrays[one] - got[one + "'"]) / RATE for one in step.parameters}
    count, worst, rng = 0, 0, np.random.default_rng(2)
    for one, gradient in gradients.items():
        for place, direction in directions(gradient, rng):
            have, want = (gradient * direction).sum(), slope(sample.loss, arrays, one, direction)
            if not np.isclose(have, want, rtol=RTOL, atol=ATOL):
                return f"gradient of {one}, {place}: {have}, expected {want}"
            count, worst = count + 1, max(worst, abs(have - want))
    if sample.options:
        step = sample.model(Step(sample.plan, type="f64", **sample.options), **sample.sizes)
        arrays |= {more: array for more, array in draw(step).items() if more not in arrays}
        outputs = run(build, step, arrays, path + ".update")
        for output, want in expected(step, gradients, arrays):
            if not np.allclose(outputs[output], want, rtol=1e-9, atol=1e-13):
                return f"{output} differs by {np.abs(outputs[output] - want).max()}"
            count += want.size
    print(f"{name}: {count} numbers compared, slopes to {worst:.1e}")
    return ""


def sample_of_gpt(plan=None, options=None, **sizes):
    layers = sizes.setdefault("layers", 1)
    plan = Plan(ALONE, "data", **(plan or {}))
    return Sample(gpt, lambda arrays: gpt_loss(arrays, layers), {"batch": 2, **sizes}, plan, options or {})


GRADIENTS = {
    "mlp gradients, adam": Sample(mlp, mlp_loss, {"batch": 8}, options={"optimizer": "adam"}),
    "mlp gradients, 4 microbatches, clip": Sample(mlp, lambda arrays: mlp_loss(arrays, 4), {"batch": 8, "microbatches": 4},
                                                  options={"optimizer": "sgd", "clip": 0.01}),
    "gpt gradients, adam, clip": sample_of_gpt(options={"clip": 0.01}),
    "gpt gradients, again, recompute, accumulate": sample_of_gpt({"again": True, "recompute": True},
                                                                 {"accumulate": "whole"}, layers=2),
    "gpt gradients, vocabulary": sample_of_gpt(vocabulary=64),
    "gpt gradients, vocabulary, rule of softmax": sample_of_gpt(vocabulary=64, fused=False),
    "gpt gradients, vocabulary tied, master": sample_of_gpt(options={"master": True}, vocabulary=64, tied=True),
    "cnn gradients, adam": Sample(cnn, cnn_loss, {"batch": 4, "size": 6}, options={"optimizer": "adam"}),
}
