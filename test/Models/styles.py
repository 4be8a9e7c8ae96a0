"""Plans of a style, `cleave plan --like`, against those of examples/parallel, which people wrote in it.

Usage: styles.py BUILD_DIR [--fix-table] [NAME...]

A case is a plan by hand: its model, its number of ranks, its sizes. The plan of the style, which knows no names,

  * sends no more bytes than the plan by hand, both decided as any command does, but for the cases of MORE, which say why;
  * splits at least as much of the compute, and
  * computes what one device does (`run --check`: the evaluator, and of every fourth case a program and an emulated device, too).

What `cleave plan` says of it is what `cleave shard` reports of the file. docs/generated/styles.md is the table of a whole run.
"""
import json
import os
import sys
import tempfile

import yaml

sys.path.insert(1, os.path.dirname(sys.path[0]))
sys.path.insert(2, os.path.join(sys.path[0], "Parallel"))
import harness
from cases import CASES

MODELS = os.path.dirname(os.path.abspath(__file__))
PLANS = os.path.join(harness.ROOT, "examples", "parallel")
LOWERINGS = ([], ["--executor", "program"], [], ["--device", "cuda-emulated"])
# By the end of a plan's name.
STYLES = {"data": "data", "fsdp": "fsdp", "megatron": "megatron", "sequence": "sequence", "context": "context", "expert": "expert",
          "spatial": "spatial", "pictures": "spatial"}
# What is sent of what the plan by hand sends, at most, and why it is more.
VOCABULARY = "the vocabulary is split as well"
STORED = "embeddings, heads and poolers are stored in parts as well"
HEAD = "the head, and what merges patches, is split as well"
MORE = {
    "bert-megatron": (1.25, VOCABULARY), "bert-megatron-sequence": (1.13, VOCABULARY), "vit-megatron": (1.001, HEAD),
    "swin-megatron": (1.06, HEAD), "bert-fsdp": (1.15, STORED), "gpt2-fsdp": (1.25, STORED), "llama-fsdp": (1.13, STORED),
    "t5-fsdp": (1.01, STORED), "vit-fsdp": (1.07, STORED), "swin-fsdp": (1.1, STORED), "resnet-fsdp": (1.01, STORED),
}
# Styles that are refused, and the words.
ODD = "197 tokens on 4 ranks: 197 would divide"
REFUSED = {"vit-context": ODD, "vit-megatron-sequence": ODD}


class Failed(Exception):
    pass


def cleave(build, *words):
    done = harness.cleave(build, *words)
    if done.returncode:
        raise Failed(f"{' '.join(words[:5])}: exit {done.returncode}: {(done.stderr + done.stdout).strip()[-400:]}")
    return done


def count(build, model, plan, folder):
    """(bytes sent, peak, share of the compute that a rank does) of a plan."""
    report = os.path.join(folder, "taken.json")
    cleave(build, "shard", model, "--plan", plan, "--emit", "clustered", "--report", report, "-o", os.path.join(folder, "taken.mlir"), "--quiet")
    with open(report) as file:
        told = json.load(file)
    sent = sum(total["wire_bytes_per_rank"] for total in told["totals"].values())
    return sent, told["peak_bytes_per_rank"], told["flops"]["per_rank"] / max(told["flops"]["total"], 1)


def run(build, number, name):
    """(what is wrong or an empty string, row of the table)."""
    style, by_hand = STYLES[name.rsplit("-", 1)[1]], os.path.join(PLANS, name + ".yaml")
    model = os.path.join(MODELS, CASES[name].model + ".onnx")
    with open(by_hand) as file:
        text = yaml.safe_load(file)
    styles = style if len(text["mesh"]) == 1 else "data," + style
    mesh = ",".join(f"{axis}={size}" for axis, size in text["mesh"].items())
    words = ["--like", styles, "--mesh", mesh]
    if text.get("dims"):
        words += ["--dim", ",".join(f"{dim}={size}" for dim, size in text["dims"].items())]
    with tempfile.TemporaryDirectory() as folder:
        report, plan = os.path.join(folder, "like.json"), os.path.join(folder, "like.yaml")
        try:
            if name in REFUSED:
                done = harness.cleave(build, "plan", model, *words)
                refused = done.returncode == 2 and REFUSED[name] in done.stderr
                return "" if refused else f"exit {done.returncode}: {done.stderr.strip()[-300:]}", None
            cleave(build, "plan", model, *words, "-o", plan, "--report", report, "--quiet")
            hand, like = count(build, model, by_hand, folder), count(build, model, plan, folder)
            with open(report) as file:
                best = json.load(file)["best"]
            if (best["wire_bytes_per_rank"], best["memory"]["peak"]) != like[:2]:
                return f"is said to send {best['wire_bytes_per_rank']}, and sends {like[0]}", None
            most, why = MORE.get(name, (1, ""))
            if like[0] > hand[0] * most:
                return f"sends {like[0]} bytes where the plan by hand sends {hand[0]}", None
            if like[2] > hand[2] * 1.001:
                return f"a rank computes {like[2]:.3f} of the model, by hand {hand[2]:.3f}", None
            cleave(build, "run", model, "--plan", plan, "--check", "--quiet", *LOWERINGS[number % len(LOWERINGS)])
        except Failed as error:
            return str(error), None
        with open(plan) as file:
            rules = len(yaml.safe_load(file)["shard"])
    return "", (name, styles, mesh, hand, like, rules, why)


def format_table(rows):
    lines = ["<!-- Generated by test/Models/styles.py --fix-table; do not edit. -->", "", "# Plans by style, against plans by hand", "",
             "For: deployers who choose a style ([how it is found](../finding-plans.md#styles)).", "",
             "Bytes that a rank sends and its peak in kB: of the plan of `examples/parallel`, and of `cleave plan --like` on the same mesh, which",
             "reads no names.", "", "| plan by hand | `--like` | mesh | by hand | | by style | | rules | |", "|---|---|---|---|---|---|---|---|---|"]
    for name, style, mesh, hand, like, rules, why in rows:
        lines.append(f"| {name} | {style} | {mesh} | {hand[0]} | {hand[1] / 1000:.1f} | {like[0]} | {like[1] / 1000:.1f} | {rules} | {why} |")
    return "\n".join(lines) + "\n"


def main():
    build, names, flags = harness.arguments("--fix-table")
    cases = [name for name in CASES if name.rsplit("-", 1)[1] in STYLES]
    chosen = harness.select({name: (number, name) for number, name in enumerate(cases)}, names)
    results = harness.each(lambda case: run(build, *case), chosen.values())
    failed = harness.tell_failures(chosen, (text for text, _ in results))
    rows = [row for _, row in results if row]
    print(f"{len(rows)} plans by hand compared: {sum(like[0] < hand[0] for _, _, _, hand, like, _, _ in rows)} styles send less")
    if len(chosen) == len(cases):
        failed += harness.check_generated("styles.md", format_table(rows), "--fix-table" in flags)
    return harness.close(len(chosen), failed)


if __name__ == "__main__":
    sys.exit(main())
