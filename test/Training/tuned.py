"""`cleave train` from ONNX file to ONNX file: what is evaluated on the way and what is exported, against onnxruntime, on every launcher.

    tuned.py BUILD_DIR [CASE...]

The loss of an exported model is computed here, from what onnxruntime makes of the file; so is what adapters add to a weight.
"""
import json
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper, parser

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
sys.path.insert(1, os.path.join(harness.ROOT, "test", "Runtime"))
from case import HAS_MPI, MPI_ENVIRONMENT, MPIRUN  # noqa: E402
from train import check, problem, read_safetensors  # noqa: E402

BATCH, CLASSES = 6, 5
# Sums of f32 in another order, some steps on; numbers that are told with six digits.
NEAR, TOLD = 2e-6, 5e-6
# `fused` is read in three parts, the last weight lies the other way round.
TEXT = """<ir_version: 10, opset_import: ["": 18]> f (float[6, 8] x) => (float[6, 5] y) {
  a = MatMul(x, fused) q, k, v = Split<axis = 1, num_outputs = 3>(a) e = Tanh(q) g = Mul(e, k) s = Add(g, v) n = LayerNormalization<epsilon = 0.00001>(s, scale, shift)
  h = MatMul(n, w) r = Relu(h) y = Gemm<transB = 1>(r, head, b) }"""
SHAPES = {"fused": (8, 36), "scale": (12,), "shift": (12,), "w": (12, 10), "head": (CLASSES, 10), "b": (CLASSES,)}
ROWS = "shard: [{tensor: x, dims: [data, _]}, {tensor: labels, dims: [data]}]\n"
# In training this one drops half of its values, and its norm takes the statistics of the batch.
NOISY = """<ir_version: 10, opset_import: ["": 18]> f (float[6, 8] x) => (float[6, 5] y) {
  h = MatMul(x, w) n = BatchNormalization(h, scale, shift, mean, variance) r = Relu(n) half = Constant<value = float {0.5}>() d = Dropout(r, half) y = Gemm<transB = 1>(d, head, b) }"""
NOISY_SHAPES = {"w": (8, 10), "scale": (10,), "shift": (10,), "mean": (10,), "variance": (10,), "head": (CLASSES, 10), "b": (CLASSES,)}
# A weight that is a factor of one product, and once more, turned round, of another.
SHARED = """<ir_version: 10, opset_import: ["": 18]> f (float[6, 8] x) => (float[6, 5] y) {
  h = MatMul(x, w) e = Tanh(h) turned = Transpose<perm = [1, 0]>(w) g = MatMul(e, turned) y = MatMul(g, head) }"""
# A weight of 4 bits, in blocks of 32 that have a scale each.
PACKED = """<ir_version: 10, opset_import: ["": 18, "com.microsoft": 1]> f (float[6, 8] x) => (float[6, 5] y) {
  h = MatMul(x, w) r = Relu(h) y = com.microsoft.MatMulNBits<K = 64, N = 5, bits = 4, block_size = 32>(r, bits, scales) }"""
PACKED_SHAPES = {"w": (8, 64)}
MESHES = {
    "one": "mesh: {one: 1}\n",
    "data": "mesh: {data: 2}\n" + ROWS,
    "zero1": "mesh: {data: 3}\n" + ROWS + "zero: {axis: data, stage: 1, min_bytes: 0}",
    "zero2 in microbatches": "mesh: {data: 2}\n" + ROWS + "zero: {axis: data, stage: 2, min_bytes: 0}, microbatches: 3",
    "zero3": "mesh: {data: 2}\n" + ROWS + "zero: {axis: data, stage: 3, min_bytes: 0}",
    "tensor": "mesh: {model: 2}\nshard: [{tensor: w, dims: [_, model]}, {tensor: head, dims: [_, model]}]\n",
    "both": "mesh: {data: 2, model: 2}\nshard: [{tensor: x, dims: [data, _]}, {tensor: labels, dims: [data]}, {tensor: w, dims: [_, model]}, {tensor: head, dims: [_, model]}]\n",
}
TRAIN = "loss: {kind: cross_entropy, of: y}, optimizer: {kind: adamw, decay: 0.01}, rate: 0.02"


