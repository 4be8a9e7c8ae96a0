"""Models written with their shardings as ONNX's device annotations, and read back.

Usage: annotated.py BUILD_DIR [NAME...]

A case is a plan of examples/parallel and its model. `cleave shard --emit=onnx` writes the model with the sharding of every tensor; the
file must pass ONNX's checker, must be the old one but for annotations, and every annotation must hold by what onnx.proto says, as
it is read here (each device holds one shard of each tensor, tensors are the node's own, graph inputs lie as the plan asks). Read
without the plan it must be the same program: collectives of the same kinds, counts and bytes (of the three of OTHERWISE: no more
bytes; the one of APART waits for wishes that canonical form may look through), and the outputs of the original.
"""
import json
import os
import sys
import tempfile

import onnx

sys.path[1:1] = [os.path.dirname(sys.path[0]), os.path.join(sys.path[0], "Parallel")]
import harness
import yaml
from cases import CASES

HERE = os.path.dirname(os.path.abspath(__file__))
PLANS = os.path.join(harness.ROOT, "examples", "parallel")
# Values that no tensor of the model is any more (sums of parts, reordered heads) are decided anew when the file is read; where
# forms tie, they may come out otherwise, sending no more.
OTHERWISE = {"gpt2-megatron", "vit-megatron", "swin-megatron"}
# What is asked of tensors between windows keeps these from being sunk below what follows: it runs right, and sends more.
APART = {"swin-pictures"}
# Tensors with a spec, over all cases, at least: a writer that says nothing would pass all else.
SPECS = 5000


def shards_of(spec, devices):
    """Per device the number of its shard, by ShardingSpecProto; None where a device holds none or two."""
    groups = {entry.key: list(entry.value) for entry in spec.index_to_device_group_map}
    held = {}
    for shard, key in enumerate(spec.device):
        for device in groups.get(key, [key]):
            if device in held or not 0 <= device < devices:
                return None
            held[device] = shard
    return held if len(held) == devices else None


def problem_of_spec(node, spec, devices):
    if spec.tensor_name not in [*node.input, *node.output]:
        return f"{spec.tensor_name} is no tensor of {node.name}"
    shards = 1
    for dim in spec.sharded_dim:
        for part in dim.simple_sharding:
            shards *= part.num_shards
    if len(spec.device) != shards or shards_of(spec, devices) is None:
        return f"{spec.tensor_name} of {node.name}: {shards} shards, devices {list(spec.device)}"
    return ""


def asked_dims(rule, axes):
    """What a rule of a plan without patterns and open dims asks of a tensor: (dim, number of shards); None for others."""
    if "tensor" not in rule or any(letter in rule["tensor"] for letter in "*?[{") or "dims" not in rule:
        return None
    dims = []
    for index, entry in enumerate(rule["dims"]):
        names = entry if isinstance(entry, list) else [] if entry == "_" else [entry]
        if any(name not in axes for name in names):
            return None
        shards = 1
        for name in names:
            shards *= axes[name]
        if shards > 1:
            dims.append((index, shards))
    return dims


def check_file(before, after, plan):
    """(what is wrong or an empty string, number of specs)."""
    onnx.checker.check_model(after)
    old, new = onnx.load(before, load_external_data=False), onnx.load(after, load_external_data=False)
    devices = new.configuration[0].num_devices
    lies, count = {}, 0
    for node in new.graph.node:
        for told in node.device_configurations:
            for spec in told.sharding_spec:
                count += 1
                if text := problem_of_spec(node, spec, devices):
                    return text, count
                dims = sorted((dim.axis, dim.simple_sharding[0].num_shards) for dim in spec.sharded_dim)
                if lies.setdefault(spec.tensor_name, dims) != dims:
                    return f"{spec.tensor_name} lies in two ways", count
        del node.device_configurations[:]
    if devices != yaml_ranks(plan):
        return f"{devices} devices", count
    for rule in plan.get("shard", []):
        asked = asked_dims(rule, plan["mesh"])
        if asked is not None and rule["tensor"] in lies and rule["tensor"] in [value.name for value in new.graph.input] and \
                lies[rule["tensor"]] != asked:
            return f"{rule['tensor']} lies as {lies[rule['tensor']]}, the plan asks {asked}", count
    del new.configuration[:]
    for model in (old, new):
        kept = [entry for entry in model.metadata_props if entry.key != "cleave.mesh"]
        del model.metadata_props[:]
        model.metadata_props.extend(kept)
        model.ir_version = 11
    return "" if old == new else "more than annotations has changed", count


def yaml_ranks(plan):
    ranks = 1
    for size in plan["mesh"].values():
        ranks *= size
    return ranks


def totals(path):
    with open(path) as file:
        report = json.load(file)
    return {kind: (total["count"], total["wire_bytes_per_rank"]) for kind, total in report["totals"].items() if total["count"]}


def run(build, name, folder):
    """(what is wrong or an empty string, number of specs)."""
    model = os.path.join(HERE, CASES[name].model + ".onnx")
    with open(path := os.path.join(PLANS, name + ".yaml")) as file:
        plan = yaml.safe_load(file)
    written, first, second = (os.path.join(folder, f"{name}.{kind}") for kind in ("onnx", "1.json", "2.json"))
    done = harness.cleave(build, "shard", model, "--plan", path, "--emit=onnx", "-o", written, "--quiet")
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr.strip()[:300]}", 0
    text, count = check_file(model, written, plan)
    if text:
        return text, count
    dims = [f"--dim={','.join(f'{key}={size}' for key, size in plan['dims'].items())}"] if plan.get("dims") else []
    for arguments in (["shard", model, "--plan", path, "--report", first, "-o", os.devnull],
                      ["run", written, *dims, "--check", "--report", second]):
        done = harness.cleave(build, *arguments, "--quiet")
        if done.returncode:
            return f"{arguments[0]}: exit {done.returncode}: {done.stderr.strip()[:300]}", count
    planned, found = totals(first), totals(second)
    sent = [sum(bytes for _, bytes in kinds.values()) for kinds in (planned, found)]
    is_same = (planned != found) if name in APART else sent[1] <= sent[0] if name in OTHERWISE else planned == found
    return ("" if is_same else f"read back: {found}, by the plan: {planned}"), count


def main():
    build, names, _ = harness.arguments()
    # Annotations know no word for a form of attention.
    chosen = harness.select({name: case for name, case in CASES.items() if not name.endswith("-ring")}, names)
    with tempfile.TemporaryDirectory() as folder:
        rows = list(zip(chosen, harness.each(lambda name: run(build, name, folder), chosen)))
    failed = sum(bool(text) for _, (text, _) in rows)
    for name, (text, count) in rows:
        print(f"FAILED {name}: {text}" if text else f"ok {name}: {count} specs")
    specs = sum(count for _, (_, count) in rows)
    print(f"{specs} specs held against onnx.proto")
    if not names and specs < SPECS:
        print(f"expected at least {SPECS}")
        failed += 1
    return harness.close(len(rows), failed)


if __name__ == "__main__":
    sys.exit(main())
