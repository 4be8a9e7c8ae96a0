"""Programs for CUDA devices on the emulated ones, as threads and as processes, and every way in which that can end badly.

Usage: devices.py BUILD_DIR

A program for 2x2 ranks is compiled once. Each fault is scripted (CLEAVE_EMULATION_FAIL) or done to a process, and must end all
ranks in time with its exit code and one message that names the rank, leave a flight record where ranks ran, and no process.
Outputs are held against those of the same program on the host.
"""
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
from case import HAS_MPI, MPI_ENVIRONMENT, MPIRUN, Case  # noqa: E402

RANKS = 4
NUMBERS = itertools.count()
LIMIT = 30
MODEL = os.path.join(harness.ROOT, "test", "Models", "mlp_external.onnx")
OPTIONS = ["--dim", "batch=4", "--mesh", "data=2,model=2", "--shard", "x=[data, _]", "--shard", "0.weight=[model, _]",
           "--shard", "2.weight=[_, model]", "--quiet"]


class Devices(Case):
    """A folder with the program for devices, its inputs, and what must come out."""

    def __init__(self, build, compiled):
        self.build, self.folder = build, tempfile.mkdtemp(prefix="cleave-devices-")
        for name in os.listdir(compiled):
            shutil.copy(os.path.join(compiled, name), self.folder)
        os.mkdir(self.path("tmp"))
        # Cases run side by side, each with ports of its own below those that systems give to anybody.
        self.port = 20000 + os.getpid() % 6 * 2000 + 20 * next(NUMBERS)

    def environment(self, **more):
        return {**MPI_ENVIRONMENT, "CLEAVE_CUDA_LIBRARY": "libcleave_emulated_cuda.so", "TMPDIR": self.path("tmp"),
                "CLEAVE_EMULATION_PATIENCE": "20", **more}

    def begin(self, words, said, **environment):
        return subprocess.Popen(words, cwd=self.folder, stdout=said, stderr=said, env=self.environment(**environment))

    def launch(self, way, *words, programs=("m.cleave",) * RANKS, absent=(), **environment):
        """(exit code, output) of all ranks, started in this way; None where they did not end in time. What a launcher does
        with processes that are left three seconds after the first one failed is done here, too."""
        run = f"{self.build}/bin/cleave-run"
        with open(self.path("said"), "w+") as said:
            if way in ("threads", "local", "mpirun"):
                before = {"mpirun": [*MPIRUN, str(RANKS), run], "threads": [run], "local": [run, "--local"]}[way]
                processes = [self.begin([*before, self.path(programs[0]), *words], said, **environment)]
            else:
                processes = [self.begin([run, self.path(programs[rank]), *words], said, **environment, **WAYS[way](self.port, rank))
                             for rank in range(RANKS) if rank not in absent]
            self.processes = processes
            began, failed = time.time(), None
            while any(process.poll() is None for process in processes):
                if failed is None and any(process.poll() for process in processes):
                    failed = time.time()
                if time.time() - began > LIMIT or (failed and time.time() - failed > 3):
                    for process in processes:
                        process.kill()
                time.sleep(0.01)
            codes = [process.returncode for process in processes]
            said.seek(0)
            code = None if time.time() - began > LIMIT else 1 if 1 in codes else next((code for code in codes if code), 0)
            return code, said.read()


