"""Holds predicted steps of training in stages against measured ones of papers: ratios of throughput between schedules, and peaks.

    published_training.py BUILD_DIR [--fix-table] [NAME...]

A row of SETUPS is a model of make_llm.py, a machine, a split, and what was measured with each schedule. Each schedule is laid out for that model
as `cleave schedule MODEL --train` does, with the times of the cluster's tables; its peak is that of the ranks' programs, as `cleave shard --emit
planned` reports it: states are updated in their places. Nothing is fitted to what was measured. docs/generated/published-training.md is the
table of a whole run, with what explains the differences.
"""

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass, field

from make_llm import MODELS, make_llm
from published import run_cleave

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "docs", "generated", "published-training.md")
GB = 1e9


@dataclass
class Setup:
    model: str
    cluster: str
    mesh: dict
    batch: int  # samples of a microbatch, of one replica
    seq: int
    microbatches: tuple
    source: str
    # Schedule as published: as it is called here, stages of a rank, samples or tokens per second, GB (None: not told).
    schedules: dict
    unit: str
    more: list = field(default_factory=list)  # lines of `train`
    recompute: str = "none"
    # Without it the step is split, and its table predicted, but no programs of ranks are planned, which takes twice as long: no peak is told.
    is_planned: bool = True

    @property
    def data(self):
        return self.mesh.get("data", 1)


SETUPS = {
    "gpt-6.2b": Setup(
        "gpt-6.2b", "8xA100-nvlink", {"stage": 8}, 3, 1024, (24, 32, 64), "Qi and others 2024 (Zero Bubble), 6.2B on 8 A100",
        {"1F1B": ("1f1b", 1, 55, 48), "1F1B-I": ("interleaved", 4, 66, 57), "ZB-2p": ("zb-h2", 1, 67, 79), "ZB-V": ("zb-v", 2, 64, 53)}, "samples/s"),
    "llama-405b": Setup(
        "llama-405b", "64x8xH100-ib", {"data": 8, "model": 8, "stage": 8}, 1, 8192, (8, 16),
        "torchtitan, docs/performance.md: 405B on 512 H100, FSDP 8, TP 8, PP 8, float8",
        {"1F1B": ("1f1b", 1, 100, None), "interleaved": ("interleaved", 2, 128, None)}, "tokens/s of a GPU",
        ["zero: {axis: data, stage: 2}"], "blocks", is_planned=False),
}


def format_plan(setup, schedule, chunks, microbatches):
    """Megatron's split of a layer over `model`, the batch over `data`; adamw."""
    lines = ["mesh: {" + ", ".join(f"{axis}: {size}" for axis, size in setup.mesh.items()) + "}", f"cluster: {setup.cluster}", "shard:",
             f"  - {{tensor: ids, dims: [{'data' if setup.data > 1 else '_'}, _]}}"]
    if "model" in setup.mesh:
        names = "{up_proj,gate_proj}" if MODELS[setup.model].gated else "up_proj"
        lines += ["  - {tensor: embed.weight, dims: [model, _]}", "  - {tensor: lm_head.weight, dims: [_, model]}",
                  '  - {tensor: "layers.*/self_attn/{q_proj,k_proj,v_proj}.weight", dims: [_, model]}',
                  '  - {tensor: "layers.*/self_attn/o_proj.weight", dims: [model, _]}',
                  f'  - {{tensor: "layers.*/mlp/{names}.weight", dims: [_, model]}}', '  - {tensor: "layers.*/mlp/down_proj.weight", dims: [model, _]}']
    lines += [f"pipeline: {{axis: stage, microbatches: {microbatches}, schedule: {schedule}{f', chunks: {chunks}' if chunks > 1 else ''}}}", "train:",
              "  loss: {kind: cross_entropy, of: /lm_head_output_0, labels: {next: ids}}", "  optimizer: adamw", f"  recompute: {setup.recompute}",
              *(f"  {line}" for line in setup.more)]
    return "\n".join(lines) + "\n"


@dataclass
class Predicted:
    seconds: float  # of the microbatches of a step
    bubble: float  # of all ranks' time, waiting
    peak: int  # of the busiest rank, bytes


def predict(build, setup, schedule, chunks, microbatches, folder):
    model, plan = os.path.join(folder, f"{microbatches}.onnx"), os.path.join(folder, "plan.yaml")
    if not os.path.exists(model):
        make_llm(setup.model, model, setup.batch * setup.data * microbatches, setup.seq)
    with open(plan, "w") as file:
        file.write(format_plan(setup, schedule, chunks, microbatches))
    table, *_ = run_cleave(build, ["schedule", model, "--train", "--plan", plan], os.path.join(folder, "table.json"))
    if not setup.is_planned:
        return Predicted(table["makespan"] / 1e9, table["bubble"]["makespan"], 0)
    step, *_ = run_cleave(build, ["shard", model, "--train", "--plan", plan, "--emit", "planned", "-o", os.devnull], os.path.join(folder, "step.json"))
    own = step["pipeline"]["schedule"]["makespan_ns"]
    if abs(own - table["makespan"]) > 1e-6 * own:
        sys.exit(f"{schedule}: the table takes {table['makespan']} ns, the step {own}")
    return Predicted(own / 1e9, table["bubble"]["makespan"], step["peak_bytes_per_rank"])


