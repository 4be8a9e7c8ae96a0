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
    yield Suite("training-peaks", [python, "test/Training/peaks.py", build], count_closing, 172, merge="drawn")
    yield Suite("training-offload", [python, "test/Training/offload.py", build], count_closing, 6)
    yield Suite("training-jax", [python, "test/Training/jax.py", build], count_closing, 9)
    yield Suite("training-attention", [python, "test/Training/attention_devices.py", build], count_closing, 5)
    yield Suite("training-lengths", [python, "test/Training/lengths.py", build], count_closing, 5)
    yield Suite("training-calls", [python, "test/Training/calls.py", build], count_closing, 26)
    yield Suite("training-experts", [python, "test/Training/experts.py", build], count_closing, 10)
    yield Suite("training-losses", [python, "test/Training/losses.py", build], count_closing, 29, merge="drawn")
    yield Suite("training-bits", [python, "test/Training/bits.py", build], count_closing, 79, merge="drawn")
    yield Suite("training-plans", [python, "test/Training/found.py", build], count_closing, 4, merge="drawn")
    yield Suite("training-memory", [python, "test/Training/memory.py", build], count_closing, 9)
    yield Suite("training-models", [python, "test/Training/models.py", build], count_closing, 28, merge="drawn")
    yield Suite("training-forms", [python, "test/Training/onnx_forms.py", build], count_closing, 49)
    yield Suite("training-tuned", [python, "test/Training/tuned.py", build], count_closing, 16)
    yield Suite("windows", [python, "test/Onnx/windows.py", build], count_closing, 500, merge="drawn")
    yield Suite("windows-emulated", [python, "test/Onnx/windows.py", build, "--emulated"], count_closing, 190, merge="drawn")
    yield Suite("models", [python, "test/Models/check.py", build], count_closing, 16)
    yield Suite("models-quantized", [python, "test/Models/quantized.py", build], count_closing, 85)
    # Two of the models that `scripts/check --models` runs.
    yield Suite("wild", [python, "test/Models/wild.py", build], count_closing, 7)
    yield Suite("models-sharded", [python, "test/Models/sharded.py", build], count_closing, 118)
    yield Suite("parallel", [python, "test/Models/Parallel/check.py", build], count_closing, 41)
    yield Suite("found-plans", [python, "test/Models/found.py", build], count_closing, 82, merge="drawn")
    yield Suite("found-placements", [python, "test/Models/placements.py", build], count_closing, 35, merge="drawn")
    yield Suite("uneven-plans", [python, "test/Models/uneven.py", build], count_closing, 36, merge="drawn")
    yield Suite("least-memory", [python, "test/Models/least.py", build], count_closing, 192, merge="drawn")
    yield Suite("styles", [python, "test/Models/styles.py", build], count_closing, 39, merge="drawn")
    yield Suite("roles", [python, "test/Models/roles.py", build], count_closing, 14)
    yield Suite("rings", [python, "test/Models/Parallel/rings.py", build], count_closing, 420, merge="drawn")
    yield Suite("annotated", [python, "test/Models/annotated.py", build], count_closing, 84)
    yield Suite("export", [python, "test/Export/export.py", build], count_closing, 395, merge="drawn")
    yield Suite("export-nodes", [python, "test/Export/nodes.py", build], count_closing, 1590, merge="drawn")
    yield Suite("real-sizes", [python, "test/Models/Parallel/sizes.py", build], count_closing, 26)
    yield Suite("models-outlined", [python, "test/Models/sharded.py", build, "--outlined"], count_closing, 70, merge="drawn")
    yield Suite("models-ordered", [python, "test/Models/sharded.py", build, "--ordered"], count_closing, 70, merge="drawn")
    yield Suite("torch", [python, "test/Models/Torch/check.py", build], count_closing, 280, merge="drawn")
    yield Suite("models-stages", [python, "test/Models/stages.py", build], count_closing, 16)
    yield Suite("models-pipelines", [python, "test/Models/pipelines.py", build], count_closing, 50, merge="drawn")
    yield Suite("pipelines-by-hand", [python, "test/Models/hands.py", build], count_closing, 100, merge="drawn")
    yield Suite("pipelines-emulated", [python, "test/Models/pipelines.py", build, "--emulated"], count_closing, 47, merge="drawn")
    yield Suite("models-inner", [python, "test/Models/inner.py", build], count_closing, 151)
    yield Suite("kernels", [python, "test/Codegen/check.py", build], count_closing, 2533, merge="drawn")
    yield Suite("guards", [python, "test/Codegen/guards.py", build], count_closing, 2300, merge="drawn")
    # Where NVIDIA's assembler is.
    yield Suite("assemble", [python, "test/Codegen/assemble.py", build], count_closing, 128 if shutil.which("ptxas") else 0, merge="drawn")
    yield Suite("figures", [python, "test/Codegen/figures.py", build], count_closing, 19 if shutil.which("ptxas") else 0)
    yield Suite("golden", [python, "test/Golden/check.py", build], count_closing, 183, quick=("", 183))
    yield Suite("golden-times", [python, "test/Golden/times.py", build], count_closing, 366, merge="drawn")
    yield Suite("predictions", [python, "test/Predictions/check.py", build], count_closing, 2900, merge="drawn")
    yield Suite("foreseen-kernels", [python, "test/Predictions/kernels.py", build], count_closing, 200)
    yield Suite("golden-outlined", [python, "test/Golden/check.py", build, "--outlined"], count_closing, 183, merge="drawn")
    yield Suite("golden-ordered", [python, "test/Golden/check.py", build, "--ordered"], count_closing, 183, merge="drawn")
    yield Suite("training", [python, "test/Golden/Training/check.py", build], count_closing, 62)
    yield Suite("differential", [python, "test/Differential/check.py", build], count_closing, 2000, quick=("--count 200", 200), merge="drawn")
    yield Suite("differential-uneven", [python, "test/Differential/check.py", build, "--uneven", "--count", "1000"],
                count_closing, 1000, quick=("--count 200", 200), merge="drawn")
    yield Suite("onnx-programs", [python, "test/Onnx/conformance.py", build, "--program"], count_closing, 1905, merge="drawn")
    yield Suite("models-programs", [python, "test/Models/sharded.py", build, "--program"], count_closing, 102, merge="drawn")
    yield Suite("onnx-emulated", [python, "test/Onnx/conformance.py", "--emulated", build], count_closing, 1905, merge="drawn")
    yield Suite("differential-emulated", [python, "test/Differential/check.py", build, "--emulated", "--count", "500"],
                count_closing, 500, merge="drawn")
    yield Suite("differential-bf16", [python, "test/Differential/check.py", build, "--bf16", "--count", "200"], count_closing, 200, merge="drawn")
    yield Suite("differential-bf16-emulated", [python, "test/Differential/check.py", build, "--bf16", "--emulated", "--count", "100"],
                count_closing, 100, merge="drawn")
    yield Suite("models-emulated", [python, "test/Models/sharded.py", build, "--emulated"], count_closing, 102, merge="drawn")
    yield Suite("models-kernels-alone", [python, "test/Models/sharded.py", build, "--emulated", "--kernels-alone"],
                count_closing, 32, merge="drawn")
    yield Suite("golden-emulated", [python, "test/Golden/check.py", build, "--emulated"], count_closing, 183, merge="drawn")
    yield Suite("variants", [python, "test/Models/variants.py", build], count_closing, 33, merge="drawn")
    yield Suite("models-narrow", [python, "test/Models/narrow.py", build], count_closing, 96, merge="drawn")
    # Fewer without mpirun.
    yield Suite("states", [python, "test/Models/states.py", build], count_closing, 53 if shutil.which("mpirun") else 46)
    yield Suite("generation", [python, "examples/generate.py", build], count_closing, 2)
    yield Suite("finetune", [python, "examples/finetune.py", build], count_closing, 5)
    # Wheels, and what is installed from them.
    yield Suite("python", [python, "test/Python/check.py", build], count_closing, 99)
    yield Suite("golden-programs", [python, "test/Golden/check.py", build, "--program"], count_closing, 183, merge="drawn")
    yield Suite("programs", [python, "test/Runtime/programs.py", build], count_closing, 96, merge="drawn")
    yield Suite("uneven", [python, "test/Runtime/uneven.py", build], count_closing, 15)
    yield Suite("damage", [python, "test/Runtime/damage.py", build], count_closing, 15)
    yield Suite("trained", [python, "test/Export/trained.py", build], count_closing, 3)
    # Fewer without mpirun.
    yield Suite("train", [python, "test/Runtime/train.py", build], count_closing, 29 if shutil.which("mpirun") else 28)
    # Fewer without mpirun.
    yield Suite("pipeline-programs", [python, "test/Runtime/pipelines.py", build], count_closing, 41 if shutil.which("mpirun") else 31)
    yield Suite("tcp", [python, "test/Runtime/check.py", build, "--tcp"], count_closing, 15)
    # Fewer without mpirun.
    yield Suite("devices", [python, "test/Runtime/devices.py", build], count_closing, 101 if shutil.which("mpirun") else 95)
    # Where MPI is installed, the runtime must have been built with it.
    yield Suite("mpi", [python, "test/Runtime/check.py", build], count_closing, 16 if shutil.which("mpicc") else 0)
    # Fewer without mpirun.
    yield Suite("cleave-run", [python, "test/Runtime/run.py", build], count_closing, 76 if shutil.which("mpirun") else 52)
    # One fewer as another user than root.
    yield Suite("network", [python, "test/Runtime/network.py", build], count_closing, 28)
    yield Suite("endings", [python, "test/Runtime/endings.py", build], count_closing, 23 if shutil.which("mpirun") else 22)
    # Fewer without mpirun, and where no clock may be another one.
    hasClocks = shutil.which("unshare") and subprocess.run(["unshare", "--time", "--fork", "true"], capture_output=True).returncode == 0
    yield Suite("traces", [python, "test/Runtime/traces.py", build], count_closing, 8 + 3 * bool(shutil.which("mpirun")) + 3 * bool(hasClocks))
    yield Suite("gpu-kit", [python, "test/Tools/gpu_kit.py", build], count_closing, 110)
    yield Suite("pages", [python, "test/Pictures/pages.py", build], count_closing, 11)
    hasCpack = bool(shutil.which("dpkg-shlibdeps") and os.path.exists(f"{build}/share/doc/cleave/sbom.json"))
    yield Suite("editor", [python, "test/Editor/check.py", build], count_closing, 200, merge="drawn")
    yield Suite("packages", [python, "test/Tools/packages.py", build], count_closing, 4 if hasCpack else 0, merge="drawn")
    yield Suite("docs", [python, "test/Docs/check.py", build], count_closing, 72)
    yield Suite("bad-input", [python, "test/BadInput/check.py", build], count_closing, 248, quick=("", 248))
    yield Suite("tidy", [python, "python/tools/tidy.py", build], count_closing, 190)


