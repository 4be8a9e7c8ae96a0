"""Training steps: a plan says which mesh axis cuts what, a model gives the loss, and Step adds gradients and the update.

A step takes parameters, the optimizer's state and a batch, and gives back new parameters, new state and the loss.
"""
import math
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from ops import (attention, batch_norm, constrain, conv, cross_entropy, einsum, gather, gelu, layer_norm, minimum, pow,
                 recomputed, relu, sqrt)
from tape import Tape, Value

TYPES = {"f64": np.float64, "f32": np.float32, "bf16": ml_dtypes.bfloat16, "i64": np.int64}
RATE, ADAM_RATE, BETA1, BETA2, ADAM_EPSILON = 0.1, 1e-3, 0.9, 0.999, 1e-8


def written(rank, axes):
    """The text of a sharding; `axes` by dim."""
    dims = (", ".join(f'"{axis}"' for axis in axes.get(dim, [])) for dim in range(rank))
    return "[" + ", ".join(f"{{{dim}}}" for dim in dims) + "]"


@dataclass
class Plan:
    mesh: dict
    data: str = None  # axis that cuts the batch
    model: str = None  # axis that cuts weights, as Megatron does
    sequence: bool = False  # between Megatron's pairs of products, `model` cuts the sequence
    zero: int = 0  # `data` cuts the optimizer's state (1), or the parameters as well (3)
    again: bool = False  # the way back gathers parameters once more
    recompute: bool = False  # the way back computes blocks once more

    def parameter(self, shape, cut):
        """Shardings of a parameter and of its state; `cut` is the dim that `model` cuts."""
        axes = {cut: [self.model]} if self.model and cut is not None else {}
        state = {dim: list(names) for dim, names in axes.items()}
        if self.zero:
            dims = (dim for dim, size in enumerate(shape)
                    if size % math.prod(self.mesh[axis] for axis in [*axes.get(dim, []), self.data]) == 0)
            state.setdefault(next(dims), []).append(self.data)
        return written(len(shape), state if self.zero == 3 else axes), written(len(shape), state)

    def activation(self, rank):
        """Batch, sequence, features; or batch and others."""
        axes = {0: [self.data]} if self.data else {}
        return written(rank, axes | ({1: [self.model]} if self.sequence else {}))


@dataclass
class Parameter:
    value: Value
    sharding: str
    state_sharding: str
    is_cut: bool  # by the plan's `model`


