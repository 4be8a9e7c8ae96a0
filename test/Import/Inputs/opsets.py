"""One node at each opset where its meaning changed, and tensors stored in each way: equal to what onnxruntime computes.

Prints `N passed, N failed`; what failed comes before.
"""

import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(1, os.path.join(sys.path[0], "..", ".."))
import harness  # noqa: E402

RNG = np.random.default_rng(7)


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


X = f32(2, 3, 4)
IMAGE = f32(1, 4, 5, 6)
KERNEL = f32(8, 4, 3, 3)
PER_CHANNEL = [f32(4), f32(4), f32(4), np.abs(f32(4)) + 0.5]

# (op, opset, inputs, attributes, number of outputs). Integers are initializers, floats are inputs of the model.
CASES = [
    ("Softmax", 11, [X], {}, 1),
    ("Softmax", 12, [X], {"axis": 0}, 1),
    ("Softmax", 12, [X], {"axis": -1}, 1),
    ("Softmax", 13, [X], {}, 1),
    ("Softmax", 13, [X], {"axis": 1}, 1),
    ("LogSoftmax", 11, [X], {"axis": 1}, 1),
    ("LogSoftmax", 13, [X], {"axis": 1}, 1),
    ("Hardmax", 11, [X], {"axis": 1}, 1),
    ("Hardmax", 13, [X], {"axis": 1}, 1),
    ("Squeeze", 11, [f32(1, 3, 1)], {"axes": [0, 2]}, 1),
    ("Squeeze", 11, [f32(1, 3, 1)], {}, 1),
    ("Squeeze", 13, [f32(1, 3, 1), i64(-1)], {}, 1),
    ("Unsqueeze", 11, [X], {"axes": [0, 4]}, 1),
    ("Unsqueeze", 13, [X, i64(4, 0)], {}, 1),
    ("ReduceSum", 11, [X], {"axes": [1], "keepdims": 0}, 1),
    ("ReduceSum", 13, [X, i64(1)], {"keepdims": 0}, 1),
    ("ReduceSum", 13, [X], {"noop_with_empty_axes": 1}, 1),
    ("ReduceMean", 17, [X], {"axes": [-1]}, 1),
    ("ReduceMean", 18, [X, i64(-1)], {}, 1),
    ("ReduceMax", 13, [X], {"axes": [0, 2]}, 1),
    ("ReduceL2", 13, [X], {"axes": [2], "keepdims": 0}, 1),
    ("ReduceL1", 18, [X, i64(0)], {}, 1),
    ("ReduceLogSumExp", 13, [X], {"axes": [1]}, 1),
    ("ReduceSumSquare", 11, [X], {}, 1),
    ("Slice", 9, [X], {"starts": [1, -3], "ends": [3, 100], "axes": [1, 2]}, 1),
    ("Slice", 9, [X], {"starts": [0, 1], "ends": [1, -1]}, 1),
    ("Slice", 10, [X, i64(3, 0), i64(0, 4), i64(2, 1), i64(-2, 1)], {}, 1),
    ("Slice", 13, [X, i64(-1), i64(-100), i64(-1), i64(-1)], {}, 1),
    ("Slice", 13, [X, i64(2), i64(2), i64(1)], {}, 1),
    ("Split", 11, [X], {"axis": 2, "split": [1, 3]}, 2),
    ("Split", 11, [X], {"axis": 2}, 2),
    ("Split", 13, [X, i64(2, 1)], {"axis": 1}, 2),
    ("Split", 18, [X], {"axis": 1, "num_outputs": 2}, 2),
    ("Clip", 9, [X], {"min": -0.5, "max": 0.25}, 1),
    ("Clip", 9, [X], {}, 1),
    ("Clip", 11, [X, np.float32(-0.5), np.float32(0.25)], {}, 1),
    ("Clip", 13, [X, None, np.float32(0.25)], {}, 1),
    ("Pad", 9, [X], {"pads": [0, 1, 0, 2, 0, 1], "value": 2.5}, 1),
    ("Pad", 9, [X], {"pads": [0, 1, 2, 0, 1, 1], "mode": "reflect"}, 1),
    ("Pad", 11, [X, i64(0, 1, 0, 2, 0, -1), np.float32(1.5)], {}, 1),
    ("Pad", 13, [X, i64(0, 1, 3, 2, 0, 1)], {"mode": "edge"}, 1),
    ("Pad", 18, [X, i64(1, 2), np.float32(-1), i64(-1)], {}, 1),
    ("Pad", 19, [X, i64(0, 1, 2, 0, 1, 1)], {"mode": "wrap"}, 1),
    ("TopK", 10, [X, i64(2)], {"axis": 1}, 2),
    ("TopK", 11, [X, i64(2)], {"axis": -1, "largest": 0}, 2),
    ("Dropout", 10, [X], {"ratio": 0.3}, 1),
    ("Dropout", 13, [X, np.float32(0.3)], {}, 2),
    ("BatchNormalization", 9, [IMAGE, *PER_CHANNEL], {"epsilon": 1e-3}, 1),
    ("BatchNormalization", 15, [IMAGE, *PER_CHANNEL], {}, 1),
    ("Upsample", 9, [IMAGE, np.array([1, 1, 2, 3], np.float32)], {"mode": "nearest"}, 1),
    ("Upsample", 9, [IMAGE, np.array([1, 1, 2, 2], np.float32)], {"mode": "linear"}, 1),
    ("Resize", 10, [IMAGE, np.array([1, 1, 2, 0.5], np.float32)], {"mode": "nearest"}, 1),
    ("Resize", 10, [IMAGE, np.array([1, 1, 1.5, 2], np.float32)], {"mode": "linear"}, 1),
    ("Resize", 10, [IMAGE, np.array([1, 1, 1.7, 0.6], np.float32)], {"mode": "nearest"}, 1),
    ("Resize", 11, [IMAGE, np.zeros(0, np.float32), np.array([1, 1, 0.6, 1.7], np.float32)], {"mode": "linear"}, 1),
    ("Resize", 13, [IMAGE, None, None, i64(1, 4, 7, 9)],
     {"mode": "cubic", "coordinate_transformation_mode": "align_corners"}, 1),
    ("Resize", 13, [IMAGE, None, None, i64(1, 4, 7, 9)], {"mode": "nearest"}, 1),
    ("Resize", 13, [IMAGE, None, None, i64(1, 4, 10, 12)], {"coordinate_transformation_mode": "asymmetric"}, 1),
    ("Resize", 18, [IMAGE, None, None, i64(10, 9)],
     {"axes": [2, 3], "mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}, 1),
    ("MaxPool", 9, [IMAGE], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}, 1),
    ("MaxPool", 10, [IMAGE], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, 1),
    ("MaxPool", 12, [IMAGE], {"kernel_shape": [2, 2], "dilations": [2, 1], "ceil_mode": 1}, 1),
    ("AveragePool", 10, [IMAGE], {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]}, 1),
    ("AveragePool", 19, [IMAGE], {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1}, 1),
    ("Conv", 9, [IMAGE, KERNEL, f32(8)], {"auto_pad": "SAME_LOWER", "strides": [2, 2]}, 1),
    ("Conv", 11, [IMAGE, f32(4, 2, 3, 3)], {"group": 2, "dilations": [1, 2], "pads": [1, 2, 1, 2]}, 1),
    ("Conv", 11, [f32(1, 2, 7, 8), f32(3, 2, 2, 2)], {"strides": [2, 3], "dilations": [2, 4]}, 1),
    ("ConvTranspose", 11, [IMAGE, f32(4, 3, 3, 3)], {"strides": [2, 2], "output_padding": [1, 1], "pads": [1, 1, 1, 1]}, 1),
    ("ConvTranspose", 11, [IMAGE, f32(4, 2, 2, 3)], {"group": 2, "strides": [2, 1], "output_shape": [10, 8]}, 1),
    ("Gemm", 9, [f32(3, 2), f32(4, 3), f32(4)], {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}, 1),
    ("Gemm", 11, [f32(2, 3), f32(3, 4)], {}, 1),
    ("MatMul", 9, [f32(3), f32(2, 3, 4)], {}, 1),
    ("MatMul", 13, [f32(2, 1, 3, 4), f32(5, 4, 2)], {}, 1),
    ("Einsum", 12, [f32(3, 3), f32(3, 2)], {"equation": "ii, ij -> j"}, 1),
    ("Einsum", 12, [f32(2, 5, 3), f32(3, 4)], {"equation": "...k,kn->...n"}, 1),
    ("Einsum", 12, [f32(2, 3), f32(3, 4)], {"equation": "ba,ac"}, 1),
    ("Einsum", 12, [f32(2, 3), f32(3, 4)], {"equation": "zy,ya"}, 1),
    ("Einsum", 12, [f32(5, 4, 2), f32(4, 3)], {"equation": "b...a,...c"}, 1),
    ("Flatten", 9, [X], {"axis": 2}, 1),
    ("Flatten", 11, [X], {"axis": -3}, 1),
    ("Reshape", 9, [X, i64(0, -1)], {}, 1),
    ("Reshape", 14, [X, i64(4, 0, -1)], {}, 1),
    ("OneHot", 9, [i64(0, 5, -1), i64(4), np.array([2, 7], np.float32)], {"axis": 0}, 1),
    ("OneHot", 11, [i64(0, 5, -1), i64(4), np.array([2, 7], np.float32)], {}, 1),
    ("Scatter", 9, [f32(3, 3), np.array([[0, 2, 1]], np.int64), f32(1, 3)], {"axis": 0}, 1),
    ("ScatterElements", 16, [f32(3, 3), np.array([[0, 0, 1]], np.int64), f32(1, 3)], {"reduction": "add"}, 1),
    ("ScatterND", 16, [f32(3, 3), np.array([[1], [1]], np.int64), f32(2, 3)], {"reduction": "add"}, 1),
    ("GatherND", 12, [f32(2, 3, 4), np.array([[1], [0]], np.int64)], {"batch_dims": 1}, 1),
    ("DepthToSpace", 9, [f32(1, 8, 2, 3)], {"blocksize": 2}, 1),
    ("DepthToSpace", 11, [f32(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"}, 1),
    ("ArgMax", 11, [X], {"axis": 1, "keepdims": 0}, 1),
    ("ArgMin", 13, [np.round(X)], {"axis": -1, "select_last_index": 1}, 1),
    ("CumSum", 11, [X, np.array(1, np.int64)], {"exclusive": 1, "reverse": 1}, 1),
    ("Mod", 10, [f32(5), f32(5)], {"fmod": 1}, 1),
    ("Pow", 12, [np.abs(X) + 1, np.array(3, np.int64)], {}, 1),
    ("Pow", 12, [i64(2, 3, 4, 9), np.array([1.5, 2.5, 0.5, 0.5], np.float32)], {}, 1),
    ("PRelu", 9, [X, f32(4)], {}, 1),
    ("LRN", 9, [IMAGE], {"size": 3, "alpha": 0.1}, 1),
    ("LpNormalization", 9, [X], {"axis": 1, "p": 1}, 1),
    ("InstanceNormalization", 9, [IMAGE, f32(4), f32(4)], {}, 1),
    ("GroupNormalization", 18, [IMAGE, f32(2), f32(2)], {"num_groups": 2}, 1),
    ("GroupNormalization", 21, [IMAGE, f32(4), f32(4)], {"num_groups": 2}, 1),
    ("QuantizeLinear", 10, [X, np.array(0.02, np.float32), np.array(7, np.int8)], {}, 1),
    ("QuantizeLinear", 10, [X, np.array([0.02, 0.1, 0.3], np.float32), np.array([7, 0, 100], np.uint8)], {}, 1),
    ("QuantizeLinear", 13, [X, np.array([0.02, 0.1], np.float32), np.array([7, 0], np.int8)], {"axis": 0}, 1),
    ("MeanVarianceNormalization", 13, [IMAGE], {}, 1),
    ("LayerNormalization", 17, [X, f32(4), f32(4)], {"epsilon": 1e-3}, 3),
    ("Trilu", 14, [f32(4, 5), np.array(1, np.int64)], {"upper": 0}, 1),
    ("Where", 9, [np.array([[True], [False], [True]]), f32(3, 4), f32(4)], {}, 1),
    ("Tile", 9, [X, i64(2, 1, 3)], {}, 1),
    ("Expand", 9, [f32(3, 1), i64(2, 1, 4)], {}, 1),
]

STORED = np.array([[1, -2, 3], [-4, 5, 6]])


def stored_tensors():
    """(label, tensor) of the same values in every type and field that can carry them."""
    for name in ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "bool", "uint8", "uint64"):
        values = STORED.astype(name)
        data_type = helper.np_dtype_to_tensor_dtype(values.dtype)
        yield f"{name} raw", numpy_helper.from_array(values, "w")
        flat = {"float16": lambda: values.view(np.uint16), "bool": lambda: values.astype(int)}.get(name, lambda: values)()
        tensor = TensorProto(name="w", data_type=data_type, dims=values.shape)
        field = helper.tensor_dtype_to_field(data_type)
        getattr(tensor, field).extend(flat.ravel().tolist())
        yield f"{name} in {field}", tensor


def model(op, opset, inputs, attributes, outputs):
    """A model of one node and the arrays that feed it."""
    names = ["" if array is None else f"in{i}" for i, array in enumerate(inputs)]
    feeds, initializers = {}, []
    for name, array in zip(names, inputs):
        if array is None:
            continue
        array = np.asarray(array)
        if array.dtype == np.float32 and array.ndim and array.size and op not in ("Upsample", "Resize") or name == "in0":
            feeds[name] = array
        else:
            initializers.append(numpy_helper.from_array(array, name))
    results = [f"out{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, name="n", **attributes)
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()]
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=n) for n in results], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), feeds


def stored_model(tensor):
    graph = helper.make_graph([helper.make_node("Cast", ["w"], ["out0"], to=TensorProto.DOUBLE)], "g", [],
                              [onnx.ValueInfoProto(name="out0")], [tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), {}


def main():
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        named = [(f"{op} {opset} #{i}", model(op, opset, *rest)) for i, (op, opset, *rest) in enumerate(CASES)]
        named += [(label, stored_model(tensor)) for label, tensor in stored_tensors()]
        for index, (label, (proto, feeds)) in enumerate(named):
            path = os.path.join(folder, f"{index}.onnx")
            onnx.save(proto, path)
            if " in " in label or " raw" in label:
                name = label.split()[0]
                expected = [STORED.astype(name).astype(np.float64)]
            else:
                options = ort.SessionOptions()
                options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
                options.log_severity_level = 3
                expected = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, feeds)
            arrays = {f"in:{k}": v for k, v in feeds.items()}
            arrays.update({f"out:out{i}": np.asarray(v) for i, v in enumerate(expected)})
            np.savez(path[:-5] + ".npz", **arrays)
            rows.append((label, path, path[:-5] + ".npz", 1e-4, 1e-5))
        return harness.compare(rows)


if __name__ == "__main__":
    sys.exit(main())
