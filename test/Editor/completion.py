"""What is offered at a place of a plan: keys, words, names of the model, and what a choice makes of the text."""
import os
import re

import harness
from client import GPT2, MESH, SIZES, TOP, Plan, expect, joined
from harness import ROOT

def known_keys(build, folder, section):
    """The keys of a section as the reader lists them of a wrong one."""
    with open(folder.at("p.yaml"), "w") as file:
        file.write(section.replace("|", "no_such_key: 1"))
    done = harness.cleave(build, "shard", GPT2, "--plan", folder.at("p.yaml"), "-o", os.devnull)
    found = re.search(r"unknown key 'no_such_key'.* \(known: (.*)\)", done.stderr)
    assert found, done.stderr
    return found[1].split(", ")


SECTIONS = {
    "plan": "{|}", "plan in lines": "# first\n|", "rule": "shard: [{|}]", "rule in lines": "shard:\n  - |", "pipeline": "pipeline: {|}",
    "pipeline in lines": "pipeline:\n  |", "stage": "pipeline: {stages: [{|}]}", "train": "train: {|}", "loss": "train: {loss: {|}}",
    "losses": "train: {loss: [{|}]}", "labels": "train: {loss: {labels: {|}}}", "optimizer": "train: {optimizer: {|}}", "rate": "train: {rate: {|}}",
    "group": "train: {groups: [{|}]}", "zero": "train: {zero: {|}}", "lora": "train:\n  lora: {|}", "precision": "train:\n  precision:\n    |",
    "expect": "expect: {|}", "cluster": "cluster: {|}", "device": "cluster: {device: {|}}", "flops": "cluster: {device: {flops: {|}}}",
    "unlike": "cluster: {unlike: [{|}]}", "link": "cluster: {links: {|}}", "links": "cluster:\n  links:\n    - {|}",
}


def keys(build, client, section):
    """All keys, and those alone that are not there yet; of a few letters those that have them."""
    with harness.Folder(build, "cleave-editor-") as folder:
        wanted = known_keys(build, folder, section)
    before = section.partition("|")[0]
    plan = Plan(client, section.replace("|", ""))
    got = plan.ask("completion", plan.place(len(before)))["items"]
    word = wanted[-1]
    typed = Plan(client, section.replace("|", word[:2]))
    some = [item["label"] for item in typed.ask("completion", typed.place(len(before) + 2))["items"]]
    present = Plan(client, section.replace("|", f"{word}: 1, " if "{|" in section else f"{word}: 1\n" + " " * (len(before) - before.rfind("\n") - 1)))
    rest = [item["label"] for item in present.ask("completion", present.place(len(present.text) - len(section.partition("|")[2])))["items"]]
    return joined([expect(sorted(set(item["label"] for item in got) - {"devices"} | {"devices"} & set(wanted)), sorted(wanted), "keys"),
                   expect([item["label"] for item in got if not item["detail"]], [], "keys without a word about them"),
                   expect(set(some), {key for key in wanted if word[:2] in key}, f"with '{word[:2]}'"),
                   expect(set(wanted) - set(rest), {word}, f"behind {word}")])


