"""Fixtures as onnxruntime's own optimizer writes them, at each of its levels: equal to their recorded outputs.

Prints `N passed, N failed` and which ops of com.microsoft were among them; what failed comes before.
"""

import os
import shutil
import sys
import tempfile

import onnx
import onnxruntime as ort

sys.path.insert(1, os.path.join(sys.path[0], "..", ".."))
import harness  # noqa: E402

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Models")
LEVELS = {"1": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC, "2": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
          "99": ort.GraphOptimizationLevel.ORT_ENABLE_ALL}
# onnxruntime has no bf16 on hosts, and blocks channels by the size of this machine's vectors at its last level.
SKIPPED = {("llama_bf16", level) for level in LEVELS} | {("resnet_ts17", "99"), ("unet_dyn18", "99"), ("vit_dyn18", "99")}
TOLERANCES = {"gpt2_fp16": (3e-2, 3e-2)}


def optimize(path, target, level):
    options = ort.SessionOptions()
    options.graph_optimization_level, options.optimized_model_filepath = level, target
    ort.set_default_logger_severity(4)
    ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def main():
    rows, ops = [], set()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(MODELS, "mlp_external.bin"), folder)
        for name in sorted(file[:-5] for file in os.listdir(MODELS) if file.endswith(".onnx")):
            for level, value in LEVELS.items():
                if (name, level) in SKIPPED:
                    continue
                target = os.path.join(folder, f"{name}.{level}.onnx")
                optimize(os.path.join(MODELS, name + ".onnx"), target, value)
                ops |= {node.op_type for node in onnx.load(target, load_external_data=False).graph.node if node.domain == "com.microsoft"}
                rtol, atol = TOLERANCES.get(name, (1e-4, 2e-5))
                rows.append((f"{name} level {level}", target, f"{MODELS}/{name}.npz", rtol, atol))
        code = harness.compare(rows)
    print(" ".join(sorted(ops)))
    return code


if __name__ == "__main__":
    sys.exit(main())
