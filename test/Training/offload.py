"""What waits in the host's memory, as it is planned, told and run on emulated CUDA devices.

    offload.py BUILD_DIR [CASE...]

A chain of equal layers, whose activations are larger than their weights: the backward reads what each layer makes. With L layers, the device keeps L
values of the forward; one more layer is one more value, to the byte. Offloaded, all but the last ones wait in the host's memory: one more layer is
nothing more on the device, and one more value there. In stages, n layers on a rank keep n values of each microbatch. Its I makes n gradients that W reads,
with the n values that have come back for both: these stay on the device. That the device's kernels hold for a value that is away the bytes of others is checked by
the program's reader (P28, P29), and by the emulated device, whose streams run in any order that events allow.

A copy takes what its bytes take on the link: with a slow one values stay, or kernels wait.
"""
import json
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper, parser

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

WIDTH, ROWS, MOST = 16, 256, 12
VALUE = 8 * WIDTH * ROWS
# 33 kB take 1.3 us of a link of 25 GB/s, and a kernel 2 us at least: what is made before the last few kernels of the forward is gone in time.
FAST, SLOW = "", "cluster: {device: {flops: {f32: 47T}, bandwidth: 2300GB/s, host: 1MB/s}, links: {latency: 1us, bandwidth: 100GB/s}}\n"
# By name: layers, ranks that share the batch, stages, microbatches, what is asked for besides.
CASES = {"one device": (1, 1, 1, ""), "data parallel": (2, 1, 1, ""), "blocks again": (1, 1, 1, "recompute: cheap, "),
         "two stages": (1, 2, 4, ""), "two stages, data parallel": (2, 2, 4, "")}


