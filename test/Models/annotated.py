"""Models written with their shardings as ONNX's device annotations, and read back.

Usage: annotated.py BUILD_DIR [NAME...]

A case is a plan of examples/parallel and its model. `cleave shard --emit=onnx` writes the model with the sharding of every tensor; the
file must pass ONNX's checker, must be the old one but for annotations, and every annotation must hold by what onnx.proto says, as
it is read here (each device holds one shard of each tensor, tensors are the node's own, graph inputs lie as the plan asks). Read
without the plan it must be the same program: all that a report says of it (each collective with its place, parameters, memory, stages, schedule) but the time that
compiling took.

The file keeps the plan as a property, `cleave.plan`. Without it annotations alone count, as for a file of somebody else's: collectives of the same
kinds, counts and bytes (of those of OTHERWISE: no more bytes; the one of APART waits for annotations that canonical form may look through), and the outputs of the original.

So it is with the pipelines of pipelines.py, of the examples, and of STAGED: here nodes have stages, too. Stages must count from 0, no edge may go back,
and tensors of a node must lie on the devices that the plan's mesh gives the rank of its stage; read back, stages have the same ops, parameters and
messages (but those of ANEW), and the schedule is the same. Cuts go through what one node has become, and beside collectives, which are no node's: of these the property
`cleave.stages` says it. Annotations must be right without it, too: where it is there, the file is run with it taken out.
"""
import json
import os
import shutil
import sys
import tempfile

import numpy as np
import onnx

sys.path[1:1] = [os.path.dirname(sys.path[0]), os.path.join(sys.path[0], "Parallel")]
import harness
import yaml
import pipelines
from cases import CASES

HERE = os.path.dirname(os.path.abspath(__file__))
# Of annotations alone, without `cleave.plan`. Values that no tensor of the model is any more (sums of parts, reordered heads) are decided anew then; where
# forms tie, they may come out otherwise, sending no more.
OTHERWISE = {"gpt2-megatron", "vit-megatron", "swin-megatron"}
# What is asked of tensors between windows keeps these from being sunk below what follows: it runs right, and sends more.
APART = {"swin-pictures"}
# Of pipelines, too: on which side of a norm or a sum a gather stands, of two that send as much, is decided with less to decide. Stages have the same
# ranks and parameters, and nothing sends more; what `cleave.stages` says of a gather that is elsewhere is passed over.
ANEW = {"gpt2_ts17 stage=2+data=2+model=2 3 0 4", "bert_ts17 on devices in another order", "bert_ts17 with a table's words"}
# By hand: skips, a stage that is not the only one of its rank, a batch that is said.
STAGED = {
    "bert_ts17 with ranks by hand": ("bert_ts17", """mesh: {stage: 2, data: 2}
dims: {batch: 8, seq: 16}
shard:
  - {tensor: "{input_ids,attention_mask,token_type_ids}", dims: [data, _]}
pipeline:
  axis: stage
  microbatches: 2
  send: relay
  batch: {"*_ids": 0, attention_mask: 0}
  stages: [{nodes: "*/embeddings/*", rank: 1}, {first: "*/layer.0/*", rank: 1}, {first: "*/layer.1/*", rank: 0}]
"""),
    "bert_ts17 on devices in another order": ("bert_ts17", """mesh: {stage: 2, model: 2}
devices: [3, 1, 0, 2]
dims: {batch: 8, seq: 16}
shard:
  - {node: "*/attention/self/{query,key,value}/MatMul", operand: 1, dims: [_, model]}
pipeline: {axis: stage, microbatches: 2}
"""),
    "gpt2_ts17 in a wave": ("gpt2_ts17", """mesh: {stage: 2}
pipeline: {axis: stage, microbatches: 3, placement: v}
"""),
    "gpt2_ts17 in a wave of four": ("gpt2_ts17", """mesh: {stage: 2, model: 2}
pipeline: {axis: stage, microbatches: 3, chunks: 4, placement: wave, schedule: circular, balance: latency, memory_limit: 4GB}
"""),
    "bert_ts17 in loops": ("bert_ts17", """mesh: {stage: 2}
dims: {batch: 8, seq: 16}
pipeline: {axis: stage, microbatches: 4, chunks: 2, placement: loop, schedule: auto}
"""),
    "bert_ts17 with a table's words": ("bert_ts17", """mesh: {model: 2, stage: 2}
dims: {batch: 8, seq: 16}
shard:
  - {node: "*/attention/self/{query,key,value}/MatMul", operand: 1, dims: [_, model]}
pipeline: {axis: stage, microbatches: 2, placement: v, together: ["*word_embeddings*"], send: relay}
"""),
}
# What a file says to Cleave beside annotations, of which these come.
PLAN = ("cleave.plan", "cleave.plan.digest")
# Tensors with a spec, over all cases, at least: a writer that says nothing would pass all else.
SPECS = 14000


