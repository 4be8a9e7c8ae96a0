"""Steps of onnxruntime-training, for training.py: run by a Python that has onnxruntime-training-cpu 1.19.2, onnx 1.16 and numpy 1.

    training_peer.py MODEL OUTPUT LOSS BATCH.npz THREADS

LOSS (mse, cross_entropy) of OUTPUT, AdamW on all weights; serves steps (training_serve.py). The package asks for torch, of which artifacts
need nothing: what it imports of it is an empty stand-in. Its gradient of LayerNormalization reads two outputs that a model need not have.
"""
import importlib.abc
import importlib.machinery
import os
import sys
import tempfile
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

from training_serve import serve  # noqa: E402

RATE = 1e-4
LOSSES = {"mse": artifacts.LossType.MSELoss, "cross_entropy": artifacts.LossType.CrossEntropyLoss}


def main():
    path, output, loss, data, threads = sys.argv[1:6]
    model, batch = onnx.load(path), dict(np.load(data))
    for value in model.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, batch[value.name].shape):
            dim.dim_value = size
    for number, node in enumerate(model.graph.node):
        if node.op_type == "LayerNormalization" and len(node.output) == 1:
            node.output.extend([f"mean{number}", f"inverse{number}"])
    kept = [value for value in model.graph.output if value.name == output]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    trained = [initializer.name for initializer in model.graph.initializer if initializer.data_type == onnx.TensorProto.FLOAT and initializer.dims]
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        artifacts.generate_artifacts(model, requires_grad=trained, loss=LOSSES[loss], optimizer=artifacts.OptimType.AdamW, artifact_directory=folder)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = int(threads), 1
        module = Module(at("training_model.onnx"), CheckpointState.load_checkpoint(at("checkpoint")), at("eval_model.onnx"), device="cpu", session_options=options)
        optimizer = Optimizer(at("optimizer_model.onnx"), module)
    feeds = [*(batch[value.name] for value in model.graph.input), batch["labels"]]
    optimizer.set_learning_rate(RATE)
    module.train()

    def step():
        loss = module(*feeds)
        optimizer.step()
        module.lazy_reset_grad()
        return loss

    serve(step)


if __name__ == "__main__":
    main()
