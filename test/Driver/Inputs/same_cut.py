"""`cleave schedule MODEL --plan` and `cleave run MODEL --plan`: one schedule, the same stages, times and bytes. Options of `schedule` are what
would stand in the plan.

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
# Cases of these, with options in front of another plan.
DENSE = '{node: "*/intermediate/dense/MatMul", operand: 1, dims: [_, model]}'
OTHERS = [
    ("bert_ts17", "mesh: {stage: 3, model: 2}", "microbatches: 3", DENSE, "--ranks 3", "mesh: {stage: 2, model: 2}", "microbatches: 3"),
    ("bert_ts17", "mesh: {stage: 2, model: 2}", "microbatches: 1", DENSE, "--microbatches 1", "mesh: {stage: 2, model: 2}", "microbatches: 3"),
    ("bert_ts17", "mesh: {model: 2, stage: 2}", "microbatches: 3, chunks: 2", DENSE, "--chunks 2", "mesh: {model: 2, stage: 2}", "microbatches: 3"),
    ("unet_dyn18", "mesh: {stage: 3}", "microbatches: 2", "", "--ranks 3 --microbatches 2", "", "microbatches: 1"),
]


def run(command, name, plan, options=()):
    report = os.path.join(FOLDER, command + ".json")
    done = subprocess.run(["cleave", command, os.path.join(MODELS, name + ".onnx"), "--inputs", os.path.join(MODELS, name + ".npz"), "--plan", plan,
                           "--quiet", *(["--schedule", "forward"] if command == "schedule" and "auto" in open(plan).read() else []), *options,
                           "--report", report], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert "unsharded" not in done.stdout, done.stdout
    with open(report) as file:
        return json.load(file)


def write(name, mesh, pipeline, rule):
    plan = os.path.join(FOLDER, name)
    with open(plan, "w") as file:
        file.write(f"{mesh}\npipeline: {{axis: stage, {pipeline}}}\n" + f"shard: [{rule}]\n" * bool(rule))
    return plan


def problem(name, mesh, pipeline, rule, options="", shown_mesh=None, shown_pipeline=None):
    plan = write("plan.yaml", mesh, pipeline, rule)
    other = write("shown.yaml", shown_mesh, shown_pipeline, rule) if options else plan
    shown, ran = run("schedule", name, other, options.split()), run("run", name, plan)["pipeline"]
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
    cases = CASES + OTHERS
    bad = [f"{case}: {text}" for case in cases if (text := problem(*case))]
    return harness.sum_up(bad, len(cases))


if __name__ == "__main__":
    sys.exit(main())
