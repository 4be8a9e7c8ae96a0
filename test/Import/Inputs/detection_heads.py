"""Ends of detection models, as exporters write them, and what else may stand behind rows of which only data tell how many there are: equal to
onnxruntime's, as many rows as a count says. Whole and on two ranks, by the evaluator and as programs.

Prints `N passed, N failed of N`; what failed comes before.
"""

import itertools
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

sys.path.insert(1, os.path.join(sys.path[0], "..", ".."))
import harness  # noqa: E402

RNG = np.random.default_rng(8)
ort.set_default_logger_severity(4)


class Graph:
    """Nodes by calls: `g.Add(a, b)` is the name of the result, of arrays constants."""

    def __init__(self, **inputs):
        self.inputs, self.nodes, self.constants = inputs, [], {}

    def name(self, value):
        if isinstance(value, str):
            return value
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def __getattr__(self, op):
        def add(*operands, results=1, name=None, **attributes):
            names = [name] if name else [f"{op.lower()}{len(self.nodes)}_{i}" for i in range(results)]
            self.nodes.append(helper.make_node(op, [self.name(x) for x in operands], names, **attributes))
            return names[0] if results == 1 else names
        return add

    def model(self, *outputs):
        infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in self.inputs.items()]
        graph = helper.make_graph(self.nodes, "g", infos, [onnx.ValueInfoProto(name=n) for n in outputs],
                                  [numpy_helper.from_array(a, n) for n, a in self.constants.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def i64(*values):
    return np.array(values, np.int64)


def f32(*values):
    return np.array(values, np.float32)


def boxes_of(count, spread=3):
    low = spread * RNG.random((1, count, 2))
    return np.concatenate([low, low + 0.4 + RNG.random((1, count, 2))], 2).astype(np.float32)


def select(g, boxes, scores, most, overlap, least):
    return g.NonMaxSuppression(g.Abs(boxes), g.Abs(scores), i64(most), f32(overlap), f32(least))


def column(g, rows, index):
    return g.Squeeze(g.Gather(rows, i64(index), axis=1), i64(1))


def count_rows(g, rows):
    return g.Gather(g.Shape(rows), np.int64(0))


def yolo(most, least=0.3, classes=3):
    """Boxes in one table; the best 10 of all classes, and how many there are."""
    g = Graph(boxes=boxes_of(24), scores=RNG.random((1, classes, 24)).astype(np.float32))
    found = select(g, "boxes", "scores", most, 0.4, least)
    kept = g.Squeeze(g.Gather("boxes", column(g, found, 2), axis=1), i64(0))
    score = g.GatherND("scores", found)
    k = g.Reshape(g.Min(count_rows(g, found), np.int64(10)), i64(1))
    best, order = g.TopK(score, k, results=2)
    table = g.Concat(g.Gather(kept, order), g.Unsqueeze(best, i64(1)),
                     g.Cast(g.Unsqueeze(g.Gather(column(g, found, 1), order), i64(1)), to=onnx.TensorProto.FLOAT), axis=1, name="detections")
    g.Unsqueeze(count_rows(g, order), i64(0), name="number")
    return g, [table, "number"]


def ssd():
    """Two levels, each with a selection of its own, joined, the best 12 by a constant slice behind a full sort."""
    g = Graph(boxes=boxes_of(20), more=boxes_of(12), scores=RNG.random((1, 2, 20)).astype(np.float32), others=RNG.random((1, 2, 12)).astype(np.float32))
    parts = []
    for boxes, scores in (("boxes", "scores"), ("more", "others")):
        found = select(g, boxes, scores, 6, 0.02, 0.85)
        parts.append((g.Squeeze(g.Gather(boxes, column(g, found, 2), axis=1), i64(0)), g.GatherND(scores, found), column(g, found, 1)))
    boxes, scores, classes = (g.Concat(*part, axis=0) for part in zip(*parts))
    k = g.Reshape(count_rows(g, scores), i64(1))
    best, order = g.TopK(scores, k, results=2)
    first = g.Slice(order, i64(0), i64(12), i64(0))
    g.Gather(boxes, first, name="kept")
    g.Gather(classes, first, name="classes")
    g.Slice(best, i64(0), i64(12), i64(0), name="best")
    return g, ["kept", "classes", "best"]


def faster_rcnn():
    """Proposals, pooled regions of the picture, a head of two products, and a second selection over what it says."""
    g = Graph(picture=RNG.standard_normal((1, 4, 16, 16)).astype(np.float32), anchors=(4 * boxes_of(20)).astype(np.float32),
              objectness=RNG.random((1, 1, 20)).astype(np.float32))
    found = select(g, "anchors", "objectness", 12, 0.05, 0.1)
    proposals = g.Slice(g.Squeeze(g.Gather("anchors", column(g, found, 2), axis=1), i64(0)), i64(0), i64(8), i64(0))
    samples = g.Expand(np.array([0], np.int64), g.Reshape(count_rows(g, proposals), i64(1)))
    pooled = g.RoiAlign("picture", proposals, samples, output_height=2, output_width=2, sampling_ratio=2)
    hidden = g.Relu(g.Gemm(g.Flatten(pooled, axis=1), f32(*RNG.standard_normal(16 * 8)).reshape(16, 8), f32(*RNG.standard_normal(8))))
    classes = g.Softmax(g.MatMul(hidden, f32(*RNG.standard_normal(24)).reshape(8, 3)), axis=-1, name="classes")
    moved = g.Add(proposals, g.MatMul(hidden, 0.1 * f32(*RNG.standard_normal(32)).reshape(8, 4)), name="moved")
    scores = g.Unsqueeze(g.Transpose(g.Slice(classes, i64(1), i64(3), i64(1)), perm=[1, 0]), i64(0))
    last = g.NonMaxSuppression(g.Unsqueeze(moved, i64(0)), scores, i64(4), f32(0.5), f32(0.05), name="last")
    g.Gather(moved, column(g, last, 2), name="final")
    return g, ["classes", "moved", "last", "final"]


def statistics():
    """Reductions and searches over rows, and places from the end."""
    g = Graph(boxes=boxes_of(24), scores=RNG.random((1, 2, 24)).astype(np.float32))
    found = select(g, "boxes", "scores", 8, 0.05, 0.4)
    rows = g.Squeeze(g.Gather("boxes", column(g, found, 2), axis=1), i64(0))
    score = g.GatherND("scores", found)
    outputs = []
    for op, keep in itertools.product(("ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
                                       "ReduceLogSum", "ReduceLogSumExp"), (0, 1)):
        outputs.append(getattr(g, op)(rows, i64(0), keepdims=keep))
        outputs.append(getattr(g, op)(rows, i64(1), keepdims=keep))
        outputs.append(getattr(g, op)(rows, keepdims=keep))
    outputs += [g.ReduceMax(column(g, found, 2), i64(0)), g.ReduceMin(column(g, found, 2), i64(0))]
    outputs += [g.ArgMax(score, axis=0), g.ArgMin(rows, axis=0, keepdims=0), g.ArgMax(rows, axis=1)]
    outputs += [g.Gather(rows, i64(-1, 0, -2)), g.GatherND(rows, i64(-1, 2).reshape(1, 2)), g.Gather(rows, g.ArgMax(score, axis=0))]
    outputs += [g.Softmax(score, axis=0), g.CumSum(score, np.int64(0)), g.MatMul(g.Transpose(rows, perm=[1, 0]), rows)]
    outputs += [g.Size(rows), g.Shape(rows), g.Shape(rows, start=1), g.Where(g.Greater(score, f32(0.5)), score, f32(0))]
    return g, outputs


def sizes():
    """Numbers of rows as sizes of what is made."""
    g = Graph(boxes=boxes_of(24), scores=RNG.random((1, 2, 24)).astype(np.float32))
    found = select(g, "boxes", "scores", 8, 0.05, 0.4)
    rows = g.Squeeze(g.Gather("boxes", column(g, found, 2), axis=1), i64(0))
    number = g.Reshape(count_rows(g, found), i64(1))
    few = g.Cast(g.ReduceMin(g.Concat(g.Cast(number, to=onnx.TensorProto.FLOAT), f32(5), axis=0), i64(0)), to=onnx.TensorProto.INT64)
    outputs = [g.Range(np.int64(0), g.Squeeze(number), np.int64(1)), g.Expand(f32(1, 2, 3).reshape(1, 3), g.Concat(number, i64(3), axis=0)),
               g.ConstantOfShape(g.Concat(i64(2), number, axis=0)), g.Tile(f32(1, 2).reshape(1, 2), g.Concat(number, i64(2), axis=0)),
               g.Reshape(rows, g.Concat(number, i64(2, 2), axis=0)), g.Slice(rows, i64(0), few, i64(0)),
               g.Slice(g.Squeeze("boxes", i64(0)), i64(0), number, i64(0)), g.Slice("boxes", i64(0), few, i64(1)),
               g.Mul(g.Unsqueeze(g.Range(np.int64(0), g.Squeeze(number), np.int64(1)), i64(1)), found)]
    return g, outputs


def filtered():
    """What passes a threshold, by places and by a condition, before a selection: nothing of that is known before it runs."""
    g = Graph(boxes=boxes_of(24), scores=RNG.random((24, 4)).astype(np.float32))
    best = g.ReduceMax("scores", i64(1), keepdims=0)
    places = g.Squeeze(g.NonZero(g.Greater(best, f32(0.8))), i64(0))
    kept, score = g.Gather(g.Squeeze("boxes", i64(0)), places), g.Gather(best, places)
    found = g.NonMaxSuppression(g.Unsqueeze(kept, i64(0)), g.Unsqueeze(score, i64(0, 1)), i64(20), f32(0.3), f32(0.1))
    across = g.NonZero(g.Greater("scores", f32(0.9)))
    pairs = g.Transpose(across, perm=[1, 0])
    return g, [g.Gather(across, np.int64(1), axis=0), g.Gather(across, i64(1, 0).reshape(2, 1), axis=0), g.Gather(kept, column(g, found, 2)),
               g.Size(places), pairs, g.GatherND("scores", pairs), g.Compress(best, g.Greater(best, f32(0.7))),
               g.ReduceSum(g.Compress("scores", g.Less(best, f32(0.9)), axis=0), i64(0)), g.NonZero(g.Less(score, f32(0.9)))]


def distinct(is_sorted):
    g = Graph(x=RNG.integers(0, 9, (4, 6)).astype(np.float32))
    values, places, _, counts = g.Unique(g.Neg("x"), sorted=is_sorted, results=4)
    order = g.TopK(g.Cast(counts, to=onnx.TensorProto.FLOAT), g.Min(g.Shape(values), i64(3)), results=2)[1]
    return g, [values, g.Gather(values, order), g.Gather(places, order), g.ReduceSum(counts), g.ReduceMax(values), g.Gather(values, i64(-1))]


# With fewer rows than there is room for, but in the first.
CASES = {"YOLO, more than wanted": yolo(6), "YOLO": yolo(6, 0.9), "YOLO, nothing": yolo(6, 2.0), "SSD": ssd(), "Faster R-CNN": faster_rcnn(), "statistics": statistics(),
         "sizes": sizes(), "threshold": filtered(), "Unique": distinct(1), "Unique, unsorted": distinct(0)}


def difference(text, got, names, expected, may_be_full):
    """What is wrong, or an empty string. Which dim of an output has padding, and which count is of it, remarks say."""
    remarks = re.findall(r"output '([^']+)' has room for (\d+) rows in dim (\d+), and output '([^']+)' says", text)
    counts = {output: (int(dim), count) for output, _, dim, count in remarks}
    if all(got[count] == int(room) for _, room, _, count in remarks) and not may_be_full:
        return "there is no padding"
    for name, want in zip(names, expected):
        have = got[name]
        if name in counts:
            dim, count = counts[name]
            if want.shape[dim] != got[count]:
                return f"{count} of {name} is {got[count]}, expected {want.shape[dim]}"
            have = np.split(have, [want.shape[dim]], dim)[0]
        if have.shape != want.shape or have.dtype != want.dtype or not np.allclose(have, want, rtol=1e-4, atol=1e-5):
            return f"{name} is {have.tolist()}, expected {want.tolist()}"
    return ""


def execute(path, given, out, options, cut, is_unseen):
    """`is_unseen`: in two commands, of which the first knows no inputs."""
    command = ["cleave", "run", path, "--inputs", given, "--outputs", out, "--remarks", *options, *cut]
    if is_unseen:
        command = ["sh", "-c", 'out=$1 given=$2; shift 2; cleave compile "$@" && cleave-run "$out.cleave" --inputs "$given" --outputs "$out"', "-",
                   out, given, path, "-o", out + ".cleave", "--remarks", *cut]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main():
    bad, number, left_out = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path, given, out = (os.path.join(folder, name) for name in ("model.onnx", "in.npz", "out.npz"))
        for label, (g, names) in CASES.items():
            onnx.save(g.model(*names), path)
            np.savez(given, **g.inputs)
            expected = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, g.inputs)
            cuts = [[]] + [["--mesh", "a=2", "--shard", f"{name}=[{', '.join('a' if d == dim else '_' for d in range(array.ndim))}]"]
                           for name, array in g.inputs.items() for dim, size in enumerate(array.shape) if size % 2 == 0]
            for cut, who in itertools.product(cuts, ("reference", "program")):
                options = ["--executor", who, *(["--check"] if cut and who == "reference" else [])]
                number += 1
                if not harness.is_due(f"{label} {cut} {who}"):
                    left_out += 1
                    continue
                done = execute(path, given, out, options, cut, label == "threshold")
                problem = done.stdout[-400:] or "fails" if done.returncode else difference(done.stdout, np.load(out), names, expected, label.endswith("wanted"))
                if problem:
                    bad.append(f"{label} {cut} {who}: {problem}")
    return harness.sum_up(bad, number, left_out)


if __name__ == "__main__":
    sys.exit(main())
