#!/usr/bin/env python3
"""Writes the function bodies by which ONNX defines ops, as the bytes of one model in C++ syntax.

    extract_functions.py OUT.inc

Every op of the default domain with a body that depends on nothing but opset and attributes is there, once per version
of the op; the function's `overload` is that version. Bodies that need the operand types are built by ONNX's C++ code at
run time and can't be extracted: the importer has functions of its own for those ops.

Quantized ops of onnxruntime follow, of domain com.microsoft, which are an op of ONNX between dequantizing and quantizing:
onnxruntime computes these in floats, too.
"""

import sys

import onnx
import onnx.parser

QLINEAR = "X, Xs, Xz, Ys, Yz"
BOTH = "A, As, Az, B, Bs, Bz, Ys, Yz"
# Channels come first in ONNX: where they are last, they are moved.
CHANNELS = """
  channels = Constant <value_int: int = @channels_last> ()
  last = Cast <to = 9> (channels)
  x = If (last) <then_branch = first () => (moved) {{ moved = Transpose <perm = [0, 3, 1, 2]> (wide) }},
                 else_branch = same () => (kept) {{ kept = Identity (wide) }}>
  pooled = {op} (x)
  y = If (last) <then_branch = back () => (returned) {{ returned = Transpose <perm = [0, 2, 3, 1]> (pooled) }},
                 else_branch = stay () => (stayed) {{ stayed = Identity (pooled) }}>
"""
FLATTENED = """
  version = Constant <value_int: int = @opset> ()
  twelve = Constant <value_int = 12> ()
  isNew = Greater (version, twelve)
  y = If (isNew) <then_branch = one () => (row) { row = Softmax <axis: int = @axis> (wide) },
    else_branch = all () => (rows) {
      flat = Flatten <axis: int = @axis> (wide)
      soft = Softmax <axis = 1> (flat)
      shape = Shape (wide)
      rows = Reshape (soft, shape) }>
"""
# name: (inputs, attributes with defaults, body from what is dequantized, `wide` or `a` and `b`, to y)
MICROSOFT = {
    "QLinearAdd": (BOTH, {}, "y = Add (a, b)"),
    "QLinearMul": (BOTH, {}, "y = Mul (a, b)"),
    "QLinearSigmoid": (QLINEAR, {}, "y = Sigmoid (wide)"),
    "QLinearLeakyRelu": (QLINEAR, {"alpha": 0.01}, "y = LeakyRelu <alpha: float = @alpha> (wide)"),
    "QLinearSoftmax": (QLINEAR, {"axis": -1, "opset": None}, FLATTENED),
    "QLinearGlobalAveragePool": (QLINEAR, {"channels_last": 0}, CHANNELS.format(op="GlobalAveragePool")),
    "QLinearAveragePool": (
        QLINEAR,
        {"channels_last": 0, "auto_pad": "NOTSET", "ceil_mode": 0, "count_include_pad": 0, "kernel_shape": None, "pads": None, "strides": None},
        CHANNELS.format(op="AveragePool <auto_pad: string = @auto_pad, ceil_mode: int = @ceil_mode, "
                        "count_include_pad: int = @count_include_pad, kernel_shape: ints = @kernel_shape, pads: ints = @pads, "
                        "strides: ints = @strides>")),
}  # fmt: skip


def extract() -> onnx.ModelProto:
    model = onnx.ModelProto(ir_version=10)
    model.graph.name = "functions"
    model.opset_import.add(domain="", version=25)
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.domain == "" and s.has_function]
    for schema in sorted(schemas, key=lambda s: (s.name, s.since_version)):
        function = model.functions.add()
        function.CopyFrom(schema.function_body)
        function.overload = str(schema.since_version)
        function.ClearField("doc_string")
        # Bodies name the op's attributes; their defaults stand in the schema.
        defaults = [a.default_value for a in schema.attributes.values() if a.default_value.type]
        function.attribute_proto.extend(sorted(defaults, key=lambda a: a.name))
        named = set(function.attribute) - {a.name for a in defaults}
        del function.attribute[:]
        function.attribute.extend(sorted(named))
        for node in function.node:
            node.ClearField("doc_string")
    return model


def add_function(model: onnx.ModelProto, text: str, attributes: dict) -> None:
    function = onnx.parser.parse_function(f'<domain: "com.microsoft", opset_import: ["" : 21]> {text}')
    function.overload = "1"
    function.attribute.extend(key for key, default in attributes.items() if default is None)
    function.attribute_proto.extend(
        onnx.helper.make_attribute(key, default) for key, default in attributes.items() if default is not None)  # fmt: skip
    model.functions.append(function)


def add_quantized(model: onnx.ModelProto) -> None:
    for name in ("QuantizeLinear", "DequantizeLinear"):
        keys = "axis: int = @axis, block_size: int = @block_size"
        add_function(model, f"{name} (X, Xs, Xz) => (Y) {{ Y = {name} <{keys}> (X, Xs, Xz) }}", {"axis": 1, "block_size": 0})
    for name, (inputs, attributes, body) in MICROSOFT.items():
        widen = "wide = DequantizeLinear (X, Xs, Xz)"
        if inputs == BOTH:
            widen = "a = DequantizeLinear (A, As, Az)\n b = DequantizeLinear (B, Bs, Bz)"
        # Without its zero point the result's type is unknown: Identity says that it is missing.
        text = f"""{name} ({inputs}) => (Y) {{
            {widen}
            {body}
            zero = Identity (Yz)
            Y = QuantizeLinear (y, Ys, zero) }}"""
        add_function(model, text, attributes)


def main() -> None:
    model = extract()
    add_quantized(model)
    data = model.SerializeToString(deterministic=True)
    rows = [",".join(map(str, data[i : i + 32])) for i in range(0, len(data), 32)]
    with open(sys.argv[1], "w") as out:
        out.write(",\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