class Folder(harness.Folder):
    """A model, data, and plans."""

    def __init__(self, build, text=TEXT, shapes=SHAPES):
        super().__init__(build, "cleave-tuned-")
        random = np.random.default_rng(3)
        model = parser.parse_model(text)
        for name, shape in shapes.items():
            value = random.standard_normal(shape) / np.sqrt(shape[0]) + (name == "scale")
            value = np.square(value) + 1 if name == "variance" else value
            model.graph.initializer.append(numpy_helper.from_array(value.astype(np.float32), name))
        onnx.save(model, self.at("m.onnx"))
        for name, count in (("data", 40), ("other", 20)):
            x = random.standard_normal((count, 8)).astype(np.float32)
            np.savez(self.at(name + ".npz"), x=x, labels=np.argmax(x[:, :CLASSES] + x[:, -CLASSES:], 1))

    def plan(self, mesh, more=""):
        text, _, zero = MESHES[mesh].partition("zero: ")
        with open(self.at("plan.yaml"), "w") as file:
            file.write(f"{text}train: {{{TRAIN}{', zero: ' + zero if zero else ''}{', ' + more if more else ''}}}\n")
        return "plan.yaml"

    def call(self, program, *words, way=(), expect=0, **environment):
        done = subprocess.run([*way, f"{self.build}/bin/{program}", *words], capture_output=True, text=True, timeout=60, cwd=self.path,
                              env={**MPI_ENVIRONMENT, **environment})
        told = done.stdout + done.stderr
        check(done.returncode == expect, f"{program} {' '.join(words)}: exit {done.returncode}, expected {expect}: {told[-900:]}")
        return told

    def weights(self, name):
        return {each.name: numpy_helper.to_array(each) for each in onnx.load(self.at(name)).graph.initializer}

    def loss(self, model, data="other.npz"):
        """Of the batches that there are, in f64 from the logits of onnxruntime."""
        arrays, session = np.load(self.at(data)), onnxruntime.InferenceSession(self.at(model), providers=["CPUExecutionProvider"])
        losses = []
        for at in range(0, len(arrays["x"]) - BATCH + 1, BATCH):
            logits = session.run(None, {"x": arrays["x"][at:at + BATCH]})[0].astype(np.float64)
            logits -= logits.max(1, keepdims=True)
            losses.append(np.mean(np.log(np.exp(logits).sum(1)) - logits[np.arange(BATCH), arrays["labels"][at:at + BATCH]]))
        return np.mean(losses)

    def lines(self, name="l.jsonl"):
        with open(self.at(name)) as file:
            return [json.loads(line) for line in file]


def close(got, want, what, tolerance=NEAR):
    check(abs(got - want) <= tolerance * max(1, abs(want)), f"{what} is {got}, expected {want}")


def evals(folder):
    return [(line["step"], line["eval"]) for line in folder.lines() if "eval" in line]


DATA = ["--data", "data.npz", "--steps", "10", "--eval-data", "other.npz", "--eval-every", "4", "--log", "l.jsonl", "--save", "s.safetensors"]
WORLD = {"threads": [], "processes": ["--local"]}