def run(build, name):
    """By microbatches and schedule."""
    setup, found = SETUPS[name], {}
    for microbatches in setup.microbatches:
        with tempfile.TemporaryDirectory() as folder:
            for title, (schedule, chunks, _, _) in setup.schedules.items():
                found[microbatches, title] = one = predict(build, setup, schedule, chunks, microbatches, folder)
                print(f"{name}, {microbatches} microbatches, {title}: {one.seconds:.3f} s, bubble {one.bubble:.1%}, {one.peak / GB:.1f} GB", flush=True)
    return setup, found


HEAD = """\
<!-- Generated by bench/published_training.py --fix-table; do not edit. -->

# Schedules of training, predicted and as published

For: who wants to know how far predictions of pipelines can be trusted ([pipelines](../pipelines.md)).

Throughput by that of 1F1B, as measured and as `cleave schedule MODEL --train` predicts it from tables of the machine, for several numbers
of microbatches, of which sources do not always tell theirs. *Bubble* is the share of all ranks' time without work. GB are of the rank
that takes most. Nothing is fitted.
"""

TAIL = """\
## What explains the differences

* **Throughput as a ratio** depends on the bubble, and that on how many microbatches there are for each rank: with few of them schedules
  differ more. Of 6.2B the predictions for 24 microbatches are within 4 % of what was measured, those for 64 are not: with how many
  it was measured the summary of the source does not say. Of 405B the published ratio lies between those for 8 and 16.
* **ZB-2p** is a search under twice 1F1B's memory; predicted is `zb-h2`, which holds one microbatch less. The stage with the head takes
  longer than the others, and what the others wait for it no order of one stage a rank fills.
* **ZB-V** has no bubble where F, I and W take equally long. As modeled they do not, nor did they when measured (29.8, 29.4 and 19.5 ms).
* **Seconds**: a microbatch takes a rank 92 ms as modeled, and took 79 ms: products run at 70 % of a data sheet's rate here.
* **GB** are about half of what was measured, in nearly the same order (1F1B-I is nearer to 1F1B than measured, ZB-V ties with it). Measured
  is what an allocator had reserved; predicted is what the ranks' programs have planned, with parameters in bf16 and attention in one
  kernel, which keeps no weights of attention. A further microbatch in flight costs 1.8 GB as planned, and cost 4 as measured.
* **405B** is split as a model, as a step of 126 layers that makes its blocks again; programs of its ranks are not planned for this table,
  and more than 16 microbatches make values that are too large to import in one batch. It was trained with float8 products and messages
  that overlap, of which the prediction knows nothing.
"""


def format_table(results):
    lines = [HEAD]
    for setup, found in results:
        lines += [f"## {setup.model}, {' x '.join(f'{axis} {size}' for axis, size in setup.mesh.items())} on {setup.cluster}", "",
                  f"{setup.source}.\nMicrobatches of {setup.batch} x {setup.seq} for each replica; recomputation: {setup.recompute}.", "",
                  f"| schedule | measured, {setup.unit} | of 1F1B | " + " | ".join(f"predicted, {count}" for count in setup.microbatches) +
                  " | bubble | measured GB | predicted GB |", "|" + "---|" * (6 + len(setup.microbatches))]
        base = next(iter(setup.schedules.values()))[2]
        for title, (schedule, chunks, measured, gigabytes) in setup.schedules.items():
            each = [found[count, title] for count in setup.microbatches]
            ratios = [found[count, next(iter(setup.schedules))].seconds / one.seconds for count, one in zip(setup.microbatches, each)]
            lines.append(f"| {title} (`{schedule}`{f', {chunks} stages a rank' if chunks > 1 else ''}) | {measured} | {measured / base:.2f} | " +
                         " | ".join(f"{ratio:.2f}" for ratio in ratios) + " | " + ", ".join(f"{one.bubble:.0%}" for one in each) +
                         f" | {gigabytes or '-'} | " + (", ".join(f"{one.peak / GB:.0f}" for one in each) if setup.is_planned else "-") + " |")
        lines.append("")
    return "\n".join(lines) + "\n" + TAIL


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--fix-table", action="store_true")
    options = parser.parse_args()
    names = options.names or list(SETUPS)
    text = format_table([run(options.build, name) for name in names])
    print(text)
    if options.fix_table and len(names) == len(SETUPS):
        with open(PAGE, "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
