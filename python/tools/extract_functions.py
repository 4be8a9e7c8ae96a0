#!/usr/bin/env python3
"""Writes the function bodies by which ONNX defines ops, as the bytes of one model in C++ syntax.

    extract_functions.py OUT.inc

Every op of the default domain with a body that depends on nothing but opset and attributes is there, once per version
of the op; the function's `overload` is that version. Bodies that need the operand types are built by ONNX's C++ code at
run time and can't be extracted: the importer has functions of its own for those ops.
"""

import sys

import onnx


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


def main() -> None:
    data = extract().SerializeToString(deterministic=True)
    rows = [",".join(map(str, data[i : i + 32])) for i in range(0, len(data), 32)]
    with open(sys.argv[1], "w") as out:
        out.write(",\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
