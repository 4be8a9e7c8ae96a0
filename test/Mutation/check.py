"""The mutation run: small errors are put into the code, and each must be reported by a suite that is named for it.

Usage: check.py [--work DIR] [--list] [--prepare] [--no-prepare] [--jobs N] [--log FILE] [EDIT...]

    edits*.py ──▶ a copy of the tree, every edit behind a switch ──▶ one build ──▶ per edit: its suites, switched on

The switch is the environment variable CLEAVE_MUTATION, the edit's number, so that one build serves all edits. The copy
lies in DIR (build/mutation), never in the working tree, and is built anew only where it changed. With names (or parts
of them) only those edits are put in and run, and where unit tests report them, only these tests are built. Closes with `N passed, N failed`: edits reported, edits that no suite saw.

A whole run takes long: with --log lines are appended to a file, and edits that it has are not tried again, so that it may be stopped. At its
end stands a table of the parts of the code that edits are in, as docs/tools.md has it.

An edit whose text is no longer found in its file is an error: the list is kept alive. So is a suite that fails, or runs
nothing, without any edit.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "python", "tools"))
import run_suites  # noqa: E402
from edits import EDITS  # noqa: E402

# A suite that takes longer hangs, which is a report too.
TIMEOUT = 300
SWITCH = """// Written by test/Mutation/check.py: which edit is switched on.
#ifndef CLEAVE_MUTATION_H
#define CLEAVE_MUTATION_H
#include <cstdlib>
inline int cleaveMutation() {
  static const int number = [] {
    const char *text = std::getenv("CLEAVE_MUTATION");
    return text ? std::atoi(text) : 0;
  }();
  return number;
}
#endif // CLEAVE_MUTATION_H
"""


# ===--- The copy ------------------------------------------------------------===


def find(edit, text):
    """Where the edit's text stands, whatever blanks and line breaks are in it; raises ValueError unless that is once."""
    start = 0
    if edit.after:
        start = text.find(edit.after)
        if start < 0:
            raise ValueError(f"'{edit.after}' is not in {edit.file}")
    pattern = r"\s+".join(re.escape(word) for word in edit.old.split())
    found = list(re.finditer(pattern, text[start:]))
    if not found or (len(found) > 1 and not edit.after):
        raise ValueError(f"its text occurs {len(found)} times in {edit.file}, expected once")
    return start + found[0].start(), start + found[0].end()


# The head of a branch, with what opens its body.
HEAD = re.compile(r"if \((.*)\)( \{)?", re.S)
LITERAL = re.compile(r"""/\*.*?\*/|("|')(\\.|(?!\1).)*\1""", re.S)
BRACKETS = re.compile(r"\([^()\[\]{}]*\)|\[[^()\[\]{}]*\]|\{[^()\[\]{}]*\}")
DANGLING = re.compile(r"^(\|\||&&|[=!<>]=|[=.?:,/%<>])|(\|\||&&|[-+*/%=<>?:,!.])$|,| = ")
DECLARATION = re.compile(r"(?!return\b)[A-Za-z_][\w:<>]*[ *&]+[A-Za-z_]\w* *[=;{]")


def misfit(edit):
    """Why the edit cannot be switched within its file, or an empty string: a statement, an expression, or the head of a branch can."""
    is_statement, is_head = edit.old.rstrip()[-1] in ";}", HEAD.fullmatch(edit.old.strip())
    if is_statement and DECLARATION.match(edit.old.strip()):
        return f"it would hide what it declares in a block: '{edit.old}'"
    for text in (edit.old, edit.new):
        head = HEAD.fullmatch(text.strip())
        rest = LITERAL.sub("0", head[1] if head else text).strip()
        # What stands in brackets is whole; `Type{...}` and `call(...)` are names then.
        while (inner := BRACKETS.sub("0", rest)) != rest:
            rest = inner
        if re.search(r"[()\[\]{}]", rest):
            return f"its brackets do not close: '{text}'"
        if not is_statement and rest.count("?") != len(re.findall(r"(?<!:):(?!:)", rest)):
            return f"it is half of a choice: '{text}'"
        if not rest and not is_statement and not is_head or (DANGLING.match if is_statement or head else DANGLING.search)(rest):
            return f"it is no expression and no statement: '{text}'"
    return ""


