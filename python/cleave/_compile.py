"""The calls of the package: what `cleave` does, as functions that give values."""
from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

import cleave_runtime
from cleave_compiler import _native
from cleave_runtime import Error
from cleave_runtime._arrays import to_numpy
from cleave_runtime._program import Caller

from ._json import make
from ._options import ModelOptions, Options, Path, call
from ._reports import Bench, Check, Explanation, FoundPlan, Outline, Page, ProgramOutline, Report, Schedule, Training

try:
    from typing import Unpack
except ImportError:
    from typing_extensions import Unpack


class Program(cleave_runtime.Program):
    """A program that this process has compiled, open on all of its ranks: `run`, `inputs`, `outputs`, `states`, as of any other, `report`, and
    `save`."""

    def __init__(self, path: Path, report: Report, folder: Optional[str] = None, asked: Optional[tuple[Path, Any]] = None, **options: Any):
        self.report = report
        self._asked = asked
        self._finalizer = weakref.finalize(self, shutil.rmtree, folder, True) if folder else None
        super().__init__(path, **options)

    def save(self, path: Path) -> None:
        """Writes the program file to a place of yours. Files of weights stay where they are (`embed_weights=True` of `compile` puts them
        inside)."""
        call(None, {}, lambda *_: _native.move_program(os.fspath(self.path), os.fspath(path)))

    def page(self) -> Page:
        """The page of the model and plan that it was compiled from, if the model's file is still there."""
        if self._asked is None:
            raise ValueError("the program was not compiled here")
        return page(self._asked[0], **self._asked[1])

    def _repr_html_(self) -> str:
        # A model that is gone by now is no error of who looks at the program.
        try:
            return super()._repr_html_() + self.page()._repr_html_()
        except (Error, ValueError):
            return super()._repr_html_()


def compile(model: Path, output: Optional[Path] = None, *, weights_folder: Optional[Path] = None, runtime: Optional[Mapping[str, Any]] = None,
            **options: Unpack[Options]) -> Program:
    """Compiles a model and opens the program.

        program = cleave.compile("m.onnx", mesh="data=2,model=2", plan="plan.yaml")
        outputs = program.run({"x": x})

    `model`: an .onnx file, a file of MLIR, or what `from_torch` gives. `output`: where the program file is written; without it the file is
    gone with the program. `runtime`: what `Program` takes beside the path, `{"deadline": 5}`. All else is in `Options`. Raises `Error`, with
    the place of what is wrong. Several threads may compile at once. Ctrl-C raises `KeyboardInterrupt` at once; the compilation ends with its
    phase, in the background.
    """
    return _compile(model, output, weights_folder, runtime, False, options)


def _compile(model: Path, output: Optional[Path], weights_folder: Optional[Path], runtime: Optional[Mapping[str, Any]], evaluates: bool,
             options: Any) -> Program:
    """`evaluates`: of a step of training the function `eval`, too."""
    given = dict(options)

    def ask(native: _native.Options, stop: _native.Stop) -> str:
        native.evaluates = evaluates
        try:
            return _native.compile(native, path, stop)
        finally:
            # Whoever has left does so too, and either comes last.
            if folder and stop.is_asked:
                shutil.rmtree(folder, ignore_errors=True)

    folder = tempfile.mkdtemp(prefix="cleave") if output is None else None
    path = os.fspath(output) if folder is None else os.path.join(folder, "program.cleave")  # type: ignore[arg-type]
    try:
        report = make(Report, call(model, given, ask))
        return Program(path, report, folder, (model, given), weights=weights_folder, **(runtime or {}))
    except BaseException:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def shard(model: Path, output: Optional[Path] = None, *, phase: Optional[str] = None, **options: Unpack[Options]) -> Optional[Report]:
    """What the ranks of a partitioned model would send, store and take; with a cluster, how long. Nothing is compiled.

    `output`: a file of MLIR that gets the program of a rank, up to `phase` where one is named (`propagated`, `partitioned`, `optimized`, ..).
    Gives None for a phase in which nothing is partitioned yet.
    """
    result = call(model, options, lambda native, stop: _native.shard(native, phase or "", os.fspath(output) if output is not None else
                                                                     (os.devnull if phase else ""), stop))
    return make(Report, result) if result else None


def check(model: Path, *, seed: int = 0, rtol: Optional[float] = None, atol: Optional[float] = None, executor: str = "reference",
          **options: Unpack[Options]) -> Check:
    """Runs a model on ranks and on one device, and holds each output of the one against the other: `if cleave.check(..): ..`.

    Inputs are those of the .npz file `inputs`, or drawn by `seed`. `executor`: `reference`, the evaluator, or `program`, compiled code.
    `rtol`, `atol`: instead of the tolerances of the types.
    """
    how = _native.CheckOptions()
    how.seed, how.rtol, how.atol, how.executor = seed, rtol, atol, executor
    return make(Check, call(model, options, lambda native, stop: _native.check(native, how, stop)))