# What launchers say to the process of a rank, and the user to all. torchrun's agent listens at the port that it names.
SECRET = {"CLEAVE_SECRET": "00112233445566778899aabbccddeeff"}
WAYS = {
    "torchrun": lambda port, rank: {**SECRET, "RANK": str(rank), "WORLD_SIZE": str(RANKS), "LOCAL_RANK": str(rank), "MASTER_ADDR": "localhost",
                              "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RUN_ID": "a"},
    "srun": lambda port, rank: {**SECRET, "SLURM_PROCID": str(rank), "SLURM_NTASKS": str(RANKS), "SLURM_LOCALID": str(rank),
                          "SLURM_STEP_ID": "0", "SLURM_JOB_ID": str(port),
                          "SLURM_STEP_NODELIST": f"{socket.gethostname()},other[2-5]"},
    # As Slurm with --gpus-per-task=1: each process sees one device, which it calls 0.
    "one-device-each": lambda port, rank: {**WAYS["srun"](port, rank), "CUDA_VISIBLE_DEVICES": str(rank)},
    "two-hosts": lambda port, rank: {**WAYS["torchrun"](port, rank), "LOCAL_RANK": str(rank % 2),
                               "CUDA_VISIBLE_DEVICES": "0,1" if rank < 2 else "2,3"},
}
ALL = ["threads", "local", "torchrun", "srun", *(["mpirun"] if HAS_MPI else [])]
PROCESSES = ALL[1:]


def listen(port):
    """Somebody at the port of torchrun's store, who never says a word."""
    store = socket.socket()
    store.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    store.bind(("", port))
    store.listen()
    return store


def right(case, way, **environment):
    """The outputs of the host, whoever starts the ranks, with and without graphs."""
    for words in ([], ["--no-graph"]):
        code, text = case.launch(way, "--inputs", "in.npz", "--outputs", "out.npz", "--repeat", "3", *words, **environment)
        if code != 0 or text:
            return f"exit code {code}: {text}"
        with np.load(case.path("out.npz")) as got, np.load(case.path("expected.npz")) as want:
            if sorted(got) != sorted(want) or not all(np.allclose(got[name], want[name], atol=1e-5) for name in want):
                return f"outputs {dict(got)}, expected {dict(want)}"
        os.remove(case.path("out.npz"))
    return f"{os.listdir(case.path('tmp'))} left" if os.listdir(case.path("tmp")) else None


def judge(case, way, got, message, code, record, kind="fullmatch"):
    """Nothing but the one message, from all who say something; what `rank` says in it may be any of several."""
    status, text = got
    lines = set(re.findall(r"^cleave-run: error: (.*)$", text, re.M))
    # The launcher's own word about who was killed.
    lines = {line for line in lines if not re.match(r"the process of rank \d was ended by signal", line)}
    path = case.path("record/flight-recorder.txt")
    kept = open(path).read() if os.path.exists(path) else ""
    expected = {code} if way != "mpirun" else {code, 1, 4}
    problems = [(status not in expected, f"exit code {status}, expected {code}"),
                (not lines, "nobody says what failed"),
                (any(not getattr(re, kind)(message, line) for line in lines), f"unexpected: {lines}"),
                (len(lines) > 1, f"ranks differ: {lines}"),
                (record and not re.match(message, kept), f"the record begins with {kept[:200]!r}"),
                (record and len(re.findall(r"^rank \d", kept, re.M)) < 1 + RANKS, f"the record lacks ranks:\n{kept}"),
                (os.path.exists(case.path("out.npz")), "outputs were written"),
                (case.left(), "processes are left")]
    wrong = "; ".join(text for bad, text in problems if bad)
    return f"{wrong}\n{text}" if wrong else None


def fault(case, way, script, message, code, record, words=(), **environment):
    got = case.launch(way, "--outputs", "out.npz", "--record", "record", "--deadline", "2", "--repeat", "300", *words,
                      CLEAVE_EMULATION_FAIL=script, **environment)
    return judge(case, way, got, message, code, record)


