"""54 training steps, and the bytes that each may send.

Formulas count what one rank sends in rings of p ranks: (p-1)/p of the bytes for an all-gather or a reduce-scatter, twice
that for an all-reduce. Psi is the number of parameters, L of layers, M = batch * length * width * 4 an activation of one
rank along data, in bytes. The batches of plans that cut data are large against the weights, as in real training. Where this
graph can be had for less, `below` says why; each formula has cases that must send all of it, so that it can be neither too
small nor too large.
"""
import math
from dataclasses import dataclass, field
from typing import Callable

from steps import Plan, Step, cnn, gpt, mlp

BYTES = {"f64": 8, "f32": 4, "bf16": 2, "i64": 8}
LENGTH, WIDTH, LAYERS = 16, 32, 2  # of gpt


@dataclass
class Case:
    name: str
    model: Callable
    plan: Plan
    formula: Callable  # (case, step) -> bytes
    sizes: dict = field(default_factory=dict)  # of the model
    options: dict = field(default_factory=dict)  # of the step
    below: str = ""  # why this graph can send less than its formula
    split: float = None  # of the compute, over how many ranks; None is all of them
    split_note: str = ""  # why not over all
    loaded: bool = False  # parameters are those of the module, not arguments

    def build(self):
        return self.model(Step(self.plan, **self.options), **self.sizes)


def all_reduce(ranks, size):
    return 2 * (ranks - 1) / ranks * size


def data_parallel(case, step):
    """The sum of each gradient over data, once, and that of the loss. ZeRO-1 (Rajbhandari and others, 2020, section 7.1) cuts
    the sum into a reduce-scatter and a gather of new parameters: as much. ZeRO-3 gathers at the start of the step instead;
    with a second gather for the way back it would be half as much more (section 7.2), but one is enough."""
    ranks = case.plan.mesh["data"]
    return all_reduce(ranks, step.count() * BYTES[step.type]) + all_reduce(ranks, 4)


def data_parallel_clipped(case, step):
    """The length of all gradients takes one scalar where each rank has pieces of them."""
    return data_parallel(case, step) + all_reduce(case.plan.mesh["data"], 4)


def loss_alone(case, step):
    """Partial sums stay where they are (no_sync of PyTorch's DistributedDataParallel)."""
    return all_reduce(case.plan.mesh["data"], 4)


def scattered(case, step):
    """ZeRO-2: each gradient is reduced and scattered into its accumulator, in f32."""
    return all_reduce(case.plan.mesh["data"], step.count() * 4) / 2 + loss_alone(case, step)


def activation(case):
    return case.sizes["batch"] * LENGTH * WIDTH * 4 / case.plan.mesh.get("data", 1)


def mlp_tensor_parallel(case, step):
    """An all-reduce behind each second product, and one on the way back before each first, but the very first."""
    return (2 * 3 - 1) * all_reduce(case.plan.mesh["model"], case.sizes["batch"] * WIDTH * 4)


def tensor_parallel(case, step, vectors=2 * WIDTH):
    """4L - 1 all-reduces of M (Shoeybi and others, 2019, section 3: two each way in a layer; the batch needs no gradient),
    and the gradients of the first norm's scale and bias, whose terms are not summed for lack of that gradient."""
    return all_reduce(case.plan.mesh["model"], (4 * LAYERS - 1) * activation(case) + vectors * 4)


def sequence_parallel(case, step, width=WIDTH):
    """8L - 1 times half an all-reduce of M (Korthikanti and others, 2022, section 4.2.2: a gather and a reduce-scatter in place
    of each), the gradients of 4L vectors, scale and bias of norms, of which each rank has seen a part of the sequence, and
    the loss, of which it has a part as well. A block's last bias is free: the gradient behind it is gathered anyway."""
    loss = all_reduce(math.prod(case.plan.mesh.values()), 4)
    parts = (8 * LAYERS - 1) * activation(case) / 2 + 4 * LAYERS * width * 4
    return all_reduce(case.plan.mesh["model"], parts) + loss