class Offload:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        for layers in range(2, MOST + 1, 2):
            for rows in (ROWS, 2 * ROWS, 4 * ROWS, 8 * ROWS):
                nodes = " ".join(f"m{i} = MatMul({f't{i - 1}' if i else 'x'}, w{i}) t{i} = Tanh(m{i})" for i in range(layers))
                model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> g (double[{rows}, {WIDTH}] x) => (double[{rows}, {WIDTH}] t{layers - 1}) {{ {nodes} }}')
                random = np.random.default_rng(1)
                model.graph.initializer.extend(numpy_helper.from_array(random.standard_normal((WIDTH, WIDTH)) / 4, f"w{i}") for i in range(layers))
                onnx.save(model, self.at(f"{layers}-{rows}.onnx"))
                np.savez(self.at(f"{layers}-{rows}.npz"), x=random.standard_normal((rows, WIDTH)), labels=random.standard_normal((rows, WIDTH)))

    def at(self, name):
        return os.path.join(self.folder, name)

    def save_plan(self, name, case, layers, offload, machine):
        ranks, stages, microbatches, more = case
        axes = ([f"stage: {stages}"] if stages > 1 else []) + [f"data: {ranks}"]
        text = f"mesh: {{{', '.join(axes)}}}\n{machine}shard:\n" + "".join(f'  - {{tensor: "{pattern}", dims: [data, _]}}\n' for pattern in ("x", "labels", "t*"))
        if stages > 1:
            text += f"pipeline: {{axis: stage, microbatches: {microbatches}, schedule: gpipe}}\n"
            microbatches = 1
        asked = ', offload: "[mt]*"' if offload else ""
        text += f"train: {{loss: {{kind: mse, of: t{layers - 1}}}, optimizer: sgd, {more}microbatches: {microbatches}{asked}}}\n"
        path = self.at(name + ".yaml")
        with open(path, "w") as file:
            file.write(text)
        return path

    def compile(self, stem, case, layers, offload, machine=FAST):
        """The report of a program for an emulated device."""
        ranks, stages, microbatches, _ = case
        plan, model = self.save_plan(stem, case, layers, offload, machine), f"{layers}-{ROWS * ranks * microbatches}"
        done = harness.cleave(self.build, "compile", self.at(model + ".onnx"), "--train", "--plan", plan, "--target", "cuda:emulated", "-o", self.at(stem + ".cleave"),
                              "--report", self.at(stem + ".json"), "--quiet")
        if done.returncode:
            raise RuntimeError(f"compile: exit {done.returncode}: {done.stderr[-500:]}")
        with open(self.at(stem + ".json")) as file:
            return json.load(file)

    def train(self, stem, case, layers):
        """Losses of some steps, and the weights behind them, of a program that was compiled before."""
        ranks, stages, microbatches, _ = case
        data = self.at(f"{layers}-{ROWS * ranks * microbatches}.npz")
        done = harness.cleave(self.build, "train", self.at(f"{layers}-{ROWS * ranks * microbatches}.onnx"), "--plan", self.at(stem + ".yaml"), "--device", "cuda-emulated", "--data", data,
                              "--steps", "3", "--order", "given", "--log", self.at(stem + ".jsonl"), "--quiet")
        if done.returncode:
            raise RuntimeError(f"train: exit {done.returncode}: {done.stderr[-500:]}")
        with open(self.at(stem + ".jsonl")) as file:
            return [json.loads(line)["loss"] for line in file]

    def problem(self, name):
        case, stem = CASES[name], name.replace(" ", "_").replace(",", "")
        live, told = {}, {}
        for layers in (MOST - 4, MOST):
            for offload in (False, True):
                report = self.compile(f"{stem}-{layers}-{offload}", case, layers, offload)
                live[layers, offload], told[layers, offload] = report["program"]["liveness_bound_bytes"], report
        ranks, stages, microbatches, _ = case
        # Four layers more, of all stages together.
        layers = 4 // stages
        more = layers * microbatches
        want = {False: more, True: 0} if stages == 1 else {False: more + layers, True: 2 * layers}
        grown = {offload: (live[MOST, offload] - live[MOST - 4, offload]) / VALUE for offload in (False, True)}
        # Products of data parallel ranks whose reductions are one bucket stand side by side: so small a net's are all read at its end.
        if grown != want and (ranks == 1 or stages > 1):
            return f"four layers more are {grown[False]:.2f} values more on the device, and offloaded {grown[True]:.2f}, expected {want}"
        less, most = (told[layers, True]["offload"] for layers in (MOST - 4, MOST))
        if most["values"] - less["values"] != more or most["bytes"] - less["bytes"] != more * VALUE or most["host_peak_bytes"] - less["host_peak_bytes"] != more * VALUE:
            return f"four layers more are {less} -> {most} in the host's memory"
        peaks = most["peak_bytes_without"], most["peak_bytes_with"]
        if peaks != (told[MOST, False]["peak_bytes_per_rank"], told[MOST, True]["peak_bytes_per_rank"]):
            return f"{peaks} B are told, planned are {told[MOST, False]['peak_bytes_per_rank']} and {told[MOST, True]['peak_bytes_per_rank']} B"
        losses = {offload: self.train(f"{stem}-{MOST}-{offload}", case, MOST) for offload in (False, True)}
        # Kernels are formed otherwise where a value is stored that was not: sums may be rounded in another order. A loss is a mean of 4096 squares or
        # more of numbers that some dozens of layers of 16 products make: 1e-12 is some thousand roundings.
        if not np.allclose(losses[True], losses[False], rtol=1e-12, atol=0):
            return f"losses are {losses[True]}, without {losses[False]}"
        return ""

    def slow(self, _):
        """1 MB/s: a value takes 16 ms to go, and as long to come back, where the step takes some microseconds."""
        told = self.compile("slow", CASES["one device"], MOST, True, SLOW)
        offload = told.get("offload", {})
        if offload.get("values") != 0 or offload.get("stayed", 0) < MOST - 2:
            return f"over a link on which nothing could be gone in time, {offload}"
        return ""


def main():
    build, names, _ = harness.arguments()
    with tempfile.TemporaryDirectory() as folder:
        suite = Offload(build, folder)
        cases = harness.select({**{name: name for name in CASES}, "a slow link": ""}, names)
        return harness.run(cases, lambda name: suite.problem(name) if name else suite.slow(name))


if __name__ == "__main__":
    sys.exit(main())
