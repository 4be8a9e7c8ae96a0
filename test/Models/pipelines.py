"""The fixtures as programs of pipelines: stages, microbatches, schedules and meshes inside of a stage, against their recorded outputs.

Usage: pipelines.py BUILD_DIR [NAME...]

Each goes the whole way from a plan with `pipeline:` to a program file, which threads run (some by TCP, too): with a stage for each rank in
order (`forward`), or several (`circular`). Where a model takes any batch, the recorded inputs come several times, so that `data` divides the
microbatches; samples do not know of each other, so outputs come as often. Over `model` the weights of dots and convolutions are cut as in sharded.py.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
from sharded import rules

HERE = os.path.dirname(os.path.abspath(__file__))
# Name, mesh, microbatches, stages (0: one for each rank of the pipeline), how often the batch comes.
CASES = [
    ("gpt2_ts17", "stage=2", 3, 0, 1), ("gpt2_ts17", "stage=4", 3, 0, 1), ("gpt2_ts17", "stage=2", 6, 4, 2),
    ("gpt2_ts17", "stage=2,data=2,model=2", 3, 0, 4), ("gpt2_ts17", "model=2,stage=3", 3, 0, 1),
    ("bert_ts17", "stage=2", 3, 4, 1), ("bert_ts17", "stage=3,model=2", 3, 0, 1), ("bert_ts17", "data=2,stage=2,model=2", 3, 4, 4),
    ("bert_dyn18", "stage=2", 2, 0, 1), ("bert_dyn18", "stage=2", 2, 4, 1),
    ("mlp_external", "stage=2", 6, 0, 1), ("vit_dyn18", "stage=3", 3, 0, 1), ("vit_dyn18", "stage=2,model=2", 3, 4, 1),
    ("resnet_ts17", "stage=2", 3, 4, 1), ("resnet_ts17", "stage=4", 3, 0, 1),
    ("unet_dyn18", "stage=2", 2, 4, 1), ("unet_dyn18", "stage=3", 2, 0, 1),
    ("t5_like_dyn18", "stage=4", 2, 0, 1), ("t5_like_dyn18", "stage=2", 2, 4, 1),
    ("llama_gqa_dyn18", "stage=3", 3, 0, 1), ("llama_gqa_dyn18", "stage=2,model=2", 3, 0, 1), ("llama_gqa_dyn23", "stage=2", 3, 4, 1),
    ("gpt2_kv", "stage=2", 3, 0, 1), ("gpt2_fp16", "stage=2", 3, 0, 1), ("llama_bf16", "stage=2", 3, 0, 1),
]
BY_TCP = {("gpt2_ts17", "stage=2"), ("bert_ts17", "stage=2"), ("t5_like_dyn18", "stage=4"), ("vit_dyn18", "stage=2,model=2")}
TOLERANCE = {"gpt2_fp16": 3e-2, "llama_bf16": 1e-1}
# Rows of all samples go to experts in one tensor, which is no batch any more.
REFUSED = {"moe_dyn18": ("stage=2", 2, 0, 1, "mixes samples of different microbatches")}


class Refused(Exception):
    """A tool said no."""


def call(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise Refused(f"{os.path.basename(command[0])} {command[2]}: exit {done.returncode}: {done.stderr[-500:]}")


def repeat(arrays, times):
    """All arrays, which begin with the batch, that many times."""
    return {key: np.concatenate([array] * times) for key, array in arrays.items()}


def find_dims(name, arrays):
    """--dim for the model's dims without a size."""
    model = onnx.load(os.path.join(HERE, name + ".onnx"), load_external_data=False)
    sizes = {dim.dim_param: size for value in model.graph.input if "in:" + value.name in arrays
             for dim, size in zip(value.type.tensor_type.shape.dim, arrays["in:" + value.name].shape) if dim.dim_param}
    return ["--dim", ",".join(f"{key}={size}" for key, size in sizes.items())] * bool(sizes)


def write_plan(path, name, mesh, microbatches, stages, arrays):
    """The whole mesh, what is cut inside of a stage, and the pipeline."""
    sizes = dict(entry.split("=") for entry in mesh.split(","))
    inside = ",".join(entry for entry in mesh.split(",") if not entry.startswith("stage="))
    words = rules(name, inside, arrays)[1::2] if inside else []
    chunks = (stages or int(sizes["stage"])) // int(sizes["stage"])
    how = f"chunks: {chunks}, schedule: circular" if chunks > 1 else "schedule: forward"
    lines = [f"mesh: {{{mesh.replace('=', ': ').replace(',', ', ')}}}",
             f"pipeline: {{axis: stage, microbatches: {microbatches}, {how}}}", *["shard:"] * bool(words),
             *(f"  - {{tensor: {word.partition('=')[0]!r}, dims: {word.partition('=')[2]}}}" for word in words)]
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


def compile_program(build, folder, name, mesh, microbatches, stages, arrays):
    """The program of a pipeline."""
    plan, program = os.path.join(folder, "plan.yaml"), os.path.join(folder, "m.cleave")
    write_plan(plan, name, mesh, microbatches, stages, arrays)
    call(f"{build}/bin/cleave", "compile", os.path.join(HERE, name + ".onnx"), "--plan", plan, *find_dims(name, arrays), "--quiet", "-o", program)
    return program


def problem(build, name, mesh, microbatches, stages, times, launcher):
    """What is wrong, or an empty string."""
    arrays = repeat(dict(np.load(os.path.join(HERE, name + ".npz"))), times)
    with tempfile.TemporaryDirectory() as folder:
        program = compile_program(build, folder, name, mesh, microbatches, stages, arrays)
        inputs, outputs = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
        np.savez(inputs, **{key[3:]: array for key, array in arrays.items() if key.startswith("in:")})
        call(f"{build}/bin/cleave-run", program, "--inputs", inputs, "--outputs", outputs, "--deadline", "30",
             *(["--local"] if launcher == "tcp" else ["--ranks", "threads"]))
        tolerance = TOLERANCE.get(name, 1e-4)
        return harness.difference(np.load(outputs), arrays, tolerance, tolerance / 10)


def refused(build, name, mesh, microbatches, stages, times, why):
    try:
        problem(build, name, mesh, microbatches, stages, times, "threads")
    except Refused as error:
        return "" if why in str(error) else str(error)
    return f"expected: {why}"


def main():
    build, wanted, _ = harness.arguments()
    cases = {}
    for name, mesh, microbatches, stages, times in CASES:
        for launcher in ["threads", *["tcp"] * ((name, mesh) in BY_TCP)]:
            title = f"{name} on {mesh}, {microbatches} microbatches, {stages or 'a stage a rank'} {'stages' * bool(stages)} by {launcher}"
            cases[" ".join(title.split())] = lambda case=(name, mesh, microbatches, stages, times, launcher): problem(build, *case)
    for name, case in REFUSED.items():
        cases[name] = lambda name=name, case=case: refused(build, name, *case)
    return harness.run(harness.select(cases, wanted), lambda case: case())


if __name__ == "__main__":
    sys.exit(main())
