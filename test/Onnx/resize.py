"""Random resizes against the formulas of the ONNX text, in fractions: all modes, coordinates, roundings, by scales and by sizes; and crops.

    resize.py BUILD_DIR [CASE...]

A case is a model of some Resize nodes on one input. What each must give is computed here: along a dim a position of the result is a
fraction, so that which element is nearest is exact, and weights are those of the text. Scales are the f32 numbers of the model. Where
ONNX's own reference says the same (docs/import.md), its result is held against the formulas, too. The evaluator runs each model, a
program does, and, where a dim can be cut, the evaluator on two ranks and on three.

Crops (`tf_crop_and_resize`) are models of their own, with regions that reach outside, are turned round, or end where the input does. There
onnxruntime is held against the formulas as well, where it does what the reference does: pictures, whose extents are whole by scales, too.
"""
import itertools
import os
import sys
import tempfile
from fractions import Fraction
from math import floor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import onnxruntime
from onnx.reference import ReferenceEvaluator

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
MODES = ("nearest", "linear", "cubic")
MODELS, NODES = 48, 12
CROPS, OUTSIDE = 24, -9.5
HALF = Fraction(1, 2)


def source(coordinates, i, extent, made, scale):
    length = scale * extent
    if coordinates == "asymmetric":
        return i / scale
    if coordinates == "align_corners":
        return Fraction(0) if length == 1 else i * (extent - 1) / (length - 1)
    if coordinates == "pytorch_half_pixel" and made == 1:
        return Fraction(0)
    x = (i + HALF) / scale - HALF
    return x + Fraction(extent, 2) * (1 - made / length) if coordinates == "half_pixel_symmetric" else x


def nearest(rounding, x):
    rest = x - floor(x)
    up = {"floor": False, "ceil": rest > 0, "round_prefer_floor": rest > HALF, "round_prefer_ceil": rest >= HALF}[rounding]
    return floor(x) + up


