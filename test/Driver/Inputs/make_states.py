"""Writes a step with a cache that grows and a sum: see below. Usage: make_states.py FILE"""
import sys

from onnx import TensorProto, helper

value = lambda name, shape, kind=TensorProto.FLOAT: helper.make_tensor_value_info(name, kind, shape)
nodes = [helper.make_node("Concat", ["past_key", "new"], ["present_key"], axis=1),
         helper.make_node("Add", ["past_sum", "new"], ["present_sum"]),
         helper.make_node("Cast", ["past_sum"], ["sum_f64"], to=TensorProto.DOUBLE),
         helper.make_node("Relu", ["new"], ["out"])]
graph = helper.make_graph(nodes, "states", [value("past_key", (2, 6, 4)), value("past_sum", (2, 1, 4)), value("new", (2, 1, 4))],
                          [value("present_key", (2, 7, 4)), value("present_sum", (2, 1, 4)),
                           value("sum_f64", (2, 1, 4), TensorProto.DOUBLE), value("out", (2, 1, 4))])
with open(sys.argv[1], "wb") as file:
    file.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString())
