"""One golden case, and the little language that its model is written in.

A model is a list of lines; one with an open parenthesis goes on in the next:

    hidden: f32[64, 256] [_, x] ~ normal(0.125)    an input: type, dims as in a plan, how its elements are drawn
    up = Gelu(MatMul(hidden, up.weight))           nodes, as calls: attributes by name, constants in place
    slots: [x, _] = Relu(up)                       an inner tensor that the plan cuts
    output: f32[64, 256] [_, _] = Add(up, slots)   an output; without dims the plan leaves it free
    values: f32[64, 8] [_, _]                      one of several outputs of the node that follows
    values, indices = TopK(output, [8])

An output of a node that has no name is called after its op: `mat_mul`, then `mat_mul_2`. In constants `[2, 3]` is an i64
vector, `2` an i64 scalar, `2.0` an f32 scalar, `[2.0]` an f32 vector, and `i32(2)` is of another type.
"""
import ast
import re
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

TYPES = {"f32": np.float32, "i64": np.int64, "i32": np.int32, "i8": np.int8, "i1": np.bool_}
DRAWS = {
    "fan_in": lambda rng, shape, size: rng.standard_normal(shape) * size ** -0.5,
    "normal": lambda rng, shape, scale: rng.standard_normal(shape) * scale,
    "integers": lambda rng, shape, end: rng.integers(0, end, shape),
    "permutation": lambda rng, shape, size: rng.permutation(size).reshape(shape),
    "choice": lambda rng, shape, size: rng.choice(size, shape, replace=False),
    "bool": lambda rng, shape, share: rng.random(shape) < share,
}


@dataclass
class Peer:
    """What the peer sends: JAX 0.10.2 with Shardy on 8 host devices."""
    bytes: int
    stage: str  # of its program: right after its SPMD partitioner, or "final"
    spread: float = 1  # matmul and conv flops of the whole over those of one device
    collectives: dict = field(default_factory=dict)


@dataclass
class Case:
    name: str
    mesh: str  # "x=2, y=4", major to minor
    model: str
    least: int  # fewest known bytes that the busiest rank must send; None where nobody claims one
    plan: str  # how
    peer: Peer = None
    least_note: str = ""  # an earlier number that was not the least, and what else is to be said about it
    compute: str = ""  # where the least repeats compute, or would be less if compute were repeated
    spread: float = None  # flops of the whole over those of one rank, where the least repeats more than the peer does
    note: str = ""
    waits_for: tuple = None  # (rule that is not there yet, words of the refusal or of a remark)
    expect: dict = None  # by output: its first elements and the sum of absolute values; else NAME.npz has them
    exact: bool = False  # else rtol 1e-4, and atol 1e-5 times the largest element
    jax_diff: float = None  # largest difference between what is expected and the JAX function, over the largest element
    opset: int = 18


@dataclass
class Value:
    """A declared tensor: type and shape of inputs and outputs, dims where the plan says some, how an input is drawn."""
    name: str
    dtype: type = None
    shape: list = None
    dims: str = None
    draw: str = None
    is_uneven: bool = False


def read_declaration(name, text):
    type_name, shape, dims, uneven = re.fullmatch(r"(?:(\w+)(\[[\d, ]*\]))? *(\[.*\])?( uneven)?", text).groups()
    return Value(name, type_name and TYPES[type_name], shape and ast.literal_eval(shape), dims, is_uneven=bool(uneven))


def read_lines(model):
    """(names, declaration or None, "~" or "=" or None, what follows it) of each line."""
    line = ""
    for part in filter(None, map(str.strip, model.splitlines())):
        line = f"{line} {part}".strip()
        if line.count("(") > line.count(")"):
            continue
        left, sign, right = re.fullmatch(r"(.*?)(?: ([~=]) (.*))?", line).groups()
        names, colon, declared = left.partition(":")
        yield names.split(", "), declared.strip() if colon else None, sign, right
        line = ""


