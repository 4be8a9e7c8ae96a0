"""Which suites look at a file: one map, for `scripts/check --changed` and, error by error, for test/Mutation.

    lib/Solver/CoordinateDescent.cpp     suites of its folder (AREAS), and those that report errors in it (test/Mutation/edits*.py)
    test/Golden/case.py      suites whose program lies in that folder, or above it
    docs/pipelines.md        lint, docs

A check is a suite, or `suite:filter`: cases of a unit test or lit whose names match, or arguments of any other.
"""
import os
import re
import sys
from collections import defaultdict

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# By folder of lib, include/cleave or dialects; the longest that fits counts.
AREAS = {
    "Annotations": ["lit:Import/devices", "lit:Driver/emit-onnx", "annotated"],
    "Arrays": ["CleaveSupportTests", "lit:Driver/run", "cleave-run"],
    "Assembly": ["lit:Assembly", "variants", "programs", "states"],
    "Codegen": ["CleaveCodegenTests", "CleaveEmulationTests", "lit:Codegen", "lit:Execute", "kernels", "onnx-programs", "onnx-emulated",
                "differential", "models-programs", "models-narrow"],
    "Compiler": ["CleaveCompilerTests", "lit:Compiler/", "lit:Driver/", "golden-times"],
    "Cuda": ["CleaveCudaTests"],
    "Dialect/Exec": ["lit:Exec/", "training-memory", "training-offload", "lit:Execute/", "lit:Pipelines/", "differential", "golden-outlined", "golden-ordered", "golden-programs", "rings"],
    "Dialect/Nn": ["CleaveDialectTests", "CleavePartitionTests", "lit:Dialect/Nn", "lit:Import/", "onnx"],
    "Dialect/Nn/Partition": ["CleavePartitionTests", "CleavePipeTests", "lit:Execute/", "differential"],
    "Dialect/Nn/ShardingRules": ["CleavePartitionTests", "CleavePipeTests", "lit:Nn/Rules", "golden", "differential"],
    "Dialect/Nn/Gradients": ["gradients", "gradient-placements", "training-steps", "training-models"],
    "Dialect/Nn/Training": ["lit:Nn/Transforms", "training-steps", "training-forms", "training-bytes", "training-losses", "training-bits", "training-memory", "training-jax", "training-lengths"],
    "Dialect/Nn/Patterns": ["lit:Nn/Transforms", "lit:Execute/", "lit:Import/", "golden", "models-sharded"],
    "Dialect/Nn/Transforms": ["lit:Nn/Transforms", "lit:Execute/", "lit:Import/", "golden", "models-sharded", "models-quantized"],
    "Dialect/Pipe": ["CleavePipeTests", "training-pipelines", "training-peaks", "training-jax", "training-calls", "training-experts", "lit:Pipe/", "lit:Driver/pipeline", "lit:Driver/schedule", "lit:Import/devices", "models-stages",
                     "models-pipelines", "pipeline-programs", "annotated"],
    "Dialect/Spmd": ["CleaveDialectTests", "CleavePartitionTests", "lit:Spmd/", "lit:Execute/", "golden", "differential", "differential-uneven",
                     "training"],
    "Driver": ["CleaveDriverTests", "lit:Driver/", "lit:Tools/", "docs", "bad-input"],
    "Editor": ["editor"],
    "EmulatedKernels": ["CleaveEmulationTests", "lit:Codegen", "onnx-emulated", "models-emulated"],
    "Emulation": ["CleaveEmulationTests", "onnx-emulated", "models-emulated", "devices"],
    "Export": ["training-tuned", "training-forms", "lit:Export/", "lit:Driver/emit-onnx", "export", "export-nodes", "annotated", "trained"],
    "Import": ["CleaveOnnxReaderTests", "lit:Import/", "training-forms", "onnx", "control", "gradients", "models", "models-quantized", "bad-input"],
    "Onnx": ["CleaveOnnxReaderTests", "lit:Import/", "training-forms", "onnx", "models", "export", "annotated", "bad-input"],
    "Pictures": ["pages", "lit:Driver/page"],
    "Pipelines": ["CleaveCompilerTests", "lit:Pipelines/", "lit:Driver/", "golden"],
    "Plan": ["CleavePlanTests", "lit:Plan/", "bad-input", "editor"],
    "Program": ["CleaveProgramTests", "lit:Assembly/", "programs", "cleave-run"],
    "Reference": ["CleaveReferenceTests", "lit:Execute/", "onnx", "differential"],
    "Runner": ["CleaveRunnerTests", "cleave-run", "train", "training-tuned", "training-calls"],
    "Runtime": ["CleaveRuntimeTests", "programs", "uneven", "states", "train", "pipeline-programs", "cleave-run", "traces", "tcp", "mpi", "devices"],
    "runtime.h": ["CleaveRuntimeTests", "lit:Compiler/embed", "cleave-run", "python"],
    "RuntimeApi": ["CleaveRuntimeTests", "lit:Compiler/embed", "cleave-run", "python"],
    "Schedule": ["CleaveScheduleTests", "lit:Driver/schedule"],
    "Sharding": ["CleaveShardingTests", "CleaveSolverTests", "CleavePartitionTests", "golden", "differential"],
    "Search": ["CleaveSearchTests", "lit:Driver/plan", "lit:Driver/like", "found-plans", "found-placements", "training-plans", "least-memory", "styles", "roles"],
    "Solver": ["CleaveSolverTests", "CleaveSearchTests", "lit:Spmd/Transforms", "golden", "golden-times", "training", "differential"],
    "Support": ["CleaveSupportTests", "lit:Pipelines/"],
    "Transforms": ["CleavePipeTests", "lit:Spmd/Transforms", "golden"],
}
# By the beginning of other paths; nothing but lint where the list is empty.
OTHERS = {
    "docs/": ["docs"], "README.md": ["docs"], "CONTRIBUTING.md": ["docs"], "CHANGELOG.md": [], "LICENSE": [], ".gitignore": [], "bench/": [],
    "examples/": ["lit:Compiler/", "generation", "finetune", "docs"], "examples/python/": ["python"], "fuzz/": [], "editors/": ["editor"], "python/tools/draw_trace.py": ["docs"],
    "python/": ["python"], "pyproject.toml": ["python"], "scripts/wheel": ["python"], "python/tools/": [], "scripts/gpu-kit": ["gpu-kit"], "tools/": ["lit:Tools/", "lit:Driver/", "cleave-run"],
    "test/BadInput/": ["bad-input"], "test/Mutation/": [],
}


