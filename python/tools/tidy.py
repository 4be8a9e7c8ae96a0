"""Runs clang-tidy (.clang-tidy) over lib and tools, and closes with one line, `N passed, N failed`.

Usage: tidy.py BUILD_DIR [FILE...]

A file is looked at again only if something that it is made of has changed: its text, a header of the tree or a generated
one that it includes (ninja knows which), its command line, or .clang-tidy. What was clean is noted under BUILD_DIR/tidy.
"""
import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TIDY = "clang-tidy-22"


def read_headers(build):
    """Per object file what it was made of, as ninja noted it when it was compiled."""
    listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    for entry in listing.split("\n\n"):
        head, *paths = entry.split("\n")
        yield head.split(":")[0], [os.path.normpath(os.path.join(build, path.strip())) for path in paths]


def digest(chunks):
    total = hashlib.sha256()
    for chunk in chunks:
        total.update(hashlib.sha256(chunk).digest())
    return total.hexdigest()


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Tidy:
    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.notes = os.path.join(self.build, "tidy")
        os.makedirs(self.notes, exist_ok=True)
        self.headers = dict(read_headers(self.build))
        version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
        self.common = [version, read(os.path.join(ROOT, ".clang-tidy"))]
        self.texts = {}

    def get_text(self, path):
        if path not in self.texts:
            self.texts[path] = read(path) if os.path.exists(path) else b""
        return self.texts[path]

    def get_key(self, command):
        # What lies outside the tree comes with the version of the compiler; the precompiled header is made of that.
        made_of = sorted(path for path in self.headers.get(command["output"], [])
                         if path.startswith(ROOT + "/") and not path.endswith(".pch"))
        return digest([*self.common, command["command"].encode(), *(self.get_text(path) for path in made_of)])

    def run(self, command):
        """(key, findings) of one file; no findings if it is clean."""
        key = self.get_key(command)
        if command["output"] in self.headers and os.path.exists(os.path.join(self.notes, key)):
            return key, ""
        done = subprocess.run([TIDY, "-p", self.build, "--quiet", "--warnings-as-errors=*", command["file"]], cwd=ROOT,
                              capture_output=True, text=True)
        if done.returncode:
            return key, done.stdout or done.stderr
        with open(os.path.join(self.notes, key), "w"):
            return key, ""


def main():
    build, wanted = sys.argv[1], [os.path.abspath(path) for path in sys.argv[2:]]
    with open(os.path.join(build, "compile_commands.json")) as file:
        commands = [command for command in json.load(file) if command["file"].startswith((ROOT + "/lib/", ROOT + "/tools/"))
                    and (not wanted or command["file"] in wanted)]
    for command in commands:
        command["output"] = re.search(r" -o (\S+)", command["command"])[1]
    tidy = Tidy(build)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(tidy.run, commands))
    for _, findings in results:
        print(re.sub(r"^.*warnings? generated.*\n|^Suppressed .*\n|^Use -header-filter.*\n", "", findings, flags=re.M), end="")
    if not wanted:
        for name in set(os.listdir(tidy.notes)) - {key for key, _ in results}:
            os.remove(os.path.join(tidy.notes, name))
    failed = sum(bool(findings) for _, findings in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
