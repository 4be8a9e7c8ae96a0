"""What is asked of the compiler: keywords that mean what the options of `cleave` mean, and what a call gives back."""
from __future__ import annotations

import atexit
import contextlib
import json
import os
import tempfile
import threading
import warnings
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, TypedDict, Union

from cleave_compiler import _native
from cleave_runtime import Diagnostic, Error
from cleave_runtime._program import LOOK_SECONDS

from ._plan import Plan, Rule

Path = Union[str, "os.PathLike[str]"]
# What diagnostics call a plan that is no file.
PLAN_NAME = "<plan>"


class CleaveWarning(UserWarning):
    """A warning of the compiler."""


class ModelOptions(TypedDict, total=False):
    """`Options` without `devices`, which `plan` takes as an argument."""
    mesh: Union[str, Mapping[str, int], None]
    plan: Union[Plan, Path, None]
    shard: Sequence[Union[Rule, str]]
    state: Mapping[str, str]
    free: bool
    like: Optional[str]
    uneven: bool
    optimize: Optional[str]
    keep_plan: bool
    dims: Mapping[str, Union[int, Sequence[int]]]
    shapes: Mapping[str, Sequence[int]]
    inputs: Optional[Path]
    entry: Optional[str]
    weights: Optional[Path]
    cluster: Optional[str]
    gpu: Optional[str]
    must_fit: bool
    target: Optional[str]
    isa: Optional[str]
    precision: Optional[str]
    libraries: Optional[str]
    embed_weights: bool
    train: Union[bool, str]
    artifacts: Optional[Path]
    dump_phases: Optional[Path]


class Options(ModelOptions, total=False):
    """Keywords that all calls of the compiler take, after the model. None is as if it were not given.

    `mesh`: named axes, `"data=2,model=2"` or a dict. `plan`: a `Plan`, or the path of a plan file. `shard`: rules, `Rule` or as on the
    command line, `"w=[_, model]"`. `state`: inputs that outputs are the next values of, `{"past_*": "present_*"}`. `free`: axes may split
    whatever they can. `devices`: without a mesh, the plan for so many devices is found. `like`: a style, `"megatron"` or
    `"data,megatron"`. `uneven`, `optimize` (`balanced`, `bytes`, `time`), `keep_plan`: as on the command line.

    `dims`: sizes of symbolic dims, `{"batch": 4}`; of `compile` several, `{"batch": [1, 8]}`, make variants. `shapes`: of inputs whose dims
    have no name. `inputs`: an .npz file that says shapes. `entry`: the function, of a file with several. `weights`: the folder of weights.

    `cluster`: a machine, by name or file, for times. `gpu`: one by name. `must_fit`: memory that does not suffice is an error.
    `target` (`host`, `cuda:sm_90`), `isa` (`native`, `portable`), `precision` (`f32`, `bf16`, `split`), `libraries` (`auto`, `none`),
    `embed_weights`: of programs.

    `train`: True, or the text of a plan's `train`, makes a step of training of the model. `artifacts`: a folder of onnxruntime-training's.
    `dump_phases`: a folder that gets a file per phase.
    """
    devices: Optional[int]


_KNOWN = [*ModelOptions.__annotations__, *Options.__annotations__]


def _format_rule(rule: Union[Rule, str]) -> str:
    """`w=[_, model]`, as --shard takes it; what a rule says beyond that belongs into a plan."""
    if isinstance(rule, str):
        return rule
    if rule.tensor is None or rule.more:
        raise ValueError(f"{rule}: `shard` takes rules of a tensor and its dims alone; others go into a Plan")
    dims = ", ".join("[" + ", ".join(one) + "]" if isinstance(one, (list, tuple)) else one for one in rule.dims)
    return f"{rule.tensor}=[{dims}]"


def _list_variants(dims: Mapping[str, Union[int, Sequence[int]]]) -> list[dict[str, int]]:
    """Every size of a dim with every size of the others, the last dim changes first."""
    made: list[dict[str, int]] = [{}]
    for name, sizes in dims.items():
        sizes = [sizes] if isinstance(sizes, int) else list(sizes)
        made = [{**one, name: size} for one in made for size in sizes]
    return made


