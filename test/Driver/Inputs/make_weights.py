"""Writes y = relu(x @ w) with x [batch, 64] and a weight [64, 192] drawn from a seed; in the file or, with a fourth
argument, beside it. Usage: make_weights.py FILE SEED [PRODUCER [DATA]]"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

path, seed, *rest = sys.argv[1:]
weight = np.random.default_rng(int(seed)).standard_normal((64, 192), np.float32)
value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="/dot"), helper.make_node("Relu", ["h"], ["y"], name="/act")]
graph = helper.make_graph(nodes, "g", [value("x", ["batch", 64])], [value("y", ["batch", 192])],
                          [numpy_helper.from_array(weight, "w")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
model.producer_name = rest[0] if rest else ""
onnx.save(model, path, **({"save_as_external_data": True, "location": rest[1]} if len(rest) > 1 else {}))
