"""Models of one op each, of com.microsoft, ai.onnx.ml and what is rare of ONNX's own, over many combinations of
attributes and operands: equal to what onnxruntime computes on this machine.

Prints `N passed, N failed`; what failed comes before. A case that onnxruntime itself refuses is a failure too, so that
what is counted was really compared. With names as arguments, cases whose label starts with one of them. With --sharded
the first and the last case of each op instead run on two ranks, its first input cut along each dim that divides; along the first one of these as a program, too.
"""

import itertools
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

sys.path.insert(1, os.path.join(sys.path[0], "..", ".."))
import harness  # noqa: E402

RNG = np.random.default_rng(12)
DOMAIN = "com.microsoft"
CASES = []


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def i32(*values):
    return np.array(values, np.int32)


def u8(*shape):
    return RNG.integers(0, 256, shape).astype(np.uint8)


class Weight:
    """An operand that is an initializer, where others are inputs."""

    def __init__(self, array):
        self.array = np.asarray(array)


def case(op, inputs, outputs=(0,), domain=DOMAIN, tolerance=(1e-4, 2e-5), opset=18, **attributes):
    """`inputs`: arrays (inputs of the model), Weights, or None; `outputs`: which of the op's are asked for; `opset`: of
    ONNX's own domain, or of ai.onnx.ml."""
    given = {name: value for name, value in attributes.items() if value is not None}
    text = " ".join(f"{name}={value}" for name, value in given.items() if not isinstance(value, onnx.TensorProto))
    shapes = " ".join("-" if x is None else str(list((x.array if isinstance(x, Weight) else x).shape)) for x in inputs)
    CASES.append((f"{op} {text} {shapes} -> {list(outputs)}", op, inputs, outputs, domain, tolerance, opset, given))


def activations():
    x, bias = f32(2, 3, 8), f32(8)
    case("Gelu", [x])
    case("BiasGelu", [x, bias])
    case("FastGelu", [x])
    case("FastGelu", [x, Weight(bias)])
    for alpha in (None, 1.0, 0.5):
        case("QuickGelu", [x], alpha=alpha)