def page(model: Path, output: Optional[Path] = None, *, compare: Optional[Path] = None, measured: Optional[Path] = None,
         **options: Unpack[Options]) -> Page:
    """What a plan does to a model, as one page of HTML: graph, mesh, memory, schedule, costs (docs/page.md). Notebooks show it.

    `output`: a file that gets it. `compare`: the file of another plan, beside the first. `measured`: the trace of a run
    (`cleave-run --trace`), beside what is predicted.
    """
    result = call(model, options, lambda native, stop: _native.page(native, os.fspath(compare or ""), os.fspath(measured or ""), stop))
    made = Page(result["html"], result["json"])
    if output is not None:
        made.save(output)
    return made


def bench(model: Path, *, calls: int = 20, seed: int = 0, **options: Unpack[Options]) -> Bench:
    """How long calls of a model, which is compiled, or of a program file take, with inputs that are drawn by `seed` or those of the file
    `inputs`. `calls`: how many count, after some that do not."""
    if calls < 1:
        raise ValueError(f"calls is {calls}, expected 1 or more")
    return make(Bench, call(model, options, lambda native, stop: _native.bench(native, calls, seed, stop)))


def explain(model: Path, value: str = "", **options: Unpack[Options]) -> Explanation:
    """Why values are sharded as they are: those whose name, node or module (`module:..`) matches the pattern `value`, or all."""
    return make(Explanation, call(model, options, lambda native, stop: _native.explain(native, value, stop)))


def _range(counts: Union[int, Sequence[int], range, None]) -> Optional[tuple[int, int]]:
    if counts is None:
        return None
    return (counts, counts) if isinstance(counts, int) else (min(counts), max(counts))


def plan(model: Path, devices: Optional[int] = None, *, objective: str = "latency", memory: Union[str, int, None] = None,
         within: Optional[float] = None, stages: Union[int, Sequence[int], None] = None, microbatches: Union[int, Sequence[int], None] = None,
         axes: int = 3, front: bool = False, reasons: bool = False, **options: Unpack[ModelOptions]) -> FoundPlan:
    """Finds the plan by which a call takes least time.

    `devices`: how many; or `mesh=`, whose axes are then free. `objective`: `latency`, `throughput` or `step`. `memory`: what a rank may take,
    `"72GB"` or bytes, or `"least"`. `within`: seconds that a call may take. `stages`, `microbatches`: how many are looked at, a number or a
    range. `front`: follows time against memory. `reasons`: the report says what other plans would take (`json["explain"]`).
    """
    request = _native.PlanRequest()
    request.devices, request.objective, request.most_axes, request.front = devices or 0, objective, axes, front
    request.within_ns = (within or 0) * 1e9
    for counts, put in ((_range(stages), request.set_stages), (_range(microbatches), request.set_microbatches)):
        if counts:
            put(*counts)
    size = "" if memory is None else memory if isinstance(memory, str) else f"{memory}B"

    def ask(native: _native.Options, stop: _native.Stop) -> str:
        native.free = True
        if devices:
            native.example_batch = devices
        return _native.plan(native, request, size, reasons, stop)

    return make(FoundPlan, call(model, options, ask))


def schedule(model: Optional[Path] = None, name: str = "", *, ranks: int = 0, microbatches: int = 0, chunks: int = 0,
             cost: Optional[Mapping[str, float]] = None, memory: Optional[Mapping[str, float]] = None, latency: Optional[float] = None,
             memory_limit: Optional[float] = None, seed: int = 0, **options: Unpack[Options]) -> Schedule:
    """The schedule of a pipeline, of a model or of given costs (`cost={"F": 1, "I": 1, "W": 1}`).

    `name`: one of those of docs/pipelines.md (`gpipe`, `1f1b`, `zb-v`, ..), `auto`, or a file of a table; of a model without it the plan's.
    """
    wanted = _native.ScheduleOptions()
    wanted.name, wanted.ranks, wanted.microbatches, wanted.chunks, wanted.seed = name, ranks, microbatches, chunks, seed
    wanted.cost, wanted.memory, wanted.latency, wanted.memory_limit = dict(cost or {}), dict(memory or {}), latency, memory_limit
    result = call(model, options, lambda native, stop: _native.schedule(native, wanted, stop))
    bound, bubble = result.get("lower_bound") or {}, result.get("bubble") or {}
    return Schedule(result["schedule"], result["ranks"], result["stages"], result["microbatches"], result["makespan"], bound.get("makespan"),
                    bubble.get("makespan"), result.get("table", ""), result.get("notes", []), result)


def inspect(model: Path, **options: Unpack[Options]) -> Union[Outline, ProgramOutline]:
    """What is in a model (`Outline`), or in a program file (`ProgramOutline`)."""
    result = call(model, options, _native.inspect)
    return make(ProgramOutline, result) if result["kind"] == "program" else make(Outline, result)


def _write_data(data: Union[Path, Mapping[str, Any]], folder: str, name: str) -> str:
    """Arrays by name as the .npz file that trainings read; a path as it is."""
    if not isinstance(data, Mapping):
        return os.fspath(data)
    path = os.path.join(folder, name)
    arrays: dict[str, Any] = {key: to_numpy(value) for key, value in data.items()}
    np.savez(path, **arrays)
    return path