def switched(old, variants):
    """`old`, or what the edit that is switched on makes of it; a statement where it ends like one, a
    condition where it is the head of a branch; without a head in its place the body always runs."""
    if head := HEAD.fullmatch(old.strip()):
        conditions = [(number, HEAD.fullmatch(new.strip())[1] if new else "true") for number, new in variants]
        return f"if {switched(head[1], conditions)}{head[2] or ''}"
    if old.rstrip()[-1] in ";}":
        tests = "".join(f"if (cleaveMutation() == {number}) {{ {new} }} else " for number, new in variants)
        return "{ " + tests + "{ " + old + " } }"
    tests = "".join(f"cleaveMutation() == {number} ? ({new}) : " for number, new in variants)
    return f"({tests}({old}))"


def mutate(path, text, edits):
    """The text of a file with all its edits in it."""
    places = {}
    for number, edit in edits:
        if why := misfit(edit):
            sys.exit(f"error: edit {edit.name}: {why}")
        try:
            places.setdefault(find(edit, text), []).append((number, edit.new))
        except ValueError as error:
            sys.exit(f"error: edit {edit.name}: {error}")
    spans = sorted(places)
    for (_, end), (begin, _) in zip(spans, spans[1:]):
        if begin < end:
            sys.exit(f"error: edits {[e.name for _, e in edits]} of {path} overlap")
    for begin, end in reversed(spans):
        text = text[:begin] + switched(text[begin:end], places[begin, end]) + text[end:]
    return '#include "cleave/Mutation.h"\n' + text


def write_if_changed(path, data):
    """Leaves the file alone, and its date, where it has these bytes already."""
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == data:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def prepare(work, edits):
    """Brings the copy of the tree up to date, with `edits` in it, each with its number."""
    listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT,
                             capture_output=True, text=True, check=True).stdout.split("\0")
    by_file = {}
    for number, edit in edits:
        by_file.setdefault(edit.file, []).append((number, edit))
    names = {name for name in listing if name and os.path.isfile(os.path.join(ROOT, name))}
    if gone := [f"{edit.name}: {file}" for file, edits in by_file.items() if file not in names for _, edit in edits]:
        sys.exit("error: no such file: " + ", ".join(gone))
    for name in names:
        source = os.path.join(ROOT, name)
        with open(source, "rb") as file:
            data = file.read()
        if name in by_file:
            data = mutate(name, data.decode(), by_file[name]).encode()
        if name == "test/lit.cfg.py":
            data += b'\nconfig.environment["CLEAVE_MUTATION"] = os.environ.get("CLEAVE_MUTATION", "0")\n'
        target = os.path.join(work, name)
        write_if_changed(target, data)
        shutil.copymode(source, target)
    write_if_changed(os.path.join(work, "include/cleave/Mutation.h"), SWITCH.encode())
    # What the tree no longer has would still be found by suites that list folders.
    kept = names | {"include/cleave/Mutation.h"}
    for folder, folders, files in os.walk(work):
        folders[:] = [f for f in folders if f not in ("build", ".venv", ".git", "__pycache__")]
        for file in files:
            path = os.path.join(folder, file)
            if os.path.relpath(path, work) not in kept:
                os.remove(path)


def targets_of(edits, suites):
    """What is to be built for the suites of `edits`; nothing: all."""
    names = {check.partition(":")[0] for edit in edits for check in edit.suites}
    return sorted(names) if all(suites[name].count is run_suites.count_gtest for name in names) else []


