"""Trained weights written back into ONNX files, which onnxruntime then runs.

Usage: trained.py BUILD_DIR [NAME...]
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


TRAINED = {"w": numbers(4, 3, seed=1), "half": numbers(3, 2, seed=2), "b": numbers(2, seed=3)}
CODES = {np.dtype(np.float32): "F32", np.dtype(np.float64): "F64", np.dtype(np.int64): "I64", np.dtype(np.float16): "F16"}


def write_checkpoint(path, tensors):
    header, data = {"__metadata__": {"cleave.step": "3"}}, b""
    for name, value in tensors.items():
        header[name] = {"dtype": CODES[value.dtype], "shape": list(value.shape), "data_offsets": [len(data), len(data) + value.nbytes]}
        data += value.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def model(folder, external):
    """x w half + b, by floats of 32 and 16 bits, in the file, in a typed field, or in files beside it; `keep` is not trained."""
    weights = [numpy_helper.from_array(numbers(4, 3, seed=7), "w"), numpy_helper.from_array(numbers(3, 2, seed=8).astype(np.float16), "half"),
               helper.make_tensor("b", TensorProto.FLOAT, [2], [1.0, 2.0]), numpy_helper.from_array(numbers(2, seed=9), "keep")]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Cast", ["half"], ["full"], to=TensorProto.FLOAT),
             helper.make_node("MatMul", ["h", "full"], ["m"]), helper.make_node("Add", ["m", "b"], ["s"]), helper.make_node("Mul", ["s", "keep"], ["y"])]
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 4])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 2])]
    graph = helper.make_graph(nodes, "g", *values, weights, doc_string="a text that stays")
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="somebody")
    path = os.path.join(folder, "model.onnx")
    onnx.save_model(made, path, save_as_external_data=external, all_tensors_to_one_file=True, location="weights.bin", size_threshold=0)
    return path


def export(build, *paths):
    done = subprocess.run([f"{build}/bin/cleave-export-trained", *paths], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def whole(build, external):
    """The new file gives what numpy makes of the trained weights; it says all else that the old one says; the old one is as it was."""
    with tempfile.TemporaryDirectory() as folder:
        path, checkpoint, out = model(folder, external), os.path.join(folder, "s.safetensors"), os.path.join(folder, "new", "tuned.onnx")
        os.mkdir(os.path.dirname(out))
        write_checkpoint(checkpoint, {**TRAINED, "m(w)": TRAINED["w"], "count": np.array(3)})
        with open(path, "rb") as file:
            before = file.read()
        code, told = export(build, path, checkpoint, out)
        if code or told.split("\n")[:5] != ["replaced w", "replaced half", "replaced b", "other m(w)", "other count"]:
            return f"exit {code}: {told}"
        x = numbers(5, 4, seed=5)
        keep = numbers(2, seed=9)
        want = (x @ TRAINED["w"] @ TRAINED["half"].astype(np.float16).astype(np.float32) + TRAINED["b"]) * keep
        got = onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        if not np.allclose(got, want, rtol=1e-5, atol=1e-6):
            return f"onnxruntime is off by {np.abs(got - want).max()}"
        onnx.checker.check_model(out)
        old, new = onnx.load(path), onnx.load(out)
        for each in (old, new):
            for tensor in each.graph.initializer:
                tensor.ClearField("float_data")
                tensor.ClearField("raw_data")
                tensor.ClearField("external_data")
                tensor.ClearField("data_location")
        if old != new:
            return "more than elements has changed"
        with open(path, "rb") as file:
            if file.read() != before:
                return "the model has changed"
        if os.path.exists(out + ".data") != external:
            return "elements lie where they did not"
        return ""


def refused(build):
    with tempfile.TemporaryDirectory() as folder:
        path, checkpoint, out = model(folder, False), os.path.join(folder, "s.safetensors"), os.path.join(folder, "tuned.onnx")
        cases = {"s.safetensors: 'w' is f32[3, 4], the model has float[4, 3]": {"w": TRAINED["w"].T.copy()},
                 "s.safetensors: 'w' is i64[4, 3], the model has float[4, 3]": {"w": np.zeros((4, 3), np.int64)},
                 "s.safetensors: has none of the weights of": {"m(w)": TRAINED["w"]}}
        for message, tensors in cases.items():
            write_checkpoint(checkpoint, tensors)
            code, told = export(build, path, checkpoint, out)
            if code != 1 or message not in told or os.path.exists(out):
                return f"exit {code}: told {told!r}, expected {message!r}"
        with open(checkpoint, "wb") as file:
            file.write(b"12345678")
        code, told = export(build, path, checkpoint, out)
        return "" if code == 1 and "is not a safetensors file" in told else f"exit {code}: {told}"


CASES = {"inside": (whole, False), "beside": (whole, True), "refused": (refused,)}


def main():
    build, names, _ = harness.arguments()
    return harness.run(harness.select(CASES, names), lambda case: case[0](build, *case[1:]))


if __name__ == "__main__":
    sys.exit(main())
