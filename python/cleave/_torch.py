"""Models of PyTorch: exported by torch, and taken from there."""
from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from typing import Any, Optional, Sequence

from ._options import Path


class Model:
    """An ONNX file that is gone with this; takes the place of a path in all calls."""

    def __init__(self, path: str, folder: Optional[str]):
        self.path = path
        self._finalizer = weakref.finalize(self, shutil.rmtree, folder, True) if folder else None

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<cleave.Model {self.path}>"


def from_torch(module: Any, example_inputs: Sequence[Any], output: Optional[Path] = None, *, input_names: Optional[Sequence[str]] = None,
               output_names: Optional[Sequence[str]] = None, dynamic_shapes: Any = None, **export: Any) -> Model:
    """Exports a `torch.nn.Module` to ONNX, by torch's exporter, and gives what all calls take as a model.

        model = cleave.from_torch(net, (x,), input_names=["x"])
        program = cleave.compile(model, mesh="model=2", plan=cleave.Plan(shard=[cleave.Rule(module="layers.*.up", dims=["_", "model"])]))

    Modules keep their paths: a rule of a plan may say `module: layers.0.up`. `example_inputs`: arguments of `module`, in order. `output`: where
    the file stays; without it, it is gone with the value. `dynamic_shapes` and all else are `torch.onnx.export`'s. Needs torch and onnxscript.
    """
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise ImportError("from_torch needs torch and onnxscript: pip install torch onnxscript") from error
    if isinstance(example_inputs, torch.Tensor):
        example_inputs = (example_inputs,)
    folder = tempfile.mkdtemp(prefix="cleave") if output is None else None
    path = os.fspath(output) if folder is None else os.path.join(folder, "model.onnx")  # type: ignore[arg-type]
    # A model that is run drops nothing; how it was is how it is left.
    was_training = module.training
    module.eval()
    try:
        torch.onnx.export(module, tuple(example_inputs), path, dynamo=True, input_names=input_names, output_names=output_names,
                          dynamic_shapes=dynamic_shapes, verbose=False, **export)
    except BaseException:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        module.train(was_training)
    return Model(path, folder)

