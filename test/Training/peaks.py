"""What a schedule keeps, as its table counts it, as the programs of ranks are planned, and as they run.

    peaks.py BUILD_DIR [CASE...]

A chain of equal layers whose activations are far larger than their weights, in stages. For each rank the planned memory of what comes and goes is the
table's peak (microbatches kept, times what a stage keeps of one) but for what a rank works with: gradients of one microbatch between its layers, and
a message or two. With all forward before all backward (gpipe, bfs) it grows with the number of microbatches by what the table says, to the byte: what a
rank works with is the same then, and so is how it is placed. Of other schedules the table does not grow, and a plan may, by gaps in its arena alone.
What a run takes is what was planned.

The peak that `cleave schedule` shows is that of the program of each rank, to the byte, and what each rank of a run takes, for every schedule with
gradients on 1, 2 and 4 ranks, with and without layers that are made again, on the host and on emulated devices. What it is for adds up to it;
weights and states are those of all layers, once.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

import numpy as np
import onnx
from onnx import numpy_helper, parser

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

WIDTH, ROWS, LAYERS = 16, 256, 16
# A value of a microbatch; weights of a layer.
VALUE, WEIGHTS = 4 * WIDTH * ROWS, 4 * WIDTH * WIDTH
# Values beside those of the table: what is made of a gradient on the way, and messages that come and go.
MORE = 3
# Places in one arena leave gaps: a plan is so far above what is there at a time.
PACKED = 1.2
# By name: schedule, ranks, microbatches, stages of a rank.
CASES = {f"{name}, {ranks} ranks, {microbatches} microbatches": (name, ranks, microbatches, chunks)
         for name, ranks, microbatches, chunks in (
             ("gpipe", 1, 4, 1), ("gpipe", 2, 4, 1), ("1f1b", 2, 8, 1), ("1f1b", 3, 8, 1), ("1f1b", 4, 8, 1), ("1f1b", 8, 8, 1), ("eager-1f1b", 4, 8, 1),
             ("zb-h1", 2, 8, 1), ("zb-h1", 4, 8, 1), ("zb-h2", 4, 8, 1), ("interleaved", 2, 8, 2), ("interleaved", 4, 8, 2), ("bfs", 2, 4, 2),
             ("zb-v", 2, 8, 2), ("zb-v", 4, 8, 2), ("v-half", 4, 8, 2), ("v-min", 4, 8, 2), ("hanayo", 4, 4, 2),
             # Two ways: a stage is on two ranks, each of which keeps what its own microbatches leave.
             ("chimera", 2, 4, 1), ("chimera", 4, 8, 1), ("dualpipe", 2, 4, 1), ("dualpipe", 4, 8, 1), ("dualpipe-v", 4, 8, 2))}
# Stages that make again what they do not keep, all of them or by a policy for each.
CASES |= {f"{name}, {ranks} ranks, {microbatches} microbatches, {more}": (name, ranks, microbatches, chunks, more)
          for name, ranks, microbatches, chunks, more in (
              ("gpipe", 2, 4, 1, "recompute: always"), ("1f1b", 4, 8, 1, "recompute: always"), ("zb-h1", 4, 8, 1, "recompute: always"),
              ("1f1b", 4, 8, 1, "recompute: [blocks, blocks, none, none]"), ("interleaved", 2, 8, 2, "recompute: [blocks, none, none, blocks]"))}
TWO_WAYS = ("chimera", "dualpipe")
# Of each schedule: stages of a rank, microbatches of so many ranks.
TABLES = {"gpipe": (1, 1), "1f1b": (1, 2), "eager-1f1b": (1, 2), "zb-h1": (1, 2), "zb-h2": (1, 2), "interleaved": (2, 1), "bfs": (2, 1), "zb-v": (2, 2), "v-half": (2, 2),
          "v-min": (2, 2), "hanayo": (2, 1), "dualpipe-v": (2, 2), "dualpipe": (1, 2), "chimera": (1, 1), "auto": (1, 2)}
# Where a program is to run, and the driver that plays devices there.
TARGETS = {"host": ("host", {}), "emulated": ("cuda:emulated", {"CLEAVE_CUDA_LIBRARY": "libcleave_emulated_cuda.so"})}


def list_planned():
    for schedule, (chunks, times) in TABLES.items():
        # On one rank what passes between stages passes nowhere, and two ways are one.
        for ranks in (1, 2, 4) if chunks == 1 and schedule not in TWO_WAYS else (2, 4):
            for more in ("", "recompute: always"):
                for target in TARGETS:
                    name = f"planned: {schedule}, {ranks} ranks{', ' if more else ''}{more}, {target}"
                    yield name, (schedule, ranks, max(2, times * ranks), chunks, more, target)


class Peaks:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder

    def save_model(self, microbatches):
        path = os.path.join(self.folder, f"{microbatches}.onnx")
        if not os.path.exists(path):
            nodes = " ".join(f"m{i} = MatMul({f't{i - 1}' if i else 'x'}, w{i}) t{i} = Tanh(m{i})" for i in range(LAYERS))
            batch, random = ROWS * microbatches, np.random.default_rng(1)
            model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> g (float[{batch}, {WIDTH}] x) => (float[{batch}, {WIDTH}] t{LAYERS - 1}) {{ {nodes} }}')
            for i in range(LAYERS):
                model.graph.initializer.append(numpy_helper.from_array(random.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 4, f"w{i}"))
            # Cases of one size run side by side.
            new = f"{path}.{threading.get_ident()}"
            onnx.save(model, new)
            os.replace(new, path)
        return path

    def look(self, case):
        """(the table's peaks, planned bytes of what comes and goes, the report's peaks, what a run took); of each rank but the last one."""
        schedule, ranks, microbatches, chunks, *more = case
        model, stem = self.save_model(microbatches), os.path.join(self.folder, re.sub(r"\W+", "-", "-".join(map(str, case))))
        with open(stem + ".yaml", "w") as file:
            file.write(f"mesh: {{stage: {ranks}}}\npipeline: {{axis: stage, microbatches: {microbatches}, schedule: {schedule}, chunks: {chunks}{''.join(f', {text}' for text in more)}}}\n"
                       f"train: {{loss: {{kind: mse, of: t{LAYERS - 1}}}, optimizer: sgd}}\n")
        told = {}
        for command, words in (("schedule", ()), ("shard", ("--emit", "planned", "-o", stem + ".mlir")), ("bench", ("--repeat", "1"))):
            done = harness.cleave(self.build, command, model, "--train", "--plan", stem + ".yaml", "--report", stem + ".json", "--quiet", *words)
            if done.returncode:
                raise RuntimeError(f"{command}: exit {done.returncode}: {done.stderr[-400:]}")
            with open(stem + ".json") as file:
                told[command] = json.load(file)
        planned = [0] * ranks
        with open(stem + ".mlir") as file:
            for rank, size in re.findall(r"exec\.buffer @rank(\d+)_\S+ activations (\d+)", file.read()):
                planned[int(rank)] += int(size)
        return told["schedule"]["peak"]["memory"], planned, told["shard"]["pipeline"]["peak_bytes_of_ranks"], told["bench"]["peak_bytes_per_rank"]

    def save_data(self, microbatches):
        path, random = os.path.join(self.folder, f"{microbatches}.npz"), np.random.default_rng(2)
        if not os.path.exists(path):
            new = f"{path}.{threading.get_ident()}.npz"
            np.savez(new, **{name: random.standard_normal((ROWS * microbatches, WIDTH)).astype(np.float32) for name in ("x", "labels")})
            os.replace(new, path)
        return path

    def tell(self, stem, command, *words, target="host"):
        """What the report of a command says."""
        report = f"{stem}.{os.path.basename(command)}.json"
        done = subprocess.run([*([command] if os.path.isabs(command) else [f"{self.build}/bin/cleave", command]), *words, "--report", report], capture_output=True, text=True,
                              env={**os.environ, **TARGETS[target][1]})
        if done.returncode:
            raise RuntimeError(f"{command}: exit {done.returncode}: {done.stderr[-400:]}")
        with open(report) as file:
            return json.load(file)

    def problem_planned(self, case):
        """Why a rank's peak is not the same in the table, in the program and in a run, or is not made of what it is for."""
        schedule, ranks, microbatches, chunks, more, target = case
        model, stem = self.save_model(microbatches), os.path.join(self.folder, re.sub(r"\W+", "-", "-".join(map(str, case))))
        with open(stem + ".yaml", "w") as file:
            file.write(f"mesh: {{stage: {ranks}}}\npipeline: {{axis: stage, microbatches: {microbatches}, schedule: {schedule}, chunks: {chunks}{', ' * bool(more)}{more}}}\n"
                       f"train: {{loss: {{kind: mse, of: t{LAYERS - 1}}}, optimizer: adamw}}\n")
        step = (model, "--train", "--plan", stem + ".yaml", "--target", TARGETS[target][0], "--quiet")
        table = self.tell(stem, "schedule", *step)["peak"].get("planned", [])
        program = self.tell(stem, "compile", *step, "-o", stem + ".cleave")["pipeline"]
        taken = self.tell(stem, f"{self.build}/bin/cleave-run", stem + ".cleave", "--data", self.save_data(microbatches), "--steps", "2", target=target)["peak_bytes_of_ranks"]
        shown = [rank["bytes"] for rank in table]
        if not shown == program["peak_bytes_of_ranks"] == taken or len(shown) != ranks:
            return f"the table shows {shown} B, planned are {program['peak_bytes_of_ranks']} B, a run takes {taken} B"
        for rank, told in enumerate(table):
            if (total := sum(told.values()) - told["bytes"]) != told["bytes"]:
                return f"rank {rank}: {told['bytes']} B are for {total} B"
        held = {role: sum(told[role] for told in table) for role in ("parameters", "optimizer")}
        # Two moments, and the number of steps.
        if held != (want := {"parameters": LAYERS * WEIGHTS, "optimizer": 2 * LAYERS * WEIGHTS + 8}):
            return f"ranks hold {held}, which are {want}"
        return ""

    def problem(self, case):
        if len(case) == 6:
            return self.problem_planned(case)
        schedule, ranks, microbatches, chunks, *again = case
        table, planned, peaks, measured = self.look(case)
        # Gradients of the weights of a rank are with what comes and goes, and so is what a stage makes again of the microbatch that it is at.
        layers = -(-LAYERS // ranks) * (2 if schedule in TWO_WAYS else 1)
        working = layers * (2 if again else 1)
        for rank in range(ranks):
            kept, own = table[rank], planned[rank]
            if not kept - MORE * VALUE <= own <= PACKED * (kept + (working + MORE) * VALUE + 2 * layers * WEIGHTS):
                return f"rank {rank}: the table keeps {kept / VALUE:.2f} values, {own / VALUE:.2f} are planned"
            if own >= peaks[rank]:
                return f"rank {rank}: of {peaks[rank]} B planned {own} B come and go"
        if measured != max(peaks):
            return f"planned are {peaks} B, a run takes {measured} B"
        if schedule not in ("gpipe", "bfs"):
            return ""
        more = self.look((schedule, ranks, 2 * microbatches, chunks, *again))
        for rank in range(ranks):
            if more[1][rank] - planned[rank] != more[0][rank] - table[rank]:
                return f"rank {rank}: {microbatches} microbatches more keep {more[0][rank] - table[rank]} B by the table, {more[1][rank] - planned[rank]} B as planned"
        return ""


def main():
    build, names, _ = harness.arguments()
    cases = harness.select({**CASES, **dict(list_planned())}, names)
    with tempfile.TemporaryDirectory() as folder:
        return harness.run(cases, Peaks(build, folder).problem)


if __name__ == "__main__":
    sys.exit(main())
