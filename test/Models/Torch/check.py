"""Fresh exports of torch under random plans, in f32 and bf16, on host ranks and on devices that this machine plays.

Usage: check.py BUILD_DIR [--count=N] [--seed=N] [NAME...]

Each seed is a model, sizes, a way to run it and a plan (plans.py). What must hold: hardly a plan is refused, and none for a reason that is not in
REFUSALS; `cleave run --check` finds ranks and one device equal, and outputs are what torch computed in double when the fixture was made (make.py), at other sizes than the recorded ones what
onnxruntime computes. In bf16 they may be as far from that as one device in bf16 is, times a small number. Each model is run as it is, too, without
a mesh, at several sizes, by evaluator and program.
"""
import json
import os
import re
import sys
import tempfile
import threading
from collections import Counter

import numpy as np
import onnxruntime
import yaml

sys.path.insert(1, os.path.dirname(os.path.dirname(sys.path[0])))
import harness
import plans

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = [(precision, where) for where in ("--executor=program", "--device=cuda-emulated") for precision in ("f32", "bf16")]
F32 = (1e-4, 1e-5)
# Of the root mean square: how far bf16 on ranks may be from what is right, in that of one device, and at least.
MOST_FARTHER, LEAST = 2.5, 6e-3
# Keys and values of the past stay in the ranks between calls.
STATES = {"llama_cache": {"past.*": "present.*"}}
# Texts and pictures, each with each: samples know of each other.
WITHOUT_BATCH = {"clip"}
# By the name of a dim, beside the recorded sizes; one of each row is taken together.
SIZES = [{"batch": 3, "seq": 7, "target": 5, "total": 10, "past": 9, "texts": 2, "pictures": 5},
         {"batch": 2, "seq": 16, "target": 9, "total": 3, "past": 2, "texts": 3, "pictures": 3},
         {"batch": 6, "seq": 2, "target": 2, "total": 17, "past": 16, "texts": 8, "pictures": 2}]
# Why a plan may be refused, and the most that are.
REFUSALS = {"a state's positions move": "grows along dim 2, which cannot be sharded: its positions move at every call"}
MOST_REFUSED = 0.02
# One in so many plans is at other sizes.
OTHERS = 3
SECONDS, COUNT = 300, 208


class Fixture:
    """A model with inputs of certain sizes and what they give, by name as in a .npz file of this folder."""

    def __init__(self, name, dims, folder):
        path = os.path.join(HERE, name)
        self.name, self.model, self.inputs = name, path + ".onnx", path + ".npz"
        self.arrays, self.alone = dict(np.load(self.inputs)), {}
        self.dims = ["--dim", ",".join(f"{dim}={size}" for dim, size in dims.items())] * bool(dims)
        if dims:
            self.resize(dims, os.path.join(folder, f"{name}.{'.'.join(map(str, dims.values()))}.npz"))
        self.named = plans.Model(self.model, {key[3:]: array for key, array in self.arrays.items() if key.startswith("in:")})

    def resize(self, dims, path):
        """Repeats or cuts the inputs; onnxruntime says what is right."""
        session = onnxruntime.InferenceSession(self.model, providers=["CPUExecutionProvider"])
        given = {value.name: np.resize(self.arrays["in:" + value.name], [dims.get(size, size) for size in value.shape]) for value in session.get_inputs()}
        names = [output.name for output in session.get_outputs()]
        self.arrays = {**{"in:" + name: array for name, array in given.items()}, **{"out:" + name: array for name, array in zip(names, session.run(names, given))}}
        np.savez(path, **given)
        self.inputs = path


def widen(array):
    """As double; a bfloat16 is the high half of an f32."""
    if array.dtype.kind == "V":
        array = (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)


def find_errors(got, arrays):
    """By output the root mean square of what it is off by, as a share of what it should be."""
    wanted = {key[4:]: want.astype(np.float64) for key, want in arrays.items() if key.startswith("out:")}
    return {name: float(np.sqrt(np.mean((widen(got[name]) - want) ** 2) / np.mean(want ** 2))) for name, want in wanted.items()}


