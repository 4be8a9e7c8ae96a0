"""Ops of com.microsoft that onnxruntime has no kernel for on this machine, against numpy: formulas of the op's documentation
(ContribOperators.md), in f64.

Prints `N passed, N failed`; what failed comes before.
"""

import itertools
import math
import os
import sys
import tempfile

import numpy as np
import onnx

sys.path.insert(1, sys.path[0])
import one_op  # noqa: E402
from one_op import Weight, f32, harness  # noqa: E402

erf = np.vectorize(math.erf)


def gelu(x):
    return x * (1 + erf(x / math.sqrt(2))) / 2


def bias_split_gelu(x, bias):
    """The left half times the Gelu of the right one, behind the bias."""
    left, right = np.split(x + bias, 2, -1)
    return left * gelu(right)


def group_norm(x, scale, shift, groups, epsilon, swish, last):
    """Each group of neighboring channels has mean 0 and variance 1; channels are the last dim, or dim 1."""
    x = x if last else np.moveaxis(x, 1, -1)
    apart = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    mean, variance = apart.mean((1, 3), keepdims=True), apart.var((1, 3), keepdims=True)
    y = ((apart - mean) / np.sqrt(variance + epsilon)).reshape(x.shape) * scale + shift
    y = y / (1 + np.exp(-y)) if swish else y
    return y if last else np.moveaxis(y, -1, 1)


def nhwc_conv(x, weight, bias, stride, pad, groups):
    """Channels last in input, weight [outputs, rows, columns, channels / groups] and result."""
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    outputs, rows, columns, each = weight.shape
    places = [(size - kernel) // stride + 1 for size, kernel in zip(x.shape[1:3], (rows, columns))]
    y = np.zeros((x.shape[0], *places, outputs))
    for i, j, o in itertools.product(*map(range, places), range(outputs)):
        first = o // (outputs // groups) * each
        window = x[:, i * stride:i * stride + rows, j * stride:j * stride + columns, first:first + each]
        y[:, i, j, o] = (window * weight[o]).sum((1, 2, 3)) + bias[o]
    return y


def cases():
    """(op, inputs, results, attributes)"""
    for shape in ((2, 3, 8), (1, 5, 14)):
        x, bias = f32(*shape), f32(shape[-1])
        yield "BiasSplitGelu", [x, Weight(bias)], [bias_split_gelu(x.astype(np.float64), bias)], {}
    for groups, swish, last, epsilon in itertools.product((1, 2, 4), (0, 1), (0, 1), (1e-5, 1e-2)):
        x, scale, shift = f32(2, 4, 6, 8) if last else f32(2, 8, 4, 6), f32(8), f32(8)
        yield ("GroupNorm", [x, Weight(scale), Weight(shift)], [group_norm(x.astype(np.float64), scale, shift, groups, epsilon, swish, last)],
               {"groups": groups, "activation": swish, "channels_last": last, "epsilon": epsilon})
    for skip, biased, swish in itertools.product(((2, 3, 4, 8), (2, 1, 1, 8), (2, 8)), (False, True), (0, 1)):
        x, scale, shift, other, bias = f32(2, 3, 4, 8), f32(8), f32(8), f32(*skip), f32(8)
        total = x.astype(np.float64) + (other[:, None, None] if len(skip) == 2 else other) + (bias if biased else 0)
        yield ("SkipGroupNorm", [x, Weight(scale), Weight(shift), other, Weight(bias) if biased else None],
               [group_norm(total, scale, shift, 2, 1e-5, swish, 1), total], {"groups": 2, "activation": swish})
    for stride, pad, groups in itertools.product((1, 2), (0, 1), (1, 2)):
        x, weight, bias = f32(2, 6, 7, 4), f32(6, 3, 2, 4 // groups), f32(6)
        yield ("NhwcConv", [x, Weight(weight), Weight(bias)], [nhwc_conv(x.astype(np.float64), weight, bias, stride, pad, groups)],
               {"strides": [stride] * 2, "pads": [pad] * 4, "group": groups})


def main():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for index, (op, inputs, results, attributes) in enumerate(cases()):
            proto, feeds = one_op.model(op, inputs, range(len(results)), one_op.DOMAIN, 18, attributes)
            path = os.path.join(folder, f"{index}.onnx")
            onnx.save(proto, path)
            arrays = {f"in:{name}": value for name, value in feeds.items()}
            arrays.update({f"out:out{i}": value.astype(np.float32) for i, value in enumerate(results)})
            np.savez(path[:-5] + ".npz", **arrays)
            rows.append((f"{op} {attributes}", path, path[:-5] + ".npz", 1e-4, 1e-5))
        return harness.compare(rows, [])


if __name__ == "__main__":
    sys.exit(main())
