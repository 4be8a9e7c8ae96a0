"""ONNX's own node tests, through the importer and out again: what `cleave export` writes gives what the test expects.

Usage: nodes.py BUILD_DIR [NAME...]

Each op of ours comes out of many of ONNX's, in all of its forms. On one rank, the exported file must pass ONNX's checker, and run in onnxruntime, or, where that has no kernel, in
ONNX's reference evaluator. Refusals are counted by reason, on both ways; those of the way out are few. Left out are tests whose inputs or outputs are of types that numpy lacks,
and those of random numbers.
"""
import collections
import os
import re
import sys
import tempfile
import threading

import numpy as np
import onnx
import onnxruntime

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "Onnx")]
import conformance
import harness
import lockstep

# Refused on the way out, of all that come in: by what is said.
REASONS = collections.Counter()
LOCK = threading.Lock()
MOST_REFUSED, LEAST_RUN = 8, 1590
# onnxruntime takes the extent for its product with the scale, which need not be whole.
OTHERWISE = {"test_resize_downsample_scales_cubic_align_corners", "test_resize_downsample_scales_linear_align_corners"}
OUT = re.compile(r"has no form in ONNX|cannot be exported|scales that do not give")


def arrays_of(name, folder):
    """Arrays by name, or None where some are of types that numpy lacks."""
    path = conformance.prepare(name, folder)[2]
    graph = onnx.load(os.path.join(conformance.FOLDERS[name], "model.onnx"), load_external_data=False).graph
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    whole = {f"in:{info.name}" for info in graph.input} | {f"out:{info.name}" for info in graph.output}
    is_plain = set(arrays) == whole and all(array.dtype.kind != "V" for array in arrays.values())
    return (path, arrays) if is_plain else (path, None)


def infer(model, inputs, names, by_reference):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        session = None if by_reference else onnxruntime.InferenceSession(model.SerializeToString(), options)
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error) and "No Op registered" not in str(error):
            raise
        session = None
    if session is None:
        with LOCK:
            REASONS["(run by the reference evaluator)"] += 1
        session = lockstep.ReferenceEvaluator(model, new_ops=[lockstep.MatMul])
    return dict(zip(names, session.run(names, inputs)))


def problem(build, name, folder):
    """(what became of it, what is wrong or an empty string)."""
    if conformance.RANDOM.fullmatch(name):
        return "left out", ""
    path, arrays = arrays_of(name, folder)
    if arrays is None:
        return "left out", ""
    with tempfile.TemporaryDirectory() as target:
        done = harness.cleave(build, "export", os.path.join(conformance.FOLDERS[name], "model.onnx"), "--inputs", path, "-o", target, "--quiet")
        if done.returncode == 1 and OUT.search(done.stderr):
            with LOCK:
                REASONS[re.sub(r"^.*?: error: (node '[^']*': )?|'[^']*\.onnx'", "", done.stderr.strip().split("\n")[-1])] += 1
            return "refused on the way out", ""
        if done.returncode == 1:
            return "refused on the way in", ""
        if done.returncode:
            return "wrong", f"exit {done.returncode}: {done.stderr.strip()[-300:]}"
        file = os.path.join(target, "rank-0.onnx")
        onnx.checker.check_model(file, full_check=True)
        model = onnx.load(file)
    inputs = {info.name: arrays[f"in:{info.name}"] for info in model.graph.input}
    outputs = infer(model, inputs, [info.name for info in model.graph.output], name in OTHERWISE)
    expected = {key: array for key, array in arrays.items() if key.startswith("out:")}
    if not expected:
        return "left out", ""
    tolerance = conformance.LOOSE.get(name, conformance.ATOL)
    # onnxruntime's own figures are f32 where the tests' are f64: what is near 0 is so by rounding.
    return "run", harness.difference(outputs, expected, conformance.RTOL, max(tolerance, 2e-6))


def main():
    build, names, _ = harness.arguments()
    cases = harness.select({name: name for name in sorted(conformance.FOLDERS)}, names)

    def guarded(name):
        try:
            with tempfile.TemporaryDirectory() as folder:
                return problem(build, name, folder)
        except Exception as error:
            return "wrong", f"{type(error).__name__}: {str(error)[:300]}"

    results = dict(zip(cases, harness.each(guarded, cases)))
    counts = collections.Counter(kind for kind, _ in results.values())
    for name, (_, text) in results.items():
        if text:
            print(f"FAILED {name}: {text}")
    for reason, count in REASONS.most_common():
        print(f"{count} {reason}")
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    failed = sum(bool(text) for _, text in results.values())
    if not names and not harness.is_drawn() and (counts["refused on the way out"] > MOST_REFUSED or counts["run"] < LEAST_RUN):
        print(f"expected at least {LEAST_RUN} run, and at most {MOST_REFUSED} refused on the way out")
        failed += 1
    return harness.close(counts["run"] + failed, failed)


if __name__ == "__main__":
    sys.exit(main())
