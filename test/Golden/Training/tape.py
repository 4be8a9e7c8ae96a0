"""Programs of `nn` ops with gradients: a tape that is played backwards. For training steps, until Cleave differentiates.

    tape = Tape()
    x, w = tape.argument("x", (4, 8)), tape.argument("w", (8, 2))
    loss = einsum("bi,ij->bj", x, w).mean([0, 1])
    [dw] = tape.gradients(loss, [w])

An op is recorded with its rule: from the gradient of its result, the result and the operands, one function per operand
that records the ops of that operand's gradient. Those are ops like all others, and some are recorded twice: Cleave merges
them. An op without a rule has no gradient. This file has the tape and the ops that Python has signs for; ops.py has the
others.
"""
import math
from dataclasses import dataclass
from typing import Callable

import numpy as np


def tensor(shape, type, encoding=""):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{type}{encoding and ', '}{encoding}>"


class Value:
    """A tensor of the program: an argument, or what an op gives."""

    def __init__(self, tape, shape, type, sharding=None):
        self.tape, self.shape, self.type, self.sharding = tape, tuple(shape), type, sharding
        self.name = f"%{tape.next_number()}"

    def __add__(self, other):
        return pointwise("add", self, other, lambda d, _, x, y: [lambda: sum_to(d, x.shape), lambda: sum_to(d, y.shape)])

    def __sub__(self, other):
        return pointwise("sub", self, other, lambda d, _, x, y: [lambda: sum_to(d, x.shape), lambda: sum_to(-d, y.shape)])

    def __rsub__(self, number):
        return self.tape.constant(number, self.type) - self

    def __mul__(self, other):
        return pointwise("mul", self, other,
                         lambda d, _, x, y: [lambda: sum_to(d * y, x.shape), lambda: sum_to(d * x, y.shape)])

    def __truediv__(self, other):
        return pointwise("div", self, other)

    def __neg__(self):
        return record("nn.neg {0}", [self], self.shape, lambda d, _, x: [lambda: -d])

    def sum(self, dims, keep=False):
        return reduce("sum", self, dims, keep, 1)

    def mean(self, dims, keep=False):
        return reduce("mean", self, dims, keep, math.prod(self.shape[dim] for dim in dims))

    def reshape(self, *shape):
        return self if shape == self.shape else record("nn.reshape {0}", [self], shape,
                                                       lambda d, _, x: [lambda: d.reshape(*x.shape)])

    def transpose(self, *order):
        return record(f"nn.transpose {{0}} {list(order)}", [self], [self.shape[dim] for dim in order],
                      lambda d, _, x: [lambda: d.transpose(*np.argsort(order).tolist())])

    def broadcast(self, shape):
        return record("nn.broadcast {0}", [self], shape)

    def cast(self, type):
        return self if type == self.type else record("nn.cast {0}", [self], self.shape,
                                                     lambda d, _, x: [lambda: d.cast(x.type)], type=type)


def record(words, operands, shape, rule=None, type=None, sharding=None):
    """Records an op of the type of its first operand; `words` have {0} for the name of that operand."""
    return operands[0].tape.record(words, operands, shape, type or operands[0].type, rule, sharding)


def pointwise(name, x, y, rule=None, type=None):
    """An op of two operands that broadcast as in numpy; the second may be a number."""
    y = y if isinstance(y, Value) else x.tape.constant(y, x.type)
    return record(f"nn.{name} {{0}}, {{1}}", [x, y], np.broadcast_shapes(x.shape, y.shape), rule, type)


def reduce(kind, x, dims, keep, divisor):
    ones = [1 if dim in dims else size for dim, size in enumerate(x.shape)]
    shape = ones if keep else [size for dim, size in enumerate(x.shape) if dim not in dims]
    return record(f"nn.reduce {kind} {{0}} dims {list(dims)}{' keep_dims' if keep else ''}", [x], shape,
                  lambda d, _, x: [lambda: (d.reshape(*ones) * (1 / divisor)).broadcast(x.shape)])


def sum_to(x, shape):
    """Sums over what broadcasting from `shape` repeated."""
    front = len(x.shape) - len(shape)
    dims = [dim for dim, size in enumerate(x.shape) if dim < front or shape[dim - front] != size]
    return x.sum(dims).reshape(*shape) if dims else x


@dataclass(eq=False)
class Entry:
    """What the way back needs of an op, or of several ops in one."""
    result: Value
    operands: list
    rule: Callable


