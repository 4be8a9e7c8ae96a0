"""Compiles a model of many different kernels, on a terminal and on a pipe, and looks at what comes on standard error.

Usage: progress.py MODEL.mlir

The model is made larger until it takes long enough. Then a terminal shows one line, written anew, that names phases or kernels
with seconds, and is gone in the end; a pipe shows nothing.
"""
import os
import pty
import re
import subprocess
import sys
import time


def write(path, count):
    """A chain of contractions, each of other sizes."""
    sizes = [16 + 3 * i for i in range(count + 1)]
    arguments = ", ".join(f"%w{i}: tensor<{a}x{b}xf32>" for i, (a, b) in enumerate(zip(sizes, sizes[1:])))
    with open(path, "w") as file:
        file.write(f"func.func @main(%x0: tensor<8x{sizes[0]}xf32>, {arguments}) -> tensor<8x{sizes[-1]}xf32> {{\n")
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            file.write(f'  %x{i + 1} = nn.einsum %x{i}, %w{i} "ik,kj->ij" : '
                       f"(tensor<8x{a}xf32>, tensor<{a}x{b}xf32>) -> tensor<8x{b}xf32>\n")
        file.write(f"  return %x{count} : tensor<8x{sizes[-1]}xf32>\n}}\n")


def on_terminal(command):
    """What a terminal gets, and how many seconds it took."""
    ours, theirs = pty.openpty()
    began = time.time()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    text = b""
    while True:
        try:
            read = os.read(ours, 65536)
        except OSError:  # nobody writes any more
            break
        if not read:
            break
        text += read
    assert process.wait() == 0, text
    return text.decode(), time.time() - began


def main():
    model, count = sys.argv[1], 20
    command = ["cleave", "compile", model, "-o", model + ".cleave"]
    while True:
        write(model, count)
        text, seconds = on_terminal(command)
        if seconds > 1.3:
            break
        count *= 2
    lines = re.findall(r"\r(cleave: (?:phase \w+|kernel \d+ of (\d+)|machine code of (\d+) kernels), \d+ s)\x1b\[K", text)
    assert lines and all(int(a or b or count) == count for _, a, b in lines), text
    assert re.fullmatch(r"(\r[^\r\n]{0,79}\x1b\[K)+", text) and text.endswith("\r\x1b[K"), text
    piped = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    assert piped.stderr == b"", piped.stderr
    print(f"{count} kernels, as {lines[-1][0]}")


if __name__ == "__main__":
    main()
