"""`cleave-run`: programs from files, as threads and under mpirun, and every way in which that can end badly.

Usage: run.py BUILD_DIR

Programs are those of test/Unit/Runtime/RunnableSamples.cpp; what they must give is computed here, by numpy. A fault must end
all ranks in time, say what is wrong in one line a rank, and leave nothing half-written and no process behind.
"""
import glob
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import check  # noqa: E402
import harness  # noqa: E402

# No test may find a driver.
os.environ["CLEAVE_CUDA_LIBRARY"] = "/nowhere/libcuda.so"
from case import HAS_MPI, LIMIT, Case, equal, numbers, weights  # noqa: E402

# ---------------------------------------------------------------------------------------------------------------------------
# What comes out

def parallel(case, ranks):
    x = numbers((8, 16), 1)
    case.save("in.npz", x=x)
    code, text = case.run("tensor-parallel.cleave", "--inputs", "in.npz", "--outputs", "out.npz", "--repeat", "3",
                          "--report", "report.json", "--trace", "trace.json", "--profile", ranks=ranks)
    if code != 0:
        return f"exit code {code}\n{text}"
    if problem := equal(case.path("out.npz"), y=x @ weights(case) + 3, z=2 * x + 5):
        return problem
    with open(case.path("report.json")) as file:
        report = json.load(file)
    runs = report.pop("runs")
    if len(runs) != 3 or not all(0 < seconds < LIMIT for seconds in runs) or not 0 < report.pop("load_seconds") < LIMIT:
        return f"seconds {runs}"
    # All ranks of threads, and on rank 0 of processes those of all of these.
    peak = 128 + 512 + 128 + 1536 + 512
    if report != {"version": 1, "ranks": 4, "peak_bytes_per_rank": peak, "peak_bytes_of_ranks": [peak] * 4}:
        return f"report {report}"
    with open(case.path("trace.json")) as file:
        events = json.load(file)["traceEvents"]
    tracks = {(event["pid"], event["tid"]) for event in events if event["name"] != "process_name"}
    # Whether anything is there to move on between commands is a matter of time.
    done = [event for event in events if event["ph"] == "X" and not event["name"].startswith("advance ")]
    names = {(event["name"], event["args"]["node"]) for event in done if event["cat"] != "launch"}
    if tracks != {(rank, 4 + 4 * stream + rank) for rank in range(4) for stream in (0, 1)}:
        return f"tracks {tracks}"
    if names != {("test_matmul", "/fc/MatMul"), ("test_affine", "/side"), ("all_reduce", "/fc/MatMul"),
                 ("finish all_reduce", "/fc/MatMul"), ("test_add", "/fc/Add")}:
        return f"events {names}"
    # The sum is under way beside a kernel: begun before it, waited for behind it.
    for rank in range(4):
        began = {event["name"]: event["ts"] for event in done if event["pid"] == rank}
        if not began["all_reduce"] < began["test_affine"] < began["finish all_reduce"]:
            return f"rank {rank}: {began}"
    if not re.search(r"[\d.]+ +[\d.]+% +" + str(3 * 4) + r"  launch\n", text) or "/fc/MatMul" not in text:
        return f"profile\n{text}"
    return None


def state(case, ranks):
    """Three calls of an accumulator; its state goes on from call to call."""
    x = numbers((2, 8), 2)
    case.save("in.npz", x=x)
    code, text = case.run("accumulator.cleave", "--inputs=in.npz", "--outputs=out.npz", "--repeat=2", ranks=ranks)
    return equal(case.path("out.npz"), y=3 * x) if code == 0 else f"exit code {code}\n{text}"


def stages(case, ranks):
    x = numbers((4, 8), 3)
    case.save("in.npz", x=x)
    code, text = case.run("stages.cleave", "--inputs", "in.npz", "--outputs", "out.npz", "--repeat", "5", ranks=ranks)
    return equal(case.path("out.npz"), y=4 * x + 4) if code == 0 else f"exit code {code}\n{text}"


def zeros(case):
    """Without inputs zeros are taken, and without a file outputs are told."""
    code, text = case.run("variants.cleave")
    return None if (code, text) == (0, "y  f32[2, 8]\n") else f"exit code {code}\n{text}"


