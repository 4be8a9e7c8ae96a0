"""Outputs onto what a command reads, or onto each other: refused before anything is written (what was given is compared with what
is there afterwards, check.py)."""
import io
import os

import numpy as np
import onnx
from case import Case, mlp, model, tensor, value
from onnx import helper

PLAN = b"mesh: {data: 2}\nshard:\n  - {tensor: hidden, dims: [data, _]}\n"
CLUSTER = (b"device: {flops: {f32: 1T}, bandwidth: 1GB/s, memory: 1GB}\n" b"links: {bandwidth: 1GB/s}\n")
TABLE = b"0F0,0B0\n1F0,1B0\n"


def arrays():
    """What `hidden` of `mlp` and `w` may be."""
    file = io.BytesIO()
    np.savez(file, hidden=np.zeros((8, 16), np.float32), w=np.zeros((16, 32), np.float32))
    return file.getvalue()


def beside():
    """Model and weights of hidden @ w, `w.bin` beside the model, and of a tensor in `unused.bin` that nobody needs."""
    weight = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    proto = onnx.load_from_string(model([helper.make_node("MatMul", ["hidden", "w"], ["out"], name="/mlp/up")],
                                        [value("hidden", (8, 16))], [value("out", (8, 32))],
                                        [tensor("w", weight), tensor("idle", weight)]))
    for initializer, file in zip(proto.graph.initializer, ("w.bin", "unused.bin")):
        initializer.ClearField("float_data")
        initializer.data_location = onnx.TensorProto.EXTERNAL
        for key, text in (("location", file), ("length", str(weight.nbytes))):
            entry = initializer.external_data.add()
            entry.key, entry.value = key, text
    return {"m.onnx": proto.SerializeToString(), "w.bin": weight.tobytes(), "unused.bin": weight.tobytes()}


def link(target, make=os.symlink):
    def write(path):
        make(os.path.join(os.path.dirname(path), target) if make is os.link else target, path)
    return write


def folder(files=()):
    def write(path):
        os.mkdir(path)
        for name, content in dict(files).items():
            with open(os.path.join(path, name), "wb") as file:
                file.write(content)
    return write


def case(name, *arguments, words=(), more=None, exit_code=2):
    files = {"m.onnx": mlp(), "p.yaml": PLAN, "x.npz": arrays(), "c.yaml": CLUSTER, **(more or {})}
    return Case(f"lost-{name}", list(arguments), files, list(words), exit_code)


ON_PLAN = ["m.onnx", "--plan", "p.yaml"]


def onto_inputs():
    yield case("program-onto-model", "compile", "m.onnx", "-o", "m.onnx", words=["'-o m.onnx'", "the model", "lost"])
    yield case("by-another-path", "compile", "m.onnx", "-o", "./m.onnx", words=["the model"])
    yield case("through-a-folder", "compile", "m.onnx", "-o", "d/../m.onnx", words=["the model"], more={"d": folder()})
    yield case("through-a-link", "compile", "m.onnx", "-o", "l.cleave", words=["the model"], more={"l.cleave": link("m.onnx")})
    yield case("model-is-a-link", "import", "l.onnx", "-o", "m.onnx", words=["the model"], more={"l.onnx": link("m.onnx")})
    yield case("through-a-linked-folder", "compile", "m.onnx", "-o", "d/m.onnx", words=["the model"], more={"d": link(".")})
    yield case("hard-link", "compile", "m.onnx", "-o", "h.cleave", words=["the model"], more={"h.cleave": link("m.onnx", os.link)})
    yield case("import", "import", "m.onnx", "-o", "m.onnx", words=["the model"])
    yield case("plan", "shard", *ON_PLAN, "-o", "p.yaml", words=["--plan"])
    yield case("cluster", "shard", *ON_PLAN, "--cluster", "c.yaml", "-o", "o.mlir", "--report", "c.yaml", words=["--report", "--cluster"])
    yield case("cluster-of-the-plan", "shard", "m.onnx", "--plan", "q.yaml", "-o", "c.yaml", words=["-o c.yaml", "cluster of the plan"],
               more={"q.yaml": PLAN + b"cluster: c.yaml\n"})
    yield case("inputs", "run", "m.onnx", "--inputs", "x.npz", "--outputs", "x.npz", words=["--outputs", "--inputs"])
    yield case("outputs-onto-model", "run", "m.onnx", "--outputs", "m.onnx", words=["--outputs", "the model"])
    yield case("inputs-onto-model", "run", "m.onnx", "--save-inputs", "m.onnx", words=["--save-inputs", "the model"])
    yield case("inputs-onto-themselves", "run", "m.onnx", "--inputs", "x.npz", "--save-inputs", "x.npz", words=["--save-inputs", "--inputs"])
    yield case("outputs-onto-plan", "run", *ON_PLAN, "--outputs", "p.yaml", words=["--outputs", "--plan"])
    yield case("report", "explain", *ON_PLAN, "--report", "m.onnx", words=["--report", "the model"])
    yield case("report-of-bench", "bench", "m.onnx", "--report", "m.onnx", words=["--report", "the model"])
    yield case("annotated", "shard", *ON_PLAN, "--emit", "onnx", "-o", "m.onnx", words=["-o", "the model"])
    yield case("costs", "schedule", "--ranks", "2", "--microbatches", "2", "--costs", "k.json", "--report", "k.json",
               words=["--report", "--costs"], more={"k.json": b"{}"})
    yield case("schedule", "schedule", "--schedule", "t.csv", "--table", "t.csv", words=["--table", "--schedule"], more={"t.csv": TABLE})
    yield case("profile", "schedule", "m.onnx", "--ranks", "2", "--microbatches", "2", "--profile", "k.json", "--draw", "k.json",
               words=["--draw", "--profile"], more={"k.json": b"{}"})
    yield case("phase-onto-model", "shard", "d/0-imported.mlir", "--mesh", "data=2", "--dump-phases", "d", "-o", "o.mlir",
               words=["--dump-phases", "the model"], more={"d": folder({"0-imported.mlir": b"module {}"})})
    yield case("export-onto-model", "export", "d/rank-0.onnx", "-o", "d", words=["-o d", "the model"], more={"d": folder({"rank-0.onnx": mlp()})})
    yield case("against", "run", "m.mlir", "--against", "m.onnx", "--outputs", "m.onnx", words=["--outputs", "--against"],
               more={"m.mlir": b"module {}"})