def find(check, known):
    """The suite that `suite` or `suite:filter` names."""
    name, _, words = check.partition(":")
    suite = next((suite for suite in known if suite.name == name), None)
    if not suite:
        sys.exit(f"error: no suite is called {name}; there are: " + ", ".join(suite.name for suite in known))
    return suite.narrow(words) if words else suite


# ===--- What is chosen -------------------------------------------------------===


def make_quick(suite):
    """The short form of a suite; the suite where it has none."""
    if suite.quick is None:
        return suite
    words, least = suite.quick
    return replace(suite, command=suite.command + words.split(), at_least=least)


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def find_base():
    """What this tree goes into: the merge base with main; on main itself, where a merge is many commits, what was there `MERGE_HOURS`
    before. None where nobody knows."""
    head = git("rev-parse", "HEAD")
    for branch in ("origin/HEAD", "origin/main", "main"):
        if base := git("merge-base", "HEAD", branch):
            return base if base != head else git("log", "-1", "--format=%H", f"--before={int(git('log', '-1', '--format=%ct')) - MERGE_HOURS * 3600}") or None
    return None


def list_changed(base):
    """Files that differ from `base`, those that git does not know yet included; None where there is no base."""
    changed = git("diff", "--name-only", base) if base else None
    new = git("ls-files", "--others", "--exclude-standard")
    return None if changed is None or new is None else sorted({*changed.splitlines(), *new.splitlines()} - {""})


