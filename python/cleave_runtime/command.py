"""`cleave-run`, the program beside this file."""
import os
import sys


def main() -> None:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cleave-run")
    os.execv(path, [path, *sys.argv[1:]])
