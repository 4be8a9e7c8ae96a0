"""Programs that train: hand-written steps (steps.py) on every mesh and launcher, against numpy, and their checkpoints.

Usage: train.py BUILD_DIR [NAME...]
"""
import csv
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
import steps  # noqa: E402
from case import HAS_MPI, MPI_ENVIRONMENT, MPIRUN  # noqa: E402

LIMIT = 60
# Sums of f32 in another order, 20 steps on; against f64 in numpy.
CLOSE, NEAR = 1e-6, 1e-5
ROWS = {"x": "[d, _]", "labels": "[d, _]"}
MOMENTS = {f"{kept}({name})": dims for kept in "mv" for name, dims in (("w1", "[d, _]"), ("w2", "[d, _]"), ("b1", "[d]"))}
# name: mesh, annotations, whether shards may be uneven
MESHES = {"one": ("", {}, False), "data": ("d=2", ROWS, False), "data4": ("d=4", ROWS, False),
          "zero1": ("d=2", {**ROWS, **MOMENTS}, True), "zero3": ("d=4", {**ROWS, **MOMENTS, "w1": "[d, _]", "w2": "[d, _]", "b1": "[d]"}, True),
          "tensor": ("m=3", {"w1": "[_, m]", "b1": "[m]", "w2": "[m, _]"}, False),
          "both": ("d=2,m=2", {**ROWS, "w1": "[_, m]", "b1": "[m]", "w2": "[m, _]", "m(w1)": "[d, m]"}, True)}


class Folder(harness.Folder):
    """A place for programs and data, and ways to train there."""

    def __init__(self, build):
        super().__init__(build, "cleave-train-")

    def compile(self, optimizer, mesh, device="host"):
        axes, dims, uneven = MESHES[mesh]
        steps.write_weights(self.at("weights.bin"))
        with open(self.at("step.mlir"), "w") as file:
            file.write(steps.step(optimizer, self.at("weights.bin") if mesh == "data" else None))
        words = [word for name, cut in dims.items() if optimizer == "adam" or name[0] != "v" for word in ("--shard", f"{name}={cut}")]
        program = self.at(f"{mesh}.cleave")
        done = harness.cleave(self.build, "compile", self.at("step.mlir"), "-o", program, "--target", device, *(["--mesh", axes] if axes else []),
                              *words, *(["--uneven"] if uneven else []))
        if done.returncode:
            raise Wrong(f"compile: exit {done.returncode}: {done.stderr[-800:]}")
        return program

    def words(self, program, *words, way=()):
        return [*way, f"{self.build}/bin/cleave-run", program, *words]

    def run(self, program, *words, way=(), expect=0, **environment):
        done = subprocess.run(self.words(program, *words, way=way), capture_output=True, text=True, timeout=LIMIT, cwd=self.path,
                              env={**MPI_ENVIRONMENT, **environment})
        if done.returncode != expect:
            raise Wrong(f"{' '.join(words)}: exit {done.returncode}, expected {expect}: {done.stdout[-500:]}{done.stderr[-800:]}")
        return done.stdout + done.stderr

    def losses(self, name="log.jsonl"):
        with open(self.at(name)) as file:
            return [json.loads(line)["loss"] for line in file]

    def bytes(self, name):
        with open(self.at(name), "rb") as file:
            return file.read()


