"""Writes a model of two products whose nodes say on which devices their tensors lie.

    devices.py MODEL.onnx [good|split|groups|..]

h = x * w1 on four devices; without a fault rows of x by one half of the devices, columns of w1 by the other. Each other word
puts one fault in, or says the same otherwise.
"""
import sys

from onnx import TensorProto, helper


def add_spec(told, name, devices, dims, groups=None):
    spec = told.sharding_spec.add()
    spec.tensor_name = name
    spec.device.extend(devices)
    for key, members in (groups or {}).items():
        entry = spec.index_to_device_group_map.add()
        entry.key = key
        entry.value.extend(members)
    for axis, parts in dims:
        dim = spec.sharded_dim.add()
        dim.axis = axis
        for size, shards in parts:
            part = dim.simple_sharding.add()
            if size:
                part.dim_value = size
            part.num_shards = shards


def stage(numbers, places, property="", mesh="", devices="", more=0, ops=""):
    """Writes the stages of nodes (None: it says none) and on which devices rows of `x`, `y` and what `more` nodes behind make of it lie.
    `ops`: the stages of single ops, which go before those."""
    def write(model, *told):
        for number in range(more):
            model.graph.node.append(helper.make_node("Neg", [model.graph.node[-1].output[0]], [f"n{number}"]))
            model.graph.output[0].name = f"n{number}"
            told = (*told, model.graph.node[-1].device_configurations.add())
            told[-1].configuration_id = "four"
        for one, number in zip(told, numbers):
            if number is not None:
                one.pipeline_stage = number
        for one, name, place in zip(told, ("x", "y", "n0", "n1"), places):
            if place:
                add_spec(one, name, place, [(0, [(8, len(place))])])
        helper.set_model_props(model, {key: value for key, value in {
            "cleave.pipeline": property, "cleave.mesh": mesh, "cleave.devices": devices, "cleave.stages": ops}.items() if value})
        return model
    return write


PAIRS = ([0, 1], [2, 3])
STAGES = {
    "stages": stage([0, 1], PAIRS),
    "named-stages": stage([0, 1], ([0, 2], [1, 3]), "{axis: deep, microbatches: 2, batch: {x: 0}}", "wide=2,deep=2"),
    "named-devices": stage([0, 1], ([3, 1], [0, 2]), "{axis: deep, microbatches: 2, batch: {x: 0, w1: none, w2: none}}", "deep=2,wide=2", "3,1,0,2"),
    "bad-devices": stage([0, 1], PAIRS, devices="3,3,0,2"),
    "mixed-stages": stage([0, 1], ([0, 3], [1, 2])),
    "other-mesh": stage([0, 1], PAIRS, "{axis: deep, microbatches: 2, batch: {x: 0}}", "wide=2,deep=2"),
    "one-rank": stage([0, 1], ([0, 1, 2, 3], [0, 1, 2, 3])),
    "back-and-forth": stage([0, 1, 2, 3], PAIRS + PAIRS, more=2),
    "one-stage": stage([0, 0], ([0, 1, 2, 3], [0, 1, 2, 3])),
    "untold-stage": stage([0, 1, None], PAIRS, more=1),
    "scheduled": stage([0, 1, 2, 3], PAIRS + PAIRS, "{axis: stage, microbatches: 2, chunks: 2, schedule: circular, placement: loop, batch: {x: 0}}", more=2),
    "op-elsewhere": stage([0, 0, 1], ([0, 1], [0, 1], [2, 3]), more=1, ops='{"second nn.einsum": 1}'),
    "ops-unknown": stage([0, 1], PAIRS, ops='{"first nn.einsum#7": 1, "second nn.add": 1}'),
    # Faults.
    "stage-order": stage([1, 0], PAIRS),
    "stage-through-others": stage([1, None, 0], PAIRS, more=1),
    "stage-below-0": stage([0, -1], PAIRS),
    "stage-gap": stage([0, 3, None, None], PAIRS, more=2),
    "stage-too-far": stage([0, 2**31 - 1], PAIRS),
    "bad-stage": stage([0, 1], ([0, 1, 2, 3], None)),
    "stages-share": stage([0, 1], ([0, 1], [1, 2])),
    "stages-differ": stage([0, 1], ([0, 1], [2, 3, 1])),
    "stages-leave": stage([0, 1], ([0], [1])),
    "stage-undivided": stage([0, 1, 2], (None, None), more=1),
    "stage-other-device": lambda model, first, second: [stage([0, 1], PAIRS)(model, first, second),
                                                        add_spec(first, "w1", [0, 2], [(0, [(12, 2)])])][0],
    "no-stage": stage([0, None, 1], PAIRS, more=1),
    "bad-property": stage([0, 1], PAIRS, "{axis: deep"),
    "property-stages": stage([0, 1], PAIRS, '{axis: deep, microbatches: 2, stages: [{first: second}]}'),
    "property-file": stage([0, 1], PAIRS, "{axis: deep, microbatches: 2, schedule: table.csv}"),
    "property-schedule": stage([0, 1], PAIRS, "{axis: stage, microbatches: 2, schedule: fastest, batch: {x: 0}}"),
    "property-gradients": stage([0, 1], PAIRS, "{axis: stage, microbatches: 2, schedule: 1f1b, batch: {x: 0}}"),
    "property-chunks": stage([0, 1], PAIRS, "{axis: stage, microbatches: 2, chunks: 4, batch: {x: 0}}"),
    "property-placement": stage([0, 1], PAIRS, "{axis: stage, microbatches: 2, placement: w}"),
    "ops-text": stage([0, 1], PAIRS, ops='{"second nn.einsum": 1'),
    "ops-list": stage([0, 1], PAIRS, ops='[1]'),
    "ops-node": stage([0, 1], PAIRS, ops='{second: 1}'),
    "ops-stage": stage([0, 1], PAIRS, ops='{"second nn.einsum": 2}'),
    "ops-word": stage([0, 1], PAIRS, ops='{"second nn.einsum": last}'),
    "ops-twice": stage([0, 1], PAIRS, ops='{"second nn.einsum": 1, "second nn.einsum": 0}'),
    "ops-order": stage([0, 1], PAIRS, ops='{"first nn.einsum": 1, "second nn.einsum": 0}'),
    "property-batch": stage([0, 1], PAIRS, '{axis: deep, microbatches: 3, batch: {x: 0}}'),
}


