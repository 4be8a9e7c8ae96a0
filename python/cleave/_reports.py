"""What the compiler says, as values. Fields have the names and units of docs/report.md; `json` is the report as it came."""
from __future__ import annotations

import html
import os
import statistics
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from ._json import format_bytes, format_seconds, table
from ._plan import Plan


@dataclass(frozen=True)
class TensorReport:
    """An input or output: `shape` of all ranks together, `local_shape` of one."""
    name: str
    type: str
    shape: list[int]
    sharding: str
    local_shape: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Collective:
    """What ranks send of one value. `wire_bytes_per_rank` is what one rank sends; `ns` is predicted, with a cluster."""
    kind: str
    axes: list[str]
    group_size: int
    type: str
    operand_shape: list[int]
    result_shape: list[int]
    wire_bytes_per_rank: int
    node: str = ""
    cause: str = ""
    ns: Optional[float] = None
    times: int = 1
    of_weights: bool = False
    of_gradients: bool = False


@dataclass(frozen=True)
class Total:
    """Of collectives of one kind."""
    count: int
    wire_bytes_per_rank: int


@dataclass(frozen=True)
class Bytes:
    bytes: int
    bytes_per_rank: int


@dataclass(frozen=True)
class Flops:
    total: float
    per_rank: float


@dataclass(frozen=True)
class Time:
    """Of one rank, as predicted on a cluster: nanoseconds."""
    cluster: str
    compute_ns: float
    communication_ns: float
    call_ns: Optional[float] = None
    span_ns: Optional[float] = None
    overlapped_ns: float = 0.0


@dataclass(frozen=True)
class ProgramFigures:
    kernels: int
    commands: int
    arena_bytes: int
    liveness_bound_bytes: int
    compile_seconds: float
    precision: str = "f32"


@dataclass(frozen=True)
class Report:
    """What the ranks of a partitioned model send, store and take."""
    model: str
    mesh: dict[str, int]
    ranks: int
    parameters: Bytes
    peak_bytes_per_rank: int
    flops: Flops
    inputs: list[TensorReport]
    outputs: list[TensorReport]
    collectives: list[Collective]
    totals: dict[str, Total]
    program: Optional[ProgramFigures] = None
    time: Optional[Time] = None
    memory_by_role: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    json: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def wire_bytes_per_rank(self) -> int:
        """Of all collectives together."""
        return sum(total.wire_bytes_per_rank for total in self.totals.values())

    def __str__(self) -> str:
        sent = ", ".join(f"{total.count} {kind} ({format_bytes(total.wire_bytes_per_rank)})" for kind, total in self.totals.items())
        mesh = ",".join(f"{axis}={size}" for axis, size in self.mesh.items())
        return (f"{self.model} on {mesh or 'one device'}: a rank stores {format_bytes(self.parameters.bytes_per_rank)} of "
                f"{format_bytes(self.parameters.bytes)} of parameters, {format_bytes(self.peak_bytes_per_rank)} at the peak, and sends "
                f"{format_bytes(self.wire_bytes_per_rank)} a call: {sent or 'nothing'}")

    def _repr_html_(self) -> str:
        rows = [(kind, total.count, format_bytes(total.wire_bytes_per_rank)) for kind, total in self.totals.items()]
        return table(str(self), ["collective", "count", "bytes a rank sends"], rows)


@dataclass(frozen=True)
class Apart:
    """Where an output first parts, and what is there."""
    index: list[int]
    on_ranks: str
    on_one_device: str


@dataclass(frozen=True)
class OutputCheck:
    """An output on ranks against one device: `verdict` is `ok`, `ill-conditioned` (rounding explains it) or `differs`; `largest` is the
    largest difference, `scale` the largest magnitude on one device."""
    name: str
    shape: list[int]
    verdict: str
    largest: float
    scale: float
    rtol: float
    atol: float
    node: str = ""
    nans: int = 0
    apart: Optional[Apart] = None


@dataclass(frozen=True)
class Check:
    """Whether a partitioned model computes what one device computes; true where it does."""
    outputs: list[OutputCheck]
    report: Report

    @property
    def ok(self) -> bool:
        return all(output.verdict != "differs" for output in self.outputs)

    def __bool__(self) -> bool:
        return self.ok

    def _repr_html_(self) -> str:
        rows = [(one.name, one.verdict, f"{one.largest:.2e}", f"{one.scale:.2e}") for one in self.outputs]
        return table("ranks against one device", ["output", "verdict", "largest difference", "largest magnitude"], rows)


@dataclass(frozen=True)
class Alternative:
    """Another choice: what everything would cost more, and how the value would then be made."""
    sharding: str
    more_bytes: int
    more_seconds: float = 0.0


@dataclass(frozen=True)
class Cause:
    """A step from a value back to an annotation. `kind` is `op`, `value`, `output`, `passed on`, `annotation`, `free` or `chosen`."""
    kind: str
    name: str
    node: str
    dim: str
    avoids_conflict: bool


@dataclass(frozen=True)
class Axis:
    """Why axes split a dim; `dim` is None where the value is partial. An empty chain: no annotation, it costs less."""
    dim: Optional[int]
    axes: str
    chain: list[Cause]
    next_best: Optional[Alternative] = None


@dataclass(frozen=True)
class ValueExplanation:
    """A value, how it is sharded, and why. `replicated`: whole on every rank; then `alternatives` say what following annotations would cost."""
    name: str
    type: str
    sharding: str
    axes: list[Axis] = field(default_factory=list)
    replicated: bool = False
    reached: bool = False
    alternatives: list[Alternative] = field(default_factory=list)
    unfollowed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Explanation:
    """`values` that were asked about, or all that are sharded; of each collective of `report` the least that another choice costs more."""
    values: list[ValueExplanation]
    report: Report
    next_best: list[Optional[Alternative]]

    def _repr_html_(self) -> str:
        return table("shardings", ["value", "type", "sharding"], [(one.name, one.type, one.sharding) for one in self.values])


