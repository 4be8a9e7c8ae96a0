"""What weights are to a model, `cleave plan --roles`: a table of all fixtures, confirmed by names, and the same with all names scrambled.

Usage: roles.py BUILD_DIR [--fix-table] [NAME...]

Roles are found by structure. Where a weight, or the node that reads it, has a name that says what it is (HINTS), that is its role. Then every
node, tensor and weight of the model gets a number drawn at random for a name, and each weight must be what it was.

docs/generated/roles.md is the table of a whole run.
"""
import json
import os
import random
import re
import sys
import tempfile

import onnx

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

MODELS = os.path.dirname(os.path.abspath(__file__))
# Model -> sizes of its dims.
CASES = {
    "bert_dyn18": "", "bert_ts17": "batch=2,seq=16", "gpt2_dyn18": "batch=2,seq=16", "gpt2_ts17": "batch=2,seq=16",
    "llama_gqa_dyn18": "batch=2,seq=16", "llama_gqa_dyn23": "batch=2,seq=16", "moe_dyn18": "", "resnet_ts17": "batch=2", "t5_like_dyn18": "",
    "unet_dyn18": "", "vit_dyn18": "batch=2", "Parallel/moe_groups": "", "Parallel/swin": "", "Parallel/vit197": "", "Torch/mixtral": "batch=4,seq=12",
}
# What a name says, the first that matches; of nodes that read a weight, too.
HINTS = [
    (r"c_attn\.weight|attn/qkv|attn\.qkv\.weight", "query, key, value"),
    (r"attn\.c_proj\.weight|attention/output/(dense/)?MatMul|attention/o_proj", "attention output"),
    (r"(query|q_proj)(\.weight$|/MatMul)", "query"), (r"(key|k_proj)(\.weight$|/MatMul)", "key"), (r"(value|v_proj)(\.weight$|/MatMul)", "value"),
    (r"mlp\.c_proj\.weight|mlp/down(\.weight$|/MatMul)|layer\.\d/output/dense/MatMul|mlp\.fc2\.weight", "down"),
    (r"c_fc\.weight|mlp/up(\.weight$|/MatMul)|intermediate/dense/MatMul|mlp\.fc1\.weight", "up"),
    (r"moe\.w1|^/up\.weight", "expert up"), (r"moe\.w2|^/down\.weight", "expert down"),
    (r"moe\.gate\.weight|^/gate\.weight|mlp\.gate\.weight$", "router"),
    (r"wpe\.weight|position_embeddings|/positions$", "position table"),
    (r"word_embeddings|token_type_embeddings|wte\.weight|^embed\.weight|embed_tokens", "embedding"), (r"classifier\.weight", "head"),
    (r"(LayerNorm|ln_\w+|norm\w*|layernorm\w*|layer_norm)\.(weight|bias)$", "norm"),
    (r"(query|key|value|dense|c_attn|c_proj|c_fc|[qkvo]_proj|fc[12]|qkv|out|up|down)\.bias$", "bias"),
]


def find_hint(texts):
    return next((role for pattern, role in HINTS if any(re.search(pattern, text) for text in texts)), None)


def scramble(model):
    """Gives everything another name; returns {old: new} of initializers."""
    graph, names = model.graph, {}
    pool = random.Random(7)

    def rename(name):
        return names.setdefault(name, f"t{pool.randrange(10 ** 9)}") if name else ""

    def walk(graph):
        for value in [*graph.input, *graph.output, *graph.value_info, *graph.initializer]:
            value.name = rename(value.name)
        for node in graph.node:
            node.name = f"n{pool.randrange(10 ** 9)}"
            node.metadata_props.clear()
            node.input[:], node.output[:] = map(rename, node.input), map(rename, node.output)
            for attribute in node.attribute:
                for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                    walk(body)

    walk(graph)
    return names


def ask(build, model, dims, folder):
    """[(weight, role, block)]."""
    report = os.path.join(folder, "roles.json")
    words = ["--dim", dims] if dims else []
    done = harness.cleave(build, "plan", model, *words, "--roles", "--report", report)
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()[-300:]}")
    with open(report) as file:
        return [(role["weight"], role["role"], role["block"], role["shape"]) for role in json.load(file)["roles"]]


def run(build, name):
    """(what is wrong or an empty string, row of the table)."""
    path = os.path.join(MODELS, name + ".onnx")
    model = onnx.load(path)
    readers = {}
    for node in model.graph.node:
        for operand in node.input:
            readers.setdefault(operand, []).append(node.name)
    with tempfile.TemporaryDirectory() as folder:
        try:
            roles = ask(build, path, CASES[name], folder)
            names, scrambled = scramble(model), os.path.join(folder, "scrambled.onnx")
            onnx.save(model, scrambled)
            again = ask(build, scrambled, CASES[name], folder)
        except RuntimeError as error:
            return str(error), None
    if [(names[weight], *rest) for weight, *rest in roles] != [tuple(role) for role in again]:
        other = next((weight, rest, back) for (weight, *rest), back in zip(roles, again) if (names[weight], *rest) != back)
        return f"with names scrambled {other[0]} is {other[2][1:]}, and was {other[1]}", None
    wrong, confirmed = [], 0
    for weight, role, *_ in roles:
        hint = find_hint([weight, *readers.get(weight, [])])
        confirmed += hint == role
        if hint and hint != role:
            wrong.append(f"{weight} is {role}, by name {hint}")
    if wrong:
        return "; ".join(wrong), None
    return "", (name, roles, confirmed)


def format_table(rows):
    lines = ["<!-- Generated by test/Models/roles.py --fix-table; do not edit. -->", "", "# Roles of weights", "",
             "For: deployers who ask what `cleave plan --roles` tells ([how roles are found](../finding-plans.md#roles)).", "",
             "Of each model how many weights have a role, without norms and biases, and how many layers there are. Confirmed are roles that a name",
             "says as well, of all weights.", "", "| model | roles | layers | weights | confirmed by name |", "|---|---|---|---|---|"]
    for name, roles, confirmed in rows:
        counts = {}
        for _, role, *_ in roles:
            if role not in ("norm", "bias"):
                counts[role] = counts.get(role, 0) + 1
        text = "; ".join(f"{count} {role}" for role, count in counts.items())
        lines.append(f"| {name} | {text} | {max(block for _, _, block, _ in roles)} | {len(roles)} | {confirmed} |")
    return "\n".join(lines) + "\n"


def main():
    build, names, flags = harness.arguments("--fix-table")
    chosen = harness.select({name: name for name in CASES}, names)
    results = harness.each(lambda name: run(build, name), chosen)
    failed = harness.tell_failures(chosen, (text for text, _ in results))
    rows = [row for _, row in results if row]
    if len(chosen) == len(CASES):
        failed += harness.check_generated("roles.md", format_table(rows), "--fix-table" in flags)
    return harness.close(len(chosen), failed)


if __name__ == "__main__":
    sys.exit(main())
