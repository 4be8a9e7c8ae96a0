"""Twenty steps of AdamW of two small networks beside those of jax: on one device, and in stages next to data and tensor parallelism.

    jax.py BUILD_DIR [CASE...]

The networks are those of bench/training_nets.py: a GPT whose table of words is the last product's too, and a ResNet. What jax gave, in f64, is in
jax_losses.json, which bench/training_losses.py writes; jax itself is not needed. On one device every loss is jax's within the rounding of f32; on a
mesh it is that of one device within what another order of sums may change.
"""
import json
import os
import sys
import tempfile
import threading
from dataclasses import replace

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = sys.path[0]
sys.path[1:1] = [os.path.dirname(HERE), os.path.join(HERE, os.pardir, os.pardir, "bench")]
import harness  # noqa: E402
from training_losses import FIXTURE, SMALL, STEPS  # noqa: E402
from training_nets import NETS  # noqa: E402

# Relative: of one device beside jax, of a mesh beside one device.
JAX, RTOL = 1e-5, 5e-7
DATA = ["{tensor: \"{input_ids,labels}\", dims: [data, _]}"]
PICTURES = ["{tensor: image, dims: [data, _, _, _]}", "{tensor: labels, dims: [data]}"]
MEGATRON = ['{node: "/h.*/{attn/c_attn,mlp/c_fc}/Gemm", operand: 1, dims: [_, model]}', '{node: "/h.*/{attn/c_attn,mlp/c_fc}/Gemm", operand: 2, dims: [model]}',
            '{node: "/h.*/{attn,mlp}/c_proj/Gemm", operand: 1, dims: [model, _]}']
# Name: network, mesh, rules, pipeline, more of `train`.
CASES = {
    "gpt": ("gpt", "one: 1", [], "", ""), "resnet": ("resnet", "one: 1", [], "", ""),
    "gpt, two stages": ("gpt", "stage: 2", [], "microbatches: 4, schedule: 1f1b", ""),
    "gpt, four stages": ("gpt", "stage: 4", [], "microbatches: 8, schedule: zb-h1", ""),
    "gpt, down and back, the table on one rank": ("gpt", "stage: 2", [], "microbatches: 4, chunks: 2, schedule: zb-v, together: [\"wte*\"]", ""),
    "gpt, data and stages, ZeRO-1": ("gpt", "data: 2, stage: 2", DATA, "microbatches: 4, chunks: 2, schedule: interleaved", "zero: {axis: data, stage: 1}"),
    "gpt, data, tensor parallel and stages": ("gpt", "data: 2, model: 2, stage: 4", DATA + MEGATRON, "microbatches: 4, schedule: zb-h1", ""),
    "resnet, three stages": ("resnet", "stage: 3", [], "microbatches: 4, schedule: 1f1b", ""),
    "resnet, data and two ways": ("resnet", "data: 2, stage: 2", PICTURES, "microbatches: 4, schedule: dualpipe", ""),
}


def by_samples(net):
    """The same GPT with logits and labels of [samples, positions], as data of `cleave train` has a row for each sample."""
    model, batch = onnx.load(net.model, load_external_data=False), dict(np.load(net.batch))
    shape = batch["input_ids"].shape
    classes = model.graph.output[0].type.tensor_type.shape.dim[1].dim_value
    model.graph.initializer.append(numpy_helper.from_array(np.array([*shape, classes]), "by_samples"))
    model.graph.node.append(helper.make_node("Reshape", [net.output, "by_samples"], ["logits"], "/by_samples"))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, [*shape, classes]))
    onnx.save(model, net.model)
    np.savez(net.batch, **{**batch, "labels": batch["labels"].reshape(shape)})
    return replace(net, output="logits", loss="cross_entropy, classes: 2")


def save_plan(path, net, mesh, rules, stages, more):
    lines = [f"mesh: {{{mesh}}}", *(["shard:", *(f"  - {rule}" for rule in rules)] if rules else [])]
    lines += [f"pipeline: {{axis: stage, {stages}}}"] * bool(stages) + [f"train: {net.get_train()[:-1]}{', ' + more if more else ''}}}"]
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


class Losses:
    def __init__(self, build, folder):
        self.build, self.folder, self.alone, self.locks = build, folder, {}, {name: threading.Lock() for name in SMALL}
        self.nets = {name: NETS[name](folder, **sizes) for name, sizes in SMALL.items()}
        self.nets["gpt"] = by_samples(self.nets["gpt"])
        with open(FIXTURE) as file:
            self.jax = {name: np.array(losses) for name, losses in json.load(file).items()}

    def train(self, case, of):
        net = self.nets[of[0]]
        plan, log = (os.path.join(self.folder, case.replace(" ", "_") + suffix) for suffix in (".yaml", ".jsonl"))
        save_plan(plan, net, *of[1:])
        done = harness.cleave(self.build, "train", net.model, "--plan", plan, "--data", net.batch, "--steps", str(STEPS), "--order", "given", "--log", log, "--quiet")
        if done.returncode:
            raise RuntimeError(f"exit {done.returncode}: {done.stderr[-400:]}")
        with open(log) as file:
            return np.array([json.loads(line)["loss"] for line in file])

    def compare(self, losses, want, most, whose):
        if len(losses) != STEPS:
            return f"{len(losses)} losses of {STEPS} steps"
        off = np.abs(losses / want - 1)
        return "" if off.max() <= most else f"off by {off.max():.2g} in step {int(off.argmax())}: {losses[off.argmax()]}, {whose} {want[off.argmax()]}"

    def problem(self, name):
        of = CASES[name]
        with self.locks[of[0]]:
            if of[0] not in self.alone:
                self.alone[of[0]] = self.train(of[0] + " alone", (of[0], "one: 1", [], "", ""))
        wrong = self.compare(self.alone[of[0]], self.jax[of[0]], JAX, "jax")
        if wrong or of[1] == "one: 1":
            return wrong
        return self.compare(self.train(name, of), self.alone[of[0]], RTOL, "one device")


def main():
    build, names, _ = harness.arguments()
    cases = harness.select({name: name for name in CASES}, names)
    with tempfile.TemporaryDirectory() as folder:
        return harness.run(cases, Losses(build, folder).problem)


if __name__ == "__main__":
    sys.exit(main())
