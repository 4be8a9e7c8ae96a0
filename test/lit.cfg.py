"""lit: which files under test/ are tests, and which tools their RUN lines name."""

import os
import shutil
import subprocess

import lit.formats

config.name = "cleave"
config.suffixes = [".mlir", ".test"]
# Unit tests are GoogleTest programs; the other folders have runners of their own, or hold what tests elsewhere read.
config.excludes = ["Unit", "Models", "Golden", "BadInput", "Differential", "Inputs"]
config.test_format = lit.formats.ShTest(execute_external=False)

config.test_source_root = os.path.join(config.cleave_source_dir, "test")
config.test_exec_root = os.path.join(config.cleave_binary_dir, "test")

tools = os.path.join(config.cleave_binary_dir, "bin")
config.environment["PATH"] = os.pathsep.join([tools, config.llvm_tools_dir, config.environment.get("PATH", "")])
# `REQUIRES: whole-tools` where these have MLIR and LLVM inside.
if config.tools_are_whole:
    config.available_features.add("whole-tools")
# Builds that assert preconditions have `--debug-only`, and others say that they do not: one of both tests is about each.
config.excludes.append("no-debug-only.mlir" if config.has_asserts else "debug-only.mlir")
# FileCheck then prints the input around a failure.
config.environment["FILECHECK_OPTS"] = "--dump-input=fail"
# Of tests that are hundreds of runs, a merge draws a part (harness.is_due).
if "CLEAVE_DRAW" in os.environ:
    config.environment["CLEAVE_DRAW"] = os.environ["CLEAVE_DRAW"]

# `%{python}` runs the interpreter that the tests' packages are installed for.
venv = os.path.join(config.cleave_source_dir, ".venv", "bin", "python")
python = venv if os.path.exists(venv) else shutil.which("python3") or "python3"
config.substitutions.append(("%{python}", python))
# One test needs jax, and with it Shardy, which nothing else does: scripts/bootstrap does not install it.
if subprocess.run([python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('jaxlib') is None)"]).returncode:
    config.excludes.append("shardy.test")
# `%{build}` is the build folder.
config.substitutions.append(("%{build}", config.cleave_binary_dir))
# Programs that use Cleave as a library.
config.substitutions.append(("%{examples}", os.path.join(tools, "examples")))
# `%{each} %s %t "COMMAND {}"...` runs the commands on each part of a test.
config.substitutions.append(("%{each}", f"{python} {config.test_source_root}/each.py"))
