"""Makes the GPU kit: a folder that tells, on a machine with a GPU and in minutes, what is right there and how fast it is.

Usage: make_kit.py BUILD_DIR OUT [--small] [--target cuda:sm_90]

    OUT/run             what runs it (run.py)
    OUT/bin, OUT/lib    cleave-run, libcleave_cuda and libcleave_tcp, which need the C library alone, and the libraries of .npz files; Python modules
    OUT/cases           programs, inputs, expected outputs: of recorded models those that came with them, of the large ones onnxruntime's
    OUT/kit.json        the manifest

Weights of the large models are not in it: they are drawn where they are needed. --small takes sizes that an emulated device runs
(`--target cuda:emulated`), for `scripts/check`.
"""
import argparse
import glob
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[1:1] = [os.path.join(ROOT, "test"), os.path.join(ROOT, "test", "Models")]
import networks
import onnx_ops
import sharded

MOST_BYTES = 48 << 20
VERSION = 1
# Outputs of large models: every so many rows.
ROWS = 64
# Of the largest element. Halves and bf16 have 11 and 8 bits, sums are in f32.
TOLERANCES = {"f32": 2e-5, "f16": 3e-3, "bf16": 3e-2}
# Models that are of halves or bf16 by themselves.
NARROW = {"gpt2_fp16": 3e-3, "llama_bf16": 3e-2}


