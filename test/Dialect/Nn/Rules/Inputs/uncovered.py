"""Prints the nn ops that a test file does not contain.

usage: uncovered.py DIALECTS TEST, where DIALECTS is the folder of the op families' TableGen files. Ops without a sharding
rule (nn.param is a symbol, not a value) are left out.
"""

import pathlib
import re
import sys

OP = re.compile(r"^def Nn_\w+Op\s*:\s*Nn_(\w+)<\"(\w+)\"", re.M)


def main(folder, test):
    families = pathlib.Path(folder).glob("*.td")
    ops = {name for file in families for base, name in OP.findall(file.read_text()) if base != "OpBase"}
    used = set(re.findall(r"\bnn\.(\w+)", pathlib.Path(test).read_text()))
    print(f"{len(ops)} ops, uncovered: {' '.join(sorted(ops - used)) or 'none'}")


main(*sys.argv[1:])