class Graph:
    """The nodes, constants and declared tensors of a model."""

    def __init__(self, model):
        self.values, self.nodes, self.constants = {}, [], {}
        self.used = {name for names, *_ in read_lines(model) for name in names}
        for names, declared, sign, right in read_lines(model):
            if declared is not None:
                self.values[names[0]] = read_declaration(names[0], declared)
            if sign == "~":
                self.values[names[0]].draw = right
            elif sign == "=":
                self.add_node(ast.parse(right, mode="eval").body, names)

    def inputs(self):
        return [value for value in self.values.values() if value.draw]

    def outputs(self):
        return [value for value in self.values.values() if value.dtype and not value.draw]

    def fresh(self, op):
        base = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", op).lower()
        number = 1
        while (name := base if number == 1 else f"{base}_{number}") in self.used:
            number += 1
        self.used.add(name)
        return name

    def add_node(self, call, names=None):
        operands = [self.operand(arg) for arg in call.args]
        names = names or [self.fresh(call.func.id)]
        node = helper.make_node(call.func.id, operands, names, name=f"{names[0]}/{call.func.id}")
        node.attribute.extend(attribute(word.arg, word.value) for word in call.keywords)
        self.nodes.append(node)
        return names[0]

    def operand(self, tree):
        """The name of an operand: a tensor, `None` for one left out, a nested node, or a constant, called as it is written."""
        if isinstance(tree, ast.Call) and tree.func.id not in TYPES:
            return self.add_node(tree)
        text = ast.unparse(tree)
        if isinstance(tree, (ast.Name, ast.Attribute)):
            return text
        if text == "None":
            return ""
        self.constants[text] = constant(tree)
        return text


def constant(tree):
    if isinstance(tree, ast.Call):
        return np.array(ast.literal_eval(tree.args[0]), TYPES[tree.func.id])
    array = np.array(ast.literal_eval(tree))
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def attribute(name, tree):
    """An attribute: `to=i1` is a type, `value=1.0` a tensor of one element, all else what it looks like."""
    if isinstance(tree, ast.Name):
        return helper.make_attribute(name, int(helper.np_dtype_to_tensor_dtype(np.dtype(TYPES[tree.id]))))
    value = ast.literal_eval(tree)
    if name == "value":
        value = numpy_helper.from_array(np.array([value], np.float32 if isinstance(value, float) else np.int64))
    return helper.make_attribute(name, value)


def build(case):
    """The ONNX model; shapes inside are inferred, those of outputs must come out as the case says."""
    graph = Graph(case.model)

    def info(value):
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype))
        return helper.make_tensor_value_info(value.name, kind, value.shape)

    proto = helper.make_graph(graph.nodes, case.name, list(map(info, graph.inputs())), list(map(info, graph.outputs())),
                              [numpy_helper.from_array(array, name) for name, array in graph.constants.items()])
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", case.opset)], producer_name="golden",
                              ir_version=8 if case.opset < 19 else 10)
    onnx.checker.check_model(model)
    return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)


def write_plan(case):
    """The plan: one rule per tensor whose dims are given, inputs first, outputs last."""
    graph = Graph(case.model)
    inner = [value for value in graph.values.values() if not value.dtype]
    rules = "".join(f"  - {{tensor: {value.name}, dims: {value.dims}{', uneven: true' if value.is_uneven else ''}}}\n"
                    for value in [*graph.inputs(), *inner, *graph.outputs()] if value.dims)
    return f"# {case.name}: {case.plan}\nmesh: {{{case.mesh.replace('=', ': ')}}}\nshard:\n{rules}"


def draw(case):
    """Inputs in graph order from one generator; those of the .npz files were drawn in the same way."""
    rng = np.random.default_rng(0)
    arrays = {}
    for value in Graph(case.model).inputs():
        kind, number = re.fullmatch(r"(\w+)\((.*)\)", value.draw).groups()
        arrays[value.name] = DRAWS[kind](rng, value.shape, ast.literal_eval(number)).astype(value.dtype)
    return arrays
