"""Steps of onnxruntime-training, for training.py: run by a Python that has onnxruntime-training-cpu 1.19.2, onnx 1.16 and numpy 1.

    training_peer.py MODEL OUTPUT THREADS STEPS BATCH LENGTH

The mean square of OUTPUT against numbers, AdamW on all weights. The package asks for torch, of which artifacts need nothing: what it imports
of it is an empty stand-in. Its gradient of LayerNormalization reads two outputs that a model need not have. Prints the milliseconds of each
step as JSON.
"""
import importlib.abc
import importlib.machinery
import json
import os
import sys
import tempfile
import time
import types


class Anything(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (object,), {})


class Empty(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (object,), {})


class Torch(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] == "torch" else None

    def create_module(self, spec):
        return Empty(spec.name)

    def exec_module(self, module):
        module.__version__ = "2.4.0"


sys.meta_path.insert(0, Torch())
for name in ("ortmodule", "ort_triton"):
    sys.modules["onnxruntime.training." + name] = Empty(name)

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnxruntime.training import artifacts  # noqa: E402
from onnxruntime.training.api import CheckpointState, Module, Optimizer  # noqa: E402


def main():
    path, output = sys.argv[1:3]
    threads, steps, batch, length = map(int, sys.argv[3:])
    model = onnx.load(path)
    for value in model.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, (batch, length)):
            dim.dim_value = size
    for number, node in enumerate(model.graph.node):
        if node.op_type == "LayerNormalization" and len(node.output) == 1:
            node.output.extend([f"mean{number}", f"inverse{number}"])
    kept = [value for value in model.graph.output if value.name == output]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    trained = [initializer.name for initializer in model.graph.initializer if initializer.data_type == onnx.TensorProto.FLOAT and np.prod(initializer.dims) > 1]
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        artifacts.generate_artifacts(model, requires_grad=trained, loss=artifacts.LossType.MSELoss, optimizer=artifacts.OptimType.AdamW, artifact_directory=folder)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        module = Module(at("training_model.onnx"), CheckpointState.load_checkpoint(at("checkpoint")), at("eval_model.onnx"), device="cpu", session_options=options)
        optimizer = Optimizer(at("optimizer_model.onnx"), module)
        random = np.random.default_rng(0)
        feeds = [random.integers(0, 1000, (batch, length)), np.ones((batch, length), np.int64)]
        targets = random.standard_normal((batch, kept[0].type.tensor_type.shape.dim[-1].dim_value or 384)).astype(np.float32)
        module.train()
        times = []
        for _ in range(steps):
            began = time.perf_counter()
            module(*feeds, targets)
            optimizer.step()
            module.lazy_reset_grad()
            times.append((time.perf_counter() - began) * 1e3)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
