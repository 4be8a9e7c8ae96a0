"""The networks of the GPU kit, each written once, in ops that several classes make something of.

A network is a function of `ops` and of sizes; it takes tensors from `ops.input` and `ops.weight`, and returns its result. `onnx_ops.py` writes
it as ONNX, `peers.py` computes it with torch, `NumpyOps` here with numpy, which is what kernels are held against.

Weights and inputs are numbers of their name and place alone (`draw`), so that gigabytes of them need not travel.
"""
import math
import zlib

import numpy as np

HALF, FLOAT, INDEX = "f16", "f32", "i64"
DTYPES = {HALF: np.float16, FLOAT: np.float32, INDEX: np.int64}
CHUNK = 1 << 24


def mix(name, begin, end):
    """Thirty-two even bits for each number from `begin` to `end`: MurmurHash3's finalizer, seeded by the name."""
    x = np.arange(begin, end, dtype=np.uint32) * np.uint32(0x9E3779B1) + np.uint32(zlib.crc32(name.encode()))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        x ^= x >> np.uint32(shift)
        x *= np.uint32(factor)
    return x


def draw(name, shape, scale, offset=0.0):
    """f32 numbers from `offset - scale` to `offset + scale`, evenly."""
    total = math.prod(shape)
    values = np.empty(total, np.float32)
    for begin in range(0, total, CHUNK):
        end = min(begin + CHUNK, total)
        part = (mix(name, begin, end) >> np.uint32(8)).astype(np.float32)
        values[begin:end] = part * np.float32(2 * scale / (1 << 24)) + np.float32(offset - scale)
    return values.reshape(shape)


def draw_indices(name, shape, below):
    return (mix(name, 0, math.prod(shape)).astype(np.int64) % below).reshape(shape)


def make_input(name, shape, dtype, below):
    return draw_indices(name, shape, below) if dtype == INDEX else draw(name, shape, 1.5).astype(DTYPES[dtype])


def write_weights(path, weights):
    """A file of f32 tensors: `weights` has for each name its shape, scale and offset, and at which byte it begins."""
    with open(path, "wb") as file:
        for name, weight in weights.items():
            file.seek(weight["at"])
            draw(name, weight["shape"], weight["scale"], weight["offset"]).tofile(file)


class Operators:
    """What numpy's arrays and torch's tensors write alike."""

    def add(self, x, y):
        return x + y

    def mul(self, x, y):
        return x * y

    def neg(self, x):
        return -x

    def matmul(self, x, y):
        return x @ y

    def reshape(self, x, shape):
        return x.reshape(shape)


def get_rotary_tables(seq, size):
    """Cosines and sines of seq x size / 2 angles (Su et al. 2021)."""
    angles = np.outer(np.arange(seq), 10000.0 ** (-np.arange(0, size, 2) / size))
    return np.cos(angles), np.sin(angles)