# The same on two stages, each on two devices.
PIPELINE = "mesh: {stage: 2, data: 2}\npipeline: {axis: stage, microbatches: 2}\nshard: [{tensor: x, dims: [data, _]}]\n"
STAGES = ("p.cleave",) * RANKS
PLACE = r'rank 1: command \d, \w+( \w+)?, of node "\w+": '
AFTER = r", in this command or one before it \(aborted\)"
# Script, message, exit code, whether there is a flight record.
FAULTS = {
    "launch": ("cuLaunchKernel@1:2=719", r'rank 1: command 1, launch matmul_0, of node "node_linear_1": the device cannot launch '
               r'"matmul_0": CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure \(aborted\)', 4, True),
    "kernel-graph": ("cuGraphLaunch@1:3=719", PLACE + r"the device cannot launch a graph: CUDA_ERROR_LAUNCH_FAILED: .*" + AFTER, 4, True),
    "lost": ("cuStreamQuery@1:5=214", PLACE + "the device cannot go on: CUDA error 214" + AFTER, 4, True),
    # How often the ranks ask while they meet depends on who is late: any step until they run may be the one that asks.
    "async": ("ncclCommGetAsyncError@1:250=2", f"({PLACE}NCCL cannot go on: ncclSystemError{AFTER}|rank 1: NCCL cannot (connect the "
              r"ranks|split the ranks|make a group|register memory): ncclSystemError \(aborted\))", 4, True),
    "call": ("ncclReduceScatter@1:2=3", PLACE + r"NCCL cannot reduce_scatter: ncclInternalError \(aborted\)", 4, True),
    "hang": ("ncclReduceScatter@1:2=hang", r'rank \d: command \d, \w+( \w+)?, of node "\w+": the device was not done within 2 s '
             r"\(aborted\)", 4, True),
    "connect": ("ncclCommInitRankConfig@1=3", r"rank 1: NCCL cannot connect the ranks: ncclInternalError \(aborted\)", 4, True),
    "connect-hangs": ("ncclCommInitRankConfig@1=hang", r"rank \d: NCCL did not connect the ranks within 2 s, though all ranks have "
                      r"come \(aborted\)", 4, True),
    # Ranks 0 and 1 hang; 2 and 3 have their group and wait for them from that moment on, so either deadline may pass first.
    "split-hangs": ("ncclCommSplit@1=hang", r"(rank [01]: NCCL did not make a group within 2 s, though all ranks have come \(aborted\)|"
                    r"rank [23]: all_gather .*: rank [01] did not come within 2 s; .* \(timeout\))", 4, True),
    "id": ("ncclGetUniqueId=2", r"rank 0: NCCL cannot make an id: ncclSystemError \(aborted\)", 4, True),
    "memory": ("cuMemAlloc_v2@1:2=2", r"(rank 1: )?the device cannot give \d+ bytes that the program plans with, \d+ are free: "
               r"CUDA_ERROR_OUT_OF_MEMORY: out of memory( \(aborted\))?", 1, False),
    "pinned": ("cuMemHostAlloc@1=2", r"(rank 1: )?cannot copy between host and device: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
               r"( \(aborted\))?", 1, False),
    "code": ("cuModuleLoadDataEx@1=218", r'(rank 1: |cannot run "\S+": )module "\w+": the device cannot load the \w+ code of "\w+": CUDA error 218'
             r"( \(aborted\))?", 1, False),
}


BETWEEN = {
    "send": ("ncclSend@1:2=3", r"rank 1: command \d+, exchange: NCCL cannot exchange: ncclInternalError \(aborted\)", 4, True),
    "send-hangs": ("ncclSend@1:2=hang", r"rank \d: command \d+, .*: the device was not done within 2 s \(aborted\)", 4, True),
    "receive": ("ncclRecv@3:2=3", r"rank 3: command \d+, exchange: NCCL cannot exchange: ncclInternalError \(aborted\)", 4, True),
    "receive-hangs": ("ncclRecv@3:2=hang", r"rank \d: command \d+, .*: the device was not done within 2 s \(aborted\)", 4, True),
}


def small(case, way):
    """Less memory than the plan needs, which is said before any is taken."""
    return judge(case, way, case.launch(way, CLEAVE_EMULATION_MEMORY="0"),
                 r"(rank \d: )?the program needs \d+ bytes of memory on this device, 0 are free( \(aborted\))?", 1, False)


