"""A folder with programs in it, and ways to run them there: what the cases of run.py share."""
import os
import shutil
import subprocess
import tempfile
import time

import numpy as np

HAS_MPI = shutil.which("mpirun") is not None
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n"]
# Open MPI leaves memory behind, which is no finding of a sanitizer about us.
MPI_ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
# Four processes start, a fault is found after the deadline that a case sets, all end within 2 s; and a busy machine.
LIMIT = 15


class Case:
    """A folder with the programs in it, and a way to run them there."""

    def __init__(self, build):
        self.build = build
        self.folder = tempfile.mkdtemp(prefix="cleave-run-")
        subprocess.run([f"{build}/bin/cleave-runnable-programs", self.folder], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, name, **arrays):
        np.savez(self.path(name), **arrays)

    def command(self, program, *words, ranks=0):
        return [*([*MPIRUN, str(ranks)] if ranks else []), f"{self.build}/bin/cleave-run", self.path(program), *words]

    def start(self, program, *words, ranks=0, **options):
        options.setdefault("env", MPI_ENVIRONMENT if ranks else None)
        return subprocess.Popen(self.command(program, *words, ranks=ranks), cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace", **options)

    def run(self, program, *words, ranks=0):
        """(exit code, output); None where it did not end in time."""
        process = self.start(program, *words, ranks=ranks)
        return self.wait(process)

    def script(self, script, ranks):
        """(exit code, output) of a shell script, once per rank under mpirun."""
        return self.wait(subprocess.Popen([*MPIRUN, str(ranks), "sh", "-c", script], cwd=self.folder, text=True, errors="replace",
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=MPI_ENVIRONMENT))

    def wait(self, process):
        try:
            output = process.communicate(timeout=LIMIT)[0]
            return process.returncode, output
        except subprocess.TimeoutExpired:
            process.kill()
            return None, process.communicate()[0]

    def left(self, patience=5):
        """Processes with the folder on their command line, once mpirun has had time to end them."""
        until = time.time() + patience
        while True:
            found = []
            for process in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{process}/cmdline", "rb") as file:
                        if self.folder.encode() in file.read():
                            found.append(process)
                except OSError:
                    pass
            if not found or time.time() > until:
                return found
            time.sleep(0.05)


def equal(path, **expected):
    """What is wrong with the arrays of a file."""
    with np.load(path) as arrays:
        if sorted(arrays) != sorted(expected):
            return f"arrays {sorted(arrays)}, expected {sorted(expected)}"
        for name, want in expected.items():
            if arrays[name].dtype != want.dtype or not np.array_equal(arrays[name], want):
                return f"{name} is {arrays[name]}, expected {want}"
    return None


def numbers(shape, seed):
    """Small whole numbers: sums and products are exact."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def weights(case):
    with open(case.path("weights.bin"), "rb") as file:
        return np.frombuffer(file.read()[64:64 + 2048], np.float32).reshape(16, 32)
