"""Random problems of deciding by time: a small model, a mesh, a machine and a plan.

`Problem(seed)` is the same on every machine. Sizes are such that latencies, bandwidths, launches, flops and memory each count in some
of them; axes of 4, 6, 8 and 12 have sub-axes, and nodes end within axes.
"""
import math
import os
import random
from dataclasses import dataclass, field

SIZES = [[24, 48, 96], [48, 144], [64, 128, 512], [24, 40, 96], [48, 480, 960]]
BANDWIDTHS = [0.001, 0.1, 1, 5, 10, 50, 100, 450, 1000]  # GB/s
LATENCIES = [0, 0, 0, 0.1, 1, 5, 20, 200, 2000]  # us
MOST_RANKS = 24


def spelled(shape):
    return "tensor<" + "".join(f"{size}x" for size in shape) + "f32>"


@dataclass
class Link:
    name: str
    devices: int
    latency_us: float
    bandwidth: float  # GB/s: bytes per nanosecond

    def words(self):
        return f"latency: {self.latency_us}us, bandwidth: {self.bandwidth}GB/s"


@dataclass
class Machine:
    """Links are nearest first; a single one connects any number of devices. `axes` have one of their own."""
    links: list
    axes: dict
    begin_us: float
    launch_us: float
    tflops: float
    memory: int  # GB/s

    def text(self):
        lines = [f"device: {{flops: {{f32: {self.tflops}T}}, bandwidth: {self.memory}GB/s, launch: {self.launch_us}us}}",
                 f"collective: {self.begin_us}us"]
        if len(self.links) == 1:
            lines.append(f"links: {{{self.links[0].words()}}}")
        else:
            lines += ["links:", *(f"  - {{name: {link.name}, devices: {link.devices}, {link.words()}}}" for link in self.links)]
        if self.axes:
            lines += ["axes:", *(f"  {axis}: {{{link.words()}}}" for axis, link in self.axes.items())]
        return "\n".join(lines) + "\n"


def draw_machine(rng, mesh):
    def link(name, devices):
        return Link(name, devices, rng.choice(LATENCIES), rng.choice(BANDWIDTHS))

    count = rng.choice([1, 1, 2, 2, 3])
    links = [link("only", 0)]
    while count > 1 and (len(links) < count or math.prod(each.devices for each in links) < math.prod(mesh.values())):
        links = [link(f"level{index}", rng.choice([1, 2, 2, 3, 4, 6, 8])) for index in range(count)]
    if rng.random() < 0.7:  # As machines are: what is near is fast.
        for each, bandwidth in zip(links, sorted((each.bandwidth for each in links), reverse=True)):
            each.bandwidth = bandwidth
    axes = {rng.choice(list(mesh)): link("own", 0)} if rng.random() < 0.3 else {}
    return Machine(links, axes, begin_us=rng.choice([0, 0, 0, 0.2, 6.6, 50]), launch_us=rng.choice([0, 0, 0, 2, 10]),
                   tflops=rng.choice([0.05, 1, 20, 67]), memory=rng.choice([10, 100, 2000]))


def draw_mesh(rng):
    while True:
        mesh = {f"a{index}": rng.choice([1, 2, 2, 3, 4, 6, 8, 12]) for index in range(rng.choice([1, 1, 2, 2, 3]))}
        if 2 <= math.prod(mesh.values()) <= MOST_RANKS:
            return mesh


