"""Cleave: one ONNX model and N devices; a program per device that computes the same.

    import cleave

    program = cleave.compile("m.onnx", mesh="data=2,model=2", plan="plan.yaml")
    outputs = program.run({"x": x})          # {name: numpy array}
    print(program.report)                    # what each rank stores and sends

| to | call |
|---|---|
| compile, run, save | `compile`, `load`, `Program` |
| find a plan, write one | `plan`, `Plan`, `Rule` |
| ask what ranks would do, and whether it is right | `shard`, `check`, `explain`, `inspect`, `schedule` |
| see it, time it | `page`, `bench` |
| train | `train`, `Trainer` |
| begin with a module of PyTorch | `from_torch` |

What is wrong is an `Error`, with file, line, column and notes. docs/python.md says more.
"""
from cleave_runtime import ArgumentError, ClosedError, Diagnostic, Error, InUseError, Tensor, __version__, load, to_dlpack

from ._compile import Program, Trainer, bench, check, compile, explain, inspect, page, plan, schedule, shard, train
from ._options import CleaveWarning, Options
from ._plan import Plan, Rule
from ._reports import (Alternative, Bench, Check, Collective, Explanation, FoundPlan, Outline, OutputCheck, Page, ProgramOutline, Report, Schedule, Training,
                       ValueExplanation)
from ._torch import Model, from_torch

__all__ = ["Alternative", "ArgumentError", "Bench", "Check", "CleaveWarning", "ClosedError", "Collective", "Diagnostic", "Error", "Explanation", "FoundPlan",
           "InUseError", "Model", "Options", "Outline", "OutputCheck", "Page", "Plan", "Program", "ProgramOutline", "Report", "Rule", "Schedule", "Tensor",
           "Trainer", "Training", "ValueExplanation", "__version__", "bench", "check", "compile", "explain", "from_torch", "inspect", "load", "page", "plan",
           "schedule", "shard", "to_dlpack", "train"]
