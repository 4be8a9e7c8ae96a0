"""Every model of this folder gives its recorded outputs, or is refused where it must be.

    check.py BUILD_DIR [MODEL...]
"""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# (rtol, atol) by model; README.md says where the recorded outputs are less exact than f32.
F32 = (1e-4, 1e-5)
TOLERANCES = {"gpt2_fp16": (3e-2, 3e-2), "llama_bf16": (1e-1, 1e-1)}
# onnxruntime's fused operators are not part of ONNX.
REFUSED = {"bert_ort": "(EmbedLayerNormalization, com.microsoft 1"}


def main():
    build, names = sys.argv[1], sys.argv[2:]
    names = names or sorted(file[:-5] for file in os.listdir(HERE) if file.endswith(".onnx"))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as cases:
        for name in names:
            rtol, atol = TOLERANCES.get(name, F32)
            cases.write(f"{name}\t{HERE}/{name}.onnx\t{HERE}/{name}.npz\t{rtol}\t{atol}\n")
        cases.flush()
        done = subprocess.run([f"{build}/bin/cleave-conformance", cases.name], stdout=subprocess.PIPE, text=True,
                              errors="replace", check=True)
    passed = 0
    for line in done.stdout.splitlines():
        status, _, rest = line.partition(" ")
        name, _, reason = rest.partition("\t")
        wanted = REFUSED.get(name)
        good = status == "REFUSED" and wanted in reason if wanted else status == "PASS"
        passed += good
        if not good:
            print(line)
    print(f"{passed} passed, {len(names) - passed} failed")
    return 0 if passed == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
