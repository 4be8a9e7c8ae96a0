"""Runs programs that Cleave has compiled. Needs numpy alone: no MLIR, no LLVM, no compiler.

    import cleave_runtime

    with cleave_runtime.load("model.cleave") as program:
        outputs = program.run({"x": x})          # {name: numpy array}

`cleave`, the package with the compiler, has all of this as well.
"""
from ._arrays import to_dlpack
from ._errors import ArgumentError, ClosedError, Diagnostic, Error, InUseError
from ._library import version
from ._program import Program, Tensor, load

__all__ = ["ArgumentError", "ClosedError", "Diagnostic", "Error", "InUseError", "Program", "Tensor", "load", "to_dlpack"]
__version__ = version()
