"""How runs of several processes begin and end badly: what launchers say and contradicts itself, other inputs on each rank, signals.

Usage: endings.py BUILD_DIR

Programs are those of test/Unit/Runtime/RunnableSamples.cpp; what they must give is computed here.
"""
import json
import os
import re
import random
import signal
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
from case import HAS_MPI, LIMIT, Case, equal, numbers, weights  # noqa: E402
from network import SECRET, Network  # noqa: E402

# ---------------------------------------------------------------------------------------------------------------------------
# What launchers say

MPIRUN_SAYS = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
WORLDS = {
    "rank-out-of-range": ({"RANK": "4", "WORLD_SIZE": "4"}, "RANK is '4', expected a number from 0 to 3"),
    "rank-alone": ({"RANK": "1", "WORLD_SIZE": None}, "WORLD_SIZE is not set, expected a number from 1 to 2147483646"),
    "world-alone": ({"RANK": None, "WORLD_SIZE": "4"}, "WORLD_SIZE is 4, and RANK is not set"),
    "no-number": ({"RANK": "one", "WORLD_SIZE": "4"}, "RANK is 'one', expected a number from 0 to 3"),
    "negative": ({"RANK": "-1", "WORLD_SIZE": "4"}, "RANK is '-1', expected a number from 0 to 3"),
    "empty": ({"RANK": "", "WORLD_SIZE": "4"}, "RANK is '', expected a number from 0 to 3"),
    "no-world": ({"RANK": "0", "WORLD_SIZE": "0"}, "WORLD_SIZE is '0', expected a number from 1 to 2147483646"),
    "terminal": ({"RANK": "\x1b[2J", "WORLD_SIZE": "4"}, r"""RANK is '"\x1B[2J"', expected a number from 0 to 3"""),
    "two-launchers": ({"RANK": "1", "WORLD_SIZE": "4", **MPIRUN_SAYS}, "mpirun says rank 0 of 2 (OMPI_COMM_WORLD_RANK, "
                      "OMPI_COMM_WORLD_SIZE), torchrun says rank 1 of 4 (RANK, WORLD_SIZE); unset the variables of the one that did not "
                      "start this process"),
    "srun": ({"RANK": None, "WORLD_SIZE": None, "SLURM_STEP_ID": "0", "SLURM_PROCID": "2", "SLURM_NTASKS": "2"},
             "SLURM_PROCID is '2', expected a number from 0 to 1"),
    "pmi": ({"RANK": None, "WORLD_SIZE": None, "PMI_RANK": "0", "PMI_SIZE": "x"}, "PMI_SIZE is 'x', expected a number from 1 to 2147483646"),
}


def world(case, variables, message):
    """Nothing is run, and one line says why; with --ranks threads the user has said what to do."""
    case.save("in.npz", x=numbers((8, 16), 1))
    codes, said = case.finish([case.launch(0, **variables)])
    if codes != [1] or said != [f"cleave-run: error: {message}; --ranks threads runs all ranks in this process\n"]:
        return f"exit codes {codes}: {said}"
    words = ("--inputs", "in.npz", "--outputs", "out.npz", "--ranks", "threads")
    return case.right([case.launch(0, words=words, **variables)])


# ---------------------------------------------------------------------------------------------------------------------------
# Other inputs on each rank

def other_inputs(case, change, message, codes=(1, 1, 1, 1)):
    """Rank 2 has another file: all end with what is wrong, and there are no outputs."""
    case.save("in.npz", x=case.x)
    change(case)
    ranks = [case.launch(rank, words=("--inputs", "other.npz" if rank == 2 else "in.npz", "--outputs", "out.npz"), CLEAVE_SECRET=SECRET)
             for rank in range(4)]
    got, said = case.finish(ranks)
    bad = [text for text in said if not re.fullmatch(f"cleave-run: error: {message}\n", text)]
    return f"exit codes {got}: {bad}" if bad or tuple(got) != codes or os.path.exists(case.path("out.npz")) else None


def one_bit(case):
    x = case.x.copy()
    x.view(np.uint32)[7, 15] ^= 1
    case.save("other.npz", x=x)


DIGEST = "[0-9a-f]{16}"
INPUTS = {
    "one-bit": (one_bit, rf'ranks were given different inputs "x": rank 0: ({DIGEST}), rank 1: \1, rank 2: (?!\1){DIGEST}, rank 3: \1'),
    "shape": (lambda case: case.save("other.npz", x=case.x[:4]), r'rank 2: input "x" is f32\[4, 16\], expected f32\[8, 16\]'),
    "type": (lambda case: case.save("other.npz", x=case.x.astype(np.float64)), r'rank 2: input "x" is f64\[8, 16\], expected f32\[8, 16\]'),
    "name": (lambda case: case.save("other.npz", z=case.x), r'rank 2: the program has no input "z"; its inputs are "x"'),
    # Rank 2 knows by itself.
    "missing": (lambda case: None, r"(rank 2: )?cannot read other.npz: No such file or directory( \(aborted\))?", (4, 4, 1, 4)),
}


