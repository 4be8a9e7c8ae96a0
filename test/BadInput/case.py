"""One case of bad input, and how to build the files that it needs."""
from dataclasses import dataclass, field

import numpy as np
from onnx import TensorProto, helper


@dataclass
class Case:
    name: str
    arguments: list
    files: dict = field(default_factory=dict)  # name -> bytes, or a function of the path
    words: list = field(default_factory=list)  # what the message must contain
    exit_code: int = 1
    stdin: str = ""
    seconds: int = 10  # that it may take
    is_about_limit: bool = False  # fails only for want of memory


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def tensor(name, array):
    kind = helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)
    return helper.make_tensor(name, kind, np.shape(array), np.ravel(array).tolist())


def model(nodes, inputs, outputs, initializers=(), opset=18, **kwargs):
    """Serialized model; nothing is checked."""
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(initializers))
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9, **kwargs)
    return proto.SerializeToString()


def relu(shape=(4, 8)):
    """A good model of one node, y = relu(x)."""
    return model([helper.make_node("Relu", ["x"], ["y"], name="/act")], [value("x", shape)], [value("y", shape)])


def mlp():
    """A good model of a dot and an activation: hidden [8, 16] times w [16, 32]."""
    nodes = [helper.make_node("MatMul", ["hidden", "w"], ["up"], name="/mlp/up"),
             helper.make_node("Relu", ["up"], ["out"], name="/mlp/act")]
    return model(nodes, [value("hidden", (8, 16)), value("w", (16, 32))], [value("out", (8, 32))])
