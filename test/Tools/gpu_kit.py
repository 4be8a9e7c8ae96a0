"""The GPU kit (scripts/gpu-kit), made small and run on the emulated device: what it says, and that it says it when something is wrong.

Usage: gpu_kit.py BUILD_DIR

Every row of the kit's own table is a case here. What it takes for wrong is put in on purpose: another expected value, no driver, no time.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

KINDS = {"check": 28, "alone": 28, "nccl": 15, "kernel": 10, "product": 6, "model": 8}


def run_kit(build, kit, *words, **environment):
    """(exit code, result, what was printed)"""
    out = tempfile.mkdtemp(dir=os.path.dirname(kit))
    library = os.path.join(build, "lib", "libcleave_emulated_cuda.so")
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"  # the Python that has numpy
    done = subprocess.run([os.path.join(kit, "run"), "--without-torch", "--rounds", "2", "--out", out, *words], capture_output=True,
                          text=True, env={**os.environ, "PATH": path, "CLEAVE_CUDA_LIBRARY": library, **environment}, check=False)
    with open(os.path.join(out, "kit-result.json"), encoding="utf-8") as file:
        return done.returncode, json.load(file), done.stdout + done.stderr


def get_states(result):
    return [row["state"] for row in result["rows"]]


def check_row(row):
    if row["state"] != "right":
        return f"{row['state']}: {row['why']}"
    if not row["compared"]:
        return "nothing was compared"
    if row["kind"] in ("kernel", "product", "model") and not (row.get("microseconds", 0) > 0 and row["calls"] == 2):
        return f"no time of two calls: {row}"
    calls = sum(library["calls"] for library in row["libraries"])
    if (row["kind"] == "alone" or row["name"].endswith(" alone")) and calls:
        return f"{calls} calls of libraries"
    if row["kind"] == "product" and not row["name"].endswith(" alone") and not calls:
        return "no library was called"
    return "" if row["kind"] != "model" or row.get("profile") else "no profile"


def check_counts(result, text):
    for kind, least in KINDS.items():
        count = sum(row["kind"] == kind for row in result["rows"])
        if count < least:
            return f"{count} cases of {kind}, expected {least}"
    if not any(row["libraries"] for row in result["rows"] if row["kind"] == "check"):
        return "no library was called"
    return "" if f"{len(result['rows'])} right, 0 wrong, 0 not run" in text else f"the table says otherwise: {text[-2000:]}"


def check_one_device(build, kit):
    """Ranks are processes, which share the device."""
    code, result, text = run_kit(build, kit, CLEAVE_EMULATION_DEVICES="1")
    groups = [row for row in result["rows"] if row["kind"] == "nccl"]
    if code != 0 or len(groups) < KINDS["nccl"]:
        return f"exit code {code}, {len(groups)} cases: {text[-500:]}"
    return next((f"{row['name']}: {check_row(row)}" for row in groups if check_row(row)), "")


def check_wrong_value(build, kit):
    """A value that is off by a hundredth."""
    other = shutil.copytree(kit, f"{kit}-wrong")
    path = os.path.join(other, "cases", "mlp_external.out.npz")
    arrays = dict(np.load(path))
    name = next(iter(arrays))
    arrays[name].flat[3] += 0.01 * np.abs(arrays[name]).max()
    np.savez_compressed(path, **arrays)
    code, result, _ = run_kit(build, other)
    wrong = {row["name"] for row in result["rows"] if row["state"] == "wrong"}
    if code != 1 or not {"mlp_external f32", "mlp_external model=2"} <= wrong or any("mlp_external" not in name for name in wrong):
        return f"exit code {code}, wrong: {sorted(wrong)}"
    return ""


def check_no_driver(build, kit):
    code, result, text = run_kit(build, kit, CLEAVE_CUDA_LIBRARY="/no/such/library")
    if code != 1 or set(get_states(result)) != {"wrong"} or "no CUDA driver" not in text:
        return f"exit code {code}: {text[-500:]}"
    return ""


def check_no_time(build, kit):
    code, result, text = run_kit(build, kit, "--seconds", "6")
    if code != 1 or "not run" not in get_states(result) or "wrong" in get_states(result) or "no time left" not in text:
        return f"exit code {code}: {text[-500:]}"
    return ""


def main():
    build, names, _ = harness.arguments()
    with tempfile.TemporaryDirectory() as folder:
        kit = os.path.join(folder, "kit")
        maker = os.path.join(harness.ROOT, "bench", "gpu", "make_kit.py")
        subprocess.run([sys.executable, maker, build, kit, "--small", "--target", "cuda:emulated"], check=True)
        code, result, text = run_kit(build, kit)
        cases = {f"{row['kind']} {row['name']}": (lambda row=row: check_row(row)) for row in result["rows"]}
        cases["exit code"] = lambda: f"it is {code}, expected 0" if code else ""
        cases["table"] = lambda: check_counts(result, text)
        cases["one device"] = lambda: check_one_device(build, kit)
        cases["a wrong value"] = lambda: check_wrong_value(build, kit)
        cases["no driver"] = lambda: check_no_driver(build, kit)
        cases["no time"] = lambda: check_no_time(build, kit)
        return harness.run(harness.select(cases, names), lambda case: case())


if __name__ == "__main__":
    sys.exit(main())