def windows(case, way, script, share, reason):
    """Which share of the collectives of all ranks has its operands in a window of NCCL's, as the report tells; the outputs are right
    with and without."""
    code, text = case.launch(way, "--inputs", "in.npz", "--outputs", "out.npz", "--report", "r.json", "--repeat", "3",
                             CLEAVE_EMULATION_FAIL=script)
    if code != 0:
        return f"exit code {code}: {text}"
    with open(case.path("r.json")) as file:
        use = json.load(file).get("nccl_windows")
    every = 2 * RANKS
    if not use or (use["collectives"], use["without"], use["reason"]) != (share * every, every - share * every, reason):
        return f"{use}"
    with np.load(case.path("out.npz")) as got, np.load(case.path("expected.npz")) as want:
        return None if np.allclose(got["y"], want["y"], atol=1e-5) else "the outputs are wrong"


def large(case, way):
    """Weights of 64 MB: slices of 4 MiB go to the device, and no more than a few are in the host's memory (that of the emulated
    device is, too)."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    weight = np.random.default_rng(2).integers(-2, 3, (16, 1000000)).astype(np.float32)
    graph = helper.make_graph([helper.make_node("ReduceSum", ["w", "axes"], ["s"], keepdims=0),
                               helper.make_node("Add", ["x", "s"], ["y"])], "large",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [16])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [16])],
                              [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.array([1]), "axes")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, case.path("large.onnx"), save_as_external_data=True, location="large.bin", size_threshold=1000)
    made = subprocess.run([f"{case.build}/bin/cleave", "compile", case.path("large.onnx"), "--target", "cuda:emulated", "--quiet", "-o",
                           case.path("large.cleave")], capture_output=True, text=True)
    if made.returncode:
        return made.stderr
    np.savez(case.path("in.npz"), x=np.arange(16, dtype=np.float32))
    process = case.begin([f"{case.build}/bin/cleave-run", case.path("large.cleave"), "--inputs", "in.npz", "--outputs", "out.npz"],
                         None)
    most = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as file:
                most = max([most, *(int(size) / 1024 for size in re.findall(r"VmHWM:\s+(\d+)", file.read()))])
        except OSError:
            pass
        time.sleep(0.001)
    status = process.returncode
    with np.load(case.path("out.npz")) as got:
        if status or not np.array_equal(got["y"], weight.sum(axis=1) + np.arange(16)):
            return f"status {status}"
    # 62.5 MiB on the device, three slices and two pinned blocks, and the process itself.
    return f"{most:.0f} MiB at most" if not 62.5 < most < 62.5 + 20 + 30 else None


def no_driver(case, way):
    return judge(case, way, case.launch(way, CLEAVE_CUDA_LIBRARY="/nowhere/libcuda.so"),
                 r"(rank \d: )?no CUDA driver \(12 or later\) found; tried /nowhere/libcuda.so( \(aborted\))?", 1, False)


def no_nccl(case, way):
    """A folder with a driver in it, and no NCCL."""
    os.mkdir(case.path("libraries"))
    os.symlink(f"{case.build}/lib/libcleave_emulated_cuda.so", case.path("libraries/libcuda.so.1"))
    return judge(case, way, case.launch(way, CLEAVE_CUDA_LIBRARY=case.path("libraries")),
                 r"(rank \d: )?no NCCL \(2.18 or later\) found; tried .*/libraries/libnccl.so.2, .*", 1, False)


def few(case, way):
    message = (r"the program is for 4 CUDA devices, 2 are visible" if way == "threads" else
               r"rank [23]: this is local rank [23] of its machine, where 2 CUDA devices are visible \(aborted\)")
    return judge(case, way, case.launch(way, CLEAVE_EMULATION_DEVICES="2"), message, 1, False)


def same(case, way):
    """Every process sees the one device, and takes it."""
    message = r"rank \d: ranks 0 and 1 are on the same CUDA device, NCCL wants one for each; what a process sees is in .*"
    return judge(case, way, case.launch(way, CLEAVE_EMULATION_DEVICES="1"), message, 4, False)


def shared(case, way):
    """The same where NCCL is told that ranks may share."""
    return right(case, way, CLEAVE_EMULATION_DEVICES="1", NCCL_MULTI_RANK_GPU_ENABLE="1")


def different(case, way):
    code, text = case.launch(way, programs=["m.cleave", "other.cleave", "m.cleave", "m.cleave"])
    table = re.search(r"ranks have different programs: rank 0: (\w{16}), rank 1: (\w{16}), rank 2: (\w{16}), rank 3: (\w{16})", text)
    if code != 1 or not table or table[1] == table[2] or table[1] != table[3] or case.left():
        return f"exit code {code}: {text}"
    return None


def absent(case, way):
    """Ranks 1 and 3 are never started."""
    began = time.time()
    got = case.launch(way, "--deadline", "2", "--outputs", "out.npz", absent=(1, 3))
    late = time.time() - began
    return judge(case, way, got, r"rank 0: no connection from rank 1, 3 \(timeout\)", 4, False) or (
        f"{late:.1f} s" if not 2 <= late < 8 else None)


def late(case, way):
    """Rank 3 comes after longer than a rank may be silent, and in time."""
    late = WAYS[way](case.port, 3)
    waiting = threading.Timer(3, lambda: started.append(case.begin(
        [f"{case.build}/bin/cleave-run", case.path("m.cleave"), "--silence", "1"], subprocess.DEVNULL, **late)))
    started = []
    waiting.start()
    code, text = case.launch(way, "--silence", "1", "--outputs", "out.npz", absent=(3,))
    waiting.join()
    code = code or started[0].wait(LIMIT)
    return f"exit code {code}: {text}" if code or text or not os.path.exists(case.path("out.npz")) else None


def alone(case, way):
    """Rank 0 is never started."""
    got = case.launch(way, "--deadline", "2", "--outputs", "out.npz", absent=(0,))
    return judge(case, way, got, r"rank \d: cannot reach rank 0 on \S+ \(timeout\)", 4, False) if got[1].count("\n") == 1 else (
        None if got[0] == 4 and len(re.findall(r"rank [123]: cannot reach rank 0 on \S+ \(timeout\)", got[1])) == 3 else f"{got}")


def done_to(case, way, number, message, **more):
    """The process of rank 2 is killed or stopped while all run."""
    result = []
    thread = threading.Thread(target=lambda: result.append(case.launch(
        way, "--silence", "1", "--deadline", "10", "--repeat", "1000000", "--outputs", "out.npz", "--record", "record", **more)))
    thread.start()
    time.sleep(1.5)
    processes = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                said = file.read().split(b"\0")
            if f"TMPDIR={case.path('tmp')}".encode() in said:
                rank = [word for word in said if re.match(rb"(CLEAVE_RANK|RANK|SLURM_PROCID|OMPI_COMM_WORLD_RANK)=\d", word)]
                processes |= {int(rank[0][-1:]): int(process)} if rank else {}
        except OSError:
            pass
    if sorted(processes) != list(range(RANKS)):
        return f"ranks {processes}"
    os.kill(processes[2], number)
    thread.join()
    if number == signal.SIGSTOP and os.path.exists(f"/proc/{processes[2]}"):
        os.kill(processes[2], signal.SIGKILL)
    if way == "mpirun":  # which may end all before they have said a word
        code, text = result[0]
        return None if code not in (0, None) and not case.left() else f"exit code {code}: {text}"
    status, text = result[0]
    code = 4 if number == signal.SIGSTOP or way == "local" else -9
    return judge(case, way, (code if status in (4, -9) else status, text), message, code, True)


GONE = {
    "killed": (signal.SIGKILL, r"rank 0: .*the process of rank 2 is gone.* \(died\)"),
    "stopped": (signal.SIGSTOP, r"rank 0: .*rank 2 has given no sign of life for 1\S* s.* \(stopped\)"),
}


def interrupted(case, way, number):
    """Ctrl-C, or the end of a job: all are gone within two seconds."""
    words = [f"{case.build}/bin/cleave-run", *(["--local"] if way == "local" else []), case.path("m.cleave"), "--repeat", "1000000",
             "--outputs", "out.npz"]
    with open(case.path("said"), "w+") as said:
        process = case.begin(words, said)
        time.sleep(1)
        began = time.time()
        process.send_signal(number)
        code = process.wait(LIMIT)
        seconds = time.time() - began
        said.seek(0)
        text = said.read()
    if code != 128 + number or seconds > 4 or case.left() or os.listdir(case.path("tmp")):
        return f"exit code {code} after {seconds:.1f} s, {os.listdir(case.path('tmp'))}: {text}"
    return None if f"interrupted by {signal.Signals(number).name}" in text else text


def orphaned(case):
    """cleave-run --local itself is killed."""
    with open(case.path("said"), "w+") as said:
        process = case.begin([f"{case.build}/bin/cleave-run", "--local", case.path("m.cleave"), "--repeat", "1000000"], said)
        time.sleep(1)
        process.kill()
        process.wait()
    return "processes are left" if case.left() else None


def busy_port(case):
    """--rendezvous names a port that somebody has."""
    with listen(case.port):
        code, text = case.launch("torchrun", "--rendezvous", f"localhost:{case.port}", "--deadline", "3")
    return None if code == 4 and f"rank 0: cannot open a port {case.port}: Address already in use (system)" in text else f"{code}: {text}"


def garbage(case):
    """Somebody talks to rank 0's port, and somebody comes and says nothing, while ranks come."""
    isOver = threading.Event()

    def talk():
        guests = []
        while not isOver.wait(0.02):
            try:
                guests.append(socket.create_connection(("localhost", case.port + 1), 1))
                guests[-1].send([b"GET / HTTP/1.1\r\n\r\n", b"", os.urandom(400), b"\x31\x46\x57\x43" + bytes(12)][len(guests) % 4])
            except OSError:
                pass
        for guest in guests:
            guest.close()
    thread = threading.Thread(target=talk)
    thread.start()
    problem = right(case, "torchrun")
    isOver.set()
    thread.join()
    return problem


