"""Selections of what data tell, against onnxruntime: what is found must be in front, as many rows as the count says, and padding
behind. Whole and on two ranks, by the evaluator and as programs; and as detection models have it, with the boxes gathered.

Prints `N passed, N failed of N`; what failed comes before.
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

RNG = np.random.default_rng(3)
ort.set_default_logger_severity(4)


def model(nodes, inputs, outputs, constants):
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()]
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name=n) for n in outputs],
                              [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def boxes_and_scores(batch, classes, count, spread):
    low = spread * RNG.random((batch, count, 2))
    boxes = np.concatenate([low, low + 0.2 + RNG.random((batch, count, 2))], 2).astype(np.float32)
    scores = RNG.random((batch, classes, count)).astype(np.float32)
    scores[..., ::5] = scores[..., 1:2]  # equal ones: the first wins
    return {"boxes": boxes, "scores": scores}


def suppress(inputs, most, overlap, least, centered, gathers):
    """Boxes and scores are computed, so that they are not known when the model is imported."""
    constants = {"most": np.array([most], np.int64), "overlap": np.array([overlap], np.float32), "two": np.array([2], np.int64),
                 "one": np.array([1], np.int64), **({} if least is None else {"least": np.array([least], np.float32)})}
    make = helper.make_node
    nodes = [make("Abs", ["boxes"], ["b"]), make("Abs", ["scores"], ["s"]),
             make("NonMaxSuppression", ["b", "s", "most", "overlap", "" if least is None else "least"], ["found"], center_point_box=centered)]
    if gathers:
        nodes += [make("Gather", ["found", "two"], ["column"], axis=1), make("Squeeze", ["column", "one"], ["flat"]),
                  make("Gather", ["boxes", "flat"], ["kept"], axis=1), make("Mul", ["kept", "kept"], ["products"]), make("Sin", ["products"], ["squares"])]
    rows = {"found": (0, -1), **({"squares": (1, None)} if gathers else {})}
    return model(nodes, inputs, list(rows), constants), inputs, rows, "found.count"


def suppress_none(batch, classes, count, most):
    """Nothing to choose from or nothing to choose: there is no padding, so that nothing is said of any."""
    proto, inputs, _, _ = suppress(boxes_and_scores(batch, classes, count, 3), most, 0.3, None, 0, False)
    return proto, inputs, {"found": (None, None)}, None


def unique(x, is_sorted):
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Unique", ["n"], ["values", "places", "inverse", "counts"], sorted=is_sorted)]
    rows = {"values": (0, 0), "places": (0, -1), "inverse": (None, None), "counts": (0, 0)}
    return model(nodes, {"x": x}, list(rows), {}), {"x": x}, rows, "values.count"


def cases():
    for centered, overlap, least, (batch, classes, count, most) in itertools.product(
            (0, 1), (0.1, 0.5), (None, 0.4), ((1, 1, 12, 20), (2, 3, 12, 4), (2, 2, 30, 30))):
        yield (f"NonMaxSuppression {centered} {overlap} {least} {batch}x{classes}x{count} {most}",
               *suppress(boxes_and_scores(batch, classes, count, 3), most, overlap, least, centered, False))
    yield "gathered", *suppress(boxes_and_scores(1, 2, 24, 3), 8, 0.3, 0.7, 0, True)
    yield "nothing", *suppress(boxes_and_scores(1, 2, 8, 3), 8, 0.3, 2.0, 0, False)
    yield "no boxes", *suppress_none(1, 2, 0, 5)
    yield "no classes", *suppress_none(1, 0, 4, 5)
    yield "none wanted", *suppress_none(1, 2, 4, 0)
    for is_sorted, kind, size in itertools.product((0, 1), (np.float32, np.int64, np.int8), (1, 12, 40)):
        yield f"Unique {is_sorted} {kind.__name__} {size}", *unique(RNG.integers(0, 9, size).astype(kind), is_sorted)


def difference(got, expected, rows, count):
    """What is wrong, or an empty string. Along `dim` only the first rows count; of padding some has a value that is documented."""
    for (name, (dim, padding)), want in zip(rows.items(), expected):
        have, number = got[name], None if dim is None else want.shape[dim]
        if dim is not None:
            if number != got[count]:
                return f"{count} is {got[count]}, expected {number}"
            have, rest = np.split(have, [number], dim)
            if padding is not None and rest.size and not (rest[..., -1:] == padding).all():
                return f"padding of {name} is not {padding}"
        if have.shape != want.shape or have.dtype != want.dtype or not np.allclose(have, want, 1e-6):
            return f"{name} is {have.tolist()}, expected {want.tolist()}"
    return ""


def main():
    bad, number, left_out = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path, given, out = (os.path.join(folder, name) for name in ("model.onnx", "in.npz", "out.npz"))
        for label, proto, inputs, rows, count in cases():
            onnx.save(proto, path)
            np.savez(given, **inputs)
            expected = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, inputs)
            name, array = next(iter(inputs.items()))
            cuts = [[]] + [["--mesh", "a=2", "--shard", f"{name}=[{', '.join('a' if d == dim else '_' for d in range(array.ndim))}]"]
                           for dim, size in enumerate(array.shape[:2]) if size % 2 == 0]
            for cut, who in itertools.product(cuts, ("reference", "program")):
                number += 1
                if not harness.is_due(f"{label} {cut} {who}"):
                    left_out += 1
                    continue
                done = subprocess.run(["cleave", "run", path, "--inputs", given, "--outputs", out, "--executor", who, "--remarks", *cut],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                problem = done.stdout[-300:] if done.returncode else difference(np.load(out), expected, rows, count)
                if not done.returncode and ("has room for" in done.stdout) != (count is not None):
                    problem = problem or f"{'no' if count else 'a'} remark on padding"
                if problem:
                    bad.append(f"{label} {cut} {who}: {problem}")
    return harness.sum_up(bad, number, left_out)


if __name__ == "__main__":
    sys.exit(main())
