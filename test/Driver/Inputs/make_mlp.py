"""Writes a dot and an activation: hidden [8, 16] times w [16, 32], both inputs. Usage: make_mlp.py FILE"""
import sys

from onnx import TensorProto, helper

value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
nodes = [helper.make_node("MatMul", ["hidden", "w"], ["up"], name="/mlp/up"),
         helper.make_node("Relu", ["up"], ["out"], name="/mlp/act")]
graph = helper.make_graph(nodes, "mlp", [value("hidden", (8, 16)), value("w", (16, 32))], [value("out", (8, 32))])
with open(sys.argv[1], "wb") as file:
    file.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString())
