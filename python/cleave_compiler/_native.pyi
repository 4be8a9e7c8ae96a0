"""What the extension has: options as classes, calls that give JSON text (python/native/Calls.h)."""
from typing import Optional

class Options:
    model: str
    entry: str
    dims: dict[str, int]
    shapes: dict[str, list[int]]
    variants: list[dict[str, int]]
    inputs: str
    weights: str
    devices: int
    example_batch: int
    like: str
    train: bool
    train_text: str
    artifacts: str
    evaluates: bool
    keeps_gradients: bool
    cluster: str
    gpu: str
    must_fit: bool
    target: str
    isa: str
    embed_weights: bool
    dump_phases: str
    plan: str
    mesh: str
    shard: list[str]
    state: list[str]
    free: bool
    uneven: bool
    keep_plan: bool
    precision: str
    libraries: str
    optimize: str
    def __init__(self) -> None: ...

class CheckOptions:
    seed: int
    rtol: Optional[float]
    atol: Optional[float]
    executor: str
    def __init__(self) -> None: ...

class PlanRequest:
    devices: int
    quick: bool
    within_ns: float
    most_axes: int
    front: bool
    objective: str
    def __init__(self) -> None: ...
    def set_stages(self, least: int, most: int) -> None: ...
    def set_microbatches(self, least: int, most: int) -> None: ...

class ScheduleOptions:
    name: str
    ranks: int
    microbatches: int
    chunks: int
    steps: int
    cost: dict[str, float]
    memory: dict[str, float]
    latency: Optional[float]
    memory_limit: Optional[float]
    costs: str
    profile: str
    seed: int
    def __init__(self) -> None: ...

class TrainOptions:
    data: str
    steps: int
    epochs: int
    shuffled: bool
    seed: Optional[int]
    save: str
    save_every: int
    keep: int
    resume: str
    weights_from: str
    log: str
    eval_data: str
    eval_every: int
    def __init__(self) -> None: ...

class Stop:
    def __init__(self) -> None: ...
    @property
    def is_asked(self) -> bool: ...
    def stop(self) -> None: ...

def compile(options: Options, path: str, stop: Stop) -> str: ...
def page(options: Options, compare: str, measured: str, stop: Stop) -> str: ...
def bench(options: Options, calls: int, seed: int, stop: Stop) -> str: ...
def shard(options: Options, phase: str, output: str, stop: Stop) -> str: ...
def check(options: Options, how: CheckOptions, stop: Stop) -> str: ...
def explain(options: Options, pattern: str, stop: Stop) -> str: ...
def plan(options: Options, request: PlanRequest, memory: str, reasons: bool, stop: Stop) -> str: ...
def schedule(options: Options, wanted: ScheduleOptions, stop: Stop) -> str: ...
def inspect(options: Options, stop: Stop) -> str: ...
def train(options: Options, train: TrainOptions, exported: str, adapters: str, stop: Stop) -> str: ...
def move_program(source: str, target: str) -> str: ...
def main(words: list[str]) -> int: ...
