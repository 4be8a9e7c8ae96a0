"""Measures `cleave shard` on models of growing depth and prints a table.

    scale.py BUILD_DIR [--kind gpt|skips|experts|irregular] [--layers 12 94 188 375 750 1500 3000] [--repeat 5]

Kinds but `gpt` are those of make_wide.py, where a layer is a pair of blocks, a layer of experts, or a layer.

All sizes are run in turn, `--repeat` times over, one process at a time, and the least figure of each phase counts: on a
shared machine everything else is noise. Per size: seconds of each phase (from the report), the whole process with import, report and
printing, microseconds per ONNX node for the four phases that decide and rewrite (propagate, insert reshards, partition,
optimize collectives), peak memory, and the all_reduces per layer. `per doubling` is the ratio to the size before, as if
that were half as large: 2 is linear. It is taken within each round, where the two runs follow each other, and the median
of the rounds counts: a shared machine is faster in one minute than in the next.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import make_wide
from make_gpt import NODES_PER_LAYER

DECIDING = ("propagate", "insert_reshards", "partition", "optimize_collectives")
AIMS = {"seconds for 100,000 nodes": 2.0, "per doubling": 2.2, "kB per node": 3.5}


def make_models(folder, kind, sizes):
    """Paths of models and plans, and the number of nodes, by number of layers. Made by processes of their own: a child's peak
    memory starts at what its parent has."""
    here = os.path.dirname(os.path.abspath(__file__))
    models, nodes = {}, {}
    for layers in sizes:
        stem = os.path.join(folder, f"{kind}{layers}")
        models[layers] = (stem + ".onnx", stem + ".yaml")
        command = ["make_gpt.py", models[layers][0], "--layers"] if kind == "gpt" else \
            ["make_wide.py", kind, models[layers][0], "--size"]
        made = subprocess.run([sys.executable, os.path.join(here, command[0]), *command[1:], str(layers)], check=True,
                              capture_output=True, text=True)
        nodes[layers] = layers * NODES_PER_LAYER if kind == "gpt" else int(made.stdout.split()[0])
    return models, nodes


def shard_once(cleave, model, plan, folder):
    """Seconds by phase, with `total` for the process and `cpu` for its processor time; kB at the peak; the report; bytes
    written."""
    report, output = os.path.join(folder, "report.json"), os.path.join(folder, "out.mlir")
    command = [cleave, "shard", model, "--plan", plan, "--report", report, "--quiet", "-o", output]
    start = time.perf_counter()
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    total = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)}: exit {child.returncode}")
    with open(report) as file:
        found = json.load(file)
    return {**found["seconds"], "total": total, "cpu": usage.ru_utime + usage.ru_stime}, usage.ru_maxrss, found, \
        os.path.getsize(output)


def measure(layers, nodes, runs):
    """The row of one size, from the results of its runs."""
    seconds = {phase: min(run[0][phase] for run in runs) for phase in runs[0][0]}
    collectives = {kind: total["count"] for kind, total in runs[0][2]["totals"].items() if total["count"]}
    deciding = get_deciding(seconds)
    return {"layers": layers, "nodes": nodes, "seconds": seconds, "deciding": deciding,
            "us_per_node": deciding / nodes * 1e6, "peak_mb": min(run[1] for run in runs) / 1024,
            "kb_per_node": min(run[1] for run in runs) / nodes, "collectives": collectives,
            "output_mb": runs[0][3] / 1e6}


def get_deciding(seconds):
    return sum(seconds[phase] for phase in DECIDING)


def add_ratios(rows, runs):
    """What a doubling of the layers costs, from each size to the next: the median of the rounds."""
    for before, after in zip(rows, rows[1:]):
        doublings = math.log2(after["layers"] / before["layers"])
        rounds = list(zip(runs[before["layers"]], runs[after["layers"]]))
        for key, of in (("deciding_ratio", get_deciding), ("total_ratio", lambda seconds: seconds["total"])):
            after[key] = statistics.median(of(large[0]) / of(small[0]) for small, large in rounds) ** (1 / doublings)


def format_collectives(row):
    """`2 all_reduce` per layer, and whatever else there is in total."""
    counts = dict(row["collectives"])
    per_layer = counts.pop("all_reduce", 0) / row["layers"]
    return ", ".join([f"{per_layer:g} all_reduce a layer", *(f"{count} {kind}" for kind, count in counts.items())])


def print_table(rows):
    phases = [phase for phase in rows[0]["seconds"] if phase not in ("total", "cpu")]
    head = ["layers", "nodes", *(f"{phase.replace('_', ' ')} s" for phase in phases), "the four, us/node",
            "the four, per doubling", "whole process s", "processor s", "whole, per doubling", "peak MB", "kB/node",
            "output MB", "collectives"]
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        ratio = lambda key: f"{row[key]:.2f}" if key in row else ""
        cells = [f"{row['layers']:,}", f"{row['nodes']:,}", *(f"{row['seconds'][phase]:.3f}" for phase in phases),
                 f"{row['us_per_node']:.1f}", ratio("deciding_ratio"), f"{row['seconds']['total']:.2f}",
                 f"{row['seconds']['cpu']:.2f}", ratio("total_ratio"), f"{row['peak_mb']:.0f}",
                 f"{row['kb_per_node']:.1f}", f"{row['output_mb']:.1f}", format_collectives(row)]
        print("| " + " | ".join(cells) + " |")


def print_aims(rows):
    """Seconds and memory go by the size nearest to 100,000 nodes: what a process takes to start is nothing there."""
    row = min(rows, key=lambda row: abs(math.log(row["nodes"] / 1e5)))
    found = [row["seconds"]["total"] * 1e5 / row["nodes"], max((row["total_ratio"] for row in rows if "total_ratio" in row), default=0.0),
             row["kb_per_node"]]
    print()
    for (name, aim), value in zip(AIMS.items(), found):
        print(f"{name}: {value:.2f}, aim {aim:g}: {'met' if value <= aim else 'MISSED'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--kind", choices=["gpt", *make_wide.KINDS], default="gpt")
    parser.add_argument("--layers", type=int, nargs="+", default=[12, 94, 188, 375, 750, 1500, 3000])
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    cleave = os.path.join(arguments.build, "bin", "cleave")
    runs = {layers: [] for layers in arguments.layers}
    with tempfile.TemporaryDirectory() as folder:
        models, nodes = make_models(folder, arguments.kind, arguments.layers)
        for _ in range(arguments.repeat):
            for layers in arguments.layers:
                runs[layers].append(shard_once(cleave, *models[layers], folder))
    rows = [measure(layers, nodes[layers], runs[layers]) for layers in arguments.layers]
    add_ratios(rows, runs)
    print_table(rows)
    print_aims(rows)


if __name__ == "__main__":
    main()