def help_text(case):
    code, text = case.run("chain.cleave", "--help")
    words = ["--inputs FILE.npz", "--ranks WHERE", "--local", "--rendezvous WHERE", "--record DIR", "Exit codes: "]
    return None if code == 0 and all(word in text for word in words) else f"exit code {code}\n{text}"


# ---------------------------------------------------------------------------------------------------------------------------
# What is refused

def refused(case, program, words, message, code=1):
    """One line, the exit code, and no outputs."""
    case.save("in.npz", x=np.zeros((4, 8), np.float32))
    case.save("wrong-shape.npz", x=np.zeros((4, 9), np.float32))
    case.save("wrong-type.npz", x=np.zeros((4, 8), np.int32))
    case.save("wrong-name.npz", z=np.zeros((4, 8), np.float32))
    case.save("parallel.npz", x=np.zeros((8, 16), np.float32))
    for name, text in (("damaged.cleave", b"\x20\0\0\0 not a program at all.."), ("empty.cleave", b""), ("no.npz", b"PK no zip")):
        with open(case.path(name), "wb") as file:
            file.write(text)
    got, text = case.run(program, *words)
    if got != code or not re.fullmatch(f"cleave-run: error: {message}\n", text) or os.path.exists(case.path("out.npz")):
        return f"exit code {got}, expected {code}: {text}"
    return None


IN_OUT = ["--inputs", "in.npz", "--outputs", "out.npz"]
REFUSED = {
    "missing-program": ("none.cleave", [], r"cannot read .*none.cleave: No such file or directory"),
    "damaged-program": ("damaged.cleave", [], r'cannot run ".*damaged.cleave": .*\(P1\)'),
    "empty-program": ("empty.cleave", [], r'cannot run ".*empty.cleave": .*\(P1\)'),
    "folder": (".", [], r"cannot read .*: it is not a regular file"),
    "other-machine": ("foreign.cleave", [], r'the program has no code for this machine: .* this processor has no "quantum"'),
    "no-gpu": ("gpu.cleave", [], r"no CUDA driver \(12 or later\) found; tried /nowhere/libcuda.so"),
    "too-little-memory": ("huge.cleave", [], r"the program needs 70368744178\d+ bytes of memory on this machine, \d+ are free"),
    "missing-inputs": ("chain.cleave", ["--inputs", "none.npz"], r"cannot read none.npz: No such file or directory"),
    "no-archive": ("chain.cleave", ["--inputs", "no.npz"], r"cannot read no.npz: not a zip archive"),
    "wrong-shape": ("chain.cleave", ["--inputs", "wrong-shape.npz"], r'input "x" is f32\[4, 9\], expected f32\[4, 8\]'),
    "wrong-type": ("chain.cleave", ["--inputs", "wrong-type.npz"], r'input "x" is i32\[4, 8\], expected f32\[4, 8\]'),
    "wrong-name": ("chain.cleave", ["--inputs", "wrong-name.npz"], r'the program has no input "z"; its inputs are "x"'),
    "missing-weights": ("tensor-parallel.cleave", ["--weights", "/nowhere"],
                        r'cannot open the file of weights "weights.bin": No such file or directory \(tried "/nowhere/weights.bin"; .*'),
    "read-only-output": ("chain.cleave", ["--inputs", "in.npz", "--outputs", "/proc/out.npz"], r"cannot write /proc/out.npz: .*"),
    "disk-full": ("chain.cleave", ["--inputs", "in.npz", "--outputs", "/dev/full"], r"cannot write /dev/full: No space left on device"),
    "unknown-option": ("chain.cleave", ["--nothing"], r"unknown option '--nothing'; --help lists them", 2),
    "two-programs": ("chain.cleave", ["b.cleave"], r"there are two programs, .*", 2),
    "no-value": ("chain.cleave", ["--inputs"], r"'--inputs' needs a value, FILE.npz", 2),
    "bad-number": ("chain.cleave", ["--repeat", "x"], r"'--repeat' is 'x', expected a number of calls", 2),
    "bad-ranks": ("chain.cleave", ["--ranks", "gpus"], r"'--ranks' is 'gpus', expected threads, mpi or tcp", 2),
    "no-flag-value": ("chain.cleave", ["--local=3"], r"'--local' takes no value", 2),
    "empty-profile": ("chain.cleave", ["--profile="], r"'--profile' is empty", 2),
}