def make(kind):
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["h"], "first"), helper.make_node("MatMul", ["h", "w2"], ["y"], "second")]
    biases = []
    if kind == "gemms":  # each becomes two ops
        nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], "first"), helper.make_node("Gemm", ["h", "w2", "b2"], ["y"], "second")]
        biases = [value("b1", [16]), value("b2", [4])]
    graph = helper.make_graph(nodes, "g", [value("x", [8, 12]), value("w1", [12, 16]), value("w2", [16, 4]), *biases], [value("y", [8, 4])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=11)
    configuration = model.configuration.add()
    configuration.name, configuration.num_devices = "four", 6 if kind == "no-mesh" else 4
    first, second = (node.device_configurations.add() for node in model.graph.node)
    first.configuration_id = second.configuration_id = "four"
    if kind in ("plain", "gemms"):
        return model
    rows = {-1: [0, 1], -2: [2, 3]}
    columns = {-1: [0, 2], -2: [1, 3]}
    if kind in STAGES:
        return STAGES[kind](model, first, second)
    add_spec(first, "x", [-1, -2], [(0, [(8, 2)])], rows)
    if kind == "good" or kind == "second-configuration":
        add_spec(first, "w1", [-1, -2], [(-1, [(0, 2)])], columns)
        add_spec(first, "h", [0, 1, 2, 3], [(0, [(8, 2)]), (1, [(16, 2)])])
        add_spec(second, "h", [0, 2, 1, 3], [(1, [(16, 2)]), (0, [(8, 2)])])
        add_spec(second, "w2", [-1, -2], [(0, [(4, 2), (4, 1)])], columns)
        add_spec(second, "y", [-1, -2], [(0, [(8, 2)])], rows)
    if kind == "second-configuration":
        other = model.configuration.add()
        other.name, other.num_devices = "two", 2
        more = model.graph.node[1].device_configurations.add()
        more.configuration_id = "two"
        add_spec(more, "y", [0, 1], [(0, [(8, 2)])])
    if kind == "operand":
        add_spec(second, "h", [-1, -2], [(0, [(8, 2)])], rows)
        add_spec(first, "h", [0, 1, 2, 3], [(0, [(8, 2)]), (1, [(16, 2)])])
    if kind == "no-configuration":
        second.configuration_id = "five"
    if kind == "names":
        configuration.device.extend(["a", "b"])
    if kind == "tensor":
        add_spec(second, "x", [-1, -2], [(0, [(8, 2)])], rows)
    if kind == "device":
        add_spec(second, "y", [4], [])
    if kind == "missing":
        add_spec(second, "y", [0, 1], [(0, [(8, 2)])])
    if kind == "twice":
        add_spec(second, "y", [-1, -2], [(0, [(8, 2)])], {-1: [0, 1], -2: [1, 2, 3]})
    if kind == "count":
        add_spec(second, "y", [0, 1, 2, 3], [(0, [(8, 2)])])
    if kind == "axis":
        add_spec(second, "y", [-1, -2], [(7, [(8, 2)])], rows)
    if kind == "far-axis":
        add_spec(second, "y", [-1, -2], [(1 << 60, [(8, 2)])], rows)
    if kind == "many-shards":
        add_spec(second, "y", [0, 1, 2, 3], [(0, [(4, 4)] * 40)])
    if kind == "axes":
        add_spec(second, "y", [0, 1, 2, 3], [(0, [(8, 2)]), (0, [(8, 2)])])
    if kind == "stride":
        add_spec(second, "w2", [0, 1, 2, 3], [(0, [(4, 2), (4, 2)])])
    if kind == "shards":
        add_spec(second, "y", [0], [(0, [(8, 0)])])
    if kind == "contradiction":
        add_spec(second, "y", [-1, -2], [(0, [(8, 2)])], rows)
        add_spec(second, "y", [-1, -2], [(1, [(4, 2)])], rows)
    if kind == "undivided":
        add_spec(second, "w2", [-1, -2], [(0, [(0, 2)])], {-1: [0, 3], -2: [1, 2]})
    if kind == "no-mesh":
        del first.sharding_spec[:]
        add_spec(first, "x", [-1, -2], [(0, [(8, 2)])], {-1: [0, 1, 2], -2: [3, 4, 5]})
        add_spec(first, "w1", [-1, -2], [(0, [(12, 2)])], {-1: [0, 1, 4], -2: [2, 3, 5]})
    return model


def main():
    path, kind = sys.argv[1:]
    with open(path, "wb") as file:
        file.write(make(kind).SerializeToString())


if __name__ == "__main__":
    main()
