"""Steps of several lengths of one program train one set of weights.

    lengths.py BUILD_DIR [CASE...]

`cleave compile --train --dim seq=8,16` makes a step for each length, which go on from each other's states. Called in turn, they have the losses, and
in the end the weights, of programs of one length each that hand a checkpoint on.
"""
import json
import os
import subprocess
import sys

import numpy as np

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
sys.path.insert(1, os.path.join(harness.ROOT, "examples"))
from runtime import Program  # noqa: E402

MODEL = os.path.join(harness.ROOT, "test", "Models", "gpt2_dyn18.onnx")
BATCH, VOCABULARY = 4, 128
# Which length each step has.
STEPS = (8, 16, 16, 8, 16, 8, 8, 16)
# In f32; ranks add in another order.
NEAR = 5e-7
ROWS = "shard: [{tensor: \"{input_ids,attention_mask}\", dims: [data, _]}]\n"
CASES = {
    "one device": "", "accumulated": "train: microbatches: 2", "ZeRO-1": "mesh: {data: 2}\n" + ROWS + "train: zero: {axis: data, stage: 1}",
    "stages": "mesh: {stage: 2}\npipeline: {axis: stage, microbatches: 2, schedule: 1f1b}\n",
    "data and stages": "mesh: {data: 2, stage: 2}\n" + ROWS + "pipeline: {axis: stage, microbatches: 2, schedule: zb-h1}\n",
}
TRAIN = "train: {loss: {kind: cross_entropy, of: logits, labels: {next: input_ids}}, optimizer: adamw, rate: 1e-3"


class Folder(harness.Folder):
    def __init__(self, build):
        super().__init__(build, "cleave-lengths-")
        random = np.random.default_rng(5)
        self.batches = [{"input_ids": random.integers(0, VOCABULARY, (BATCH, length)), "attention_mask": np.ones((BATCH, length), np.int64)} for length in STEPS]
        for number, batch in enumerate(self.batches):
            np.savez(self.at(f"{number}.npz"), **batch)

    def call(self, program, *words, expect=0):
        done = subprocess.run([f"{self.build}/bin/{program}", *words], capture_output=True, text=True, timeout=300, cwd=self.path)
        if done.returncode != expect:
            raise RuntimeError(f"{program} {' '.join(words)}: exit {done.returncode}, expected {expect}: {(done.stdout + done.stderr)[-600:]}")
        return done.stdout + done.stderr

    def compile(self, plan, lengths, path):
        self.call("cleave", "compile", MODEL, "--train", "--plan", plan, "--dim", f"batch={BATCH}", "--dim", f"seq={','.join(map(str, lengths))}", "-o", path, "--quiet")


def save_plan(path, text):
    head, _, more = text.partition("train: ")
    with open(path, "w") as file:
        file.write(f"{head}{TRAIN}{', ' + more if more else ''}}}\n")


def hand_on(folder):
    """Losses of programs of one length each, on one device, and the weights in the end."""
    save_plan(folder.at("alone.yaml"), "")
    losses = []
    for length in sorted(set(STEPS)):
        folder.compile("alone.yaml", [length], f"{length}.cleave")
    for number, length in enumerate(STEPS):
        resume = ["--resume", "s.safetensors"] if number else []
        folder.call("cleave-run", f"{length}.cleave", "--data", f"{number}.npz", "--steps", str(number + 1), "--order", "given", "--save", "s.safetensors", "--log", "l.jsonl", *resume)
        with open(folder.at("l.jsonl")) as file:
            losses.append([json.loads(line)["loss"] for line in file if '"loss"' in line][-1])
    return np.array(losses)


def problem(folder, case, want):
    plan, program = f"{case.replace(' ', '_')}.yaml", f"{case.replace(' ', '_')}.cleave"
    save_plan(folder.at(plan), CASES[case])
    folder.compile(plan, sorted(set(STEPS)), program)
    step = Program(folder.build, folder.at(program))
    losses = np.array([float(step.run(batch, ["loss"])["loss"]) for batch in folder.batches])
    off = np.abs(losses / want - 1)
    if off.max() > NEAR:
        return f"off by {off.max():.2g} in step {int(off.argmax())}, of length {STEPS[off.argmax()]}: {losses[off.argmax()]}, alone {want[off.argmax()]}"
    try:
        step.run({name: value[:, :5] for name, value in folder.batches[0].items()}, ["loss"])
    except RuntimeError as error:
        return "" if "[4, 5]" in str(error) else f"a length that is none is refused with: {error}"
    return "a length that is none is taken"


def main():
    build, names, _ = harness.arguments()
    cases = harness.select({name: name for name in CASES}, names)
    with Folder(build) as folder:
        want = hand_on(folder)
        return harness.run(cases, lambda case: problem(folder, case, want))


if __name__ == "__main__":
    sys.exit(main())
