"""The house rules, as a script: layout, include direction, descriptions and tests of passes, fresh docs, format.

Usage: lint.py [--fix-docs]

Each rule is one function that yields a line per violation; docs/architecture.md explains the rules.
"""
import collections
import os
import re
import subprocess
import sys

from lint_edges import EDGES

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build", "release")

# What TableGen writes calls this file: it holds what whole classes of ops say of their rules; the library that it is in has both folders.
GENERATED = {"lib/Dialect/Nn/IR/GeneratedOps.h": "Dialect/Nn/ShardingRules"}
# What the runtime links is the standard library alone: no LLVM header may reach it. And libraries that are pure C++: no MLIR header may.
WITHOUT_LLVM = ["Program", "Arrays", "Cuda", "Runtime", "RuntimeApi", "Runner", "Emulation"]
WITHOUT_MLIR = WITHOUT_LLVM + ["Support", "Sharding", "Plan", "Solver", "Search", "Schedule", "Onnx"]
# Words that shall not come back: British spellings by their stems (a path can be guessed only with one spelling), and what the field calls otherwise
# (docs/glossary.md), in messages.
BRITISH = ("neighbour|linearis|centred|quantis|modelled|normalis|minimis|maximis|recognis|finalis|optimis|canonicalis|synchronis|summaris|colour|"
           "materialis|generalis|vectoris|serialis|behaviour|initialis|specialis|parallelis(?!m)|labelled|favour|organis(?!m)|utilis|characteris(?!t)|licence|defence")
UNCLEAR = r"(?<!there )\bis no (?!longer|more|less|larger|smaller|further|other|way|room|need|rank)\w"
# What pages do not say outside of code: the field's words for it are in docs/glossary.md, and a sentence has a subject.
OLDER = r"wish(?:e[sd])?|beside|dearer|menus?|held in terms|whoever|nobody|somebody"
# In messages: what has no subject, and places that are none in the room.
OLDER_IN_MESSAGES = r"beside|behind|stands|lies|whoever|nobody|somebody|held in terms|wish(?:e[sd])?"
# The same in names of code, by what they are parts of: what stands for "all of it" in ordinary English has other names there, such as isFull.
OLDER_NAMES = (r"\w*(?:[iI]s|add|[sS]hared?|reducesTo|explain|describe|count|make|create)Wholes?\w*|Whole(?:Parameters|Ops)|[Ww]holes|"
               r"cuts?[A-Z]\w*|\w*[a-z]Cuts?(?:[A-Z]\w*)?|\w*Cutter\w*|[sS]weep(?:er|s|[A-Z]\w*)|\w*[a-z]Sweeps?|[eE]scaping|isEscaping|"
               r"EdgePrice|priceOf|unpriced|FormTable|(?:Fold|Element|Tile|Fill|Pull|Expand|Attention)Form|[fF]ormKernels")
# Columns of prose, and words of a paragraph.
WIDTH = 140
WORDS = 120
# Share of lines that are comments, at least (docs/style.md).
COMMENTS = {"headers": (0.30, ["include/*.h", "lib/*.h"]), "sources": (0.12, ["lib/*.cpp", "tools/*.cpp"])}
# Lines that a file of each kind may have; what is over a soft limit is told, and is time to split.
LIMITS = {".cpp": 800, ".h": 250, ".td": 500, ".mlir": 400, ".test": 400, ".py": 500}
SOFT_LIMITS = {".cpp": 500}


def read(path):
    with open(os.path.join(ROOT, path), errors="replace") as file:
        return file.read()


def tracked(*patterns):
    listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns], cwd=ROOT,
                             capture_output=True, text=True, check=True)
    return [name for name in listing.stdout.split("\n") if name and os.path.exists(os.path.join(ROOT, name))]


def library_of(path):
    """The library of a path below lib/ or include/cleave/, or None."""
    inner = re.sub(r"^(lib|include/cleave)/", "", path)
    return next((name for name in EDGES if inner.startswith(name + "/")), None)


