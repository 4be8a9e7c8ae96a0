"""Holds what is found for large models on many devices against the configurations that their papers say, by predicted time.

    published.py BUILD_DIR [--fix-table] [NAME...]

A row of ROWS is a model of make_llm.py, a machine, and a published split: tensor x data (x pipeline). Both the published plan and what
`cleave plan` finds are predicted for one call, which takes the batch forward, with kernels formed. A published plan that is
faster by more than half a percent is an error. docs/generated/published-plans.md is the table of a whole run.

Rows without a source of their own say so: GPT-2.6B is Megatron's form for Alpa's smallest model on a node, LLaMA-70B and Mixtral are as
they are served on one node.

What is compared is inference: a call without gradients. Steps of training, where microbatches and recomputation decide, are not compared here:
published_training.py has schedules of some, and `cleave plan --train` finds plans of steps.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from make_llm import MODELS, make_llm

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "test"))
import harness

SLACK = 1.005
MEGATRON = "Narayanan and others 2021, table 1"
LLAMA = "The Llama 3 Herd of Models 2024, table 4"
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "docs", "generated", "published-plans.md")


@dataclass
class Row:
    model: str
    nodes: int  # of 8 devices
    device: str
    tensor: int
    data: int
    stages: int
    batch: int  # samples of a call
    seq: int
    source: str

    @property
    def devices(self):
        return self.tensor * self.data * self.stages

    @property
    def cluster(self):
        link = "nvlink" if self.nodes == 1 else "ib"
        return f"{f'{self.nodes}x' if self.nodes > 1 else ''}8x{self.device}-{link}"


# Batches and sequences are less than those of training: no value may have more than 2^40 elements, and scores have most.
ROWS = {
    "gpt-2.6b": Row("gpt-2.6b", 1, "A100", 2, 4, 1, 32, 1024, "Megatron's form; the model is that of Zheng and others 2022 (Alpa)"),
    "gpt-18b": Row("gpt-18b", 32, "A100", 8, 32, 1, 128, 2048, MEGATRON),
    "gpt-39b": Row("gpt-39b", 64, "A100", 8, 32, 2, 128, 2048, MEGATRON),
    "gpt-76b": Row("gpt-76b", 128, "A100", 8, 32, 4, 128, 2048, MEGATRON),
    "gpt-145b": Row("gpt-145b", 192, "A100", 8, 24, 8, 192, 2048, MEGATRON),
    "gpt-310b": Row("gpt-310b", 240, "A100", 8, 15, 16, 240, 2048, MEGATRON),
    "gpt-1t": Row("gpt-1t", 384, "A100", 8, 6, 64, 384, 2048, MEGATRON),
    "llama-70b": Row("llama-70b", 1, "H100", 8, 1, 1, 1, 2048, "one replica on a node, as it is served"),
    "llama-405b-8k": Row("llama-405b", 1024, "H100", 8, 64, 16, 1024, 2048, LLAMA),
    "llama-405b-16k": Row("llama-405b", 2048, "H100", 8, 128, 16, 1024, 2048, LLAMA),
    "mixtral-8x7b": Row("mixtral-8x7b", 1, "H100", 8, 1, 1, 4, 4096, "an expert a device, as it is served; the model is that of Jiang and others 2024"),
}


def format_plan(row):
    """Columns, rows, heads, vocabulary and experts over `model`; the batch over `data`."""
    mesh = {**({"stage": row.stages} if row.stages > 1 else {}), "data": row.data, "model": row.tensor}
    lines = ["mesh: {" + ", ".join(f"{axis}: {size}" for axis, size in mesh.items()) + "}"]
    if row.stages > 1:
        lines.append(f"pipeline: {{axis: stage, microbatches: {row.batch // row.data}}}")
    lines += ["shard:", "  - {tensor: ids, dims: [data, _]}", '  - {tensor: embed.weight, dims: [model, _]}',
              '  - {tensor: lm_head.weight, dims: [_, model]}',
              '  - {tensor: "layers.*/self_attn/{q_proj,k_proj,v_proj}.weight", dims: [_, model]}',
              '  - {tensor: "layers.*/self_attn/o_proj.weight", dims: [model, _]}']
    if MODELS[row.model].experts:
        lines.append('  - {tensor: "layers.*/moe.{up_proj,gate_proj,down_proj}.weight", dims: [model, _, _]}')
    else:
        names = "{up_proj,gate_proj}" if MODELS[row.model].gated else "up_proj"
        lines += [f'  - {{tensor: "layers.*/mlp/{names}.weight", dims: [_, model]}}',
                  '  - {tensor: "layers.*/mlp/down_proj.weight", dims: [model, _]}']
    return "\n".join(lines) + "\n"


@dataclass
class Taken:
    ns: float  # of a call
    peak: int
    split: str
    seconds: float = 0  # of a core
    megabytes: int = 0


def run_cleave(build, words, report):
    """What it reports, seconds of a core, and its own peak in MB."""
    command = [os.path.join(build, "bin", "cleave"), *words, "--report", report, "--quiet"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)}: exit {child.returncode}: {errors.strip()[-400:]}")
    with open(report) as file:
        return json.load(file), usage.ru_utime, usage.ru_maxrss // 1024


def take(build, model, plan, row, folder):
    """The published plan, decided by time where it says nothing."""
    words = ["shard", model, "--plan", plan, "--cluster", row.cluster, "--optimize", "time", "--emit", "clustered", "-o", os.devnull]
    told, _, _ = run_cleave(build, words, os.path.join(folder, "taken.json"))
    split = f"{row.tensor} x {row.data}" + (f" x {row.stages} stages" if row.stages > 1 else "")
    return Taken(told["time"].get("call_ns") or harness.predicted_ns(told), told["peak_bytes_per_rank"], split)


def find(build, model, row, folder):
    """The best for as many devices: of one stage, and of as many as are published."""
    best, seconds, megabytes = None, 0, 0
    for stages in sorted({1, row.stages}):
        microbatches = row.batch // row.data if stages > 1 else 1
        words = ["plan", model, "--devices", str(row.devices), "--cluster", row.cluster, "--stages", str(stages), "--microbatches",
                 str(microbatches), "--axes", "1", "-o", os.path.join(folder, "found.yaml")]
        told, took, most = run_cleave(build, words, os.path.join(folder, "found.json"))
        seconds, megabytes, cell = seconds + took, max(megabytes, most), told["best"]
        if not best or cell["seconds"] * 1e9 < best.ns:
            mesh = told["cells"][0]["mesh"] if isinstance(told["cells"][0]["mesh"], str) else ""
            best = Taken(cell["seconds"] * 1e9, cell["memory"]["peak"], mesh)
    best.seconds, best.megabytes = seconds, megabytes
    return best


def run(build, name):
    row = ROWS[name]
    with tempfile.TemporaryDirectory() as folder:
        model, plan = os.path.join(folder, "model.onnx"), os.path.join(folder, "plan.yaml")
        make_llm(row.model, model, row.batch, row.seq)
        with open(plan, "w") as file:
            file.write(format_plan(row))
        published, found = take(build, model, plan, row, folder), find(build, model, row, folder)
    print(f"{name}: published {published.ns / 1e6:.1f} ms, found {found.ns / 1e6:.1f} ms ({found.split}) in {found.seconds:.1f} s, "
          f"{found.megabytes} MB", flush=True)
    return row, published, found


def format_table(results):
    lines = ["<!-- Generated by bench/published.py --fix-table; do not edit. -->", "", "# Plans that are found, against published ones", "",
             "For: deployers of large models ([how plans are found](../finding-plans.md)).", "",
             "Predicted milliseconds of a call that takes the batch forward, and the peak of a rank in GB: of the published split (tensor x data",
             "x stages), and of what `cleave plan` finds, with one stage and with as many as are published. A pipeline fills and drains once in a",
             "call. Seconds of the search are those of a core.", "",
             "Published splits are for training, with larger batches and longer sequences, where gradients, microbatches and recomputation count",
             "as well: [published-training.md](published-training.md) has schedules of steps, and [plans of steps](../finding-plans.md#plans-of-a-step)",
             "are found, but are not in this table.", "",
             "| model, batch | machine | published | ms | GB | found | ms | GB | search s | source |", "|---|---|---|---|---|---|---|---|---|---|"]
    for row, published, found in results:
        lines.append(f"| {row.model}, {row.batch} x {row.seq} | {row.cluster} | {published.split} | {published.ns / 1e6:.1f} "
                     f"| {published.peak / 1e9:.1f} | {found.split} | {found.ns / 1e6:.1f} | {found.peak / 1e9:.1f} | {found.seconds:.1f} "
                     f"| {row.source} |")
    return "\n".join(lines) + "\n"


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    build, names = words[0], words[1:] or list(ROWS)
    results = [run(build, name) for name in names]
    better = [row.model for row, published, found in results if published.ns * SLACK < found.ns]
    for model in better:
        print(f"{model}: the published plan is faster")
    if "--fix-table" in sys.argv and len(names) == len(ROWS):
        with open(PAGE, "w") as file:
            file.write(format_table(results))
    return bool(better)


if __name__ == "__main__":
    sys.exit(main())
