"""Writes golden cases as files, NAME.onnx and NAME.yaml: to look at, or to run by hand.

Usage: make.py FOLDER [NAME...]
"""
import os
import sys

import onnx

from case import build, write_plan
from table import CASES


def write(case, folder):
    """The paths of the model and the plan of a case."""
    model, plan = (os.path.join(folder, f"{case.name}.{kind}") for kind in ("onnx", "yaml"))
    onnx.save(build(case), model)
    with open(plan, "w") as file:
        file.write(write_plan(case))
    return model, plan


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for name in sys.argv[2:] or CASES:
        write(CASES[name], sys.argv[1])
