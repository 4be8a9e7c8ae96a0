"""The fixtures, partitioned: each on several meshes, with generic plans, against its recorded outputs.

Usage: sharded.py BUILD_DIR [--outlined|--ordered|--program|--emulated [--kernels-alone]] [NAME...]

A plan splits over `data` the batch, or the first dim of an input that divides, and over `model` the weights of dots and
convolutions, columns and rows in turn; of pictures rows and columns are split, too. The annotations are not tuned: what must hold is that every output is right on every
mesh, and that no rank does all of the work, so that no case passes because nothing was split. On some meshes nothing divides, and the plan says `uneven: true`. With --outlined, what runs on
the ranks has been lowered to kernels; with --ordered to commands on memory, whose arena is at most 1.1 times what is
needed at one time; with --program it is compiled, and run by the executor, on one rank and on 8, too; with
--emulated the same for CUDA, on devices that this machine plays, which check every access: what cuBLASLt takes is its, and in every
case there is some; with --kernels-alone, on one and on two ranks, libraries are hidden from what was compiled for them.
"""
import json
import os
import sys
import tempfile

import numpy as np
import onnx

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

HERE = os.path.dirname(os.path.abspath(__file__))
# B: the least number that divides the batch, as the recorded inputs have it.
MESHES = ["data=B", "model=2", "data=B,model=2", "model=3,data=B"]
# Of pictures: rows, or rows and columns, where edges go to neighbors.
PICTURES = ["resnet_ts17", "unet_dyn18"]
PICTURE_MESHES = ["rows=2", "rows=4", "rows=2,columns=2"]
# Of sizes that divide next to nothing in these models: heads, batches, tokens, channels, vocabularies.
UNEVEN_MESHES = ["data=3", "model=5", "data=2,model=7"]
PROGRAM_MESHES = ["one=1", *MESHES, "data=B,model=4"]
# Of what is needed at one time. Kernels of devices work in place less often, and small fixtures have few tensors to put together.
MOST_ARENA, MOST_EMULATED_ARENA = 1.1, 1.2
TOLERANCE = {"gpt2_fp16": 3e-2, "llama_bf16": 1e-1}


# In halves, attention that cuDNN has; that of the others has masks of bits, or keys that lie in f32 or turned.
ATTENTIVE = {"bert_dyn18", "bert_ts17", "gpt2_dyn18", "gpt2_fp16", "gpt2_ts17", "llama_bf16", "llama_gqa_dyn18", "t5_like_dyn18", "vit_dyn18"}


def has_attention(name, report):
    """Whether cuDNN, which has nothing else to do in these, was called where it can be."""
    return name not in ATTENTIVE or any(use["name"] == "cuDNN" and use["calls"] for use in report.get("libraries", []))


def divisible(shape, size, first=0, is_uneven=False):
    """The dim to cut by `size`, looked for from dim `first` on and then from dim 0; None if there is none."""
    dims = sorted(range(len(shape)), key=lambda dim: dim < first)
    return next((dim for dim in dims if shape[dim] and (shape[dim] > 1 if is_uneven else shape[dim] % size == 0)), None)


def rule(name, rank, dim, axis):
    return ["--shard", f"{name}=[{', '.join(axis if dim == other else '_' for other in range(rank))}]"]


def meet(mesh, arrays):
    """The mesh with a number for B."""
    batch = next(array.shape[0] for key, array in arrays.items() if key.startswith("in:") and array.ndim)
    return mesh.replace("B", str(next(size for size in range(2, batch + 1) if batch % size == 0)))


