"""Writes a training step of a GPT as a module: forward, backward, and the update by Adam.

    make_step.py OUT.mlir [--layers 4] [--batch 8] [--seq 2048] [--hidden 4096] [--heads 32]

The step is one of test/Golden/Training, of any depth, and says nothing of a mesh: `--state "*=*'"` names what the next step finds.
Gradients are of that tape until Cleave takes them itself.
"""

import argparse
import os
import sys
from types import SimpleNamespace

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "test", "Golden", "Training"))
from steps import Step, gpt
from tape import Tape


class PlainTape(Tape):
    """Without shardings of arguments and results."""

    def argument(self, name, shape, type="f32", sharding=None):
        return super().argument(name, shape, type)

    def result(self, name, value, sharding):
        self.results[name] = value

    def text(self, mesh=None, loaded=()):
        return super().text({}, loaded).split("\n", 1)[1]


PLAIN = SimpleNamespace(parameter=lambda shape, cut: (None, None), activation=lambda rank: None, model=None,
                        sequence=False, again=False, recompute=False)


def make_step(path, layers, batch, seq, hidden, heads):
    """Writes the module; returns the number of ops."""
    step = Step(PLAIN)
    step.tape = PlainTape()
    gpt(step, batch, length=seq, width=hidden, heads=heads, hidden=4 * hidden, layers=layers)
    with open(path, "w") as file:
        file.write(step.tape.text())
    return len(step.tape.ops)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    for name, default in (("layers", 4), ("batch", 8), ("seq", 2048), ("hidden", 4096), ("heads", 32)):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = vars(parser.parse_args())
    print(make_step(arguments.pop("out"), **arguments), "ops")


if __name__ == "__main__":
    main()