def weight(mode, a, distance):
    x = abs(distance)
    if mode == "linear":
        return max(0.0, 1 - x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def table(options, extent, made, scale):
    """Of each position of the result the weight of every element."""
    weights = np.zeros((made, extent))
    shrink = min(1.0, float(scale)) if options["antialias"] else 1.0
    for i in range(made):
        x = source(options["coordinates"], Fraction(i), extent, made, scale)
        if options["mode"] == "nearest":
            weights[i, min(max(nearest(options["rounding"], x), 0), extent - 1)] = 1
            continue
        reach = int((1 if options["mode"] == "linear" else 2) / shrink) + 2
        taps = [(at, weight(options["mode"], options["cubic"], float(at - x) * shrink)) for at in range(floor(x) - reach, floor(x) + reach + 1)]
        if options["exclude"]:
            taps = [(at, value) for at, value in taps if 0 <= at < extent]
        total = sum(value for _, value in taps) if options["exclude"] or options["antialias"] else 1.0
        for at, value in taps:
            weights[i, min(max(at, 0), extent - 1)] += value / total
    return weights


def draw(random, shape):
    """Options of a node, its third and fourth operand, and per dim the extent made and the scale."""
    options = {"mode": str(random.choice(MODES)), "coordinates": str(random.choice(COORDINATES)), "rounding": str(random.choice(ROUNDINGS)),
               "exclude": False, "antialias": False, "cubic": float(np.float32(random.choice([-0.75, -0.5])))}
    if options["mode"] != "nearest":
        options["antialias"] = bool(random.random() < 0.3)
        options["exclude"] = bool(random.random() < 0.3)
    axes = sorted(random.choice(len(shape), int(random.integers(1, len(shape) + 1)), replace=False).tolist())
    made, scales = list(shape), [Fraction(1)] * len(shape)
    attributes = {"axes": axes}
    if random.random() < 0.5:
        given = [np.float32(random.choice([0.1, 1 / 3, 0.5, 0.6, 0.7, 1.25, 1.5, 2, 3, random.uniform(0.2, 3)])) for _ in axes]
        given = [max(each, np.float32(1 / shape[axis])) for each, axis in zip(given, axes)]
        for each, axis in zip(given, axes):
            # As ONNX infers shapes.
            made[axis] = max(int(np.floor(np.float32(shape[axis]) * each)), 1)
            scales[axis] = Fraction(float(each))
        if any(made[axis] > np.floor(np.float32(shape[axis]) * each) for each, axis in zip(given, axes)):
            return draw(random, shape)
        return options, attributes, np.array(given, np.float32), None, made, scales
    given = [int(random.choice([1, 2, shape[axis], int(random.integers(1, 3 * shape[axis] + 1))])) for axis in axes]
    policy = str(random.choice(["stretch", "stretch", "not_larger", "not_smaller"]))
    ratios = [Fraction(size, shape[axis]) for size, axis in zip(given, axes)]
    common = {"stretch": None, "not_larger": min(ratios), "not_smaller": max(ratios)}[policy]
    for size, ratio, axis in zip(given, ratios, axes):
        scales[axis] = common or ratio
        made[axis] = floor(common * shape[axis] + HALF) if common else size
    if 0 in made:
        return draw(random, shape)
    attributes["keep_aspect_ratio_policy"] = policy
    return options, attributes, None, np.array(given, np.int64), made, scales


def agrees_with_reference(options, scales, made, shape):
    """Where ONNX's reference follows the text, and its positions, which are f64, are as good as fractions: none that is whole or halfway is off by a bit."""
    by_scales = all(float(np.float32(float(scale))) == float(scale) for scale in scales)
    if options["mode"] == "nearest" and not by_scales or options["coordinates"] == "pytorch_half_pixel" and 1 in made:
        return False
    exact = by_scales and options["coordinates"] in ("asymmetric", "half_pixel", "pytorch_half_pixel")
    hits = any(source(options["coordinates"], Fraction(i), extent, size, scale).denominator <= 2
               for extent, size, scale in zip(shape, made, scales) for i in range(size))
    return (exact or not hits) and (not by_scales or all(int(float(scale) * extent) == size for scale, extent, size in zip(scales, shape, made)))


def crop_place(i, extent, length, start, end):
    """Where position i is in the input, as a fraction."""
    last = extent - 1
    return (start + end) * last / 2 if length == 1 else start * last + i * (end - start) * last / (length - 1)


def crop_table(options, extent, made, length, start, end):
    """(weights as of `table`, whether a position is outside, whether rounding would decide nothing)."""
    weights, outside, is_firm = np.zeros((made, extent)), np.zeros(made, bool), True
    for i in range(made):
        x = crop_place(Fraction(i), extent, length, start, end)
        outside[i] = not 0 <= x <= extent - 1
        borders = [Fraction(floor(2 * x + HALF), 2)] if options["mode"] == "nearest" else [Fraction(0), Fraction(extent - 1)]
        is_firm &= x == start == 0 or all(abs(x - border) > Fraction(1, 1000) for border in borders)
        x = min(max(x, Fraction(0)), Fraction(extent - 1))
        if options["mode"] == "nearest":
            weights[i, min(max(nearest(options["rounding"], x), 0), extent - 1)] = 1
            continue
        taps = [(at, weight(options["mode"], options["cubic"], float(at - x))) for at in range(floor(x) - 2, floor(x) + 4)]
        if options["exclude"]:
            taps = [(at, value) for at, value in taps if 0 <= at < extent]
        total = sum(value for _, value in taps) if options["exclude"] else 1.0
        for at, value in taps:
            weights[i, min(max(at, 0), extent - 1)] += value / total
    return weights, outside, is_firm


def make_crops(seed):
    """Nodes of tf_crop_and_resize on one picture, or on an input of another rank."""
    random = np.random.default_rng(1000 + seed)
    is_picture = seed % 2 == 0
    shape = [int(extent) for extent in random.choice([2, 3, 4, 5, 6, 7, 8, 10, 12], 4 if is_picture else int(random.integers(1, 4)))]
    x = random.standard_normal(shape).astype(np.float32)
    nodes, initializers, outputs, wanted = [], [], [], {}
    for number in range(NODES):
        options = {"mode": str(random.choice(MODES)), "rounding": str(random.choice(ROUNDINGS)), "exclude": False, "cubic": -0.75}
        options["exclude"] = bool(options["mode"] == "cubic" and random.random() < 0.5)
        axes = [2, 3] if is_picture else sorted(random.choice(len(shape), int(random.integers(1, len(shape) + 1)), replace=False).tolist())
        region = [np.float32(each) for each in (*random.choice([0, 0, 0.1, 0.37, -0.2, 1], len(axes)), *random.choice([1, 1, 0.83, 0.6, 1.4, 0.2], len(axes)))]
        is_scaled, name = bool(random.random() < 0.5), f"y{number}"
        given = [np.float32(max(random.choice([0.5, 0.6, 1.5, 2, 2.3]), 1 / shape[axis])) if is_scaled else int(random.integers(1, 14)) for axis in axes]
        made = list(shape)
        value, outside, is_firm, is_whole = x.astype(np.float64), np.zeros([1] * len(shape), bool), True, True
        for at, axis in enumerate(axes):
            length = Fraction(float(given[at])) * shape[axis] if is_scaled else Fraction(given[at])
            made[axis] = int(np.floor(np.float32(shape[axis]) * given[at])) if is_scaled else given[at]
            is_whole &= length == made[axis]
            is_firm &= floor(length) == made[axis]  # what the reference takes
            start, end = (Fraction(float(each)) for each in (region[at], region[len(axes) + at]))
            weights, out, firm = crop_table(options, shape[axis], made[axis], length, start, end)
            is_firm &= firm
            value = np.moveaxis(np.tensordot(weights, value, (1, axis)), 0, axis)
            outside = outside | out.reshape([made[axis] if dim == axis else 1 for dim in range(len(shape))])
        wanted[name] = np.where(outside, OUTSIDE, value)
        initializers += [numpy_helper.from_array(np.array(region), f"r{number}"),
                         numpy_helper.from_array(np.array(given, np.float32 if is_scaled else np.int64), f"s{number}")]
        nodes.append(helper.make_node("Resize", ["x", f"r{number}", *([""] * (not is_scaled)), f"s{number}"], [name], name, mode=options["mode"],
                                      nearest_mode=options["rounding"], coordinate_transformation_mode="tf_crop_and_resize", axes=axes,
                                      extrapolation_value=OUTSIDE, cubic_coeff_a=options["cubic"], exclude_outside=int(options["exclude"])))
        outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, made))
        if is_firm:
            alone = helper.make_graph([nodes[-1]], "alone", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], [outputs[-1]],
                                      initializers[-2:])
            model = helper.make_model(alone, opset_imports=[helper.make_opsetid("", 19)], ir_version=10)
            witnesses = {"reference": ReferenceEvaluator(model)}
            # An axis that keeps its size is copied there.
            if is_picture and is_whole and all(made[axis] != shape[axis] for axis in axes):
                witnesses["onnxruntime"] = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            for witness, session in witnesses.items():
                (told,) = session.run(None, {"x": x})
                SEEN[witness] = SEEN.get(witness, 0) + 1
                assert told.shape == value.shape and np.allclose(told, wanted[name], 1e-5, 1e-4), f"{name}: {witness} says {told}, the text {wanted[name]}"
    graph = helper.make_graph(nodes, "crops", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=10), x, wanted


