"""Every model of this folder gives its recorded outputs.

    check.py BUILD_DIR [MODEL...]
"""

import os
import sys

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

HERE = os.path.dirname(os.path.abspath(__file__))
# (rtol, atol) by model; README.md says where the recorded outputs are less exact than f32.
F32 = (1e-4, 1e-5)
TOLERANCES = {"gpt2_fp16": (3e-2, 3e-2), "llama_bf16": (1e-1, 1e-1)}


def main():
    build, names, _ = harness.arguments()
    models = {file[:-5]: f"{HERE}/{file[:-5]}" for file in sorted(os.listdir(HERE)) if file.endswith(".onnx")}
    models = harness.select(models, names)
    results = harness.conformance(build, [(name, path + ".onnx", path + ".npz", *TOLERANCES.get(name, F32))
                                          for name, path in models.items()])

    def problem(name):
        status, reason = results.get(name, ("CRASH", ""))
        return "" if status == "PASS" else f"{status} {reason}"

    return harness.run({name: name for name in models}, problem)


if __name__ == "__main__":
    sys.exit(main())
