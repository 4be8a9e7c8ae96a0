"""The nodes in which ranks meet, in numpy, on all ranks at once, as docs/export.md says what they mean.

    results = meet(node, operands)      operands[rank] is a list of arrays; so many results as ranks

Nothing here comes from Cleave: a rank's digit is `rank // stride % extent`, a group is the ranks that are equal in all else.
"""
import numpy as np
from onnx import helper

KINDS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


class Digits:
    """Digits of ranks, each of a dim where they cut one."""

    def __init__(self, attributes, prefix=""):
        self.extents = attributes.get(prefix + "extents", [])
        self.strides = attributes.get(prefix + "strides", [])
        self.dims = attributes.get(prefix + "dims", [0] * len(self.extents))

    def base(self, rank):
        return rank - sum(rank // stride % extent * stride for extent, stride in zip(self.extents, self.strides))

    def index(self, rank, dim=None):
        """Row-major over the digits of a dim, or of all."""
        index = 0
        for extent, stride, own in zip(self.extents, self.strides, self.dims):
            if dim is None or own == dim:
                index = index * extent + rank // stride % extent
        return index

    def count(self, dim=None):
        return int(np.prod([extent for extent, own in zip(self.extents, self.dims) if dim is None or own == dim], dtype=np.int64))

    def groups(self, ranks):
        """Lists of ranks, each in the order of their indices."""
        found = {}
        for rank in range(ranks):
            found.setdefault(self.base(rank), []).append(rank)
        return [sorted(group, key=self.index) for group in found.values()]


def everyone(ranks, dim):
    """All ranks in their order, as onnxruntime's group."""
    return Digits({"extents": [ranks], "strides": [1], "dims": [dim]})


def unknown(shape, dtype):
    """What nobody may read."""
    if np.issubdtype(dtype, np.integer):
        return np.full(shape, min(1 << 20, np.iinfo(dtype).max), dtype)
    return np.full(shape, True if dtype == np.bool_ else np.nan, dtype)


def identity(dtype, kind):
    """What changes nothing when it is combined."""
    if kind in ("sum", "prod") or dtype == np.bool_:
        return kind in ("prod", "min")
    ends = np.iinfo(dtype) if np.issubdtype(dtype, np.integer) else None
    return (ends.min if ends else -np.inf) if kind == "max" else (ends.max if ends else np.inf)


def combine(arrays, kind):
    wide = np.float32 if arrays[0].dtype.itemsize == 2 and arrays[0].dtype.kind in "fV" else arrays[0].dtype
    total = arrays[0].astype(wide)
    for array in arrays[1:]:
        if array.dtype == np.bool_:
            total = total | array if kind in ("max", "sum") else total & array
        else:
            total = KINDS[kind](total, array.astype(wide))
    return total.astype(arrays[0].dtype)


def starts(digits, rank, shape):
    return [digits.index(rank, dim) * extent for dim, extent in enumerate(shape)]


def box(start, extents):
    return tuple(slice(first, first + extent) for first, extent in zip(start, extents))


def gather(arrays, digits):
    """Per rank what its group has together; `arrays` by rank."""
    local, results = arrays[0].shape, [None] * len(arrays)
    for group in digits.groups(len(arrays)):
        whole = np.empty([extent * digits.count(dim) for dim, extent in enumerate(local)], arrays[0].dtype)
        for rank in group:
            whole[box(starts(digits, rank, local), local)] = arrays[rank]
        for rank in group:
            results[rank] = whole
    return results


def cut(arrays, digits):
    """Each rank's own piece."""
    local = [extent // digits.count(dim) for dim, extent in enumerate(arrays[0].shape)]
    return [array[box(starts(digits, rank, local), local)] for rank, array in enumerate(arrays)]


def reduce(arrays, digits, kind):
    results = [None] * len(arrays)
    for group in digits.groups(len(arrays)):
        total = combine([arrays[rank] for rank in group], kind)
        for rank in group:
            results[rank] = total
    return results


def fit(array, shape):
    """Cropped, or padded with what nobody may read."""
    result = unknown(shape, array.dtype)
    common = tuple(slice(0, min(a, b)) for a, b in zip(array.shape, shape))
    result[common] = array[common]
    return result


def permute(arrays, attributes):
    shape, source, target = attributes["shape"], Digits(attributes, "from_"), Digits(attributes, "to_")
    wholes = [fit(whole, shape) for whole in gather(arrays, source)]
    local = [-(-extent // target.count(dim)) for dim, extent in enumerate(shape)]
    padded = [extent * target.count(dim) for dim, extent in enumerate(local)]
    return [fit(whole, padded)[box(starts(target, rank, local), local)] for rank, whole in enumerate(wholes)]


def places(first, last, size, beyond):
    """Positions of an interval within a dim of `size`; -1 is nowhere."""
    wanted = np.arange(first, last)
    if beyond == "fill" or size == 0:
        return np.where((wanted >= 0) & (wanted < size), wanted, -1)
    if beyond == "nearest":
        return np.clip(wanted, 0, size - 1)
    if beyond == "wrap":
        return wanted % size
    period = max(2 * (size - 1), 1)
    return np.abs((wanted + size - 1) % period - (size - 1)) if size > 1 else wanted * 0


def window(arrays, fills, attributes):
    digits, beyond = Digits(attributes), attributes["beyond"]
    missing = attributes.get("missing", [0] * arrays[0].ndim)
    results = []
    for rank, whole in enumerate(gather(arrays, digits)):
        for dim, (step, low, high) in enumerate(zip(attributes["steps"], attributes["lows"], attributes["highs"])):
            at = digits.index(rank, dim) * step
            size = whole.shape[dim] - missing[dim]
            wanted = places(at + low, at + high, size, beyond)
            taken = np.take(whole, np.maximum(wanted, 0), axis=dim) if size > 0 else \
                unknown(whole.shape[:dim] + (len(wanted),) + whole.shape[dim + 1:], whole.dtype)
            if beyond == "fill":
                outside = (wanted < 0).reshape([-1 if other == dim else 1 for other in range(whole.ndim)])
                taken = np.where(outside, fills[rank], taken)
            whole = taken
        results.append(whole.astype(arrays[0].dtype))
    return results


def join_parts(pieces, parts, ranks, dim):
    """Shards of parts of all members of a group, as one value; `pieces[member]` holds the member's shard of each."""
    shards, whole, at = [-(-part // ranks) for part in parts], [], 0
    for part, shard in zip(parts, shards):
        together = np.concatenate([np.take(piece, range(at, at + shard), axis=dim) for piece in pieces], axis=dim)
        whole.append(np.take(together, range(part), axis=dim))
        at += shard
    return np.concatenate(whole, axis=dim)


def shard_of(whole, index, ranks, dim):
    extent = -(-whole.shape[dim] // ranks)
    padded = fit(whole, [extent * ranks if other == dim else size for other, size in enumerate(whole.shape)])
    return np.take(padded, range(index * extent, (index + 1) * extent), axis=dim)


def move_parts(arrays, attributes, joins):
    digits, dim, parts = Digits(attributes), attributes["dim"], attributes["parts"]
    results = [None] * len(arrays)
    for group in digits.groups(len(arrays)):
        pieces = [arrays[rank] for rank in group]
        for index, rank in enumerate(group):
            if joins:
                results[rank] = shard_of(join_parts(pieces, parts, len(group), dim), index, len(group), dim)
                continue
            whole, at, own = join_parts(pieces, [sum(parts)], len(group), dim), 0, []
            for part in parts:
                own.append(shard_of(np.take(whole, range(at, at + part), axis=dim), index, len(group), dim))
                at += part
            results[rank] = np.concatenate(own, axis=dim)
    return results


def meet(node, operands):
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    attributes = {name: value.decode() if isinstance(value, bytes) else value for name, value in attributes.items()}
    arrays, ranks = [own[0] for own in operands], len(operands)
    if node.domain == "com.microsoft":
        if node.op_type == "AllReduce":
            return reduce(arrays, everyone(ranks, 0), "sum")
        assert attributes["group_size"] == ranks, f"{node.name}: a group of {attributes['group_size']}"
        if node.op_type == "AllGather":
            return gather(arrays, everyone(ranks, attributes["axis"]))
        assert node.op_type == "AllToAll", node.op_type
        parts = [np.split(array, ranks) for array in arrays]
        return [np.concatenate([parts[source][rank] for source in range(ranks)]) for rank in range(ranks)]
    assert node.domain == "cleave", node.domain
    digits = Digits(attributes)
    if node.op_type == "AllReduce":
        return reduce(arrays, digits, attributes["kind"])
    if node.op_type == "AllGather":
        return gather(arrays, digits)
    if node.op_type == "ReduceScatter":
        return cut(reduce(arrays, digits, attributes["kind"]), digits)
    if node.op_type == "AllToAll":
        return cut(gather(arrays, Digits(attributes, "gather_")), Digits(attributes, "slice_"))
    if node.op_type == "Permute":
        return permute(arrays, attributes)
    if node.op_type == "Window":
        return window(arrays, [own[1] if len(own) > 1 else None for own in operands], attributes)
    assert node.op_type in ("Join", "Split"), node.op_type
    return move_parts(arrays, attributes, node.op_type == "Join")
