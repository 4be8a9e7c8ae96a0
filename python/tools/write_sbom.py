"""Writes what is inside of Cleave's packages, as CycloneDX 1.5: names, versions, licenses.

Usage: write_sbom.py VERSION OUT.json

What is linked in, whole or as headers, is listed with the Debian package that it comes from, whose version is asked of dpkg; where that is
not known it is left out. docs/dependencies.md says what each is for.
"""
import json
import os
import subprocess
import sys

# Name, Debian package that is built with, license (SPDX), and whether it is in our files or a library of the machine that they open.
INSIDE = [
    ("LLVM, MLIR and lld", "llvm-22-dev", "Apache-2.0 WITH LLVM-exception", True),
    ("FlatBuffers", "libflatbuffers-dev", "Apache-2.0", True),
    ("xxHash", "libxxhash-dev", "BSD-2-Clause", True),
    ("libb2", "libb2-dev", "CC0-1.0", True),
    ("RE2", "libre2-dev", "BSD-3-Clause", True),
    ("libzip", "libzip-dev", "BSD-3-Clause", False),
    ("zlib", "zlib1g-dev", "Zlib", False),
    ("zstd", "libzstd-dev", "BSD-3-Clause", False),
    ("tcmalloc (gperftools)", "libgoogle-perftools-dev", "BSD-3-Clause", False),
]


def find_version(package):
    try:
        asked = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return asked.stdout.strip() if asked.returncode == 0 else None


def describe(name, package, license_, is_inside):
    component = {"type": "library", "name": name, "licenses": [{"expression": license_}], "scope": "required",
                 "properties": [{"name": "linked", "value": "static" if is_inside else "shared"}]}
    if version := find_version(package):
        component["version"] = version
        component["purl"] = f"pkg:deb/debian/{package}@{version}"
    return component


def main():
    version, out = sys.argv[1:]
    bom = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
           "metadata": {"component": {"type": "application", "name": "cleave", "version": version, "licenses": [{"expression": "Apache-2.0"}]}},
           "components": [describe(*row) for row in INSIDE]}
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    with open(out, "w") as file:
        json.dump(bom, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    main()