def tidy_changed(suite, paths, seed=None):
    """Only files that changed are looked at; all where that is not known, or where what all are made of changed. With a seed, `MOST_TIDY` of
    them."""
    if paths is None or any(path.startswith((".clang-tidy", "python/tools/tidy.py")) for path in paths):
        paths = git("ls-files", "lib", "tools")
        if seed is None or paths is None:
            return suite
        paths = paths.splitlines()
    named = [path for path in paths if re.match(r"(lib|tools)/.*\.cpp$", path) and os.path.exists(os.path.join(ROOT, path))]
    if seed is not None and len(named) > MOST_TIDY:
        print(f"clang-tidy looks at {MOST_TIDY} of {len(named)} files", flush=True)
        named = sorted(random.Random(seed).sample(named, MOST_TIDY))
    return suite.narrow(" ".join(named)) if named else None


def choose_changed(known, base):
    base = base or find_base()
    paths = list_changed(base)
    if paths is None:
        sys.exit("error: there is no commit to compare with: name one behind --changed")
    checks = suite_map.choose(paths, known)
    print(f"{len(paths)} files differ from {base[:12]}: " + ("all of --quick" if checks is None else ", ".join(checks)), flush=True)
    if checks is None:
        chosen = [make_quick(suite) for suite in known if suite.quick is not None]
    else:
        chosen = [find(check, known) if ":" in check else make_quick(find(check, known)) for check in checks]
    return [*chosen, *filter(None, [tidy_changed(find("tidy", known), paths)])]