def store(case):
    """torchrun's own store has the port, and so has somebody the next one."""
    with listen(case.port), socket.socket() as other:
        other.bind(("", case.port + 1))
        other.listen()
        return right(case, "torchrun")


def by_file(case):
    """mpirun's processes without MPI: they meet by a file, in whose place lies that of an earlier run."""
    with open(case.path("place"), "w") as file:
        file.write(f"{0:032x} 1 nowhere 127.0.0.1\n")
    os.chmod(case.path("place"), 0o600)
    code, text = case.launch("mpirun", "--rendezvous", f"file:{case.path('place')}", "--inputs", "in.npz", "--outputs", "out.npz",
                             CLEAVE_MPI_LIBRARY="/nowhere")
    if code != 0 or os.path.exists(case.path("place")) or not os.path.exists(case.path("out.npz")):
        return f"exit code {code}: {text}"
    return None


def twice(case):
    """Two processes are started as rank 1: one of them is told so, and the launcher ends the rest."""
    with open(case.path("said"), "w+") as said:
        processes = [case.begin([f"{case.build}/bin/cleave-run", case.path("m.cleave"), "--deadline", "5"], said,
                                **WAYS["torchrun"](case.port, rank)) for rank in (0, 1, 1, 2)]
        codes = [process.wait(LIMIT) for process in processes]
        said.seek(0)
        text = said.read()
    wanted = [r"rank 0: another process was started as rank 1 \(invalid\)",
              r"rank 0: no connection from rank 3; another process was started as rank 1 \(timeout\)"]
    return None if codes == [4] * 4 and all(re.search(line, text) for line in wanted) else f"exit codes {codes}: {text}"