class NumpyOps(Operators):
    """Inputs drawn, results in f64. Of `rows`, those alone: of inputs that a result has the rows of, which all are but `b`."""

    def __init__(self, rows=None):
        self.rows = rows

    def input(self, name, shape, dtype=FLOAT, below=0):
        array = make_input(name, shape, dtype, below)
        if self.rows is not None and name != "b":
            array = array[self.rows]
        return array if dtype == INDEX else array.astype(np.float64)

    def weight(self, name, shape, scale, offset=0.0):
        return draw(name, shape, scale, offset).astype(np.float64)

    def gelu(self, x, tanh=False):
        if tanh:
            return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))

    def silu(self, x):
        return x / (1 + np.exp(-x))

    def softmax(self, x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def layer_norm(self, x, scale, bias):
        centered = x - x.mean(-1, keepdims=True)
        return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * scale + bias

    def rms_norm(self, x, scale):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * scale

    def gather(self, table, indices):
        return table[indices]

    def transpose(self, x, permutation):
        return x.transpose(permutation)

    def sum(self, x, dims):
        return x.sum(tuple(dims))

    def attention(self, query, key, value, causal=False):
        groups = query.shape[1] // key.shape[1]
        key, value = np.repeat(key, groups, 1), np.repeat(value, groups, 1)
        scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
        if causal:
            rows, columns = scores.shape[-2:]
            scores = np.where(np.tri(rows, columns, columns - rows, dtype=bool), scores, -np.inf)
        return self.softmax(scores) @ value


#===----------------------------------------------------------------------===#
# Kernels
#===----------------------------------------------------------------------===#

def negate(ops, rows, columns):
    """Nothing but memory: what the others are held against."""
    return ops.neg(ops.input("x", (rows, columns)))


def bias_gelu(ops, rows, columns):
    return ops.gelu(ops.add(ops.input("x", (rows, columns)), ops.weight("b", (columns,), 0.5)))


def softmax(ops, rows, columns):
    return ops.softmax(ops.input("x", (rows, columns)))


def residual_norm(ops, rows, columns):
    x = ops.add(ops.input("x", (rows, columns)), ops.input("r", (rows, columns)))
    return ops.layer_norm(x, ops.weight("scale", (columns,), 0.1, 1.0), ops.weight("bias", (columns,), 0.1))


def rms(ops, rows, columns):
    return ops.rms_norm(ops.input("x", (rows, columns), HALF), ops.weight("scale", (columns,), 0.1, 1.0))


def gated(ops, rows, columns):
    return ops.mul(ops.silu(ops.input("g", (rows, columns), HALF)), ops.input("u", (rows, columns), HALF))


def turn(ops, rows, columns):
    return ops.transpose(ops.input("x", (rows, columns)), [1, 0])


def sum_rows(ops, rows, columns):
    return ops.sum(ops.input("x", (rows, columns)), [0])


def look_up(ops, rows, columns, entries):
    return ops.gather(ops.weight("table", (entries, columns), 1.0), ops.input("i", (rows,), INDEX, entries))


def product(ops, m, n, k, dtype=FLOAT):
    return ops.matmul(ops.input("a", (m, k), dtype), ops.input("b", (k, n), dtype))


def attend(ops, batch, heads, queries, keys, size, causal=False, dtype=FLOAT, groups=1):
    shapes = (heads, queries), (heads // groups, keys), (heads // groups, keys)
    tensors = [ops.input(name, (batch, *shape, size), dtype) for name, shape in zip("qkv", shapes)]
    return ops.attention(*tensors, causal=causal)


#===----------------------------------------------------------------------===#
# Models
#===----------------------------------------------------------------------===#

def linear(ops, x, name, rows, columns, bias=True):
    """Weights that keep the size of what goes through."""
    y = ops.matmul(x, ops.weight(f"{name}.weight", (rows, columns), math.sqrt(3 / rows)))
    return ops.add(y, ops.weight(f"{name}.bias", (columns,), 0.05)) if bias else y


def norm(ops, x, name, hidden):
    return ops.layer_norm(x, ops.weight(f"{name}.scale", (hidden,), 0.1, 1.0), ops.weight(f"{name}.bias", (hidden,), 0.1))


def split_heads(ops, x, batch, seq, heads, size):
    return ops.transpose(ops.reshape(x, (batch, seq, heads, size)), [0, 2, 1, 3])


def merge_heads(ops, x, batch, seq, hidden):
    return ops.reshape(ops.transpose(x, [0, 2, 1, 3]), (batch, seq, hidden))


def self_attention(ops, x, name, batch, seq, hidden, heads, causal):
    parts = [split_heads(ops, linear(ops, x, f"{name}.{part}", hidden, hidden), batch, seq, heads, hidden // heads)
             for part in ("query", "key", "value")]
    return linear(ops, merge_heads(ops, ops.attention(*parts, causal=causal), batch, seq, hidden), f"{name}.out", hidden, hidden)


def bert(ops, batch, seq, layers, hidden, heads, entries):
    """Devlin et al. 2019: norms behind each residual, the Gelu of erf."""
    x = ops.gather(ops.weight("words", (entries, hidden), 1.0), ops.input("ids", (batch, seq), INDEX, entries))
    x = norm(ops, ops.add(x, ops.weight("positions", (seq, hidden), 0.5)), "embeddings", hidden)
    for layer in range(layers):
        x = norm(ops, ops.add(x, self_attention(ops, x, f"{layer}", batch, seq, hidden, heads, False)), f"{layer}.norm1", hidden)
        y = linear(ops, ops.gelu(linear(ops, x, f"{layer}.up", hidden, 4 * hidden)), f"{layer}.down", 4 * hidden, hidden)
        x = norm(ops, ops.add(x, y), f"{layer}.norm2", hidden)
    return x


def gpt2(ops, batch, seq, layers, hidden, heads, entries):
    """Radford et al. 2019: norms in front, the Gelu of tanh, causal; without the head."""
    x = ops.gather(ops.weight("words", (entries, hidden), 1.0), ops.input("ids", (batch, seq), INDEX, entries))
    x = ops.add(x, ops.weight("positions", (seq, hidden), 0.5))
    for layer in range(layers):
        y = norm(ops, x, f"{layer}.norm1", hidden)
        x = ops.add(x, self_attention(ops, y, f"{layer}", batch, seq, hidden, heads, True))
        y = linear(ops, norm(ops, x, f"{layer}.norm2", hidden), f"{layer}.up", hidden, 4 * hidden)
        x = ops.add(x, linear(ops, ops.gelu(y, tanh=True), f"{layer}.down", 4 * hidden, hidden))
    return norm(ops, x, "last", hidden)


def llama_layer(ops, batch, seq, hidden, heads, groups, inner):
    """Touvron et al. 2023: root-mean-square norms, rotary positions, a gate; `groups` queries' heads share one of keys."""
    size, few = hidden // heads, heads // groups
    x = ops.input("x", (batch, seq, hidden))
    y = ops.rms_norm(x, ops.weight("norm1", (hidden,), 0.1, 1.0))
    query, key, value = (split_heads(ops, linear(ops, y, part, hidden, count * size, bias=False), batch, seq, count, size)
                         for part, count in (("query", heads), ("key", few), ("value", few)))
    y = ops.attention(ops.rotary(query, seq, size), ops.rotary(key, seq, size), value, causal=True)
    x = ops.add(x, linear(ops, merge_heads(ops, y, batch, seq, hidden), "out", hidden, hidden, bias=False))
    y = ops.rms_norm(x, ops.weight("norm2", (hidden,), 0.1, 1.0))
    gate = ops.silu(linear(ops, y, "gate", hidden, inner, bias=False))
    y = ops.mul(gate, linear(ops, y, "up", hidden, inner, bias=False))
    return ops.add(x, linear(ops, y, "down", inner, hidden, bias=False))


def resnet50(ops, batch, side, width, blocks, classes):
    """He et al. 2016, strides in the 3 x 3 convolutions; batch norms are in weights and biases, as exporters fold them."""

    def conv(x, name, into, out, kernel, stride=1):
        weight = ops.weight(f"{name}.weight", (out, into, kernel, kernel), math.sqrt(3 / (into * kernel * kernel)))
        return ops.conv(x, weight, ops.weight(f"{name}.bias", (out,), 0.05), stride, kernel // 2)

    x = ops.relu(conv(ops.input("image", (batch, 3, side, side)), "stem", 3, width, 7, 2))
    x = ops.max_pool(x, 3, 2, 1)
    into = width
    for stage, count in enumerate(blocks):
        inner = width << stage
        for block in range(count):
            name, stride = f"{stage}.{block}", 2 if stage and not block else 1
            y = ops.relu(conv(x, f"{name}.1", into, inner, 1))
            y = ops.relu(conv(y, f"{name}.2", inner, inner, 3, stride))
            shortcut = conv(x, f"{name}.0", into, 4 * inner, 1, stride) if not block else x
            x = ops.relu(ops.add(conv(y, f"{name}.3", inner, 4 * inner, 1), shortcut))
            into = 4 * inner
    return linear(ops, ops.mean(x, [2, 3]), "classes", into, classes)


#===----------------------------------------------------------------------===#
# What the kit has
#===----------------------------------------------------------------------===#

# Whose rows, or members of a batch, go into the same rows of the result.
BY_ROW = (negate, bias_gelu, softmax, residual_norm, rms, gated, look_up, product, attend)
# Name -> (network, its sizes). Sizes of the facts where they have some, and large enough that a launch does not count.
KERNELS = {
    "negate": (negate, (16384, 4096)),
    "bias_gelu": (bias_gelu, (16384, 3072)),
    "softmax_128": (softmax, (262144, 128)),
    "softmax_4096": (softmax, (8192, 4096)),
    "softmax_50257": (softmax, (512, 50257)),
    "residual_layer_norm_768": (residual_norm, (32768, 768)),
    "rms_norm_4096_f16": (rms, (16384, 4096)),
    "silu_mul_f16": (gated, (16384, 4096)),
    "transpose": (turn, (8192, 4096)),
    "sum_rows_1024": (sum_rows, (65536, 1024)),
    "sum_rows_8": (sum_rows, (1 << 20, 8)),
    "gather_768": (look_up, (65536, 768, 30522)),
}
PRODUCTS = {
    "f32_1024": (product, (1024, 1024, 1024)),
    "f32_4096x3072x768": (product, (4096, 3072, 768)),
    "f16_1024": (product, (1024, 1024, 1024, HALF)),
    "f16_4096": (product, (4096, 4096, 4096, HALF)),
    "f16_8192": (product, (8192, 8192, 8192, HALF)),
    "f16_16x4096x4096": (product, (16, 4096, 4096, HALF)),
    "attention_f16_2048": (attend, (2, 16, 2048, 2048, 64, True, HALF)),
    "attention_f16_decode": (attend, (8, 32, 1, 4096, 128, False, HALF, 4)),
}
MODELS = {
    "bert_base": (bert, (8, 128, 12, 768, 12, 30522)),
    "gpt2": (gpt2, (1, 512, 12, 768, 12, 50257)),
    "llama_layer": (llama_layer, (1, 2048, 4096, 32, 1, 11008)),
    "resnet50": (resnet50, (8, 224, 64, (3, 4, 6, 3), 1000)),
}
# The same kinds at sizes that a device which is emulated has done in a moment.
SMALL_KERNELS = {
    "negate": (negate, (16, 64)),
    "bias_gelu": (bias_gelu, (16, 96)),
    "softmax_128": (softmax, (24, 128)),
    "softmax_197": (softmax, (5, 197)),
    "residual_layer_norm_768": (residual_norm, (4, 768)),
    "rms_norm_4096_f16": (rms, (2, 4096)),
    "silu_mul_f16": (gated, (8, 64)),
    "transpose": (turn, (64, 48)),
    "sum_rows_8": (sum_rows, (256, 8)),
    "gather_768": (look_up, (12, 768, 40)),
}
SMALL_PRODUCTS = {
    "f32_64": (product, (64, 48, 32)),
    "f16_64": (product, (64, 64, 32, HALF)),
    "attention_f16_32": (attend, (1, 2, 32, 32, 16, True, HALF)),
    "attention_f16_decode": (attend, (1, 4, 1, 64, 16, False, HALF, 2)),
}
SMALL_MODELS = {
    "bert_base": (bert, (2, 16, 1, 32, 2, 60)),
    "gpt2": (gpt2, (1, 16, 1, 32, 2, 60)),
    "llama_layer": (llama_layer, (1, 16, 64, 4, 2, 96)),
    "resnet50": (resnet50, (1, 32, 4, (1, 1, 1, 1), 10)),
}


def get_sets(is_small):
    """Kernels, products, models."""
    return (SMALL_KERNELS, SMALL_PRODUCTS, SMALL_MODELS) if is_small else (KERNELS, PRODUCTS, MODELS)