def start(folder, launcher, rank, ranks, port):
    """What launchers tell a rank: torchrun's variables, or srun's."""
    base = {name: value for name, value in MPI_ENVIRONMENT.items() if not name.startswith(("OMPI_", "PMI", "SLURM_", "CLEAVE_"))}
    said = {"torchrun": {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port},
            "srun": {"SLURM_PROCID": rank, "SLURM_NTASKS": ranks, "SLURM_LOCALID": rank, "SLURM_STEP_ID": 0, "SLURM_JOB_ID": port, "SLURM_STEP_NODELIST": "localhost"}}[launcher]
    environment = {**base, "CLEAVE_SECRET": "00112233445566778899aabbccddeeff", **{name: str(value) for name, value in said.items()}}
    return subprocess.Popen([f"{folder.build}/bin/cleave-run", "step.cleave", *DATA], cwd=folder.path, env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def evaluated(build, mesh):
    """By `cleave train`, and of its program by threads, processes, mpirun, torchrun and srun: one log, one checkpoint, and the loss of the exported file."""
    with Folder(build) as folder:
        plan = folder.plan(mesh)
        before = folder.loss("m.onnx")
        folder.call("cleave", "train", "m.onnx", "--plan", plan, *DATA, "--export", "tuned.onnx")
        want = evals(folder)
        check([step for step, _ in want] == [4, 8, 10], f"evaluated at {want}")
        close(want[-1][1], folder.loss("tuned.onnx"), "the loss of the tuned model")
        check(want[-1][1] < before - 0.1, f"nothing is learnt: {before} to {want}")
        losses = [line["loss"] for line in folder.lines() if "loss" in line]
        folder.call("cleave", "compile", "m.onnx", "--train", "--plan", plan, "-o", "step.cleave")
        close(float(folder.call("cleave-run", "step.cleave", "--entry", "eval", "--data", "other.npz").split("eval ")[1]), before, "the loss before", TOLD)
        ranks = int(np.prod([int(word.split(":")[1].strip(" }")) for word in MESHES[mesh].split("\n")[0].split("mesh: ")[1].split(",")]))
        with open(folder.at("s.safetensors"), "rb") as file:
            first = file.read()
        ways = {**WORLD, **({"mpirun": []} if HAS_MPI else {}), **({"torchrun": None, "srun": None} if mesh in ("data", "both") else {})}
        for number, (way, words) in enumerate(ways.items()):
            os.remove(folder.at("s.safetensors"))
            if words is None:
                port = 32000 - os.getpid() % 5 * 1000 - 20 * number - len(mesh)
                started = [start(folder, way, rank, ranks, port) for rank in range(ranks)]
                said = [process.communicate(timeout=60)[0] for process in started]
                check(not any(process.returncode for process in started), f"{way}: {said}")
            else:
                folder.call("cleave-run", "step.cleave", *DATA, *words, way=[*MPIRUN, str(ranks)] if way == "mpirun" else ())
            check(evals(folder) == want and [line["loss"] for line in folder.lines() if "loss" in line] == losses, f"{way}: {folder.lines()}, expected {want}")
            with open(folder.at("s.safetensors"), "rb") as file:
                check(file.read() == first, f"{way}: another checkpoint")
        told = folder.call("cleave-run", "step.cleave", "--entry", "eval", "--data", "other.npz", "--weights-from", "s.safetensors")
        close(float(told.split("eval ")[1]), want[-1][1], "the loss of a checkpoint", TOLD)


def adapted(build, mesh):
    """Adapters beside a fused weight, a whole one and one that lies the other way round: folded, apart, and what is computed with them beside."""
    with Folder(build) as folder:
        plan = folder.plan(mesh, "lora: {tensors: [fused, w, head], rank: 2, alpha: 3}")
        folder.call("cleave", "train", "m.onnx", "--plan", plan, *DATA, "--export", "tuned.onnx", "--export-adapters", "a.safetensors")
        close(evals(folder)[-1][1], folder.loss("tuned.onnx"), "the loss of the tuned model")
        check(evals(folder)[-1][1] < folder.loss("m.onnx") - 0.05, f"nothing is learnt: {evals(folder)}")
        apart, saved = (read_safetensors(folder.at(name))[0] for name in ("a.safetensors", "s.safetensors"))
        names = [f"fused[0, {at}]" for at in (0, 12, 24)] + ["w", "head"]
        check(set(apart) == {f"base_model.model.{name}.lora_{end}.weight" for name in names for end in "AB"}, f"adapters {sorted(apart)}")
        want = folder.weights("m.onnx")
        for name in names:
            a, b = (apart[f"base_model.model.{name}.lora_{end}.weight"] for end in "AB")
            ours = saved[name + ".lora_A"], saved[name + ".lora_B"]
            check(a.shape[0] == 2 == b.shape[1] and np.array_equal(np.sort(a, None), np.sort(ours[0], None)), f"{name}: {a.shape}, {b.shape}")
            change = 1.5 * b.astype(np.float64) @ a.astype(np.float64)
            whole, _, starts = name.partition("[")
            at = int(starts.rstrip("]").split(",")[1]) if starts else 0
            want[whole] = want[whole].astype(np.float64)
            if whole == "head":
                want[whole] = want[whole] + change
            else:
                want[whole][:, at:at + change.shape[0]] += change.T
        for name, value in folder.weights("tuned.onnx").items():
            check(np.array_equal(value, want[name].astype(np.float32)), f"{name} is off by {np.abs(value - want[name]).max()}")


def packed(build, mesh):
    """Adapters next to a weight of 4 bits, which is picked by the name of its integers: they stay apart, and give the loss of numpy with their product added."""
    with Folder(build, PACKED, PACKED_SHAPES) as folder:
        random, model = np.random.default_rng(5), onnx.load(folder.at("m.onnx"))
        bits, scales = random.integers(0, 256, (CLASSES, 2, 16)).astype(np.uint8), random.uniform(0.01, 0.03, CLASSES * 2).astype(np.float32)
        model.graph.initializer.extend([numpy_helper.from_array(bits, "bits"), numpy_helper.from_array(scales, "scales")])
        onnx.save(model, folder.at("m.onnx"))
        folder.call("cleave", "train", "m.onnx", "--plan", folder.plan(mesh, "lora: {tensors: bits, rank: 2, alpha: 3}"), *DATA, "--export-adapters", "a.safetensors")
        apart = read_safetensors(folder.at("a.safetensors"))[0]
        a, b = (apart[f"base_model.model.bits.lora_{end}.weight"].astype(np.float64) for end in "AB")
        check(a.shape == (2, 64) and b.shape == (CLASSES, 2), f"adapters of {a.shape}, {b.shape}")
        # Low bits first, 8 stands for zero (MatMulNBits of onnxruntime).
        numbers = np.stack([bits & 15, bits >> 4], -1).reshape(CLASSES, 2, 32).astype(np.float64) - 8
        dequantized, w, arrays = (numbers * scales.reshape(CLASSES, 2, 1)).reshape(CLASSES, 64), folder.weights("m.onnx")["w"], np.load(folder.at("other.npz"))
        loss = lambda head: np.mean([np.log(np.exp(y).sum()) - y[label] for y, label in zip(np.maximum(arrays["x"] @ w.astype(np.float64), 0) @ head.T, arrays["labels"])][:18])
        close(loss(dequantized), folder.loss("m.onnx"), "the loss before, by onnxruntime", 1e-5)
        close(evals(folder)[-1][1], loss(dequantized + 1.5 * b @ a), "the loss with adapters")
        check(evals(folder)[-1][1] < loss(dequantized) - 0.05, f"nothing is learnt: {evals(folder)}")
        told = folder.call("cleave", "train", "m.onnx", "--plan", "plan.yaml", *DATA, "--export", "tuned.onnx", expect=2)
        check("--export cannot fold the adapter of 'bits' into it: it is stored as ui8[5, 2, 16]" in told, told)


def elsewhere(build):
    """Weights in nodes Constant are written back where they are; one of a branch, which no file says by its name alone, is told before anything is trained."""
    with Folder(build) as folder:
        random = np.random.default_rng(9)
        weights = {"w": random.standard_normal((8, 6)).astype(np.float32), "head": random.standard_normal((6, CLASSES)).astype(np.float32)}
        constants = [helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value, "of_" + name)) for name, value in weights.items()]
        io = [helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", [BATCH, 8]), ("y", [BATCH, CLASSES]))]
        nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Tanh", ["h"], ["t"]), helper.make_node("MatMul", ["t", "head"], ["y"])]
        save = lambda nodes, **more: onnx.save(helper.make_model(helper.make_graph(nodes, "g", io[:1], io[1:], **more), opset_imports=[helper.make_opsetid("", 18)], ir_version=9), folder.at("m.onnx"))
        for more in ("", "lora: {tensors: [w, head], rank: 2}"):
            save([*constants, *nodes])
            before = folder.loss("m.onnx")
            told = folder.call("cleave", "train", "m.onnx", "--plan", folder.plan("data", more), *DATA, "--export", "tuned.onnx")
            check("tuned.onnx has 2 new weights" in told, told)
            close(evals(folder)[-1][1], folder.loss("tuned.onnx"), "the loss of the tuned model")
            check(evals(folder)[-1][1] < before - 0.05, f"nothing is learnt: {evals(folder)}")
            found = onnx.load(folder.at("tuned.onnx")).graph.node[:2]
            check([node.attribute[0].t.name for node in found] == ["of_w", "of_head"], f"nodes {found}")
        branch = helper.make_graph(nodes, "b", [], io[1:], [numpy_helper.from_array(value, name) for name, value in weights.items()])
        save([helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True))), helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)])
        told = folder.call("cleave", "train", "m.onnx", "--plan", folder.plan("one"), *DATA, "--export", "tuned.onnx", expect=2)
        check("--export cannot write 'w' back: the graph has no initializer and no Constant of that name" in told and "trains" not in told, told)