def weights_changed(case, change, message):
    change(case.path("weights.bin"))
    code, text = case.run("tensor-parallel.cleave", "--outputs", "out.npz")
    bad = code != 1 or not re.fullmatch(f"cleave-run: error: {message}\n", text) or os.path.exists(case.path("out.npz"))
    return f"exit code {code}: {text}" if bad else None


def write_fails(case):
    """No room for the outputs: the older file stays what it was, and nothing lies beside it."""
    with open(case.path("out.npz"), "w") as file:
        file.write("older")
    before = sorted(os.listdir(case.folder))

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
    process = case.start("large.cleave", "--outputs", "out.npz", preexec_fn=limit)
    code, text = case.wait(process)
    with open(case.path("out.npz")) as file:
        kept = file.read()
    if code != 1 or text != "cleave-run: error: cannot write out.npz: File too large\n" or kept != "older":
        return f"exit code {code}: {text}"
    left = sorted(os.listdir(case.folder))
    return None if left == before else f"files {left}"


def flip(path):
    with open(path, "r+b") as file:
        file.seek(64 + 5)
        byte = file.read(1)[0]
        file.seek(64 + 5)
        file.write(bytes([byte ^ 4]))


def shorten(path):
    os.truncate(path, os.path.getsize(path) - 10)


# ---------------------------------------------------------------------------------------------------------------------------
# What fails while it runs

def fault(case, program, words, message, ranks, code=4, least=0.0):
    """All ranks end in time with the failure of the first; the record is whole, and holds the commands of all."""
    began = time.time()
    got, text = case.run(program, "--outputs", "out.npz", "--record", "record", *words, ranks=ranks)
    seconds = time.time() - began
    lines = re.findall(r"^cleave-run: error: (.*)$", text, re.M)
    said = set(lines)
    record = case.path("record/flight-recorder.txt")
    problems = [(got != code, f"exit code {got}, expected {code}"),
                (seconds < least, f"{seconds:.1f} s"),
                (not lines, "nobody says what failed"),
                (any(not re.fullmatch(message, line) for line in said), f"unexpected: {said}"),
                (len(said) > 1, f"ranks differ: {said}"),
                (os.path.exists(case.path("out.npz")), "outputs were written"),
                (case.left(), "processes are left")]
    if os.path.exists(record):
        with open(record) as file:
            kept = file.read()
        problems.append((not re.match(message, kept), f"the record begins with {kept[:200]}"))
        problems.append((len(re.findall(r"^rank \d", kept, re.M)) != 1 + 2 or "command 0, launch" not in kept,
                         f"the record lacks ranks or commands:\n{kept}"))
    else:
        problems.append((True, "no flight recorder"))
    wrong = "; ".join(text for bad, text in problems if bad)
    return f"{wrong}\n{text}" if wrong else None


AT_SUM = r'rank 0: all_reduce sum f32\[1\], number 1 in group 1 \{0, 1\}, at command 1, all_reduce, of node "/sum": '
# Threads give no sign of life while they are late, and either is said.
LATE = r'rank 1 (did not come within 1 s|has given no sign of life for 1\S* s).*\((timeout|stopped)\)'
FAULTS = {
    "segv": ("segv.cleave", [], r'rank 1: command 0, launch test_crash, of node "/bad": the kernel ended with SIGSEGV at 0x10 \(aborted\)'),
    "fpe": ("fpe.cleave", [], r'rank 1: command 0, launch test_crash, of node "/bad": the kernel ended with SIGFPE at 0x\w+ \(aborted\)'),
    "ill": ("ill.cleave", [], r'rank 1: command 0, launch test_crash, of node "/bad": the kernel ended with SIGILL at 0x\w+ \(aborted\)'),
    "abort": ("abort.cleave", [], r'rank 1: command 0, launch test_crash, of node "/bad": the kernel ended with SIGABRT \(aborted\)'),
    "nan": ("nan.cleave", ["--find-nan"], r'rank 1: command 0, launch test_nan, of node "/bad": its result has a NaN \(aborted\)'),
    "late": ("sleep.cleave", ["--deadline", "1"], AT_SUM + LATE),
    "endless": ("endless.cleave", ["--deadline", "1"], AT_SUM + LATE),
}


