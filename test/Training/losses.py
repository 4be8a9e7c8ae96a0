"""Losses of twenty steps of whole models on meshes, against those of one device.

    losses.py BUILD_DIR [CASE...]

`cleave train` runs each case as a program; its log has the losses. On one device the first one is onnxruntime's, of the same inputs, and the
last one is smaller. On meshes all of them are those of one device, but for what rounding in another order may change.

Where a value is within rounding of a kink (ReLU, max pools), another order of sums may take the other side, and so may one device whose inputs
differ by an ulp. Models with kinks are therefore held in f32 to what such inputs change on one device, and in f64 to every digit that matters.
"""
import json
import os
import sys
import tempfile
import threading

import numpy as np
import onnx
import onnxruntime

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

MODELS = os.path.join(harness.ROOT, "test", "Models")
STEPS = 20
# Relative, in f32: of a mesh beside one device, and of the first loss beside onnxruntime.
RTOL, PEER = 5e-7, 1e-5
# Where ranks pad their samples, sums of f32 have other parts.
UNEVEN = 1e-6
# In f64: the log has 17 digits, a step at a kink of f64 needs a value within 1e-15 of it.
DOUBLE = 1e-12
# How often one device runs with inputs moved by an ulp, and how many steps of a model with kinks are to be held to RTOL by that at least.
MOVED, FIRM = 4, STEPS // 2

GPT2 = dict(model="gpt2_ts17", dims={"batch": 4, "seq": 16})
LLAMA = dict(model="llama_gqa_dyn18", dims={"batch": 4, "seq": 16})
MOE = dict(model="moe_dyn18", dims={})
RESNET = dict(model="resnet_ts17", dims={"batch": 4}, kinks=True)
RESNET_F64 = dict(model="resnet_ts17", dims={"batch": 4}, double=True)
BATCH = [("{input_ids,attention_mask,labels}", "[data, _]")]
MEGATRON = [("node: \"*/wte/Gather\", operand: 0", "[model, _]"), ("node: \"*/h.*/{attn/c_attn,mlp/c_fc}/Gemm\", operand: 1", "[_, model]"),
            ("node: \"*/h.*/{attn/c_attn,mlp/c_fc}/Gemm\", operand: 2", "[model]"), ("node: \"*/h.*/{attn,mlp}/c_proj/Gemm\", operand: 1", "[model, _]"),
            ("node: \"*/lm_head/MatMul\", operand: 1", "[_, model]")]
IMAGES = [("image", "[data, _, _, _]"), ("labels", "[data, _]")]
SEQUENCE = [("node: \"*/{ln_1,ln_2,ln_f}/LayerNormalization\", operand: 0", "[_, model, _]")]


# Keys and values of both layers, which would else be made by all ranks, of tokens that are gathered in front of their projections.
KEYS = ("{add_5,transpose_2,add_11,transpose_6}", "[_, _, seq, _]")
HEADS = ("*/attn/{Reshape,Reshape_1}_output_0", "[data, seq, _, _]")


def zero(stage, axis="data"):
    return {"zero": f"{{axis: {axis}, stage: {stage}}}"}


def case(of, mesh="one: 1", rules=(), uneven=False, stages="", attention="", decided=("--optimize=balanced",), **train):
    """A form is what its name says: by time, which decides steps for this machine, ranks that share the batch may share states, too."""
    return dict(of, mesh=mesh, rules=rules, uneven=uneven, stages=stages, attention=attention, decided=decided, train=train)


