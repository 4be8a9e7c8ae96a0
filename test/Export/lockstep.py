"""Runs what `cleave export` wrote: every rank's model, cut at the nodes in which ranks meet, piece by piece in onnxruntime.

    program = Program(folder)
    outputs = program.run({"x": array})         whole tensors, cut and put together by export.json

Ranks advance together: each runs the nodes up to the next meeting, then all of them meet (collectives.py).
"""
import json
import os

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from collectives import Digits, combine, identity, meet, unknown

BF16 = onnx.TensorProto.BFLOAT16


def is_meeting(node):
    return node.domain in ("cleave", "com.microsoft")


def structure(model):
    """A graph but for its initializers, which are all that ranks may differ in."""
    graph = onnx.GraphProto()
    graph.CopyFrom(model.graph)
    del graph.initializer[:]
    return graph.SerializeToString(deterministic=True)


class MatMul(OpRun):
    """Sums in f32, rounded once, as the op is meant for bf16."""

    def _run(self, x, y):
        return (np.matmul(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype),)


class Segment:
    """Nodes between two meetings."""

    def __init__(self, nodes):
        self.nodes = nodes
        made = {name for node in nodes for name in node.output}
        self.reads = sorted({name for node in nodes for name in node.input if name and name not in made})
        self.makes = made
        self.inputs, self.outputs, self.sessions = [], [], {}


