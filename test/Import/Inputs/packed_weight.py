"""A product with a weight of 64 x 96 elements that share bytes, of which only their type's name is given: `packed_weight.py INT4 model.onnx`."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}

name, path = sys.argv[1:]
data = np.random.default_rng(0).integers(0, 256, 64 * 96 * BITS[name] // 8).astype(np.uint8)
weight = TensorProto(name="w", data_type=getattr(TensorProto, name), dims=[64, 96], raw_data=data.tobytes())
nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["wide"]), helper.make_node("MatMul", ["x", "wide"], ["y"])]
graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (8, 64))],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, (8, 96))], [weight, helper.make_tensor("s", TensorProto.FLOAT, (), [0.1])])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12), path)