# text with the cursor, what must be offered, and what must not.
WORDS = {
    "axes in dims": (MESH + "shard:\n  - {tensor: x, dims: [da|ta, _]}", ["data"], ["model", "x"]),
    "all of dims": (MESH + "shard:\n  - {tensor: x, dims: [|]}", ["data", "model", "_", "?", "..."], ["tensor", "devices"]),
    "second dim": (MESH + "shard:\n  - {tensor: x, dims: [data, |", ["model", "_"], []),
    "axes of one dim": (MESH + "shard:\n  - tensor: x\n    dims: [[data, mo|]]\n", ["model"], ["data"]),
    "replicated": (MESH + "shard: [{tensor: x, dims: [?], replicated: [|]}]", ["data", "model"], ["_"]),
    "axis of pipeline": ("mesh:\n  stage: 2\n  data: 4\npipeline:\n  axis: st|\n", ["stage"], ["data"]),
    "axis of zero": (MESH + "train: {zero: {axis: |", ["data", "model"], []),
    "free": (MESH + "free: |", ["data", "model", "true"], []),
    "free in a list": (MESH + "free: [da|]", ["data"], ["model"]),
    "axes below": ("shard:\n  - {tensor: x, dims: [|\n" + MESH, ["data", "model"], []),
    "styles": ("like: meg|", ["megatron"], ["fsdp"]),
    "styles in a list": ("like: [data, |]", ["megatron", "fsdp", "spatial"], []),
    "styles in lines": ("like:\n  - seq|\n", ["sequence"], ["data"]),
    "attention": ("attention: |", ["auto", "gather", "ring"], []),
    "schedules": ("pipeline: {schedule: |}", ["gpipe", "1f1b", "interleaved", "zb-h1", "dualpipe", "auto"], []),
    "schedules in the middle": ("pipeline:\n  schedule: zb-|h1\n", ["zb-h1", "zb-v"], ["gpipe"]),
    "placements": ("pipeline: {placement: |}", ["linear", "loop", "v", "wave"], []),
    "recompute of stages": ("pipeline: {recompute: |}", ["never", "always", "except_last"], ["cheap"]),
    "recompute of a step": ("train: {recompute: |}", ["none", "cheap", "blocks", "auto"], ["never"]),
    "optimizers": ("train: {optimizer: ad|}", ["adam", "adamw", "adagrad"], ["sgd"]),
    "optimizer's kind": ("train:\n  optimizer:\n    kind: |\n", ["sgd", "lamb"], []),
    "losses": ("train: {loss: {kind: |}}", ["cross_entropy", "mse"], []),
    "clusters": ("cluster: |", ["8xH100-nvlink", "cpu-threads", "H100", "L4"], []),
    "clusters in the middle": ("cluster: 2x8x|", ["2x8xH100-ib"], ["L4"]),
    "flags": ("uneven: |", ["true", "false"], []),
    "kinds": ("expect: {no: [all_|]}", ["all_gather", "all_reduce", "all_to_all"], ["permute"]),
    "links": ("cluster:\n  links:\n    - {name: nvlink, devices: 8}\n    - {name: ib, devices: 2}\n  axes: {data: |}\n", ["nvlink", "ib"], []),
    "names of axes": ("mesh: {|}", ["data", "model"], []),
    "in a comment": ("# mesh: {|}\nmesh: {data: 2}\n", [], ["data"]),
    "of a number": ("mesh: {data: |}", [], ["data", "model"]),
    "below a value": ("mesh: {data: 2}\n  |", [], ["shard"]),
    "inputs": (TOP + "shard:\n  - {tensor: input|", ["input_ids"], []),
    "tensors by a part": (TOP + "shard:\n  - {tensor: wte|", ["inner.transformer.wte.weight"], ["input_ids"]),
    "tensors in quotes": (TOP + 'shard:\n  - {tensor: "inner.transformer.wt|"}\n', ["inner.transformer.wte.weight"], ["input_ids"]),
    "tensors behind a star": (TOP + 'shard:\n  - {tensor: "*wte|"}\n', ["inner.transformer.wte.weight"], ["input_ids"]),
    "patterns": (TOP + "shard:\n  - {tensor: c_attn|", ["inner.transformer.h.*.attn.c_attn.weight", "inner.transformer.h.0.attn.c_attn.bias"], []),
    "nodes": (TOP + SIZES + "shard:\n  - {node: lm_head|", ["/inner/lm_head/MatMul"], ["input_ids"]),
    "modules": (TOP + SIZES + "shard:\n  - {module: c_fc|", ["inner.transformer.h.*.mlp.c_fc"], ["input_ids"]),
    "except": (TOP + 'shard:\n  - {tensor: "*", except: [wpe|]}', ["inner.transformer.wpe.weight"], []),
    "symbols": (TOP.replace("ts17", "dyn18") + "dims: {|}", ["batch", "seq"], []),
    "states": (TOP.replace("ts17", "kv") + "state: {past|}", ["past_key_0"], []),
    "outputs of states": (TOP.replace("ts17", "kv") + "state: {past_key_0: pres|}", ["present_key_0"], ["input_ids"]),
    "weights": (TOP + "train: {freeze: [wpe|]}", ["inner.transformer.wpe.weight"], []),
    "output of a loss": (TOP + "train: {loss: {of: |}}", ["logits"], ["input_ids"]),
}


def words(client, case):
    """What is offered, and what a choice makes of the text."""
    text, wanted, unwanted = case
    plan = Plan(client, text.replace("|", ""))
    items = plan.ask("completion", plan.place(text.index("|")))["items"]
    labels = [item["label"] for item in items]
    lines = plan.text.split("\n")
    cursor = plan.place(text.index("|"))
    wrong = [item["label"] for item in items
             if not (item["textEdit"]["range"]["start"]["character"] <= cursor["character"] <= item["textEdit"]["range"]["end"]["character"] <= len(lines[cursor["line"]])
                     and item["textEdit"]["range"]["start"]["line"] == item["textEdit"]["range"]["end"]["line"] == cursor["line"])]
    return joined([expect([word for word in wanted if word not in labels], [], f"missing among {labels[:20]}"),
                   expect([word for word in unwanted if word in labels], [], "offered"), expect(wrong, [], "edits around the cursor")])


def take(client, text, label):
    """The text with what was chosen."""
    plan = Plan(client, text.replace("|", ""))
    items = plan.ask("completion", plan.place(text.index("|")))["items"]
    edit = next(item["textEdit"] for item in items if item["label"] == label)
    lines = plan.text.split("\n")
    start, end = edit["range"]["start"], edit["range"]["end"]
    line = lines[start["line"]]
    lines[start["line"]] = line[:start["character"]] + edit["newText"] + line[end["character"]:]
    return "\n".join(lines)


def choices(client):
    """Words are replaced, keys get a colon, names quotes where YAML needs them."""
    weight = "inner.transformer.h.*.attn.c_attn.weight"
    table = [("me|", "mesh", "mesh: "), ("me|sh: {data: 2}", "mesh", "mesh: {data: 2}"), (MESH + "shard: [{dims: [da|x, _]}]", "data", MESH + "shard: [{dims: [data, _]}]"),
             (TOP + "shard: [{tensor: c_att|}]", weight, TOP + f'shard: [{{tensor: "{weight}"}}]'),
             (TOP + 'shard: [{tensor: "c_att|"}]', weight, TOP + f'shard: [{{tensor: "{weight}"}}]'),
             (TOP + 'shard: [{tensor: "c_att|', weight, TOP + f'shard: [{{tensor: "{weight}')]
    return joined(expect(take(client, text, label), want, text) for text, label, want in table)
