"""Writes a model whose dims are unknown in every way that exporters write.

    unknown_dims.py MODEL.onnx ARRAYS.npz

y[?, "?", "", -1] = a[-1, "?", "?", 4] + b["", "?", -1, 4]: no two of these are the same dim.
"""
import sys

import numpy as np
from onnx import TensorProto, helper


def main():
    model_path, arrays_path = sys.argv[1:]
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    nodes = [helper.make_node("Neg", ["a"], ["n"], "/neg"), helper.make_node("Add", ["n", "b"], ["y"], "/add")]
    graph = helper.make_graph(nodes, "g", [value("a", [-1, "?", "?", 4]), value("b", ["", "?", -1, 4])],
                              [value("y", [None, "?", "", -1])], value_info=[value("n", [-1, -1, "?", 4])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=11)
    with open(model_path, "wb") as file:
        file.write(model.SerializeToString())
    np.savez(arrays_path, a=np.ones((2, 3, 5, 4), np.float32), b=np.ones((2, 1, 5, 4), np.float32))


if __name__ == "__main__":
    main()
