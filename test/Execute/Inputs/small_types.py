"""Casts to and from floats of 8 and 4 bits and integers of 4 and 2, and weights of them, held against ml_dtypes and the formulas of
onnx.numpy_helper: `small_types.py FOLDER`. Prints `N passed, N failed`; what failed comes before.

Every value of the small types is widened, and every value of f16, and some of f32 about each tie, is narrowed; by the evaluator and
by a program.
"""

import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOATS = {"FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn, "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
          "FLOAT8E5M2": ml_dtypes.float8_e5m2, "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
          "FLOAT8E8M0": ml_dtypes.float8_e8m0fnu, "FLOAT4E2M1": ml_dtypes.float4_e2m1fn}
INTEGERS = {"INT4": (ml_dtypes.int4, 4), "UINT4": (ml_dtypes.uint4, 4), "INT2": (ml_dtypes.int2, 2), "UINT2": (ml_dtypes.uint2, 2)}
WAYS = [[], ["--executor=program"]]


def run(folder, nodes, inputs, outputs, initializers=(), options=()):
    """The outputs of a model of these nodes, as `cleave run` gives them."""
    infos = [helper.make_tensor_value_info(name, kind, array.shape) for name, (kind, array) in inputs.items()]
    graph = helper.make_graph(nodes, "small", infos, [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
                              list(initializers))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13), f"{folder}/m.onnx")
    np.savez(f"{folder}/in.npz", **{name: array for name, (_, array) in inputs.items()})
    done = subprocess.run(["cleave", "run", f"{folder}/m.onnx", "--inputs", f"{folder}/in.npz", "--outputs", f"{folder}/out.npz",
                           "--quiet", *options], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    with np.load(f"{folder}/out.npz") as arrays:
        return {name: arrays[name] for name in outputs}


def hard_numbers():
    """Every f16, and f32 at and beside each number that lies between two of f16, which all ties of the small types are near."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    halves = np.where(np.isnan(halves), np.float32(np.nan), halves)
    finite = halves[np.isfinite(halves)]
    near = np.concatenate([np.nextafter(finite, np.float32(sign * np.inf)) for sign in (-1, 1)])
    large = np.array([2.0**e * s for e in range(-149, 128) for s in (1, 1.5, 1.25, 1.75, -1)], np.float32)
    return np.concatenate([halves, near, large])


def as_floats(array, kind):
    return array.view(np.uint8).view(FLOATS[kind]).astype(np.float32)


def narrowed(numbers, kind, saturates, mode):
    """What ONNX says that a cast gives."""
    if kind == "FLOAT8E8M0":
        return numpy_helper.to_float8e8m0(numbers, saturates, mode)
    if saturates and kind != "FLOAT4E2M1":
        return numpy_helper.saturate_cast(numbers, FLOATS[kind])
    return numbers.astype(FLOATS[kind])


def narrow(folder, options, kind, saturates, mode):
    number = getattr(TensorProto, kind)
    attributes = {"round_mode": mode} if kind == "FLOAT8E8M0" else {}
    numbers = hard_numbers()
    node = helper.make_node("Cast", ["x"], ["y"], to=number, saturate=int(saturates), **attributes)
    got = as_floats(run(folder, [node], {"x": (TensorProto.FLOAT, numbers)}, {"y": number}, options=options)["y"], kind)
    want = narrowed(numbers, kind, saturates, mode).astype(np.float32)
    same = (got.view(np.uint32) == want.view(np.uint32)) | (np.isnan(got) & np.isnan(want))
    bad = np.flatnonzero(~same)
    return f"{len(bad)} differ: {numbers[bad[0]]} is {got[bad[0]]}, expected {want[bad[0]]}" if len(bad) else ""


def widen(folder, options, kind):
    codes = np.arange(16 if kind == "FLOAT4E2M1" else 256, dtype=np.uint8)
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)
    got = run(folder, [node], {"x": (getattr(TensorProto, kind), codes.view("V1"))}, {"y": TensorProto.FLOAT}, options=options)["y"]
    want = as_floats(codes, kind)
    same = (got.view(np.uint32) == want.view(np.uint32)) | (np.isnan(got) & np.isnan(want))
    return "" if same.all() else f"{codes[~same]} are {got[~same]}, expected {want[~same]}"


def integers(folder, options, kind):
    """Low bits stay of i32, floats are truncated first; back, the sign comes from the top bit."""
    _, bits = INTEGERS[kind]
    number = getattr(TensorProto, kind)
    whole, real = np.arange(-300, 300, dtype=np.int32), np.linspace(-8.9, 15.9, 300).astype(np.float32)
    nodes = [helper.make_node("Cast", [name], [f"{name}s"], to=number) for name in "ir"]
    nodes += [helper.make_node("Cast", [f"{name}s"], [f"{name}w"], to=TensorProto.INT32) for name in "ir"]
    got = run(folder, nodes, {"i": (TensorProto.INT32, whole), "r": (TensorProto.FLOAT, real)},
              {"iw": TensorProto.INT32, "rw": TensorProto.INT32}, options=options)
    for name, values in (("iw", whole), ("rw", np.trunc(real).astype(np.int32))):
        low = values & ((1 << bits) - 1)
        want = low if kind[0] == "U" else np.where(low >> (bits - 1), low - (1 << bits), low)
        if not np.array_equal(got[name], want):
            return f"{got[name]}, expected {want}"
    return ""


def weights(folder, options, kind, columns, place):
    """A weight with blocks of scales, in each encoding that a file may have, over the end of a byte, too."""
    rng = np.random.default_rng(columns)
    dtype, bits = INTEGERS.get(kind) or (FLOATS[kind], 4)
    weight = rng.integers(0, 1 << bits, (24, columns), dtype=np.uint8).view(dtype)
    if kind in INTEGERS:  # upper bits are the sign's
        weight = weight.astype(np.int32).astype(dtype)
    scale = rng.random((3, columns), np.float32) + 0.5
    x = rng.standard_normal((4, 24), np.float32)
    number = getattr(TensorProto, kind)
    tensor = numpy_helper.from_array(weight, "w")
    if place == "int32_data":
        packed = np.frombuffer(tensor.raw_data, np.uint8)
        tensor.ClearField("raw_data")
        tensor.int32_data.extend(packed.tolist())
    if place == "external":
        with open(f"{folder}/w.bin", "wb") as file:
            file.write(b"1234" + tensor.raw_data)
        onnx.external_data_helper.set_external_data(tensor, "w.bin", 4, len(tensor.raw_data))
        tensor.ClearField("raw_data")
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["f"], axis=0, block_size=8), helper.make_node("MatMul", ["x", "f"], ["y"])]
    got = run(folder, nodes, {"x": (TensorProto.FLOAT, x)}, {"y": TensorProto.FLOAT},
              [tensor, numpy_helper.from_array(scale, "s")], options)["y"]
    want = x.astype(np.float64) @ (weight.astype(np.float64) * np.repeat(scale.astype(np.float64), 8, axis=0))
    return "" if np.allclose(got, want, rtol=1e-4, atol=1e-4) else f"off by {np.abs(got - want).max()}"


def refused(folder, options, kind):
    """36 columns are 9 for each of four ranks: too few bytes to cut so, and no rank gets others instead."""
    try:
        weights(folder, options, kind, 36, "raw_data")
    except RuntimeError as error:
        shared = 8 // INTEGERS[kind][1]
        reason = f"has size 36 in dim 1, of which axis \"m\"=4 makes shards of 9: {shared} elements share a byte"
        return "" if "'w'" in str(error) and reason in str(error) else str(error)
    return "was not refused"


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    cut = ["--mesh", "m=2", "--shard", "x=[m, _]"]
    cases = [(narrow, kind, saturates, mode) for kind in FLOATS for saturates in (True, False)
             for mode in (("up", "down", "nearest") if kind == "FLOAT8E8M0" else ("",))]
    cases += [(widen, kind) for kind in FLOATS] + [(integers, kind) for kind in INTEGERS]
    ways = [(case, way) for case in cases for way in WAYS]
    with open(f"{folder}/uneven.yaml", "w") as file:
        file.write("uneven: true\n")
    # Half of 24 rows are a block and a half.
    inside = [*cut, "--plan", f"{folder}/uneven.yaml", "--shard", "w=[m, _]"]
    plans = [*WAYS, [*cut, "--shard", "w=[_, m]"], inside, [*cut, "--executor=program"]]
    for kind in [*INTEGERS, "FLOAT4E2M1"]:
        # Of 32 columns rows end with bytes; of 33 they do not, and no plan can name what is stored.
        ways += [((weights, kind, 32, place), plan) for place in ("raw_data", "int32_data", "external") for plan in plans]
        ways += [((weights, kind, 33, "raw_data"), plan) for plan in (*WAYS, cut, [*cut, "--shard", "w=[m, _]"])]
    # Shards that end inside of a byte: no rank has half of one.
    uneven = ["--mesh", "m=4", "--plan", f"{folder}/uneven.yaml", "--shard", "w=[_, m]"]
    ways += [((weights, kind, columns, "raw_data"), [*uneven, *way]) for kind in ("INT4", "UINT2") for columns in (30, 33, 36) for way in WAYS]
    ways += [((refused, kind), ["--mesh", "m=4", "--shard", "w=[_, m]"]) for kind in ("INT4", "UINT2")]
    passed = failed = 0
    for (check, *rest), way in ways:
        try:
            problem = check(folder, way, *rest)
        except RuntimeError as error:
            problem = str(error)
        passed, failed = passed + (not problem), failed + bool(problem)
        if problem:
            print(f"{check.__name__} {rest} {' '.join(way)}: {problem}")
    print(f"{passed} passed, {failed} failed")


if __name__ == "__main__":
    main()
