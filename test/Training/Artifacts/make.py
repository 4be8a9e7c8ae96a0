"""Folders of artifacts, as onnxruntime-training makes and trains them: the fixtures of onnx_forms.py.

    make.py

Run by a Python that has onnxruntime-training-cpu 1.19.2, onnx 1.16 and numpy 1 (bench/training_peer.py says what else it wants). Each folder
holds what generate_artifacts writes, and `steps.npz`: samples in the order of ten steps, the loss of each, and trained weights behind the last;
`mlp` also the checkpoint that was saved then, with the optimizer's states.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "bench"))
import training_peer  # noqa: F401, the stand-in of torch
import numpy as np
from onnx import helper, numpy_helper
from onnxruntime.training import artifacts, onnxblock
from onnxruntime.training.api import CheckpointState, Module, Optimizer

STEPS, BATCH = 10, 4
random = np.random.default_rng(7)
node = helper.make_node
FLOAT, INT64 = 1, 7


def weight(name, *shape, scale=None):
    value = random.standard_normal(shape) * (scale or 1 / np.sqrt(shape[0]))
    return numpy_helper.from_array(value.astype(np.float32), name)


def model(nodes, inputs, outputs, weights):
    value = lambda name, shape: helper.make_tensor_value_info(name, FLOAT, ["batch", *shape])
    graph = helper.make_graph(nodes, "net", [value(*each) for each in inputs], [value(*each) for each in outputs], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def mlp():
    return model([node("MatMul", ["x", "fc1.weight"], ["h0"], "fc1"), node("Add", ["h0", "fc1.bias"], ["h1"], "fc1/bias"), node("Relu", ["h1"], ["h2"], "act"),
                  node("MatMul", ["h2", "fc2.weight"], ["logits"], "fc2")],
                 [("x", [6])], [("logits", [5])], [weight("fc1.weight", 6, 8), weight("fc1.bias", 8), weight("fc2.weight", 8, 5)])


def cnn():
    return model([node("Conv", ["image", "conv.weight", "conv.bias"], ["c"], "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]), node("Relu", ["c"], ["r"], "act"),
                  node("MaxPool", ["r"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]), node("Flatten", ["p"], ["f"], "flat", axis=1), node("Gemm", ["f", "head.weight", "head.bias"], ["y"], "head", transB=1)],
                 [("image", [2, 8, 8])], [("y", [3])], [weight("conv.weight", 4, 2, 3, 3, scale=.3), weight("conv.bias", 4), weight("head.weight", 3, 16, scale=.25), weight("head.bias", 3)])


def attention():
    split = lambda name: [node("MatMul", ["n", name + ".weight"], [name + "0"], name), node("Reshape", [name + "0", "heads"], [name + "1"], name + "/split"),
                          node("Transpose", [name + "1"], [name], name + "/turn", perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])]
    constants = [numpy_helper.from_array(np.array(value, dtype), name) for name, value, dtype in
                 (("heads", [0, 0, 2, 4], np.int64), ("whole", [0, 0, 8], np.int64), ("scale", 0.5, np.float32))]
    nodes = [node("LayerNormalization", ["x", "norm.weight", "norm.bias"], ["n", "mean", "inverse"], "norm", axis=-1, epsilon=1e-5), *split("q"), *split("k"), *split("v"),
             node("MatMul", ["q", "k"], ["s0"], "scores"), node("Mul", ["s0", "scale"], ["s"], "scale"), node("Softmax", ["s"], ["a"], "softmax", axis=-1),
             node("MatMul", ["a", "v"], ["o0"], "values"), node("Transpose", ["o0"], ["o1"], "turn", perm=[0, 2, 1, 3]), node("Reshape", ["o1", "whole"], ["o2"], "join"),
             node("MatMul", ["o2", "out.weight"], ["o3"], "out"), node("Add", ["x", "o3"], ["y"], "residual")]
    ones = numpy_helper.from_array((1 + .1 * random.standard_normal(8)).astype(np.float32), "norm.weight")
    return model(nodes, [("x", [5, 8])], [("y", [5, 8])], [ones, weight("norm.bias", 8, scale=.1), *(weight(f"{name}.weight", 8, 8) for name in ("q", "k", "v", "out")), *constants])


def samples(*shape):
    return random.standard_normal((STEPS * BATCH, *shape)).astype(np.float32)


CASES = {  # model, trained, loss, optimizer, learning rate, samples of inputs, of labels
    "mlp": (mlp, ["fc1.weight", "fc2.weight"], artifacts.LossType.CrossEntropyLoss, onnxblock.optim.AdamW(weight_decay=0.05), 0.02,
            lambda: samples(6), lambda: random.integers(0, 5, STEPS * BATCH)),
    "cnn": (cnn, ["conv.weight", "conv.bias", "head.weight", "head.bias"], artifacts.LossType.MSELoss, onnxblock.optim.SGD(clip_grad=onnxblock.optim.ClipGradNorm(0.5)), 0.1,
            lambda: samples(2, 8, 8), lambda: samples(3)),
    "attention": (attention, ["norm.weight", "norm.bias", "q.weight", "k.weight", "v.weight", "out.weight"], artifacts.LossType.MSELoss,
                  onnxblock.optim.AdamW(betas=(0.8, 0.95), eps=1e-5, bias_correction=False), None, lambda: samples(5, 8), lambda: samples(5, 8)),
}


def make(name, build, trained, loss, optimizer, rate, draw, label):
    folder = os.path.join(HERE, name)
    os.makedirs(folder, exist_ok=True)
    net = build()
    frozen = [each.name for each in net.graph.initializer if each.name not in trained and each.data_type == FLOAT and each.dims]
    artifacts.generate_artifacts(net, requires_grad=trained, frozen_params=frozen, loss=loss, optimizer=optimizer, artifact_directory=folder)
    at = lambda file: os.path.join(folder, file)
    state = CheckpointState.load_checkpoint(at("checkpoint"))
    module = Module(at("training_model.onnx"), state, at("eval_model.onnx"), device="cpu")
    steps = Optimizer(at("optimizer_model.onnx"), module)
    if rate:
        steps.set_learning_rate(rate)
    x, labels = draw(), label()
    module.train()
    losses = []
    for step in range(STEPS):
        batch = slice(step * BATCH, (step + 1) * BATCH)
        got = module(x[batch], labels[batch])
        losses.append(float(np.ravel(got[0] if isinstance(got, (tuple, list)) else got)[0]))
        steps.step()
        module.lazy_reset_grad()
    if name == "mlp":
        CheckpointState.save_checkpoint(state, at("trained_checkpoint"), include_optimizer_state=True)
    tuned = {"w:" + each: state.parameters[each].data for each in trained}
    import onnx
    names = [each.name for each in onnx.load(at("eval_model.onnx")).graph.input][:2]
    np.savez_compressed(at("steps.npz"), losses=np.array(losses), rate=np.float64(rate or 1e-3), **{names[0]: x, names[1]: labels}, **tuned)
    print(name, names, losses[:2], losses[-1])


if __name__ == "__main__":
    for name, case in CASES.items():
        make(name, *case)
