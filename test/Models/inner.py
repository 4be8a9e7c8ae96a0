"""Annotations for tensors inside of the fixtures: whatever a plan names is there, and the outputs stay right.

Usage: inner.py BUILD_DIR [--all] [NAME...]

One plan per tensor that a node of the ONNX file defines: first with every dim whole (`_`), then with the first dim that
two ranks divide cut. Each must pass `cleave run --check`. Only a tensor whose elements nothing needs may be refused, and
must be: which these are is found here, from the file alone, by going back from the outputs over all operands but those
that only say a shape. Without --all a sample of each fixture is run.
"""
import json
import os
import re
import sys

import onnx

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLE = 8
# Operands that say what is computed, and are none of what is computed with.
STRUCTURAL = {"Reshape": {1}, "Expand": {1}, "Slice": {1, 2, 3, 4}, "Unsqueeze": {1}, "Squeeze": {1}, "Shape": {0},
              "ConstantOfShape": {0}, "Range": {0, 1, 2}, "Tile": {1}, "Split": {1}, "Pad": {1, 3}, "TopK": {1},
              "ReduceMean": {1}, "ReduceSum": {1}, "ReduceMax": {1}, "CumSum": {1}, "Resize": {1, 2, 3},
              "Trilu": {1}, "OneHot": {1}}


def needed(graph):
    """Names of tensors whose elements the outputs are computed from."""
    producers = {output: node for node in graph.node for output in node.output}
    found, stack = set(), [output.name for output in graph.output]
    while stack:
        name = stack.pop()
        if name in found:
            continue
        found.add(name)
        if name in producers:
            node = producers[name]
            skipped = STRUCTURAL.get(node.op_type, set())
            stack += [operand for index, operand in enumerate(node.input) if operand and index not in skipped]
    return found


def run(build, name, tensor, dims):
    fixture = os.path.join(HERE, name)
    done = harness.cleave(build, "run", fixture + ".onnx", "--inputs", fixture + ".npz", "--mesh", "x=2", "--check",
                          "--quiet", "--shard", f"{tensor}=[{', '.join(dims)}]")
    return done.returncode, (done.stderr + done.stdout).strip()


def problem(build, name, tensor, is_needed):
    """What is wrong with annotations for `tensor`, or an empty string."""
    # Its rank and shape are what the error says that a rule with too many dims gets.
    code, text = run(build, name, tensor, ["_"] * 9)
    if not is_needed:
        want = f"'{tensor}' is unused: no op of the program needs its elements"
        return "" if code == 2 and want in text else f"exit {code}, expected to be unused: {text[-300:]}"
    rank = re.search(r"has (\d+) dims but the rule lists 9", text)
    if code != 2 or not rank:
        return f"exit {code}, expected to hear its rank: {text[-300:]}"
    rank = int(rank[1])
    code, text = run(build, name, tensor, ["_"] * rank)
    if code:
        return f"whole: exit {code}: {text[-300:]}"
    for dim in range(rank):
        code, text = run(build, name, tensor, ["x" if dim == other else "_" for other in range(rank)])
        if code == 0:
            return ""
        if code != 2 or "does not divide" not in text:
            return f"cut along dim {dim}: exit {code}: {text[-300:]}"
    return ""


def cases(name, wants_all):
    graph = onnx.load(os.path.join(HERE, name + ".onnx"), load_external_data=False).graph
    tensors = [output for node in graph.node for output in node.output if output]
    live = needed(graph)
    step = 1 if wants_all else max(1, len(tensors) // SAMPLE)
    return {f"{name} {tensor}": (name, tensor, tensor in live) for tensor in tensors[::step]}


def main():
    build, wanted, flags = harness.arguments("--all")
    with open(os.path.join(HERE, "index.json")) as file:
        names = list(json.load(file))
    todo = {}
    for name in harness.select(dict.fromkeys(names), wanted):
        todo.update(cases(name, "--all" in flags))
    return harness.run(todo, lambda case: problem(build, *case))


if __name__ == "__main__":
    sys.exit(main())