def check_include_direction():
    """A library includes only what the graph of libraries (EDGES) lets it, and the graph has no other edges and no cycles."""
    used = collections.defaultdict(set)
    for path in tracked("lib/*.cpp", "lib/*.h", "include/*.h"):
        own = library_of(path)
        for header in map(os.path.normpath, included(path)):
            other, name = library_of(header), header.removeprefix("include/cleave/")
            used[own] |= {other, name}
            if own and other and other != own and not {other, name} & set(EDGES[own].split()) and GENERATED.get(path) != other:
                yield f"{path}: includes {header}; {own} may not include {other}"
    order = list(EDGES)
    for name, others in EDGES.items():
        for other in others.split():
            if other not in used[name]:
                yield f"python/tools/lint.py: {name} may include {other}, but does not"
            if order.index(library_of(other) or other) > order.index(name):
                yield f"python/tools/lint.py: {other} stands below {name}, which includes it"


def included(path):
    """What a file includes in quotes: headers of the tree by their path in it, others as written."""
    for line in re.findall(r'#include "([^"]+)"', read(path)):
        own = "include/" + line if line.startswith("cleave/") else os.path.join(os.path.dirname(path), line)
        yield own if os.path.exists(os.path.join(ROOT, own)) else line


def find_header(path, unwanted, seen):
    """The way from `path` to an unwanted header, through headers of the tree, or None. Generated `.inc` bring MLIR."""
    seen.add(path)
    for header in included(path):
        if header.startswith(unwanted) or header.endswith(".inc"):
            return [path, header]
        if os.path.exists(os.path.join(ROOT, header)) and header not in seen:
            if way := find_header(header, unwanted, seen):
                return [path, *way]
    return None


def check_no_mlir():
    """Pure libraries see no MLIR header, and those of the runtime no LLVM header, not even through headers of others."""
    for path in tracked("lib/*.cpp", "lib/*.h", "include/*.h"):
        library = re.sub(r"^(lib|include/cleave)/", "", path).split("/")[0]
        if library not in WITHOUT_MLIR or path.endswith("PrecompiledMlir.h"):
            continue
        if way := find_header(path, ("mlir/", "llvm/") if library in WITHOUT_LLVM else ("mlir/",), set()):
            yield f"{library} is pure C++: {' includes '.join(way)}"


def oversized(limits):
    """(path, lines, limit) of files that are longer than `limits` allow."""
    for path in tracked():
        limit = limits.get(os.path.splitext(path)[1])
        lines = read(path).count("\n") if limit and not path.startswith(("docs/generated", "third_party")) else 0
        if limit and lines > limit:
            yield path, lines, limit


def check_sizes():
    """No file is longer than its kind may be."""
    for path, lines, limit in oversized(LIMITS):
        yield f"{path}: {lines} lines, limit {limit}"


def passes():
    """(argument, summary, description, file) of every pass in TableGen."""
    for path in tracked("dialects/*Passes.td"):
        for body in re.findall(r"def \w+ : \w*Pass<.*?\n}", read(path), re.S):
            argument = re.search(r'\w*Pass<"([^"]+)"', body)[1]
            description = re.search(r"let description = \[\{(.*?)\}\]", body, re.S)
            summary = re.search(r'let summary = "([^"]+)"', body)
            yield argument, summary and summary[1], description and description[1].strip(), path


def check_passes():
    """Every pass has a summary, a description, a file of its name and a test of its name; Transforms have no other files than passes and their parts."""
    tests = [os.path.basename(path) for path in tracked("test/*")]
    files = {os.path.basename(path) for path in tracked("lib/Dialect/*/Transforms/*.cpp", "lib/Pipelines/*.cpp")}
    for argument, summary, description, path in passes():
        stem = argument.split("-", 1)[1]
        file = "".join(map(str.capitalize, stem.split("-"))) + ".cpp"
        if not summary or not description or len(description) < 60:
            yield f"{path}: pass {argument} lacks a summary or a description"
        if file not in files:
            yield f"{path}: pass {argument} has no {file} under Transforms or Pipelines"
        if not any(test.startswith((stem, argument)) for test in tests):
            yield f"{path}: pass {argument} has no test named {stem}*.mlir"
    names = tuple("".join(map(str.capitalize, argument.split("-")[1:])) for argument, *_ in passes())
    for path in [path for path in tracked("lib/Dialect/*/Transforms/*") if not os.path.basename(path).startswith(names)]:
        yield f"{path}: is not named after a pass"


