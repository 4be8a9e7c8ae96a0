"""A program, open: arrays in, arrays out."""
from __future__ import annotations

import ctypes
import difflib
import html
import os
import tempfile
import threading
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, Optional, Union

import numpy as np

from . import _safetensors
from ._arrays import DTYPES, NAMES, fit
from ._errors import ArgumentError, ClosedError, Error
from ._library import COptions, CTensor, check, library

RANKS = {"threads": 0, "mpi": 1, "tcp": 2}
# How long ranks may take to come back after Ctrl-C.
GRACE_SECONDS = 10
# How long a signal may go unheard that comes after Python has looked for signals and before it sleeps: that does not end the sleep.
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Tensor:
    """An input, an output or a state: `name`; `dtype` of numpy; `shape`, of all ranks together; `type`, as Cleave writes it: `bf16`."""
    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    type: str

    def __str__(self) -> str:
        return f"{self.name}: {self.type}{list(self.shape)}"


def _describe(tensor: CTensor) -> Tensor:
    return Tensor(tensor.name.decode(), DTYPES[tensor.type], tuple(tensor.shape[:tensor.rank]), NAMES[tensor.type])


class Caller:
    """Calls a function that may take long so that Ctrl-C is heard: of the main thread in a thread beside it, which stays for the next call.
    Other threads get no signals, and call by themselves."""

    def __init__(self) -> None:
        self.thread: Optional[threading.Thread] = None
        self.begin, self.done = threading.Semaphore(0), threading.Semaphore(0)
        self.work: Optional[Callable[[], Any]] = None
        self.result: Any = None

    def call(self, work: Callable[[], Any], stop: Callable[[], None]) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return work()
        if self.thread is None:
            self.thread = threading.Thread(target=self._loop, daemon=True, name="cleave")
            self.thread.start()
        self.work = work
        self.begin.release()
        try:
            while not self.done.acquire(timeout=LOOK_SECONDS):
                pass
        except BaseException:
            # A signal's handler has raised. What runs is ended before anybody can use its memory again.
            stop()
            self.done.acquire(timeout=GRACE_SECONDS)
            raise
        result, self.result = self.result, None
        if isinstance(result, BaseException):
            raise result
        return result

    def end(self) -> None:
        if self.thread is not None:
            self.work = None
            self.begin.release()
            self.thread = None

    def _loop(self) -> None:
        while True:
            self.begin.acquire()
            if self.work is None:
                return
            try:
                self.result = self.work()
            except BaseException as error:  # the caller's to handle
                self.result = error
            self.work = None
            self.done.release()


