"""Training steps: right gradients, right on ranks, and no more bytes than the papers' formulas.

Usage: check.py BUILD_DIR [NAME...]

A step of cases.py passes if its ranks give what one device gives, send what its formula says to 1 % (or less, where the
case says why), split the compute (5 % slack; where less is sent than the formula says, up to a third more that pays for
itself), and are given what its plan promises of parameters, state and batch; what is computed once more must save memory. That one device gives right gradients is shown by numpy, in gradients.py.
"""
import json
import math
import os
import sys
import tempfile
from dataclasses import replace

import numpy as np

sys.path.insert(1, os.path.dirname(os.path.dirname(sys.path[0])))
import harness
from cases import BYTES, CASES
from gradients import GRADIENTS, gradient_problem
from steps import draw

SLACK, COMPUTE_SLACK = 1.01, 1.05
# What a flop that several ranks repeat is worth in bytes sent (docs/deciding.md, the table of the objective).
FLOP_BYTES = 1 / 64
# Gradients are small, so each element is compared with itself alone. An element of bf16 has 8 bits. What differs by more,
# as sums of rounded terms do, must agree as closely when cleave computes both in double.
TOLERANCES = {"f32": ["--rtol", "1e-4", "--atol", "1e-8"], "bf16": ["--rtol", str(2.0 ** -8), "--atol", "1e-8"]}


def write(case, step, folder):
    """The module, its weights and its inputs; (path of the module, path of the inputs)."""
    arrays = draw(step)
    loaded = list(step.parameters) if case.loaded else []
    folder = os.path.join(folder, case.name.replace(" ", "-"))
    os.makedirs(folder)
    for name in loaded:
        arrays.pop(name).tofile(os.path.join(folder, name + ".bin"))
    model, inputs = os.path.join(folder, "step.mlir"), os.path.join(folder, "in.npz")
    with open(model, "w") as file:
        file.write(step.tape.text(case.plan.mesh, loaded))
    np.savez(inputs, **arrays)
    return model, inputs


def given_bytes(case, step):
    """What a rank is given: parameters, state and its piece of the batch. Adam has two states of f32, a master copy is a
    third (Rajbhandari and others, 2020, section 3.1: 2 + 2 + 12 bytes a parameter in bf16, here without gradients)."""
    plan = case.plan
    data, model = (plan.mesh.get(axis, 1) for axis in ("data", "model"))
    states = 1 if step.accumulate else (2 if step.optimizer == "adam" else 0) + step.master
    state = 4 * states / (data if plan.zero and step.accumulate in (None, "sharded") else 1)
    parameter = BYTES[step.type] / (data if plan.zero == 3 else 1)
    batch = sum(math.prod(value.shape) * BYTES[value.type] for value in step.batches.values())
    number = 4 if "step" in step.tape.arguments else 0
    return ((parameter + state) * (step.count(cut=True) / model + step.count(cut=False)) + number
            + batch / data / (model if plan.sequence else 1))


def judge(case, step, report):
    """What is wrong with what was decided, or nothing."""
    sent, formula = sum(one["wire_bytes_per_rank"] for one in report["collectives"]), case.formula(case, step)
    print(f"{case.name}: {sent} bytes, formula {formula:.0f}")
    if sent > formula * SLACK:
        return f"sends {sent} bytes, formula {formula:.0f}"
    if sent < formula / SLACK and not case.below:
        return f"sends {sent} bytes, formula {formula:.0f}: the formula is wrong, or nothing was split"
    flops, split = report["flops"], case.split or math.prod(case.plan.mesh.values())
    share = flops["total"] / split
    pays = case.below and flops["per_rank"] < share * 4 / 3 and sent + (flops["per_rank"] - share) * FLOP_BYTES < formula
    if flops["per_rank"] > share * COMPUTE_SLACK and not pays:
        return f"a rank computes {flops['per_rank']} of {flops['total']} flops, expected 1 / {split:.2f}"
    given = report["parameters"]["bytes_per_rank"] + sum(math.prod(one["local_shape"]) * BYTES[one["type"]]
                                                         for one in report["inputs"])
    if given != given_bytes(case, step):
        return f"a rank is given {given} bytes, expected {given_bytes(case, step):.0f}"
    return ""


def memory_problem(build, case, report, folder):
    """Computing blocks once more must save a fifth of the memory."""
    plain = replace(case, name=case.name + " plain", plan=replace(case.plan, recompute=False))
    model, _ = write(plain, plain.build(), folder)
    done = harness.cleave(build, "shard", model, "--report", model + ".json", "-o", os.devnull)
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr.strip()[:500]}"
    with open(model + ".json") as file:
        peak, limit = report["peak_bytes_per_rank"], json.load(file)["peak_bytes_per_rank"] * 0.8
    return f"takes {peak} bytes of memory, expected at most {limit:.0f}" if peak > limit else ""


def step_problem(build, case, folder):
    step = case.build()
    model, inputs = write(case, step, folder)
    done = harness.cleave(build, "run", model, "--inputs", inputs, "--check", "--quiet", "--report", model + ".json",
                          "--weights", os.path.dirname(model), *TOLERANCES[step.type])
    if done.returncode:
        return f"exit {done.returncode}: {(done.stderr + done.stdout).strip()[:500]}"
    with open(model + ".json") as file:
        report = json.load(file)
    return judge(case, step, report) or (memory_problem(build, case, report, folder) if case.plan.recompute else "")


def main():
    build, names, _ = harness.arguments()
    chosen = harness.select(CASES | GRADIENTS, names)
    with tempfile.TemporaryDirectory() as folder:
        def problem(name):
            return step_problem(build, CASES[name], folder) if name in CASES else gradient_problem(build, name, folder)

        return harness.run({name: name for name in chosen}, problem)


if __name__ == "__main__":
    sys.exit(main())