def shards_of(spec, devices):
    """Per device the number of its shard, by ShardingSpecProto; None where one of `devices` holds none or two."""
    groups = {entry.key: list(entry.value) for entry in spec.index_to_device_group_map}
    held = {}
    for shard, key in enumerate(spec.device):
        for device in groups.get(key, [key]):
            if device in held or device not in devices:
                return None
            held[device] = shard
    return held if len(held) == len(devices) else None


def problem_of_spec(node, spec, devices):
    """`devices`: those that hold something of it; with stages that is looked at with these."""
    if spec.tensor_name not in [*node.input, *node.output]:
        return f"{spec.tensor_name} is not a tensor of {node.name}"
    shards = 1
    for dim in spec.sharded_dim:
        for part in dim.simple_sharding:
            shards *= part.num_shards
    if len(spec.device) != shards or devices and shards_of(spec, devices) is None:
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


def problem_of_stages(model, plan, ranks):
    """By the words of onnx.proto; `ranks`: of the pipeline, for each stage, as the first report has them."""
    said = [(node, node.device_configurations[0]) for node in model.graph.node if len(node.device_configurations)]
    said = [(node, told) for node, told in said if told.HasField("pipeline_stage")]
    if sorted({told.pipeline_stage for _, told in said}) != list(range(len(ranks))):
        return f"stages {sorted({told.pipeline_stage for _, told in said})} of {len(ranks)}"
    sizes = list(plan["mesh"].values())
    digits = np.indices(sizes)[list(plan["mesh"]).index(plan["pipeline"]["axis"])].reshape(-1)
    devices = np.array(plan.get("devices", range(len(digits))))
    made = {}
    for node, told in said:
        own = set(devices[digits == ranks[told.pipeline_stage]].tolist())
        for spec in told.sharding_spec:
            if set(shards_of(spec, own) or ()) != own:
                return f"{spec.tensor_name} of {node.name} is not on devices {sorted(own)}"
        if late := [name for name in node.input if made.get(name, 0) > told.pipeline_stage]:
            return f"{node.name} of stage {told.pipeline_stage} takes {late}"
        made |= {name: told.pipeline_stage for name in node.output}
    return ""


def check_file(before, after, plan, ranks=()):
    """(what is wrong or an empty string, number of specs)."""
    onnx.checker.check_model(after)
    old, new = onnx.load(before, load_external_data=False), onnx.load(after, load_external_data=False)
    devices = new.configuration[0].num_devices
    everywhere = [] if ranks else range(devices)
    if ranks and (text := problem_of_stages(new, plan, ranks)):
        return text, 0
    lies, count = {}, 0
    for node in new.graph.node:
        for told in node.device_configurations:
            for spec in told.sharding_spec:
                count += 1
                if text := problem_of_spec(node, spec, everywhere):
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
        kept = [entry for entry in model.metadata_props if entry.key not in ("cleave.mesh", "cleave.devices", "cleave.pipeline", "cleave.stages", *PLAN)]
        del model.metadata_props[:]
        model.metadata_props.extend(kept)
        model.ir_version = 11
    return "" if old == new else "more than annotations has changed", count


def yaml_ranks(plan):
    ranks = 1
    for size in plan["mesh"].values():
        ranks *= size
    return ranks


def totals(report):
    return {kind: (total["count"], total["wire_bytes_per_rank"]) for kind, total in report["totals"].items() if total["count"]}


def stages(report):
    """What each stage is, without what times are modeled."""
    return [{key: value for key, value in stage.items() if key != "ns"} for stage in report["pipeline"]["stages"]]


def places(report):
    return [(stage["rank"], stage["parameters_bytes"]) for stage in stages(report)]


def schedule(report):
    """What runs when, without modeled times: the name and, of what ranks do, how many microbatches and stages there are."""
    return report["pipeline"]["schedule"]["schedule"], report["pipeline"]["microbatches"], len(report["pipeline"]["stages"])


def without(path, *properties):
    """The path of a copy that has lost them, or an empty string where it has none of them."""
    model = onnx.load(path, load_external_data=False)
    kept = [entry for entry in model.metadata_props if entry.key not in properties]
    if len(kept) == len(model.metadata_props):
        return ""
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    onnx.save(model, bare := path[:-5] + ".bare.onnx")
    return bare


def run_without_ops(build, path, dims):
    """What is wrong with a file that lost all that other tools do not know, or an empty string."""
    bare = without(path, "cleave.stages")
    return bare and call(build, "run", bare, *dims, "--check")


def problem_of_program(build, path, dims, planned):
    """What the report of a file as it was written has otherwise than that of the plan, or an empty string."""
    if text := call(build, "shard", path, *dims, "--report", report := path + ".json", "-o", os.devnull):
        return text
    found = load(report)
    return "".join(f"{key} read back: {found.get(key)}, by the plan: {planned[key]}"[:600] for key in planned
                   if key not in ("model", "seconds") and found.get(key) != planned[key])


def load(path):
    with open(path) as file:
        return json.load(file)


