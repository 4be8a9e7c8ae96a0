"""Gradients of whole models (`--train --check`): ranks against one device, and one device against slopes that onnxruntime gives.

    models.py BUILD_DIR [CASE...]

The loss is the mean square of a model's first output against random numbers. `cleave run --train --check` compares loss, gradients and next
weights of the ranks of a plan, element by element, with those of one device. Of all weights together, and of two alone that are drawn, the
slope of the loss along a random direction follows from the gradients; onnxruntime gives it as a central difference, by models with other
weights. onnxruntime computes in f32, so that slopes are equal to a few parts in a thousand.
"""
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
sys.path.insert(1, os.path.join(harness.ROOT, "test", "Models", "Parallel"))
from cases import CASES as PARALLEL

MODELS = os.path.join(harness.ROOT, "test", "Models")
PLANS = os.path.join(harness.ROOT, "examples", "parallel")
# By case: the model, and how it is sharded: a plan of examples/parallel, which names the model, or sizes of dims and rules.
CASES = {
    **{f"plan {name}": name for name in ("bert-data", "bert-megatron", "bert-fsdp", "gpt2-data", "gpt2-megatron-sequence", "gpt2-fsdp", "llama-megatron", "llama-context", "moe-expert",
                                         "t5-megatron", "resnet-data", "resnet-spatial", "unet-data", "unet-spatial", "vit-megatron", "vit-data", "swin-data", "swin-megatron")},
    "bert of the dynamo exporter": ("bert_dyn18", {}), "bert of onnxruntime's ops": ("bert_ort", {"batch": 2, "seq": 16}), "gpt2 of TorchScript": ("gpt2_ts17", {"batch": 2, "seq": 8}),
    **{f"{name}, {policy} again": (model, dims, policy) for name, model, dims in (("gpt2", "gpt2_dyn18", {"batch": 2, "seq": 8}), ("bert", "bert_ts17", {"batch": 2, "seq": 8}))
       for policy in ("cheap", "blocks")},
    "t5, blocks again": ("t5_like_dyn18", {}, "blocks"), "a convolution net, blocks again": ("resnet_ts17", {"batch": 2}, "blocks"),
    "llama with attention as one op": ("llama_gqa_dyn23", {"batch": 2, "seq": 8}),
}
# A network of kinks has its slope in small steps alone, others have less noise in large ones: one of them must meet.
STEPS, SLOPES = (2e-3, 5e-4, 1e-4, 2e-5), 2e-2


def with_weights(model, weights):
    """The model's bytes with these in place of its own."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for initializer in changed.graph.initializer:
        if initializer.name in weights:
            initializer.CopyFrom(numpy_helper.from_array(weights[initializer.name], initializer.name))
    return changed.SerializeToString()


def find_loss(data, feeds, output, labels):
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return float(np.mean((session.run([output], feeds)[0].astype(np.float64) - labels)**2))


def check_slope(model, weights, gradients, names, feeds, output, labels, seed):
    """What is wrong with the slope along a random direction of these weights; its length is that of the weights."""
    random = np.random.default_rng(seed)
    directions = {name: random.standard_normal(weights[name].shape) * np.sqrt(np.mean(weights[name].astype(np.float64)**2)) for name in names}
    want = 0.0
    for name in names:
        want += float(np.sum(gradients[name].astype(np.float64) * directions[name]))
    got = []
    for step in STEPS:
        ends = [find_loss(with_weights(model, {name: (weights[name] + sign * step * directions[name]).astype(weights[name].dtype) for name in names}), feeds, output, labels)
                for sign in (1, -1)]
        got.append((ends[0] - ends[1]) / (2 * step))
    # What the direction could give at most says how small a slope may be by chance.
    scale = np.sqrt(sum(float(np.sum((gradients[name].astype(np.float64) * directions[name])**2)) for name in names))
    allowed = SLOPES * max(abs(want), scale) + 1e-5
    return "" if min(abs(slope - want) for slope in got) <= allowed else f"{names[0]}{' and others' * (len(names) > 1)}: slopes are {got}, by gradients {want:.6g}"


def problem(build, case, folder, number):
    plan = CASES[case]
    if isinstance(plan, str):
        path, dims, again = os.path.join(harness.ROOT, "test", "Models", PARALLEL[plan].model + ".onnx"), {}, ""
        words = ["--plan", os.path.join(PLANS, plan + ".yaml")]
    else:
        path, dims, again = os.path.join(MODELS, plan[0] + ".onnx"), plan[1], (*plan, "")[2]
        words = ["--mesh", "one=1", *(["--dim", ",".join(f"{name}={size}" for name, size in dims.items())] if dims else [])]
    drawn, outputs = (os.path.join(folder, f"{number}.{suffix}") for suffix in ("in.npz", "out.npz"))
    model = onnx.load(path)
    output = model.graph.output[0].name
    train = f"{{loss: {{kind: mse, of: \"{output}\"}}, optimizer: sgd{', recompute: ' * bool(again) + again}}}"
    done = harness.cleave(build, "run", path, f"--train={train}", *words, "--save-inputs", drawn, "--outputs", outputs, "--check", "--quiet")
    if done.returncode:
        return f"exit {done.returncode}: {(done.stdout + done.stderr)[-700:]}"
    inputs = dict(np.load(drawn))
    labels, feeds = inputs["labels"], {value.name: inputs[value.name] for value in model.graph.input if value.name in inputs}
    got = {key.removeprefix("out:"): value for key, value in np.load(outputs).items()}
    weights = {initializer.name: numpy_helper.to_array(initializer) for initializer in model.graph.initializer}
    parts = {key[5:-1]: value for key, value in got.items() if key.startswith("grad(")}
    gradients = {}
    for part, value in parts.items():
        # A weight that is read in parts is put together again.
        whole, _, starts = part.partition("[")
        if starts:
            gradients.setdefault(whole, np.zeros(weights[whole].shape, np.float32))
            box = tuple(slice(int(start), int(start) + size) for start, size in zip(starts[:-1].split(","), value.shape))
            gradients[whole][box] = value
        else:
            gradients[part] = value
    names = sorted(name for name in gradients if name in weights)
    if len(names) < 5:
        return f"only {len(names)} weights are trained"
    drawn = np.random.default_rng(number).choice(len(names), 2, replace=False)
    for seed, chosen in enumerate([names, *([names[i]] for i in drawn)]):
        wrong = check_slope(model, weights, gradients, chosen, feeds, output, labels, seed)
        if wrong:
            return wrong
    return ""


def main():
    build, names, _ = harness.arguments()
    cases = harness.select({name: name for name in CASES}, names)
    with tempfile.TemporaryDirectory() as folder:
        numbers = {name: number for number, name in enumerate(CASES)}
        return harness.run(cases, lambda case: problem(build, case, folder, numbers[case]))


if __name__ == "__main__":
    sys.exit(main())
