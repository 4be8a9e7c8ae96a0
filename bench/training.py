"""A step of training of three networks, in turn with onnxruntime-training and jax.

    training.py BUILD_DIR --onnxruntime PYTHON --jax PYTHON [NET..] [--threads 1 2] [--zero STAGE] [--steps N]
    training.py BUILD_DIR [NET..] --parts | --parallel [--threads 1 2] [--zero STAGE..] [--cluster NAME] | --agree | --memory

PYTHON of --onnxruntime has onnxruntime-training-cpu 1.19.2 (training_peer.py), that of --jax has jax and onnx (training_jax.py); a peer that
is not given is left out. The networks are those of training_nets.py, AdamW on all weights. Each has a process of its own, which waits while
another one takes a step. One thread is timed by the processor time of the process, more by the clock: two threads of ours are two ranks that
share the batch, and with `--zero 1` and `3` (the default) also states, or states and parameters. The forward is the program for inference.

--parts tells the three parts of a step on one thread: the forward is the program for inference; the backward, what a step of plain SGD takes
beyond it, which keeps no states, and computes w - r g where the gradient is made; the update, what AdamW takes beyond that of SGD.
--parallel holds ranks that are threads against one rank, for each way to share: by the clock, and by the processor time of all ranks
together, which other jobs on the machine disturb less: p ranks that take q times that of one are p / q times as fast where nothing else runs.

--agree compares gradients of the first step with jax's in f64, weight by weight, by their lengths; and losses of 20 steps, in f64 and f32.
Where a loss depends much on rounding, as f32 of jax itself beside its f64 shows, f32 of two compilers cannot be closer than that. --memory compares what a rank's program has in buffers with jax's
`memory_analysis()`, which counts arguments, temporaries and those results that are in no argument's place.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, HERE)
sys.path.insert(1, os.path.join(HERE, os.pardir, "examples"))
from runtime import Program  # noqa: E402
from training_nets import ADAMW, NETS, widen  # noqa: E402


class Ours:
    """A program of so many ranks, which share the batch, and with `zero` more than it; `words` are more options of the compiler."""

    def __init__(self, build, net, threads, folder, train=True, zero=0, optimizer=ADAMW, words=()):
        path = os.path.join(tempfile.mkdtemp(dir=folder), "program.cleave")
        self.batch = dict(np.load(net.batch))
        words = [*words, *([f"--train={net.get_train(zero if threads > 1 else 0, optimizer)}"] if train else [])]
        if not train:
            self.batch.pop("labels")
        if threads > 1:
            words += ["--mesh", f"data={threads}"]
            for name, array in self.batch.items():
                words += ["--shard", f"{name}=[{', '.join(['data'] + ['_'] * (array.ndim - 1))}]"]
        words += ["--dim", net.dims] if net.dims else []
        subprocess.run([os.path.join(build, "bin", "cleave"), "compile", net.model, *words, "-o", path, "--quiet"], check=True)
        self.program, self.wanted = Program(build, path), ["loss"] if train else []

    def step(self):
        began, worked = time.perf_counter(), time.process_time()
        loss = self.program.run(self.batch, self.wanted)
        return {"ms": (time.perf_counter() - began) * 1e3, "processor": (time.process_time() - worked) * 1e3, "loss": float(loss["loss"]) if self.wanted else None}

    def close(self):
        self.program.close()


class Peer:
    """A process that takes a step for each line (training_serve.py)."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.said = {}
        for line in self.process.stdout:
            if line.strip() == "ready":
                return
            self.said.update(json.loads(line) if line.startswith("{") else {})
        sys.exit(f"{' '.join(command)} ended with code {self.process.wait()}")

    def step(self):
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def start_onnxruntime(python, net, threads):
    return Peer([python, os.path.join(HERE, "training_peer.py"), net.model, net.output, net.loss, net.batch, str(threads)])


def start_jax(python, net, threads, *words):
    return Peer([python, os.path.join(HERE, "training_jax.py"), net.name, net.model, net.batch, str(threads), *words])


def measure(all_, steps, pause):
    """All that each says of its steps, in turn. With a pause, threads that still spin have stopped by then."""
    told = {name: [] for name in all_}
    for _ in range(steps):
        for name, one in all_.items():
            time.sleep(pause)
            told[name].append(one.step())
    return told


def bench(options, net, folder):
    """A row for each number of threads."""
    for threads in options.threads:
        bench_threads(options, net, threads, folder)


