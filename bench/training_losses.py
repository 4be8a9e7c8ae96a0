"""Writes the losses that jax has in twenty steps of small networks: test/Training/jax_losses.json, which test/Training/losses.py holds against.

    training_losses.py JAX_PYTHON

JAX_PYTHON is a Python with jax, numpy and onnx. The networks are those of training_nets.py at the sizes of SMALL, on their weights, with its
AdamW, in f64 (training_jax.py): a GPT whose table of words is the last product's too, and a ResNet.
"""
import json
import os
import subprocess
import sys
import tempfile

from training_nets import HERE, NETS

STEPS = 20
FIXTURE = os.path.join(HERE, os.pardir, "test", "Training", "jax_losses.json")
SMALL = {"gpt": dict(batch=8, length=16, hidden=64, layers=4, vocabulary=256), "resnet": dict(batch=8, widths=(8, 16, 32, 64))}


def main():
    losses = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, sizes in SMALL.items():
            net = NETS[name](folder, **sizes)
            made = subprocess.run([sys.argv[1], os.path.join(HERE, "training_jax.py"), name, net.model, net.batch, "1", "--losses", str(STEPS)],
                                  check=True, capture_output=True, text=True)
            losses[name] = json.loads(made.stdout)
    with open(FIXTURE, "w") as file:
        json.dump(losses, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