def shared(build):
    """An adapter of a weight that something else reads, too: the file has one weight for both, so it stays apart."""
    with Folder(build, SHARED, {"w": (8, 6), "head": (8, CLASSES)}) as folder:
        plan = folder.plan("one", "lora: {tensors: w, rank: 2}")
        told = folder.call("cleave", "train", "m.onnx", "--plan", plan, *DATA, "--export", "tuned.onnx", expect=2)
        check("--export cannot fold the adapter of 'w' into it: it is read by turned, too, which the adapter does not change; --export-adapters" in told, told)
        folder.call("cleave", "train", "m.onnx", "--plan", plan, *DATA, "--export-adapters", "a.safetensors")
        check(evals(folder)[-1][1] < folder.loss("m.onnx") - 0.02, f"nothing is learnt: {evals(folder)}")
        folder.call("cleave", "train", "m.onnx", "--plan", folder.plan("one", "lora: {tensors: head, rank: 2}"), *DATA, "--export", "tuned.onnx")
        close(evals(folder)[-1][1], folder.loss("tuned.onnx"), "the loss with an adapter of another weight")


def noisy(build, mesh):
    """What a model does in training alone it does not where it is evaluated: with the running statistics of the step, which are exported, too."""
    with Folder(build, NOISY, NOISY_SHAPES) as folder:
        plan = folder.plan(mesh, "dropout: model, batch_norm: batch")
        folder.call("cleave", "train", "m.onnx", "--plan", plan, *DATA, "--export", "tuned.onnx")
        close(evals(folder)[-1][1], folder.loss("tuned.onnx"), "the loss of the tuned model")
        before, after = folder.weights("m.onnx"), folder.weights("tuned.onnx")
        check(all(np.abs(after[name] - before[name]).max() > 1e-3 for name in ("mean", "variance", "w")), "statistics are those of the file")
        folder.call("cleave", "train", "m.onnx", "--plan", plan, "--data", "data.npz", "--steps", "1", "--check=differences", "--quiet")


