"""Writes a profile in which every node of a canonical module takes as long: profile_all.py MODULE.mlir NS FILE.json.

Prints what that is in all: nodes of which constants are left do not count, nor are their times to be taken.
"""
import json
import re
import sys

text = open(sys.argv[1]).read()
aliases = dict(re.findall(r"^(#loc\d*) = (.*)$", text, re.M))


def names(place):
    """The nodes of a location; several where ops were fused."""
    for alias in re.findall(r"#loc\d*", place):
        yield from names(aliases.get(alias, ""))
    yield from re.findall(r'nn\.node<"([^"]+)"', place)


timed = {name for op in re.findall(r"^ +%.*", text, re.M) if not re.search(r"= nn\.(constant|load)\b", op)
         for name in names(op[op.rindex("loc("):])}
json.dump({name: float(sys.argv[2]) for name in sorted({*names(" ".join(aliases))})}, open(sys.argv[3], "w"), indent=1)
print(len(timed) * int(sys.argv[2]), "ns in all")
