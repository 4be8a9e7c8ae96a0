"""Bits that flip in what runs or is read: a program's header, tables, code and constants, its files of weights, and those of an .mlir file.

Usage: damage.py BUILD_DIR [NAME...]

Hundreds of bits, drawn anew for each file from one seed, flip one at a time. Either the run is refused, by a message and not a crash, or
what comes out is what numpy computes of the undamaged numbers, bit for bit: these are small whole ones, whose sums are exact. What is
certain to be read must be refused.
"""
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

FLIPS = 120  # of each case
LIMIT = 30
ROWS, DEPTH, COLUMNS = 4, 256, 590  # 604,160 bytes of weights: of a sample of three blocks nearly all would not be read
BUILD = ""


def numbers(shape, seed):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("f4")


X, W, BIAS = numbers((ROWS, DEPTH), 1), numbers((DEPTH, COLUMNS), 2), numbers((COLUMNS,), 3)


def make_model(folder):
    """relu(x w + bias), w in a file of its own, the bias in the model."""
    weight = numpy_helper.from_array(W, "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["xw"]), helper.make_node("Add", ["xw", "bias"], ["sum"]),
                               helper.make_node("Relu", ["sum"], ["y"])], "damage",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, DEPTH])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [ROWS, COLUMNS])],
                              [weight, numpy_helper.from_array(BIAS, "bias")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save_model(model, os.path.join(folder, "m.onnx"), save_as_external_data=True, location="w.bin", size_threshold=4096)
    np.savez(os.path.join(folder, "in.npz"), x=X)


def call(folder, tool, *words):
    """(exit code, output)"""
    done = subprocess.run([f"{BUILD}/bin/{tool}", *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=LIMIT)
    return done.returncode, done.stdout


class Damage:
    """One file of a run, `at` which bytes it is damaged (none: all), and the run."""

    def __init__(self, make, file, run, certain, at=None, says_all=True):
        self.make, self.file, self.run, self.certain, self.at, self.says_all = make, file, run, certain, at, says_all


RUN = ["cleave-run", "m.cleave", "--inputs", "in.npz", "--outputs", "out.npz", "--no-pin"]
COMPILE = ["cleave", "compile", "m.onnx", "-o", "m.cleave", "--quiet"]
SPLIT = ["--mesh", "t=2", "--shard", "w=[_, t]"]
TEXT = ["cleave", "run", "m.mlir", "--inputs", "in.npz", "--outputs", "out.npz", "--quiet"]
CASES = {
    "weights-file": Damage(COMPILE, "w.bin", RUN, True),
    "weights-file-split": Damage(COMPILE + SPLIT, "w.bin", RUN, True),
    "weights-inside": Damage(COMPILE + ["--embed-weights"], "m.cleave", RUN, False),
    "program": Damage(COMPILE, "m.cleave", RUN, False),
    "program-split": Damage(COMPILE + SPLIT, "m.cleave", RUN, False),
    # Where the header lies.
    "program-start": Damage(COMPILE, "m.cleave", RUN, False, range(0, 16)),
    "weights-of-text": Damage(["cleave", "import", "m.onnx", "-o", "m.mlir"], "w.bin", TEXT, True),
    "weights-of-partitioned": Damage(["cleave", "shard", "m.onnx", "-o", "m.mlir", "--quiet"] + SPLIT, "w.bin", TEXT, True),
    "weights-of-bytecode": Damage(["cleave", "import", "m.onnx", "-o", "m.mlirbc"], "w.bin", [*TEXT[:2], "m.mlirbc", *TEXT[3:]], True),
}


BYTECODE = ["cleave", "run", "m.mlirbc", "--inputs", "in.npz", "--outputs", "out.npz", "--quiet"]
CASES |= {
    "bytecode": Damage(["cleave", "import", "m.onnx", "-o", "m.mlirbc"], "m.mlirbc", BYTECODE, True),
    "bytecode-start": Damage(["cleave", "import", "m.onnx", "-o", "m.mlirbc"], "m.mlirbc", BYTECODE, False, range(0, 34)),
    "bytecode-passes": Damage(["cleave", "import", "m.onnx", "-o", "m.mlirbc"], "m.mlirbc", ["cleave-opt", "m.mlirbc", "-o", "out.mlir"], True),
    # Without a digest: numbers may be others, but nothing crashes.
    "foreign": Damage(["cleave-opt", "m.mlir", "--emit-bytecode", "-o", "m.mlirbc"], "m.mlirbc", BYTECODE, False, says_all=False),
    "foreign-passes": Damage(["cleave-opt", "m.mlir", "--emit-bytecode", "-o", "m.mlirbc"], "m.mlirbc",
                             ["cleave-opt", "m.mlirbc", "-o", "out.mlir"], False, says_all=False),
}


def outputs(folder):
    path = os.path.join(folder, "out.npz")
    with np.load(path) as arrays:
        values = arrays["y"]
    os.remove(path)
    return values


def compute():
    return np.maximum(X @ W + BIAS, 0)


def problem(item):
    name, damage = item
    draw = random.Random(name)
    with tempfile.TemporaryDirectory(prefix="cleave-damage-") as folder:
        make_model(folder)
        code, text = call(folder, "cleave", "import", "m.onnx", "-o", "m.mlir")
        if not code:
            code, text = call(folder, *damage.make)
        if code:
            return f"cannot be made: {text}"
        is_run = "out.npz" in damage.run
        code, text = call(folder, *damage.run)
        if code or (is_run and not np.array_equal(outputs(folder), compute())):
            return f"undamaged: exit code {code}\n{text}"
        path = os.path.join(folder, damage.file)
        with open(path, "rb") as file:
            sound = file.read()
        refused = 0
        for _ in range(FLIPS):
            place, bit = draw.choice(damage.at or range(len(sound))), draw.randrange(8)
            with open(path, "r+b") as file:
                file.seek(place)
                file.write(bytes([sound[place] ^ 1 << bit]))
            code, text = call(folder, *damage.run)
            with open(path, "r+b") as file:
                file.seek(place)
                file.write(sound[place:place + 1])
            what = f"bit {bit} of byte {place} of {len(sound)}: exit code {code}\n{text}"
            refused += code != 0
            if code not in ((0, 1) if damage.says_all else (0, 1, 4)) or (code and "error: " not in text):
                return what
            if code or not damage.says_all:
                continue
            if damage.certain or (is_run and not np.array_equal(outputs(folder), compute())):
                return what
        return None if refused > FLIPS * (0.9 if damage.says_all else 0.1) else f"only {refused} of {FLIPS} are refused"


def unverified(_):
    """Who must takes what is there: the program with other weights, and with damaged code's neighbor; an .mlir file likewise."""
    with tempfile.TemporaryDirectory(prefix="cleave-damage-") as folder:
        make_model(folder)
        for words in (COMPILE, ["cleave", "import", "m.onnx", "-o", "m.mlir"]):
            code, text = call(folder, *words)
            if code:
                return text
        other = W.copy()
        other[100, 7] += 1
        with open(os.path.join(folder, "w.bin"), "r+b") as file:
            file.write(other.tobytes())
        for run in (RUN, TEXT):
            code, text = call(folder, *run)
            if code != 1:
                return f"{run}: exit code {code}\n{text}"
            code, text = call(folder, *run, "--no-verify")
            if code or not np.array_equal(outputs(folder), np.maximum(X @ other + BIAS, 0)):
                return f"{run} --no-verify: exit code {code}\n{text}"
        # Samples are what somebody asked for: this change is in none.
        code, text = call(folder, *COMPILE, "--sample-digests")
        with open(os.path.join(folder, "w.bin"), "r+b") as file:
            file.write(W.tobytes())
        code, text = call(folder, *RUN)
        return None if code == 0 and np.array_equal(outputs(folder), compute()) else f"sampled: exit code {code}\n{text}"


def main():
    global BUILD
    BUILD, names, _ = harness.arguments()
    cases = {name: (name, damage) for name, damage in CASES.items()} | {"unverified": ("", None)}
    return harness.run(harness.select(cases, names), lambda item: problem(item) if item[1] else unverified(item))


if __name__ == "__main__":
    sys.exit(main())