CASES = {
    "gpt2": case(GPT2), "gpt2 in microbatches": case(GPT2, microbatches=2),
    "gpt2, data parallel": case(GPT2, "data: 2", BATCH), **{f"gpt2, ZeRO-{stage}": case(GPT2, "data: 2", BATCH, **zero(stage)) for stage in (1, 2, 3)},
    "gpt2, ZeRO-2 in microbatches": case(GPT2, "data: 2", BATCH, microbatches=2, **zero(2)),
    "gpt2, hybrid sharding": case(GPT2, "replica: 2, shard: 2", [(BATCH[0][0], "[[replica, shard], _]")], **zero(3, "shard")),
    "gpt2, tensor parallel": case(GPT2, "model: 2", MEGATRON), "gpt2, tensor and sequence parallel": case(GPT2, "model: 4", MEGATRON + SEQUENCE),
    "gpt2, data and tensor parallel, ZeRO-1": case(GPT2, "data: 2, model: 2", BATCH + MEGATRON, **zero(1)),
    "gpt2, three ranks share four samples": case(GPT2, "data: 3", BATCH, uneven=True),
    "gpt2, three ranks share each microbatch": case(GPT2, "data: 3", BATCH, uneven=True, microbatches=2),
    "gpt2, three ranks share each microbatch of two stages": case(GPT2, "stage: 2, data: 3", BATCH, uneven=True, stages="microbatches: 2, schedule: 1f1b"),
    "gpt2, two stages": case(GPT2, "stage: 2", stages="microbatches: 4"), "gpt2, two ways": case(GPT2, "stage: 2", stages="microbatches: 4, schedule: dualpipe"),
    "gpt2, four stages on two ranks, ZeRO-1": case(GPT2, "data: 2, stage: 2", BATCH, stages="microbatches: 2, chunks: 2", **zero(1)),
    "gpt2, data, tensor parallel and stages, ZeRO-3": case(GPT2, "data: 2, model: 2, stage: 4", BATCH + MEGATRON, stages="microbatches: 2, schedule: zb-h1", **zero(3)),
    "gpt2, made again in stages": case(GPT2, "stage: 2", stages="microbatches: 4", recompute="blocks"),
    "llama, stages": case(LLAMA, "data: 2, stage: 2", [("{input_ids,attention_mask,labels}", "[data, _]")], stages="microbatches: 2, schedule: auto"),
    "resnet, stages": case(RESNET, "stage: 3", stages="microbatches: 2, schedule: 1f1b"),
    "llama": case(LLAMA), "llama, context parallel": case(LLAMA, "seq: 4", [("{input_ids,attention_mask,labels}", "[_, seq]")]),
    **{f"llama, context parallel in a ring of {ranks}": case(LLAMA, f"seq: {ranks}", [("{input_ids,attention_mask,labels}", "[_, seq]"), KEYS], attention="ring") for ranks in (2, 4)},
    "gpt2, data and context parallel in a ring": case(GPT2, "data: 2, seq: 2", [("{input_ids,attention_mask,labels}", "[data, seq]"), HEADS], attention="ring"),
    "llama, data parallel": case(LLAMA, "data: 4", [("{input_ids,attention_mask,labels}", "[data, _]")]),
    "experts": case(MOE), "experts, expert parallel": case(MOE, "expert: 4", [("\"moe.w{1,2}\"", "[expert, _, _]")]),
    "resnet": case(RESNET), "resnet, data parallel": case(RESNET, "data: 2", IMAGES), "resnet in f64, data parallel": case(RESNET_F64, "data: 2", IMAGES),
    "resnet in f64, by the host's time": case(RESNET_F64, "data: 2", IMAGES, decided=()),
    "resnet in f64, stages": case(RESNET_F64, "stage: 3", stages="microbatches: 2, schedule: 1f1b"),
}


def key(of):
    """What the losses on one device are of."""
    return of["model"], of.get("double", False)


def save_plan(path, of, output, kind):
    lines = [f"mesh: {{{of['mesh']}}}", *(["dims: {" + ", ".join(f"{name}: {size}" for name, size in of["dims"].items()) + "}"] if of["dims"] else [])]
    lines += ["uneven: true"] * of["uneven"] + [f"pipeline: {{axis: stage, {of['stages']}}}"] * bool(of["stages"]) + [f"attention: {of['attention']}"] * bool(of["attention"]) + ["shard:"] * bool(of["rules"])
    lines += [f"  - {{{name if name.startswith('node') else 'tensor: ' + (name if name.startswith(chr(34)) else chr(34) + name + chr(34))}, dims: {dims}}}" for name, dims in of["rules"]]
    train = {"loss": f"{{kind: {kind}, of: \"{output}\"}}", "optimizer": "{kind: adamw, epsilon: 1e-4}", "rate": "1e-3", **of["train"]}
    with open(path, "w") as file:
        file.write("\n".join(lines + ["train:", *(f"  {key}: {value}" for key, value in train.items())]) + "\n")


def widen(model):
    """The model with every f32 as f64."""
    def widen_type(value):
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        widen_type(value)
    return model


