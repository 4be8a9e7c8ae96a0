"""Writes a model given in the text form of onnx.parser; `# ` starts a comment. Usage: make_model.py TEXT_FILE ONNX_FILE"""
import sys

import onnx.parser

with open(sys.argv[1]) as file:
    text = "\n".join(line for line in file.read().splitlines() if not line.startswith("# "))
onnx.save(onnx.parser.parse_model(text), sys.argv[2])