def choose_merge(known, seed):
    """The seed says which cases of suites that are drawn from run; it is told, so that the same can run again."""
    print(f"what is drawn is drawn by seed {seed}: --merge --seed {seed} draws it again", flush=True)
    os.environ["CLEAVE_DRAW"] = f"{seed}/{SHARE}"
    paths = list_changed(find_base())
    for suite in known:
        if suite.name == "tidy":
            if tidy := tidy_changed(suite, paths, seed):
                yield tidy
        elif suite.merge != "nothing":
            # Half of what is due: cases are drawn one by one.
            least = suite.at_least // (2 * SHARE) if suite.merge == "drawn" else suite.at_least
            yield replace(suite, at_least=least, draws=suite.merge != "all")


def choose(options, known):
    if options.quick:
        return [make_quick(suite) for suite in known if suite.quick is not None]
    if options.changed is not None:
        return choose_changed(known, options.changed)
    if options.merge:
        return list(choose_merge(known, options.seed))
    chosen = {check.partition(":")[0] for check in options.checks}
    return [find(check, known) for check in options.checks] if chosen else known


def call(command, environment):
    """(exit code, what was printed, seconds of processors, those of its own processes included) of a command."""
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env=environment)
        except OSError as error:
            return 1, f"cannot run: {error}\n", 0
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        return process.returncode, output.read().decode(errors="replace"), usage.ru_utime + usage.ru_stime


def find_behind(chosen):
    """Names of suites of the lowest priority."""
    names = {suite.name for suite in chosen}
    return names & (BEHIND | STEADY if WAITING <= names else BEHIND)


def run(suite, is_behind=False):
    """(passed, failed, what is to be printed) of one suite."""
    start = time.time()
    lines = [f"== {suite.name}"]
    # Tests that call python3 get this interpreter, which has their packages.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    command = ["nice", "-n", "19", *suite.command] if is_behind else suite.command
    environment = {**os.environ, "PATH": path}
    if not suite.draws:
        environment.pop("CLEAVE_DRAW", None)
    code, text, cpu = call(command, environment)
    passed, failed = suite.count(text)
    if code != 0 and failed == 0:
        failed = 1
    if passed + failed < suite.at_least:
        lines.append(f"{suite.name} ran {passed + failed} cases, expected at least {suite.at_least}")
        failed += 1
    if failed:
        lines.append(text[-20000:])
    lines.append(f"   {suite.name}: {passed} passed, {failed} failed in {time.time() - start:.1f} s ({cpu:.1f} s of processors)")
    return passed, failed, "\n".join(lines)


def run_all(chosen):
    """(passed, failed) of each suite. What a suite prints waits for what stands before it in the list."""
    with ThreadPoolExecutor(1) as behind, ThreadPoolExecutor(1) as alone, ThreadPoolExecutor(SIDE_BY_SIDE) as beside:
        last = find_behind(chosen)
        pools = [behind if suite.name in last else alone if suite.name in ALONE else beside for suite in chosen]
        # By their places: parts of one suite have one name.
        done = {i: pool.submit(run, suite, suite.name in last) for i, (suite, pool) in enumerate(zip(chosen, pools)) if pool is not beside}
        wait(done[i] for i, pool in enumerate(pools) if pool is alone)
        done |= {i: beside.submit(run, suite) for i, (suite, pool) in enumerate(zip(chosen, pools)) if pool is beside}
        for i in range(len(chosen)):
            passed, failed, text = done[i].result()
            print(text, flush=True)
            yield passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("checks", nargs="*")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true")
    which.add_argument("--changed", nargs="?", const="", metavar="BASE")
    which.add_argument("--merge", action="store_true")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    options = parser.parse_args()
    chosen = choose(options, list(suites(options.build)))
    results = list(run_all(chosen))
    passed, failed = (sum(column) for column in zip(*results)) if results else (0, 0)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