def find_longest(path, table):
    """What the longest key says that `path` begins with; None where none does."""
    keys = [key for key in table if path.startswith(key)]
    return table[max(keys, key=len)] if keys else None


def unit_tests_of(path):
    """Unit tests that are made of a file, or, of a header, of files beside it."""
    with open(os.path.join(ROOT, "test", "Unit", "CMakeLists.txt")) as file:
        programs = re.findall(r"cleave_add_unit_test\((\w+)\s([^)]*)\)", file.read())
    name = os.path.relpath(path, "test/Unit")
    # Of headers, and of what tests read, all that lies in their folder.
    for wanted in [re.escape(name)] * name.endswith(".cpp") + [re.escape(name.split("/")[0]) + r"/[\w/]+\.cpp"]:
        if found := [program for program, words in programs if re.search(rf"(^|\s){wanted}(\s|$)", words)]:
            return found
    return []


def uses(script, path, scripts):
    """Whether the program of a suite reads a file: it is it, or imports it, or, of what is not a program of a suite, has it in its folder."""
    if path not in scripts:
        return path.startswith(os.path.dirname(script) + "/")
    module = os.path.basename(path)[:-3]
    with open(os.path.join(ROOT, script)) as file:
        return script == path or (os.path.dirname(script) == os.path.dirname(path) and
                                  bool(re.search(rf"^(import|from) {module}\b", file.read(), re.M)))


def tests_of(path, suites):
    """Checks of a file under test/; None for what all tests have in common."""
    if path.startswith("test/Unit/"):
        return unit_tests_of(path) or None
    scripts = {suite.name: word for suite in suites for word in suite.command if word.startswith("test/")}
    found = [name for name, script in scripts.items() if uses(script, path, set(scripts.values()))]
    if re.search(r"\.(mlir|test)$", path) and "/Inputs/" not in path:
        found.append("lit:" + re.escape(os.path.relpath(path, "test")))
    elif "/Inputs" in path:
        found.append("lit:" + re.escape(os.path.relpath(path.partition("/Inputs")[0], "test")) + "/")
    return found or None


def edits_of(path):
    """Checks that report small errors in a file."""
    sys.path.insert(0, os.path.join(ROOT, "test", "Mutation"))
    from edits import EDITS
    return [check for edit in EDITS if edit.file == path for check in edit.suites]


def checks_of(path, suites):
    """Checks that look at a file; None for what only all of them do."""
    area = re.match(r"(?:lib|include/cleave|dialects)/(.*/.*|runtime\.h)", path)
    if area:
        known = find_longest(area[1] if not path.startswith("dialects/") else f"Dialect/{area[1]}", AREAS)
        return None if known is None else known + edits_of(path)
    known = find_longest(path, OTHERS)
    if known is None and path.startswith("test/"):
        known = tests_of(path, suites)
    return known


def join(checks, suites):
    """One check for each suite, in their order: filters of unit tests and lit in one; of others all that is asked."""
    filters = defaultdict(list)
    for check in checks:
        name, _, selected = check.partition(":")
        filters[name].append(selected)
    joined = []
    for suite in suites:
        wanted = list(dict.fromkeys(filters.get(suite.name, [])))
        if not wanted:
            continue
        if "" in wanted or suite.joint is None:
            joined.append(suite.name)
        else:
            joined.append(f"{suite.name}:{suite.joint(wanted)}")
    return joined


def choose(paths, suites):
    """Checks that look at one of the files, in the order of the suites; None where only all suites do."""
    suites = list(suites)
    checks = ["lint"]
    for path in paths:
        known = checks_of(path, suites)
        if known is None:
            return None
        checks += known
    return join(checks, suites)
