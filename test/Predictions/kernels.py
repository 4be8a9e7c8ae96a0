"""Kernels that deciding foresees, against those that fusion forms, op by op, on all models and golden cases.

Usage: kernels.py BUILD_DIR [NAME...]

For each pair of ops of which one computes what the other reads, both are asked whether one kernel has both (ForeseenKernels.cpp). The
solver knows sharding rules alone, so a few pairs differ, for the reasons in DIFFER; all others must agree, and no model may be foreseen
with another number of kernels but for those.
"""
import collections
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(1, os.path.dirname(sys.path[0]))
sys.path.insert(2, os.path.join(os.path.dirname(sys.path[0]), "Golden"))
import harness
import make

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "Models")
SIZES = {"batch": 2}
# name of the model -> (pairs that differ, why).
READ_TWICE = "what several kernels read is made in one of them where that pays, which rules do not tell"
DIFFER = {
    "bert_ort": (1, "what a kernel of rows made, one element a row, is spread over another shape"),
    "moe_dyn18": (4, READ_TWICE),
    "vit_dyn18": (2, "tiles that are transposed as channels are go on in their kernel"),
}
# What was compared must be no less.
LEAST_PAIRS = 1300


def find_models(folder):
    """(name, file, options) of every fixture."""
    with open(os.path.join(MODELS, "index.json")) as file:
        index = json.load(file)
    for path in sorted(glob.glob(os.path.join(MODELS, "*.onnx"))):
        name = os.path.basename(path)[:-len(".onnx")]
        dims = index[name].get("dynamic", [])
        yield name, path, [word for dim in dims for word in ("--dim", f"{dim}={SIZES.get(dim, 8)}")]
    for case in make.CASES.values():
        yield case.name, make.write(case, folder)[0], []


def compare(build, folder, name, path, options):
    """(what is wrong, pairs by verdict) of one model."""
    dump = os.path.join(folder, name + ".phases")
    done = harness.cleave(build, "shard", path, "--mesh", "x=2", "--dump-phases", dump, "-o", os.path.join(folder, name + ".mlir"),
                          "--quiet", *options)
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr.strip()[:300]}", {}
    [canonical] = glob.glob(os.path.join(dump, "*-canonical.mlir"))
    done = subprocess.run([os.path.join(build, "bin", "cleave-foreseen-kernels"), canonical], capture_output=True, text=True)
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr.strip()[:300]}", {}
    pairs, kernels = collections.Counter(), None
    for line in done.stdout.splitlines():
        verdict, *words = line.split()
        if verdict == "kernels":
            kernels = words
        else:
            pairs[verdict] += 1
            if verdict != "agree":
                pairs[line] += 1
    differ = pairs["foreseen"] + pairs["formed"]
    allowed = DIFFER.get(name, (0, ""))[0]
    if differ != allowed:
        texts = "; ".join(f"{count} x {text}" for text, count in pairs.items() if " " in text)
        return f"{differ} pairs differ, expected {allowed}: {texts or 'none'}", pairs
    if not allowed and kernels[0] != kernels[1]:
        return f"{kernels[0]} kernels are foreseen, and {kernels[1]} formed", pairs
    return "", pairs


def main():
    build, names, _ = harness.arguments()
    with tempfile.TemporaryDirectory() as folder:
        models = [model for model in find_models(folder) if not names or model[0] in names]
        rows = harness.each(lambda model: compare(build, folder, *model), models)
    failed, total = 0, collections.Counter()
    for (name, _, _), (problem, pairs) in zip(models, rows):
        total.update({verdict: count for verdict, count in pairs.items() if " " not in verdict})
        if problem:
            print(f"FAILED {name}: {problem}")
            failed += 1
    compared = sum(total.values())
    print(f"{compared} pairs compared, {total['agree']} agree")
    if not names and compared < LEAST_PAIRS:
        print(f"FAILED {compared} pairs compared, expected at least {LEAST_PAIRS}")
        failed += 1
    return harness.close(len(models) + 1 - bool(names), failed)


if __name__ == "__main__":
    sys.exit(main())