def _read_losses(path: str) -> list[float]:
    import json
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [line["loss"] for line in lines if "loss" in line]


def train(model: Path, data: Union[Path, Mapping[str, Any]], *, steps: int = 0, epochs: int = 0, shuffled: bool = True, seed: Optional[int] = None,
          save: Optional[Path] = None, save_every: int = 0, keep: int = 1, resume: Optional[Path] = None, weights_from: Optional[Path] = None,
          log: Optional[Path] = None, eval_data: Union[Path, Mapping[str, Any], None] = None, eval_every: int = 0,
          export: Optional[Path] = None, export_adapters: Optional[Path] = None, **options: Unpack[Options]) -> Training:
    """Trains a model, as the plan's `train` (or `train=` here) says, on all ranks, and gives the losses.

        result = cleave.train("m.onnx", {"x": x, "labels": labels}, plan="finetune.yaml", steps=20, export="tuned.onnx")

    `data`: arrays of all samples by input, an .npz file, or a folder. `steps` or `epochs`: how many in the end. `save`: the checkpoint
    (safetensors), also every `save_every` steps, of which `keep` stay; `resume` goes on from one, `weights_from` begins with its weights.
    `eval_data`: on which the loss is evaluated in the end, and every `eval_every` steps. `export`: the ONNX model with its new weights.
    Ctrl-C stops it.
    """
    wanted = _native.TrainOptions()
    with tempfile.TemporaryDirectory(prefix="cleave") as folder:
        wanted.data = _write_data(data, folder, "data.npz")
        wanted.eval_data = _write_data(eval_data, folder, "eval.npz") if eval_data is not None else ""
        wanted.steps, wanted.epochs, wanted.shuffled, wanted.seed = steps, epochs, shuffled, seed
        wanted.save_every, wanted.keep, wanted.eval_every = save_every, keep, eval_every
        needs_save = (export is not None or export_adapters is not None) and save is None
        wanted.save = os.path.join(folder, "states.safetensors") if needs_save else os.fspath(save or "")
        wanted.resume, wanted.weights_from = os.fspath(resume or ""), os.fspath(weights_from or "")
        wanted.log = os.fspath(log) if log is not None else os.path.join(folder, "log.jsonl")

        def ask(native: _native.Options, stop: _native.Stop) -> str:
            native.train, native.evaluates = True, eval_data is not None
            return _native.train(native, wanted, os.fspath(export or ""), os.fspath(export_adapters or ""), stop)

        # Ranks have stopped before files of theirs are gone.
        result = call(model, options, ask, Caller().call)
        losses = _read_losses(wanted.log) if wanted.log.endswith(".jsonl") else []
    return make(Training, {**result, "losses": losses})


class Trainer:
    """A training step by step, for loops of your own.

        with cleave.Trainer("m.onnx", plan="finetune.yaml") as trainer:
            for x, labels in batches:
                loss = trainer.step(x=x, labels=labels)
            weights = trainer.state_dict()
    """

    def __init__(self, model: Path, *, runtime: Optional[Mapping[str, Any]] = None, evaluates: bool = True, **options: Unpack[Options]):
        """Compiles the step: `options` as of `compile`, with `train` in the plan or here. `evaluates`: with the function that `eval` runs."""
        if not options.get("train"):
            options["train"] = True
        self.program = _compile(model, None, None, runtime, evaluates, options)
        self.steps = 0

    @property
    def report(self) -> Report:
        return self.program.report

    @property
    def inputs(self) -> list[cleave_runtime.Tensor]:
        """What a batch has."""
        return self.program.inputs

    def step(self, *positional: Any, **named: Any) -> float:
        """Takes one step on a batch, given as `Program.run` takes it, and gives its loss: the first output of the step."""
        outputs = self.program.run(*positional, **named)
        self.steps += 1
        return float(next(iter(outputs.values())))

    def eval(self, *positional: Any, **named: Any) -> float:
        """The loss on a batch with the weights as they are, which stay so; dropout and the like do nothing."""
        arrays = self.program._take(positional, named)
        return float(next(iter(self.program._run(arrays, ["loss"], "eval").values())))

    def state_dict(self) -> dict[str, np.ndarray]:
        """Weights, and what the optimizer keeps, by name, each whole."""
        return self.program.state_dict()

    def load_state_dict(self, states: Mapping[str, Any]) -> None:
        self.program.load_state_dict(states)

    def save(self, path: Path) -> None:
        """Writes the state into a checkpoint (safetensors), which a trainer on any mesh can load."""
        self.program.save_states(path)

    def load(self, path: Path, only_parameters: bool = False) -> None:
        """Goes on from a checkpoint, or, `only_parameters`, begins with its weights."""
        self.program.load_states(path, only_parameters)

    def close(self) -> None:
        self.program.close()

    def __enter__(self) -> "Trainer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