def call(build, *words, knows=True):
    """What is wrong, or an empty string. `knows`: each op that a model names is there."""
    done = harness.cleave(build, *words, "--quiet")
    if done.returncode or (knows and "no op is called so" in done.stderr):
        return f"{words[0]}: exit {done.returncode}: {done.stderr.strip()[:300]}"
    return ""


def run(build, name, model, path, dims, folder):
    """A model and the file of a plan: (what is wrong or an empty string, number of specs)."""
    with open(path) as file:
        plan = yaml.safe_load(file)
    written, first, second = (os.path.join(folder, f"{name}.{kind}") for kind in ("onnx", "1.json", "2.json"))
    if os.path.exists(weights := model[:-5] + ".bin"):  # beside the model, and beside what is written
        model, weights = (shutil.copy(path, folder) for path in (model, weights))
    for words in (["shard", model, "--plan", path, *dims, "--emit=onnx", "-o", written],
                  ["shard", model, "--plan", path, *dims, "--report", first, "-o", os.devnull]):
        if text := call(build, *words):
            return text, 0
    planned = load(first)
    ranks = [stage["rank"] for stage in planned["pipeline"]["stages"]] if "pipeline" in plan else ()
    text, count = check_file(model, written, plan, ranks)
    text = text or problem_of_program(build, written, dims, planned)
    if text:
        return text, count
    written = without(written, *PLAN)
    if text := call(build, "run", written, *dims, "--check", "--report", second, knows=name not in ANEW) if written else "it keeps no plan":
        return text, count
    found = load(second)
    if ranks and places(found) != places(planned):
        return f"ranks and parameters of stages are {places(found)}, by the plan {places(planned)}", count
    if ranks and (stages(planned) != stages(found)) != (name in ANEW):
        return f"stages read back: {stages(found)}, by the plan: {stages(planned)}", count
    if ranks and schedule(planned) != schedule(found):
        return f"schedule read back: {schedule(found)}, by the plan: {schedule(planned)}", count
    if ranks and (text := run_without_ops(build, written, dims)):
        return f"without cleave.stages: {text}", count
    planned, found = totals(planned), totals(found)
    sent = [sum(bytes for _, bytes in kinds.values()) for kinds in (planned, found)]
    is_same = (planned != found) if name in APART else sent[1] <= sent[0] if name in OTHERWISE | ANEW else planned == found
    return ("" if is_same else f"read back: {found}, by the plan: {planned}"), count


def run_example(build, name, model, folder):
    """A plan of the examples, which says the dims of the model."""
    path = os.path.join(harness.ROOT, "examples", name + ".yaml")
    with open(path) as file:
        dims = yaml.safe_load(file).get("dims")
    words = [f"--dim={','.join(f'{key}={size}' for key, size in dims.items())}"] if dims else []
    return run(build, os.path.basename(name), os.path.join(HERE, model + ".onnx"), path, words, folder)


def run_pipeline(build, title, case, folder):
    """A case of pipelines.py, whose recorded inputs say the dims of the model."""
    name, mesh, microbatches, stages, times = case
    arrays = pipelines.repeat(dict(np.load(os.path.join(HERE, name + ".npz"))), times)
    pipelines.write_plan(path := os.path.join(folder, title + ".yaml"), name, mesh, microbatches, stages, arrays)
    return run(build, title, os.path.join(HERE, name + ".onnx"), path, pipelines.find_dims(name, arrays), folder)


def run_staged(build, title, model, text, folder):
    with open(path := os.path.join(folder, title + ".yaml"), "w") as file:
        file.write(text)
    dims = yaml.safe_load(text).get("dims", {})
    arrays = dict(np.load(os.path.join(HERE, model + ".npz")))
    words = [f"--dim={','.join(f'{key}={size}' for key, size in dims.items())}"] if dims else pipelines.find_dims(model, arrays)
    return run(build, title, os.path.join(HERE, model + ".onnx"), path, words, folder)


def make_cases(build, folder):
    # Annotations know no word for a form of attention.
    cases = {name: lambda name=name, case=case: run_example(build, "parallel/" + name, case.model, folder)
             for name, case in CASES.items() if not name.endswith("-ring")}
    cases["bert-3d"] = lambda: run_example(build, "bert-3d", "bert_ts17", folder)
    for case in pipelines.CASES + pipelines.UNEVEN:
        title = " ".join(map(str, case)).replace(",", "+")
        cases[title] = lambda title=title, case=case: run_pipeline(build, title, case, folder)
    for title, (model, text) in STAGED.items():
        cases[title] = lambda title=title, model=model, text=text: run_staged(build, title, model, text, folder)
    return cases


def main():
    build, names, _ = harness.arguments()
    with tempfile.TemporaryDirectory() as folder:
        chosen = harness.select(make_cases(build, folder), names)
        rows = list(zip(chosen, harness.each(lambda name: chosen[name](), chosen)))
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