class Program:
    def __init__(self, folder):
        with open(os.path.join(folder, "export.json")) as file:
            self.manifest = json.load(file)
        self.folder, self.ranks = folder, self.manifest["ranks"]
        self.files = {entry["model"]: onnx.load(os.path.join(folder, entry["model"])) for entry in self.manifest["files"]}
        self.of_rank = {rank: entry["model"] for entry in self.manifest["files"] for rank in entry["ranks"]}
        assert sorted(self.of_rank) == list(range(self.ranks)), "each rank has a file"
        models = list(self.files.values())
        assert len({structure(model) for model in models}) == 1, "ranks have different graphs"
        graph = models[0].graph
        infos = [*graph.input, *graph.output, *graph.value_info]
        self.infos = {info.name: info for info in infos}
        self.weights = {name: {weight.name: weight for weight in model.graph.initializer} for name, model in self.files.items()}
        self.uses_reference = any(info.type.tensor_type.elem_type == BF16 for info in infos)
        self.steps = self.cut(graph)
        self.opsets = [helper.make_opsetid("", entry.version) for entry in models[0].opset_import if entry.domain == ""]

    def cut(self, graph):
        """Segments and meetings in order, with what goes between them."""
        steps, nodes = [], []
        for node in graph.node:
            if not is_meeting(node):
                nodes.append(node)
                continue
            steps += ([Segment(nodes)] if nodes else []) + [node]
            nodes = []
        steps += [Segment(nodes)] if nodes else []
        wanted = {value.name for value in graph.output}
        for step in reversed(steps):
            if isinstance(step, Segment):
                step.outputs = sorted(step.makes & wanted)
                wanted |= set(step.reads)
            else:
                wanted |= set(step.input)
        weights = next(iter(self.weights.values()))
        for step in steps:
            if isinstance(step, Segment):
                step.inputs = [name for name in step.reads if name not in weights]
        return steps

    def session(self, segment, name):
        if name not in segment.sessions:
            weights = [self.weights[name][read] for read in segment.reads if read in self.weights[name]]
            graph = helper.make_graph(segment.nodes, "segment", [self.infos[read] for read in segment.inputs],
                                      [self.infos[made] for made in segment.outputs], weights)
            model = helper.make_model(graph, opset_imports=self.opsets, ir_version=11)
            options = onnxruntime.SessionOptions()
            # onnxruntime 1.31 breaks the types of what it moves a Slice across: DequantizeLinear of i8 with a zero point, from opset 21 on.
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.log_severity_level, options.intra_op_num_threads = 3, 1
            segment.sessions[name] = ReferenceEvaluator(model, new_ops=[MatMul]) if self.uses_reference else \
                onnxruntime.InferenceSession(model.SerializeToString(), options)
        return segment.sessions[name]

    def run(self, arrays):
        """Outputs by name, whole."""
        values = [{} for _ in range(self.ranks)]
        for port in self.manifest["inputs"]:
            for rank in range(self.ranks):
                values[rank][port["name"]] = self.shard(arrays[port["name"]], port, rank)
        for step in self.steps:
            if isinstance(step, Segment):
                for rank in range(self.ranks):
                    if step.outputs:
                        feeds = {name: values[rank][name] for name in step.inputs}
                        results = self.session(step, self.of_rank[rank]).run(step.outputs, feeds)
                        values[rank].update(zip(step.outputs, results))
                continue
            operands = [[self.value(values, rank, name) for name in step.input] for rank in range(self.ranks)]
            info = self.infos[step.output[0]].type.tensor_type
            shape = [dim.dim_value for dim in info.shape.dim]
            for rank, result in enumerate(meet(step, operands)):
                assert list(result.shape) == shape, f"{step.name} gives {result.shape}, the model says {shape}"
                values[rank][step.output[0]] = np.array(result, order="C")
        return {port["name"]: self.assemble([self.value(values, rank, port["name"]) for rank in range(self.ranks)], port)
                for port in self.manifest["outputs"]}

    def value(self, values, rank, name):
        if name in values[rank]:
            return values[rank][name]
        return numpy_helper.to_array(self.weights[self.of_rank[rank]][name])

    def digits(self, lists):
        """The digits that cut a tensor, by the names of axes of each dim: `model`, or `model:(2)4`."""
        sizes = {entry["axis"]: entry["size"] for entry in self.manifest["mesh"]}
        strides, behind = {}, 1
        for axis in reversed(sizes):
            strides[axis], behind = behind, behind * sizes[axis]
        found = {"dims": [], "extents": [], "strides": []}
        for dim, axes in enumerate(lists):
            for name in axes:
                axis, _, digit = name.partition(":(")
                before, _, extent = digit.partition(")")
                before, extent = (int(before), int(extent)) if digit else (1, sizes[axis])
                found["dims"].append(dim)
                found["extents"].append(extent)
                found["strides"].append(strides[axis] * (sizes[axis] // (before * extent)))
        return Digits(found)

    def shard(self, array, port, rank):
        digits, local = self.digits(port["dims"]), port["local_shape"]
        wanted = helper.tensor_dtype_to_np_dtype(port["type"])
        if array.dtype.kind == "V" and array.dtype.itemsize == np.dtype(wanted).itemsize:
            array = array.view(wanted)  # of an .npz file
        array = array.astype(wanted) if wanted == ml_dtypes.bfloat16 else array
        assert array.dtype == wanted and list(array.shape) == port["shape"], f"{port['name']}: {array.dtype}{array.shape}"
        # Of a sum the first rank of a group has the value as its term, and the others nothing.
        if port.get("partial") and self.digits([port["partial"]]).index(rank) > 0:
            return np.full(local, identity(array.dtype, port["partial_kind"]), array.dtype)
        result = unknown(local, array.dtype)
        start = [digits.index(rank, dim) * extent for dim, extent in enumerate(local)]
        piece = array[tuple(slice(first, first + extent) for first, extent in zip(start, local))]
        result[tuple(slice(0, extent) for extent in piece.shape)] = piece
        return result

    def assemble(self, pieces, port):
        digits, local = self.digits(port["dims"]), port["local_shape"]
        if port.get("partial"):
            for group in self.digits([port["partial"]]).groups(self.ranks):
                total = combine([pieces[rank] for rank in group], port["partial_kind"])
                for rank in group:
                    pieces[rank] = total
        whole, written = np.zeros(port["shape"], pieces[0].dtype), np.zeros(port["shape"], bool)
        for rank, piece in enumerate(pieces):
            assert list(piece.shape) == local, f"{port['name']} is {piece.shape} on rank {rank}, expected {local}"
            start = [digits.index(rank, dim) * extent for dim, extent in enumerate(local)]
            place = tuple(slice(first, first + extent) for first, extent in zip(start, local))
            piece = piece[tuple(slice(0, extent) for extent in whole[place].shape)]
            # Copies on several ranks are one value.
            known = written[place]
            if known.size and known.all() and not np.array_equal(np.asarray(whole[place], np.float64), np.asarray(piece, np.float64), equal_nan=True):
                raise AssertionError(f"{port['name']}: rank {rank} has another copy")
            whole[place], written[place] = piece, True
        assert written.all(), f"{port['name']} is not whole"
        return whole