def environment():
    """With this interpreter in front, which has the packages that the build and suites want."""
    return {**os.environ, "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])}


def build(work, targets):
    for command in (["cmake", "--preset", "release"], ["ninja", "-C", "build/release", *targets]):
        done = subprocess.run(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=environment())
        if done.returncode:
            sys.exit(f"error: {' '.join(command)} failed\n{done.stdout[-8000:]}")


# ===--- Suites --------------------------------------------------------------===


def command_of(check, suites, build_dir):
    """(command, count) of `suite` or `suite:filter`: cases of a unit test or lit whose names match, or arguments."""
    suite = run_suites.find(check, suites.values())
    fast = ["--gtest_fail_fast"] if ":" in check and suite.count is run_suites.count_gtest else []
    return suite.command + fast, suite.count


def reports(check, number, suites, work):
    """How a suite ends with one edit switched on: (cases passed, cases failed)."""
    command, count = command_of(check, suites, os.path.join(work, "build", "release"))
    # A few regions see what many do.
    switched_on = {**environment(), "CLEAVE_MUTATION": str(number), "CLEAVE_DEVICE_REGIONS": "200"}
    try:
        done = subprocess.run(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", env=switched_on, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return 0, 1
    passed, failed = count(done.stdout)
    return passed, max(failed, int(done.returncode != 0))


def run_edit(number, edit, suites, work, log=""):
    """Prints, and appends to `log`, and returns which suite reports the edit; None if none does."""
    start, by = time.time(), None
    for check in edit.suites:
        if reports(check, number, suites, work)[1]:
            by = check
            break
    line = f"{'reported' if by else 'MISSED  '} {edit.name:34} {by or ', '.join(edit.suites)} ({time.time() - start:.1f} s)"
    print(line, flush=True)
    if log:
        with open(log, "a") as file:
            file.write(line + "\n")
    return by


# ===--- Over several sittings -----------------------------------------------===


def read_log(path):
    """{edit: True if it was reported}, of all sittings; the last one counts."""
    if not path or not os.path.exists(path):
        return {}
    with open(path) as file:
        found = re.findall(r"^(reported|MISSED) +(\S+)", file.read(), re.M)
    return {name: word == "reported" for word, name in found}


def part_of(edit):
    """`lib/Solver`, `lib/Dialect/Spmd`; headers belong to the library of their name."""
    words = edit.file.replace("include/cleave/", "lib/", 1).split("/")
    return "/".join(words[:3 if words[1] == "Dialect" else 2]) if words[0] == "lib" else words[0]


def format_table(log):
    """Of each part of the code, the most edits first: how many were tried and reported."""
    parts = {}
    for edit in EDITS:
        if edit.name in log:
            parts.setdefault(part_of(edit), []).append(log[edit.name])
    rows = sorted(parts.items(), key=lambda item: (-len(item[1]), item[0]))
    rows.append(("all", [reported for _, results in rows for reported in results]))
    return "\n".join(["| part | edits | reported |", "|---|---|---|",
                      *(f"| {part} | {len(results)} | {sum(results)} |" for part, results in rows)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "mutation"), help="where the copy lies")
    parser.add_argument("--list", action="store_true", help="print the edits and end")
    parser.add_argument("--prepare", action="store_true", help="write the copy and end")
    parser.add_argument("--no-prepare", action="store_true", help="take the copy as it is")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="edits tried side by side")
    parser.add_argument("--log", default="", help="where lines are appended; what it has is not tried again")
    parser.add_argument("edits", nargs="*", help="names, or parts of names, of the edits to try")
    arguments = parser.parse_args()
    if len({edit.name for edit in EDITS}) < len(EDITS):
        sys.exit("error: two edits have one name")
    chosen = [(number, edit) for number, edit in enumerate(EDITS, 1)
              if not arguments.edits or any(part in edit.name for part in arguments.edits)]
    known = read_log(arguments.log)
    chosen = [(number, edit) for number, edit in chosen if edit.name not in known]
    if not chosen and known:
        print(format_table(known))
        return 0
    if arguments.list:
        for _, edit in chosen:
            print(f"{edit.name:34} {edit.file}: {edit.breaks}")
        return 0
    work = os.path.abspath(arguments.work)
    if not arguments.no_prepare:
        prepare(work, chosen)
    if arguments.prepare:
        return 0
    suites = {suite.name: suite for suite in run_suites.suites(os.path.join(work, "build", "release"))}
    build(work, targets_of([edit for _, edit in chosen], suites))
    with ThreadPoolExecutor(arguments.jobs) as pool:
        checks = sorted({check for _, edit in chosen for check in edit.suites})
        plain = list(pool.map(lambda check: reports(check, 0, suites, work), checks))
        if bad := [f"{check}: {p} passed, {f} failed" for check, (p, f) in zip(checks, plain) if f or not p]:
            sys.exit("error: without any edit: " + "; ".join(bad))
        results = list(pool.map(lambda item: run_edit(*item, suites, work, arguments.log), chosen))
    missed = [edit.name for (_, edit), by in zip(chosen, results) if not by]
    if arguments.log:
        print(format_table(read_log(arguments.log)))
    if missed:
        print("reported by none: " + ", ".join(missed))
    print(f"{len(results) - len(missed)} passed, {len(missed)} failed")
    return 1 if missed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