def check_labels():
    """Where FileCheck reads what comes of several functions, a line (CHECK-LABEL, as a rule) names each."""
    for path in tracked("test/*.mlir", "test/*.test"):
        text = read(path)
        if "/Inputs/" in path or "FileCheck" not in text:
            continue
        named = set(re.findall(r"@([\w$.-]+)", "\n".join(re.findall(r"^.*?\b[A-Z][A-Z0-9-]*: .*$", text, re.M))))
        for part in re.split(r"^(?:// -----|\S+--- \S+)$", text, flags=re.M):
            names = re.findall(r"^ *func\.func (?:public )?@([\w$.-]+)", part, re.M)
            if len(names) > 1 and "expected-" not in part and (missing := [n for n in names if n not in named]):
                yield f"{path}: no CHECK-LABEL for {', '.join(missing)}"


def families():
    """(operation class, name in the IR, family) of every op of nn: the family is the TableGen file that defines it."""
    for path in tracked("dialects/Nn/Ops/*.td"):
        for name, op in re.findall(r'^def Nn_(\w+Op) *: *Nn_\w+<"(\w+)"', read(path), re.M):
            yield name, op, os.path.splitext(os.path.basename(path))[0]


# What an op has in C++, by folder: in the file that is named after its family.
HOMES = {
    "lib/Dialect/Nn/IR": r"\b(\w+Op)::(?:inferTypes|verify\w*|fold)\(",
    "lib/Dialect/Nn/ShardingRules": r"\b(\w+Op)::getShardingRule\(",
    "lib/Dialect/Nn/Partition": r"\b(\w+Op)::partition\(",
    "lib/Reference": r"\badd\w*<nn::(\w+Op)>\(",
    "lib/Codegen": r"\badd\w*<nn::(\w+Op)\b",
    "lib/Export/Onnx": r"\badd\w*<nn::(\w+Op)>\(",
}

# Importers of ONNX ops that are nothing but others of ours.
ONLY_ONNX = ["Control", "Fused", "Learning", "LinearAttention", "Loss", "Random", "Sampling", "Scan", "Selection", "Sequence", "Signal", "Training", "Trees"]


def check_families():
    """An op has one family name everywhere: types, rule, partition, kernel, importer and tests lie in files of that name."""
    family = {name: file for name, _, file in families()}
    for file in sorted(set(family.values())):
        for test in (f"IR/invalid-{file.lower()}.mlir", f"Rules/{file.lower()}.mlir"):
            if not os.path.exists(os.path.join(ROOT, "test/Dialect/Nn", test)):
                yield f"dialects/Nn/Ops/{file}.td: has no test/Dialect/Nn/{test}"
    # Loops have ops instead of rules and kernels.
    family["LoopOp"] = "Control"
    for folder, pattern in HOMES.items():
        for path in tracked(f"{folder}/*.cpp"):
            for name in re.findall(pattern, read(path)):
                if f"{folder}/{family.get(name)}.cpp" != path:
                    yield f"{path}: {name} belongs into {folder}/{family.get(name)}.cpp"
    # An ONNX op that is called as an op of ours (`CumSum`, `QuantizeLinear`, `LayerNormalization`).
    ours = {op.replace("_", ""): file for _, op, file in families()}
    for path in tracked("lib/Import/Onnx/*.cpp"):
        name = os.path.splitext(os.path.basename(path))[0]
        rows = re.findall(r'registry\.add\("(\w+)"', read(path))
        if rows and name not in ONLY_ONNX and name not in family.values():
            yield f"{path}: {name} is no family of ops"
        for onnx in rows:
            home = ours.get(re.sub("linear$|alization$", "", onnx.lower()))
            if home and f"lib/Import/Onnx/{home}.cpp" != path:
                yield f"{path}: {onnx} belongs into lib/Import/Onnx/{home}.cpp"


