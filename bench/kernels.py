"""Times kernels of lib/Codegen: ns per element of the largest tensor, thread CPU time, least of 12 rounds; and compiling.

Usage: kernels.py BUILD_DIR [--isa CPU]

Never a test. Prints a table for docs/benchmarks.md.
"""
import os
import subprocess
import sys


def main():
    build, rest = sys.argv[1], sys.argv[2:]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels.mlir")
    done = subprocess.run([f"{build}/bin/cleave-kernels", path, "--time", *rest], stdout=subprocess.PIPE, text=True,
                          check=True)
    print("| kernel | ns an element |\n|---|---|")
    for line in done.stdout.splitlines():
        name, figure = line.split("\t")
        print(f"| {name.replace('_', ' ')} | {figure} |")


if __name__ == "__main__":
    main()
