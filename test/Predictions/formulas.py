"""What a collective takes: the table of docs/cluster.md, from where each rank stands.

Nothing of Cleave is asked. Ranks are enumerated, and of a group it is counted how many stand in one node of each level; where that is
not the same number for all of them the table says nothing, and neither does this.
"""
import itertools
import math
import re


def parse_axis(mesh, word):
    """(axis, stride in it, size): `a` or the part `a:(2)3`, 3 places behind a part of 2."""
    if not (found := re.fullmatch(r"(\w+):\((\d+)\)(\d+)", word)):
        return word, 1, mesh[word]
    axis, before, size = found[1], int(found[2]), int(found[3])
    return axis, mesh[axis] // before // size, size


def places(mesh, words):
    """axis -> the places along it of the group that has place 0."""
    parts = {}
    for word in words:
        axis, stride, size = parse_axis(mesh, word)
        parts.setdefault(axis, []).append([index * stride for index in range(size)])
    return {axis: [sum(each) for each in itertools.product(*lists)] for axis, lists in parts.items()}


def split_groups(size, group):
    """All places along an axis, in groups that are moves of `group`."""
    left, groups = set(range(size)), []
    while left:
        first = min(left)
        groups.append([first + place for place in group])
        left -= set(groups[-1])
    return groups


def count_near(mesh, axis, groups, devices):
    """How many of its group a rank has in its node of so many devices; nothing where ranks differ."""
    sizes = list(mesh.values())
    index = list(mesh).index(axis)
    stride = math.prod(sizes[index + 1:])
    counts = set()
    for rest in itertools.product(*(range(1 if other == index else size) for other, size in enumerate(sizes))):
        base = sum(place * math.prod(sizes[at + 1:]) for at, place in enumerate(rest))
        for group in groups:
            nodes = [(base + place * stride) // devices for place in group]
            counts |= {nodes.count(node) for node in nodes}
    return counts.pop() if len(counts) == 1 else None


def find_levels(mesh, words, machine):
    """[(ranks, link)], the fastest first; nothing where nodes end unevenly."""
    levels = []
    for axis, group in places(mesh, words).items():
        if axis in machine.axes:
            levels.append((len(group), machine.axes[axis]))
            continue
        groups, before, devices = split_groups(mesh[axis], group), 1, 1
        for link in machine.links:
            devices *= link.devices
            near = count_near(mesh, axis, groups, devices) if devices else len(group)
            if near is None or near % before:
                return None
            if near > before:
                levels.append((near // before, link))
            before = near
        if before != len(group):
            return None
    return sorted(levels, key=lambda level: (-level[1].bandwidth, level[1].latency_us))


def messages_ns(levels, peers):
    """A latency for each of so many others, the latest of them."""
    latencies, inside = [], 1
    for size, link in levels:
        latencies += [1000 * link.latency_us] * (inside * (size - 1))
        inside *= size
    return sum(sorted(latencies, reverse=True)[:peers])


def collective_ns(kind, sent, levels, begin_us, peers):
    """Of a collective of which the busiest rank sends `sent` bytes, to `peers` others if it goes point to point."""
    ranks = math.prod(size for size, _ in levels)
    if ranks == 1 or sent == 0:
        return 0
    if kind in ("all_gather", "reduce_scatter", "all_reduce"):
        rings = 2 if kind == "all_reduce" else 1
        whole = sent / rings * ranks / (ranks - 1)
        ns, inside = 0, 1
        for size, link in levels:
            ns += (size - 1) / size * whole / inside / link.bandwidth
            inside *= size
            ns += (size - 1) * ranks / inside * link.latency_us * 1000
        return rings * ns + begin_us * 1000
    if kind == "all_to_all":
        ns, inside = messages_ns(levels, ranks - 1), 1
        for size, link in levels:
            ns += (size - 1) * inside * sent / (ranks - 1) / link.bandwidth
            inside *= size
        return ns + begin_us * 1000
    return sent / min(link.bandwidth for _, link in levels) + messages_ns(levels, peers) + begin_us * 1000