@dataclass(frozen=True)
class Memory:
    peak: int
    stored: int


@dataclass(frozen=True)
class Cell:
    """Stages, microbatches and a mesh that were looked at. `why`: `best`, `worse`, `memory`, `slow`, `pruned` or `impossible`."""
    mesh: str
    stages: int
    microbatches: int
    why: str
    seconds: Optional[float] = None
    span_seconds: Optional[float] = None
    wire_bytes_per_rank: Optional[int] = None
    memory: Optional[Memory] = None
    reason: str = ""
    plan: str = ""


@dataclass(frozen=True)
class FoundPlan:
    """A plan that was found: `best` of the `cells` that were looked at. `plan` is what `compile` takes, `text` the file with its comments."""
    model: str
    cluster: str
    objective: str
    memory_limit: int
    cells: list[Cell]
    best: Cell
    one_device_seconds: float
    solves: int
    took: float
    front: list[Cell] = field(default_factory=list)
    proposed_states: list[str] = field(default_factory=list)
    json: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def text(self) -> str:
        return self.best.plan

    @property
    def plan(self) -> Plan:
        return Plan.from_yaml(self.text)

    def save(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        rows = [(one.mesh, one.stages, one.microbatches, one.why, format_seconds(one.seconds) if one.seconds else "",
                 format_bytes(one.memory.peak) if one.memory else "") for one in self.cells]
        return table(f"plans for {self.model} on {self.cluster}", ["mesh", "stages", "microbatches", "", "a call", "memory of a rank"], rows)


@dataclass(frozen=True)
class Schedule:
    """What each rank of a pipeline does, and when. `makespan` and `bound` are nanoseconds of a model, else the units of `cost`; `table` is
    the schedule as text, a row per rank."""
    name: str
    ranks: int
    stages: int
    microbatches: int
    makespan: float
    bound: Optional[float] = None
    bubble: Optional[float] = None
    table: str = ""
    notes: list[str] = field(default_factory=list)
    json: dict[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.name}: {self.ranks} ranks, {self.stages} stages, {self.microbatches} microbatches, makespan {self.makespan:.6g}"

    def _repr_html_(self) -> str:
        rows = [(rank, line) for rank, line in enumerate(self.table.splitlines())]
        return table(str(self), ["rank", "does"], rows, most=16)


@dataclass(frozen=True)
class Page:
    """A decision on one page: `html`, which needs no other file, and what it is made of, `json` (docs/page.md)."""
    html: str = field(repr=False)
    json: dict[str, Any] = field(default_factory=dict, repr=False)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        # A frame of its own: its styles and scripts are not the notebook's.
        return f'<iframe srcdoc="{html.escape(self.html, quote=True)}" style="width: 100%; height: 28em; border: 0" title="a page of Cleave"></iframe>'


@dataclass(frozen=True)
class CommandTime:
    """Seconds of a call that rank 0 needs for all commands of one kind, or kernel, for one node."""
    command: str
    node: str
    seconds: float


@dataclass(frozen=True)
class Bench:
    """`load_seconds` to open a program, and `runs`, the seconds of each call; `commands` longest first."""
    ranks: int
    load_seconds: float
    runs: list[float]
    peak_bytes: int
    commands: list[CommandTime] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    def _repr_html_(self) -> str:
        return table(f"{self.ranks} ranks, a call {format_seconds(self.median)}", ["command", "node", "seconds"],
                     [(one.command, one.node, format_seconds(one.seconds)) for one in self.commands], most=16)


@dataclass(frozen=True)
class TensorOutline:
    """A tensor of a model; `nodes` read a parameter, or compute a tensor inside; `type` is `f32[8, 128]`."""
    name: str
    type: str
    bytes: int
    nodes: list[str] = field(default_factory=list)
    module: str = ""


@dataclass(frozen=True)
class Module:
    """What a module of the exporter's model has itself, without modules in it."""
    path: str
    elements: int
    bytes: int
    flops: float
    types: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Outline:
    """What is in a model. `open` are the options that would give sizes which are not known yet; empty where all are."""
    inputs: list[TensorOutline]
    outputs: list[TensorOutline]
    parameters: list[TensorOutline]
    tensors: list[TensorOutline]
    modules: list[Module]
    ops: dict[str, int]
    flops: float
    open: str = ""

    def _repr_html_(self) -> str:
        rows = [(kind, one.name, one.type) for kind, tensors in (("input", self.inputs), ("output", self.outputs), ("parameter", self.parameters))
                for one in tensors]
        return table(f"{sum(self.ops.values())} ops, {len(self.parameters)} parameters", ["", "name", "type"], rows)


@dataclass(frozen=True)
class ProgramOutline:
    """What is in a program file; `json` has all of it, by the keys of docs/report.md."""
    model: str
    mesh: dict[str, int]
    ranks: int
    targets: list[str]
    kernels: list[str]
    variants: list[dict[str, Any]]
    json: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Training:
    """What came of a training: `losses` by step, `evaluations` as (step, loss). `samples` and `seconds` are of this call."""
    report: Report
    steps: int
    samples: int
    last_step: int
    first_loss: float
    last_loss: float
    seconds: float
    losses: list[float] = field(default_factory=list)
    eval: Optional[float] = None

    def _repr_html_(self) -> str:
        return table(f"{self.steps} steps in {format_seconds(self.seconds)}, loss {self.first_loss:.6g} to {self.last_loss:.6g}", ["step", "loss"],
                     list(enumerate(self.losses, self.last_step - len(self.losses) + 1)), most=16)
