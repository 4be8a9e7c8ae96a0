"""Compiled programs under bad conditions: the fixtures on 1 to 8 ranks, with delays, on memory full of garbage, walled in.

Usage: programs.py BUILD_DIR [NAME...]

Each fixture is compiled for the meshes of test/Models/sharded.py, and cleave-try-program runs it five times. What it counts
is held against the report of the compiler: the peak that was planned is the peak that was measured, at most 1.1 times what
is needed at one time, and `peak_bytes_per_rank` is what memory was asked for, but for 16 bytes of each launch that looks something up.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, ".."))
sys.path.insert(2, os.path.join(HERE, "..", "Models"))
import harness  # noqa: E402
import sharded  # noqa: E402


def problem(build, name, mesh, folder):
    """What is wrong, or an empty string."""
    arrays = dict(np.load(os.path.join(sharded.HERE, name + ".npz")))
    mesh = sharded.meet(mesh, arrays)
    inputs, program, report = (os.path.join(folder, f"{name}.{mesh}.{suffix}") for suffix in ("npz", "cleave", "json"))
    np.savez(inputs, **{key[3:]: array for key, array in arrays.items() if key.startswith("in:")})
    done = harness.cleave(build, "compile", os.path.join(sharded.HERE, name + ".onnx"), "--mesh", mesh, "-o", program,
                          "--inputs", os.path.join(sharded.HERE, name + ".npz"), "--report", report, "--quiet",
                          *sharded.rules(name, mesh, arrays))
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr[-500:]}"
    tried = subprocess.run([f"{build}/bin/cleave-try-program", program, inputs], capture_output=True, text=True)
    if tried.returncode:
        return f"exit {tried.returncode}: {tried.stdout[-500:]}{tried.stderr[-500:]}"
    counted = json.loads(tried.stdout)
    with open(report) as file:
        told = json.load(file)
    planned, bound = told["program"]["arena_bytes"], told["program"]["liveness_bound_bytes"]
    expected = {"ranks": told["ranks"], "arena_bytes": planned, "measured_bytes": planned,
                "touched_bytes": counted["touched_bytes"], "peak_bytes_per_rank": told["peak_bytes_per_rank"],
                "report_bytes": counted["report_bytes"],
                "allocated_bytes": told["ranks"] * told["peak_bytes_per_rank"] + counted["report_bytes"]}
    if counted != expected:
        return f"counted {counted}, the report says {expected}"
    if not counted["touched_bytes"] <= planned <= sharded.MOST_ARENA * bound:
        return f"{counted['touched_bytes']} bytes touched, {planned} planned, {bound} needed at one time"
    return ""


def main():
    build, wanted, _ = harness.arguments()
    with open(os.path.join(sharded.HERE, "index.json")) as file:
        names = list(json.load(file))
    cases = {f"{name} on {mesh}": (name, mesh) for name in harness.select(dict.fromkeys(names), wanted)
             for mesh in sharded.PROGRAM_MESHES}
    with tempfile.TemporaryDirectory() as folder:
        return harness.run(cases, lambda case: problem(build, *case, folder))


if __name__ == "__main__":
    sys.exit(main())
