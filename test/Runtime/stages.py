"""Stacks of layers as functions of the ranks of a pipeline: modules in MLIR, and what they compute.

A layer is `relu(x a) b + x`, a stage some of them; `a` is cut by columns and `b` by rows over `model`, rows of x over `data`. What stage 0
gives is added in the last stage, too: a skip connection. Each rank's function is what `pipe-lower` and `pipe-inline` would make of the stages;
here it follows from one order of all that ranks do, so that it tests what comes behind them and nothing before.

    forward     stage s on rank s; microbatch m is there at time s + m
    circular    stage s on rank s mod p; microbatches in rounds of p, each round through all stages before the next one
"""
import os
import subprocess
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Stack:
    """What is to be run."""
    mesh: dict                      # axes in order; one of them is `stage`
    microbatches: int
    stages: int                     # a multiple of the ranks of the pipeline
    width: int = 16
    inner: int = 32
    rows: int = 2                   # of a microbatch on one rank
    more: int = 0                   # the first so many microbatches have one row more
    layers: int = 1                 # of a stage
    has_skip: bool = True
    is_splat: bool = False          # weights of one number: large modules stay small
    seed: int = 0
    weights: list = field(default_factory=list)

    def __post_init__(self):
        draw = np.random.default_rng(self.seed)
        count = self.stages * self.layers
        shapes = [(self.width, self.inner), (self.inner, self.width)] * count
        self.weights = [np.full(shape, 0.5 / shape[0], "f4") if self.is_splat
                        else (draw.standard_normal(shape) / np.sqrt(shape[0])).astype("f4") for shape in shapes]

    @property
    def ranks(self):
        return self.mesh["stage"]

    @property
    def batch(self):
        return self.all_rows * self.mesh.get("data", 1)

    @property
    def all_rows(self):
        """On one rank."""
        return self.rows * self.microbatches + self.more

    def rows_of(self, microbatch):
        return self.rows + (microbatch < self.more)

    def compute(self, x):
        """The same in numpy, all at once."""
        skip = None
        for stage in range(self.stages):
            for layer in range(stage * self.layers, (stage + 1) * self.layers):
                x = np.maximum(x @ self.weights[2 * layer], 0) @ self.weights[2 * layer + 1] + x
            skip = x if stage == 0 else skip
        return x + skip if self.has_skip and self.stages > 1 else x

    def time(self, stage, microbatch):
        """When the stage is done, one at a time on each rank."""
        ranks = self.ranks
        turn, place = divmod(microbatch, ranks)
        chunk, rank = divmod(stage, ranks)
        return stage + microbatch if self.stages == ranks else turn * self.stages + chunk * ranks + place + rank

    def speed_up(self):
        """Of the schedule, if messages take no time and stages the same."""
        end = 1 + max(self.time(stage, self.microbatches - 1) for stage in range(self.stages))
        return self.stages * self.microbatches / end


def tensor(*shape):
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


