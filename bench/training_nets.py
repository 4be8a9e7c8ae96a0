"""The three networks whose training is timed: ONNX files, a batch of each, and what is minimized.

    sentences   the demo's sentence encoder, 8 x 64 tokens, the mean square of its vectors against numbers
    gpt         4 layers of width 256, 4 heads, 8 x 128 tokens of 4,096, whose table is the last product's too, cross entropy
    resnet      18 layers of 64 to 512 channels for images of 32 x 32, norms folded into convolutions, 8 images of 10 classes

A batch is an .npz beside the model: its inputs by their names, and `labels`. Weights are as training begins: random, but for the encoder's.
"""
import os
import sys
from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, HERE)
sys.path.insert(1, os.path.join(HERE, os.pardir, "examples"))
from make_gpt import Gpt, GraphWriter, fill  # noqa: E402

SEED = 1
ADAMW = "{kind: adamw, epsilon: 1e-6, decay: 0}"  # as onnxruntime-training has it, which all peers take


@dataclass
class Net:
    name: str
    model: str
    batch: str  # of arrays, as .npz
    output: str
    loss: str  # as plans call it
    dims: str = ""  # of `--dim`, where the model leaves some open

    def get_train(self, zero=0, optimizer=ADAMW):
        """The section `train` of a plan, with ZeRO of that stage over `data`."""
        shared = f"zero: {{axis: data, stage: {zero}}}, " if zero else ""
        return f"{{loss: {{kind: {self.loss}, of: \"{self.output}\"}}, {shared}optimizer: {optimizer}, rate: 1e-4}}"


def save(path, graph, opset=17):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, producer_name="training_nets")
    with open(path, "wb") as file:
        file.write(model.SerializeToString())


def widen(net, folder):
    """The net in f64: what its file holds of f32 is cast, and its batch, too."""
    model, stem = onnx.load(net.model), os.path.join(folder, net.name + "64")
    wide, narrow = TensorProto.DOUBLE, TensorProto.FLOAT
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == narrow:
            value.type.tensor_type.elem_type = wide
    cast = lambda tensor: tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)) if tensor.data_type == narrow else None
    for tensor in model.graph.initializer:
        cast(tensor)
    for attribute in (attribute for node in model.graph.node for attribute in node.attribute):
        if attribute.HasField("t"):
            cast(attribute.t)
        elif attribute.name == "to" and attribute.i == narrow:
            attribute.i = wide
    del model.graph.value_info[:]
    onnx.save(model, stem + ".onnx")
    batch = {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in np.load(net.batch).items()}
    np.savez(stem + ".npz", **batch)
    return replace(net, model=stem + ".onnx", batch=stem + ".npz")


def make_sentences(folder, batch=8, length=64):
    from minilm import EMBEDDING, HIDDEN, find_model
    random, at = np.random.default_rng(SEED), os.path.join(folder, "sentences.npz")
    np.savez(at, input_ids=random.integers(0, 1000, (batch, length)), attention_mask=np.ones((batch, length), np.int64),
             labels=random.standard_normal((batch, HIDDEN)).astype(np.float32))
    return Net("sentences", find_model(), at, EMBEDDING, "mse", f"batch_size={batch},sequence_length={length}")


def make_gpt(folder, batch=8, length=128, hidden=256, heads=4, layers=4, vocabulary=4096):
    """make_gpt.py's layers between an embedding and its transpose."""
    stem = os.path.join(folder, "gpt")
    graph = GraphWriter("gpt.bin")
    gpt, node = Gpt(graph, batch, length, hidden, heads, 0), graph.node
    x = node("/wte/Gather", "Gather", [graph.weight("wte.weight", [vocabulary, hidden]), "input_ids"])
    x = node("/wpe/Add", "Add", [x, graph.weight("wpe.weight", [length, hidden])])
    for number in range(layers):
        x = gpt.layer(number, x)
    x = node("/Reshape", "Reshape", [gpt.norm("/ln_f", x), "flat"])
    x = node("/lm_head/MatMul", "MatMul", [x, node("/lm_head/Transpose", "Transpose", ["wte.weight"], perm=[1, 0])])
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [batch, length])
    logits = helper.make_tensor_value_info(x, TensorProto.FLOAT, [batch * length, vocabulary])
    save(stem + ".onnx", helper.make_graph(graph.nodes, "gpt", [ids], [logits], graph.initializers))
    fill(stem + ".bin", graph, SEED)
    random = np.random.default_rng(SEED)
    np.savez(stem + ".npz", input_ids=random.integers(0, vocabulary, (batch, length)), labels=random.integers(0, vocabulary, batch * length))
    return Net("gpt", stem + ".onnx", stem + ".npz", x, "cross_entropy")


class ResNet:
    """Blocks of two convolutions of 3 x 3 with a way around them, as exporters write them whose norms are folded."""

    def __init__(self):
        self.random, self.nodes, self.weights = np.random.default_rng(SEED), [], []

    def node(self, op, inputs, **attributes):
        name = f"/{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name + "_output_0"], name, **attributes))
        return name + "_output_0"

    def weight(self, name, shape, scale):
        values = scale * self.random.standard_normal(shape)
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def conv(self, name, x, channels, out, size=3, stride=1):
        weight = self.weight(f"{name}.weight", (out, channels, size, size), (channels * size * size)**-0.5)
        bias = self.weight(f"{name}.bias", (out,), 0.01)
        return self.node("Conv", [x, weight, bias], kernel_shape=[size] * 2, strides=[stride] * 2, pads=[size // 2] * 4)

    def block(self, name, x, channels, out, stride):
        y = self.node("Relu", [self.conv(f"{name}.conv1", x, channels, out, stride=stride)])
        y = self.conv(f"{name}.conv2", y, out, out)
        around = x if channels == out and stride == 1 else self.conv(f"{name}.downsample", x, channels, out, 1, stride)
        return self.node("Relu", [self.node("Add", [y, around])])


def make_resnet(folder, batch=8, size=32, widths=(64, 128, 256, 512), classes=10):
    net, stem = ResNet(), os.path.join(folder, "resnet")
    x = net.node("Relu", [net.conv("conv1", "image", 3, widths[0])])
    x = net.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = widths[0]
    for stage, width in enumerate(widths):
        for number in range(2):
            x = net.block(f"layer{stage + 1}.{number}", x, channels, width, 2 if stage and not number else 1)
            channels = width
    x = net.node("Flatten", [net.node("GlobalAveragePool", [x])])
    x = net.node("Gemm", [x, net.weight("fc.weight", (classes, channels), channels**-0.5), net.weight("fc.bias", (classes,), 0.01)], transB=1)
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 3, size, size])
    logits = helper.make_tensor_value_info(x, TensorProto.FLOAT, [batch, classes])
    save(stem + ".onnx", helper.make_graph(net.nodes, "resnet", [image], [logits], net.weights))
    random = np.random.default_rng(SEED)
    np.savez(stem + ".npz", image=random.standard_normal((batch, 3, size, size)).astype(np.float32), labels=random.integers(0, classes, batch))
    return Net("resnet", stem + ".onnx", stem + ".npz", x, "cross_entropy")


NETS = {"sentences": make_sentences, "gpt": make_gpt, "resnet": make_resnet}
