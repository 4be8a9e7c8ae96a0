"""Losses of twenty steps of whole models on meshes, against those of one device.

    losses.py BUILD_DIR [CASE...]

`cleave train` runs each case as a program; its log has the losses. On one device the first one is onnxruntime's, of the same inputs, and the
last one is smaller. On meshes all of them are those of one device, but for what rounding in another order may change.
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

GPT2 = dict(model="gpt2_ts17", dims={"batch": 4, "seq": 16})
LLAMA = dict(model="llama_gqa_dyn18", dims={"batch": 4, "seq": 16})
MOE = dict(model="moe_dyn18", dims={})
RESNET = dict(model="resnet_ts17", dims={"batch": 4})
BATCH = [("{input_ids,attention_mask,labels}", "[data, _]")]
MEGATRON = [("node: \"*/wte/Gather\", operand: 0", "[model, _]"), ("node: \"*/h.*/{attn/c_attn,mlp/c_fc}/Gemm\", operand: 1", "[_, model]"),
            ("node: \"*/h.*/{attn/c_attn,mlp/c_fc}/Gemm\", operand: 2", "[model]"), ("node: \"*/h.*/{attn,mlp}/c_proj/Gemm\", operand: 1", "[model, _]"),
            ("node: \"*/lm_head/MatMul\", operand: 1", "[_, model]")]
SEQUENCE = [("node: \"*/{ln_1,ln_2,ln_f}/LayerNormalization\", operand: 0", "[_, model, _]")]


def zero(stage, axis="data"):
    return {"zero": f"{{axis: {axis}, stage: {stage}}}"}


def case(of, mesh="one: 1", rules=(), uneven=False, stages="", **train):
    return dict(of, mesh=mesh, rules=rules, uneven=uneven, stages=stages, train=train)


CASES = {
    "gpt2": case(GPT2), "gpt2 in microbatches": case(GPT2, microbatches=2),
    "gpt2, data parallel": case(GPT2, "data: 2", BATCH), **{f"gpt2, ZeRO-{stage}": case(GPT2, "data: 2", BATCH, **zero(stage)) for stage in (1, 2, 3)},
    "gpt2, ZeRO-2 in microbatches": case(GPT2, "data: 2", BATCH, microbatches=2, **zero(2)),
    "gpt2, hybrid sharding": case(GPT2, "replica: 2, shard: 2", [(BATCH[0][0], "[[replica, shard], _]")], **zero(3, "shard")),
    "gpt2, tensor parallel": case(GPT2, "model: 2", MEGATRON), "gpt2, tensor and sequence parallel": case(GPT2, "model: 4", MEGATRON + SEQUENCE),
    "gpt2, data and tensor parallel, ZeRO-1": case(GPT2, "data: 2, model: 2", BATCH + MEGATRON, **zero(1)),
    "gpt2, three ranks share four samples": case(GPT2, "data: 3", BATCH, uneven=True),
    "gpt2, two stages": case(GPT2, "stage: 2", stages="microbatches: 4"), "gpt2, two ways": case(GPT2, "stage: 2", stages="microbatches: 4, schedule: dualpipe"),
    "gpt2, four stages on two ranks, ZeRO-1": case(GPT2, "data: 2, stage: 2", BATCH, stages="microbatches: 2, chunks: 2", **zero(1)),
    "gpt2, data, tensor parallel and stages, ZeRO-3": case(GPT2, "data: 2, model: 2, stage: 4", BATCH + MEGATRON, stages="microbatches: 2, schedule: zb-h1", **zero(3)),
    "gpt2, made again in stages": case(GPT2, "stage: 2", stages="microbatches: 4", recompute="blocks"),
    "llama, stages": case(LLAMA, "data: 2, stage: 2", [("{input_ids,attention_mask,labels}", "[data, _]")], stages="microbatches: 2, schedule: auto"),
    "resnet, stages": case(RESNET, "stage: 3", stages="microbatches: 2, schedule: 1f1b"),
    "llama": case(LLAMA), "llama, context parallel": case(LLAMA, "seq: 4", [("{input_ids,attention_mask,labels}", "[_, seq]")]),
    "llama, data parallel": case(LLAMA, "data: 4", [("{input_ids,attention_mask,labels}", "[data, _]")]),
    "experts": case(MOE), "experts, expert parallel": case(MOE, "expert: 4", [("\"moe.w{1,2}\"", "[expert, _, _]")]),
    "resnet": case(RESNET), "resnet, data parallel": case(RESNET, "data: 2", [("image", "[data, _, _, _]"), ("labels", "[data, _]")]),
}


def save_plan(path, of, output, kind):
    lines = [f"mesh: {{{of['mesh']}}}", *(["dims: {" + ", ".join(f"{name}: {size}" for name, size in of["dims"].items()) + "}"] if of["dims"] else [])]
    lines += ["uneven: true"] * of["uneven"] + [f"pipeline: {{axis: stage, {of['stages']}}}"] * bool(of["stages"]) + ["shard:"] * bool(of["rules"])
    lines += [f"  - {{{name if name.startswith('node') else 'tensor: ' + (name if name.startswith(chr(34)) else chr(34) + name + chr(34))}, dims: {dims}}}" for name, dims in of["rules"]]
    train = {"loss": f"{{kind: {kind}, of: \"{output}\"}}", "optimizer": "{kind: adamw, epsilon: 1e-4}", "rate": "1e-3", **of["train"]}
    with open(path, "w") as file:
        file.write("\n".join(lines + ["train:", *(f"  {key}: {value}" for key, value in train.items())]) + "\n")


class Losses:
    def __init__(self, build, folder):
        self.build, self.folder, self.alone, self.lock = build, folder, {}, threading.Lock()

    def draw(self, of, path, model):
        """The inputs of one batch, as `run` draws them, and labels beside: they are in range, and equal for all cases of a model."""
        data = os.path.join(self.folder, of["model"] + ".npz")
        if not os.path.exists(data):
            plan = os.path.join(self.folder, of["model"] + ".yaml")
            save_plan(plan, case(of), model.graph.output[0].name, "mse")
            done = harness.cleave(self.build, "run", path, "--train", "--plan", plan, "--save-inputs", data, "--quiet")
            if done.returncode:
                raise RuntimeError(done.stderr[-400:])
            inputs = dict(np.load(data))
            weights = {value.name for value in model.graph.initializer}
            np.savez(data, **{name: value for name, value in inputs.items() if (name == "labels" or name in {i.name for i in model.graph.input}) and name not in weights})
        return data

    def train(self, name, of):
        path = os.path.join(MODELS, of["model"] + ".onnx")
        model = onnx.load(path)
        data = self.draw(of, path, model)
        plan, log = (os.path.join(self.folder, name.replace(" ", "_") + suffix) for suffix in (".yaml", ".jsonl"))
        save_plan(plan, of, model.graph.output[0].name, "mse")
        # A form is what its name says: by time, which decides steps for this machine, ranks that share the batch would share states, too.
        # Those decisions are held to the bits of one device, where no sum is rounded (bits.py).
        done = harness.cleave(self.build, "train", path, "--plan", plan, "--optimize=balanced", "--data", data, "--steps", str(STEPS), "--order", "given", "--log", log, "--quiet")
        if done.returncode:
            raise RuntimeError(f"exit {done.returncode}: {done.stderr[-400:]}")
        with open(log) as file:
            return np.array([json.loads(line)["loss"] for line in file]), model, dict(np.load(data)), path

    def check_alone(self, of):
        """What is wrong on one device."""
        losses, model, data, path = self.train(of["model"] + " alone", {**of, **case({})})
        self.alone[of["model"]] = losses
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        got = session.run([model.graph.output[0].name], {value.name: data[value.name] for value in session.get_inputs()})[0]
        want = float(np.mean((got.astype(np.float64) - data["labels"])**2))
        if abs(losses[0] - want) > PEER * want:
            return f"the first loss is {losses[0]}, by onnxruntime {want}"
        return "" if losses[-1] < losses[0] else f"the loss goes from {losses[0]} to {losses[-1]}"

    def problem(self, name):
        of = CASES[name]
        with self.lock:
            if of["model"] not in self.alone:
                wrong = self.check_alone(of)
                if wrong:
                    return wrong
        alone, losses = self.alone[of["model"]], self.train(name, of)[0]
        if len(losses) != STEPS:
            return f"{len(losses)} losses of {STEPS} steps"
        off = np.abs(losses / alone - 1)
        return "" if off.max() <= (UNEVEN if of["uneven"] else RTOL) else f"off by {off.max():.2g} in step {int(off.argmax())}: {losses[off.argmax()]}, one device {alone[off.argmax()]}"


def main():
    build, names, _ = harness.arguments()
    cases = harness.select({name: name for name in CASES}, names)
    with tempfile.TemporaryDirectory() as folder:
        return harness.run(cases, Losses(build, folder).problem)


if __name__ == "__main__":
    sys.exit(main())
