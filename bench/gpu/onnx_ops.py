"""Networks as ONNX models, weights as external data in a file beside the model."""
import math
import os

import numpy as np
import onnx
from onnx import TensorProto, helper

from networks import FLOAT, HALF, INDEX, get_rotary_tables, write_weights

TYPES = {HALF: TensorProto.FLOAT16, FLOAT: TensorProto.FLOAT, INDEX: TensorProto.INT64}
OPSET = 23
ALIGNMENT = 256


class OnnxOps:
    """Values are (name, shape, element type)."""

    def __init__(self):
        self.nodes, self.inputs, self.weights, self.constants, self.bytes, self.tables = [], {}, {}, [], 0, {}

    def node(self, op, inputs, shape, dtype=None, **attributes):
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [value[0] for value in inputs], [name], name, **attributes))
        return name, tuple(shape), dtype or inputs[0][2]

    def constant(self, array):
        name = f"constant_{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(array, name))
        return name, array.shape, FLOAT

    def input(self, name, shape, dtype=FLOAT, below=0):
        self.inputs[name] = {"shape": shape, "dtype": dtype, "below": below}
        return name, shape, dtype

    def weight(self, name, shape, scale, offset=0.0):
        self.weights[name] = {"shape": shape, "scale": scale, "offset": offset, "at": self.bytes}
        self.bytes += -(-4 * math.prod(shape) // ALIGNMENT) * ALIGNMENT
        return name, shape, FLOAT

    def match(self, x, y):
        """A weight beside halves is one of halves."""
        return self.node("Cast", [y], y[1], x[2], to=TYPES[x[2]]) if x[2] != y[2] else y

    def pair(self, op, x, y):
        return self.node(op, [x, self.match(x, y)], np.broadcast_shapes(x[1], y[1]))

    def add(self, x, y):
        return self.pair("Add", x, y)

    def mul(self, x, y):
        return self.pair("Mul", x, y)

    def neg(self, x):
        return self.node("Neg", [x], x[1])

    def relu(self, x):
        return self.node("Relu", [x], x[1])

    def matmul(self, x, y):
        return self.node("MatMul", [x, self.match(x, y)], (*x[1][:-1], y[1][-1]))

    def gelu(self, x, tanh=False):
        return self.node("Gelu", [x], x[1], approximate="tanh" if tanh else "none")

    def silu(self, x):
        return self.mul(x, self.node("Sigmoid", [x], x[1]))

    def softmax(self, x):
        return self.node("Softmax", [x], x[1], axis=-1)

    def layer_norm(self, x, scale, bias):
        return self.node("LayerNormalization", [x, self.match(x, scale), self.match(x, bias)], x[1], axis=-1, epsilon=1e-5)

    def rms_norm(self, x, scale):
        return self.node("RMSNormalization", [x, self.match(x, scale)], x[1], axis=-1, epsilon=1e-5)

    def gather(self, table, indices):
        return self.node("Gather", [table, indices], (*indices[1], *table[1][1:]), axis=0)

    def transpose(self, x, permutation):
        return self.node("Transpose", [x], [x[1][dim] for dim in permutation], perm=permutation)

    def reshape(self, x, shape):
        return self.node("Reshape", [x, self.constant(np.array(shape, np.int64))], shape)

    def sum(self, x, dims):
        return self.reduce("ReduceSum", x, dims)

    def mean(self, x, dims):
        return self.reduce("ReduceMean", x, dims)

    def reduce(self, op, x, dims):
        shape = [size for dim, size in enumerate(x[1]) if dim not in dims]
        return self.node(op, [x, self.constant(np.array(dims, np.int64))], shape, keepdims=0)

    def attention(self, query, key, value, causal=False):
        return self.node("Attention", [query, key, value], query[1], is_causal=int(causal))

    def rotary(self, x, seq, size):
        if seq not in self.tables:
            self.tables[seq] = [self.constant(table[None].repeat(x[1][0], 0).astype(np.float32))
                                for table in get_rotary_tables(seq, size)]
        return self.node("RotaryEmbedding", [x, *self.tables[seq]], x[1])

    def conv(self, x, weight, bias, stride, pad):
        sides = [(side + 2 * pad - weight[1][2]) // stride + 1 for side in x[1][2:]]
        return self.node("Conv", [x, weight, bias], (x[1][0], weight[1][0], *sides), strides=[stride] * 2, pads=[pad] * 4)

    def max_pool(self, x, kernel, stride, pad):
        sides = [(side + 2 * pad - kernel) // stride + 1 for side in x[1][2:]]
        return self.node("MaxPool", [x], (*x[1][:2], *sides), kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)


def write_model(folder, name, network, sizes):
    """NAME.onnx, and NAME.bin where it has weights; what the manifest says of it."""
    ops = OnnxOps()
    result = network(ops, *sizes)
    tensors = []
    for weight, entry in ops.weights.items():
        tensor = TensorProto(name=weight, dims=entry["shape"], data_type=TensorProto.FLOAT)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", f"{name}.bin"), ("offset", entry["at"]), ("length", 4 * math.prod(entry["shape"]))):
            tensor.external_data.add(key=key, value=str(value))
        tensors.append(tensor)
    inputs = [helper.make_tensor_value_info(key, TYPES[entry["dtype"]], entry["shape"]) for key, entry in ops.inputs.items()]
    # What comes out has a name that says nothing, and one of its own.
    ops.nodes[-1].output[0] = "result"
    outputs = [helper.make_tensor_value_info("result", TYPES[result[2]], result[1])]
    graph = helper.make_graph(ops.nodes, name, inputs, outputs, [*ops.constants, *tensors])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)
    onnx.save(model, os.path.join(folder, f"{name}.onnx"))
    if ops.weights:
        write_weights(os.path.join(folder, f"{name}.bin"), ops.weights)
    return {"inputs": ops.inputs, "weights": ops.weights}
