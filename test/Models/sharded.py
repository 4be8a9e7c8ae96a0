"""The fixtures, partitioned: each on several meshes, with generic plans, against its recorded outputs.

Usage: sharded.py BUILD_DIR [NAME...]

A plan splits the first dim of every input over `data` (where it divides) and weights of dots over `model`, columns and
rows in turn. The wishes are not tuned: what must hold is that every output is right on every mesh.
"""
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
MESHES = ["data=2", "model=2", "data=2,model=2", "model=3,data=2"]
REFUSED = {"bert_ort": "com.microsoft ops"}
TOLERANCE = {"gpt2_fp16": 3e-2, "llama_bf16": 1e-1}


def rules(name, mesh, arrays):
    """--shard arguments."""
    sizes = dict((axis, int(size)) for axis, size in (entry.split("=") for entry in mesh.split(",")))
    model = onnx.load(os.path.join(HERE, name + ".onnx"), load_external_data=False)
    shapes = {weight.name: list(weight.dims) for weight in model.graph.initializer}
    result, seen = [], set()
    for key, array in arrays.items():
        if key.startswith("in:") and array.ndim and "data" in sizes and array.shape[0] % sizes["data"] == 0:
            result += ["--shard", f"{key[3:]}=[data{', _' * (array.ndim - 1)}]"]
    turn = 0
    for node in model.graph.node:
        if node.op_type not in ("MatMul", "Gemm") or "model" not in sizes:
            continue
        weight = node.input[1]
        shape = shapes.get(weight, [])
        dim = turn % 2
        if len(shape) != 2 or weight in seen or shape[dim] % sizes["model"]:
            continue
        seen.add(weight)
        turn += 1
        dims = ["_", "_"]
        dims[dim] = "model"
        result += ["--shard", f"{weight}=[{', '.join(dims)}]"]
    return result


def run(cleave, name, mesh, folder):
    """What is wrong, or an empty string."""
    arrays = dict(np.load(os.path.join(HERE, name + ".npz")))
    outputs = os.path.join(folder, f"{name}.{mesh}.npz")
    command = [cleave, "run", os.path.join(HERE, name + ".onnx"), "--inputs", os.path.join(HERE, name + ".npz"),
               "--outputs", outputs, "--mesh", mesh, "--check", "--quiet", *rules(name, mesh, arrays)]
    done = subprocess.run(command, capture_output=True, text=True)
    if name in REFUSED:
        return "" if done.returncode == 1 else f"exit {done.returncode}, expected a refusal: {REFUSED[name]}"
    if done.returncode:
        return f"exit {done.returncode}: {(done.stderr + done.stdout)[-500:]}"
    got, tolerance = np.load(outputs), TOLERANCE.get(name, 1e-4)
    for key, want in arrays.items():
        if not key.startswith("out:"):
            continue
        have = got[key[4:]]
        if have.dtype.kind == "V":  # bfloat16: the high half of an f32
            have = (have.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        scale = max(1.0, float(np.abs(want.astype(np.float64)).max(initial=0)))
        try:
            np.testing.assert_allclose(have.astype(np.float64), want.astype(np.float64), rtol=tolerance,
                                       atol=tolerance / 10 * scale)
        except AssertionError as error:
            return f"{key}: " + " ".join(str(error).split())[:300]
    return ""


def main():
    build, wanted = sys.argv[1], sys.argv[2:]
    with open(os.path.join(HERE, "index.json")) as file:
        names = [name for name in json.load(file) if not wanted or name in wanted]
    cases = [(name, mesh) for name in names for mesh in MESHES]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda case: run(f"{build}/bin/cleave", *case, folder), cases))
    failed = 0
    for case, text in zip(cases, results):
        if text:
            failed += 1
            print(f"FAILED {' on '.join(case)}: {text}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
