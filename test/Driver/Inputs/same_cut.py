"""`cleave schedule MODEL --plan` and `cleave run MODEL --plan`: one schedule, the same stages, times and bytes.

Usage: same_cut.py MODELS FOLDER
"""
import json
import os
import subprocess
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import harness

MODELS, FOLDER = sys.argv[1:]
CASES = [
    ("bert_ts17", "mesh: {stage: 2}", "microbatches: 3", ""),
    ("bert_ts17", "mesh: {stage: 2, model: 2}", "microbatches: 3", '{node: "*/intermediate/dense/MatMul", operand: 1, dims: [_, model]}'),
    ("bert_ts17", "mesh: {model: 2, stage: 2}", "microbatches: 3, chunks: 2", '{node: "*/intermediate/dense/MatMul", operand: 1, dims: [_, model]}'),
    ("bert_ts17", "mesh: {stage: 2, model: 2}", 'microbatches: 3, stages: [{nodes: "*/embeddings/*"}, {first: "*/layer.1/*"}]',
     '{node: "*/intermediate/dense/MatMul", operand: 1, dims: [_, model]}'),
    ("gpt2_ts17", "mesh: {stage: 2}", "microbatches: 2, uneven: true", ""),
    ("unet_dyn18", "mesh: {stage: 3, rows: 2}", "microbatches: 2, schedule: forward", "{tensor: image, dims: [_, _, rows, _]}"),
    ("bert_ts17", "cluster: 2x8xH100-ib\nmesh: {stage: 2, model: 8}", "microbatches: 3, schedule: auto", ""),
]


def run(command, name, plan):
    report = os.path.join(FOLDER, command + ".json")
    subprocess.run(["cleave", command, os.path.join(MODELS, name + ".onnx"), "--inputs", os.path.join(MODELS, name + ".npz"), "--plan", plan, "--quiet",
                    *(["--schedule", "forward"] if command == "schedule" and "auto" in open(plan).read() else []), "--report", report], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(report) as file:
        return json.load(file)


def problem(name, mesh, pipeline, rule):
    plan = os.path.join(FOLDER, "plan.yaml")
    with open(plan, "w") as file:
        file.write(f"{mesh}\npipeline: {{axis: stage, {pipeline}}}\n" + f"shard: [{rule}]\n" * bool(rule))
    shown, ran = run("schedule", name, plan), run("run", name, plan)["pipeline"]
    pairs = [("schedule", shown["schedule"], ran["schedule"]["schedule"]), ("times", shown["costs"]["F"], [stage["ns"] for stage in ran["stages"]]),
             ("placement", shown["replicas"][0]["placement"], [stage["rank"] for stage in ran["stages"]]),
             ("makespan", shown["makespan"], ran["schedule"]["makespan_ns"]),
             ("bytes", {(channel["from"], channel["to"]): channel["bytes"] for channel in shown["channels"] if channel["bytes"]}, sum_bytes(ran["stages"]))]
    return "; ".join(f"{what} {a} shown, {b} run" for what, a, b in pairs if a != b)


def sum_bytes(stages):
    sums = {}
    for number, stage in enumerate(stages):
        for send in stage["sends"]:
            sums[number, send["to"]] = sums.get((number, send["to"]), 0) + send["bytes"]
    return {key: size for key, size in sums.items() if size}


def main():
    bad = [f"{case}: {text}" for case in CASES if (text := problem(*case))]
    return harness.sum_up(bad, len(CASES))


if __name__ == "__main__":
    sys.exit(main())
