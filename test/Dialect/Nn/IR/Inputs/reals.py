"""Writes ops with random f64 attributes, and sees that they come back bit by bit: reals.py FOLDER"""
import os
import random
import re
import struct
import subprocess
import sys

FOLDER, COUNT = sys.argv[1], 300
# Bits, where decimal digits have no point.
NUMBER = r"0x[0-9A-F]{16}|-?\d+\.\d*(?:[eE][-+]?\d+)?"


def draw():
    """Any finite number, of all magnitudes, with all bits."""
    number = struct.unpack("d", struct.pack("Q", random.getrandbits(64)))[0]
    return number if abs(number) < float("inf") else draw()


def opt(name, *words):
    """The text of a file after a way through cleave-opt."""
    made = subprocess.run(["cleave-opt", os.path.join(FOLDER, name), *words], capture_output=True, check=True).stdout
    with open(os.path.join(FOLDER, "made"), "wb") as file:
        file.write(made)
    return made


def numbers(text):
    """Those of each op, in the order in which they are drawn."""
    found = []
    for line in text.decode().splitlines():
        if "nn.resize" in line:
            found += re.findall(NUMBER, line.split("scales [")[1].split("]")[0]) + re.findall(rf"cubicCoefficient = ({NUMBER})", line)
        elif "nn.recurrence" in line:
            for key in ("alphas [", "betas ["):
                found += re.findall(NUMBER, line.split(key)[1].split("]")[0])
            found += re.findall(rf"clip = ({NUMBER})", line)
        elif "nn.layer_norm" in line:
            found += re.findall(rf"epsilon ({NUMBER})", line)
    return [struct.pack("Q", int(each, 16)) if each.startswith("0x") else struct.pack("d", float(each)) for each in found if each]


def main():
    random.seed(1)
    drawn, lines = [], []
    for index in range(COUNT):
        values = [abs(draw()) or 1.5 for _ in range(2)] + [draw() for _ in range(4)]
        drawn += [struct.pack("d", each) for each in values]
        s, t, cubic, alpha, beta, epsilon = (f"{each:.17e}" for each in values)
        lines += [f"  %r{index} = nn.resize cubic %x coordinates asymmetric rounding floor scales [{s}, {t}] {{cubicCoefficient = {cubic} : f64}} : "
                  "(tensor<4x6xf32>) -> tensor<8x12xf32>",
                  f'  %y{index}:2 = nn.recurrence rnn %p, %w initial (%h) activations ["elu"] alphas [{alpha}] betas [{beta}] : '
                  "(tensor<5x1x2x1x8xf32>, tensor<1x1x8x8xf32>, tensor<1x2x8xf32>) -> (tensor<5x1x2x8xf32>, tensor<1x2x8xf32>)",
                  f"  %n{index} = nn.layer_norm %x dim 1 epsilon {epsilon} : (tensor<4x6xf32>) -> tensor<4x6xf32>"]
    with open(os.path.join(FOLDER, "all.mlir"), "w") as file:
        file.write("func.func @main(%x: tensor<4x6xf32>, %p: tensor<5x1x2x1x8xf32>, %w: tensor<1x1x8x8xf32>, %h: tensor<1x2x8xf32>) {\n")
        file.write("\n".join(lines) + "\n  return\n}\n")
    for way, text in (("text", opt("all.mlir")), ("text of text", opt("made")), ("bytecode", opt("all.mlir", "--emit-bytecode")),
                      ("text of bytecode", opt("made"))):
        if way != "bytecode":
            got = numbers(text)
            wrong = [(struct.unpack("d", a)[0], struct.unpack("d", b)[0]) for a, b in zip(got, drawn) if a != b]
            assert len(got) == len(drawn) and not wrong, f"{way}: {len(got)} numbers of {len(drawn)}, others are {wrong[:3]}"
    print(f"{len(drawn)} numbers are the same bits in text, in text of bytecode, and in text of text")


if __name__ == "__main__":
    main()
