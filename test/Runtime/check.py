"""Ranks as processes: the conformance suite under mpirun, and what happens when a process does not play along.

Usage: check.py BUILD_DIR [--tcp]

With --tcp without MPI: processes that this script starts itself find each other by a file.

Every fault must end all ranks in time, with one and the same failure of all that speak, which names the rank, the
operation and the cause, an exit code other than 0, a whole flight recorder, and no process left.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
from case import MPI_ENVIRONMENT  # noqa: E402

# (mesh, scope, operations and elements that each rank compares)
CONFORMANCE = [
    ("1", "brief", 415, 781308),
    ("2", "large", 1606, 4416252),
    ("2x2", "full", 2305, 3911296),
    ("2x3", "brief", 1117, 4261647),
    ("8", "brief", 415, 4847722),
]
SEEDS = [0, 1]
SUM = r"all_reduce sum f32\[4096\], number 2 in group 0 \{0, 1, 2, 3\}: "
LAST = r"; the last that it came to is all_gather f32\[64\], number 1 in group 0 \{0, 1, 2, 3\} "
# What rank 2 of 4 (or the hub of all watches, rank 0) does, what others must say, and who must at least have said it.
FAULTS = [
    ("stop", 2, r"rank 0: .*: rank 2 has given no sign of life for 1\S* s.* \(stopped\)", 1),
    ("stop", 0, r"rank [123]: .*: rank 0 has given no sign of life for 1\S* s \(stopped\)", 1),
    ("kill", 2, r"rank 0: .*: the process of rank 2 is gone.* \(died\)", 0),
    ("exit", 2, r"rank 0: .*: the process of rank 2 is gone.* \(died\)", 0),
    ("leave", 2, rf"rank [013]: {SUM}rank 2 has left{LAST}\(left\)", 1),
    ("leave", 0, rf"rank [123]: {SUM}rank 0 has left.* \(left\)", 1),
    ("late", 2, rf"rank [013]: {SUM}rank 2 did not come within 1.5 s{LAST}\(timeout\)", 1),
    ("fail", 2, r"rank 2: kernel softmax of node /enc/Softmax found a NaN \(aborted\)", 1),
    ("kind", 2, rf"rank ([013]: {SUM}rank 2 called barrier instead|2: barrier, .* rank [013] called all_reduce sum "
                r"f32\[4096\] instead) \(mismatch\)", 1),
    ("count", 2, r"rank [0-3]: .*called all_reduce sum f32\[(100|4096)\] instead \(mismatch\)", 1),
]
# Start of four processes, 1.5 s until a fault is found (and not much more until a process is known to be gone), 2 s until
# all have ended, and a busy machine.
LIMIT = 12


TCP = "--tcp" in sys.argv


def start(build, ranks, *arguments, limit=120):
    """(exit code, output) of `ranks` processes; what has not ended after `limit` seconds is ended, and has no code."""
    if TCP:
        return start_all(build, ranks, *arguments, limit=limit)
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), f"{build}/bin/MpiRanks", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               env=MPI_ENVIRONMENT)
    try:
        output = process.communicate(timeout=limit)[0]
        return process.returncode, output
    except subprocess.TimeoutExpired:
        process.kill()
        return None, process.communicate()[0]


def start_all(build, ranks, *arguments, limit):
    """The same by hand. As launchers do, those that are left two seconds after the first one failed are killed."""
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(folder, "said"), "w+") as said:
        place = {"CLEAVE_RENDEZVOUS": f"file:{folder}/rank-0", "CLEAVE_RANKS": str(ranks)}
        processes = [subprocess.Popen([f"{build}/bin/TcpRanks", *arguments], stdout=said, stderr=said,
                                      env={**os.environ, **place, "CLEAVE_RANK": str(rank)}) for rank in range(ranks)]
        began, failed = time.time(), None
        while any(process.poll() is None for process in processes):
            if failed is None and any(process.poll() for process in processes):
                failed = time.time()
            if time.time() - began > limit or (failed and time.time() - failed > 2.5):
                for process in processes:
                    process.kill()
            time.sleep(0.01)
        codes = [process.returncode for process in processes]
        said.seek(0)
        left = os.path.exists(f"{folder}/rank-0")
        code = None if time.time() - began > limit or left else next((code for code in codes if code), 0)
        return code, said.read() + ("the file of the rendezvous is left\n" if left else "")


def find_processes(word):
    """Processes, but for those that have ended, with `word` on their command line."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                if word.encode() in file.read():
                    found.append(process)
        except OSError:
            pass
    return found