class Step:
    """`optimizer`: adam or sgd. `master`: parameters have another copy in f32, which the optimizer changes. `clip`: the
    longest that all gradients together may be. `accumulate`: no update, but gradients are added to accumulators that are
    `partial` over data (each rank its own terms), `sharded` (as the state of ZeRO), or `whole`."""

    def __init__(self, plan, optimizer="adam", type="f32", master=False, clip=None, accumulate=None):
        self.plan, self.optimizer, self.type, self.master = plan, optimizer, type, master
        self.clip, self.accumulate = clip, accumulate
        self.tape, self.parameters, self.batches = Tape(), {}, {}
        self.wide = "f64" if type == "f64" else "f32"

    def parameter(self, name, shape, cut=None):
        sharding, state = self.plan.parameter(shape, cut)
        value = self.tape.argument(name, shape, self.type, sharding)
        self.parameters[name] = Parameter(value, sharding, state, cut is not None)
        return value

    def batch(self, name, shape, type=None):
        self.batches[name] = self.tape.argument(name, shape, type or self.type, self.plan.activation(len(shape)))
        return self.batches[name]

    def count(self, cut=None):
        """Elements of all parameters, or of those that `model` cuts (True) or does not (False)."""
        return sum(math.prod(one.value.shape) for one in self.parameters.values() if cut is None or one.is_cut == cut)

    def finish(self, loss):
        values = [one.value for one in self.parameters.values()]
        gradients = [one.cast(self.wide) for one in self.tape.gradients(loss, values, self.plan.again)]
        if self.clip:
            gradients = self.clipped(gradients)
        update = self.add_up if self.accumulate else self.descend if self.optimizer == "sgd" else self.adam()
        for name, gradient in zip(self.parameters, gradients):
            update(name, gradient)
        self.tape.result("loss", loss, "[]")
        return self

    def clipped(self, gradients):
        squares = [(one * one).sum(list(range(len(one.shape)))) for one in gradients]
        total = squares[0]
        for square in squares[1:]:
            total = total + square
        factor = minimum(self.tape.constant(self.clip, self.wide) / sqrt(total), 1.0)
        return [one * factor for one in gradients]

    def state(self, name, suffix):
        one = self.parameters[name]
        return self.tape.argument(name + suffix, one.value.shape, self.wide, one.state_sharding)

    def add_up(self, name, gradient):
        one, axis = self.parameters[name], self.plan.data
        sharding = {"partial": f'{one.sharding}, partial = {{"{axis}": sum}}', "sharded": one.state_sharding,
                    "whole": one.sharding}[self.accumulate]
        sums = self.tape.argument(name + ".sum", one.value.shape, self.wide, sharding)
        self.tape.result(name + ".sum'", sums + gradient, sharding)

    def descend(self, name, gradient):
        self.change(name, gradient * RATE)

    def adam(self):
        number = self.tape.argument("step", (), self.wide, "[]")
        unbias1, unbias2 = (1.0 - pow(self.tape.constant(beta, self.wide), number) for beta in (BETA1, BETA2))

        def update(name, gradient):
            mean = self.state(name, ".m") * BETA1 + gradient * (1 - BETA1)
            square = self.state(name, ".v") * BETA2 + gradient * gradient * (1 - BETA2)
            self.change(name, mean / unbias1 / (sqrt(square / unbias2) + ADAM_EPSILON) * ADAM_RATE)
            self.tape.result(name + ".m'", mean, self.parameters[name].state_sharding)
            self.tape.result(name + ".v'", square, self.parameters[name].state_sharding)

        return update

    def change(self, name, difference):
        one = self.parameters[name]
        new = (self.state(name, ".master") if self.master else one.value) - difference
        if self.master:
            self.tape.result(name + ".master'", new, one.state_sharding)
        self.tape.result(name + "'", new.cast(self.type), one.sharding)


def draw(step):
    """Arguments by name. Of gradients and their squares, which are small, the means are small, too."""
    rng = np.random.default_rng(0)

    def one(name, value):
        if value.type == "i64":
            return rng.integers(0, 8, value.shape)
        if name == "step":
            return np.array(3)
        x = rng.standard_normal(value.shape)
        if name.endswith(".v"):
            return (np.abs(x) + 0.1) * 1e-6
        return x * (1 if name in step.batches else 1e-3 if name.endswith((".m", ".sum")) else 0.2)

    return {name: one(name, value).astype(TYPES[value.type]) for name, value in step.tape.arguments.items()}


