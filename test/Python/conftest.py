"""Small models, and what onnxruntime makes of them."""
import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

MODELS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "Models")


def make_model(path, nodes, inputs, outputs, weights=()):
    """`inputs` and `outputs` as (name, type, shape), weights as (name, array)."""
    value = lambda one: helper.make_tensor_value_info(*one)
    graph = helper.make_graph(nodes, "g", [value(one) for one in inputs], [value(one) for one in outputs],
                              [numpy_helper.from_array(array, name) for name, array in weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, path)
    return str(path)


def run_onnxruntime(path, inputs):
    """{output: array}"""
    import onnxruntime
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip([one.name for one in session.get_outputs()], session.run(None, inputs)))


MLP_WEIGHTS = ("w1", (8, 16)), ("w2", (16, 8))


@pytest.fixture(scope="session")
def mlp(tmp_path_factory):
    """x[4, 8] -> relu(x w1) w2, the weights by those names."""
    random = np.random.default_rng(1)
    weights = [(name, random.standard_normal(shape).astype(np.float32)) for name, shape in MLP_WEIGHTS]
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["h"], name="/up/MatMul"), helper.make_node("Relu", ["h"], ["r"], name="/act"),
             helper.make_node("MatMul", ["r", "w2"], ["y"], name="/down/MatMul")]
    return make_model(tmp_path_factory.mktemp("models") / "mlp.onnx", nodes, [("x", TensorProto.FLOAT, [4, 8])], [("y", TensorProto.FLOAT, [4, 8])],
                      weights)


@pytest.fixture(scope="session")
def batched(tmp_path_factory):
    """The same, x[batch, 8]."""
    random = np.random.default_rng(2)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="/MatMul")]
    return make_model(tmp_path_factory.mktemp("models") / "batched.onnx", nodes, [("x", TensorProto.FLOAT, ["batch", 8])],
                      [("y", TensorProto.FLOAT, ["batch", 4])], [("w", random.standard_normal((8, 4)).astype(np.float32))])


@pytest.fixture(scope="session")
def lookup(tmp_path_factory):
    """ids[4] -> table[ids], of a table of 10 rows."""
    table = np.arange(40, dtype=np.float32).reshape(10, 4)
    nodes = [helper.make_node("Gather", ["table", "ids"], ["y"], name="/embed")]
    return make_model(tmp_path_factory.mktemp("models") / "lookup.onnx", nodes, [("ids", TensorProto.INT64, [4])], [("y", TensorProto.FLOAT, [4, 4])],
                      [("table", table)])


@pytest.fixture(scope="session")
def sums(tmp_path_factory):
    """x, past -> y = 2 * total, total = past + x: a state."""
    nodes = [helper.make_node("Add", ["past", "x"], ["total"], name="/add"), helper.make_node("Add", ["total", "total"], ["y"], name="/twice")]
    shape = [2, 8]
    return make_model(tmp_path_factory.mktemp("models") / "sums.onnx", nodes,
                      [("x", TensorProto.FLOAT, shape), ("past", TensorProto.FLOAT, shape)],
                      [("y", TensorProto.FLOAT, shape), ("total", TensorProto.FLOAT, shape)])


@pytest.fixture(scope="session")
def narrow(tmp_path_factory):
    """x[4, 8] -> x + x in bf16."""
    nodes = [helper.make_node("Add", ["x", "x"], ["y"], name="/add")]
    return make_model(tmp_path_factory.mktemp("models") / "narrow.onnx", nodes, [("x", TensorProto.BFLOAT16, [4, 8])], [("y", TensorProto.BFLOAT16, [4, 8])])


@pytest.fixture(scope="session")
def loop(tmp_path_factory):
    """n, x[64, 64] -> n times x = x @ w: as long as one likes."""
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["go_out"]), helper.make_node("MatMul", ["a", "w"], ["b"]),
                              helper.make_node("Tanh", ["b"], ["c"])], "body",
                             [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("a", TensorProto.FLOAT, [64, 64])],
                             [helper.make_tensor_value_info("go_out", TensorProto.BOOL, []), helper.make_tensor_value_info("c", TensorProto.FLOAT, [64, 64])])
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body, name="/loop")]
    return make_model(tmp_path_factory.mktemp("models") / "loop.onnx", nodes, [("n", TensorProto.INT64, []), ("x", TensorProto.FLOAT, [64, 64])],
                      [("y", TensorProto.FLOAT, [64, 64])], [("w", np.eye(64, dtype=np.float32))])


@pytest.fixture
def x():
    return np.random.default_rng(3).standard_normal((4, 8)).astype(np.float32)