def mpi_inputs(case):
    """The same under mpirun."""
    case.save("in.npz", x=case.x)
    one_bit(case)
    code, text = case.script(f'exec {case.build}/bin/cleave-run tensor-parallel.cleave --outputs out.npz --inputs '
                             '$([ "$OMPI_COMM_WORLD_RANK" = 2 ] && echo other || echo in).npz', 4)
    bad = code in (0, None) or 'ranks were given different inputs "x": rank 0: ' not in text or os.path.exists(case.path("out.npz"))
    return f"exit code {code}: {text}" if bad else None


def traced(case):
    """torchrun's ranks: rank 0's files hold what all did, as those of threads do. (--local and mpirun: the suite `cleave-run`.)"""
    words = ("--inputs", "in.npz", "--outputs", "out.npz", "--repeat", "3", "--trace", "t.json", "--report", "r.json", "--profile")
    ranks = [case.launch(rank, words=words, CLEAVE_SECRET=SECRET) for rank in range(4)]
    codes, said = case.finish(ranks)
    if any(codes) or (problem := equal(case.path("out.npz"), y=case.x @ weights(case) + 3, z=2 * case.x + 5)):
        return f"exit codes {codes}: {said}"
    with open(case.path("t.json")) as file:
        events = json.load(file)["traceEvents"]
    # Whether anything is there to move on between commands is a matter of time.
    done = {(event["pid"], event["name"]) for event in events if event["ph"] == "X" and not event["name"].startswith("advance ")}
    if {rank for rank, _ in done} != set(range(4)) or len({name for _, name in done}) * 4 != len(done):
        return f"events {sorted(done)}"
    # Ranks wait for each other in the sum, so the clocks of their events agree but for the time of a message.
    ends = {event["pid"]: event["ts"] + event["dur"] for event in events if event["name"] == "finish all_reduce"}
    if len(ends) != 4 or max(ends.values()) - min(ends.values()) > 1e6:
        return f"sums end at {ends}"
    return None if re.search(r" 12  launch\n", said[0]) and not any(said[1:]) else f"profile {said}"


# ---------------------------------------------------------------------------------------------------------------------------
# Signals

def write_much(case, number, seed):
    """`cleave` is ended at any moment while it writes a large file over an older one: that stays, and nothing lies beside it."""
    draw = random.Random(seed)
    with open(case.path("m.cleave"), "w") as file:
        file.write("older")
    size = int(60e6)
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    weight = np.random.default_rng(seed).normal(size=size // 4).astype(np.float32)
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "large",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [size // 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [size // 4])], [numpy_helper.from_array(weight, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), case.path("m.onnx"))
    command = [f"{case.build}/bin/cleave", "compile", case.path("m.onnx"), "--embed-weights", "--quiet", "-o", case.path("m.cleave")]
    before, codes = sorted(os.listdir(case.folder)), set()
    for _ in range(4):
        process = subprocess.Popen(command, cwd=case.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not catches(process.pid, number):
            time.sleep(0.005)
        time.sleep(draw.uniform(0, 0.5))
        process.send_signal(number)
        codes.add(process.wait(LIMIT))
        left = sorted(os.listdir(case.folder))
        if left != before:
            return f"files {left}"
        if 5 != os.path.getsize(case.path("m.cleave")) < size:
            return "the file is cut off"
    # It may have been done before.
    return None if codes <= {0, 128 + number} and 128 + number in codes else f"exit codes {codes}"


def catches(process, number):
    """Whether a process has a handler for a signal by now."""
    with open(f"/proc/{process}/status") as file:
        caught = re.search(r"^SigCgt:\s+(\w+)$", file.read(), re.M)
    return bool(caught) and int(caught[1], 16) >> (number - 1) & 1


def twice(case, words, ranks):
    """A second Ctrl-C ends all at once, though a kernel hangs."""
    process = case.start("endless.cleave", *words, "--outputs", "out.npz")
    time.sleep(1.5)
    began = time.time()
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    code, text = case.wait(process)
    seconds = time.time() - began
    bad = code != 130 or seconds > 1.5 or case.left() or os.path.exists(case.path("out.npz"))
    return f"exit code {code} after {seconds:.1f} s, left {case.left()}: {text}" if bad else None


def main():
    # Under nohup the one is ignored, behind & of a script the other, and so by all that is started here.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    build, names, _ = harness.arguments()
    cases = {f"world-{name}": (Network, world, *row) for name, row in WORLDS.items()}
    cases |= {f"inputs-{name}": (Network, other_inputs, *row) for name, row in INPUTS.items()}
    cases |= {f"write-{name}": (Case, write_much, getattr(signal, name), 7) for name in ("SIGINT", "SIGTERM", "SIGHUP")}
    cases |= {"twice-threads": (Case, twice, [], 0), "twice-local": (Case, twice, ["--local"], 2), "traced": (Network, traced)}
    if HAS_MPI:
        cases["inputs-mpi"] = (Network, mpi_inputs)

    def problem(row):
        with row[0](build) as case:
            return row[1](case, *row[2:])

    return harness.run(harness.select(cases, names), problem)


if __name__ == "__main__":
    sys.exit(main())
