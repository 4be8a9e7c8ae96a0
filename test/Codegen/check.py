"""The kernels that models and random programs are lowered to, against the evaluator: each distinct body, on random inputs.

Usage: check.py BUILD_DIR [NAME...]

Of every fixture all meshes of the sharded suite, weights in panels, in f32 and in bf16; of the differential generator some
hundred programs.
"""
import os
import re
import subprocess
import sys

import numpy as np

sys.path.insert(1, os.path.dirname(sys.path[0]))
sys.path.insert(1, os.path.join(os.path.dirname(sys.path[0]), "Models"))
import harness
import sharded

PROGRAMS, SLICE = 150, 10


def lowered(build, name, mesh):
    """The kernels of a model as text, or None with what went wrong."""
    arrays = dict(np.load(os.path.join(sharded.HERE, name + ".npz")))
    batch = next(array.shape[0] for key, array in arrays.items() if key.startswith("in:") and array.ndim)
    mesh = mesh.replace("B", str(next(size for size in range(2, batch + 1) if batch % size == 0)))
    rules = sharded.rules(name, mesh, arrays)
    done = harness.cleave(build, "shard", os.path.join(sharded.HERE, name + ".onnx"), "--inputs",
                          os.path.join(sharded.HERE, name + ".npz"), "--emit", "clustered", "--quiet", "--mesh", mesh, *rules)
    if done.returncode:
        return None, done.stderr
    texts = []
    for narrowing in [], ["--exec-narrow-floats"]:
        packed = subprocess.run([f"{build}/bin/cleave-opt", "-", *narrowing, "--exec-pack-weights=width=16", "--exec-outline"],
                                input=done.stdout, capture_output=True, text=True)
        if packed.returncode:
            return None, packed.stderr
        texts.append(packed.stdout)
    return "// -----\n".join(texts), ""


def check(build, text):
    """(right, wrong, output) of the bodies of some modules."""
    done = subprocess.run([f"{build}/bin/cleave-kernels", "-", "--check"], input=text, capture_output=True, text=True)
    found = re.findall(r"^(\d+) passed, (\d+) failed", done.stdout, re.M)
    return (*map(int, found[-1]), done.stderr) if found else (0, 1, f"exit {done.returncode}: {done.stderr[-2000:]}")


def of_model(build, name):
    texts = [lowered(build, name, mesh) for mesh in ["data=1", *sharded.MESHES]]
    faults = [fault for text, fault in texts if text is None]
    if faults:
        return 0, 1, faults[0]
    return check(build, "// -----\n".join(text for text, _ in texts))


def of_programs(build, seed):
    done = subprocess.run([f"{build}/bin/cleave-differential", "--seed", str(seed), "--count", str(SLICE),
                           "--print-kernels"], capture_output=True, text=True)
    return check(build, done.stdout) if done.returncode == 0 else (0, 1, done.stderr)


def main():
    build, wanted, _ = harness.arguments()
    names = sorted(file[:-5] for file in os.listdir(sharded.HERE) if file.endswith(".onnx"))
    cases = [(of_model, name) for name in names] + [(of_programs, seed) for seed in range(1, PROGRAMS, SLICE)]
    cases = harness.select({str(case): (run, case) for run, case in cases}, wanted).values()
    right = wrong = 0
    for (_, case), (passed, failed, text) in zip(cases, harness.each(lambda it: it[0](build, it[1]), cases)):
        right, wrong = right + passed, wrong + failed
        if failed:
            print(f"{case}: {failed} of {passed + failed} are wrong\n{text[-3000:]}")
    print(f"{right} passed, {wrong} failed")
    return 1 if wrong or not right else 0


if __name__ == "__main__":
    sys.exit(main())