class Suite:
    def __init__(self, build, folder):
        self.build, self.folder, self.fixtures = build, folder, {}
        # Plans that were refused, by reason.
        self.refused = Counter()
        self.lock = threading.Lock()

    def find(self, name, dims):
        """Cases that run side by side share fixtures, whose files are written once."""
        key = name, *dims.items()
        with self.lock:
            if key not in self.fixtures:
                self.fixtures[key] = Fixture(name, dims, self.folder)
            return self.fixtures[key]

    def run(self, fixture, title, words):
        """(exit code, what `cleave run` said, file of outputs)."""
        outputs = os.path.join(self.folder, f"{title}.out.npz")
        done = harness.cleave(self.build, "run", fixture.model, "--inputs", fixture.inputs, "--outputs", outputs, *fixture.dims, *words, "--quiet", timeout=SECONDS)
        return done.returncode, (done.stderr + done.stdout).strip(), outputs

    def find_rounding(self, fixture, where):
        """What bf16 moves on one device."""
        if where not in fixture.alone:
            code, text, outputs = self.run(fixture, f"{fixture.name}.{where}", [where, "--precision=bf16"])
            if code:
                raise RuntimeError(f"on one device: exit {code}: {text[-600:]}")
            fixture.alone[where] = find_errors(np.load(outputs), fixture.arrays)
        return fixture.alone[where]

    def compare(self, fixture, where, precision, got):
        """What is wrong with outputs, or an empty string."""
        if precision == "f32":
            return harness.difference(got, fixture.arrays, *F32)
        alone = self.find_rounding(fixture, where)
        return ", ".join(f"{output}: off by {error:.3g} (rms), one device by {alone[output]:.3g}" for output, error in find_errors(got, fixture.arrays).items()
                         if not error <= max(LEAST, MOST_FARTHER * alone[output]))

    def try_plan(self, name, dims, seed):
        """A plan by seed: what is wrong, or an empty string."""
        precision, where = WAYS[seed % len(WAYS)]
        fixture = self.find(name, dims)
        plan = plans.draw(seed, fixture.named, STATES.get(name), name not in WITHOUT_BATCH)
        with open(path := os.path.join(self.folder, f"{seed}.yaml"), "w", encoding="utf-8") as file:
            file.write(text := yaml.safe_dump(plan, sort_keys=False, default_flow_style=None, width=200))
        words = ["--plan", path, "--check", where, "--precision", precision, *plans.draw_options(seed, where)]
        code, said, outputs = self.run(fixture, seed, words)
        if why := code == 1 and next((why for why, words in REFUSALS.items() if words in said), ""):
            self.refused[why] += 1
            return ""
        wrong = f"exit {code}: {said[-900:]}" if code else self.compare(fixture, where, precision, np.load(outputs))
        return wrong and f"{wrong}\n  {' '.join([*fixture.dims, *words[3:]])}\n{text}"

    def try_whole(self, name, dims, where):
        """The model without a mesh: what is wrong, or an empty string."""
        fixture = self.find(name, dims)
        code, said, outputs = self.run(fixture, f"{name}.{len(dims)}.{sum(dims.values())}.{where}", [where])
        return f"exit {code}: {said[-900:]}" if code else harness.difference(np.load(outputs), fixture.arrays, *F32)


def main():
    numbers = {key: int(value) for key, value in re.findall(r"--(count|seed)=(\d+)", " ".join(sys.argv))}
    build, names, _ = harness.arguments(*[f"--{key}={value}" for key, value in numbers.items()])
    with open(os.path.join(HERE, "index.json"), encoding="utf-8") as file:
        all_facts = json.load(file)
    # Seeds are drawn, and so are models without a mesh: plans are of all models.
    facts = harness.select(all_facts, names) if names else all_facts
    sizes = {name: [{}, *({dim: row[dim] for dim in fact["dims"]} for row in SIZES)] for name, fact in facts.items()}
    with tempfile.TemporaryDirectory() as folder:
        suite, cases = Suite(build, folder), {}
        for name in facts:
            for dims in sizes[name]:
                for where in ("--executor=reference", "--executor=program"):
                    cases[f"{name} whole {dims} {where}"] = lambda name=name, dims=dims, where=where: suite.try_whole(name, dims, where)
        cases = harness.select(cases, [])
        first, count = harness.draw_seeds(numbers.get("seed", 0), numbers.get("count", COUNT))
        for seed in range(first, first + count):
            name = list(facts)[seed // len(WAYS) % len(facts)]
            dims = sizes[name][seed // OTHERS % len(SIZES) + 1 if seed % OTHERS == 0 else 0]
            cases[f"{name} {seed}"] = lambda name=name, dims=dims, seed=seed: suite.try_plan(name, dims, seed)
        code = harness.run(cases, lambda case: case())
        print(f"refused: {dict(suite.refused)}")
    if suite.refused.total() > max(1, MOST_REFUSED * count):
        print("expected fewer that are refused")
        code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
