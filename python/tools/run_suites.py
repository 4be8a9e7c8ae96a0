"""Runs suites of Cleave and closes with one line, `N passed, N failed`.

Usage: run_suites.py BUILD_DIR [CHECK...]               all suites, or these: `suite`, or `suite:filter` (suite_map.py)
       run_suites.py BUILD_DIR --quick                  what sees most in little time
       run_suites.py BUILD_DIR --changed [BASE]         what looks at files that differ from BASE (`git merge-base` with main without it)
       run_suites.py BUILD_DIR --merge [--seed N]       what a merge needs; of what runs elsewhere in another form a part, drawn by the seed

A suite is a command with a way to read how many cases passed and failed, and the least number of cases it must have
run, so that an empty or half-skipped suite cannot pass.

Two suites run side by side, since most leave a core idle now and then; what they print comes in the order of the list.
Those whose cases have limits in seconds of the clock (`ALONE`) come before these, one at a time. What is in no hurry (`BEHIND`, and `STEADY` next
to ranks that wait) takes what all others leave, from the beginning on: ranks that wait for each other leave much.
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Callable, Optional

import suite_map

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIT = "/usr/lib/llvm-22/bin/lit"
SIDE_BY_SIDE = 2
# Ranks that must notice within seconds that another one is gone, and progress that is shown by the second.
ALONE = {"CleaveRunnerTests", "CleaveRuntimeTests", "tcp", "devices", "mpi", "cleave-run", "network", "endings", "traces"}
# Of the lowest priority.
BEHIND = {"tidy"}
# Of the lowest priority where ranks that wait run, too: one core for as long as these leave one, without a limit of the clock.
WAITING = {"tcp", "devices", "mpi"}
STEADY = {"CleaveCodegenTests", "CleaveEmulationTests", "CleavePipeTests"}
# Unit tests that take longer than all others together.
LONG = {"CleaveEmulationTests", "CleavePartitionTests", "CleaveRuntimeTests"}
# Of a suite that is drawn from, one case in so many runs.
SHARE = 4
# Of the files that changed (of all, where what all are made of did), clang-tidy looks at so many in a merge, drawn by the seed: each
# takes some three seconds.
MOST_TIDY = 40
# Commits of one merge are not older than this.
MERGE_HOURS = 4


@dataclass
class Suite:
    name: str
    command: list
    count: Callable  # text -> (passed, failed)
    at_least: int
    # What `--quick` runs of it: words for it, and how many cases these are at least; None: nothing.
    quick: Optional[tuple] = None
    # What a merge needs of it: "all", "drawn", "nothing", or "within": each case runs, and of what some of them consist a part is drawn.
    merge: str = "all"
    # Whether a part of it is drawn.
    draws: bool = False

    @property
    def joint(self):
        """How several filters of cases become one; None where there is no such filter."""
        return {count_lit: lambda words: "(" + "|".join(words) + ")", count_gtest: ":".join}.get(self.count)

    def narrow(self, words):
        """The suite for the cases that a filter names."""
        extra = {count_lit: lambda: [f"--filter={words}"], count_gtest: lambda: [f"--gtest_filter={words}"]}.get(self.count, words.split)()
        return replace(self, command=self.command + extra, at_least=1)


def count_lit(text):
    """Lit's summary lines, `  Passed : 12 (100%)`, which come last: the output of a failed test may look like them."""
    summary = text[text.rfind("Total Discovered Tests"):]
    figures = dict((k.strip(), int(v)) for k, v in re.findall(r"^\s{2}([A-Z][A-Za-z ]+?)\s*:\s+(\d+)", summary, re.M))
    passed = figures.pop("Passed", 0)
    for ignored in ("Excluded", "Skipped"):
        figures.pop(ignored, 0)
    return passed, sum(figures.values())


def count_gtest(text):
    passed = re.search(r"\[  PASSED  \] (\d+) test", text)
    failed = re.search(r"\[  FAILED  \] (\d+) test", text)
    return int(passed[1]) if passed else 0, int(failed[1]) if failed else 0