def list_cases():
    cases = {f"right-{way}": (right, way) for way in [*ALL, "one-device-each", "two-hosts"]}
    cases |= {f"{name}-{way}": (fault, way, *row) for name, row in FAULTS.items() for way in ("threads", "local")}
    for name, check in (("small", small), ("no-driver", no_driver), ("no-nccl", no_nccl), ("few", few)):
        cases |= {f"{name}-{way}": (check, way) for way in ("threads", "local", "torchrun")}
    for way in ("torchrun", "srun"):
        cases |= {f"launch-{way}": (fault, way, *FAULTS["launch"]), f"absent-{way}": (absent, way), f"alone-{way}": (alone, way), f"late-{way}": (late, way),
                  f"different-{way}": (different, way), f"same-{way}": (same, way)}
    for way in ("threads", "local"):
        cases |= {f"windows-{way}": (windows, way, "", 1, ""),
                  f"no-shared-memory-{way}": (windows, way, "ncclMemAlloc=2,ncclMemAlloc:2=2,ncclMemAlloc:3=2,ncclMemAlloc:4=2", 0,
                                              "no memory of NCCL's"),
                  f"window-fails-{way}": (fault, way, "ncclCommWindowRegister@1=3", r"rank 1: NCCL cannot register memory: "
                                          r"ncclInternalError \(aborted\)", 4, True)}
    # Ranks 0 and 1 meet, and ranks 2 and 3.
    cases["one-without-local"] = (windows, "local", "ncclMemAlloc@1=2", 0.5, "operands lie otherwise on other ranks")
    cases["large-weights"] = (large, "threads")
    cases |= {f"shared-{way}": (shared, way) for way in ("threads", "local")}
    cases |= {f"{name}-{way}": (done_to, way, *row) for name, row in GONE.items() for way in PROCESSES}
    # A pipeline: what is between its roles.
    def between(check):
        return lambda case, way, *row: check(case, way, *row, programs=STAGES)
    cases |= {f"stages-right-{way}": (between(right), way) for way in ALL}
    cases |= {f"stages-{name}-{way}": (between(fault), way, *row) for name, row in BETWEEN.items() for way in ("threads", "local")}
    cases |= {f"stages-{name}-local": (between(done_to), "local", *row) for name, row in GONE.items()}
    cases |= {f"{name}-{way}": (interrupted, way, getattr(signal, name)) for name in ("SIGINT", "SIGTERM")
              for way in ("threads", "local")}
    cases |= {"orphaned": (orphaned,), "busy-port": (busy_port,), "garbage": (garbage,), "store": (store,), "twice": (twice,)}
    if HAS_MPI:
        cases |= {"launch-mpirun": (fault, "mpirun", *FAULTS["launch"]), "by-file": (by_file,)}
    return cases