class Tape:
    def __init__(self):
        self.arguments, self.results = {}, {}  # by name
        self.ops = []  # (words, operands, result)
        self.entries = []
        self.late, self.last_number = None, 0

    def next_number(self):
        self.last_number += 1
        return self.last_number

    def argument(self, name, shape, type="f32", sharding=None):
        self.arguments[name] = Value(self, shape, type, sharding)
        return self.arguments[name]

    def result(self, name, value, sharding):
        self.results[name] = record("spmd.constrain {0}", [value], value.shape, sharding=sharding)

    def constant(self, numbers, type="f32"):
        """A scalar, or a vector from a list."""
        shape = np.shape(numbers)
        words = ", ".join(f"{number:.17e}" for number in np.ravel(numbers))
        words = f"[{words}]" if shape else words
        return self.record(f"nn.constant dense<{words}> : {tensor(shape, type)}", [], shape, type)

    def record(self, words, operands, shape, type, rule=None, sharding=None):
        result = Value(self, shape, type, sharding)
        self.ops.append((words, operands, result))
        if rule:
            self.entries.append(Entry(result, operands, rule))
        return result

    def fuse(self, first, result, operands, rule):
        """Gives all that leads from `operands` to `result`, the entries from number `first` on, one rule."""
        self.entries[first:] = [Entry(result, operands, rule)]

    def barrier(self, value):
        """The value in a form that nothing merges with the value itself, and not there before the loss is."""
        return value + self.late.cast(value.type)

    def gradients(self, loss, wanted, again=False):
        """The gradients of `loss`; with `again` the way back reads the `wanted` through barriers."""
        self.late = loss * 0.0
        later = {value: self.barrier(value) for value in wanted} if again else {}
        return self.pull(self.entries[:], loss, self.constant(1.0, loss.type), wanted, later)

    def pull(self, entries, result, gradient, wanted, later):
        """Gradients of `wanted` by way of `entries` from that of `result`; the rules read `later[x]` instead of x."""
        needed = set(wanted)
        for entry in entries:
            if needed.intersection(entry.operands):
                needed.add(entry.result)
        found = {result: gradient}
        for entry in reversed(entries):
            if entry.result not in found or entry.result not in needed:
                continue
            operands = [later.get(operand, operand) for operand in entry.operands]
            for operand, rule in zip(entry.operands, entry.rule(found[entry.result], entry.result, *operands)):
                if operand in needed:
                    found[operand] = found[operand] + rule() if operand in found else rule()
        return [found[value] for value in wanted]

    def text(self, mesh, loaded=()):
        """The module; arguments named in `loaded` become parameters of it, of which the bytes are in NAME.bin."""
        values = [*self.arguments.values(), *(result for _, _, result in self.ops)]
        aliases = {sharding: f"#s{at}" for at, sharding in enumerate(sorted({v.sharding for v in values if v.sharding}))}

        def typed(value):
            return tensor(value.shape, value.type, aliases.get(value.sharding, ""))

        def named(name, value):
            return f'{typed(value)} {{nn.name = "{name}"}}'

        given = [f"{value.name}: {named(name, value)}" for name, value in self.arguments.items() if name not in loaded]
        axes = ", ".join(f'"{axis}"={size}' for axis, size in mesh.items())
        lines = [f"#mesh = #spmd.mesh<[{axes}]>"]
        lines += [f"{alias} = #spmd.sharding<#mesh, {sharding}>" for sharding, alias in aliases.items()]
        for name in loaded:
            shape = self.arguments[name].shape
            lines.append(f'nn.param @"{name}" : {tensor(shape, "f32")} = #nn.weight<"{name}.bin", 0, {4 * math.prod(shape)}>')
        lines.append(f"func.func @step({', '.join(given)}) -> "
                     f"({', '.join(named(name, value) for name, value in self.results.items())}) {{")
        lines += [f'  {self.arguments[name].name} = nn.load @"{name}" : {typed(self.arguments[name])}' for name in loaded]
        lines += [f"  {op_text(*op, typed)}" for op in self.ops]
        back = self.results.values()
        lines += [f"  return {', '.join(value.name for value in back)} : {', '.join(map(typed, back))}", "}"]
        return "\n".join(lines) + "\n"


def op_text(words, operands, result, typed):
    types = ", ".join(map(typed, operands))
    text = f"{result.name} = {words.format(*(operand.name for operand in operands))}"
    if words.startswith("spmd.constrain"):
        return f"{text} : {types} to {typed(result)}"
    if words.startswith("nn.constant"):
        return f"{text} -> {typed(result)}"
    return f"{text} : ({types}) -> {typed(result)}" if operands else f"{text} : {typed(result)}"