def check_house():
    """Every folder that docs/architecture.md lists is there, and every folder of code is listed."""
    text = read("docs/architecture.md")
    house = text[text.index("## The house"):text.index("## What may include what")]
    listed = set(re.findall(r"(?<![\w/])(?:[\w-]+/)+(?!\w)", "\n".join(re.findall(r"^    \S.*", house, re.M))))
    for folder in sorted(listed):
        if not os.path.isdir(os.path.join(ROOT, folder)):
            yield f"docs/architecture.md: {folder} does not exist"
    for folder in sorted({os.path.dirname(path) + "/" for path in tracked("lib/*.cpp")}):
        if not any(folder.startswith(known) for known in listed):
            yield f"docs/architecture.md: does not list {folder}"


# What has one table, and what is spelled in all places that a new one still needs: a section of CONTRIBUTING.md, one of its kind (not in a
# comment), and how many files name that, folders of their own aside.
WAYS = {
    "Add a collective": (r"(?i)all_?to_?all", 15),
    "Add a lowering option": (r"(?i)(?<!ge)tf32", 12),
    "Add a communicator": (r"\b_?tcp(?!_)|Tcp(?![a-z])|TCP", 6),
    "Add a device target": (r"(?i)emulated|\bDevice::(?-i:Host|Cuda)\b", 14),
}


def code_files():
    """Sources of the compiler and the runtime, by path, without comments."""
    for path in tracked("lib/*", "include/*", "dialects/*", "tools/*"):
        if path.endswith((".cpp", ".h", ".td", ".fbs")):
            yield path, re.sub(r"//.*|/\*.*?\*/", "", read(path), flags=re.S if path.endswith("runtime.h") else 0)
        elif path.endswith("CMakeLists.txt"):
            yield path, re.sub(r"#.*", "", read(path))


def check_ways():
    """CONTRIBUTING.md lists the files that name a collective, a lowering option, a communicator, a device target: all of them, no other, no more than before."""
    text, code = read("CONTRIBUTING.md"), dict(code_files())
    for heading, (pattern, most) in WAYS.items():
        section = re.search(rf"^## {heading}\n(.*?)^## ", text, re.M | re.S)
        naming = {path for path in code if re.search(pattern, code[path])}
        listed, folders = set(), set()
        for name in re.findall(r"`([\w./]+(?:\.cpp|\.h|\.td|\.fbs|CMakeLists\.txt|/))`", section[1] if section else ""):
            if name.startswith("test/"):
                if not os.path.exists(os.path.join(ROOT, name)):
                    yield f"CONTRIBUTING.md: {name} does not exist"
                continue
            found = {path for path in code if path == name or path.endswith("/" + name) or name.endswith("/") and path.startswith(name)}
            if len(found) != 1 and not name.endswith("/"):
                yield f"CONTRIBUTING.md, {heading}: {name} is {len(found)} files"
            elif not found & naming:
                yield f"CONTRIBUTING.md, {heading}: {name} does not name one"
            listed |= found
            folders |= found if name.endswith("/") else set()
        for path in sorted(naming - listed):
            yield f"{path}: CONTRIBUTING.md, {heading}, does not list it"
        if len(naming - folders) != most:
            yield f"{heading}: {len(naming - folders)} files name one, expected {most}: fewer is a number to write down, more belong into its table"


def check_guards():
    """A header's guard is its path."""
    for path in tracked("include/*.h", "lib/*.h"):
        guard = "CLEAVE_" + re.sub(r"[/.]", "_", re.sub(r"^include/cleave/", "", path)).upper()
        if f"#ifndef {guard}" not in read(path):
            yield f"{path}: guard is not {guard}"