def norms():
    x, h = f32(2, 3, 8), 8
    for bias, shift, epsilon, skip in itertools.product((False, True), (False, True), (None, 1e-3), ((2, 3, h), (3, h), (1, 3, h))):
        case("SkipLayerNormalization", [x, f32(*skip), f32(h), f32(h) if shift else None, f32(h) if bias else None],
             (0, 3), epsilon=epsilon)
    for bias, epsilon in itertools.product((False, True), (None, 1e-3)):
        case("SkipSimplifiedLayerNormalization", [x, f32(2, 3, h), f32(h), f32(h) if bias else None], (0, 3), epsilon=epsilon)
    for axis in (-1, 1):
        case("SimplifiedLayerNormalization", [x, Weight(f32(*x.shape[axis:]))], domain="", axis=axis, epsilon=1e-5)
    tables = [f32(20, h), f32(6, h), f32(2, h)]
    ids = RNG.integers(0, 20, (2, 5)).astype(np.int32)
    segments = RNG.integers(0, 2, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    places = RNG.integers(0, 6, (2, 5)).astype(np.int32)
    for segment, masked, placed in itertools.product((False, True), repeat=3):
        case("EmbedLayerNormalization",
             [ids, segments if segment else None, *map(Weight, tables[:2]), Weight(tables[2]) if segment else None,
              Weight(f32(h)), Weight(f32(h)), mask if masked else None, places if placed else None],
             (0, 1, 2) if segment else (0, 1), epsilon=1e-5)


def products():
    for batch, (ta, tb, alpha) in itertools.product(((), (2,), (2, 3)), itertools.product((0, 1), (0, 1), (None, 0.25))):
        a, b = f32(*batch, *((6, 4) if ta else (4, 6))), f32(*batch, *((5, 6) if tb else (6, 5)))
        case("FusedMatMul", [a, b], transA=ta, transB=tb, alpha=alpha)
    for ta, tb in itertools.product((0, 1), (0, 1)):
        a, b = (f32(6, 2, 4) if ta else f32(4, 2, 6)), (f32(5, 2, 6) if tb else f32(6, 2, 5))
        case("FusedMatMul", [a, b], transA=ta, transB=tb, transBatchA=1, transBatchB=1)
    names = [("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("LeakyRelu", {"activation_alpha": 0.2})]
    for (name, extra), ta, tb in itertools.product(names, (0, 1), (0, 1)):
        a, b = f32(*((6, 4) if ta else (4, 6))), f32(*((5, 6) if tb else (6, 5)))
        case("FusedGemm", [a, b, f32(5)], activation=name, transA=ta, transB=tb, alpha=0.5, beta=2.0, **extra)
    parameters = {"LeakyRelu": [0.2], "Clip": [-0.5, 0.5], "HardSigmoid": [0.3, 0.4]}
    for name, residual in itertools.product(("Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"), (False, True)):
        if name in ("Clip", "HardSigmoid") and residual:
            continue
        case("FusedConv", [f32(2, 4, 6, 7), Weight(f32(6, 2, 3, 3)), Weight(f32(6)), f32(2, 6, 6, 7) if residual else None],
             activation=name, activation_params=parameters.get(name), group=2, pads=[1, 1, 1, 1])


def attention():
    batch, length, heads, hidden = 2, 5, 2, 8
    size = hidden // heads
    weights = [Weight(f32(6, 3 * hidden)), Weight(f32(3 * hidden))]
    masks = {None: None, "lengths": i32(3, 5), "ends": i32(3, 5, 1, 0),
             "keys": np.array([[1, 1, 1, 0, 0], [1] * 5], np.int32),
             "pairs": np.tril(np.ones((2, 5, 5), np.int32))}
    for mask, causal, biased in itertools.product(masks, (0, 1), (False, True)):
        case("Attention", [f32(batch, length, 6), *weights, masks[mask], None, f32(batch, heads, length, length) if biased else None],
             num_heads=heads, unidirectional=causal)
    for causal, scale in itertools.product((0, 1), (None, 0.3)):
        past = f32(2, batch, heads, 3, size)
        case("Attention", [f32(batch, length, 6), *weights, None, past], (0, 1), num_heads=heads, unidirectional=causal, scale=scale)
    seen = np.array([[1, 0, 1, 1, 1, 0, 0, 1], [1] * 8], np.int32)
    case("Attention", [f32(batch, length, 6), *weights, seen, f32(2, batch, heads, 3, size)], (0, 1), num_heads=heads)
    case("Attention", [f32(batch, length, 6), Weight(f32(6, 20)), Weight(f32(20))], num_heads=heads, qkv_hidden_sizes=[8, 8, 4])
    case("Attention", [f32(batch, length, 6), *weights, masks["keys"]], num_heads=heads, mask_filter_value=-5.0)

    keys = 7
    query, key, value = f32(batch, length, hidden), f32(batch, keys, hidden), f32(batch, keys, hidden)
    padding = np.array([[1, 1, 1, 0, 1, 0, 0], [1] * 7], np.int32)
    for bias, mask, added, scale in itertools.product((None, f32(3 * hidden)), (None, padding, i32(4, 7)),
                                                      (None, f32(1, heads, length, keys), f32(batch, heads, length, keys)), (None, 0.4)):
        case("MultiHeadAttention", [query, key, value, bias, mask, added], num_heads=heads, scale=scale)
    for causal in (0, 1):
        case("MultiHeadAttention", [query, f32(batch, length, hidden), f32(batch, length, hidden)], num_heads=heads, unidirectional=causal)
        case("MultiHeadAttention", [query, f32(batch, length, hidden), f32(batch, length, hidden), None, None, None,
                                    f32(batch, heads, 3, size), f32(batch, heads, 3, size)], (0, 1, 2), num_heads=heads, unidirectional=causal)
    case("MultiHeadAttention", [query, f32(batch, heads, keys, size), f32(batch, heads, keys, size)], num_heads=heads)
    case("MultiHeadAttention", [query, key, f32(batch, keys, 12)], num_heads=heads)


def rotary():
    cos, sin = f32(10, 4), f32(10, 4)
    for interleaved, places in itertools.product((0, 1), (np.array([3], np.int64), np.array([[0, 4, 2], [9, 1, 5]], np.int64))):
        case("RotaryEmbedding", [f32(2, 3, 16), places, Weight(cos), Weight(sin)], interleaved=interleaved)
        case("RotaryEmbedding", [f32(2, 2, 3, 8), places, Weight(cos), Weight(sin)], interleaved=interleaved)
        case("RotaryEmbedding", [f32(2, 3, 32), places, Weight(cos), Weight(sin)], interleaved=interleaved, num_heads=2, rotary_embedding_dim=8)


def group_query():
    heads, few, size = 4, 2, 16
    cos, sin = f32(16, size // 2), f32(16, size // 2)

    def add(batch, length, lengths, total, cached, rotates, interleaved=0, packed=False, sinks=None, **attributes):
        shape = (batch, few, cached, size)
        hidden = (heads + 2 * few) * size if packed else heads * size
        operands = [f32(batch, length, hidden), *([None] * 2 if packed else [f32(batch, length, few * size) for _ in range(2)]),
                    *([f32(*shape), f32(*shape)] if cached is not None else [None] * 2),
                    Weight(i32(*[n - 1 for n in lengths])) if batch == 1 else i32(*[n - 1 for n in lengths]), Weight(i32(total))]
        operands += [Weight(cos), Weight(sin)] if rotates else []
        if sinks is not None:
            operands += [None] * (11 - len(operands)) + [sinks]
        case("GroupQueryAttention", operands, (0, 1, 2), num_heads=heads, kv_num_heads=few, do_rotary=int(rotates),
             rotary_interleaved=interleaved, **attributes)

    for rotates, packed in itertools.product((False, True), (False, True)):
        add(1, 5, [5], 5, 0, rotates, packed=packed)           # a prompt
        add(2, 5, [5, 5], 5, 0, rotates, packed=packed)
        add(1, 1, [4], 4, 3, rotates, packed=packed)           # a token behind a cache
        add(2, 1, [4, 4], 4, 3, rotates, packed=packed)
        add(3, 1, [4, 2, 3], 4, 3, rotates, packed=packed)     # samples of other lengths
        add(1, 3, [7], 7, 4, rotates, packed=packed)           # some tokens at a time
    for interleaved in (0, 1):
        add(2, 4, [4, 4], 4, 0, True, interleaved)
        add(2, 1, [6, 3], 6, 5, True, interleaved)
    for attributes in ({"scale": 0.2}, {"softcap": 2.0}, {"scale": 0.3, "softcap": 1.5}, {"local_window_size": 1}, {"local_window_size": 2}):
        add(1, 4, [4], 4, 0, False, **attributes)
        add(2, 1, [6, 3], 6, 5, False, **attributes)
    for sinks, attributes in itertools.product((None, f32(heads)), ({}, {"local_window_size": 2}, {"softcap": 2.0})):
        if sinks is None:
            attributes = {**attributes, "smooth_softmax": 1}
        add(1, 4, [4], 4, 0, True, sinks=sinks, **attributes)
        add(2, 1, [6, 3], 6, 5, False, sinks=sinks, **attributes)
        add(1, 3, [7], 7, 4, False, sinks=sinks, **attributes)


def quantized_caches():
    """Keys and values kept as integers of 8 or of 4 bits. onnxruntime has keys and values scaled alike only."""
    heads, few, size = 4, 2, 16
    tables = [Weight(f32(16, size // 2)) for _ in range(2)]
    for bits, each, (batch, length, lengths, total, cached), (rotates, more) in itertools.product(
            (8, 4), ("PER_TENSOR", "PER_CHANNEL"), ((1, 5, [5], 5, 0), (1, 1, [4], 4, 3), (1, 3, [7], 7, 4), (3, 1, [4, 2, 3], 4, 3)),
            ((0, {}), (1, {"local_window_size": 2}), (0, {"smooth_softmax": 1}))):
        shape = (batch, few, cached, size * bits // 8)
        past = RNG.integers(0, 256, (2, *shape)).astype(np.uint8).view(np.uint8 if bits == 4 else np.int8)
        scales = [((0.02 if bits == 8 else 0.3) * (1 + RNG.random(1 if each == "PER_TENSOR" else (1, few, 1, size)))).astype(np.float32)
                  for _ in range(2)]
        case("GroupQueryAttention",
             [f32(batch, length, heads * size), f32(batch, length, few * size), f32(batch, length, few * size),
              *past, i32(*[n - 1 for n in lengths]), Weight(i32(total)),
              *(tables if rotates else [None] * 2), None, None, None, *map(Weight, scales)],
             (0, 1, 2), num_heads=heads, kv_num_heads=few, do_rotary=rotates, k_quant_type=each, v_quant_type=each,
             kv_cache_bit_width=bits, **more)


def n_bits():
    for bits, zeros, (depth, columns, block), bias in itertools.product((4, 8), (None, "packed", "float"), ((64, 8, 16), (80, 5, 32), (32, 3, 32)), (False, True)):
        if bits == 8 and zeros == "float":  # onnxruntime has none of these
            continue
        blocks = (depth + block - 1) // block
        packed = u8(columns, blocks, block * bits // 8)
        scale = (0.1 * f32(columns * blocks)).astype(np.float32)
        zero = {None: None, "packed": Weight(u8(columns * ((blocks * bits + 7) // 8))), "float": Weight(f32(columns * blocks) + 7)}[zeros]
        case("MatMulNBits", [f32(2, 3, depth), Weight(packed), Weight(scale), zero, None, Weight(f32(columns)) if bias else None],
             K=depth, N=columns, bits=bits, block_size=block, tolerance=(1e-3, 1e-3))
    for columns, block in itertools.product((5, 8), (16, 32)):
        order = (RNG.permutation(64) // block).astype(np.int32)
        case("MatMulNBits", [f32(3, 64), Weight(u8(columns, 64 // block, block // 2)), Weight((0.1 * f32(columns * 64 // block)).astype(np.float32)), None,
                             Weight(order)], K=64, N=columns, bits=4, block_size=block, tolerance=(1e-3, 1e-3))
    for bits, zeros, columns in itertools.product((4, 8), (False, True), (32, 64)):
        blocks = columns // 16
        zero = Weight(u8(20, (blocks * bits + 7) // 8)) if zeros else None
        case("GatherBlockQuantized", [Weight(u8(20, columns * bits // 8)), np.array([[3, 0, 19], [7, 7, 1]], np.int64), Weight(f32(20, blocks)), zero],
             bits=bits, block_size=16, gather_axis=0, quantize_axis=1)


def quantized_attention():
    for zeros, causal, mask in itertools.product((False, True), (0, 1), (None, i32(3, 5))):
        case("QAttention", [u8(2, 5, 6), Weight(RNG.integers(-128, 128, (6, 24)).astype(np.int8)), Weight(f32(24)), Weight(np.float32(0.02)),
                            Weight(np.float32(0.01)), mask, Weight(np.uint8(120)) if zeros else None,
                            Weight(np.int8(3)) if zeros else None], num_heads=2, unidirectional=causal)


def recurrent():
    """Scales as onnxruntime's quantizer makes them: of int8 around 0, of uint8 with one zero point for all."""
    steps, batch, width, hidden = 4, 3, 6, 8

    def add(direction, kind, per_column, lengths=None, initial=False, bias=True, peepholes=False, outputs=(0, 1, 2), batch=batch, **attributes):
        count = 2 if direction == "bidirectional" else 1
        low, high, zero = (-127, 128, 0) if kind == np.int8 else (0, 256, 120)

        def weight(rows):
            scale = (0.002 + 0.002 * RNG.random((count, 4 * hidden) if per_column else (count,))).astype(np.float32)
            return (Weight(RNG.integers(low, high, (count, rows, 4 * hidden)).astype(kind)), Weight(scale),
                    Weight(np.full(scale.shape, zero, kind)))

        (w, w_scale, w_zero), (r, r_scale, r_zero) = weight(width), weight(hidden)
        states = [f32(count, batch, hidden), f32(count, batch, hidden)] if initial else [None, None]
        case("DynamicQuantizeLSTM", [f32(steps, batch, width), w, r, Weight(f32(count, 8 * hidden)) if bias else None, lengths, *states,
                                     Weight(f32(count, 3 * hidden)) if peepholes else None, w_scale, w_zero, r_scale, r_zero],
             outputs, direction=direction, hidden_size=hidden, **attributes)

    for direction, kind, per_column in itertools.product(("forward", "reverse", "bidirectional"), (np.int8, np.uint8), (False, True)):
        add(direction, kind, per_column)
        add(direction, kind, per_column, lengths=i32(4, 1, 3), initial=True, peepholes=True)
    for direction, lengths in itertools.product(("forward", "reverse", "bidirectional"), (i32(2, 1, 3), Weight(i32(3, 2, 2)), i32(2, 0, 3), None)):
        add(direction, np.int8, False, lengths=lengths, initial=True, outputs=(0,))
        add(direction, np.int8, False, lengths=lengths, initial=True)
        if lengths is None or (lengths.array if isinstance(lengths, Weight) else lengths).min() > 0:  # else onnxruntime reads what it has not written
            add(direction, np.int8, False, lengths=lengths, initial=True, outputs=(1, 2))
    add("forward", np.int8, False, batch=1, bias=False)
    add("forward", np.int8, True, bias=False, initial=True, clip=0.3)
    add("forward", np.int8, True, input_forget=1)
    add("bidirectional", np.int8, False, activations=["Sigmoid", "Tanh", "Tanh", "HardSigmoid", "Softsign", "Relu"])


def experts():
    tokens, hidden, inner, count = 6, 16, 32, 4
    for k, normalizes, activation, bias in itertools.product((1, 2), (0, 1), ("relu", "gelu", "silu", "identity"), (False, True)):
        case("MoE", [f32(tokens, hidden), f32(tokens, count), Weight(f32(count, inner, hidden)), Weight(f32(count, inner)) if bias else None,
                     Weight(f32(count, hidden, inner)), Weight(f32(count, hidden)) if bias else None],
             k=k, normalize_routing_weights=normalizes, activation_type=activation, tolerance=(1e-3, 1e-3))
    for k, bias, numbers in itertools.product((1, 2), (False, True), ({}, {"activation_alpha": 1.702, "activation_beta": 1.0}, {"swiglu_limit": 1.0})):
        case("MoE", [f32(tokens, hidden), f32(tokens, count), Weight(f32(count, 2 * inner, hidden)), Weight(f32(count, 2 * inner)) if bias else None,
                     Weight(f32(count, hidden, inner)), Weight(f32(count, hidden)) if bias else None],
             k=k, activation_type="swiglu", swiglu_fusion=1, tolerance=(1e-3, 1e-3), **numbers)
    for bits, k in itertools.product((4, 8), (1, 2)):
        case("QMoE", [f32(tokens, hidden), f32(tokens, count), Weight(u8(count, inner, hidden * bits // 8)), Weight(0.1 * f32(count, inner)), None,
                      Weight(u8(count, hidden, inner * bits // 8)), Weight(0.1 * f32(count, hidden)), None],
             k=k, activation_type="silu", expert_weight_bits=bits, normalize_routing_weights=1, tolerance=(1e-3, 1e-3))


def standard(op, inputs, outputs=(0,), **attributes):
    case(op, inputs, outputs, "", **attributes)


def sampling():
    for mode, padding, align in itertools.product(("linear", "nearest", "cubic"), ("zeros", "border", "reflection"), (0, 1)):
        image, grid = f32(2, 3, 5, 4), (1.6 * f32(2, 3, 6, 2)).astype(np.float32)
        standard("GridSample", [image, grid], opset=20, mode=mode, padding_mode=padding, align_corners=align)
        old = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
        standard("GridSample", [f32(1, 1, 1, 4), f32(1, 2, 2, 2)], opset=16, mode=old, padding_mode=padding, align_corners=align)
        if mode != "cubic":
            standard("GridSample", [f32(2, 2, 3, 5, 4), (1.6 * f32(2, 2, 3, 4, 3)).astype(np.float32)], opset=20, mode=mode,
                     padding_mode=padding, align_corners=align)
    regions = np.array([[0, 0, 9, 9], [2, 3, 7, 4], [-3, 1, 4, 12], [1, 1, 1, 1]], np.float32)
    for mode, ratio, edge, size, scale in itertools.product(("avg", "max"), (0, 2, 3), ("half_pixel", "output_half_pixel"), ((3, 3), (1, 2)), (1.0, 0.5)):
        standard("RoiAlign", [f32(2, 3, 8, 9), Weight(regions), np.array([0, 1, 0, 1], np.int64)], mode=mode, sampling_ratio=ratio,
                 coordinate_transformation_mode=edge, output_height=size[0], output_width=size[1], spatial_scale=scale)
    for groups, parts, mask, bias, (stride, dilation, pad) in itertools.product((1, 2), (1, 2), (False, True), (False, True), ((1, 1, 0), (2, 1, 1), (1, 2, 1))):
        rows, columns = ((size + 2 * pad - dilation * 2 - 1) // stride + 1 for size in (7, 6))
        standard("DeformConv", [f32(2, 4, 7, 6), Weight(f32(6, 4 // groups, 3, 3)), f32(2, parts * 18, rows, columns),
                                Weight(f32(6)) if bias else None, f32(2, parts * 9, rows, columns) if mask else None], opset=19,
                 group=groups, offset_group=parts, strides=[stride] * 2, dilations=[dilation] * 2, pads=[pad] * 4)
    for mode, region in itertools.product(("nearest", "linear"), ((0, 0, 0.42, 0.6, 1, 1, 0.63, 0.8), (0, 0, -0.2, 0.3, 1, 1, 1.25, 0.9))):
        standard("Resize", [f32(1, 2, 4, 5), Weight(np.array(region, np.float32)), None, Weight(np.array([1, 2, 3, 6], np.int64))],
                 mode=mode, coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.5)


def windows():
    for order, (shape, extra) in itertools.product((0, 1), (
            ((2, 3, 9), {"kernel_shape": [3], "strides": [2], "pads": [1, 0]}),
            ((2, 3, 6, 7), {"kernel_shape": [2, 3], "strides": [1, 2], "pads": [1, 1, 0, 1]}),
            ((2, 3, 6, 7), {"kernel_shape": [2, 2], "dilations": [2, 3]}),
            ((1, 2, 7, 7), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
            ((1, 2, 7, 6), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
            ((1, 2, 5, 4, 3), {"kernel_shape": [2, 2, 2]}))):
        standard("MaxPool", [f32(*shape)], (0, 1), storage_order=order, **extra)
    standard("MaxPool", [u8(1, 2, 6, 6)], (0, 1), kernel_shape=[2, 2], pads=[1, 1, 1, 1])
    standard("MaxUnpool", [f32(1, 2, 2, 2), np.array([[[[1, 3], [9, 11]], [[21, 22], [24, 31]]]], np.int64)], kernel_shape=[2, 2], strides=[2, 2])
    for strides, pads, dilations, image in (([1, 1], [0] * 4, [1, 1], [5, 5]), ([2, 1], [1, 0, 0, 1], [1, 1], [6, 5]), ([1, 2], [0] * 4, [2, 1], [6, 7])):
        counts = [(size + low + high - d * (k - 1) - 1) // s + 1
                  for size, low, high, d, k, s in zip(image, pads[:2], pads[2:], dilations, (2, 3), strides)]
        standard("Col2Im", [f32(2, 12, counts[0] * counts[1]), Weight(np.array(image, np.int64)), Weight(np.array([2, 3], np.int64))],
                 strides=strides, pads=pads, dilations=dilations)


def signals():
    for size in range(1, 8):
        standard("Det", [f32(2, 3, size, size)], tolerance=(1e-3, 1e-4))
    standard("Det", [np.array([[1, 2], [2, 4]], np.float32)])
    for axis, inverse, parts in itertools.product((1, 2), (0, 1), (1, 2)):
        standard("DFT", [f32(2, 6, 5, parts)], axis=axis, inverse=inverse, opset=17)
        standard("DFT", [f32(2, 6, 5, parts), Weight(np.array(8, np.int64)), Weight(np.array(axis, np.int64))], inverse=inverse, opset=20)
        standard("DFT", [f32(2, 6, 5, parts), Weight(np.array(4, np.int64)), Weight(np.array(axis, np.int64))], inverse=inverse, opset=20)
    for axis, length in itertools.product((1, 2), (None, 7)):
        standard("DFT", [f32(2, 6, 5, 1), None if length is None else Weight(np.array(length, np.int64))], axis=axis, onesided=1, opset=17)
    for window, onesided, step in itertools.product((None, f32(16)), (0, 1), (4, 16)):
        standard("STFT", [f32(2, 50, 1), Weight(np.array(step, np.int64)), window, Weight(np.array(16, np.int64))], onesided=onesided, opset=17,
                 tolerance=(1e-3, 1e-4))
    for mels, low, high in ((8, 0.0, 8000.0), (20, 100.0, 4000.0), (40, 0.0, 8000.0)):
        standard("MelWeightMatrix", [Weight(np.array(mels, np.int64)), Weight(np.array(256, np.int64)), Weight(np.array(16000, np.int64)),
                                     Weight(np.float32(low)), Weight(np.float32(high))], opset=17)


def selection():
    low = RNG.random((2, 12, 2)).astype(np.float32)
    boxes, scores = np.concatenate([low, low + RNG.random((2, 12, 2)).astype(np.float32)], 2), RNG.random((2, 3, 12)).astype(np.float32)
    for centered, overlap, least, most in itertools.product((0, 1), (0.1, 0.5), (None, 0.4), (2, 20)):
        standard("NonMaxSuppression", [Weight(boxes), Weight(scores), Weight(np.array([most], np.int64)), Weight(np.array([overlap], np.float32)),
                                       None if least is None else Weight(np.array([least], np.float32))], center_point_box=centered, opset=11)
    numbers = RNG.integers(0, 4, (3, 4, 2)).astype(np.float32)
    for ordered, axis in itertools.product((0, 1), (None, 0, 1, -1)):
        standard("Unique", [Weight(numbers)], (0, 1, 2, 3), sorted=ordered, axis=axis)
    for mode, skips, (least, most) in itertools.product(("TF", "IDF", "TFIDF"), (0, 2), ((1, 1), (1, 2), (2, 2))):
        standard("TfIdfVectorizer", [RNG.integers(1, 6, (2, 9)).astype(np.int64)], mode=mode, max_skip_count=skips, min_gram_length=least,
                 max_gram_length=most, ngram_counts=[0, 3], ngram_indexes=[0, 2, 1, 4, 3], pool_int64s=[1, 2, 3, 1, 2, 4, 4],
                 weights=[0.5, 2.0, 1.5, 3.0, 0.25])


def learning():
    def ml(op, inputs, outputs=(0,), **attributes):
        case(op, inputs, outputs, "ai.onnx.ml", **attributes)

    x = f32(5, 3)
    ml("Binarizer", [x], threshold=0.25, opset=1)
    ml("ArrayFeatureExtractor", [x, Weight(np.array([[0, 2]], np.int64))], opset=1)
    ml("Scaler", [x], offset=[0.5, 1.0, -1.0], scale=[2.0, 0.5, 1.0], opset=1)
    ml("Scaler", [x], offset=[0.5], scale=[2.0], opset=1)
    for norm in ("L1", "L2"):
        ml("Normalizer", [x], norm=norm, opset=1)
    ml("Normalizer", [np.abs(x)], norm="MAX", opset=1)
    for targets in (1, 2):
        ml("LinearRegressor", [x], targets=targets, coefficients=f32(3 * targets).tolist(), intercepts=f32(targets).tolist(), opset=1)
    for after in ("NONE", "LOGISTIC", "SOFTMAX"):
        ml("LinearClassifier", [x], (0, 1), coefficients=f32(9).tolist(), intercepts=f32(3).tolist(), classlabels_ints=[7, 2, 5], post_transform=after, opset=1)
    for joins, missing in itertools.product((0, 1, 2, 3), (0, 1)):
        data = f32(40, 3)
        data[::7, 0] = np.nan
        tensor = lambda values, kind: numpy_helper.from_array(np.array(values, kind))
        ml("TreeEnsemble", [data], opset=5, aggregate_function=joins, n_targets=2, tree_roots=[0, 2], nodes_featureids=[0, 1, 2, 0],
           nodes_splits=tensor([0.1, -0.2, 0.3, 0.0], np.float32), nodes_modes=tensor([0, 0, 0, 0], np.uint8),
           nodes_truenodeids=[1, 0, 3, 3], nodes_trueleafs=[0, 1, 0, 1], nodes_falsenodeids=[2, 1, 5, 4], nodes_falseleafs=[1, 1, 1, 1],
           nodes_missing_value_tracks_true=[missing] * 4, leaf_targetids=[0, 1, 0, 1, 0, 1], leaf_weights=tensor([1, 2, 3, 4, 5, 6], np.float32))
    data = f32(40, 3)
    shape = {"nodes_treeids": [0, 0, 0, 0, 0, 3, 3, 3], "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2], "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
             "nodes_values": [0.1, -0.2, 0, 0, 0, 0.3, 0, 0], "nodes_truenodeids": [1, 2, 0, 0, 0, 1, 0, 0], "nodes_falsenodeids": [4, 3, 0, 0, 0, 2, 0, 0]}
    for mode, joins, after, base in itertools.product(("LEQ", "LT", "GTE", "GT"), ("SUM", "AVERAGE", "MIN", "MAX"), ("NONE", "SOFTMAX"), (None, [0.5, -1.0])):
        modes = [f"BRANCH_{mode}"] * 2 + ["LEAF"] * 3 + [f"BRANCH_{mode}"] + ["LEAF"] * 2
        ml("TreeEnsembleRegressor", [data], opset=1, n_targets=2, aggregate_function=joins, post_transform=after, base_values=base, nodes_modes=modes, **shape,
           target_treeids=[0] * 6 + [3] * 4, target_nodeids=[2, 2, 3, 3, 4, 4, 1, 1, 2, 2], target_ids=[0, 1] * 5,
           target_weights=[1.0, 2.0, 3.0, 4.0, -5.0, 6.0, 0.5, 0.25, -1.0, 2.0])  # each leaf of both: onnxruntime leaves out the base of others
    modes = ["BRANCH_LEQ"] * 2 + ["LEAF"] * 3 + ["BRANCH_LEQ"] + ["LEAF"] * 2
    for after in ("NONE", "SOFTMAX", "LOGISTIC"):
        ml("TreeEnsembleClassifier", [data], (0, 1), opset=1, classlabels_int64s=[7, 3, 5], post_transform=after, nodes_modes=modes, **shape,
           class_treeids=[0, 0, 0, 3, 3], class_nodeids=[2, 3, 4, 1, 2], class_ids=[0, 1, 2, 1, 2], class_weights=[1.0, 2.0, 0.5, 4.0, 1.5])
    for after, weights in (("NONE", [0.1, 0.2, 0.3, 0.1, 0.6]), ("NONE", [-0.1, 0.2, 0.3, 0.1, -0.6]), ("LOGISTIC", [-0.1, 0.2, 0.3, 0.1, -0.6])):
        ml("TreeEnsembleClassifier", [data], (0, 1), opset=1, classlabels_int64s=[4, 9], post_transform=after, nodes_modes=modes, **shape,
           class_treeids=[0, 0, 0, 3, 3], class_nodeids=[2, 3, 4, 1, 2], class_ids=[0] * 5, class_weights=weights)


def model(op, inputs, outputs, domain, opset, attributes):
    """A model of one node, and the arrays that feed it."""
    feeds, initializers, names = {}, [], []
    for index, value in enumerate(inputs):
        name = "" if value is None else f"in{index}"
        names.append(name)
        if isinstance(value, Weight):
            initializers.append(numpy_helper.from_array(value.array, name))
        elif value is not None:
            feeds[name] = np.asarray(value)
    results = [f"out{i}" if i in outputs else "" for i in range(max(outputs) + 1)]
    node = helper.make_node(op, names, results, name="n", domain=domain, **attributes)
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()]
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=n) for n in results if n], initializers)
    opsets = [helper.make_opsetid("", opset if domain == "" else 18), helper.make_opsetid(domain or DOMAIN, 1 if domain in ("", DOMAIN) else opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), feeds


def run(path, feeds):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # each thread of a quantized LSTM has a range of its own
    ort.set_default_logger_severity(4)
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def sharded(cases):
    """Runs on two ranks against one."""
    found = {}
    for entry in cases:
        found.setdefault(entry[1], []).append(entry)
    bad, count, left_out = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for label, op, inputs, outputs, domain, _, opset, attributes in (e for group in found.values() for e in {id(e): e for e in (group[0], group[-1])}.values()):
            proto, feeds = model(op, inputs, outputs, domain, opset, attributes)
            path = os.path.join(folder, "model.onnx")
            onnx.save(proto, path)
            np.savez(path[:-5] + ".npz", **feeds)
            name, array = next(iter(feeds.items()), ("", np.zeros(())))
            dims = [dim for dim, size in enumerate(array.shape) if size and size % 2 == 0]
            for dim, who in [(dim, "reference") for dim in dims] + [(dim, "program") for dim in dims[:1]]:
                count += 1
                rule = f"{name}=[{', '.join('a' if dim == other else '_' for other in range(array.ndim))}]"
                if not harness.is_due(f"{label} {rule} {who}"):
                    left_out += 1
                    continue
                done = subprocess.run(["cleave", "run", path, "--inputs", path[:-5] + ".npz", "--mesh", "a=2", "--shard", rule, "--check", "--quiet",
                                       "--executor", who],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                if done.returncode:
                    bad.append(f"{label} {rule} {who}: {done.stdout[-300:]}")
    return harness.sum_up(bad, count, left_out)


def main():
    for add in (activations, norms, products, attention, rotary, group_query, quantized_caches, n_bits, quantized_attention, recurrent, experts, sampling,
                windows, signals, selection, learning):
        add()
    names = tuple(name for name in sys.argv[1:] if name != "--sharded")
    cases = [entry for entry in CASES if not names or entry[0].startswith(names)]
    if "--sharded" in sys.argv:
        return sharded(cases)
    refused, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        for index, (label, op, inputs, outputs, domain, (rtol, atol), opset, attributes) in enumerate(cases):
            proto, feeds = model(op, inputs, outputs, domain, opset, attributes)
            path = os.path.join(folder, f"{index}.onnx")
            onnx.save(proto, path)
            try:
                expected = run(path, feeds)
            except Exception as error:
                refused.append(f"onnxruntime refuses {label}: {str(error)[:300]}")
                continue
            arrays = {f"in:{name}": value for name, value in feeds.items()}
            arrays.update({f"out:out{i}": np.asarray(value) for i, value in zip(sorted(outputs), expected)})
            np.savez(path[:-5] + ".npz", **arrays)
            rows.append((label, path, path[:-5] + ".npz", rtol, atol))
        return harness.compare(rows, refused)


if __name__ == "__main__":
    sys.exit(main())
