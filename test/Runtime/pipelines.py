"""Programs of pipelines: every schedule of messages, mesh and kind of ranks, against numpy; and functions with mistakes.

Usage: pipelines.py BUILD_DIR [NAME...]

Functions of ranks come from stages.py, which knows nothing of how they are lowered. A program runs five times, by threads, by processes that
speak TCP or MPI: all calls have to be right, and the last ones' outputs are the same bits. A mistake in what ranks send each other (a message
dropped, sent to another rank, of another type, two in another order, ranks that wait for each other) is found before anything runs.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
import stages
from stages import Stack

PROGRAMS = {
    "stage=2": Stack({"stage": 2}, 4, 2),
    "one microbatch": Stack({"stage": 2}, 1, 2),
    "stage=4": Stack({"stage": 4}, 5, 4),
    "stage=2,data=2,model=2": Stack({"stage": 2, "data": 2, "model": 2}, 3, 2),
    "data=2,stage=2,model=2": Stack({"data": 2, "stage": 2, "model": 2}, 3, 2),
    "model=2,stage=3": Stack({"model": 2, "stage": 3}, 4, 3),
    "stage=3,model=2": Stack({"stage": 3, "model": 2}, 3, 3),
    "circular, stage=2": Stack({"stage": 2}, 4, 4),
    "circular, stage=2, 3 chunks": Stack({"stage": 2}, 6, 6),
    "circular, stage=3, a part of a round": Stack({"stage": 3}, 5, 6),
    "circular, stage=2,data=2,model=2": Stack({"stage": 2, "data": 2, "model": 2}, 4, 4),
    "stage=3, one row more in two of four": Stack({"stage": 3}, 4, 3, rows=1, more=2),
    "circular, stage=2,data=2,model=2, one row more in one of three": Stack({"stage": 2, "data": 2, "model": 2}, 3, 4, more=1),
    # Messages above what thread ranks copy when they are posted.
    "large": Stack({"stage": 2, "model": 2}, 3, 4, width=128, inner=64, rows=32),
}
RANKS = {"threads": ["--ranks", "threads"], "tcp": ["--local"]}
# More processes take long to start.
MOST_PROCESSES = 6


def run_program(build, stack, launcher):
    """What is wrong, or an empty string."""
    with tempfile.TemporaryDirectory() as folder:
        program, error = stages.lower(build, stages.write(stack), folder)
        if error:
            return error[:500]
        x = np.random.default_rng(7).standard_normal((stack.batch, stack.width)).astype("f4")
        inputs, outputs = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
        np.savez(inputs, x=x)
        how = RANKS.get(launcher, [])
        ranks = np.prod(list(stack.mesh.values()))
        start = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)] if launcher == "mpi" else []
        results = []
        for repeat in ("0", "4"):
            done = subprocess.run([*start, f"{build}/bin/cleave-run", program, "--inputs", inputs, "--outputs", outputs, "--repeat",
                                   repeat, "--deadline", "30", *how], capture_output=True, text=True)
            if done.returncode:
                return f"exit {done.returncode}: {done.stderr[:500]}"
            results.append(np.load(outputs)["y"])
        if results[0].tobytes() != results[1].tobytes():
            return "the fifth call gives other bits than the first"
        return harness.difference({"y": results[0]}, {"out:y": stack.compute(x)}, 1e-5, 1e-5)


def edit(text, *edits):
    """`text` with each (pattern, replacement) done once; it must be there."""
    for pattern, replacement in edits:
        text, count = re.subn(pattern, replacement, text, count=1, flags=re.S)
        assert count == 1, pattern
    return text


SEND, RECEIVE = r"    pipe\.send [^\n]*\n", r"    %\w+ = pipe\.recv [^\n]*\n"


def advance(text, moved, before):
    """The first line of one pattern comes to stand in front of the first of another one."""
    line = re.search(moved, text)
    text = text[:line.start()] + text[line.end():]
    start = re.search(before, text).start()
    return text[:start] + line[0] + text[start:]


def mistakes():
    """name -> (module, what the error says)."""
    two, ring = stages.write(Stack({"stage": 2}, 3, 2)), stages.write(Stack({"stage": 2}, 1, 4, has_skip=False))
    three = stages.write(Stack({"stage": 3}, 2, 3, has_skip=False))
    yield "send dropped", edit(two, (SEND, "")), "(M7)"
    yield "send to another rank", edit(three, (r"to 1 channel 0", "to 2 channel 0")), "(M7)"
    yield "receive from another rank", edit(three, (r"recv from 1", "recv from 0")), "(M7)"
    yield "another microbatch", edit(two, (r"to 1 channel 0 microbatch 0", "to 1 channel 0 microbatch 1")), "(M7)"
    yield "two messages exchanged", advance(two, r"    %\w+ = pipe\.recv from 0 channel 0 microbatch 1[^\n]*\n", RECEIVE), "(M7)"
    yield "half of the bytes", edit(two, (r"(%v1 = nn\.slice %x starts \[0, 0\] sizes \[2, 16\][^\n]*\n)",
                                          r"\1    %part = nn.slice %x starts [0, 0] sizes [1, 16] steps [1, 1] : (tensor<6x16xf32>) -> tensor<1x16xf32>\n"),
                                    (r"pipe\.send %v\d+ to 1 channel 0 microbatch 0 : tensor<2x16xf32>",
                                     "pipe.send %part to 1 channel 0 microbatch 0 : tensor<1x16xf32>")), "(M7)"
    # What each rank sends is what the other receives, in order: but rank 0 waits for what is made of its own message.
    yield "ranks that wait for each other", advance(ring, RECEIVE, SEND), "(P32)"


def refuse(build, text, expected):
    with tempfile.TemporaryDirectory() as folder:
        program, error = stages.lower(build, text, folder)
    return "" if program is None and expected in error else f"expected {expected}, got {error[:300] or 'a program'}"


def main():
    build, wanted, _ = harness.arguments()
    cases = {}
    for name, stack in PROGRAMS.items():
        launchers = ["threads", *["tcp", *["mpi"] * bool(shutil.which("mpirun"))] * int(np.prod(list(stack.mesh.values())) <= MOST_PROCESSES)]
        for launcher in launchers:
            cases[f"{name} by {launcher}"] = lambda stack=stack, launcher=launcher: run_program(build, stack, launcher)
    for name, text, expected in mistakes():
        cases[name] = lambda text=text, expected=expected: refuse(build, text, expected)
    return harness.run(harness.select(cases, wanted), lambda case: case())


if __name__ == "__main__":
    sys.exit(main())