def rules(name, mesh, arrays, is_uneven=False):
    """--shard arguments."""
    sizes = dict((axis, int(size)) for axis, size in (entry.split("=") for entry in mesh.split(",")))
    if "rows" in sizes:
        return ["--shard", f"image=[_, _, rows, {'columns' if 'columns' in sizes else '_'}]"]
    model = onnx.load(os.path.join(HERE, name + ".onnx"), load_external_data=False)
    shapes = {weight.name: list(weight.dims) for weight in model.graph.initializer}
    result, seen = [], set()
    for key, array in arrays.items():
        dim = divisible(array.shape, sizes["data"], is_uneven=is_uneven) if key.startswith("in:") and "data" in sizes else None
        if dim is not None:
            result += rule(key[3:], array.ndim, dim, "data")
    for node in model.graph.node:
        if node.op_type not in ("MatMul", "Gemm", "Conv") or "model" not in sizes:
            continue
        weight = node.input[1]
        shape = shapes.get(weight, [])
        dim = divisible(shape[:2], sizes["model"], len(seen) % 2, is_uneven)
        if weight not in seen and len(shape) > 1 and dim is not None:
            seen.add(weight)
            result += rule(weight, len(shape), dim, "model")
    return result


def problem(build, name, mesh, flags, folder):
    """What is wrong, or an empty string."""
    is_uneven = mesh in UNEVEN_MESHES
    plan = os.path.join(folder, f"{name}.{mesh}.yaml")
    with open(plan, "w") as file:
        file.write("uneven: true\n")
    arrays = dict(np.load(os.path.join(HERE, name + ".npz")))
    mesh = meet(mesh, arrays)
    is_alone = "--kernels-alone" in flags
    flags = [flag for flag in flags if flag != "--kernels-alone"]
    outputs, report = (os.path.join(folder, f"{name}.{mesh}.{suffix}") for suffix in ("npz", "json"))
    done = harness.cleave(build, "run", os.path.join(HERE, name + ".onnx"), "--inputs", os.path.join(HERE, name + ".npz"),
                          "--outputs", outputs, "--report", report, "--mesh", mesh, "--check", "--quiet",
                          *flags, *["--plan", plan] * is_uneven, *rules(name, mesh, arrays, is_uneven),
                          env={**os.environ, "CLEAVE_CUDA_WITHOUT": "cublasLt,cudnn" if is_alone else ""})
    if done.returncode:
        return f"exit {done.returncode}: {(done.stderr + done.stdout)[-500:]}"
    with open(report) as file:
        told = json.load(file)
    if "cuda-emulated" in flags:
        uses = told.get("libraries", [])
        calls, fallbacks = (sum(use[key] for use in uses) for key in ("calls", "fallbacks"))
        if (calls != 0 or fallbacks == 0) if is_alone else calls == 0:
            return f"libraries computed {calls} commands, and kernels {fallbacks} in their stead"
        if name.endswith(("fp16", "bf16")) and not is_alone and not has_attention(name, told):
            return "cuDNN computed no attention"
    flops = told["flops"]
    if flops["per_rank"] >= flops["total"] and mesh != "one=1":
        return f"a rank does all of the work: {flops['per_rank']} of {flops['total']} flops"
    most = MOST_EMULATED_ARENA if "cuda-emulated" in flags else MOST_ARENA
    if "arena_bytes" in told and not told["arena_bytes"] <= most * told["liveness_bound_bytes"]:
        return f"an arena of {told['arena_bytes']} bytes, where {told['liveness_bound_bytes']} are needed at one time"
    # Terms of more ranks round more often.
    tolerance = TOLERANCE.get(name, 1e-4) * (1.5 if is_uneven else 1)
    return harness.difference(np.load(outputs), arrays, tolerance, tolerance / 10)


def main():
    build, wanted, flags = harness.arguments(*harness.LOWERINGS, "--kernels-alone")
    is_alone = "--kernels-alone" in flags
    how = harness.lower(flags) + ["--kernels-alone"] * is_alone
    with open(os.path.join(HERE, "index.json")) as file:
        names = harness.select(json.load(file), wanted)
    cases = {f"{name} on {mesh}": (name, mesh) for name in names
             for mesh in (["one=1", "model=2"] if is_alone else
                          [*(PROGRAM_MESHES if {"--program", "--emulated"} & set(flags) else MESHES + UNEVEN_MESHES * (not how)),
                           *PICTURE_MESHES * (name in PICTURES)])}
    with tempfile.TemporaryDirectory() as folder:
        return harness.run(cases, lambda case: problem(build, *case, how, folder))


if __name__ == "__main__":
    sys.exit(main())
