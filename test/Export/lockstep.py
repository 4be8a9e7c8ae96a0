"""Runs what `cleave export` wrote: every rank's model, cut at the nodes in which ranks meet, piece by piece in onnxruntime.

    program = Program(folder)
    outputs = program.run({"x": array})         whole tensors, cut and put together by export.json

Ranks advance together: each runs the nodes up to the next meeting, then all of them meet (collectives.py). In a pipeline that are those on one place
of it; those of two places meet where one sends and the other receives: neither goes on before the other is there. A loop in whose body ranks meet is gone
through here, iteration by iteration; any other is onnxruntime's.
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


def bodies(node):
    return [attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH]


def holds_meeting(node):
    return any(is_meeting(inner) or holds_meeting(inner) for body in bodies(node) for inner in body.node)


def reads_of(nodes, made):
    """What nodes read that none of them makes, in bodies, too; `made` is there already."""
    made, read = set(made), set()
    for node in nodes:
        read |= {name for name in node.input if name and name not in made}
        for body in bodies(node):
            read |= reads_of(body.node, made | {value.name for value in body.input})
        made |= set(node.output)
    return read


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
        self.reads = sorted(reads_of(nodes, ()))
        self.makes = {name for node in nodes for name in node.output}
        self.inputs, self.outputs, self.sessions = [], [], {}


class Loop:
    """A node in whose body ranks meet."""

    def __init__(self, node, around):
        self.node, (body,) = node, bodies(node)
        self.graph = Graph(body, around.weights, around.uses_reference, around.opsets, around.infos)
        self.reads = {name for name in node.input if name} | reads_of(body.node, {value.name for value in body.input})


class Graph:
    """What some ranks run, all of them the same nodes; `weights` by file."""

    def __init__(self, graph, weights, uses_reference, opsets, outside=None):
        infos = [*graph.input, *graph.output, *graph.value_info]
        self.infos = {**(outside or {}), **{info.name: info for info in infos}}
        self.takes, self.gives = ([value.name for value in values] for values in (graph.input, graph.output))
        self.weights, self.uses_reference, self.opsets = weights, uses_reference, opsets
        self.steps = self.cut(graph)

    def cut(self, graph):
        """Segments and meetings in order, with what goes between them."""
        steps, nodes = [], []
        for node in graph.node:
            if not is_meeting(node) and not holds_meeting(node):
                nodes.append(node)
                continue
            steps += ([Segment(nodes)] if nodes else []) + [node if is_meeting(node) else Loop(node, self)]
            nodes = []
        steps += [Segment(nodes)] if nodes else []
        wanted = set(self.gives)
        for step in reversed(steps):
            if isinstance(step, Segment):
                step.outputs = sorted(step.makes & wanted)
            wanted |= set(step.input) if isinstance(step, onnx.NodeProto) else set(step.reads)
        weights = next(iter(self.weights.values()))
        for step in steps:
            if isinstance(step, Segment):
                step.inputs = [name for name in step.reads if name not in weights]
        return steps

    def walk(self):
        """All steps, those of bodies, too."""
        for step in self.steps:
            yield step
            if isinstance(step, Loop):
                yield from step.graph.walk()

    def session(self, segment, name):
        if name not in segment.sessions:
            weights = [self.weights[name][read] for read in segment.reads if read in self.weights[name]]
            graph = helper.make_graph(segment.nodes, "segment", [self.infos[read] for read in segment.inputs],
                                      [self.infos[made] for made in segment.outputs], weights)
            model = helper.make_model(graph, opset_imports=self.opsets, ir_version=11)
            options = onnxruntime.SessionOptions()
            # onnxruntime 1.31 breaks the types of what it moves a Slice across: DequantizeLinear of i8 with a zero point, from opset 21 on.
            if any(node.op_type == "DequantizeLinear" and len(node.input) > 2 for node in segment.nodes):
                options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.log_severity_level, options.intra_op_num_threads = 3, 1
            segment.sessions[name] = ReferenceEvaluator(model, new_ops=[MatMul]) if self.uses_reference else \
                onnxruntime.InferenceSession(model.SerializeToString(), options)
        return segment.sessions[name]

    def value(self, values, name, file):
        return values[name] if name in values else numpy_helper.to_array(self.weights[file][name])

    def expected_shape(self, name):
        return [dim.dim_value for dim in self.infos[name].type.tensor_type.shape.dim]


class Program:
    def __init__(self, folder):
        with open(os.path.join(folder, "export.json")) as file:
            self.manifest = json.load(file)
        self.ranks = self.manifest["ranks"]
        files = {entry["model"]: onnx.load(os.path.join(folder, entry["model"])) for entry in self.manifest["files"]}
        self.of_rank = {rank: entry["model"] for entry in self.manifest["files"] for rank in entry["ranks"]}
        assert sorted(self.of_rank) == list(range(self.ranks)), "each rank has a file"
        uses_reference = any(info.type.tensor_type.elem_type == BF16 for model in files.values()
                             for info in [*model.graph.input, *model.graph.output, *model.graph.value_info])
        # By the number along the pipeline, which is the same for all where there is none.
        self.places = {}
        for rank in range(self.ranks):
            self.places.setdefault(self.place(rank), []).append(rank)
        self.graphs = {}
        for place, ranks in self.places.items():
            models = {self.of_rank[rank]: files[self.of_rank[rank]] for rank in ranks}
            assert len({structure(model) for model in models.values()}) == 1, "ranks have different graphs"
            weights = {name: {weight.name: weight for weight in model.graph.initializer} for name, model in models.items()}
            first = next(iter(models.values()))
            opsets = [helper.make_opsetid("", entry.version) for entry in first.opset_import if entry.domain == ""]
            self.graphs[place] = Graph(first.graph, weights, uses_reference, opsets)
        self.steps = [step for graph in self.graphs.values() for step in graph.walk()]

    def place(self, rank):
        return self.digits([[self.manifest["pipeline"]["axis"]]]).index(rank) if "pipeline" in self.manifest else 0

    def run(self, arrays):
        """Outputs by name, whole."""
        values = [{} for _ in range(self.ranks)]
        for port in self.manifest["inputs"]:
            for rank in port.get("ranks", range(self.ranks)):
                values[rank][port["name"]] = self.shard(arrays[port["name"]], port, rank)
        for place, graph in self.graphs.items():
            assert all(set(graph.takes) <= set(values[rank]) for rank in self.places[place]), "an input is not said to be of this rank"
        done = {place: 0 for place in self.graphs}
        while any(done[place] < len(graph.steps) for place, graph in self.graphs.items()):
            before = sum(done.values())
            for place in self.graphs:
                self.advance(place, done, values)
            waiting = {place: getattr(graph.steps[done[place]], "op_type", "a segment") for place, graph in self.graphs.items() if done[place] < len(graph.steps)}
            assert sum(done.values()) > before, f"places of the pipeline wait for each other at {waiting}"
        return {port["name"]: self.assemble({rank: self.read(values, rank, port["name"]) for rank in port.get("ranks", range(self.ranks))}, port)
                for port in self.manifest["outputs"]}

    def advance(self, place, done, values):
        """Runs what ranks of one place can without others."""
        graph, ranks = self.graphs[place], self.places[place]
        while done[place] < len(graph.steps):
            step = graph.steps[done[place]]
            message = step.op_type if isinstance(step, onnx.NodeProto) else ""
            if message == "Recv" or (message == "Send" and not self.hand_over(place, step, done, values)):
                return
            if message != "Send":
                self.do(graph, step, ranks, values)
            done[place] += 1

    def do(self, graph, step, ranks, values):
        kinds = {Segment: self.compute, Loop: self.repeat, onnx.NodeProto: self.meet}
        kinds[type(step)](graph, step, ranks, values)

    def repeat(self, graph, step, ranks, values):
        """All ranks go on or none does."""
        most, condition, *initial = step.node.input
        body = step.graph
        read = lambda values, name: {rank: self.read(values, rank, name) for rank in ranks}
        same = lambda found: len({array.item() for array in found.values()}) == 1
        counts, goes = (read(values, name) if name else None for name in (most, condition))
        carried = [read(values, name) for name in initial]
        iteration = 0
        while (counts is None or iteration < counts[ranks[0]]) and (goes is None or goes[ranks[0]]):
            assert (counts is None or same(counts)) and (goes is None or same(goes)), f"{step.node.name}: ranks go on differently often"
            inner = dict(enumerate(values))
            for rank in ranks:
                own = [np.array(iteration), goes[rank] if goes else np.array(True), *(one[rank] for one in carried)]
                inner[rank] = {**values[rank], **dict(zip(body.takes, own, strict=True))}
            for inside in body.steps:
                self.do(body, inside, ranks, inner)
            goes, *carried = (read(inner, name) for name in body.gives)
            iteration += 1
        for name, one in zip(step.node.output, carried, strict=True):
            for rank in ranks:
                values[rank][name] = one[rank]

    def compute(self, graph, step, ranks, values):
        for rank in ranks if step.outputs else []:
            feeds = {name: values[rank][name] for name in step.inputs}
            results = graph.session(step, self.of_rank[rank]).run(step.outputs, feeds)
            values[rank].update(zip(step.outputs, results))

    def meet(self, graph, step, ranks, values):
        """Groups of a collective are of ranks of one place: of others it may read nothing."""
        own = {rank: [self.read(values, rank, name) for name in step.input] for rank in ranks}
        nothing = [unknown(array.shape, array.dtype) for array in own[ranks[0]]]
        results = meet(step, [own.get(rank, nothing) for rank in range(self.ranks)])
        shape = graph.expected_shape(step.output[0])
        for rank in ranks:
            result = results[rank]
            assert list(result.shape) == shape, f"{step.name} gives {result.shape}, the model says {shape}"
            values[rank][step.output[0]] = np.array(result, order="C")

    def hand_over(self, place, step, done, values):
        """A message to the place that `to` names, if its ranks wait for it."""
        sent = {attribute.name: helper.get_attribute_value(attribute) for attribute in step.attribute}
        extent, stride = sent["extents"][0], sent["strides"][0]
        peers = {rank: rank + (sent["to"] - rank // stride % extent) * stride for rank in self.places[place]}
        (to,) = {self.place(peer) for peer in peers.values()}
        graph = self.graphs[to]
        other = graph.steps[done[to]] if done[to] < len(graph.steps) else None
        if not isinstance(other, onnx.NodeProto) or other.op_type != "Recv":
            return False
        wanted = {attribute.name: helper.get_attribute_value(attribute) for attribute in other.attribute}
        for rank, peer in peers.items():
            if peer + (wanted["from"] - peer // stride % extent) * stride != rank:
                return False
        assert all(sent[key] == wanted[key] for key in ("extents", "strides", "channel", "microbatch")), "another message is received"
        for rank, peer in peers.items():
            for name, made in zip(step.input, other.output, strict=True):
                value = self.read(values, rank, name)
                assert list(value.shape) == graph.expected_shape(made), f"{name} is received in another shape"
                values[peer][made] = value
        done[to] += 1
        return True

    def read(self, values, rank, name):
        return self.graphs[self.place(rank)].value(values[rank], name, self.of_rank[rank])

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
                if not set(group) <= set(pieces):
                    continue
                total = combine([pieces[rank] for rank in group], port["partial_kind"])
                for rank in group:
                    pieces[rank] = total
        whole, written = np.zeros(port["shape"], next(iter(pieces.values())).dtype), np.zeros(port["shape"], bool)
        for rank, piece in pieces.items():
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
