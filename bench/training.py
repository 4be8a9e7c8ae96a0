"""A step of training the demo's sentence encoder (8 x 64 tokens, AdamW, all weights), in turn with onnxruntime-training.

    training.py BUILD_DIR PEER_PYTHON

PEER_PYTHON has onnxruntime-training-cpu 1.19.2 (training_peer.py). Both take one thread; medians of all steps but each run's first, and the
forward by itself, of which the backward and the update are multiples.
"""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "examples"))
from minilm import EMBEDDING, find_model  # noqa: E402

ROUNDS, STEPS, BATCH, LENGTH = 5, 9, 8, 64


def ours(cleave, *words):
    """Milliseconds of a call, the median of one run."""
    command = [cleave, "bench", find_model(), "--dim", f"batch_size={BATCH},sequence_length={LENGTH}", "--repeat", str(STEPS), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(re.search(r"median ([\d.]+)", done.stdout)[1])


def peer(python):
    command = [python, os.path.join(HERE, "training_peer.py"), find_model(), EMBEDDING, "1", str(STEPS), str(BATCH), str(LENGTH)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    times = sorted(json.loads(done.stdout.strip().splitlines()[-1])[1:])
    return times[len(times) // 2]


def main():
    cleave, python = os.path.join(os.path.abspath(sys.argv[1]), "bin", "cleave"), sys.argv[2]
    train = f"--train={{loss: {{kind: mse, of: \"{EMBEDDING}\"}}, optimizer: adamw}}"
    steps, forwards, theirs = [], [], []
    for _ in range(ROUNDS):
        steps.append(ours(cleave, train))
        theirs.append(peer(python))
        forwards.append(ours(cleave))
    step, forward, other = (sorted(times)[ROUNDS // 2] for times in (steps, forwards, theirs))
    print(f"load {os.getloadavg()[0]:.1f}; a step {step:.1f} ms, onnxruntime-training {other:.1f} ms: {step / other:.2f}")
    print(f"forward {forward:.1f} ms; backward and update {(step - forward) / forward:.2f} times that")


if __name__ == "__main__":
    main()
