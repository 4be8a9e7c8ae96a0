"""Imports each ONNX model written as text in a test file, and prints what cleave-translate prints.

    import_text.py TEST_FILE

Models are in the text form of onnx.parser, separated by lines `# -----`. Lines that start with `#` are comments; a line
`# OPTIONS: ...` passes options on. Every run must end within 10 seconds and 1 GB, by itself, and with exit code 0 or 1.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile

import onnx.parser

SECONDS = 10
KILOBYTES = 1 << 20


def models(path):
    """(options, model text) of each model in the file."""
    with open(path) as file:
        for part in file.read().split("# -----\n"):
            lines = part.splitlines()
            options = [line[len("# OPTIONS:"):].split() for line in lines if line.startswith("# OPTIONS:")]
            yield sum(options, []), "\n".join(line for line in lines if not line.startswith("#"))


def main():
    source = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        for options, text in models(source):
            model = onnx.parser.parse_model(text)
            onnx.save(model, os.path.join(folder, "model.onnx"))
            done = subprocess.run(["cleave-translate", "--import-onnx", "model.onnx", *options], cwd=folder, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
            # Which node an op was made for is looked at in locations.test; here it would stand between what is.
            text = re.sub(r" \{nn\.node = [^}]*\}|, nn\.node = #?\w+", "", done.stdout)
            print(f"== {model.graph.name}, exit {done.returncode}\n{text}", flush=True)
            assert done.returncode in (0, 1), "a crash"
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < KILOBYTES, "too much memory"


if __name__ == "__main__":
    main()
