"""Programs of several variants: fixtures whose dims have names, compiled for several sizes at once.

Usage: variants.py BUILD_DIR [NAME...]

Each set of shapes must give what onnxruntime gives, and the bits of a program that was compiled for it alone; weights must
stand in memory once; shapes that no variant has must be refused with those that there are.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
import sharded

HERE = os.path.dirname(os.path.abspath(__file__))
MESHES = ["one=1", "data=2", "model=2"]
SIZES = {"batch": [2, 4], "seq": [5, 8]}
# Sizes that depend on each other keep one.
ONE = {"past": 5, "total": 6}
# Constants that follow from shapes differ, weights do not.
MOST_WEIGHTS = 1.1


def variants(names):
    """Every dim's sizes with every other's."""
    made = [{}]
    for name in names:
        made = [{**variant, name: size} for variant in made for size in ([ONE[name]] if name in ONE else SIZES[name])]
    return made


def inputs(fixture, arrays, dims):
    """The recorded inputs, repeated or cut."""
    return {name: np.resize(arrays["in:" + name], [dims.get(size, size) for size in shape])
            for name, _, shape in fixture["inputs"]}


def run(build, program, given, folder):
    """(outputs, or None; what was said)."""
    source, target = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
    np.savez(source, **given)
    done = subprocess.run([f"{build}/bin/cleave-run", program, "--inputs", source, "--outputs", target],
                          capture_output=True, text=True)
    return (None if done.returncode else dict(np.load(target))), done.stdout + done.stderr


def compile_program(build, name, dims, mesh, annotations, path):
    words = [word for dim, size in dims.items() for word in ("--dim", f"{dim}={size}")]
    done = harness.cleave(build, "compile", os.path.join(HERE, name + ".onnx"), *words, "--mesh", mesh, *annotations, "-o", path,
                          "--quiet")
    if done.returncode:
        raise RuntimeError(f"does not compile: {done.stderr[-500:]}")


def weight_bytes(build, path):
    told = json.loads(harness.cleave(build, "inspect", path, "--json").stdout)
    return max(part["weight_bytes"] for variant in told["variants"] for part in variant["lists"])


def problem(build, name, fixture, mesh):
    """What is wrong, or an empty string."""
    arrays = dict(np.load(os.path.join(HERE, name + ".npz")))
    made = variants(fixture["dynamic"])
    session = onnxruntime.InferenceSession(os.path.join(HERE, name + ".onnx"), providers=["CPUExecutionProvider"])
    annotations = sharded.rules(name, mesh, {"in:" + key: array for key, array in inputs(fixture, arrays, made[0]).items()})
    tolerance = sharded.TOLERANCE.get(name, 1e-4)
    with tempfile.TemporaryDirectory() as folder:
        several, single = (os.path.join(folder, file) for file in ("several.cleave", "single.cleave"))
        sizes = {dim: ",".join(str(size) for size in dict.fromkeys(variant[dim] for variant in made)) for dim in made[0]}
        compile_program(build, name, sizes, mesh, annotations, several)
        for dims in made:
            given = inputs(fixture, arrays, dims)
            got, said = run(build, several, given, folder)
            if got is None:
                return f"{dims}: {said[-500:]}"
            expected = zip([output.name for output in session.get_outputs()], session.run(None, given))
            text = harness.difference(got, {"out:" + key: want for key, want in expected}, tolerance, tolerance / 10)
            if text:
                return f"{dims}: {text}"
            compile_program(build, name, dims, mesh, annotations, single)
            alone, said = run(build, single, given, folder)
            if alone is None or any(alone[key].tobytes() != array.tobytes() for key, array in got.items()):
                return f"{dims}: other bits than a program for these sizes alone {said[-200:]}"
            if weight_bytes(build, several) > MOST_WEIGHTS * weight_bytes(build, single):
                return f"weights of {weight_bytes(build, several)} bytes, {weight_bytes(build, single)} for {dims} alone"
        got, said = run(build, several, inputs(fixture, arrays, {**made[0], "batch": 7}), folder)
        is_refused = got is None and "[7" in said and all(f"[{dims['batch']}" in said for dims in made)
        return "" if is_refused else f"a batch of 7 is not refused with the sizes that there are: {said[-300:]}"


def main():
    build, wanted, _ = harness.arguments()
    with open(os.path.join(HERE, "index.json")) as file:
        fixtures = json.load(file)
    names = harness.select({name: None for name, fixture in fixtures.items() if fixture["dynamic"]
                            and fixture["oracle"] == "ort"}, wanted)
    cases = {f"{name} on {mesh}": (name, fixtures[name], mesh) for name in names for mesh in MESHES}
    return harness.run(cases, lambda case: problem(build, *case))


if __name__ == "__main__":
    sys.exit(main())