class Wrong(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Wrong(what)


def check_close(got, want, tolerance, what):
    check(len(got) == len(want), f"{what}: {len(got)} of {len(want)}")
    worst = max((abs(a - b) / max(abs(b), 1e-30) for a, b in zip(got, want)), default=0)
    check(worst <= tolerance, f"{what}: off by {worst:.2e}, allowed {tolerance:.0e}")


def read_safetensors(path):
    """By the definition of the format, and by its own package where that is installed."""
    with open(path, "rb") as file:
        raw = file.read()
    length, = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    metadata = header.pop("__metadata__", {})
    kinds = {"F32": np.float32, "F64": np.float64, "I64": np.int64}
    tensors, end = {}, 0
    for name, entry in sorted(header.items(), key=lambda each: each[1]["data_offsets"]):
        begin, next_end = entry["data_offsets"]
        check(begin == end, f"{name} begins at {begin}, behind a gap")
        end = next_end
        tensors[name] = np.frombuffer(raw[8 + length + begin:8 + length + end], kinds[entry["dtype"]]).reshape(entry["shape"])
    check(8 + length + end == len(raw), "the file goes on behind its last tensor")
    try:
        import safetensors.numpy
    except ImportError:
        return tensors, metadata
    theirs = safetensors.numpy.load_file(path)
    check(theirs.keys() == tensors.keys() and all(np.array_equal(theirs[name], tensors[name]) for name in tensors), "their own reader reads another file")
    return tensors, metadata


def given_order(count, batches):
    each = count // steps.BATCH
    return [np.arange(steps.BATCH) + steps.BATCH * (step % each) for step in range(batches)]


#===----------------------------------------------------------------------===#
# Losses
#===----------------------------------------------------------------------===#

def losses(build, optimizer, mesh):
    """20 steps on threads, processes, under mpirun and on emulated devices: the losses and weights of numpy, and one file of all of a kind."""
    with Folder(build) as folder:
        data = steps.samples(37)
        np.savez(folder.at("data.npz"), **data)
        want, w, moments = steps.train(optimizer, data, given_order(37, 20))
        ranks = int(np.prod([int(axis[2:]) for axis in MESHES[mesh][0].split(",") if axis] or [1]))
        program = folder.compile(optimizer, mesh)
        ways = {"threads": [], "processes": ["--local"], **({"mpirun": [*MPIRUN, str(ranks)]} if HAS_MPI else {})}
        options = ["--data", "data.npz", "--order", "given", "--steps", "20", "--log", "log.jsonl", "--save", "end.safetensors"]
        first = None
        for way, words in ways.items():
            done = folder.run(program, *options, *(words if way == "processes" else []), way=words if way == "mpirun" else ())
            check("20 steps, loss " in done and "saved end.safetensors, step 20" in done, f"{way}: told {done}")
            check_close(folder.losses(), want, NEAR, f"{way}: losses")
            first = first or folder.bytes("end.safetensors")
            check(folder.bytes("end.safetensors") == first, f"{way}: the checkpoint has other bits")
        program = folder.compile(optimizer, mesh, device="cuda:emulated")
        folder.run(program, *options, CLEAVE_CUDA_LIBRARY="libcleave_emulated_cuda.so")
        check_close(folder.losses(), want, NEAR, "emulated devices: losses")
        for way in ("threads", "emulated devices"):
            tensors, metadata = read_safetensors(folder.at("end.safetensors"))
            check(metadata["cleave.step"] == "20" and metadata["cleave.order"] == "given", f"metadata {metadata}")
            names = {*w, *(f"{kept}({name})" for kept, name in moments if optimizer == "adam" or kept == "m")} | ({"count"} if optimizer == "adam" else set())
            check(tensors.keys() == names, f"{way}: tensors {sorted(tensors)}")
            for name, value in w.items():
                check(np.allclose(tensors[name], value, rtol=1e-4, atol=1e-5), f"{way}: {name} is off by {np.abs(tensors[name] - value).max()}")
            check(optimizer != "adam" or tensors["count"] == 20, f"{way}: count {tensors.get('count')}")
            with open(folder.at("end.safetensors"), "wb") as file:
                file.write(first)


def orders(build, mesh):
    """Shuffled, all meshes and launchers see one order, each epoch another one; another seed gives another."""
    with Folder(build) as folder:
        np.savez(folder.at("data.npz"), **steps.samples(50))
        one, program = folder.compile("momentum", "one"), folder.compile("momentum", mesh)
        told = {}
        for name, words in {"one": [one], "threads": [program], "processes": [program, "--local"], "again": [program], "seed": [program, "--seed", "5"]}.items():
            folder.run(*words, "--data", "data.npz", "--epochs", "3", "--log", "log.csv")
            with open(folder.at("log.csv")) as file:
                told[name] = list(csv.DictReader(file))
        for name, lines in told.items():
            check([(line["step"], line["epoch"], line["samples"]) for line in lines] ==
                  [(str(step), str((step - 1) // 6), str(8 * step)) for step in range(1, 19)], f"{name}: steps {lines}")
            check(all(float(line["seconds"]) > 0 and float(line["norm"]) > 0 and line["scale"] == "" for line in lines), f"{name}: {lines[0]}")
        numbers = {name: [float(line["loss"]) for line in lines] for name, lines in told.items()}
        check_close(numbers["threads"], numbers["one"], CLOSE, "losses of one rank")
        check(numbers["processes"] == numbers["threads"] == numbers["again"], "launchers see other samples")
        check(max(abs(a - b) for a, b in zip(numbers["seed"], numbers["threads"])) > 1e-3, "the seed changes nothing")


#===----------------------------------------------------------------------===#
# Data
#===----------------------------------------------------------------------===#

def forms(build):
    """One archive, shards, single files that are mapped; names as recorded inputs have them."""
    with Folder(build) as folder:
        data = steps.samples(40)
        program = folder.compile("momentum", "data")
        np.savez_compressed(folder.at("packed.npz"), **data)
        np.savez(folder.at("recorded.npz"), **{"in:" + name: value for name, value in data.items()})
        for form, cut in (("shards", [0, 3, 21, 40]), ("single", None)):
            os.mkdir(folder.at(form))
            for number in range(3 if cut else 0):
                np.savez(folder.at(f"{form}/{number}.npz"), **{name: value[cut[number]:cut[number + 1]] for name, value in data.items()})
        for name, value in data.items():
            np.save(folder.at(f"single/{name}.npy"), value)
        seen = {}
        for form in ("packed.npz", "recorded.npz", "shards", "single"):
            folder.run(program, "--data", form, "--steps", "12", "--log", "log.jsonl")
            seen[form] = folder.losses()
        check(all(each == seen["single"] for each in seen.values()), f"losses {seen}")


def labels_of(classes):
    """A step that looks its labels up: the loss is the sum of w at them."""
    return f"""nn.param @w : tensor<{classes}xf32> = dense<1.0> : tensor<{classes}xf32>
func.func @main(%l: tensor<4xi64> {{nn.name = "labels", nn.role = "batch", nn.index_range = ["/loss", 0, {classes - 1}]}},
                %w: tensor<{classes}xf32> {{nn.name = "w", nn.role = "parameter", nn.begins = @w}})
    -> (tensor<f32> {{nn.name = "loss"}}, tensor<{classes}xf32> {{nn.name = "next(w)", spmd.state = "w"}}) {{
  %g = nn.gather %w, %l dim 0 : (tensor<{classes}xf32>, tensor<4xi64>) -> tensor<4xf32>
  %s = nn.reduce sum %g dims [0] : (tensor<4xf32>) -> tensor<f32>
  %h = nn.mul %w, %w : (tensor<{classes}xf32>, tensor<{classes}xf32>) -> tensor<{classes}xf32>
  return %s, %h : tensor<f32>, tensor<{classes}xf32>
}}
"""


def refused(build):
    """What data and options can be wrong in, each with its message; nothing is written."""
    with Folder(build) as folder:
        data = steps.samples(40)
        program = folder.compile("momentum", "data")
        with open(folder.at("labels.mlir"), "w") as file:
            file.write(labels_of(10))
        lookup = folder.at("labels.cleave")
        check(harness.cleave(build, "compile", folder.at("labels.mlir"), "-o", lookup).returncode == 0, "labels do not compile")
        x, labels = data["x"], data["labels"]
        cases = {
            "the data has no 'labels'; it has 'x', 'y': name the array so, or say 'labels: y'": {"x": x, "y": labels},
            "'x' has 40 samples, 'labels' 39": {"x": x, "labels": labels[:39]},
            "d.npz has 5 samples, a batch is 8": {"x": x[:5], "labels": labels[:5]},
            "'labels' is f64[40, 4], expected f32 [40, 4]": {"x": x, "labels": labels.astype(np.float64)},
            "'labels' is f32[40, 3], expected f32 [40, 4]": {"x": x, "labels": labels[:, :3]},
        }
        for message, arrays in cases.items():
            np.savez(folder.at("d.npz"), **arrays)
            for words in ([], ["--local"]):
                told = folder.run(program, "--data", "d.npz", "--steps", "3", "--save", "s.safetensors", *words, expect=1)
                check(message in told and told.count("error:") == 1, f"told {told!r}, expected {message!r}")
        np.savez(folder.at("d.npz"), labels=np.arange(8, dtype=np.int32) % 4)
        folder.run(lookup, "--data", "d.npz", "--steps", "3")
        np.savez(folder.at("d.npz"), labels=np.array([1, 2, 3, 4, 5, 1003, 7, 8]))
        told = folder.run(lookup, "--data", "d.npz", "--steps", "3", "--order", "given", expect=1)
        check("label 1003 of sample 5 is not one of 10 classes; 'ignore: 1003' passes over it" in told, told)
        np.savez(folder.at("d.npz"), labels=np.zeros(8, np.float32))
        told = folder.run(lookup, "--data", "d.npz", "--steps", "3", expect=1)
        check("'labels' is f32[8], expected i32 or i64 [8]" in told, told)
        np.savez(folder.at("d.npz"), **data)
        check("step is a training program: --data FILE, or --entry eval" in folder.run(shutil.copy(program, folder.at("step")), expect=1).replace(folder.path + "/", ""), "no data")
        for message, words in {"there is nothing to train on: '--data' names it": ["--steps", "3"],
                               "'--data' needs one of '--steps' and '--epochs'": ["--data", "d.npz"],
                               "'--resume' and '--weights-from' both say how to begin": ["--data", "d.npz", "--steps", "3", "--resume", "a", "--weights-from", "b"],
                               "'--save-every' and '--keep' need '--save'": ["--data", "d.npz", "--steps", "3", "--keep", "2"],
                               "'--steps' is '0', expected a number of 1 or more": ["--data", "d.npz", "--steps", "0"],
                               "'--order' is 'random', expected shuffled, given": ["--data", "d.npz", "--steps", "3", "--order", "random"]}.items():
            told = folder.run(program, *words, expect=2)
            check(message in told, f"told {told!r}, expected {message!r}")
        # Rank 0 alone writes a log: the others say why it has left, and not that it is gone.
        told = folder.run(program, "--data", "d.npz", "--steps", "3", "--log", "/nowhere/l.jsonl", "--local", expect=1)
        errors = [line for line in told.splitlines() if "error:" in line]
        check(errors and all("/nowhere/l.jsonl" in line for line in errors), f"told {told!r}")
        check(not os.path.exists(folder.at("s.safetensors")), "a file is there")


def nan(build, way):
    """A loss that is no number ends all ranks at its step, with exit code 4; the file is that of before."""
    with Folder(build) as folder:
        data = steps.samples(80)
        data["x"][50] = np.nan
        np.savez(folder.at("data.npz"), **data)
        program = folder.compile("momentum", "data")
        words = {"threads": [], "processes": ["--local"]}[way]
        told = folder.run(program, "--data", "data.npz", "--order", "given", "--steps", "10", "--save", "s.safetensors", "--save-every", "5",
                          "--log", "log.jsonl", *words, expect=4)
        check("rank 0: loss is NaN at step 7; no state is saved; --find-nan names the command" in told, told)
        check(len(folder.losses()) == 6, f"losses {folder.losses()}")
        tensors, metadata = read_safetensors(folder.at("s.safetensors"))
        check(metadata["cleave.step"] == "5" and all(np.isfinite(value).all() for value in tensors.values()), f"metadata {metadata}")


#===----------------------------------------------------------------------===#
# Checkpoints
#===----------------------------------------------------------------------===#

def resumed(build, before):
    """Saved on one mesh, gone on with on each other one: the losses of who never stopped; its bits where the mesh is the same."""
    with Folder(build) as folder:
        np.savez(folder.at("data.npz"), **steps.samples(50))
        programs = {mesh: folder.compile("adam", mesh) for mesh in MESHES}
        folder.run(programs[before], "--data", "data.npz", "--steps", "20", "--seed", "9", "--save", "all.safetensors", "--log", "log.jsonl")
        want, end = folder.losses(), folder.bytes("all.safetensors")
        folder.run(programs[before], "--data", "data.npz", "--steps", "11", "--seed", "9", "--save", "half.safetensors")
        for mesh, program in programs.items():
            words = ["--local"] if mesh in ("data", "both") else []
            shutil.copy(folder.at("half.safetensors"), folder.at("s.safetensors"))
            folder.run(program, "--data", "data.npz", "--steps", "20", "--resume", "s.safetensors", "--save", "s.safetensors", "--log", "rest.jsonl", *words)
            check_close(folder.losses("rest.jsonl"), want[11:], CLOSE, f"{mesh}: losses")
            check(mesh != before or folder.bytes("s.safetensors") == end, f"{mesh}: the checkpoint has other bits")
            os.remove(folder.at("rest.jsonl"))


def begun(build):
    """--weights-from takes weights alone, of any file that has them; --resume says what a file does not have."""
    with Folder(build) as folder:
        data = steps.samples(50)
        np.savez(folder.at("data.npz"), **data)
        momentum, adam = folder.compile("momentum", "data"), folder.compile("adam", "zero3")
        options = ["--data", "data.npz", "--order", "given", "--log", "log.jsonl"]
        folder.run(momentum, *options, "--steps", "6", "--save", "m.safetensors")
        told = folder.run(adam, *options, "--steps", "9", "--resume", "m.safetensors", expect=1)
        check("m.safetensors: has no \"v(w1)\": --weights-from begins with new states" in told, told)
        folder.run(adam, *options, "--steps", "9", "--weights-from", "m.safetensors", "--save", "a.safetensors")
        tensors, _ = read_safetensors(folder.at("a.safetensors"))
        check(tensors["count"] == 9, f"count {tensors['count']}")
        folder.run(momentum, *options, "--steps", "7", "--resume", "m.safetensors", "--log", "m.jsonl")
        folder.run(adam, *options, "--steps", "1", "--weights-from", "m.safetensors", "--log", "a.jsonl")
        first = ((np.tanh(data["x"][:8] @ read_safetensors(folder.at("m.safetensors"))[0]["w1"] + read_safetensors(folder.at("m.safetensors"))[0]["b1"])
                  @ read_safetensors(folder.at("m.safetensors"))[0]["w2"] - data["labels"][:8]) ** 2).mean()
        check_close(folder.losses("a.jsonl"), [first], NEAR, "the first loss with those weights")
        with open(folder.at("w.safetensors"), "wb") as file:
            header = json.dumps({"w1": {"dtype": "F32", "shape": [6, 9], "data_offsets": [0, 216]}}).encode()
            file.write(struct.pack("<Q", len(header)) + header + bytes(216))
        told = folder.run(momentum, *options, "--steps", "7", "--weights-from", "w.safetensors", "--local", expect=1)
        check('w.safetensors: has no "b1"' in told and told.count("error:") == 1, told)


def kept(build):
    """--keep N: the newest under its name, those before it by their steps."""
    with Folder(build) as folder:
        np.savez(folder.at("data.npz"), **steps.samples(50))
        program = folder.compile("momentum", "zero1")
        for words in ([], ["--local"]):
            folder.run(program, "--data", "data.npz", "--steps", "10", "--save", "out.safetensors", "--save-every", "2", "--keep", "3", *words)
            found = {name: read_safetensors(folder.at(name))[1]["cleave.step"] for name in os.listdir(folder.path) if name.endswith("safetensors")}
            check(found == {"out.safetensors": "10", "out-000008.safetensors": "8", "out-000006.safetensors": "6"}, f"files {found}")
            for name in found:
                os.remove(folder.at(name))
        # What a training began with is not one of those that it takes away.
        saves = ["--data", "data.npz", "--save", "out.safetensors", "--save-every", "2", "--keep", "2"]
        folder.run(program, *saves, "--steps", "4")
        first = folder.bytes("out-000002.safetensors")
        for begins in ("--resume", "--weights-from"):
            folder.run(program, *saves, "--steps", "10", begins, "out-000002.safetensors")
            found = sorted(name for name in os.listdir(folder.path) if name.endswith("safetensors"))
            check(len(found) == 3 and found[0] == "out-000002.safetensors" and folder.bytes(found[0]) == first, f"files {found}")


def killed(build, way):
    """Killed again and again, mostly while it saves: the file is always whole, and the training goes on with it to where it would have come."""
    with Folder(build) as folder:
        np.savez(folder.at("data.npz"), **steps.samples(50))
        program = folder.compile("adam", "zero3")
        options = ["--data", "data.npz", "--seed", "4", "--save", "s.safetensors", *(["--local"] if way == "processes" else [])]
        folder.run(program, *options, "--steps", "30")
        end = folder.bytes("s.safetensors")
        os.remove(folder.at("s.safetensors"))
        rng, done = np.random.default_rng(1), []
        for attempt in range(12):
            begins = ["--resume", "s.safetensors"] if done else []
            before = os.stat(folder.at("s.safetensors")).st_mtime_ns if done else None
            process = subprocess.Popen(folder.words(program, *options, *begins, "--steps", "1000000", "--save-every", "1"), cwd=folder.path,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env=MPI_ENVIRONMENT)
            until = time.time() + LIMIT
            # Its first save says that it has begun, however slow the machine is.
            while process.poll() is None and time.time() < until and not (
                    os.path.exists(folder.at("s.safetensors")) and os.stat(folder.at("s.safetensors")).st_mtime_ns != before):
                time.sleep(0.01)
            time.sleep(float(rng.uniform(0.0, 0.2)))
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            done.append(int(read_safetensors(folder.at("s.safetensors"))[1]["cleave.step"]))
        check(done == sorted(done) and done[-1] > done[0], f"steps {done}")
        os.remove(folder.at("s.safetensors"))
        folder.run(program, *options, "--steps", "13")
        folder.run(program, *options, "--steps", "30", "--resume", "s.safetensors")
        check(folder.bytes("s.safetensors") == end, "who goes on comes to other bits")
        # Who is killed leaves at most one file with another name, which the next one to save here removes.
        left = [name for name in os.listdir(folder.path) if name.startswith(".cleave")]
        check(not left, f"left behind: {left}")


def evaluated(build):
    """The entry `eval` every few steps and at the end, which changes nothing: w is the sum of what was trained on, and the loss there."""
    with Folder(build) as folder:
        subprocess.run([f"{build}/bin/cleave-runnable-programs", folder.path], check=True)
        np.savez(folder.at("data.npz"), x=np.arange(1, 8, dtype=np.float32))
        np.savez(folder.at("other.npz"), x=np.zeros(3, np.float32))
        for log in ("l.jsonl", "l.csv"):
            told = folder.run("entries.cleave", "--data", "data.npz", "--order", "given", "--steps", "7", "--eval-data", "other.npz", "--eval-every", "3",
                              "--log", log, "--save", "s.safetensors")
            check("loss 1 to 28" in told and ", eval 28" in told, told)
        with open(folder.at("l.jsonl")) as file:
            lines = [json.loads(line) for line in file]
        check([(line["step"], line["eval"]) for line in lines if "eval" in line] == [(3, 6.0), (6, 21.0), (7, 28.0)], f"lines {lines}")
        with open(folder.at("l.csv")) as file:
            lines = list(csv.DictReader(file))
        check([(line["step"], line["eval"]) for line in lines if line["eval"]] == [("3", "6"), ("6", "21"), ("7", "28")], f"lines {lines}")
        check("eval 28" in folder.run("entries.cleave", "--entry", "eval", "--data", "other.npz", "--weights-from", "s.safetensors"), "not the weights of the file")
        check("eval 0" in folder.run("entries.cleave", "--entry", "eval", "--data", "other.npz"), "not the weights of the beginning")
        told = folder.run(folder.compile("momentum", "one"), "--entry", "eval", "--data", "other.npz", expect=1)
        check("the program has no entry 'eval'" in told, told)
        np.savez(folder.at("none.npz"), y=np.zeros(3, np.float32))
        told = folder.run("entries.cleave", "--data", "data.npz", "--steps", "7", "--eval-data", "none.npz", "--save", "t.safetensors", expect=1)
        check("the data has no 'x'; it has 'y'" in told and not os.path.exists(folder.at("t.safetensors")), told)
        told = folder.run("entries.cleave", "--entry", "test", "--data", "other.npz", expect=2)
        check("'--data' with '--entry' evaluates: it takes 'eval', and no steps" in told, told)


def apart(build):
    """Ranks that do not see the folder of the file."""
    with Folder(build) as folder:
        np.savez(folder.at("data.npz"), **steps.samples(50))
        program = folder.compile("momentum", "data")
        words = [f"{build}/bin/cleave-run", program, "--data", folder.at("data.npz"), "--steps", "2", "--save", "s.safetensors"]
        for name in "ab":
            os.mkdir(folder.at(name))
        done = subprocess.run([*MPIRUN, "1", "--wdir", folder.at("a"), *words, ":", "-n", "1", "--wdir", folder.at("b"), *words],
                              capture_output=True, text=True, timeout=LIMIT, env=MPI_ENVIRONMENT)
        told = done.stdout + done.stderr
        check(done.returncode != 0 and "rank 1 does not see .cleave-" in told and ": --save needs a disk that all ranks see" in told, told)
        check(not any(name.endswith("safetensors") for name in os.listdir(folder.at("a"))), "a file is there")


CASES = {**{f"losses {optimizer} {mesh}": (losses, optimizer, mesh) for optimizer in ("momentum", "adam") for mesh in MESHES},
         **{f"orders {mesh}": (orders, mesh) for mesh in ("data", "both")}, "forms": (forms,), "refused": (refused,),
         **{f"nan {way}": (nan, way) for way in ("threads", "processes")},
         **{f"resumed {mesh}": (resumed, mesh) for mesh in ("one", "zero3", "both")}, "begun": (begun,), "kept": (kept,), "evaluated": (evaluated,),
         **{f"killed {way}": (killed, way) for way in ("threads", "processes")}, **({"apart": (apart,)} if HAS_MPI else {})}


def problem(build, case, *words):
    try:
        case(build, *words)
    except Wrong as wrong:
        return str(wrong)
    return ""


def main():
    build, names, _ = harness.arguments()
    return harness.run(harness.select(CASES, names), lambda case: problem(build, *case))


if __name__ == "__main__":
    sys.exit(main())
