"""What the usual forms of parallelism send, by formula: from a model's dimensions alone, kind by kind.

All count what one rank sends in rings of p ranks (Thakur and others, 2005): (p-1)/p of the whole for an all-gather, a reduce-scatter,
twice that for an all-reduce, (p-1)/p of what a rank has for an all-to-all; a window what a rank gives its neighbors.
"""
from collections import Counter
from dataclasses import dataclass, field

F32 = 4


@dataclass
class Sent:
    """How many collectives of each kind, and how many bytes a rank sends in them."""
    counts: Counter = field(default_factory=Counter)
    bytes: Counter = field(default_factory=Counter)

    def add(self, kind, size, times=1):
        if times and size:
            self.counts[kind] += times
            self.bytes[kind] += times * size
        return self

    def all_gather(self, p, whole, times=1):
        return self.add("all_gather", (p - 1) / p * whole, times)

    def reduce_scatter(self, p, whole, times=1):
        return self.add("reduce_scatter", (p - 1) / p * whole, times)

    def all_reduce(self, p, whole, times=1):
        return self.add("all_reduce", 2 * (p - 1) / p * whole, times)

    def all_to_all(self, p, whole, times=1):
        """`whole` over all ranks, of which each has a p-th and keeps a p-th of that."""
        return self.add("all_to_all", (p - 1) / p * whole / p, times)

    def window(self, rows, times=1):
        """`rows`: the bytes that a rank gives to neighbors."""
        return self.add("window", rows, times)

    def total(self):
        return sum(self.bytes.values())

    def table(self):
        return {kind: (count, self.bytes[kind]) for kind, count in sorted(self.counts.items())}


@dataclass
class Transformer:
    """Dimensions of one; `ranks` and, of the batch, `batch` texts of `length` tokens come from the plan."""
    width: int
    heads: int
    layers: int
    inner: int
    ranks: int
    batch: int
    length: int
    vocabulary: int = 128
    kv_heads: int = None
    gates: int = 1  # first layers of a feed-forward block: 2 where one gates the other

    def activation(self):
        """M of the papers: what a layer hands to the next, in bytes."""
        return self.batch * self.length * self.width * F32

    def kv_width(self):
        return self.width // self.heads * (self.kv_heads or self.heads)


def nothing(model):
    """Data parallel, forward: samples do not need each other."""
    return Sent()


def megatron(model, reduces=2, more=0):
    """Shoeybi and others, 2019, section 3: an all-reduce of M behind attention and one behind the feed-forward block of each
    layer; `more` for a table of the vocabulary that is cut, where each rank finds the tokens of its rows. The head sends nothing."""
    return Sent().all_reduce(model.ranks, model.activation(), reduces * model.layers + more)


def megatron_sequence(model, reduces=2, more=0):
    """Korthikanti and others, 2022, section 4.2.2: each all-reduce is a reduce-scatter, and an all-gather before what reads it."""
    times = reduces * model.layers + more
    return Sent().reduce_scatter(model.ranks, model.activation(), times).all_gather(model.ranks, model.activation(), times)


def ulysses(model):
    """Jacobs and others, 2023, section 3: q, k and v go from tokens to heads, and the result back."""
    return Sent().all_to_all(model.ranks, model.activation(), 4 * model.layers)


def gathered_keys(model):
    """Keys and values of all tokens on each rank, as in ring attention without the ring (Liu and others, 2023): 2 (p-1)/p n h_kv."""
    return Sent().all_gather(model.ranks, model.batch * model.length * model.kv_width() * F32, 2 * model.layers)


def ring(model):
    """Liu and others, 2023, section 3: each rank passes its block of keys and of values on, p - 1 times."""
    block = model.batch * model.length * model.kv_width() * F32 / model.ranks
    return Sent().window(block, 2 * (model.ranks - 1) * model.layers)


def fully_sharded(ranks, weights):
    """Rajbhandari and others, 2020, section 7.2.2, forward: each weight is gathered once. `weights`: elements of each."""
    sent = Sent()
    for size in weights:
        sent.all_gather(ranks, size * F32)
    return sent


def layer_weights(model):
    """Elements of the weights of all layers: q, k, v, output, and the feed-forward block's."""
    one = [model.width * model.width] * 2 + [model.width * model.kv_width()] * 2 + [model.width * model.inner] * (model.gates + 1)
    return one * model.layers


@dataclass
class Window:
    """An op over a picture's rows: channels and columns of its operand, and rows that a rank gives to neighbors (the busiest)."""
    channels: int
    columns: int
    rows: int = 1


def edges(windows, batch):
    """Each window is exchanged where rows are cut: Dryden and others, 2019, section 3: O(rows beyond the edge)."""
    sent = Sent()
    for window in windows:
        sent.window(batch * window.channels * window.columns * window.rows * F32)
    return sent


def experts(ranks, tokens, chosen, width):
    """Lepikhin and others, 2021, section 3.2: each rank's tokens go to their experts and come back: twice (q-1)/q T k h."""
    return Sent().add("all_to_all", (ranks - 1) / ranks * tokens * chosen * width * F32, 2)