def onto_weights():
    files = beside()
    yield case("weights", "compile", "m.onnx", "-o", "w.bin", words=["-o w.bin", "weights"], more=files)
    yield case("weights-nobody-needs", "run", "m.onnx", "--outputs", "unused.bin", words=["--outputs", "weights"], more=files)
    yield case("weights-by-a-link", "run", "m.onnx", "--save-inputs", "l.npz", words=["--save-inputs", "weights"],
               more={**files, "l.npz": link("w.bin")})
    proto = onnx.load_from_string(files["m.onnx"])
    del proto.graph.initializer[1]
    proto.graph.initializer[0].external_data[0].value = "rank-0.data"
    yield case("export-onto-weights", "export", "m.onnx", "-o", ".", words=["weights"],
               more={"m.onnx": proto.SerializeToString(), "rank-0.data": files["w.bin"]})


def of_training():
    """Samples in a folder, and what is written beside what was named."""
    def train(name, *arguments, words, more=None, **options):
        step = ("train", "m.onnx", "--train={loss: {kind: mse, of: out}, optimizer: sgd}", "--steps", "1", "--data", "d")
        return case(name, *step, *arguments, words=words, more={"d": folder({"x.npy": b"samples"}), **(more or {})})

    yield train("log-onto-samples", "--log", "d/x.npy", words=["--log d/x.npy", "--data"])
    yield train("checkpoint-onto-samples", "--save", "d/x.npy", words=["--save d/x.npy", "--data"])
    yield train("log-onto-checkpoint", "--save", "s", "--log", "s", words=["--save", "--log"])
    yield train("trained-onto-model", "--save", "s", "--export", "m.onnx", words=["--export", "the model"])
    files = beside()
    proto = onnx.load_from_string(files["m.onnx"])
    proto.graph.initializer[0].external_data[0].value = "o.onnx.data"
    yield train("trained-onto-weights", "--save", "s", "--export", "o.onnx", words=["--export o.onnx.data", "weights"],
                more={"m.onnx": proto.SerializeToString(), "o.onnx.data": files["w.bin"]})


def of_plans():
    """`plan-1.yaml`, .. in a folder."""
    found = ("plan", "m.onnx", "--cluster", "cpu-threads")
    free = folder({"plan-1.yaml": b"mesh: {}\nfree: {data: 2}\n"})
    yield case("plans-onto-the-plan", *found, "--plan", "d/plan-1.yaml", "--top", "2", "-o", "d", words=["-o d", "--plan"], more={"d": free})
    yield case("plans-and-report", *found, "--devices", "2", "--front", "-o", "d", "--report", "d/plan-1.yaml", words=["-o d", "--report"])


def onto_each_other():
    yield case("two", "compile", "m.onnx", "-o", "o", "--report", "o", words=["-o o", "--report"])
    yield case("two-by-another-path", "compile", "m.onnx", "-o", "o", "--report", "d/../o", words=["-o", "--report"], more={"d": folder()})
    yield case("two-by-links", "run", "m.onnx", "--outputs", "a", "--save-inputs", "b", words=["--outputs", "--save-inputs"],
               more={"a": link("later"), "b": link("later")})
    yield case("two-one-is-a-link", "run", "m.onnx", "--outputs", "later", "--save-inputs", "b", words=["--outputs", "--save-inputs"],
               more={"b": link("./later")})
    yield case("two-that-are-there", "run", "m.onnx", "--outputs", "a", "--save-inputs", "b", words=["--outputs", "--save-inputs"],
               more={"a": b"old", "b": link("a", os.link)})
    yield case("report-into-export", "export", "m.onnx", "-o", "d", "--report", "d/export.json", words=["-o d", "--report"])
    yield case("module-into-phases", "shard", *ON_PLAN, "--dump-phases", "d", "-o", "d/0-imported.mlir", words=["--dump-phases", "-o"])
    yield case("drawing-and-report", "schedule", "--ranks", "2", "--microbatches", "2", "--draw", "o.json", "--report", "o.json",
               words=["--draw", "--report"])


def kept():
    """What loses nothing."""
    null = "/dev/null"
    yield case("nothing-in-devices", "run", *ON_PLAN, "--outputs", null, "--save-inputs", null, "--report", null, exit_code=0)
    yield case("nothing-beside", "shard", *ON_PLAN, "-o", "-", "--report", "r.json", exit_code=0)
    yield case("nothing-in-a-folder", "export", "d/m.onnx", "-o", "d", exit_code=0, more={"d": folder({"m.onnx": mlp()})})


def cases():
    for group in (onto_inputs, onto_weights, of_training, of_plans, onto_each_other, kept):
        yield from group()