def make_model(seed):
    random = np.random.default_rng(seed)
    shape = [int(extent) for extent in random.choice([1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 22, 30], int(random.integers(1, 4)))]
    x = (np.arange(np.prod(shape)) + random.uniform(-0.2, 0.2, int(np.prod(shape)))).astype(np.float32).reshape(shape)
    nodes, initializers, outputs, wanted = [], [], [], {}
    for number in range(NODES):
        options, attributes, scales, sizes, made, ratios = draw(random, shape)
        name, operands = f"y{number}", ["x", ""]
        for each in (scales, sizes):
            if each is not None:
                initializers.append(numpy_helper.from_array(each, f"s{number}"))
            operands.append(f"s{number}" if each is not None else "")
        while not operands[-1]:
            operands.pop()
        nodes.append(helper.make_node("Resize", operands, [name], name, mode=options["mode"], nearest_mode=options["rounding"],
                                      coordinate_transformation_mode=options["coordinates"], cubic_coeff_a=options["cubic"],
                                      exclude_outside=int(options["exclude"]), antialias=int(options["antialias"]), **attributes))
        outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, made))
        value = x.astype(np.float64)
        for dim, (extent, size, ratio) in enumerate(zip(shape, made, ratios)):
            if ratio != 1 or size != extent:
                value = np.moveaxis(np.tensordot(table(options, extent, size, ratio), value, (1, dim)), 0, dim)
        wanted[name] = value
        if agrees_with_reference(options, ratios, made, shape):
            alone = helper.make_graph([nodes[-1]], "alone", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], [outputs[-1]],
                                      initializers[-1:])
            model = helper.make_model(alone, opset_imports=[helper.make_opsetid("", 19)])
            (told,) = ReferenceEvaluator(model).run(None, {"x": x})
            assert told.shape == value.shape and np.allclose(told, value, 1e-5, 1e-4), f"{name}: the reference says {told}, the text {value}"
    graph = helper.make_graph(nodes, "resize", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=10), x, wanted