class Program:
    """A program file, open on all of its ranks, which are threads of this process.

    `inputs`, `outputs` and `states` say what it takes and gives, as lists of `Tensor`. States stay in the ranks from call to call (caches of
    keys and values, weights that are trained). Of a program for several shapes (`dims={"batch": [1, 8]}`) they are those of the first
    variant; `variants` has all of them.

    Threads may share a program: a call waits for the one before. Ctrl-C stops a call; as its ranks are gone then, `reopen` begins anew.
    """

    def __init__(self, path: Union[str, os.PathLike], *, weights: Union[str, os.PathLike, None] = None, ranks: str = "threads",
                 record: Union[str, os.PathLike, None] = None, deadline: float = 60.0, silence: float = 0.0, memory_limit: int = 0,
                 pin_threads: bool = True, catch_crashes: bool = True, verify: bool = True) -> None:
        """Opens a program file.

        `weights`: the folder of its files of weights, where they are not where the program says. `ranks`: `threads`, or `mpi` or `tcp`, where
        this process is one rank that mpirun or torchrun has started. `deadline`: seconds that ranks wait for each other. `record`: a folder
        that gets a flight recorder when a rank fails. `memory_limit`: bytes. Raises `Error`, of kind `program`, `machine`, `weights` or
        `memory`.
        """
        if ranks not in RANKS:
            raise ValueError(f"ranks={ranks!r}: expected one of {', '.join(RANKS)}")
        self._path, self._process = os.fspath(path), os.getpid()
        text = lambda value: os.fsencode(value) if value is not None else None
        self._options = COptions(text(weights), text(record), deadline, silence, memory_limit, RANKS[ranks], pin_threads, catch_crashes,
                                 not verify)
        # Whoever holds it may use the handle, and the outputs of the last call.
        self._lock, self._caller = threading.Lock(), Caller()
        self._handle: Optional[ctypes.c_void_p] = None
        self._open()

    def _open(self) -> None:
        handle = ctypes.c_void_p()
        check(library.cleave_open(os.fsencode(self._path), ctypes.byref(self._options), ctypes.byref(handle)))
        self._handle = handle
        self._is_first = library.cleave_rank(handle) == 0
        self.states = [self._ask(library.cleave_describe_state, index) for index in range(library.cleave_state_count(handle))]
        kept = {library.cleave_state_output(handle, index) for index in range(len(self.states))}
        held = {state.name for state in self.states}
        count = lambda of: range(of(handle))
        self._all = [([self._ask(library.cleave_describe_input, variant, index) for index in count(library.cleave_input_count)],
                      self._ask_outputs(variant)) for variant in count(library.cleave_variant_count)]
        # Variants of other functions, such as `eval` of a step of training, give other outputs, and are called by their name.
        self._all = [one for one in self._all if [each.name for each in one[1]] == [each.name for each in self._all[0][1]]]
        self.variants = [([one for one in inputs if one.name not in held], [one for one in outputs if one.name.encode() not in kept])
                         for inputs, outputs in self._all]
        self.inputs, self.outputs = self.variants[0]
        self._known = {one.name: one for one in self._all[0][0]}
        self._given = [one.name for one in self._all[0][1]]

    def _ask_outputs(self, variant: int) -> list[Tensor]:
        """The count is that of the first variant; one of another function may have fewer."""
        outputs = []
        for index in range(library.cleave_output_count(self._handle)):
            try:
                outputs.append(self._ask(library.cleave_describe_output, variant, index))
            except ArgumentError:
                break
        return outputs

    def _ask(self, describe: Callable, *place: int) -> Tensor:
        tensor = CTensor()
        check(describe(self._handle, *place, ctypes.byref(tensor)))
        return _describe(tensor)

    def _open_handle(self) -> ctypes.c_void_p:
        if self._handle is None:
            raise ClosedError()
        if os.getpid() != self._process:
            raise Error("the program was opened by the process that this one was forked from, and its ranks are there: open it anew", "ranks")
        return self._handle

    # Running

    def run(self, *positional: Any, outputs: Optional[Iterable[str]] = None, **named: Any) -> dict[str, np.ndarray]:
        """One call on all ranks: `run({"x": x})`, `run(x=x)`, or `run(x)`, in the order of `inputs`.

        Inputs are arrays of numpy (with ml_dtypes for bf16) of any layout, whatever speaks DLPack and lies in the host's memory (torch, jax),
        or numbers and lists; types and shapes are those that `inputs` says. A state may be given, too, in place of what the ranks hold.
        `outputs` names those that are wanted, states among them; without it all that are no states. Gives arrays of numpy by name, which are
        the caller's. Where ranks are processes all call it with the same inputs, and rank 0 gets the outputs; others get none.

        Raises `ArgumentError` for a name, type or shape that the program has not, and for indices out of range; `Error` of kind `ranks` where
        a rank fails, from when on the program only repeats that (`reopen`); `ClosedError`.
        """
        arrays = self._take(positional, named)
        wanted = [one.name for one in self.outputs] if outputs is None else list(outputs)
        for name in wanted:
            if name not in self._given:
                raise ArgumentError(f"there is no output {name!r}{self._suggest(name, self._given)}")
        return self._run(arrays, wanted)

    def _run(self, arrays: dict[str, np.ndarray], wanted: list[str], entry: str = "") -> dict[str, np.ndarray]:
        """A call of one function of several (`eval`), by its name, or of the first."""
        with self._lock:
            handle = self._open_handle()
            given, taken = (CTensor * len(arrays))(), (CTensor * len(wanted))()
            shapes = []
            for tensor, (name, array) in zip(given, arrays.items()):
                shapes.append((ctypes.c_int64 * array.ndim)(*array.shape))
                tensor.name, tensor.type, tensor.rank = name.encode(), DTYPES.index(array.dtype), array.ndim
                tensor.shape, tensor.data, tensor.bytes = shapes[-1], array.ctypes.data, array.nbytes
            for tensor, name in zip(taken, wanted):
                tensor.name = name.encode()

            def work(_keeps: Any = (arrays, shapes)) -> None:
                # The message of a failure is that of the thread that called. What a rank reads lives as long as this.
                check(library.cleave_run_entry(handle, entry.encode(), given, len(given), taken, len(taken)))

            try:
                self._caller.call(work, lambda: library.cleave_stop(handle, b"interrupted"))
            except Error as error:
                if error.kind == "ranks":
                    error.add_note("the program only repeats this now: reopen() opens it anew")
                raise
            # Of processes rank 0 alone gets outputs.
            return {name: self._copy(tensor) for name, tensor in zip(wanted, taken)} if self._is_first else {}

    def __call__(self, *positional: Any, **named: Any) -> Any:
        """`run`, whose outputs come without their names: one array, or a tuple in the order of `outputs`."""
        values = tuple(self.run(*positional, **named).values())
        return values[0] if len(values) == 1 else values

    def _take(self, positional: tuple, named: dict) -> dict[str, np.ndarray]:
        """The inputs of a call by name, each of the type that is wanted."""
        if len(positional) == 1 and isinstance(positional[0], Mapping):
            named = {**positional[0], **named}
        elif positional:
            if len(positional) > len(self.inputs):
                raise ArgumentError(f"{len(positional)} inputs are given, the program takes {len(self.inputs)}: {self._list(self.inputs)}")
            named = {**{tensor.name: value for tensor, value in zip(self.inputs, positional)}, **named}
        arrays = {}
        for name, value in named.items():
            known = self._known.get(name)
            if known is None:
                raise ArgumentError(f"there is no input {name!r}{self._suggest(name, self._known)}")
            try:
                array = fit(value, known.dtype)
            except (TypeError, ValueError, BufferError) as error:
                raise ArgumentError(f"input {name!r}: {error}") from error
            if array.dtype != known.dtype:
                raise ArgumentError(f"input {name!r} has the type {array.dtype.name}, expected {known.dtype.name}: "
                                    f"{name}.astype({known.dtype.name!r}) would convert it")
            arrays[name] = array
        missing = [tensor for tensor in self.inputs if tensor.name not in arrays]
        if missing:
            raise ArgumentError(f"no value is given for {self._list(missing)}")
        if len(self.variants) == 1:
            for name, array in arrays.items():
                if array.shape != self._known[name].shape:
                    raise ArgumentError(f"input {name!r} has the shape {list(array.shape)}, expected {list(self._known[name].shape)}")
        return arrays

    @staticmethod
    def _list(tensors: Iterable[Tensor]) -> str:
        return ", ".join(map(str, tensors))

    @staticmethod
    def _suggest(name: str, names: Iterable[str]) -> str:
        names = list(names)
        near = difflib.get_close_matches(name, names, 1)
        return f"; did you mean {near[0]!r}?" if near else ": there are " + ", ".join(map(repr, names[:20]))

    @staticmethod
    def _copy(tensor: CTensor) -> np.ndarray:
        """Before the next call writes there."""
        dtype, shape = DTYPES[tensor.type], tuple(tensor.shape[:tensor.rank])
        if not tensor.bytes:
            return np.empty(shape, dtype)
        return np.frombuffer((ctypes.c_char * tensor.bytes).from_address(tensor.data), dtype).reshape(shape).copy()

    # States

    def _use(self, call: Callable[[ctypes.c_void_p], int]) -> None:
        with self._lock:
            check(call(self._open_handle()))

    def reset(self) -> None:
        """States are what they began as: zeros, or weights."""
        self._use(library.cleave_reset_states)

    def save_states(self, path: Union[str, os.PathLike]) -> None:
        """Writes all states into one safetensors file, which appears whole or not at all."""
        self._use(lambda handle: library.cleave_save(handle, os.fsencode(path)))

    def load_states(self, path: Union[str, os.PathLike], only_parameters: bool = False) -> None:
        """Reads states from such a file, also one of a program with other ranks. `only_parameters`: weights alone, all else is as it began."""
        self._use(lambda handle: library.cleave_load(handle, os.fsencode(path), only_parameters))

    def state_dict(self) -> dict[str, np.ndarray]:
        """What the ranks hold, by name, each tensor whole."""
        with tempfile.TemporaryDirectory(prefix="cleave") as folder:
            path = os.path.join(folder, "states.safetensors")
            self.save_states(path)
            return _safetensors.read(path)

    def load_state_dict(self, states: Mapping[str, Any]) -> None:
        """Sets states by name. All that the program has must be there."""
        known = self.state_dict()
        for name in states:
            if name not in known:
                raise ArgumentError(f"there is no state {name!r}{self._suggest(name, known)}")
        arrays = {name: fit(value, known[name].dtype) for name, value in states.items()}
        for name, array in arrays.items():
            if array.dtype != known[name].dtype or array.shape != known[name].shape:
                raise ArgumentError(f"state {name!r} is {array.dtype.name}{list(array.shape)}, expected "
                                    f"{known[name].dtype.name}{list(known[name].shape)}")
        with tempfile.TemporaryDirectory(prefix="cleave") as folder:
            path = os.path.join(folder, "states.safetensors")
            _safetensors.write(path, arrays)
            self.load_states(path)

    # Figures

    @property
    def ranks(self) -> int:
        """How many ranks it has."""
        return library.cleave_rank_count(self._open_handle())

    @property
    def rank(self) -> int:
        """Which one this process is; 0 where they are threads."""
        return library.cleave_rank(self._open_handle())

    @property
    def load_seconds(self) -> float:
        return library.cleave_load_seconds(self._open_handle())

    @property
    def run_seconds(self) -> float:
        """Of the last call, within the runtime."""
        return library.cleave_run_seconds(self._open_handle())

    @property
    def peak_bytes(self) -> int:
        """Of the rank that has most."""
        return library.cleave_peak_bytes(self._open_handle())

    # Opening and closing

    @property
    def path(self) -> str:
        return self._path

    @property
    def closed(self) -> bool:
        return self._handle is None

    def close(self) -> None:
        """Frees all that it has, when a call that goes on in another thread has ended. Again is nothing; other calls raise `ClosedError`."""
        with self._lock:
            if self._handle is not None:
                library.cleave_close(self._handle)
                self._handle = None
                self._caller.end()

    def reopen(self) -> None:
        """Opens the program anew, after a rank has failed or Ctrl-C has stopped it; states begin anew."""
        self.close()
        with self._lock:
            self._process = os.getpid()
            self._open()

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        # Only whoever has nobody beside him comes here.
        if getattr(self, "_handle", None) is not None and os.getpid() == self._process:
            library.cleave_close(self._handle)
            self._handle = None
            self._caller.end()

    def __repr__(self) -> str:
        name = os.path.basename(self._path)
        return f"<cleave.Program {name}, closed>" if self.closed else \
            f"<cleave.Program {name}, {self.ranks} ranks: {self._list(self.inputs)} -> {self._list(self.outputs)}>"

    def _repr_html_(self) -> str:
        rows = [(kind, tensor) for kind, tensors in [("input", self.inputs), ("output", self.outputs), ("state", self.states)] for tensor in tensors]
        cells = "".join(f"<tr><td>{kind}</td><td>{html.escape(tensor.name)}</td><td>{tensor.type}{list(tensor.shape)}</td></tr>"
                        for kind, tensor in rows[:40])
        more = f"<tr><td colspan=3>and {len(rows) - 40} more</td></tr>" if len(rows) > 40 else ""
        title = "closed" if self.closed else f"{self.ranks} ranks"
        return f"<b>{html.escape(os.path.basename(self._path))}</b>, {title}<table>{cells}{more}</table>"


def load(path: Union[str, os.PathLike], **options: Any) -> Program:
    """Opens a program file, as `Program(path, ..)` does."""
    return Program(path, **options)