def bench_threads(options, net, threads, folder):
    all_ = {"step": Ours(options.build, net, threads, folder, zero=options.zero[-1]), "forward": Ours(options.build, net, threads, folder, train=False)}
    if options.onnxruntime:
        all_["onnxruntime"] = start_onnxruntime(options.onnxruntime, net, threads)
    if options.jax:
        all_["jax"] = start_jax(options.jax, net, threads)
    median = {name: told[threads == 1] for name, told in take_medians(all_, options, 0.1 * (threads > 1)).items()}
    ratio = lambda name: f"{median[name]:.1f} | {median['step'] / median[name]:.2f}" if name in median else " | "
    print(f"| {net.name} | {threads} | {median['step']:.1f} | {ratio('onnxruntime')} | {ratio('jax')} | {median['forward']:.1f} | "
          f"{(median['step'] - median['forward']) / median['forward']:.2f} | {os.getloadavg()[0]:.1f} |", flush=True)


def take_steps(all_, options, pause):
    """Of each, what its steps take by the clock and of processors, in ms: an array [steps, 2]."""
    told = measure(all_, options.steps + 2, pause)
    for one in all_.values():
        one.close()
    return {name: np.array([[step[key] for key in ("ms", "processor")] for step in steps[2:]]) for name, steps in told.items()}


def take_medians(all_, options, pause):
    """Of each, medians of what its steps take by the clock and of processors, in ms."""
    return {name: tuple(np.median(steps, 0).tolist()) for name, steps in take_steps(all_, options, pause).items()}


def split_step(options, net, folder):
    """Forward, backward and update of a step on one thread, by processor time."""
    median = take_medians({"step": Ours(options.build, net, 1, folder), "plain": Ours(options.build, net, 1, folder, optimizer="sgd"),
                           "forward": Ours(options.build, net, 1, folder, train=False)}, options, 0)
    step, plain, forward = (median[name][1] for name in ("step", "plain", "forward"))
    print(f"| {net.name} | {step:.1f} | {forward:.1f} | {plain - forward:.1f} | {(plain - forward) / forward:.2f} | {step - plain:.1f} | "
          f"{(step - plain) / forward:.2f} | {os.getloadavg()[0]:.1f} |", flush=True)


def compare_ranks(options, net, folder):
    """Several ranks beside one, in turn: the median of quotients of neighboring steps, and how far the middle half of them goes."""
    many, words = options.threads[-1], ["--cluster", options.cluster, "--optimize=time"] if options.cluster else []
    ways = {("batch and states" if zero == 1 else "batch, states and parameters") if zero else "batch": zero for zero in options.zero}
    told = take_steps({"one": Ours(options.build, net, 1, folder),
                       **{way: Ours(options.build, net, many, folder, zero=zero, words=words) for way, zero in ways.items()}}, options, 0.1)
    for way in ways:
        (clock, worked), (clock1, worked1) = told[way].T, told["one"].T
        low, fast, high = np.quantile(many * worked1 / worked, (0.25, 0.5, 0.75))
        print(f"| {net.name} | {way} | {np.median(clock1):.1f} | {np.median(clock):.1f} | {np.median(clock1 / clock):.2f} | {np.median(worked / worked1):.2f} | "
              f"{fast:.2f} | {low:.2f} to {high:.2f} | {os.getloadavg()[0]:.1f} |", flush=True)