class Writer:
    """The lines of one rank's function."""

    def __init__(self, stack, rank):
        self.stack, self.rank, self.lines, self.made = stack, rank, [], 0
        self.values = {}            # (stage, microbatch) -> what that stage gives
        self.loaded = {}

    def line(self, text):
        self.lines.append("    " + text)

    def name(self):
        self.made += 1
        return f"%v{self.made}"

    def load(self, number):
        stack, cut = self.stack, self.stack.mesh.get("model", 1)
        if number not in self.loaded:
            rows, columns = stack.weights[number].shape
            shard, kind = ("(#columns)", (rows, columns // cut)) if number % 2 == 0 else ("(#lines)", (rows // cut, columns))
            self.loaded[number] = self.name()
            self.line(f"{self.loaded[number]} = nn.load @w{number} {'shard' + shard if cut > 1 else ''} : {tensor(*kind)}")
        return self.loaded[number]

    def op(self, text, *shape):
        """One op; `shape` is of its result."""
        name = self.name()
        self.line(f"{name} = {text}{tensor(*shape)}")
        return name

    def run(self, stage, microbatch):
        stack = self.stack
        rows, width, inner = stack.rows_of(microbatch), stack.width, stack.inner // stack.mesh.get("model", 1)
        own = tensor(rows, width)
        if stage == 0:
            start = microbatch * stack.rows + min(microbatch, stack.more)
            value = self.op(f"nn.slice %x starts [{start}, 0] sizes [{rows}, {width}] steps [1, 1] : "
                            f"({tensor(stack.all_rows, width)}) -> ", rows, width)
        else:
            value = self.values[stage - 1, microbatch]
        for layer in range(stage * stack.layers, (stage + 1) * stack.layers):
            a, b = self.load(2 * layer), self.load(2 * layer + 1)
            h = self.op(f'nn.einsum {value}, {a} "ik,kj->ij" : ({own}, {tensor(width, inner)}) -> ', rows, inner)
            h = self.op(f"nn.relu {h} : ({tensor(rows, inner)}) -> ", rows, inner)
            h = self.op(f'nn.einsum {h}, {b} "ik,kj->ij" : ({tensor(rows, inner)}, {tensor(inner, width)}) -> ', rows, width)
            if stack.mesh.get("model", 1) > 1:
                h = self.op(f'spmd.all_reduce sum {h} over {{"model"}} : ', rows, width)
            value = self.op(f"nn.add {h}, {value} : ({own}, {own}) -> ", rows, width)
        if stage == stack.stages - 1 and stack.has_skip and stage:
            value = self.op(f"nn.add {value}, {self.values[0, microbatch]} : ({own}, {own}) -> ", rows, width)
        self.values[stage, microbatch] = value

    def send(self, channel, producer, microbatch, to):
        self.line(f"pipe.send {self.values[producer, microbatch]} to {to} channel {channel} microbatch {microbatch} : "
                  + tensor(self.stack.rows_of(microbatch), self.stack.width))

    def receive(self, channel, producer, microbatch, source):
        name = self.values[producer, microbatch] = self.name()
        self.line(f"{name} = pipe.recv from {source} channel {channel} microbatch {microbatch} : "
                  + tensor(self.stack.rows_of(microbatch), self.stack.width))

    def finish(self):
        """The whole function."""
        stack = self.stack
        local, whole = tensor(stack.all_rows, stack.width), f"{stack.batch}x{stack.width}xf32"
        about = f'spmd.global = tensor<{whole}{", #rows" if "data" in stack.mesh else ""}>, pipe.index = 0 : i64'
        holders = {stage % stack.ranks for stage in range(stack.stages)}
        takes = f'%x: {local} {{nn.name = "x", {about}}}' if self.rank == 0 else ""
        gives = ""
        if self.rank == (stack.stages - 1) % stack.ranks and self.rank in holders:
            parts = [self.values[stack.stages - 1, microbatch] for microbatch in range(stack.microbatches)]
            kinds = ", ".join(tensor(stack.rows_of(microbatch), stack.width) for microbatch in range(stack.microbatches))
            self.line(f"%y = nn.concat {', '.join(parts)} dim 0 : ({kinds}) -> {local}")
            gives = f' -> ({local} {{nn.name = "y", {about}}})'
            self.line(f"return %y : {local}")
        else:
            self.line("return")
        head = f"  func.func @main.rank{self.rank}({takes}){gives} attributes {{pipe.rank = {self.rank} : i64}} {{"
        return "\n".join([head, *self.lines, "  }"])


def write(stack):
    """The module."""
    writers = [Writer(stack, rank) for rank in range(stack.ranks)]
    work = sorted((stack.time(stage, microbatch), stage, microbatch)
                  for stage in range(stack.stages) for microbatch in range(stack.microbatches))
    channels = [(stage, stage + 1) for stage in range(stack.stages - 1)]
    if stack.has_skip and stack.stages > 2:
        channels.append((0, stack.stages - 1))
    pending = []                    # messages of the time that it is
    for index, (time, stage, microbatch) in enumerate(work):
        writers[stage % stack.ranks].run(stage, microbatch)
        pending += [(channel, producer, user, microbatch) for channel, (producer, user) in enumerate(channels) if producer == stage]
        if index + 1 < len(work) and work[index + 1][0] == time:
            continue
        for channel, producer, user, which in pending:
            source, target = producer % stack.ranks, user % stack.ranks
            if source != target and (producer, which) not in writers[target].values:
                writers[source].send(channel, producer, which, target)
                writers[target].receive(channel, producer, which, source)
        pending = []
    axes = lambda names: ", ".join(f'"{name}"={stack.mesh[name]}' for name in names)
    inside = [name for name in stack.mesh if name != "stage"]
    model, data = ('{"model"}' if "model" in stack.mesh else "{}"), ('{"data"}' if "data" in stack.mesh else "{}")
    head = [f"#replicated = #spmd.mesh<[{axes(stack.mesh)}]>",
            f"#mesh = #spmd.mesh<[{axes(inside) if inside else chr(34) + 'device' + chr(34) + '=1'}]>",
            f"#rows = #spmd.sharding<#mesh, [{data}, {{}}]>", f"#columns = #spmd.sharding<#mesh, [{{}}, {model}]>",
            f"#lines = #spmd.sharding<#mesh, [{model}, {{}}]>",
            'module attributes {spmd.mesh = #mesh, pipe.mesh = #replicated, pipe.axis = "stage", '
            f"pipe.microbatches = {stack.microbatches} : i64}} {{"]
    for number, weight in enumerate(stack.weights):
        elements = f"{weight.flat[0]:.9e}" if stack.is_splat else f'"0x{weight.tobytes().hex().upper()}"'
        head.append(f"  nn.param @w{number} : {tensor(*weight.shape)} = dense<{elements}> : {tensor(*weight.shape)}")
    return "\n".join([*head, *(writer.finish() for writer in writers), "}", ""])


def lower(build, text, folder):
    """(program of a module, what went wrong)."""
    module, ordered, program = (os.path.join(folder, name) for name in ("m.mlir", "ordered.mlir", "m.cleave"))
    with open(module, "w") as file:
        file.write(text)
    for command in ([f"{build}/bin/cleave-opt", module, "--exec-lower", "-o", ordered],
                    [f"{build}/bin/cleave-translate", "--exec-to-program", ordered, "-o", program]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return None, done.stderr if done.returncode == 1 else f"{command[0]} ended with {done.returncode}"
    return program, ""