def check_format():
    """C++ is formatted; `scripts/format` mends it."""
    done = subprocess.run(["scripts/format", "--check"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        names = sorted(set(re.findall(r"^([^:\n]+):\d+:\d+: error", done.stderr, re.M)))
        yield "not formatted, run scripts/format: " + ", ".join(names[:20])


def check_usings():
    """A name that a source file takes from a namespace is used there, or in an .inc that it includes."""
    for path in tracked("lib/*.cpp", "tools/*.cpp"):
        text = re.sub(r"//.*", "", read(path))
        for name in re.findall(r"^using [\w:]+::(\w+);", text, re.M):
            if len(re.findall(rf"\b{name}\b", text)) < 2 and not re.search(r"^#include .*\.inc\"", text, re.M):
                yield f"{path}: does not use {name}"


def check_words():
    """Nothing of the machine that it was written on."""
    for path in tracked():
        if path == "python/tools/lint.py" or path.endswith((".npz", ".onnx", ".bin")):
            continue
        for word in ("/work/", "/tmp/team"):
            if word in read(path):
                yield f"{path}: names {word}"


def check_spelling():
    """American spelling, in names of files too, and no message that says \"is no X\" for \"is not an X\", or where something \"lies\"."""
    for path in tracked():
        if path == "python/tools/lint.py" or path.endswith((".npz", ".onnx", ".bin")) or path.startswith("fuzz/corpus"):
            continue
        text = read(path)
        for word in sorted(set(re.findall(rf"\w*(?:{BRITISH})\w*", path + " " + text, re.I))):
            yield f"{path}: {word} is British"
        if re.match(r"(lib|include|tools|dialects)/", path):
            for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text):
                if re.search(UNCLEAR, literal):
                    yield f"{path}: \"{literal[:60]}\" says \"is no\""
                if path.endswith((".cpp", ".h")) and " " in literal and (word := re.search(rf"\b(?:{OLDER_IN_MESSAGES})\b", literal)):
                    yield f"{path}: \"{literal[:60]}\" says \"{word[0]}\" (docs/glossary.md)"


def check_names():
    """Names in C++ are the words of docs/glossary.md."""
    for path in tracked("*.cpp", "*.h", "*.td"):
        text = re.sub(r'//[^\n]*|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"', "", read(path), flags=re.S)
        for name in sorted(set(re.findall(rf"\b(?:{OLDER_NAMES})\b", text))):
            yield f"{path}: {name} is an older word (docs/glossary.md)"


def check_width():
    """Prose of pages has lines of 140 columns at most; tables, code and links alone may be longer."""
    for path in tracked("*.md"):
        if path.startswith("docs/generated"):
            continue
        isCode = False
        for number, line in enumerate(read(path).split("\n"), 1):
            isCode ^= line.lstrip().startswith("```")
            if len(line) > WIDTH and not isCode and not re.match(r"\||    |!\[|`cleave [^`]*`:$", line) and " " in line[:WIDTH].strip():
                yield f"{path}:{number}: {len(line)} columns"


def pages():
    """The pages that people write."""
    return [path for path in tracked("*.md") if not path.startswith("docs/generated")]


def paragraphs(text):
    """(line, words) of every paragraph of a page. Each item of a list is one; tables, headings and blocks of code are none."""
    number, words, isCode, isText = 0, 0, False, False
    for current, line in enumerate((text + "\n").split("\n"), 1):
        isFence = line.lstrip().startswith("```")
        isCode ^= isFence
        isBlock = isFence or isCode or not isText and line.startswith("    ")
        isBreak = isBlock or not line.strip() or re.match(r"\s*[|#]", line)
        if words and (isBreak or re.match(r"\s*([*-]|\d+\.)\s", line)):
            yield number, words
            words = 0
        isText = not isBreak
        if isText:
            number = number if words else current
            words += len(re.sub(r"^\s*([*-]|\d+\.)\s", "", line).split())


def check_paragraphs():
    """No paragraph, and no item of a list, has more than 120 words."""
    for path in pages():
        for number, words in paragraphs(read(path)):
            if words > WORDS:
                yield f"{path}:{number}: a paragraph of {words} words, limit {WORDS}"


def check_terms():
    """Pages use the field's terms."""
    for path in pages():
        text = re.sub(r"^ *```.*?^ *```|^    [^\n]*|`[^`\n]*`", lambda code: "\n" * code[0].count("\n"), read(path), flags=re.M | re.S)
        for number, line in enumerate(text.split("\n"), 1):
            for word in re.findall(rf"\b(?:{OLDER})\b", line if path != "docs/glossary.md" else "", re.I):
                yield f"{path}:{number}: says \"{word}\""


def check_readers():
    """Each page of docs says in its first lines for whom it is."""
    for path in tracked("docs/*.md"):
        if not re.match(r"(?:<!-- .* -->\n\n)?# .*\n\nFor: ", read(path)):
            yield f"{path}: has no line 'For: ..' below its title"


def check_docs():
    """docs/generated is what the build generates."""
    from generate_docs import generate
    for path, text in generate(BUILD):
        full = os.path.join(ROOT, path)
        old = read(path) if os.path.exists(full) else None
        if old == text:
            continue
        if "--fix-docs" in sys.argv:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w") as file:
                file.write(text)
        else:
            yield f"{path} is stale; mend it with: python3 python/tools/lint.py --fix-docs"


def comment_share(kind):
    """Part of the lines of a kind of file that are comments; blank lines do not count."""
    lines = [line.lstrip() for path in tracked(*COMMENTS[kind][1]) for line in read(path).split("\n") if line.strip()]
    return sum(line.startswith("//") for line in lines) / len(lines)


def check_comments():
    """Sources open with what they are for, in words below their name, and comments have their share of the lines."""
    for path in tracked("lib/*.cpp", "tools/*.cpp"):
        if not re.match(r"//===.*\n//\n(// .*\n)", read(path)):
            yield f"{path}: has no head that says its purpose"
    for kind, (least, _) in COMMENTS.items():
        if (share := comment_share(kind)) < least:
            yield f"{share:.1%} of the lines in {kind} are comments, expected at least {least:.0%}"


def check_edits():
    """Every edit of the mutation run has its own name, finds its text once, in the file that it names, can be switched there, and its suites are there."""
    sys.path.insert(0, os.path.join(ROOT, "test", "Mutation"))
    from check import EDITS, find, misfit, run_suites
    suites = {suite.name for suite in run_suites.suites(BUILD)}
    for name, count in collections.Counter(edit.name for edit in EDITS).items():
        if count > 1:
            yield f"test/Mutation: {count} edits are called {name}"
    spans = collections.defaultdict(set)
    for edit in EDITS:
        if why := misfit(edit):
            yield f"test/Mutation/edits.py: {edit.name}: {why}"
        try:
            spans[edit.file].add(find(edit, read(edit.file)))
        except (OSError, ValueError) as error:
            yield f"test/Mutation/edits.py: {edit.name}: {error}"
        for name in {suite.split(":")[0] for suite in edit.suites} - suites:
            yield f"test/Mutation/edits.py: {edit.name}: no suite is called {name}"
    for file, places in spans.items():
        for (_, end), (begin, _) in zip(sorted(places), sorted(places)[1:]):
            if begin < end:
                yield f"test/Mutation/edits.py: two edits of {file} overlap at its character {begin}"


def main():
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    rules = [value for name, value in sorted(globals().items()) if name.startswith("check_")]
    failed = 0
    for rule in rules:
        lines = list(rule())
        failed += bool(lines)
        print(f"{'FAIL' if lines else 'ok  '} {rule.__doc__.splitlines()[0]}")
        for line in lines:
            print("     " + line)
    for path, lines, limit in oversized(SOFT_LIMITS):
        print(f"warning: {path}: {lines} lines, over the soft limit of {limit}")
    for kind in COMMENTS:
        print(f"comments in {kind}: {comment_share(kind):.1%} of lines")
    print(f"{len(rules) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
