"""Shardy itself, as jaxlib has it, parses and verifies what `cleave shard --emit=sdy` has written.

Usage: parse_sdy.py FILE.mlir...

Prints the mesh and the annotations of arguments and results as Shardy prints them.
"""
import sys

from jax._src.interpreters import mlir
from jaxlib.mlir import ir

context = mlir.make_ir_context()
with context:
    for path in sys.argv[1:]:
        with open(path) as file:
            module = ir.Module.parse(file.read())
        if not module.operation.verify():
            sys.exit(f"{path} is not legal")
        mesh, function = module.body.operations
        print(mesh)
        for kind in ("arg_attrs", "res_attrs"):
            for entry in ir.ArrayAttr(function.attributes[kind]):
                print(kind[:3], ir.DictAttr(entry)["sdy.sharding"])