def main():
    build, names, _ = harness.arguments()
    with tempfile.TemporaryDirectory() as compiled:
        for name in ("mlp_external.onnx", "mlp_external.bin"):
            shutil.copy(os.path.join(os.path.dirname(MODEL), name), compiled)
        model = os.path.join(compiled, "mlp_external.onnx")
        np.savez(os.path.join(compiled, "in.npz"), x=np.random.default_rng(1).normal(size=(4, 32)).astype(np.float32))
        for name, target in (("m", ["cuda:emulated", "--libraries", "none"]), ("other", ["cuda:emulated,sm_90"]), ("host", ["host"])):
            subprocess.run([f"{build}/bin/cleave", "compile", model, *OPTIONS, "--target", *target, "-o",
                            os.path.join(compiled, f"{name}.cleave")], check=True)
        with open(os.path.join(compiled, "p.yaml"), "w") as file:
            file.write(PIPELINE)
        subprocess.run([f"{build}/bin/cleave", "compile", model, "--plan", os.path.join(compiled, "p.yaml"), "--dim", "batch=4", "--quiet",
                        "--target", "cuda:emulated", "--libraries", "none", "-o", os.path.join(compiled, "p.cleave")], check=True)
        subprocess.run([f"{build}/bin/cleave-run", "host.cleave", "--inputs", "in.npz", "--outputs", "expected.npz"], cwd=compiled,
                       check=True)

        def problem(row):
            with Devices(build, compiled) as case:
                return row[0](case, *row[1:])
        return harness.run(harness.select(list_cases(), names), problem)


if __name__ == "__main__":
    sys.exit(main())