def compare_gradients(options, net, folder):
    """The largest length of the difference of one weight's gradients, by that of the gradient; jax has saved its own.

    Gradients of a millionth of all of them are compared with that: those of keys' biases are zero but for rounding.
    """
    saved = os.path.join(folder, "ours.npz")
    subprocess.run([os.path.join(options.build, "bin", "cleave"), "run", net.model, f"--train={net.get_train()}", "--mesh", "one=1", *(["--dim", net.dims] if net.dims else []),
                    "--inputs", net.batch, "--outputs", saved, "--check", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    want, got, off = np.load(os.path.join(folder, "jax.npz")), {}, {}
    for name, value in np.load(saved).items():
        name = name.removeprefix("out:")
        if name.startswith("grad("):
            got[name[5:-1]] = value
    least = 1e-6 * np.sqrt(sum(float(np.sum(want[name]**2)) for name in want.files))
    for name in want.files:
        # A weight that is read in parts has a gradient for each of them.
        parts = {part: value for part, value in got.items() if part == name or part.startswith(name + "[")}
        whole = np.zeros_like(want[name])
        for part, value in parts.items():
            starts = [int(start) for start in part[len(name) + 1:-1].split(",")] if part != name else [0] * value.ndim
            whole[tuple(slice(start, start + size) for start, size in zip(starts, value.shape))] = value
        if parts:
            off[name] = np.linalg.norm(whole - want[name]) / max(np.linalg.norm(want[name]), least)
    return len(off), len(want.files), max(off.values())


def agree(options, net, folder):
    """Gradients and losses beside jax's, relative."""
    wide = widen(net, folder)
    losses = {}
    for name, one in (("ours", Ours(options.build, net, 1, folder)), ("jax", start_jax(options.jax, net, 1)), ("ours, f64", Ours(options.build, wide, 1, folder)),
                      ("jax, f64", start_jax(options.jax, wide, 1, "--wide", os.path.join(folder, "jax.npz")))):
        losses[name] = np.array([one.step()["loss"] for _ in range(20)])
        one.close()
    between = lambda a, b: f"{np.abs(losses[a] / losses[b] - 1).max():.1e}"
    count, of, off = compare_gradients(options, wide, folder)
    print(f"| {net.name} | {count} of {of} | {off:.1e} | {losses['ours'][0]:.6f} | {losses['ours'][-1]:.6f} | {between('ours, f64', 'jax, f64')} | "
          f"{between('ours', 'jax')} | {between('ours', 'jax, f64')} | {between('jax', 'jax, f64')} |", flush=True)


def compare_memory(options, net, folder):
    """Bytes of one rank's step, as planned, beside what jax has compiled."""
    report = os.path.join(folder, "report.json")
    subprocess.run([os.path.join(options.build, "bin", "cleave"), "shard", net.model, f"--train={net.get_train()}", "--mesh", "one=1", *(["--dim", net.dims] if net.dims else []),
                    "--emit", "planned", "-o", os.devnull, "--report", report, "--quiet"], check=True, stderr=subprocess.DEVNULL)
    with open(report) as file:
        planned = json.load(file)["peak_bytes_per_rank"]
    peer = start_jax(options.jax, net, 1)
    peer.close()
    memory = peer.said["memory"]
    theirs = memory["argument"] + memory["temp"] + memory["output"] - memory["alias"]
    print(f"| {net.name} | {planned / 1e6:.1f} | {theirs / 1e6:.1f} | {planned / theirs:.2f} |", flush=True)


# What the columns of each way to measure are called, and who fills a row in, or several.
PEERS = ["net", "threads", "a step ms", "onnxruntime-training ms", "ours of it", "jax ms", "ours of it", "forward ms", "backward and update of it", "load"]
WAYS = {
    "parts": (["net", "a step ms", "forward ms", "backward ms", "of the forward", "update ms", "of the forward", "load"], split_step),
    "parallel": (["net", "ranks share", "one rank ms", "ranks ms", "times as fast", "processor time of one's", "as fast by that", "the middle half", "load"],
                 compare_ranks),
    "agree": (["net", "weights", "gradients, f64", "first loss", "loss of step 20", "losses, f64", "losses, f32", "our f32 beside jax's f64",
               "jax's f32 beside its f64"], agree),
    "memory": (["net", "planned MB", "jax MB", "ours of it"], compare_memory),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=os.path.abspath)
    parser.add_argument("nets", nargs="*", default=list(NETS))
    parser.add_argument("--onnxruntime")
    parser.add_argument("--jax")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, default=21)
    parser.add_argument("--zero", type=int, nargs="+", choices=[0, 1, 3], help="what ranks share, next to the batch (without it 0 1 3; of one way 3)")
    parser.add_argument("--cluster", help="of which --parallel decides by time")
    for way in WAYS:
        parser.add_argument(f"--{way}", action="store_true")
    options = parser.parse_args()
    options.zero = options.zero or [0, 1, 3]
    for way, (columns, function) in WAYS.items():
        if getattr(options, way):
            break
    else:
        columns, function = PEERS, bench
    print(f"| {' | '.join(columns)} |\n|" + "---|" * len(columns))
    with tempfile.TemporaryDirectory() as folder:
        for name in options.nets:
            function(options, NETS[name](folder), folder)


if __name__ == "__main__":
    main()