def mlp(step, batch, width=32, hidden=128, layers=3, microbatches=1):
    """Residual blocks; microbatches one after the other, so that gradients add up before they travel."""
    def weights(at):
        return (step.parameter(f"up.{at}", (width, hidden), 1), step.parameter(f"up.bias.{at}", (hidden,), 0),
                step.parameter(f"down.{at}", (hidden, width), 0), step.parameter(f"down.bias.{at}", (width,)))

    blocks, total = [weights(at) for at in range(layers)], None
    for microbatch in range(microbatches):
        x, target = (step.batch(f"{name}{microbatch}", (batch // microbatches, width)) for name in "xt")
        for up, up_bias, down, down_bias in blocks:
            x = x + (einsum("bh,hd->bd", gelu(einsum("bd,dh->bh", x, up) + up_bias), down) + down_bias)
        loss = squared_error(x, target, step.wide)
        total = total + loss if total else loss
    return step.finish(total * (1 / microbatches) if microbatches > 1 else total)


def squared_error(x, target, type):
    error = (x - target).cast(type)
    return (error * error).mean(list(range(len(x.shape))))


def gpt(step, batch, length=16, width=32, heads=4, hidden=128, layers=2, vocabulary=None, tied=False, fused=True,
        annotations="ends"):
    """Blocks of a transformer, from activations to activations; with a `vocabulary` between an embedding and a head
    (`tied`: one matrix) with cross entropy (`fused`: the rule for it that people write). `annotations` that the plan's
    `sequence` puts on inner values: none, forward (not on gradients), ends (of blocks), all (between the two halves, too)."""
    plan, also_gradient = step.plan, annotations != "forward"

    def annotation(x, when):
        return constrain(x, plan.activation(3), also_gradient) if plan.sequence and annotations in when else x

    def block(x, norm1, shift1, q, k, v, out, norm2, shift2, up, up_bias, down, down_bias):
        def in_heads(x):
            return x.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

        n = layer_norm(x, norm1, shift1)
        seen = attention(*(in_heads(einsum("bsi,ij->bsj", n, weight)) for weight in (q, k, v)))
        seen = seen.transpose(0, 2, 1, 3).reshape(batch, length, width)
        x = annotation(x + einsum("bsi,ij->bsj", seen, out), ["all"])
        n = layer_norm(x, norm2, shift2)
        inner = gelu(einsum("bsi,ij->bsj", n, up) + up_bias)
        x = x + (einsum("bsi,ij->bsj", inner, down) + down_bias)
        return annotation(x, ["forward", "ends", "all"])

    if vocabulary:
        ids, labels = (step.batch(name, (batch, length), "i64") for name in ("ids", "labels"))
        table = step.parameter("embedding", (vocabulary, width), 0)
        x = annotation(gather(table, ids), ["none", "forward", "ends", "all"])
    else:
        x, target = (step.batch(name, (batch, length, width)) for name in "xt")
    for at in range(layers):
        vectors = [step.parameter(f"{name}.{at}", (width,)) for name in ("norm1", "shift1", "norm2", "shift2", "down.bias")]
        q, k, v = (step.parameter(f"{name}.{at}", (width, width), 1) for name in "qkv")
        out = step.parameter(f"out.{at}", (width, width), 0)
        up, up_bias = step.parameter(f"up.{at}", (width, hidden), 1), step.parameter(f"up.bias.{at}", (hidden,), 0)
        down = step.parameter(f"down.{at}", (hidden, width), 0)
        weights = [*vectors[:2], q, k, v, out, *vectors[2:4], up, up_bias, down, vectors[4]]
        x = recomputed(block, x, weights) if plan.recompute else block(x, *weights)
    if not vocabulary:
        return step.finish(squared_error(x, target, step.wide))
    n = layer_norm(x, step.parameter("norm", (width,)), step.parameter("shift", (width,)))
    head = table if tied else step.parameter("head", (vocabulary, width), 0)
    return step.finish(cross_entropy(einsum("bsi,vi->bsv", n, head), labels, fused))


def cnn(step, batch=64, channels=8, size=12, classes=8):
    """Convolutions with batch norm, the second and third in a residual block, the fourth of stride 2; mean, classifier."""
    x, labels = step.batch("x", (batch, 3, size, size)), step.batch("labels", (batch,), "i64")

    def normal_conv(x, at, channels, stride=1):
        filters = step.parameter(f"conv.{at}", (channels, x.shape[1], 3, 3))
        scale, bias = (step.parameter(f"{name}.{at}", (channels, 1, 1)) for name in ("norm", "shift"))
        return batch_norm(conv(x, filters, stride), scale, bias)

    x = relu(normal_conv(x, 0, channels))
    x = relu(x + normal_conv(relu(normal_conv(x, 1, channels)), 2, channels))
    x = relu(normal_conv(x, 3, 2 * channels, stride=2)).mean([2, 3])
    logits = einsum("bc,ck->bk", x, step.parameter("classifier", (2 * channels, classes)))
    return step.finish(cross_entropy(logits + step.parameter("classifier.bias", (classes,)), labels, fused=False))
