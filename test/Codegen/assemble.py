"""Kernels of the fixtures for NVIDIA's devices, put through NVIDIA's own assembler where there is one.

Usage: assemble.py BUILD_DIR [NAME...]

Each fixture on one device and on two, and on one with floats stored as bf16 and with products of tf32: its kernels as PTX for each
architecture, which `ptxas` must take without putting registers into memory; one of them for all architectures from sm_80 on that `ptxas` knows. Where there is no `ptxas`, on PATH or where CUDA is installed, nothing is compared, and that is said.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(1, os.path.dirname(sys.path[0]))
sys.path.insert(1, os.path.join(os.path.dirname(sys.path[0]), "Models"))
import harness
import sharded

ARCHITECTURES = ["sm_80", "sm_90", "sm_100", "sm_120"]
# Where floats are what they are in the model on a mesh, or on one device something else.
WAYS = [("data=1", ""), ("model=2", ""), ("data=1", "bf16"), ("data=1", "tf32")]


def find_assembler():
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    return shutil.which("ptxas") or next((path for home in homes if home
                                          for path in [os.path.join(home, "bin", "ptxas")] if os.path.exists(path)), None)


def list_others(assembler):
    """The architectures that `ptxas` knows, but those that all fixtures are put through."""
    text = subprocess.run([assembler, "--help"], capture_output=True, text=True).stdout
    return sorted({name for name, number in re.findall(r"\b(sm_(\d+)[af]?)\b", text) if int(number) >= 80} - set(ARCHITECTURES))


def lower(build, name, mesh, precision=""):
    """The kernels of a model as text, or None with what went wrong."""
    path = os.path.join(sharded.HERE, name)
    rules = sharded.rules(name, mesh, dict(np.load(path + ".npz")))
    done = harness.cleave(build, "shard", path + ".onnx", "--inputs", path + ".npz", "--emit", "optimized", "--quiet",
                          "--mesh", mesh, *rules)
    if done.returncode:
        return None, done.stderr
    way = ["--exec-lower=last=clustered devices=true", *(["--exec-narrow-floats"] if precision == "bf16" else []), "--exec-outline"]
    done = subprocess.run([f"{build}/bin/cleave-opt", "-", *way], input=done.stdout, capture_output=True, text=True)
    return (done.stdout, "") if done.returncode == 0 else (None, done.stderr)


def problem(build, assembler, name, mesh, precision, architecture, folder):
    """What is wrong, or an empty string."""
    text, fault = lower(build, name, mesh, precision)
    if text is None:
        return fault[-500:]
    ptx, cubin = (os.path.join(folder, f"{name}.{mesh}.{precision}.{architecture}.{suffix}") for suffix in ("ptx", "cubin"))
    with open(ptx, "w") as file:
        done = subprocess.run([f"{build}/bin/cleave-kernels", "-", "--target", f"cuda:{architecture}", "--emit=ptx",
                               *(["--tf32"] if precision == "tf32" else [])], input=text, stdout=file, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return done.stderr[-500:]
    done = subprocess.run([assembler, "-v", f"-arch={architecture}", ptx, "-o", cubin], capture_output=True, text=True)
    told = done.stdout + done.stderr
    spills = [(int(stores), int(loads)) for stores, loads in re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", told)]
    if done.returncode or not spills:
        return f"exit {done.returncode}: {told[-500:]}"
    return f"{sum(map(any, spills))} of {len(spills)} kernels spill" if any(map(any, spills)) else ""


def main():
    build, wanted, _ = harness.arguments()
    assembler = find_assembler()
    if not assembler:
        print("there is no ptxas: nothing was assembled\n0 passed, 0 failed")
        return 0
    with open(os.path.join(sharded.HERE, "index.json")) as file:
        names = harness.select(json.load(file), wanted)
    cases = {f"{name} on {mesh}{precision and ' in ' + precision} for {architecture}": (name, mesh, precision, architecture)
             for name in names for mesh, precision in WAYS for architecture in ARCHITECTURES}
    if not wanted:
        cases |= {f"mlp_external for {architecture}": ("mlp_external", "data=1", "", architecture) for architecture in list_others(assembler)}
    with tempfile.TemporaryDirectory() as folder:
        return harness.run(cases, lambda case: problem(build, assembler, *case, folder))


if __name__ == "__main__":
    sys.exit(main())