def conform(build, mesh, scope, operations, elements):
    """Each rank compares as much as it should, nothing is wrong, and delays do not change a bit."""
    ranks, outputs = eval(mesh.replace("x", "*")), set()
    for seed in SEEDS if scope == "brief" else SEEDS[-1:]:
        code, text = start(build, ranks, "conformance", mesh, scope, str(seed))
        tallies = re.findall(r"^TALLY (\d+) (\d+) (\d+) (\d+) (\w+)$", text, re.M)
        expected = [(str(rank), str(operations), str(elements), "0") for rank in range(ranks)]
        if code != 0 or sorted(tally[:4] for tally in tallies) != expected:
            return f"exit code {code}, expected {operations} operations and {elements} elements of each rank\n{text}"
        outputs.add(tuple(sorted(tallies)))
    return None if len(outputs) == 1 else f"{len(outputs)} different outputs in runs with other delays"


def fail(build, name, culprit, message, least):
    with tempfile.TemporaryDirectory() as folder:
        began = time.time()
        code, text = start(build, 4, "fault", name, str(culprit), folder, limit=LIMIT)
        seconds = time.time() - began
        # mpirun may return a moment before those that it has ended.
        while (left := find_processes(folder)) and time.time() < began + LIMIT:
            time.sleep(0.05)
        failures = re.findall(r"^FAILURE (.*)$", text, re.M)
        record = os.path.join(folder, "flight-recorder.txt")
        # Who was stopped and goes on speaks for itself. The hub's record is then its own, too.
        said = {line for line in failures if not line.startswith(f"rank {culprit}: ") or re.fullmatch(message, line)}
        wrong = [line for line in said if not re.fullmatch(message, line)]
        problems = [
            (code in (None, 0), f"exit code {code} after {seconds:.1f} s"),
            (left, f"processes {left} are left"),
            (wrong, f"unexpected: {wrong}"),
            (len(failures) < least, "nobody says what failed"),
            (culprit != 0 and len(said) > 1, f"ranks differ: {said}"),
            (culprit != 0 and least and not os.path.exists(record), "no flight recorder"),
            (any(".txt." in file for file in os.listdir(folder)), "a half-written record is left"),
        ]
        if culprit != 0 and os.path.exists(record):
            with open(record) as file:
                kept = file.read()
            problems.append((not re.match(message, kept), f"the record begins with {kept[:200]}"))
            problems.append((not all(f"\nrank {rank}" in kept for rank in range(4)), "the record lacks ranks"))
        return "; ".join(text for bad, text in problems if bad) + f"\n{text}" if any(bad for bad, _ in problems) else None


def disagree(build):
    """A launcher that MPI does not know of: one line, no hang."""
    environment = {**os.environ, "RANK": "1", "WORLD_SIZE": "4"}
    done = subprocess.run([f"{build}/bin/MpiRanks", "conformance", "4", "brief", "0"], env=environment, text=True,
                          capture_output=True, timeout=LIMIT)
    if done.returncode != 3 or "torchrun started rank 1 of 4, but MPI says 0 of 1" not in done.stdout:
        return f"exit code {done.returncode}: {done.stdout}{done.stderr}"
    return None


def main():
    build, names, _ = harness.arguments("--tcp")
    if not TCP and (not os.path.exists(f"{build}/bin/MpiRanks") or not shutil.which("mpirun")):
        print("skipped: built or installed without MPI (scripts/bootstrap installs libopenmpi-dev and openmpi-bin, if it can)")
        print("0 passed, 0 failed")
        return 0
    cases = {} if TCP else {"launcher": (disagree,)}
    cases |= {f"conformance-{row[0]}": (conform, *row) for row in CONFORMANCE}
    cases |= {f"{row[0]}-{row[1]}": (fail, *row) for row in FAULTS}
    return harness.run(harness.select(cases, names), lambda case: case[0](build, *case[1:]))


if __name__ == "__main__":
    sys.exit(main())