def configured(build):
    """What PEFT reads beside adapters of whole weights: keys of its LoraConfig (PEFT 0.7 and later), and the modules that it looks up."""
    with Folder(build) as folder:
        os.mkdir(folder.at("peft"))
        plan = folder.plan("one", "lora: {tensors: [w, head], rank: 2, alpha: 3}")
        folder.call("cleave", "train", "m.onnx", "--plan", plan, *DATA, "--export-adapters", "peft/adapter_model.safetensors")
        with open(folder.at("peft/adapter_config.json")) as file:
            config = json.load(file)
        check(config["peft_type"] == "LORA" and config["r"] == 2 and config["lora_alpha"] == 3 and config["bias"] == "none" and not config["fan_in_fan_out"], str(config))
        found = {name.removeprefix("base_model.model.").rpartition(".lora_")[0] for name in read_safetensors(folder.at("peft/adapter_model.safetensors"))[0]}
        check(set(config["target_modules"]) == found == {"w", "head"}, f"modules {config['target_modules']}, adapters of {found}")
        told = folder.call("cleave", "train", "m.onnx", "--plan", folder.plan("one", "lora: {tensors: fused, rank: 2}"), *DATA, "--export-adapters", "a.safetensors")
        check("not modules of PEFT" in told and not os.path.exists(folder.at("adapter_config.json")), told)


CASES = {"configured": (configured,), "elsewhere": (elsewhere,), "shared": (shared,), **{f"evaluated {mesh}": (evaluated, mesh) for mesh in MESHES}, **{f"adapted {mesh}": (adapted, mesh) for mesh in ("one", "data", "both")},
         **{f"packed {mesh}": (packed, mesh) for mesh in ("one", "data", "zero3")},
         **{f"noisy {mesh}": (noisy, mesh) for mesh in ("one", "data")}}


def main():
    build, names, _ = harness.arguments()
    return harness.run(harness.select(CASES, names), lambda case: problem(build, *case))


if __name__ == "__main__":
    sys.exit(main())
