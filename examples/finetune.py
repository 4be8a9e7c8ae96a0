"""Fine-tunes the MiniLM sentence encoder of the demo on its sentences, on 1 rank and on 2, and hands it back to onnxruntime.

Usage: finetune.py BUILD_DIR

Of eight sentences each has a paraphrase; the vectors of both shall meet in their middle. Twenty steps of AdamW, by the plan finetune.yaml,
write a checkpoint and the model with its new weights. onnxruntime, which runs that model, must find the loss that is evaluated in the end,
and paraphrases nearer to each other; the losses of 2 ranks must be those of 1. A run that is stopped half-way and resumed on the other
mesh must end with the same loss.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

from minilm import EMBEDDING, PAIRS, find_model, neighbors

HERE = os.path.dirname(os.path.abspath(__file__))
PLAN = os.path.join(HERE, "finetune.yaml")
STEPS = 20


def train(cleave, model, data, folder, name, *words):
    """The losses of a run, by its log, and the last one that was evaluated."""
    log = os.path.join(folder, name + ".jsonl")
    command = [cleave, "train", model, "--plan", PLAN, "--data", data, "--order", "given", "--log", log, *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with code {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"{name}: {done.stdout.strip().splitlines()[-1]}")
    with open(log) as file:
        lines = [json.loads(line) for line in file]
    return [line["loss"] for line in lines if "loss" in line], next((line["eval"] for line in reversed(lines) if "eval" in line), None)


def main():
    cleave = os.path.join(os.path.abspath(sys.argv[1]), "bin", "cleave")
    model = find_model()
    with open(os.path.join(HERE, "minilm-sentences.json")) as file:
        sentences = json.load(file)
    feeds = {name: np.array(sentences[name], np.int64) for name in ("input_ids", "attention_mask")}
    encode = lambda path: onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run([EMBEDDING], feeds)[0]
    before = encode(model)
    targets = before.copy()
    for a, b in PAIRS:
        targets[[a, b]] = (before[a] + before[b]) / 2
    checks = []
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        np.savez(at("data.npz"), labels=targets, **feeds)
        two, evaluated = train(cleave, model, at("data.npz"), folder, "2 ranks", "--steps", str(STEPS), "--save", at("two.safetensors"),
                               "--export", at("tuned.onnx"), "--eval-data", at("data.npz"))
        one, _ = train(cleave, model, at("data.npz"), folder, "1 rank", "--steps", str(STEPS // 2), "--save", at("one.safetensors"), "--mesh", "data=1")
        rest, _ = train(cleave, model, at("data.npz"), folder, "2 ranks, resumed", "--steps", str(STEPS), "--resume", at("one.safetensors"))
        tuned = encode(at("tuned.onnx"))
    loss = float(np.mean((tuned - targets)**2))
    apart = max(abs(a - b) / b for a, b in zip(one + rest, two))
    nearer = [float(np.linalg.norm(before[a] - before[b]) / np.linalg.norm(tuned[a] - tuned[b])) for a, b in PAIRS]
    print(f"loss {two[0]:.6f} to {two[-1]:.6f}, evaluated {evaluated:.6f}, in onnxruntime {loss:.6f}; 1 rank, then 2, are apart by {apart:.1e} at most")
    print(f"paraphrases are nearer by {min(nearer):.2f} at least; nearest neighbors: {neighbors(tuned)[0].tolist()}")
    checks.append(len(two) == STEPS and len(one + rest) == STEPS)
    checks.append(abs(evaluated - loss) < 1e-4 * loss)
    checks.append(two[-1] < two[0] / 2 and abs(loss - two[-1]) < 0.2 * two[-1])
    checks.append(apart < 2e-4)
    checks.append(min(nearer) > 1.2 and all(neighbors(tuned)[0][a] == b for a, b in PAIRS))
    print(f"{sum(checks)} passed, {len(checks) - sum(checks)} failed")
    return 0 if all(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
