"""What the Python suites share: their command line, running `cleave`, trying every case, and the closing line.

A suite has cases by name and a function that says what is wrong with one, or nothing:

    def problem(case): ...
    build, names, flags = harness.arguments("--all")
    sys.exit(harness.run(harness.select(cases, names), problem))

run_suites.py reads the last line, `N passed, N failed`.
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
THREADS = 2


class Folder:
    """A temporary place for the programs and data of a suite."""

    def __init__(self, build, prefix):
        self.build, self.path = build, tempfile.mkdtemp(prefix=prefix)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)

    def at(self, name):
        return os.path.join(self.path, name)


def arguments(*known):
    """(BUILD_DIR, names of cases, flags) of the command line; only flags that are `known` are taken."""
    flags = {word for word in sys.argv[1:] if word.startswith("--")}
    build, *names = [word for word in sys.argv[1:] if word not in flags] or [""]
    if not build or not flags <= set(known):
        sys.exit("usage: " + " ".join([sys.argv[0], "BUILD_DIR", *(f"[{flag}]" for flag in known), "[NAME...]"]))
    return os.path.abspath(build), names, flags


# How far a suite's programs go down, beyond collectives: arguments of `cleave run`.
LOWERINGS = {"--outlined": ["--emit", "outlined"], "--ordered": ["--emit", "ordered"], "--program": ["--executor", "program"],
             "--emulated": ["--device", "cuda-emulated"]}


def lower(flags):
    """The arguments that one of the flags above stands for."""
    return next((words for flag, words in LOWERINGS.items() if flag in flags), [])


def read_draw():
    """(seed, share) of CLEAVE_DRAW=SEED/SHARE: of the cases of a suite, one in SHARE runs (run_suites.py --merge); all without it."""
    seed, _, share = os.environ.get("CLEAVE_DRAW", "0/1").partition("/")
    return int(seed), int(share)


def is_drawn():
    """True where a part of the cases runs."""
    return read_draw()[1] > 1


def draw(names):
    """The names that the seed draws, in their order."""
    seed, share = read_draw()
    by_chance = sorted(names, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest())
    drawn = set(by_chance[:-(-len(by_chance) // share)])
    return [name for name in names if name in drawn]


def is_due(name):
    """Whether a case runs that is made one after the other: by chance as many as `draw` takes."""
    seed, share = read_draw()
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8], "big") % share == 0


def draw_seeds(first, count):
    """Likewise of `count` seeds from `first` on: (first, count) of as many behind each other."""
    seed, share = read_draw()
    return first + seed % share * (count // share), count // share


def select(cases, names):
    """The cases with these names, or all that are drawn; a name that there is not ends the suite."""
    unknown = set(names) - set(cases)
    if unknown:
        sys.exit(f"error: no case is called {', '.join(sorted(unknown))}")
    return {name: cases[name] for name in (filter(set(names).__contains__, cases) if names else draw(cases))}


def each(function, cases):
    """The results of `function`, in order, on two threads."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, cases))


def run(cases, problem):
    """Tries every case; prints what is wrong and the closing line. Returns the exit code."""
    def guarded(case):
        try:
            return problem(case)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    texts = each(guarded, cases.values())
    for name, text in zip(cases, texts):
        if text:
            print(f"FAILED {name}: {text}")
    return close(len(texts), sum(map(bool, texts)))


def tell_failures(names, texts):
    """Prints what is wrong with each case, None or empty where nothing is. Returns how many there are."""
    wrong = [(name, text) for name, text in zip(names, texts) if text]
    for name, text in wrong:
        print(f"FAILED {name}: {text}")
    return len(wrong)


def close(count, failed):
    """The closing line of `count` cases, or of more checks that failed. Returns the exit code."""
    print(f"{max(count - failed, 0)} passed, {failed} failed")
    return 1 if failed or not count else 0


def sum_up(bad, count, left_out=0):
    """Likewise of a test whose line FileCheck reads, `N passed, N failed of N`, below what is wrong: a text each. The last number counts those
    that were not drawn (`is_due`), too."""
    print("\n".join([*bad, f"{count - left_out - len(bad)} passed, {len(bad)} failed of {count}"]))
    return 1 if bad or not count else 0


