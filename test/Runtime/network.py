"""Ranks that meet by a network with strangers on it: who is let in, what is listened to, and what is said of it.

Usage: network.py BUILD_DIR

Everything happens on the loopback. Programs are those of test/Unit/Runtime/RunnableSamples.cpp, what they must give is computed here.
"""
import itertools
import os
import re
import socket
import stat
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
import stranger  # noqa: E402
from case import LIMIT, Case, equal, numbers, weights  # noqa: E402

SECRET = "00112233445566778899aabbccddeeff"
NUMBERS = itertools.count()
# Nothing of where this runs.
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("OMPI_", "PMI", "SLURM_", "CLEAVE_RANK", "CLEAVE_LOCAL", "CLEAVE_RENDEZVOUS", "CLEAVE_SECRET", "TORCHELASTIC")) and name not in ("RANK", "WORLD_SIZE")}


class Network(Case):
    """A folder with programs, and ranks that are started one by one as torchrun does."""

    def __init__(self, build):
        super().__init__(build)
        self.port = 32000 - os.getpid() % 5 * 1000 - 20 * (next(NUMBERS) % 50)
        self.processes = []
        self.prefix = []  # what ranks are started by
        self.x = numbers((8, 16), 1)
        self.save("in.npz", x=self.x)

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        super().__exit__()

    def launch(self, rank, size=4, program="tensor-parallel.cleave", words=("--inputs", "in.npz", "--outputs", "out.npz"), **more):
        environment = {**CLEAN, "RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(self.port), **more}
        process = subprocess.Popen([*self.prefix, f"{self.build}/bin/cleave-run", self.path(program), *words], cwd=self.folder, text=True,
                                   errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env={name: value for name, value in environment.items() if value is not None})
        self.processes.append(process)
        return process

    def finish(self, processes):
        """(exit codes, what each has said)."""
        said = [self.wait(process) for process in processes]
        return [code for code, _ in said], [text for _, text in said]

    def await_ports(self, processes, count):
        """So many ports at which these processes listen."""
        until = time.time() + LIMIT
        while len(found := stranger.find_listening([process.pid for process in processes])) < count and time.time() < until:
            time.sleep(0.02)
        return found

    def right(self, processes):
        codes, said = self.finish(processes)
        if any(codes):
            return f"exit codes {codes}: {said}"
        return equal(self.path("out.npz"), y=self.x @ weights(self) + 3, z=2 * self.x + 5)


def with_secret(case):
    return case.right([case.launch(rank, CLEAVE_SECRET=SECRET) for rank in range(4)])


def with_store(case):
    """torchrun's agent passes the secret on; what it holds are 32 digits, other ones in every run."""
    seen = set()
    for run in range(2):
        with stranger.Store(case.port) as store:
            more = {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": str(run)}
            if problem := case.right([case.launch(rank, **more) for rank in range(4)]):
                return problem
            seen |= set(store.values.values())
            if list(store.values) != [f"/cleave/none {run}".encode()]:
                return f"keys {list(store.values)}"
    return None if len(seen) == 2 and all(re.fullmatch(rb"[0-9a-f]{32}", value) for value in seen) else f"values {seen}"


def mute_store(case):
    """What listens at the store's port says nothing."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", case.port))
        mute.listen()
        codes, said = case.finish([case.launch(1, words=("--deadline", "2"), TORCHELASTIC_USE_AGENT_STORE="True")])
    return None if codes == [4] and "torchrun's store at 127.0.0.1" in said[0] and "CLEAVE_SECRET" in said[0] else f"{codes}: {said}"


def no_secret(case, more):
    """No road for a secret: nothing is opened, and what to set is said."""
    for rank in (0, 1):
        began = time.time()
        codes, said = case.finish([case.launch(rank, **more)])
        if codes != [4] or "set CLEAVE_SECRET to the same 32 hexadecimal digits for all ranks" not in said[0] or time.time() - began > 5:
            return f"exit codes {codes}: {said}"
    return None


def bad_secret(case):
    for secret in ("", "secret", SECRET[:-1], SECRET + "0", "zz" + SECRET[2:]):
        codes, said = case.finish([case.launch(0, CLEAVE_SECRET=secret)])
        if codes != [4] or "CLEAVE_SECRET is not 32 hexadecimal digits" not in said[0] or (secret and secret in said[0]):
            return f"{secret!r}: exit codes {codes}: {said}"
    return None


def other_secret(case):
    """A rank with another secret is none of this run, and neither says what it knows."""
    ranks = [case.launch(0, 2, "stages.cleave", ("--deadline", "2"), CLEAVE_SECRET=SECRET),
             case.launch(1, 2, "stages.cleave", ("--deadline", "2"), CLEAVE_SECRET=SECRET[::-1])]
    codes, said = case.finish(ranks)
    wanted = ["have come with another secret", "who is there has another secret"]
    bad = codes != [4, 4] or any(want not in text or SECRET in text or SECRET[::-1] in text for want, text in zip(wanted, said))
    return f"exit codes {codes}: {said}" if bad else None


def key_of(job=" "):
    return stranger.derive(SECRET, f"torchrun {job}")


def guessed(case):
    """A stranger who knows all that is public says that he is rank 1: he is not let in, and hears nothing."""
    hub = case.launch(0, 2, "accumulator.cleave", ("--deadline", "3", "--outputs", "out.npz"), CLEAVE_SECRET=SECRET)
    (port,) = [port for _, port in case.await_ports([hub], 2) if case.port <= port < case.port + 16]
    version = stranger.get_version(case.build)
    for key in (bytes(16), stranger.derive("0" * 32, "torchrun  "), stranger.derive(SECRET, "torchrun other"), b"torchrun"):
        if stranger.join(("127.0.0.1", port), key, version, stranger.WATCH, 0, 1, 2):
            return f"let in with {key}"
    code, said = case.wait(hub)
    wanted = "rank 0: no connection from rank 1; 4 have come with another secret, or of another version (timeout)"
    return None if code == 4 and wanted in said and not os.path.exists(case.path("out.npz")) else f"exit code {code}: {said}"


def admitted(case, size):
    """Rank 0 of `size` after rank 1, which is this script, has come to both its ports; its process and both connections."""
    hub = case.launch(0, size, "accumulator.cleave", ("--deadline", "5", "--outputs", "out.npz"), CLEAVE_SECRET=SECRET)
    ports = {port for _, port in case.await_ports([hub], 2)}
    (watch,) = [port for port in ports if case.port <= port < case.port + 16]
    (messages,) = ports - {watch}
    version = stranger.get_version(case.build)
    star = stranger.join(("127.0.0.1", watch), key_of(), version, stranger.WATCH, 0, 1, size, b"1 nowhere 127.0.0.1")
    return hub, star, lambda: stranger.join(("127.0.0.1", messages), key_of(), version, stranger.MESSAGES, 0, 1, size)


def too_large(case, length):
    """A message that announces more than any of the program's: an error of all, and no memory is taken."""
    hub, star, connect = admitted(case, 2)
    if not star:
        return f"the secret is not enough: {case.wait(hub)}"
    link = connect()
    link.send(struct.pack("=QQQQ", 0, 1, 0, length))
    code, said = case.wait(hub)
    bad = code != 4 or not re.search(rf"rank 1 announces a message of {length} bytes, and none of this program has more than \d+ ", said)
    return f"exit code {code}: {said}" if bad or os.path.exists(case.path("out.npz")) else None


def control_characters(case):
    """What a rank says of a failure is printed without what steers a terminal."""
    hub, star, connect = admitted(case, 2)
    connect()
    detail = b"\x1b[2Jgone\r\n\x07"
    star.send(stranger.frame(stranger.FAULT, 1, struct.pack("=iiii", 6, 1, -1, 0) + detail))
    code, said = case.wait(hub)
    return None if code == 4 and "gone" in said and not set(said) & set("\x1b\r\x07") else f"exit code {code}: {said!r}"


def silent(case):
    """Two hundred silent connections to every port that ranks have opened: they still meet at once."""
    early = [case.launch(rank, CLEAVE_SECRET=SECRET) for rank in (0, 1, 2)]
    guests = []
    for address, port in case.await_ports(early, 4):
        for _ in range(200):
            guests.append(socket.socket())
            guests[-1].setblocking(False)
            guests[-1].connect_ex((address, port))
    began = time.time()
    problem = case.right([*early, case.launch(3, CLEAVE_SECRET=SECRET)])
    seconds = time.time() - began
    for guest in guests:
        guest.close()
    return problem or (f"{seconds:.1f} s" if seconds > 5 else None)


def listens(case, variables):
    """Ranks of one machine listen at its loopback, and nowhere else."""
    place = {"CLEAVE_RENDEZVOUS": f"file:{case.path('place')}"} if "MASTER_ADDR" in variables(0) else {}
    ranks = [case.launch(rank, CLEAVE_SECRET=SECRET, **place, **variables(rank)) for rank in range(3)]
    # Rank 0 for the others, and each for messages.
    found = case.await_ports(ranks, 4)
    return None if len(found) == 4 and {address for address, _ in found} == {"127.0.0.1"} else f"ports {found}"


def says_local(case):
    """`cleave-run --local` tells its ranks that all are here."""
    process = subprocess.Popen([f"{case.build}/bin/cleave-run", "--local", case.path("endless.cleave"), "--deadline", "20"], cwd=case.folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=CLEAN)
    case.processes.append(process)
    until, said = time.time() + LIMIT, []
    while len(said) < 2 and time.time() < until:
        said = [words for words in map(read_environment, filter(str.isdigit, os.listdir("/proc")))
                if b"CLEAVE_RANKS=2" in words and any(case.folder.encode() in word for word in words)]
        time.sleep(0.05)
    process.terminate()
    process.wait()
    return None if len(said) == 2 and all(b"CLEAVE_LOCAL_RANKS=2" in words for words in said) else f"{said}"


def read_environment(process):
    """What a process was started with, words and environment."""
    try:
        with open(f"/proc/{process}/environ", "rb") as environment, open(f"/proc/{process}/cmdline", "rb") as words:
            return environment.read().split(b"\0") + words.read().split(b"\0")
    except OSError:
        return []


LISTENERS = {
    "loopback": lambda rank: {},
    "torchrun": lambda rank: {"LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": None},
    "local": lambda rank: {"RANK": None, "WORLD_SIZE": None, "CLEAVE_RANK": str(rank), "CLEAVE_RANKS": "4", "CLEAVE_LOCAL_RANKS": "4",
                           "MASTER_ADDR": None},
}


def elsewhere(case):
    """An address of another machine is none that rank 0 can listen at."""
    codes, said = case.finish([case.launch(0, MASTER_ADDR="192.0.2.1", CLEAVE_SECRET=SECRET)])
    return None if codes == [4] and "rank 0 cannot listen at '192.0.2.1': it is not an address of this machine" in said[0] else f"{codes}: {said}"


# ---------------------------------------------------------------------------------------------------------------------------
# The file of a rendezvous

def meet(case, prepare):
    """Four ranks by a file, which `prepare` may have put there; its mode while they wait for the last one, and the outputs."""
    path = case.path("place")
    prepare(path)
    place = {"MASTER_ADDR": None, "CLEAVE_RENDEZVOUS": f"file:{path}"}
    early = [case.launch(rank, **place) for rank in range(3)]
    until = time.time() + LIMIT
    while not (os.path.exists(path) and os.path.getsize(path)) and time.time() < until:
        time.sleep(0.01)
    mode = stat.S_IMODE(os.lstat(path).st_mode) if os.path.exists(path) else None
    if problem := case.right([*early, case.launch(3, **place)]):
        return problem
    left = [name for name in os.listdir(case.folder) if name.startswith("place")]
    return f"mode {mode:o}, left {left}" if mode != 0o600 or left else None


def put(path, text="", mode=0o600):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)


def by_link(path):
    put(path + "-target")
    os.symlink(path + "-target", path)


def of_another(path):
    put(path)
    os.chown(path, 65534, 65534)


def refuse(case, prepare, message, ranks=(0, 1)):
    """A file that is not this user's alone is refused by all, at once, and stays as it is."""
    path = case.path("place")
    prepare(path)
    before = os.lstat(path)
    for rank in ranks:
        began = time.time()
        codes, said = case.finish([case.launch(rank, MASTER_ADDR=None, CLEAVE_RENDEZVOUS=f"file:{path}")])
        if codes != [4] or not re.search(message, said[0]) or time.time() - began > 5:
            return f"rank {rank}: exit codes {codes}: {said}"
    after = os.lstat(path)
    return None if (before.st_ino, before.st_mtime_ns, before.st_mode) == (after.st_ino, after.st_mtime_ns, after.st_mode) else "it was changed"


FILES = {
    "link": (by_link, "it is a symbolic link"),
    "readable": (lambda path: put(path, mode=0o640), "others may read or write it"),
    "writable": (lambda path: put(path, mode=0o602), "others may read or write it"),
    "folder": (os.mkdir, "it is not a regular file"),
    "pipe": (os.mkfifo, "it is not a regular file"),
    # Ranks that look for rank 0 wait until it is there.
    "of-a-user": (lambda path: put(path, "a letter\n"), "it is there, and holds something else", (0,)),
    **({"foreign": (of_another, "it belongs to user 65534")} if os.geteuid() == 0 else {}),
}


def main():
    build, names, _ = harness.arguments()
    slurm = {"RANK": None, "WORLD_SIZE": None, "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "4",
             "SLURM_STEP_NODELIST": "localhost", "SLURM_JOB_ID": "7"}
    cases = {"secret": (with_secret,), "store": (with_store,), "mute-store": (mute_store,), "bad-secret": (bad_secret,),
             "other-secret": (other_secret,), "guessed": (guessed,), "control-characters": (control_characters,),
             "no-secret-torchrun": (no_secret, {}), "no-secret-srun": (no_secret, slurm),
             "no-secret-rendezvous": (no_secret, {"CLEAVE_RENDEZVOUS": "127.0.0.1:7777"}),
             "silent": (silent,), "elsewhere": (elsewhere,), "says-local": (says_local,),
             "file": (meet, lambda path: None), "file-empty": (meet, put),
             "file-of-before": (meet, lambda path: put(path, "0" * 32 + " 1 nowhere 127.0.0.1\n"))}
    cases |= {f"message-of-2^{power}": (too_large, 1 << power) for power in (24, 36, 62)}
    cases |= {f"file-{name}": (refuse, *row) for name, row in FILES.items()}
    cases |= {f"listens-{name}": (listens, variables) for name, variables in LISTENERS.items()}

    def problem(row):
        with Network(build) as case:
            return row[0](case, *row[1:])

    return harness.run(harness.select(cases, names), problem)


if __name__ == "__main__":
    sys.exit(main())
