"""Makes wheels of the package for Python, installs them into empty environments, and runs the tests of this folder there.

Usage: check.py BUILD_DIR [PYTEST ARGUMENT...]

    build/release ──scripts/wheel──▶ *.whl ──pip──▶ an environment ──▶ pytest, in an empty folder, where LLVM and the build cannot be seen

Packages that only tests need come from the environment that runs this. What the package itself imports is held against what it declares.
"""
import os
import re
import subprocess
import sys
import tempfile
import time
import venv

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.dirname(os.path.abspath(__file__))
WHEELS = os.path.join(ROOT, "build", "wheels")
LLVM = "/usr/lib/llvm-22"

# Prints the packages of others that an import brings.
IMPORTS = """
import sys, sysconfig, {0}
ours = {{"cleave", "cleave_compiler", "cleave_runtime"}}
names = {{name.partition(".")[0] for name, module in sys.modules.items() if getattr(module, "__file__", None) and "site-packages" in module.__file__}}
print(*sorted(name for name in names - ours if not name.startswith("_")))
"""
RUNTIME = """
import sys, numpy as np, cleave_runtime
with cleave_runtime.load(sys.argv[1]) as program:
    np.testing.assert_array_equal(program(np.ones((2, 8), np.float32)), np.full((2, 8), 2, np.float32))
    assert program.ranks == 2
"""
COMPILE = """
import sys, cleave
sys.path.insert(0, sys.argv[1])
from conftest import make_model
from onnx import TensorProto, helper
value = lambda name: (name, TensorProto.FLOAT, [2, 8])
model = make_model(sys.argv[2] + "/m.onnx", [helper.make_node("Add", ["x", "x"], ["y"])], [value("x")], [value("y")])
cleave.compile(model, sys.argv[2] + "/m.cleave", mesh="data=2", shard="x=[data, _]").close()
"""


def run(command, folder, hides=()):
    """A command in `folder`, with few variables, and without what `hides` names."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": folder, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        if name in os.environ:
            environment[name] = os.environ[name]
    if hides and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0:
        script = "".join(f"mount -t tmpfs none '{path}' && " for path in hides if os.path.isdir(path)) + 'exec "$@"'
        command = ["unshare", "-m", "sh", "-c", script, "sh", *command]
    return subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def make_environment(folder, *wheels):
    """Python of a new environment that has the wheels, one after the other, and sees packages of ours behind it."""
    venv.create(folder, with_pip=False)
    python = os.path.join(folder, "bin", "python")
    packages = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True).stdout.strip()
    done = subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check", "--no-index",
                           "--no-deps", *wheels], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    with open(os.path.join(packages, "tests.pth"), "w") as file:
        file.write(os.path.join(sys.prefix, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages") + "\n")
    return python


def declared(wheel):
    """Names of modules that the metadata of a wheel asks for."""
    import zipfile
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(next(name for name in archive.namelist() if name.endswith("/METADATA"))).decode()
    return {{"PyYAML": "yaml"}.get(name, name) for name in re.findall(r"^Requires-Dist: (\w+)", text, re.M)}


def one_runtime(wheels):
    """Whether what both wheels have of cleave_runtime is the same, so that it does not matter which was installed last."""
    import zipfile
    found = []
    for name in ("cleave_spmd", "cleave_spmd_runtime"):
        with zipfile.ZipFile(wheels[name]) as archive:
            found.append({info.filename: info.CRC for info in archive.infolist() if info.filename.startswith("cleave_runtime/") and
                          info.filename.endswith(".py")})
    return found[0] == found[1] and len(found[0]) > 5


def main():
    if os.path.abspath(sys.argv[1]) != os.path.join(ROOT, "build", "release"):
        sys.exit("wheels are made of build/release")
    try:
        import auditwheel, nanobind, pytest, scikit_build_core  # noqa: F401
    except ImportError as error:
        sys.exit(f"the package for Python is left out: {error} (scripts/bootstrap installs it)")
    start = time.time()
    made = subprocess.run([os.path.join(ROOT, "scripts", "wheel")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(made.stdout, end="")
    if made.returncode:
        sys.exit("scripts/wheel failed")
    print(f"wheels: {time.time() - start:.0f} s")
    wheels = {name.partition("-")[0]: os.path.join(WHEELS, name) for name in os.listdir(WHEELS)}
    passed, failures = 0, []
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        empty = os.path.join(folder, "empty")
        os.mkdir(empty)
        full = make_environment(os.path.join(folder, "full"), wheels["cleave_spmd"])
        small = make_environment(os.path.join(folder, "small"), wheels["cleave_spmd_runtime"])
        print(f"installed: {time.time() - start:.0f} s")
        hidden = [LLVM, os.path.join(ROOT, "build")]
        done = run([full, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", HERE, "-W", "ignore::cleave.CleaveWarning", HERE,
                    *sys.argv[2:]], empty, hidden)
        print(done.stdout[-12000:] if done.returncode else done.stdout.splitlines()[-1])
        figures = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
        passed += figures.get("passed", 0)
        failures += ["pytest"] * max(figures.get("failed", 0) + figures.get("error", 0), int(done.returncode != 0))
        # The small package runs what the large one has compiled, and each needs what it says alone.
        done = run([full, "-c", COMPILE, HERE, empty], empty, hidden)
        done = run([small, "-c", RUNTIME, os.path.join(empty, "m.cleave")], empty, hidden) if done.returncode == 0 else done
        # Both in one place, as where one package asks for the one and one for the other: the files that they share are the same.
        both = make_environment(os.path.join(folder, "both"), wheels["cleave_spmd"], wheels["cleave_spmd_runtime"])
        shared = run([both, "-c", COMPILE, HERE, empty], empty, hidden)
        shared = run([both, "-c", RUNTIME, os.path.join(empty, "m.cleave")], empty, hidden) if shared.returncode == 0 else shared
        checks = [("both packages are there together", shared.returncode == 0 and one_runtime(wheels), shared.stdout),
                  ("the small package runs programs", done.returncode == 0, done.stdout)]
        for python, package, wheel in ((full, "cleave", "cleave_spmd"), (small, "cleave_runtime", "cleave_spmd_runtime")):
            done = run([python, "-c", IMPORTS.format(package)], empty, hidden)
            checks.append((f"{package} imports what it declares", done.returncode == 0 and set(done.stdout.split()) <= declared(wheels[wheel]) | {"ml_dtypes"},
                           done.stdout))
        for name, holds, text in checks:
            passed += holds
            if not holds:
                failures.append(name)
                print(f"{name}: no\n{text}")
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
