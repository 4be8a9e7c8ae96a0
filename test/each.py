"""Runs commands on every part of a test file: `%{each} %s %t "COMMAND"...`.

A line `//--- NAME` begins a part, a file of its own in the folder %t. What stands before the first part, comments and
aliases, stands in all of them. In a command, {} is the part. Lines keep their numbers, so that messages lead to the test.
"""
import os
import re
import subprocess
import sys


def split(text):
    """(name, text) of each part."""
    lines = text.splitlines()
    begins = [number for number, line in enumerate(lines) if re.match(r"//--- \S+$", line)]
    head = lines[:begins[0]]
    for begin, end in zip(begins, [*begins[1:], len(lines)]):
        blank = [""] * (begin + 1 - len(head))
        yield lines[begin].split()[1], "\n".join([*head, *blank, *lines[begin + 1:end]]) + "\n"


def main(test, folder, *commands):
    os.makedirs(folder, exist_ok=True)
    failed = 0
    with open(test) as file:
        parts = dict(split(file.read()))
    for name, text in parts.items():
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(text)
        for command in commands:
            done = subprocess.run(["bash", "-o", "pipefail", "-c", command.replace("{}", path)], stdin=subprocess.DEVNULL)
            if done.returncode:
                failed += 1
                print(f"FAILED {name}: {command.replace('{}', path)}", file=sys.stderr)
    return 1 if failed or not commands else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
