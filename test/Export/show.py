"""Prints what exported files say, for lit tests: show.py FOLDER."""
import json
import os
import sys

import onnx
from onnx import helper


def text(value):
    if isinstance(value, bytes):
        return repr(value.decode())
    return str([entry.decode() if isinstance(entry, bytes) else entry for entry in value]) if isinstance(value, list) else str(value)


def show(path):
    model = onnx.load(path, load_external_data=False)
    print(os.path.basename(path))
    for entry in sorted(model.metadata_props, key=lambda entry: entry.key):
        print(f"{entry.key} = {entry.value}")
    shapes = {}
    for info in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        shapes[info.name] = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
    for info in model.graph.input:
        print(f"{info.name}: {shapes[info.name]}")
    for weight in model.graph.initializer:
        where = {entry.key: entry.value for entry in weight.external_data}
        print(f"weight {weight.name}: {list(weight.dims)}" + (f" in {where['location']} at {where['offset']}" if where else ""))
    for node in model.graph.node:
        name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        attributes = "".join(f" {attribute.name} = {text(helper.get_attribute_value(attribute))}"
                             for attribute in sorted(node.attribute, key=lambda attribute: attribute.name))
        print(f"{name}({', '.join(node.input)}){attributes} -> {' '.join(str(shapes[name]) for name in node.output)}")


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "export.json")) as file:
        manifest = json.load(file)
    print(f"files: {[(entry['model'], entry['ranks']) for entry in manifest['files']]}")
    for kind in ("inputs", "outputs"):
        for port in manifest[kind]:
            print(f"{kind[:-1]} {port['name']}: {port['type']} {port['shape']} as {port['local_shape']} cut by {port['dims']}")
    for entry in manifest["files"]:
        show(os.path.join(folder, entry["model"]))


main()
