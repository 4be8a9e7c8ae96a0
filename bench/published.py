"""Holds what is found for large models on many devices against the configurations that their papers say, by predicted time.

    published.py BUILD_DIR [--train] [--keep FOLDER] [--fix-table] [NAME...]

A row of ROWS is a model of make_llm.py, a machine, and a published split: tensor x data (x pipeline). Both the published plan and what
`cleave plan` finds are predicted for one call, which takes the batch forward, with kernels formed. A published plan that is
faster by more than half a percent is an error. docs/generated/published-plans.md is the table of a whole run.

Rows without a source of their own say so: GPT-2.6B is Megatron's form for Alpa's smallest model on a node, LLaMA-70B and Mixtral are as
they are served on one node.

What is compared is inference: a call without gradients. With `--train` it is rows of STEPS: a step by adamw, of the published split with its
schedule, microbatches and what it makes again, against what `cleave plan --train` finds; docs/generated/published-steps.md is that table.
What is found must fit into the device. With `--keep` each row's result is written into FOLDER, and one that is there already is taken from it:
a whole run, which takes many minutes, can be stopped. A run of some rows fixes theirs in the table.
"""

import argparse
import dataclasses
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
COLUMNS = 11
DEVICE_BYTES = 80e9  # of an A100 and an H100
DEEPSEEK = "DeepSeek-V3 Technical Report 2024, section 3.4.1 (prefilling; H800 there)"
TRAIN = ("loss: {kind: cross_entropy, of: /lm_head_output_0, labels: {next: ids}}", "optimizer: adamw")
MEGATRON = "Narayanan and others 2021, table 1"
LLAMA = "The Llama 3 Herd of Models 2024, table 4"
PAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "docs", "generated")


@dataclass
class Step:
    """How a published split trains."""

    microbatches: int
    schedules: tuple = ()  # with the stages of a rank each; the faster one counts
    recompute: str = "none"
    zero: int = 0  # over `data`


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
    experts: tuple = ()  # axes that they are split over, where those are not `model` alone
    step: Step = None
    missing: str = "the search or its proof was not done in the time of the last run"  # why there may be no figures

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
    "deepseek-v3": Row("deepseek-v3", 4, "H100", 4, 8, 1, 32, 2048, DEEPSEEK, ("data", "model")),
}


# As few samples go through the stages as there are values for, see above: a replica has fewer microbatches than published.
# Megatron makes blocks again (section 3.5); which of its schedules a row of the table had is not told.
MEGATRON_SCHEDULES = (("1f1b", 1), ("interleaved", 2))
STEPS = {
    "gpt-2.6b": Row("gpt-2.6b", 1, "A100", 2, 4, 1, 64, 1024, ROWS["gpt-2.6b"].source, step=Step(4, recompute="blocks")),
    "gpt-18b": Row("gpt-18b", 32, "A100", 8, 32, 1, 128, 2048, MEGATRON, step=Step(1, recompute="blocks")),
    "gpt-39b": Row("gpt-39b", 64, "A100", 8, 32, 2, 128, 2048, MEGATRON, step=Step(4, MEGATRON_SCHEDULES, "blocks"),
                    missing="of two stages no plan is found that fits into 80 GB (846 GB is the least that is met), as the published one does: a fault of "
                            "the search"),
    "gpt-76b": Row("gpt-76b", 128, "A100", 8, 32, 4, 128, 2048, MEGATRON, step=Step(4, MEGATRON_SCHEDULES, "blocks")),
}


def format_plan(row, schedule=""):
    """Columns, rows, heads, vocabulary and experts over `model`; the batch over `data`. `schedule`: of a step in stages, as a plan says it."""
    mesh = {**({"stage": row.stages} if row.stages > 1 else {}), "data": row.data, "model": row.tensor}
    lines = ["mesh: {" + ", ".join(f"{axis}: {size}" for axis, size in mesh.items()) + "}"]
    if row.stages > 1:
        lines.append(f"pipeline: {{axis: stage, microbatches: {row.step.microbatches if row.step else row.batch // row.data}{schedule}}}")
    lines += ["shard:", "  - {tensor: ids, dims: [data, _]}", '  - {tensor: embed.weight, dims: [model, _]}',
              '  - {tensor: lm_head.weight, dims: [_, model]}',
              '  - {tensor: "layers.*/self_attn/{q_proj,k_proj,v_proj}.weight", dims: [_, model]}',
              '  - {tensor: "layers.*/self_attn/o_proj.weight", dims: [model, _]}']
    if MODELS[row.model].latent:
        lines[-2] = '  - {tensor: "layers.*/self_attn/{q_b_proj,kv_b_proj}.weight", dims: [_, model]}'
    if MODELS[row.model].experts:
        axes = f"[{', '.join(row.experts)}]" if row.experts else "model"
        lines.append(f'  - {{tensor: "layers.*/moe.{{up_proj,gate_proj,down_proj}}.weight", dims: [{axes}, _, _]}}')
    else:
        names = "{up_proj,gate_proj}" if MODELS[row.model].gated else "up_proj"
        lines += [f'  - {{tensor: "layers.*/mlp/{names}.weight", dims: [_, model]}}',
                  '  - {tensor: "layers.*/mlp/down_proj.weight", dims: [model, _]}']
    if row.step:
        lines += ["train:", *(f"  {line}" for line in TRAIN), f"  recompute: {row.step.recompute}"]
        lines += [f"  zero: {{axis: data, stage: {row.step.zero}}}"] if row.step.zero else []
        lines += [f"  microbatches: {row.step.microbatches}"] if row.stages == 1 and row.step.microbatches > 1 else []
    return "\n".join(lines) + "\n"