def interrupted(case, ranks, number, *words):
    """A signal ends all ranks within two seconds."""
    process = case.start("sleep.cleave", *words, "--outputs", "out.npz", ranks=ranks)
    time.sleep(1.5 if ranks else 0.5)
    began = time.time()
    process.send_signal(number)
    code, text = case.wait(process)
    seconds = time.time() - began
    name = signal.Signals(number).name
    if ranks:
        bad = code in (0, None) or seconds > 8
    else:
        bad = code != 128 + number or seconds > 4 or f"interrupted by {name}" not in text
    if bad or case.left() or os.path.exists(case.path("out.npz")):
        return f"exit code {code} after {seconds:.1f} s: {text}"
    return None


def gone(case, number):
    """Another rank's process is killed or stopped while all wait for it."""
    process = case.start("sleep.cleave", "--silence", "1", "--outputs", "out.npz", ranks=2)
    time.sleep(2)
    children = subprocess.run(["pgrep", "-P", str(process.pid)], stdout=subprocess.PIPE, text=True).stdout.split()
    if len(children) != 2:
        process.kill()
        return f"ranks {children}"
    os.kill(int(children[1]), number)
    code, text = case.wait(process)
    if number == signal.SIGSTOP and os.path.exists(f"/proc/{children[1]}"):
        os.kill(int(children[1]), signal.SIGKILL)
    said = "rank [01] has given no sign of life" if number == signal.SIGSTOP else "the process of rank [01] is gone|Killed|signal 9"
    if code in (0, None) or not re.search(said, text) or case.left() or os.path.exists(case.path("out.npz")):
        return f"exit code {code}: {text}"
    return None


def orphaned(case):
    """The launcher is killed: its ranks end by themselves."""
    process = case.start("sleep.cleave", "--outputs", "out.npz", ranks=2)
    time.sleep(2)
    process.kill()
    process.communicate()
    return "processes are left" if case.left() or os.path.exists(case.path("out.npz")) else None


def abandoned(case):
    """The parent of a process that MPI started alone is killed: so it would be with a launcher that ends nobody."""
    command = " ".join(case.command("nap.cleave", "--ranks", "mpi", "--outputs", "out.npz"))
    process = subprocess.Popen(["sh", "-c", f"{command} 2> said & wait"], cwd=case.folder)
    time.sleep(2)
    process.kill()
    process.communicate()
    left = case.left()
    with open(case.path("said")) as file:
        said = file.read()
    return f"processes {left}: {said}" if left or "the launcher is gone" not in said else None


def local(case, name):
    """Processes that cleave-run starts itself, on the host: without MPI, the same outputs and the same failures."""
    start = case.start
    case.start = lambda program, *words, ranks=0, **options: start(program, "--local", *words, **options)
    if name in FAULTS:
        return fault(case, *FAULTS[name], 0)
    return {"parallel": parallel, "stages": stages, "state": state}[name](case, 1)


def world(case):
    """Too few processes for the program."""
    code, text = case.run("tensor-parallel.cleave", ranks=2)
    if code in (0, None) or "the program is for 4 ranks, the launcher started 2" not in text:
        return f"exit code {code}: {text}"
    return None


# What each launcher sets, from what mpirun says.
SRUN = {"SLURM_PROCID": "$OMPI_COMM_WORLD_RANK", "SLURM_NTASKS": "$OMPI_COMM_WORLD_SIZE", "SLURM_STEP_ID": "0",
        "SLURM_LOCALID": "$OMPI_COMM_WORLD_LOCAL_RANK"}
TORCHRUN = {"RANK": "$OMPI_COMM_WORLD_RANK", "WORLD_SIZE": "$OMPI_COMM_WORLD_SIZE", "LOCAL_RANK": "$OMPI_COMM_WORLD_LOCAL_RANK",
            "MASTER_ADDR": "localhost", "MASTER_PORT": "29500", "CLEAVE_SECRET": "00112233445566778899aabbccddeeff"}


def like(case, variables):
    """As srun and torchrun start processes, as far as there is neither: MPI finds its ranks, and mpirun's variables are gone."""
    script = "; ".join([*(f"export {name}={value}" for name, value in variables.items()),
                        "unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK",
                        f"exec {case.build}/bin/cleave-run tensor-parallel.cleave --inputs in.npz --outputs out.npz"])
    x = numbers((8, 16), 4)
    case.save("in.npz", x=x)
    code, text = case.script(script, 4)
    return equal(case.path("out.npz"), y=x @ weights(case) + 3, z=2 * x + 5) if code == 0 else f"exit code {code}: {text}"