class Losses:
    def __init__(self, build, folder):
        self.build, self.folder, self.alone, self.limits, self.lock = build, folder, {}, {}, threading.Lock()

    def at(self, name):
        return os.path.join(self.folder, name)

    def draw(self, of, path, model):
        """The inputs of one batch, as `run` draws them, with labels: they are in range, and equal for all cases of a model."""
        data = self.at(of["model"] + ".npz")
        if not os.path.exists(data):
            plan = self.at(of["model"] + ".yaml")
            save_plan(plan, case(of), model.graph.output[0].name, "mse")
            done = harness.cleave(self.build, "run", path, "--train", "--plan", plan, "--save-inputs", data, "--quiet")
            if done.returncode:
                raise RuntimeError(done.stderr[-400:])
            inputs = dict(np.load(data))
            weights = {value.name for value in model.graph.initializer}
            np.savez(data, **{name: value for name, value in inputs.items() if (name == "labels" or name in {i.name for i in model.graph.input}) and name not in weights})
        return data

    def train(self, name, of, moved=0):
        """The losses of a case, and the model, its inputs and its path in f32. `moved` is a seed: half of the elements go up by an ulp."""
        path = os.path.join(MODELS, of["model"] + ".onnx")
        model = onnx.load(path)
        data = self.draw(of, path, model)
        inputs = dict(np.load(data))
        name = name.replace(" ", "_")
        plan, log = self.at(name + ".yaml"), self.at(name + ".jsonl")
        trained, given = path, data
        if of.get("double"):
            trained, given = self.at(name + ".onnx"), self.at(name + ".npz")
            onnx.save(widen(onnx.load(path)), trained)
            np.savez(given, **{key: value.astype(np.float64) if value.dtype == np.float32 else value for key, value in inputs.items()})
        if moved:
            given, drawn = self.at(f"{name}.{moved}.npz"), np.random.default_rng(moved)
            np.savez(given, **{key: np.where(drawn.random(value.shape) < 0.5, np.nextafter(value, np.float32(np.inf)), value) for key, value in inputs.items()})
        save_plan(plan, of, model.graph.output[0].name, "mse")
        done = harness.cleave(self.build, "train", trained, "--plan", plan, *of["decided"], "--data", given, "--steps", str(STEPS), "--order", "given", "--log", log, "--quiet")
        if done.returncode:
            raise RuntimeError(f"exit {done.returncode}: {done.stderr[-400:]}")
        with open(log) as file:
            return np.array([json.loads(line)["loss"] for line in file]), model, inputs, path

    def check_alone(self, of):
        """What is wrong on one device; how far meshes may be off in each step is known then."""
        one = {**of, **case({})}
        losses, model, data, path = self.train(of["model"] + " alone", one)
        self.alone[key(of)] = losses
        self.limits[key(of)] = np.full(STEPS, DOUBLE if of.get("double") else RTOL)
        if of.get("double") and all(float(f"{loss:.9g}") == loss for loss in losses):
            return "the log rounds f64 to nine digits"
        if of.get("kinks"):
            moved = [self.train(of["model"] + " moved", one, seed)[0] for seed in range(1, MOVED + 1)]
            # Twice: a mesh may be off one way, and what moves the inputs the other.
            self.limits[key(of)] = np.maximum(RTOL, 2 * np.max(np.abs(np.array(moved) / losses - 1), axis=0))
            firm = int(np.sum(self.limits[key(of)] <= 4 * RTOL))
            if firm < FIRM:
                return f"an ulp of the inputs changes all but {firm} losses of {STEPS}: nothing is compared"
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        got = session.run([model.graph.output[0].name], {value.name: data[value.name] for value in session.get_inputs()})[0]
        want = float(np.mean((got.astype(np.float64) - data["labels"])**2))
        if abs(losses[0] - want) > PEER * want:
            return f"the first loss is {losses[0]}, by onnxruntime {want}"
        return "" if losses[-1] < losses[0] else f"the loss goes from {losses[0]} to {losses[-1]}"

    def problem(self, name):
        of = CASES[name]
        with self.lock:
            if key(of) not in self.alone:
                wrong = self.check_alone(of)
                if wrong:
                    return wrong
        alone, losses = self.alone[key(of)], self.train(name, of)[0]
        if len(losses) != STEPS:
            return f"{len(losses)} losses of {STEPS} steps"
        off = np.abs(losses / alone - 1)
        limits = np.maximum(self.limits[key(of)], UNEVEN if of["uneven"] else 0)
        worst = int(np.argmax(off / limits))
        return "" if off[worst] <= limits[worst] else f"off by {off[worst]:.2g} in step {worst}: {losses[worst]}, one device {alone[worst]}"


def main():
    build, names, _ = harness.arguments()
    cases = harness.select({name: name for name in CASES}, names)
    with tempfile.TemporaryDirectory() as folder:
        return harness.run(cases, Losses(build, folder).problem)


if __name__ == "__main__":
    sys.exit(main())