@dataclass
class Taken:
    ns: float  # of a call
    peak: int
    split: str
    seconds: float = 0  # of a core
    megabytes: int = 0
    gap: float | None = 0  # of the certificates: how far above the least bound of all spaces that were searched, at most; None: nothing is proved


class Refused(SystemExit):
    """A command that ended with an error."""


def run_cleave(build, words, report):
    """What it reports, seconds of a core, and its own peak in MB."""
    command = [os.path.join(build, "bin", "cleave"), *words, "--report", report, "--quiet"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise Refused(f"{' '.join(command)}: exit {child.returncode}: {errors.strip()[-400:]}")
    with open(report) as file:
        return json.load(file), usage.ru_utime, usage.ru_maxrss // 1024


def take(build, model, row, folder):
    """The published plan, decided by time where it says nothing."""
    best, plan = None, os.path.join(folder, "plan.yaml")
    split = f"{row.tensor} x {row.data}" + (f" x {row.stages} stages" if row.stages > 1 else "")
    for name, chunks in (row.step.schedules if row.step else ()) or (("", 1),):
        with open(plan, "w") as file:
            file.write(format_plan(row, f", schedule: {name}" + (f", chunks: {chunks}" if chunks > 1 else "") if name else ""))
        words = ["shard", model, *(["--train"] if row.step else []), "--plan", plan, "--cluster", row.cluster, "--optimize", "time",
                 "--emit", "clustered", "-o", os.devnull]
        told, took, _ = run_cleave(build, words, os.path.join(folder, "taken.json"))
        taken = Taken(told["time"].get("call_ns") or harness.predicted_ns(told), told["peak_bytes_per_rank"],
                      f"{split}, {name}" if name else split, took)
        best = taken if not best or taken.ns < best.ns else best
    return best


def find(build, model, row, folder):
    """The best for as many devices: of one stage, and of as many as are published."""
    best, seconds, megabytes, bound = None, 0, 0, float("inf")
    for stages in sorted({1, row.stages}):
        microbatches = (row.step.microbatches if row.step else row.batch // row.data) if stages > 1 or row.step else 1
        words = ["plan", model, "--devices", str(row.devices), "--cluster", row.cluster, "--stages", str(stages), "--microbatches",
                 str(microbatches), "--axes", "1", "-o", os.path.join(folder, "found.yaml")]
        words += ["--train={" + ", ".join(TRAIN) + "}"] if row.step else []
        proof, report = ["--certificate", os.path.join(folder, "certificate.json")], os.path.join(folder, "found.json")
        try:
            told, took, most = run_cleave(build, words + proof, report)
        except Refused as refused:
            if "nothing is proved of" not in str(refused):
                raise
            told, took, most = run_cleave(build, words, report)
        seconds, megabytes, cell = seconds + took, max(megabytes, most), told["best"]
        bound = min(bound, cell.get("bound", 0))
        if not best or cell["seconds"] * 1e9 < best.ns:
            split = cell["mesh"]
            if row.step:
                split += "".join(f", {cell[key]}" for key in ("schedule", "recompute") if cell.get(key))
            best, own = Taken(cell["seconds"] * 1e9, cell["memory"]["peak"], split), cell.get("solver_seconds")
    best.gap = own / bound - 1 if own and bound else None
    best.seconds, best.megabytes = seconds, megabytes
    return best


def format_gap(found):
    return "-" if found.gap is None else f"{found.gap:.2%}"


def run(build, row):
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.onnx")
        make_llm(row.model, model, row.batch, row.seq)
        published, found = take(build, model, row, folder), find(build, model, row, folder)
    print(f"{row.model}: published {published.ns / 1e6:.1f} ms ({published.split}, {published.peak / 1e9:.1f} GB), "
          f"found {found.ns / 1e6:.1f} ms ({found.split}), gap {format_gap(found)}, "
          f"in {found.seconds:.1f} s, {found.megabytes} MB", flush=True)
    return row, published, found


def run_or_read(build, row, name, folder):
    """A result that a run has left in the folder is taken, if it is of the same row."""
    kept = os.path.join(folder, name + ".json") if folder else ""
    if kept and os.path.exists(kept):
        with open(kept) as file:
            read = json.load(file)
        if read["row"] == json.loads(json.dumps(dataclasses.asdict(row))):
            return row, Taken(**read["published"]), Taken(**read["found"])
    row, published, found = run(build, row)
    if kept:
        os.makedirs(folder, exist_ok=True)
        with open(kept, "w") as file:
            json.dump({"row": dataclasses.asdict(row), "published": dataclasses.asdict(published), "found": dataclasses.asdict(found)}, file)
    return row, published, found


HEAD = """\
<!-- Generated by bench/published.py --fix-table; do not edit. -->

# Plans that are found, against published ones

For: deployers of large models ([how plans are found](../finding-plans.md)).

Predicted milliseconds of a call that takes the batch forward, and the peak of a rank in GB: of the published split (tensor x data
x stages), and of what `cleave plan` finds, with one stage and with as many as are published. A pipeline fills and drains once in a
call. *Gap*: how far what is found is above the [bound](../finding-plans.md#how-far-from-the-best), at most, by the solver's costs; of both
numbers of stages the lower bound counts. Rows with `-` are of a run without proofs. Seconds of the search are those of a core, with the proof.

Published splits are for training, with larger batches and longer sequences, where gradients, microbatches and recomputation count
as well: [published-steps.md](published-steps.md) has steps, [published-training.md](published-training.md) schedules of them.
"""

TRAIN_HEAD = """\
<!-- Generated by bench/published.py --train --fix-table; do not edit. -->

# Plans of steps that are found, against published ones

For: trainers of large models ([plans of steps](../finding-plans.md#plans-of-a-step)).

Predicted milliseconds of a step by adamw, and the peak of a rank in GB: of the published split (tensor x data x stages) with its schedule
and with what it makes again, and of what `cleave plan --train` finds, with one stage and with as many as are published. *Gap*: how far
what is found is above the [bound](../finding-plans.md#how-far-from-the-best), at most, by the solver's costs; `-` where nothing is proved,
for a rule of the plan makes another program. Seconds of the search are those of a core, with the proof where there is one.

Batches are less than published, so that no value has more than 2^40 elements: pipelines have fewer microbatches, and wait for more of a
step. Published splits that make blocks again do so here; which of its schedules a row of Megatron's table had is not told, and the
faster of `1f1b` and `interleaved`, of two stages a rank, counts.

No rows: larger models of that table, which were not tried; LLaMA-405B, whose batch of sequences of 8,192 has values of more than 2^40
elements; DeepSeek-V3, whose experts here take their tokens from all of a batch, which microbatches would change.
"""


def format_row(row, published, found):
    return (f"| {row.model}, {row.batch} x {row.seq} | {row.cluster} | {published.split} | {published.ns / 1e6:.1f} "
            f"| {published.peak / 1e9:.1f} | {found.split} | {found.ns / 1e6:.1f} | {found.peak / 1e9:.1f} | {format_gap(found)} "
            f"| {found.seconds:.1f} | {row.source} |")


def read_lines(page):
    """Lines of an earlier run by what they are of, of any columns."""
    with open(page) as file:
        cells = [line.strip().strip("|").split(" | ") for line in file if line.startswith("| ")]
    return {tuple(cell.strip() for cell in one[:2]): one for one in cells if one[0].strip() != "model, batch"}


def format_table(rows, results, page, head):
    """Rows that were not run keep what an earlier run said of them; the rest is named."""
    known = read_lines(page) if os.path.exists(page) else {}
    run = {id(row): format_row(row, published, found) for row, published, found in results}
    lines, missing = [], []
    for row in rows:
        kept = known.get((f"{row.model}, {row.batch} x {row.seq}", row.cluster))
        if id(row) in run:
            lines.append(run[id(row)])
        elif kept:
            cells = [cell.strip() for cell in kept]
            lines.append("| " + " | ".join(cells if len(cells) == COLUMNS else [*cells[:-2], "-", *cells[-2:]]) + " |")
        else:
            missing.append(f"* {row.model} on {row.cluster}: {row.missing}.")
    lines = [head, "| model, batch | machine | published | ms | GB | found | ms | GB | gap | search s | source |", "|" + "---|" * COLUMNS, *lines]
    if missing:
        lines += ["", "Rows without figures yet:", "", *missing]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--keep", default="", metavar="FOLDER")
    parser.add_argument("--fix-table", action="store_true")
    options = parser.parse_intermixed_args()
    rows = STEPS if options.train else ROWS
    names = options.names or list(rows)
    results = [run_or_read(options.build, rows[name], name, options.keep) for name in names]
    wrong = [f"{row.model}: the published plan is faster" for row, published, found in results if published.ns * SLACK < found.ns]
    wrong += [f"{row.model}: what is found does not fit" for row, _, found in results if found.peak > DEVICE_BYTES]
    for line in wrong:
        print(line)
    if options.fix_table:
        page = os.path.join(PAGES, "published-steps.md" if options.train else "published-plans.md")
        text = format_table(rows.values(), results, page, TRAIN_HEAD if options.train else HEAD)
        with open(page, "w") as file:
            file.write(text)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