def gradients_over_data(case, step):
    """Of what a rank holds along model."""
    ranks, pieces = case.plan.mesh["data"], case.plan.mesh["model"]
    return all_reduce(ranks, (step.count(cut=True) / pieces + step.count(cut=False)) * BYTES[step.type])


def two_axes(case, step):
    """Both, and the loss over data. Where ZeRO scatters over data first, the first norm's vectors are shorter over model."""
    ranks = case.plan.mesh["data"]
    vectors = 2 * WIDTH // (ranks if case.plan.zero else 1)
    return tensor_parallel(case, step, vectors) + gradients_over_data(case, step) + all_reduce(ranks, 4)


def two_axes_sequence(case, step):
    """As above: the 4L vectors are scattered over data before they are summed over model."""
    return sequence_parallel(case, step, WIDTH // case.plan.mesh["data"]) + gradients_over_data(case, step)


def vocabulary_parallel(case, step):
    """One layer: 4 all-reduces of M, one behind the embedding, one before the head on the way back; for cross entropy two
    statistics of each token, maximum and sum of exp, and the loss, of which each rank has the terms of labels that its
    rows have (Shoeybi and others, 2019, section 3, with the labels' logits summed before they travel)."""
    tokens = case.sizes["batch"] * LENGTH
    return all_reduce(case.plan.mesh["model"], 6 * activation(case) + 2 * tokens * 4 + 4)


def data_parallel_norms(case, step):
    """Forward each norm sums mean and variance over data. The two sums that its way back needs are gradients of its
    parameters, which travel anyway (Ioffe and Szegedy, 2015, section 3); but ZeRO's state is cut, so that ranks update pieces
    of those parameters and gather them, although the gradients are whole."""
    vectors = sum(one.value.shape[0] for name, one in step.parameters.items() if name.startswith(("norm", "shift")))
    update = all_reduce(case.plan.mesh["data"], vectors * 4) / 2 if case.plan.zero else 0
    return data_parallel(case, step) + all_reduce(case.plan.mesh["data"], vectors * 4) + update


DATA, MODEL, BOTH = {"data": 4}, {"model": 4}, {"data": 2, "model": 4}
DP, ZERO1, ZERO3 = (Plan(DATA, "data", zero=zero) for zero in (0, 1, 3))
TP, TP_SP = Plan(MODEL, model="model"), Plan(MODEL, model="model", sequence=True)
BF16 = {"type": "bf16", "master": True}
FEW_TOKENS = "few tokens: it pays to send activations in place of some weights"
SHORT_TABLE = "a short table: it pays to look up its columns, for two moves of it and a gather of what was found"
MANY_TOKENS = "many tokens: it pays to send weights in place of some activations"


def mlp_cases():
    def case(name, plan, formula=data_parallel, batch=1024, options=(), sizes=(), **more):
        return Case("mlp " + name, mlp, plan, formula, {"batch": batch, **dict(sizes)}, dict(options), **more)

    clip, four = {"clip": 1.0}, {"microbatches": 4}
    yield case("dp", DP)
    yield case("dp sgd", DP, options={"optimizer": "sgd"})
    yield case("dp 4 microbatches", DP, sizes=four)
    yield case("dp clip", DP, options=clip)
    yield case("dp bf16 master", DP, options=BF16)
    yield case("zero1", ZERO1)
    yield case("zero1 clip", ZERO1, data_parallel_clipped, options=clip)
    yield case("zero1 4 microbatches", ZERO1, sizes=four)
    yield case("zero1 bf16 master", ZERO1, options=BF16)
    yield case("zero3", ZERO3)
    yield case("zero3 again", Plan(DATA, "data", zero=3, again=True))
    yield case("zero3 small batch", ZERO3, batch=64, below=FEW_TOKENS)
    yield case("zero3 bf16 master", ZERO3, options=BF16)
    yield case("tp", TP, mlp_tensor_parallel, batch=64)
    for text, options in (("", BF16), (" clip", BF16 | clip)):
        # Of 17 products 6 are gradients of weights.
        yield case("dp bf16 master, one sample a rank" + text, DP, batch=4, options=options,
                   sizes={"width": 64, "hidden": 256}, below=FEW_TOKENS, split=17 / (11 / 4 + 6),
                   split_note="each rank computes gradients of weights from all samples")


def gpt_cases():
    def case(name, plan, formula=data_parallel, batch=32, **more):
        sizes = {"batch": batch} | more.pop("sizes", {})
        return Case("gpt " + name, gpt, plan, formula, sizes, **more)

    yield case("dp", DP)
    yield case("zero1", ZERO1)
    yield case("zero3", ZERO3)
    yield case("zero3 again", Plan(DATA, "data", zero=3, again=True))
    yield case("zero3 recompute", Plan(DATA, "data", zero=3, again=True, recompute=True))
    yield case("dp 6 layers", DP, sizes={"layers": 6})
    yield case("dp 6 layers recompute", Plan(DATA, "data", recompute=True), sizes={"layers": 6})
    yield case("tp", TP, tensor_parallel, batch=2, loaded=True)
    yield case("tp arguments", TP, tensor_parallel, batch=2)
    yield case("tp 2 width tokens", TP, tensor_parallel, batch=4, loaded=True, below=MANY_TOKENS)
    yield case("tp 16 width tokens", TP, tensor_parallel, batch=32, loaded=True, below=MANY_TOKENS)
    yield case("tp+sp, annotations on inputs", TP_SP, sequence_parallel, batch=2, sizes={"annotations": "none"},
               below="an inner activation may stay whole, so that norms need no sum of gradients")
    yield case("tp+sp, annotations forward", TP_SP, sequence_parallel, batch=2, sizes={"annotations": "forward"},
               below="as with annotations on inputs, between the two halves of a block")
    yield case("tp+sp, gradients of annotations", TP_SP, sequence_parallel, batch=2, sizes={"annotations": "all"})
    both = {zero: Plan(BOTH, "data", "model", zero=zero) for zero in (0, 1, 3)}
    yield case("2-d dp x tp", both[0], two_axes, batch=8, below=MANY_TOKENS)
    yield case("2-d zero1 x tp", both[1], two_axes, batch=8, below=MANY_TOKENS)
    yield case("2-d fsdp x tp", both[3], two_axes, batch=8, below=MANY_TOKENS)
    yield case("2-d zero1 x tp small", both[1], two_axes, batch=4)
    yield case("2-d zero1 x tp+sp", Plan(BOTH, "data", "model", sequence=True, zero=1), two_axes_sequence, batch=4,
               sizes={"annotations": "all"})


def vocabulary_cases():
    def case(name, plan, formula, batch, **sizes):
        below = SHORT_TABLE if plan is TP and sizes["vocabulary"] == 64 else ""
        return Case("gpt vocabulary " + name, gpt, plan, formula, {"batch": batch, "layers": 1, **sizes}, below=below)

    for rows in (64, 256, 2048):
        yield case(f"{rows} tp", TP, vocabulary_parallel, 2, vocabulary=rows)
        yield case(f"{rows} tp, rule of softmax", TP, vocabulary_parallel, 2, vocabulary=rows, fused=False)
        yield case(f"{rows} tp tied", TP, vocabulary_parallel, 2, vocabulary=rows, tied=True)
    yield case("dp tied", DP, data_parallel, 32, vocabulary=64, tied=True)
    yield case("zero1 tied", ZERO1, data_parallel, 32, vocabulary=64, tied=True)


def other_cases():
    for how, formula in (("partial", loss_alone), ("sharded", scattered), ("whole", data_parallel)):
        yield Case(f"mlp accumulate {how}", mlp, ZERO1, formula, {"batch": 1024}, {"accumulate": how})
        yield Case(f"gpt accumulate {how}", gpt, ZERO1, formula, {"batch": 32}, {"accumulate": how})
    yield Case("cnn dp", cnn, DP, data_parallel_norms)
    yield Case("cnn zero1", cnn, ZERO1, data_parallel_norms)


CASES = {case.name: case for cases in (mlp_cases, gpt_cases, vocabulary_cases, other_cases) for case in cases()}