def unlike(case, variables, launcher):
    """A launcher that MPI does not know of: one line, and no wait for others."""
    process = case.start("tensor-parallel.cleave", "--ranks", "mpi", "--outputs", "out.npz", env={**os.environ, **variables})
    code, text = case.wait(process)
    want = f"cleave-run: error: rank 1: {launcher} started rank 1 of 4, but MPI says 0 of 1; is it a launcher of this MPI"
    return None if code == 4 and text.startswith(want) and text.count("\n") == 1 else f"exit code {code}: {text}"


def never_started(case):
    """Rank 1 never comes to MPI, which would wait for it for ever."""
    began = time.time()
    code, text = case.script('[ "$OMPI_COMM_WORLD_RANK" = 1 ] && exec sleep 60; '
                             f"exec {case.build}/bin/cleave-run nap.cleave --ranks mpi --deadline 2 --outputs out.npz", 2)
    seconds = time.time() - began
    if code in (0, None) or not 2 < seconds < LIMIT or "rank 0: not all ranks have started MPI (timeout)" not in text or case.left():
        return f"exit code {code} after {seconds:.1f} s: {text}"
    return None


def different(case):
    """Rank 1 opens another program than the rest."""
    code, text = case.script(
        f'exec {case.build}/bin/cleave-run $([ "$OMPI_COMM_WORLD_RANK" = 1 ] && echo other || echo tensor-parallel).cleave', 4)
    table = re.search(r"ranks have different programs: rank 0: (\w{16}), rank 1: (\w{16}), rank 2: (\w{16}), rank 3: (\w{16})", text)
    if code in (0, None) or not table or table[1] == table[2] or table[1] != table[3]:
        return f"exit code {code}: {text}"
    return None


def missing_on_one(case):
    """The weights are missing on one rank: all say so."""
    code, text = case.script(f'exec {case.build}/bin/cleave-run tensor-parallel.cleave '
                             '$([ "$OMPI_COMM_WORLD_RANK" = 2 ] && echo --weights /nowhere)', 4)
    if code in (0, None) or "cannot open the file of weights" not in text or case.left():
        return f"exit code {code}: {text}"
    return None


def no_mpi_library(case):
    """One line that says what is missing."""
    environment = {**os.environ, "CLEAVE_MPI_LIBRARY": "/nowhere/libcleave_mpi.so"}
    process = case.start("chain.cleave", "--ranks", "mpi", env=environment)
    code, text = case.wait(process)
    if code != 4 or "ranks under MPI need libcleave_mpi: /nowhere/libcleave_mpi.so: cannot open shared object file" not in text:
        return f"exit code {code}: {text}"
    return None