class Maker:
    def __init__(self, build, out, options):
        self.build, self.out, self.options = os.path.abspath(build), os.path.abspath(out), options
        self.cases = []
        self.folder = tempfile.mkdtemp(prefix="cleave-kit-")

    def cleave(self, *words):
        done = subprocess.run([os.path.join(self.build, "bin", "cleave"), *words], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"cleave {' '.join(words)}:\n{done.stderr}")
        return done.stdout

    def compile(self, model, name, *words):
        """The program's path in the kit, and the bytes that each command's tensors have."""
        path = os.path.join("cases", f"{name}.cleave")
        self.cleave("compile", model, *words, "--target", self.options.target, "--quiet", "-o", os.path.join(self.out, path))
        lists = json.loads(self.cleave("inspect", "--json", os.path.join(self.out, path)))["variants"][0]["lists"]
        return {"program": path, "bytes": [command["tensor_bytes"] for command in lists[0]["commands"]]}

    def save(self, name, arrays):
        path = os.path.join("cases", f"{name}.npz")
        np.savez_compressed(os.path.join(self.out, path), **arrays)
        return path

    #===------------------------------------------------------------------===#
    # Recorded models
    #===------------------------------------------------------------------===#

    def add_recorded(self):
        """In f32 and bf16 on one rank, and on two, of `data` and of `model`."""
        for path in sorted(glob.glob(os.path.join(ROOT, "test", "Models", "*.npz"))):
            name = os.path.basename(path)[:-4]
            arrays = dict(np.load(path))
            inputs = {key[3:]: array for key, array in arrays.items() if key.startswith("in:")}
            outputs = {key[4:]: array for key, array in arrays.items() if key.startswith("out:")}
            files = {"inputs_file": self.save(f"{name}.in", inputs), "expected_file": self.save(f"{name}.out", outputs), "weights": {},
                     "model": name, "inputs": {}}
            model = os.path.join(ROOT, "test", "Models", f"{name}.onnx")
            narrow = NARROW.get(name, TOLERANCES["f32"])
            ways = [("f32", "check", [], narrow), ("bf16", "check", ["--precision", "bf16"], TOLERANCES["bf16"])]
            for mesh in ("data=B", "model=2"):
                mesh = sharded.meet(mesh, arrays)
                if mesh.endswith("=2"):
                    ways.append((mesh, "nccl", ["--mesh", mesh, *sharded.rules(name, mesh, arrays)], narrow))
            for way, kind, words, tolerance in ways:
                program = self.compile(model, f"{name}.{way}", "--inputs", os.path.join(self.out, files["inputs_file"]), *words, "--embed-weights")
                self.cases.append({"name": f"{name} {way}", "kind": kind, "tolerance": tolerance, **files, **program})

    #===------------------------------------------------------------------===#
    # Networks
    #===------------------------------------------------------------------===#

    def add_networks(self):
        kernels, products, models = networks.get_sets(self.options.small)
        for kind, group in (("kernel", kernels), ("product", products), ("model", models)):
            for name, (network, sizes) in group.items():
                entry = onnx_ops.write_model(self.folder, name, network, sizes)
                path = os.path.join(self.folder, f"{name}.onnx")
                if kind == "model":
                    self.add_model(name, path, entry)
                else:
                    self.add_kernel(kind, name, path, entry)
                for used in glob.glob(os.path.join(self.folder, f"{name}.*")):
                    os.unlink(used)

    def add_kernel(self, kind, name, path, entry):
        halves = any(put["dtype"] == networks.HALF for put in entry["inputs"].values())
        precision = "f16" if halves else "f32"
        self.cases.append({"name": name, "kind": kind, "model": name, "precision": precision, "tolerance": TOLERANCES[precision],
                           "flops": count_flops(entry["inputs"]) if kind == "product" else 0, **entry, **self.compile(path, name)})

    def add_model(self, name, path, entry):
        arrays = {key: networks.make_input(key, put["shape"], put["dtype"], put["below"]) for key, put in entry["inputs"].items()}
        [result] = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, arrays)
        flat = result.reshape(-1, result.shape[-1])
        rows = sorted({int(row) for row in np.linspace(0, len(flat) - 1, ROWS)})
        files = {"expected_file": self.save(f"{name}.out", {"result": flat[rows]}), "rows": rows}
        # Constants of the model's own are read from its file.
        files["model_file"] = os.path.join("cases", f"{name}.onnx")
        shutil.copy(path, os.path.join(self.out, files["model_file"]))
        for precision in ("f32", "bf16"):
            program = self.compile(path, f"{name}.{precision}", "--precision", precision)
            self.cases.append({"name": f"{name} {precision}", "kind": "model", "model": name, "precision": precision,
                               "tolerance": TOLERANCES[precision], **entry, **files, **program})

    #===------------------------------------------------------------------===#
    # The folder
    #===------------------------------------------------------------------===#

    def copy_tools(self):
        for folder in ("bin", "lib/python", "cases"):
            os.makedirs(os.path.join(self.out, folder))
        tool = shutil.copy(os.path.join(self.build, "bin", "cleave-run-kit"), os.path.join(self.out, "bin", "cleave-run"))
        for library in ("libcleave_cuda.so", "libcleave_tcp.so"):
            shutil.copy(os.path.join(self.build, "lib", "kit", library), os.path.join(self.out, "lib"))
        for line in subprocess.run(["ldd", tool], capture_output=True, text=True, check=True).stdout.splitlines():
            library = line.split()
            if len(library) > 3 and not library[0].startswith(("libc.", "libm.", "libdl.", "libpthread.", "librt.")):
                shutil.copy(library[2], os.path.join(self.out, "lib", library[0]))
        for path in ("bin/cleave-run", *(f"lib/{name}" for name in os.listdir(os.path.join(self.out, "lib")) if ".so" in name)):
            subprocess.run(["strip", os.path.join(self.out, path)], check=True)
        for name in ("networks.py", "peers.py"):
            shutil.copy(os.path.join(HERE, name), os.path.join(self.out, "lib", "python"))
        os.chmod(shutil.copy(os.path.join(HERE, "run.py"), os.path.join(self.out, "run")), 0o755)

    def make(self):
        shutil.rmtree(self.out, ignore_errors=True)
        self.copy_tools()
        self.add_recorded()
        self.add_networks()
        manifest = {"version": VERSION, "small": self.options.small, "target": self.options.target, "cases": self.cases}
        with open(os.path.join(self.out, "kit.json"), "w", encoding="utf-8") as file:
            json.dump(manifest, file)
        shutil.rmtree(self.folder)
        size = sum(os.path.getsize(os.path.join(folder, file)) for folder, _, files in os.walk(self.out) for file in files)
        print(f"{self.out}: {len(self.cases)} cases, {size / (1 << 20):.1f} MiB")
        if size > MOST_BYTES:
            sys.exit(f"error: more than {MOST_BYTES >> 20} MiB")


def count_flops(inputs):
    """Of a product [m, k] x [k, n], or of attention's two."""
    shapes = [tuple(entry["shape"]) for entry in inputs.values()]
    if len(shapes) == 2:
        return 2 * shapes[0][0] * shapes[0][1] * shapes[1][1]
    return 4 * math.prod(shapes[0]) * shapes[1][2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("out")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--target", default="cuda:sm_90")
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(3)
    Maker(options.build, options.out, options).make()


if __name__ == "__main__":
    main()
