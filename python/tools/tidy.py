"""Runs clang-tidy (.clang-tidy) over lib and tools, and closes with one line, `N passed, N failed`.

Usage: tidy.py BUILD_DIR [FILE...]

A file is looked at again only if something that it is made of has changed: its text, a header of the tree or a generated
one that it includes (ninja knows which), its command line, or .clang-tidy. What was clean is noted under BUILD_DIR/tidy.

Most of the time goes into headers (for each translation unit anew, the parents of all that they declare are looked up), so
many files are looked at in one, as long as they do not define the same local names, nor open what those behind them do not. Only a
batch that is clean counts; any other is divided, down to single files, whose findings are the ones that are reported.
"""
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TIDY = "clang-tidy-22"
# Files in a batch, and where diagnostics of one may lie.
BATCH = 64
ANY_FILE = r"/(include/cleave|lib|tools)/.*\.(h|cpp)$"


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
        return digest([*self.common, command["file"].encode(), command["command"].encode(), *(self.get_text(path) for path in made_of)])

    def is_noted(self, command):
        return command["output"] in self.headers and os.path.exists(os.path.join(self.notes, self.get_key(command)))

    def note(self, command):
        with open(os.path.join(self.notes, self.get_key(command)), "w"):
            pass

    def look(self, path, flags, *options):
        return subprocess.run([TIDY, "--quiet", "--warnings-as-errors=*", *options, path, "--", *shlex.split(" ".join(flags))],
                              cwd=self.build, capture_output=True, text=True)

    def find(self, command):
        """The findings of one file; none if it is clean."""
        done = self.look(command["file"], get_flags(command))
        return (done.stdout or done.stderr) if done.returncode else ""

    def divide(self, batch):
        """One part, the whole batch, if its files as one have no finding; else two, the files that findings name and the
        rest (halves where they name none)."""
        flags = list(dict.fromkeys(flag for command in batch for flag in get_flags(command)))
        # A folder of its own: two runs at once on one build do not take each other's files away.
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "batch.cpp")
            with open(path, "w") as file:
                file.writelines(f'#include "{command["file"]}"\n' for command in batch)
            done = self.look(path, flags, f"--header-filter={ANY_FILE}")
        if not done.returncode:
            return [batch]
        places = set(re.findall(r"^([^\s:]+):\d+:\d+: (?:error|warning):", done.stdout + done.stderr, re.M))
        named = [command for command in batch if command["file"] in places]
        if not named or len(named) == len(batch):
            named = batch[:len(batch) // 2]
        return [named, [command for command in batch if command not in named]]

    def run(self, batch):
        """The findings of a batch's files, as one list."""
        parts = self.divide(batch) if len(batch) > 1 else [batch]
        if len(parts) > 1:
            return [finding for part in parts for finding in self.run(part)]
        findings = self.find(batch[0]) if len(batch) == 1 else ""
        if not findings:
            for command in batch:
                self.note(command)
        return [findings] if findings else []


def get_flags(command):
    """What one file is parsed with: macros (but those that CMake names libraries by), folders, language, the precompiled
    header. Options of several words are one entry, so that the lists of several files can be joined."""
    forms = r" (-Xclang -include\S* -Xclang \S+|-isystem \S+|-(?!D\w+_EXPORTS\b)[DIWO]\S+|-std=\S+|-f(?:no-)?exceptions|-Xclang -fno-pch\S+)"
    return re.findall(forms, command["command"])


def divide_units(commands):
    """A command for each source, where several are compiled as one (CLEAVE_UNITY)."""
    for command in commands:
        if re.search(r"/Unity/unity_\w+\.cxx$", command["file"]):
            for path in re.findall(r'^#include "(.*)"$', read(command["file"]).decode(), re.M):
                yield {**command, "file": path}
        else:
            yield command


def get_precompiled(command):
    """The path of the precompiled header one file is compiled with, or None."""
    found = re.search(r"-include-pch -Xclang (\S+)", command["command"])
    return found and found[1]


class Source:
    """What of a file may be in the way of another one that is looked at with it."""
    def __init__(self, command):
        text = read(command["file"]).decode()
        self.command = command
        # Only files of lib, or of tools, with the same precompiled header are looked at together, and none that catches with others.
        self.kind = command["file"].startswith(ROOT + "/lib/"), get_precompiled(command), "-fexceptions" in get_flags(command)
        self.opened = set(re.findall(r"^using namespace ([\w:]+);", text, re.M))
        # Functions, types and constants that only this file sees, as far as their form tells.
        self.names = set(re.findall(r"^int (main)\b", text, re.M) + re.findall(r"^#define (\w+)", text, re.M)
                         + re.findall(r"^(?:template <[^>]*> )?static [^=;{]*?(\w+)(?:\(|\[| =|\{)", text, re.M)
                         + re.findall(r", (k[A-Z]\w*) =", text)
                         + re.findall(r"^(?:class|struct|enum(?: class)?|constexpr \w+) (\w+)", text, re.M))
        # What it calls types by names of its own: two files may say the same.
        self.aliases = dict(re.findall(r"^using (\w+) = (.*);", text, re.M))


class Batch:
    def __init__(self, kind):
        self.kind, self.opened = kind, set()
        self.names, self.aliases, self.files = set(), {}, []

    def takes(self, source):
        """Whether a file says nothing that those before it say otherwise. What one opens is open for those behind it, so it
        opens all that they do, lest a name become ambiguous."""
        return (self.kind == source.kind and len(self.files) < BATCH and self.opened <= source.opened
                and not self.names & (source.names | source.aliases.keys()) and not self.aliases.keys() & source.names
                and all(self.aliases.get(name, type) == type for name, type in source.aliases.items()))

    def add(self, source):
        self.files.append(source.command)
        self.names |= source.names
        self.aliases |= source.aliases
        self.opened = source.opened


def make_batches(commands):
    """Files that can be one, up to BATCH together. The largest batches first, so that what is left at the end is small."""
    batches = []
    for source in sorted(map(Source, commands), key=lambda source: len(source.opened)):
        batch = next((batch for batch in batches if batch.takes(source)), None)
        if not batch:
            batch = Batch(source.kind)
            batches.append(batch)
        batch.add(source)
    return sorted((batch.files for batch in batches), key=len, reverse=True)


def main():
    build, wanted = sys.argv[1], [os.path.abspath(path) for path in sys.argv[2:]]
    with open(os.path.join(build, "compile_commands.json")) as file:
        commands = [command for command in divide_units(json.load(file)) if command["file"].startswith((ROOT + "/lib/", ROOT + "/tools/"))
                    and (not wanted or command["file"] in wanted)]
    # A file that two libraries compile alike is looked at once.
    commands = list({(command["file"], *get_flags(command)): command for command in commands}.values())
    for command in commands:
        command["output"] = re.search(r" -o (\S+)", command["command"])[1]
    tidy = Tidy(build)
    pending = [command for command in commands if not tidy.is_noted(command)]
    batches = make_batches(pending)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = [text for batch in pool.map(tidy.run, batches) for text in batch]
    for text in findings:
        print(re.sub(r"^.*warnings? generated.*\n|^Suppressed .*\n|^Use -header-filter.*\n", "", text, flags=re.M), end="")
    if not wanted:
        for name in set(os.listdir(tidy.notes)) - {tidy.get_key(command) for command in commands}:
            os.remove(os.path.join(tidy.notes, name))
    print(f"{len(commands) - len(findings)} passed, {len(findings)} failed")
    return 1 if findings or not commands else 0


if __name__ == "__main__":
    sys.exit(main())