def example(case, kind):
    """examples/run.c, linked with the library."""
    program = f"{case.build}/bin/examples/run-{kind}"
    done = subprocess.run([program, case.path("tensor-parallel.cleave")], capture_output=True, text=True, timeout=LIMIT)
    first = weights(case).sum(axis=0)[0] + 3
    if done.returncode != 0 or f"y [8, 32] begins with {first:g}\nz [8, 16] begins with 7\n" not in done.stdout:
        return f"exit code {done.returncode}: {done.stdout}{done.stderr}"
    os.remove(case.path("weights.bin"))
    done = subprocess.run([program, case.path("tensor-parallel.cleave")], capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 1 or not done.stderr.startswith("cannot open: cannot open the file of weights"):
        return f"exit code {done.returncode}: {done.stdout}{done.stderr}"
    return None


def library(case):
    """Small, and nothing but the functions of runtime.h is to be seen from outside."""
    path = f"{case.build}/lib/libcleave_runtime.so"
    stripped = case.path("stripped.so")
    subprocess.run(["strip", "-o", stripped, path], check=True)
    listing = subprocess.run(["nm", "-D", "--defined-only", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    names = {line.split()[-1] for line in listing.splitlines()}
    with open(os.path.join(harness.ROOT, "include/cleave/runtime.h")) as file:
        wanted = set(re.findall(r"\b(cleave_\w+)\([^()]*\)\s*CLEAVE_NOEXCEPT;", file.read()))
    size = os.path.getsize(stripped)
    if names != wanted or not wanted:
        return f"exports {sorted(names ^ wanted)} more or less than the header"
    # Sanitizers put a multiple of the code into it.
    return None if size <= 500 * 1024 or "release" not in case.build else f"{size} bytes stripped"


def table(cases):
    """docs/runtime.md says which test injects which of the 31 faults; each of them is there."""
    with open(os.path.join(harness.ROOT, "docs", "runtime.md")) as file:
        rows = re.findall(r"^\| ([\d, ]+) \| [^|]+ \| ([^|]+) \|$", file.read(), re.M)
    numbers = [int(number) for row, _ in rows for number in row.split(", ")]
    if numbers != list(range(1, 32)):
        return f"faults {numbers}"
    folder, sources = os.path.join(harness.ROOT, "test"), ""
    for path in sorted(glob.glob(os.path.join(folder, "Unit", "*", "*.cpp"))):
        with open(path) as file:
            sources += file.read()
    tests = {".".join(names) for names in re.findall(r"^TEST\((\w+), (\w+)\)", sources, re.M)}
    tests |= {f"cleave-run: {name}" for name in cases} | {f"mpi: {row[0]}-{row[1]}" for row in check.FAULTS} | {"bad-input"}
    import devices
    tests |= {f"devices: {name}" for name in devices.list_cases()}
    with open(os.path.join(harness.ROOT, "docs", "runtime.md")) as file:
        rows += [("", text) for text in re.findall(r"^\| [^|\d]+ \| ((?:`devices: [^|]+))\|$", file.read(), re.M)]
    named = {name for _, text in rows for name in re.findall(r"`([^`]+)`", text) if not name.endswith(".cpp")}
    return f"there is no {sorted(named - tests)}" if named - tests and HAS_MPI else None


def main():
    build, names, _ = harness.arguments()
    cases = {"help": (help_text,), "zeros": (zeros,), "library": (library,), "no-mpi-library": (no_mpi_library,),
             "example-shared": (example, "shared"), "example-static": (example, "static")}
    for ranks, where in ((0, "threads"), (4, "mpi")):
        if ranks and not HAS_MPI:
            continue
        cases |= {f"parallel-{where}": (parallel, ranks), f"stages-{where}": (stages, ranks),
                  f"state-{where}": (state, ranks and 2)}
        cases |= {f"{name}-{where}": (fault, *row, ranks and 2) for name, row in FAULTS.items()}
        cases |= {f"{name}-{where}": (interrupted, ranks and 2, getattr(signal, name)) for name in ("SIGINT", "SIGTERM")}
    cases |= {f"{name}-local": (local, name) for name in ("parallel", "stages", "state", "segv", "late", "nan")}
    cases |= {f"{name}-local": (interrupted, 0, getattr(signal, name), "--local") for name in ("SIGINT", "SIGTERM")}
    if HAS_MPI:
        cases |= {"world-size": (world,), "different-programs": (different,), "missing-on-one": (missing_on_one,),
                  "never-started": (never_started,), "like-srun": (like, SRUN), "like-torchrun": (like, TORCHRUN),
                  "srun-without-pmix": (unlike, {"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_STEP_ID": "0"}, "srun"),
                  "torchrun-without-mpi": (unlike, {"RANK": "1", "WORLD_SIZE": "4"}, "torchrun"),
                  "launcher-killed": (orphaned,), "parent-killed": (abandoned,), "killed": (gone, signal.SIGKILL), "stopped": (gone, signal.SIGSTOP)}
    cases |= {name: (refused, *row) for name, row in REFUSED.items()}
    cases["write-fails"] = (write_fails,)
    cases["flipped-bit"] = (weights_changed, flip, r'weight "w" in "weights.bin" has changed: its digest is .*: compile it again')
    cases["short-file"] = (weights_changed, shorten, r'the file of weights .* has 2202 bytes, the program was compiled with 2212: compile it again')

    cases["fault-table"] = (lambda _: table(cases),)

    def problem(row):
        with Case(build) as case:
            return row[0](case, *row[1:])

    return harness.run(harness.select(cases, names), problem)


if __name__ == "__main__":
    sys.exit(main())