@dataclass
class Model:
    """Values are (name, shape)."""
    rng: random.Random
    sizes: list
    arguments: list = field(default_factory=list)
    values: list = field(default_factory=list)
    lines: list = field(default_factory=list)

    def argument(self, *shape):
        self.arguments.append((f"p{len(self.arguments)}", shape))
        return self.arguments[-1]

    def op(self, shape, text, *operands):
        """Appends `%v = nn.TEXT`, in which `{}` are the operands."""
        name = f"v{len(self.lines)}"
        types = ", ".join(spelled(each) for _, each in operands)
        words = text.format(*(f"%{operand}" for operand, _ in operands))
        self.lines.append(f"%{name} = nn.{words} : ({types}) -> {spelled(shape)}")
        self.values.append((name, tuple(shape)))

    # Each draws one op that reads `x`, or nothing where there is none of its kind.

    def product(self, x):
        if len(x[1]) > 1:
            size = self.rng.choice(self.sizes)
            letters = "abc"[:len(x[1]) - 1]
            self.op((*x[1][:-1], size), f'einsum {{}}, {{}} "{letters}k,kj->{letters}j"', x, self.argument(x[1][-1], size))

    def scores(self, x):
        others = [y for y in self.values if len(y[1]) == 2 and y[1][1] == x[1][-1]]
        if len(x[1]) == 2 and others:
            y = self.rng.choice(others)
            self.op((x[1][0], y[1][0]), 'einsum {}, {} "ik,jk->ij"', x, y)

    def map(self, x):
        self.op(x[1], "tanh {}", x)

    def add(self, x):
        self.op(x[1], "add {}, {}", x, self.rng.choice([y for y in self.values if y[1] == x[1]]))

    def scale(self, x):
        self.op(x[1], "mul {}, {}", x, self.argument(x[1][-1]))

    def softmax(self, x):
        self.op(x[1], f"softmax {{}} dim {self.rng.randrange(len(x[1]))}", x)

    def cumsum(self, x):
        self.op(x[1], f"cumsum {{}} dim {self.rng.randrange(len(x[1]))}", x)

    def layer_norm(self, x):
        text = f"layer_norm {{}}, {{}} bias {{}} dim {len(x[1]) - 1} epsilon 1.0e-5"
        self.op(x[1], text, x, self.argument(x[1][-1]), self.argument(x[1][-1]))

    def rms_norm(self, x):
        self.op(x[1], f"rms_norm {{}}, {{}} dim {len(x[1]) - 1} epsilon 1.0e-5", x, self.argument(x[1][-1]))

    def reduce(self, x):
        if len(x[1]) > 1:
            dim = self.rng.randrange(len(x[1]))
            self.op(x[1][:dim] + x[1][dim + 1:], f"reduce {self.rng.choice(['sum', 'max'])} {{}} dims [{dim}]", x)

    def transpose(self, x):
        order = self.rng.sample(range(len(x[1])), len(x[1]))
        if len(x[1]) > 1:
            self.op([x[1][dim] for dim in order], f"transpose {{}} {order}", x)

    def slice(self, x):
        if x[1][0] % 2 == 0:
            shape = [x[1][0] // 2, *x[1][1:]]
            starts, steps = [self.rng.choice([0, shape[0]]), *[0] * (len(shape) - 1)], [1] * len(shape)
            self.op(shape, f"slice {{}} starts {starts} sizes {shape} steps {steps}", x)

    def concat(self, x):
        self.op([x[1][0] * 2, *x[1][1:]], "concat {}, {} dim 0", x, x)

    def split(self, x):
        if len(x[1]) == 2:
            heads = self.rng.choice([size for size in (2, 4, 6, 8) if x[1][1] % size == 0])
            self.op((x[1][0], heads, x[1][1] // heads), "reshape {}", x)

    def join(self, x):
        if len(x[1]) == 3:
            self.op((x[1][0], x[1][1] * x[1][2]), "reshape {}", x)

    OPS = [product, product, product, scores, map, add, scale, softmax, cumsum, layer_norm, rms_norm, reduce, transpose, slice,
           concat, split, join]

    def text(self, results):
        names = {"arguments": [f'%{name}: {spelled(shape)} {{nn.name = "{name}"}}' for name, shape in self.arguments],
                 "results": [f'{spelled(shape)} {{nn.name = "o{index}"}}' for index, (_, shape) in enumerate(results)]}
        body = "".join(f"  {line}\n" for line in self.lines)
        returned = f"{', '.join('%' + name for name, _ in results)} : {', '.join(spelled(shape) for _, shape in results)}"
        return f"func.func @main({', '.join(names['arguments'])}) -> ({', '.join(names['results'])}) {{\n{body}  return {returned}\n}}\n"


def draw_model(rng):
    """(model, results): the last value, and sometimes one before."""
    model = Model(rng, rng.choice(SIZES))
    model.values.append(model.argument(rng.choice(model.sizes), rng.choice(model.sizes)))
    count = rng.randint(2, 7)
    while len(model.lines) < count:
        x = model.values[-1] if rng.random() < 0.8 else rng.choice(model.values)
        rng.choice(Model.OPS)(model, x)
    results = [model.values[-1]]
    if rng.random() < 0.3 and (other := rng.choice(model.values[1:])) not in results:
        results.append(other)
    return model, results


def draw_borders(rng, mesh):
    """axis -> where its parts may begin and end: each divides the next, as sub-axes of one axis must."""
    borders = {}
    for axis, size in mesh.items():
        borders[axis] = [1]
        while borders[axis][-1] < size:
            last = borders[axis][-1]
            borders[axis].append(last * rng.choice([prime for prime in (2, 3) if size // last % prime == 0]))
    return borders


def draw_cut(rng, borders):
    """(spelled behind the axis, size): all of it, or a part."""
    parts = [(before, end // before) for before in borders for end in borders if before < end]
    before, size = rng.choice(parts) if rng.random() < 0.25 else (1, borders[-1])
    return "" if size == borders[-1] else f":({before}){size}", size


def draw_dims(rng, borders, shape):
    """An annotation that divides; dims that nothing cuts may be open."""
    left, dims = list(shape), [[] for _ in shape]
    axes = [axis for axis in borders if len(borders[axis]) > 1]
    for axis in rng.sample(axes, len(axes)):
        if rng.random() < 0.45:
            continue
        part, size = draw_cut(rng, borders[axis])
        if fits := [dim for dim, extent in enumerate(left) if extent % size == 0]:
            dim = rng.choice(fits)
            left[dim] //= size
            dims[dim].append(f'"{axis}{part}"')
    words = [words[0] if len(words) == 1 else f"[{', '.join(words)}]" if words else rng.choice(["_", "_", "_", "?"]) for words in dims]
    return f"[{', '.join(words)}]"


class Problem:
    def __init__(self, seed):
        rng = random.Random(seed)
        self.name = str(seed)
        self.mesh = draw_mesh(rng)
        model, results = draw_model(rng)
        self.model = model.text(results)
        self.machine = draw_machine(rng, self.mesh)
        borders = draw_borders(rng, self.mesh)
        values = model.arguments + [(f"o{index}", shape) for index, (_, shape) in enumerate(results)]
        annotations = [f"  - {{tensor: {name}, dims: {draw_dims(rng, borders, shape)}}}\n" for name, shape in values
                  if name == "p0" or rng.random() < 0.55]
        axes = ", ".join(f"{axis}: {size}" for axis, size in self.mesh.items())
        self.plan = f"mesh: {{{axes}}}\nshard:\n{''.join(annotations)}"

    def write(self, folder):
        """Paths of the model, the plan and the machine."""
        paths = [os.path.join(folder, f"{self.name}.{kind}") for kind in ("mlir", "plan.yaml", "cluster.yaml")]
        for path, text in zip(paths, (self.model, self.plan, self.machine.text())):
            with open(path, "w") as file:
                file.write(text)
        return paths
