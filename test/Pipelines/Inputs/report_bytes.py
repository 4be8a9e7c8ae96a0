"""Recomputes the bytes of reports, from counts and types, in text and JSON.

Usage: report_bytes.py MODELS FOLDER
"""
import json
import os
import re
import subprocess
import sys
from collections import Counter
from math import prod

import numpy as np
import onnx
from onnx import TensorProto, helper

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[1:1] = [TESTS, os.path.join(TESTS, "Models")]
import harness
from pipelines import write_loop

MODELS, FOLDER = sys.argv[1:]
SIZES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i8": 1, "ui8": 1, "i1": 1}
# What the busiest of `n` ranks sends, of which shape.
FORMULAS = {"all_gather": ("result_shape", lambda n: (n - 1, n)), "reduce_scatter": ("operand_shape", lambda n: (n - 1, n)),
            "all_to_all": ("operand_shape", lambda n: (n - 1, n)), "all_reduce": ("operand_shape", lambda n: (2 * (n - 1), n)),
            "send": ("operand_shape", lambda n: (1, 1))}
# Of these ranks send parts of what they have, and how many depends on the place: nothing more than all of it.
PARTS = {"permute", "window", "join", "split"}


def write_halo(path):
    """A convolution of 3x3 over 8x8 pixels: along rows in two, each rank sends one row of 2 channels of 8 pixels, in f32, once."""
    random = np.random.default_rng(1)
    weights = [onnx.numpy_helper.from_array(random.standard_normal((3, 2, 3, 3)).astype(np.float32), "w")]
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"], "conv", pads=[1, 1, 1, 1])], "halo",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 8, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 8, 8])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_skips(path):
    """Stages that hand on two values of types that differ: 4 samples of 3 floats, and of 5 integers."""
    tensor = helper.make_tensor_value_info
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], "/a/product"), helper.make_node("TopK", ["h", "k"], ["v", "i"], "/a/top"),
             helper.make_node("MatMul", ["v", "u"], ["y"], "/b/product"), helper.make_node("Identity", ["i"], ["j"], "/b/keep"),
             helper.make_node("Add", ["j", "one"], ["z"], "/b/add")]
    random = np.random.default_rng(2)
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in
               (("w", random.standard_normal((6, 6)).astype(np.float32)), ("u", random.standard_normal((3, 4)).astype(np.float32)),
                ("k", np.array([3])), ("one", np.array(1)))]
    graph = helper.make_graph(nodes, "skips", [tensor("x", TensorProto.FLOAT, [4, 6])],
                              [tensor("y", TensorProto.FLOAT, [4, 4]), tensor("z", TensorProto.INT64, [4, 3])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_plan(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def list_cases():
    """(title, model, arguments, kinds that must be there, least bytes of some that are known by hand)."""
    halo, skips = os.path.join(FOLDER, "halo.onnx"), os.path.join(FOLDER, "skips.onnx")
    write_halo(halo)
    write_skips(skips)
    loop = os.path.join(FOLDER, "loop.onnx")
    write_loop(loop, "loop")
    model = lambda name: os.path.join(MODELS, name + ".onnx")
    inputs = lambda name: ["--inputs", os.path.join(MODELS, name + ".npz")]
    plan = lambda name, text: ["--plan", write_plan(os.path.join(FOLDER, name + ".yaml"), text)]
    stages = 'stages: [{nodes: "/a/*"}, {nodes: "/b/*"}]'
    return [
        ("halo", halo, ["--mesh", "rows=2", "--shard", "x=[_, _, rows, _]", "--shard", "y=[_, _, rows, _]"], {"window": 2 * 8 * 4}),
        ("two values", skips, plan("skips", "mesh: {stage: 2}\npipeline: {axis: stage, microbatches: 2, " + stages + "}\n"), {"send": 2 * 2 * 3 * (4 + 8)}),
        ("two values of uneven parts", skips, plan("uneven", "mesh: {stage: 2}\npipeline: {axis: stage, microbatches: 3, uneven: true, " + stages + "}\n"),
         {"send": 4 * 3 * (4 + 8)}),
        ("tensors", model("bert_ts17"), [*inputs("bert_ts17"), "--mesh", "model=2", "--shard", "*.dense.weight=[_, model]"], {}),
        ("rows and columns", model("unet_dyn18"), [*inputs("unet_dyn18"), "--mesh", "rows=2,columns=2", "--shard", "image=[_, _, rows, columns]"], {"window": None}),
        ("skips", model("unet_dyn18"), [*inputs("unet_dyn18"), *plan("unet", "mesh: {stage: 3, rows: 2}\npipeline: {axis: stage, microbatches: 2}\n"
                                                                        "shard: [{tensor: image, dims: [_, _, rows, _]}]\n")], {"send": None, "window": None}),
        ("experts", model("moe_dyn18"), [*inputs("moe_dyn18"), "--mesh", "e=2", "--shard", "input_ids=[e, _]"], {}),
        ("a loop", loop, ["--mesh", "model=2", "--shard", "w1=[_, model]"], {"times": None}),
        ("uneven", model("gpt2_ts17"), [*inputs("gpt2_ts17"), *plan("three", 'mesh: {model: 3}\nuneven: true\nshard: [{tensor: "*c_fc.weight", dims: [_, model]}]\n')], {}),
    ]


def scaled(size):
    """As the table writes bytes."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


def wrong_entry(entry):
    kind, times, sent = entry["kind"], entry.get("times", 1), entry["wire_bytes_per_rank"]
    size = SIZES[entry["type"]]
    if kind in PARTS:
        most = times * size * max(prod(entry["operand_shape"]), prod(entry["result_shape"]))
        return "" if 0 < sent <= most and sent % (times * size) == 0 else f"{kind}: {sent} bytes of {entry}"
    shape, share = FORMULAS[kind]
    above, below = share(entry["group_size"])
    due = times * -(-above * prod(entry[shape]) * size // below)
    return "" if sent == due else f"{kind}: {sent} bytes, {due} by formula, of {entry}"


def wrong_table(table, entries):
    """The lines of the table are sums of entries of one kind, over one list of axes, of one type."""
    counts, sums = Counter(), Counter()
    for entry in entries:
        key = entry["kind"], ", ".join(entry["axes"]), "".join(f"{extent}x" for extent in entry["operand_shape"]) + entry["type"]
        counts[key] += entry.get("times", 1)
        sums[key] += entry["wire_bytes_per_rank"]
    lines = {(kind, axes.strip(), shape): (int(count), sent)
             for count, kind, axes, shape, sent in re.findall(r"^ +(\d+) x (\w+) +over (.+?) +(\S+x?\w+) +(\d\S* k?M?B)$", table, re.M)}
    due = {key: (counts[key], scaled(sums[key])) for key in counts}
    if lines != due:
        return f"the table says {sorted(set(lines.items()) - set(due.items()))}, of entries follows {sorted(set(due.items()) - set(lines.items()))}"
    for (kind, _, shape), (count, sent) in lines.items():
        extents = [int(extent) for extent in shape.split("x")[:-1]]
        if kind == "send" and sent != scaled(count * prod(extents) * SIZES[shape.split("x")[-1]]):
            return f"{count} times {shape} are not {sent}"
    return ""


def problems(model, arguments, known):
    texts, report = [], os.path.join(FOLDER, "r.json")
    for command in (["run", model, *arguments], ["compile", model, *arguments, "-o", os.path.join(FOLDER, "m.cleave")]):
        done = subprocess.run(["cleave", *command, "--report", report], capture_output=True, text=True)
        if done.returncode:
            return [done.stderr]
        with open(report) as file:
            read = json.load(file)
        entries = read["collectives"]
        texts += [*map(wrong_entry, entries), wrong_table(done.stdout, entries)]
        sums = Counter()
        for entry in entries:
            sums[entry["kind"]] += entry["wire_bytes_per_rank"]
        if sums != {kind: total["wire_bytes_per_rank"] for kind, total in read["totals"].items()}:
            texts.append(f"totals are {read['totals']}, of entries follow {sums}")
        if f"sent by a rank: {scaled(sum(sums.values()))}" not in re.sub(" +", " ", done.stdout):
            texts.append(f"the table does not say that {scaled(sum(sums.values()))} are sent")
        # Once memory is planned, what ranks send of a value are pieces, whatever it was for.
        for kind, size in known.items():
            planned = kind if command[0] == "run" or kind == "send" else "permute"
            if kind == "times":
                texts += ["nothing is sent in a loop"] * all(entry.get("times", 1) == 1 for entry in entries)
                continue
            if not sums[planned] or size is not None and sums[planned] != size:
                texts.append(f"{command[0]}: {sums[planned]} bytes by {planned}, expected {size or 'some'}")
    inspected = json.loads(subprocess.run(["cleave", "inspect", "--json", os.path.join(FOLDER, "m.cleave")], capture_output=True, text=True, check=True).stdout)
    most = max(sum(amount["bytes"] for amount in ranks["kinds"].values()) for variant in inspected["variants"] for ranks in variant["sent"])
    # Commands in loops are there once.
    once = sum(entry["wire_bytes_per_rank"] // entry.get("times", 1) for entry in entries)
    if most != once:
        texts.append(f"the program sends {most} bytes, the report says {once}")
    return texts


def main():
    bad, count = [], 0
    for title, model, arguments, known in list_cases():
        texts = [f"{title}: {text}" for text in problems(model, arguments, known) if text]
        bad += ["; ".join(texts)] * bool(texts)
        count += 1
    return harness.sum_up(bad, count)


if __name__ == "__main__":
    sys.exit(main())
