"""Bad input: each case must end with exit code 1 (2 for the command line), one located message, and nothing written.

Usage: check.py BUILD_DIR [NAME...]

A case is a function of this module or of cases_*.py that yields `Case`s. Limits hold for each: 10 seconds (or what the case says), 1 GB; not the
second one where the build is one with sanitizers, whose shadow memory is all address space; cases about that limit are
left out there.
"""
import os
import resource
import subprocess
import sys
import tempfile

sys.path.insert(1, os.path.dirname(sys.path[0]))
import cases_command
import cases_data
import cases_files
import cases_model
import cases_plan
import cases_schedule
import cases_step
import cases_training
import harness
from case import Case

bytes_allowed = 1 << 30


def is_sanitized(build):
    with open(f"{build}/CMakeCache.txt") as cache:
        return any(line.startswith("CLEAVE_SANITIZE:") and line.strip().endswith("=ON") for line in cache)


def limit():
    if bytes_allowed:
        resource.setrlimit(resource.RLIMIT_DATA, (bytes_allowed, bytes_allowed))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def ending(build, case: Case, folder):
    """What is wrong with how a case ends, or an empty string."""
    before = set(os.listdir(folder))
    try:
        done = harness.cleave(build, *case.arguments, cwd=folder, timeout=case.seconds, preexec_fn=limit, input=case.stdin)
    except subprocess.TimeoutExpired:
        return f"took more than {case.seconds} s"
    errors = [line for line in done.stderr.splitlines() if "error: " in line]
    if done.returncode != case.exit_code:
        return f"exit code {done.returncode}, expected {case.exit_code}: {done.stderr[-400:]}"
    if len(errors) != (case.exit_code != 0):
        return f"{len(errors)} error lines, expected {int(case.exit_code != 0)}: {done.stderr[-600:]}"
    missing = [word for word in case.words if word not in done.stderr]
    if missing:
        return f"the message lacks {missing}: {done.stderr[-600:]}"
    if case.exit_code == 0:
        return ""
    written = set(os.listdir(folder)) - before
    return f"left behind {sorted(written)}" if written else ""


def given(case, folder):
    """What a case's files hold."""
    contents = {}
    for name in case.files:
        path = os.path.join(folder, name)
        inside = [os.path.join(path, each) for each in os.listdir(path)] if os.path.isdir(path) else [path]
        for each in filter(os.path.isfile, inside):
            with open(each, "rb") as file:
                contents[os.path.relpath(each, folder)] = file.read()
    return contents


def problem(build, case: Case):
    with tempfile.TemporaryDirectory() as folder:
        for name, content in case.files.items():
            path = os.path.join(folder, name)
            if callable(content):
                content(path)
            else:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(content)
        before = given(case, folder)
        text = ending(build, case, folder)
        changed = [name for name, content in given(case, folder).items() if before.get(name) != content]
        return text or (f"changed what was given, {changed}" if changed and case.exit_code else "")


def main():
    global bytes_allowed
    build, names, _ = harness.arguments()
    if is_sanitized(build):
        bytes_allowed = None
    cases = [case for module in (cases_model, cases_command, cases_data, cases_files, cases_plan, cases_schedule, cases_step, cases_training) for case in module.cases()
             if not (case.is_about_limit and bytes_allowed is None)]
    by_name = {case.name: case for case in cases}
    assert len(by_name) == len(cases), "two cases have one name"
    return harness.run(harness.select(by_name, names), lambda case: problem(build, case))


if __name__ == "__main__":
    sys.exit(main())