def problem(case):
    model, x, wanted = case()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.onnx")
        onnx.save(model, path)
        np.savez(os.path.join(folder, "x.npz"), x=x)
        ways = {"evaluator": [], "program": ["--executor", "program"]}
        for dim, ranks in itertools.product(range(x.ndim), (2, 3)):
            if x.shape[dim] % ranks:
                continue
            rule = "[" + ", ".join("d" if at == dim else "_" for at in range(x.ndim)) + "]"
            ways[f"{ranks} ranks along {dim}"] = ["--mesh", f"d={ranks}", "--shard", f"x={rule}"]
        for way, words in ways.items():
            done = harness.cleave(BUILD, "run", path, "--inputs", os.path.join(folder, "x.npz"), "--outputs", os.path.join(folder, "y.npz"), "--quiet",
                                  *words)
            if done.returncode:
                return f"{way}: exit {done.returncode}: {done.stderr or done.stdout}"
            got = np.load(os.path.join(folder, "y.npz"))
            for node in model.graph.node:
                name = node.output[0]
                mode = next(attr.s for attr in node.attribute if attr.name == "mode")
                same = got[name].shape == wanted[name].shape and (
                    np.array_equal(got[name], wanted[name].astype(np.float32)) if mode == b"nearest"
                    else np.allclose(got[name], wanted[name], 1e-5, 1e-5 * max(1, np.abs(wanted[name]).max())))
                if not same:
                    return f"{way}: {onnx.printer.to_text(node)}\n{got[name]}\nexpected\n{wanted[name]}"
    return None


BUILD, NAMES, _ = harness.arguments()
SEEN = {}
CASES = {f"resize-{seed}": lambda seed=seed: make_model(seed) for seed in range(MODELS)}
CASES |= {f"crop-{seed}": lambda seed=seed: make_crops(seed) for seed in range(CROPS)}
FAILED = harness.run(harness.select(CASES, NAMES), problem)
if not NAMES and not harness.is_drawn() and (SEEN.get("reference", 0) < 80 or SEEN.get("onnxruntime", 0) < 10):
    sys.exit(f"crops are held against {SEEN}")
sys.exit(FAILED)