def cleave(build, *arguments, **options):
    """Runs `cleave`; what it printed is in the result."""
    return subprocess.run([f"{build}/bin/cleave", *arguments], capture_output=True, text=True, errors="replace", **options)


class Failed(Exception):
    """A case has failed, of which the words say why."""


def must(build, *arguments):
    """As `cleave`, of a run that a case needs. Raises Failed where it does not end well."""
    done = cleave(build, *arguments)
    if done.returncode:
        raise Failed(f"{' '.join(arguments[:5])}: exit {done.returncode}: {(done.stderr + done.stdout).strip()[-400:]}")
    return done


def predicted_ns(report):
    """Of a rank, from a report of a program for a cluster."""
    time = report["time"]
    return time["compute_ns"] + time["communication_ns"] - time.get("overlapped_ns", 0)


def check_generated(name, text, fixes):
    """1 if docs/generated/NAME is not `text`; writes it where `fixes`."""
    path = os.path.join(ROOT, "docs", "generated", name)
    if fixes:
        with open(path, "w") as file:
            file.write(text)
        return 0
    old = ""
    if os.path.exists(path):
        with open(path) as file:
            old = file.read()
    if old == text:
        return 0
    print(f"docs/generated/{name} is stale; mend it with: python3 {os.path.relpath(sys.argv[0], ROOT)} build/release --fix-table")
    return 1


def conformance(build, rows, *flags):
    """{name: (status, reason)} of models that cleave-conformance runs: rows of name, model, .npz, rtol, atol. Without a build folder
    it is the one on the PATH, as lit has it."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listing:
        listing.write("".join("\t".join(map(str, row)) + "\n" for row in rows))
        listing.flush()
        program = f"{build}/bin/cleave-conformance" if build else "cleave-conformance"
        done = subprocess.run([program, *flags, listing.name], stdout=subprocess.PIPE, text=True,
                              errors="replace", check=True)
    words = [line.partition(" ") for line in done.stdout.splitlines()]
    return {name: (status, reason) for status, _, rest in words for name, _, reason in [rest.partition("\t")]}


def count_guarded(texts):
    """(kernels, operands, temporaries) that ran between guards (test/Codegen/Guards.h), as programs print them."""
    found = [re.search(r"(\d+) kernels with (\d+) operands and (\d+) temporaries ran between guards", text) for text in texts]
    return tuple(sum(int(match[group]) for match in found if match) for group in (1, 2, 3))


def compare(rows, refused=()):
    """Prints which of the rows of `conformance` do not pass, and how many do; `refused` are texts of cases that were not even asked. Returns
    the exit code. Cases are told apart by their place: names may be there twice."""
    results = conformance("", [(f"#{index} {name}", *rest) for index, (name, *rest) in enumerate(rows)])
    bad = [f"{status} {name} {reason}" for name, (status, reason) in results.items() if status != "PASS"] + list(refused)
    count = len(results) + len(refused)
    print("\n".join([*bad, f"{count - len(bad)} passed, {len(bad)} failed of {len(rows) + len(refused)}"]))
    return 1 if bad or len(results) != len(rows) else 0


def difference(got, arrays, rtol, atol):
    """Where outputs are not the arrays `out:NAME`, or an empty string; atol is relative to the largest element."""
    expected = {key[4:]: want for key, want in arrays.items() if key.startswith("out:")}
    for name, want in expected.items():
        have = got[name]
        if have.dtype.kind == "V":  # bfloat16: the high half of an f32
            have = (have.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        if have.shape != want.shape:
            return f"{name}: shape {have.shape}, expected {want.shape}"
        have, want = have.astype(np.float64), want.astype(np.float64)
        scale = float(np.abs(want).max(initial=0, where=np.isfinite(want)))
        try:
            np.testing.assert_allclose(have, want, rtol=rtol, atol=atol * scale)
        except AssertionError as error:
            return f"{name}: " + " ".join(str(error).split())[:300]
    return "" if expected else "the case has no outputs to compare with"
