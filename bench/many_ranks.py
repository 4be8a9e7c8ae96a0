"""Times what one process takes to lay out and prove a step of training for very many ranks: data x model x stage.

    many_ranks.py BUILD_DIR [--data 128] [--model 8] [--stage 16] [--layers 96] [--microbatches 32] [--schedule zb-v]

The model is make_gpt.py's with hidden 3072, one sample of 512 for each microbatch and replica, AdamW with ZeRO-1, on nodes of 8 H100. `cleave
shard --emit per-rank` takes it from the file to a program for each place of the pipeline: sharded, staged, scheduled. What is proved on the way:

    order       every (stage, microbatch) once, reductions in one order, messages of a channel in one order (P6, P8, P10)
    deadlock    the ranks' programs run to their end where a send waits for its receive (P9; the call's time is that of such a run)
    memory      the peak of every rank by liveness, against what a device has

Controls that must be refused, each in one process, too: a table of which two ranks wait for each other, and one that has lost a W. Seconds are of
the processor.
"""
import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile

from make_gpt import make_gpt

OUTPUT = "/ln_f/LayerNormalization_output_0"


def format_plan(options, schedule):
    ranks = options.data * options.model * options.stage
    return (f"mesh: {{data: {options.data}, model: {options.model}, stage: {options.stage}}}\n"
            f"cluster: {ranks // 8}x8xH100-ib\n"
            "shard:\n"
            "  - {tensor: hidden_in, dims: [data, _, _]}\n"
            '  - {node: "/h.*/{attn/c_attn,mlp/c_fc}/Gemm", operand: 1, dims: [_, model]}\n'
            '  - {node: "/h.*/{attn/c_attn,mlp/c_fc}/Gemm", operand: 2, dims: [model]}\n'
            '  - {node: "/h.*/{attn,mlp}/c_proj/Gemm", operand: 1, dims: [model, _]}\n'
            f"pipeline: {{axis: stage, microbatches: {options.microbatches}, schedule: {schedule}, chunks: 2}}\n"
            f'train: {{loss: {{kind: mse, of: "{OUTPUT}"}}, optimizer: adamw, zero: {{axis: data, stage: 1}}}}\n')


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.model = options, folder, os.path.join(folder, "gpt.onnx")
        make_gpt(self.model, options.layers, batch=options.data * options.microbatches, seq=512, hidden=3072, heads=32)

    def run(self, schedule, *words):
        """(exit code, seconds of the processor, peak MB, what it said, its report)"""
        plan, report = (os.path.join(self.folder, name) for name in ("plan.yaml", "report.json"))
        with open(plan, "w") as file:
            file.write(format_plan(self.options, schedule))
        command = [os.path.join(self.options.build, "bin", "cleave"), "shard", self.model, "--plan", plan, "--train", "--emit", "per-rank", "-o", os.devnull,
                   "--report", report, "--quiet", *words]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        told = None
        if not child.returncode:
            with open(report) as file:
                told = json.load(file)
        return child.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, said, told

    def table(self, name, change):
        """The schedule's own table without messages, with a change of its rows."""
        path = os.path.join(self.folder, name + ".csv")
        subprocess.run([os.path.join(self.options.build, "bin", "cleave"), "schedule", "--schedule", self.options.schedule, "--ranks", str(self.options.stage),
                        "--microbatches", str(self.options.microbatches), "--table", path, "--compute-only", "--quiet"], check=True)
        with open(path) as file:
            rows = [row for row in csv.reader(file)]
        change(rows)
        with open(path, "w") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        return path


def wait_for_each_other(rows):
    """The last stage's rank wants to go back before it has gone forward."""
    row = next(row for row in rows if f"{2 * len(rows) - 1}F0" in row)
    first, second = row.index(f"{2 * len(rows) - 1}F0"), row.index(f"{2 * len(rows) - 1}I0")
    row[first], row[second] = row[second], row[first]


def lose(rows):
    rows[len(rows) // 2].remove(next(cell for cell in reversed(rows[len(rows) // 2]) if "W" in cell))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    for name, default in (("data", 128), ("model", 8), ("stage", 16), ("layers", 96), ("microbatches", 32), ("repeat", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--schedule", default="zb-v")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        runs = [bench.run(options.schedule) for _ in range(options.repeat)]
        for code, _, _, said, _ in runs:
            if code:
                sys.exit(said[-600:])
        _, seconds, megabytes, _, report = min(runs, key=lambda run: run[1])
        peaks = report["pipeline"]["peak_bytes_of_ranks"]
        phases = report["seconds"]
        print(f"{report['ranks']} ranks, {options.layers} layers, {options.schedule}: {seconds:.2f} s of the processor, {megabytes:.0f} MB")
        print(", ".join(f"{name.replace('_', ' ')} {took:.2f}" for name, took in phases.items()))
        print(f"a call of {report['time']['call_ns'] / 1e6:.0f} ms goes to its end; peaks of ranks {min(peaks) / 1e9:.2f} to {max(peaks) / 1e9:.2f} GB, of "
              f"{report['memory']['device_bytes'] / 1e9:.0f}: {'fits' if report['memory']['fits'] else 'DOES NOT FIT'}")
        wrong = 0 if report["memory"]["fits"] and report["time"]["call_ns"] > 0 else 1
        for name, change, want in (("deadlock", wait_for_each_other, "deadlock"), ("lost", lose, "is missing")):
            code, seconds, _, said, _ = bench.run(bench.table(name, change))
            refused = code != 0 and want in said
            wrong += not refused
            print(f"control '{name}': {'refused' if refused else 'NOT REFUSED'} in {seconds:.2f} s: {said.strip().splitlines()[0][-160:] if said else ''}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