@contextlib.contextmanager
def make_options(model: Optional[Path], given: Mapping[str, Any]) -> Iterator[_native.Options]:
    """Keywords as options of the library. A plan that is a value lies in a file while they are used."""
    unknown = [name for name in given if name not in _KNOWN]
    if unknown:
        raise TypeError(f"unknown keyword {unknown[0]!r}: there are {', '.join(dict.fromkeys(_KNOWN))}")
    options = _native.Options()
    options.model = os.fspath(model) if model is not None else ""
    with contextlib.ExitStack() as stack:
        for name, value in given.items():
            if value is None:
                continue
            if name == "plan" and isinstance(value, Plan):
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="cleave"))
                options.plan = os.path.join(folder, "plan.yaml")
                value.save(options.plan)
            elif name == "mesh" and not isinstance(value, str):
                options.mesh = ",".join(f"{axis}={size}" for axis, size in value.items())
            elif name == "shard":
                options.shard = [_format_rule(rule) for rule in ([value] if isinstance(value, (str, Rule)) else value)]
            elif name == "state":
                options.state = [f"{past}={present}" for past, present in value.items()]
            elif name == "dims":
                options.dims, *options.variants = _list_variants(value)
            elif name == "shapes":
                options.shapes = {key: list(shape) for key, shape in value.items()}
            elif name == "train":
                options.train, options.train_text = bool(value), value if isinstance(value, str) else ""
            else:
                setattr(options, name, os.fspath(value) if isinstance(value, os.PathLike) else value)
        if options.artifacts:
            options.train = True
        yield options


def _make_diagnostic(read: dict[str, Any], plan: str) -> Diagnostic:
    """A plan that has no file of its own is called so, not by where it lay."""
    rename = lambda text: text.replace(plan, PLAN_NAME) if plan else text
    return Diagnostic(read["severity"], rename(read["file"]), read["line"], read["column"], read["node"], rename(read["message"]),
                      tuple(_make_diagnostic(note, plan) for note in read["notes"]), rename(read["text"]))


def interruptible(work: Callable[[], Any], stop: Callable[[], None]) -> Any:
    """The result of `work`, which runs in a thread beside the main one, so that Ctrl-C raises at once. What then still runs hears `stop`, and
    nobody gets its result; the interpreter does not end before it does. Other threads get no signals, and work by themselves."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    done, results = threading.Event(), []

    def run() -> None:
        try:
            results.append((True, work()))
        except BaseException as error:  # the caller's to handle
            results.append((False, error))
        done.set()

    thread = threading.Thread(target=run, daemon=True, name="cleave")
    try:
        thread.start()
        while not done.wait(LOOK_SECONDS):
            pass
    except BaseException:
        stop()
        atexit.register(thread.join)
        raise
    thread.join()
    is_good, result = results[0]
    if not is_good:
        raise result
    return result


def call(model: Optional[Path], given: Mapping[str, Any], ask: Callable[[_native.Options, _native.Stop], str],
         run: Callable[[Callable[[], Any], Callable[[], None]], Any] = interruptible) -> dict[str, Any]:
    """What `ask` answers, which is to hand on the `Stop`. Errors are raised; warnings are warnings of Python. `run`: how `ask` is run so that
    Ctrl-C is heard."""
    stop = _native.Stop()

    def work() -> tuple[dict[str, Any], str]:
        # Files that options need are made, and gone again, where they are used.
        with make_options(model, given) as options:
            answer = json.loads(ask(options, stop))
            return answer, options.plan if isinstance(given.get("plan"), Plan) else ""

    answer, plan = run(work, stop.stop)
    said = tuple(_make_diagnostic(one, plan) for one in answer["diagnostics"])
    if answer["result"] is None:
        if not any(one.severity == "error" for one in said):
            raise Error("the call failed without a word: a bug of Cleave", "bug", said)
        raise Error("", answer["blame"], said)
    for one in said:
        if one.severity == "warning":
            warnings.warn(str(one), CleaveWarning, stacklevel=3)
        elif one.severity == "error":  # an expectation that was not met: the result is there, and is not what was asked for
            raise Error("", answer["blame"], said)
    return answer["result"]