def count_closing(text):
    """The last `N passed, N failed` of a suite of our own."""
    found = re.findall(r"^(\d+) passed, (\d+) failed", text, re.M)
    return (int(found[-1][0]), int(found[-1][1])) if found else (0, 0)


def unit_tests():
    """(program, least number of tests): as CMake names them and the sources have them, not as the build holds them, so
    that what was not built, or left out by a condition, fails."""
    folder = os.path.join(ROOT, "test", "Unit")
    with open(os.path.join(folder, "CMakeLists.txt")) as file:
        programs = re.findall(r"cleave_add_unit_test\((\w+)\s([^)]*)\)", file.read())
    for name, words in sorted(programs):
        least = 0
        for source in re.findall(r"\S+\.cpp", words):
            with open(os.path.join(folder, source)) as file:
                # Tests of what only builds with sanitizers do are not in others.
                text = re.sub(r"^#if __has_feature\(.*?^#endif", "", file.read(), flags=re.M | re.S)
                least += len(re.findall(r"^TEST(?:_F|_P)?\(", text, re.M))
        yield name, least


def suites(build):
    python = sys.executable
    tests = f"{build}/bin/unit"
    yield Suite("lint", [python, "python/tools/lint.py"], count_closing, 14, quick=("", 14))
    for name, least in unit_tests():
        yield Suite(name, [f"{tests}/{name}", "--gtest_brief=1"], count_gtest, least, quick=None if name in LONG else ("", least))
    yield Suite("lit", [python, LIT, "-j2", "--no-progress-bar", f"{build}/test"], count_lit, 315, quick=("", 315), merge="within")
    yield Suite("onnx", [python, "test/Onnx/conformance.py", build], count_closing, 1905)
    yield Suite("resize", [python, "test/Onnx/resize.py", build], count_closing, 72)
    yield Suite("control", [python, "test/Onnx/control.py", build], count_closing, 285, merge="drawn")
    yield Suite("control-programs", [python, "test/Onnx/control.py", build, "--program"], count_closing, 270, merge="drawn")
    yield Suite("control-emulated", [python, "test/Onnx/control.py", build, "--emulated"], count_closing, 260, merge="drawn")
    yield Suite("einsum", [python, "test/Onnx/einsum.py", build], count_closing, 450)
    yield Suite("empty", [python, "test/Onnx/empty.py", build], count_closing, 1250, merge="drawn")
    yield Suite("many-dims", [python, "test/Onnx/many_dims.py", build], count_closing, 164)
    yield Suite("indices", [python, "test/Onnx/indices.py", build], count_closing, 120, merge="drawn")
    yield Suite("gradients", [python, "test/Onnx/gradients.py", build], count_closing, 197)
    yield Suite("gradient-placements", [python, "test/Onnx/gradient_placements.py", build], count_closing, 1600, merge="drawn")
    yield Suite("training-steps", [python, "test/Training/steps.py", build], count_closing, 100)
    yield Suite("training-bytes", [python, "test/Training/bytes.py", build], count_closing, 92)
    yield Suite("training-pipelines", [python, "test/Training/pipelines.py", build], count_closing, 93)
    yield Suite("training-peaks", [python, "test/Training/peaks.py", build], count_closing, 18)
    yield Suite("training-offload", [python, "test/Training/offload.py", build], count_closing, 6)
    yield Suite("training-jax", [python, "test/Training/jax.py", build], count_closing, 9)
    yield Suite("training-lengths", [python, "test/Training/lengths.py", build], count_closing, 5)
    yield Suite("training-calls", [python, "test/Training/calls.py", build], count_closing, 26)
    yield Suite("training-experts", [python, "test/Training/experts.py", build], count_closing, 10)
    yield Suite("training-losses", [python, "test/Training/losses.py", build], count_closing, 29, merge="drawn")
    yield Suite("training-bits", [python, "test/Training/bits.py", build], count_closing, 79, merge="drawn")
    yield Suite("training-plans", [python, "test/Training/found.py", build], count_closing, 4)
