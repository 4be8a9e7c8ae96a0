"""Whether the tables of `cleave shard --emit placements` give each rank the shapes that a report says.

Usage: check_placements.py PLACEMENTS.json REPORT.json

DTensor cuts a dim once for each Shard of it, in the order of the mesh (torch.chunk: all shards are as large as the first, but the last ones).
JAX cuts a dim by the product of its axes. Prints how many tensors were compared; ends with 1 where one differs.
"""
import json
import math
import re
import sys


def cut_by_placements(shape, placements, mesh):
    local = list(shape)
    for placement, size in zip(placements, mesh):
        if found := re.fullmatch(r"Shard\((\d+)\)", placement):
            local[int(found[1])] = math.ceil(local[int(found[1])] / size)
    return local


def cut_by_spec(shape, spec, sizes):
    return [math.ceil(size / math.prod(sizes[name] for name in ([axes] if isinstance(axes, str) else axes or []))) for size, axes in zip(shape, spec)]


def cut_by_shardy(shape, text, sizes):
    dims = re.search(r"\[(.*)\]", text)[1]
    local = []
    for size, dim in zip(shape, re.findall(r"\{([^}]*)\}", dims)):
        parts = [int(part) if part else sizes[name] for name, part in re.findall(r'"(\w+)"(?::\(\d+\)(\d+))?', dim)]
        local.append(math.ceil(size / math.prod(parts)))
    return local


def main():
    with open(sys.argv[1]) as file:
        table = json.load(file)
    with open(sys.argv[2]) as file:
        report = json.load(file)
    sizes = dict(zip(table["mesh"]["names"], table["mesh"]["shape"]))
    assert sizes == report["mesh"], f"{sizes} is not {report['mesh']}"
    there = {(kind, one["name"]): one for kind in ("input", "output") for one in report[kind + "s"]}
    compared = 0
    for tensor in table["tensors"]:
        known = there.get((tensor["kind"], tensor["name"]))
        shapes = {"sdy": cut_by_shardy(tensor["shape"], tensor["sdy"], sizes)}
        if "dtensor" in tensor:
            shapes["dtensor"] = cut_by_placements(tensor["shape"], tensor["dtensor"], table["mesh"]["shape"])
        if "jax" in tensor:
            shapes["jax"] = cut_by_spec(tensor["shape"], tensor["jax"], sizes)
        expected = known["local_shape"] if known else shapes["sdy"]
        for word, shape in shapes.items():
            compared += 1
            if shape != expected:
                sys.exit(f"{tensor['name']}: {word} gives a rank {shape}, expected {expected}")
    print(f"{compared} shapes agree, {len(there)} tensors of the report")


main()
