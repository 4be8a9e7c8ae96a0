"""Models of `steps.py`: ONNX text, inputs, weights and labels, and what the loss is of, once more in numpy."""
import numpy as np


def numbers(*shape, seed=0, low=-1.0, high=1.0):
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def regression():
    """Two layers; what is said of the loss is the plan's."""
    return dict(text="f (double[8, 6] x) => (double[8, 4] y) { h = MatMul(x, w) k = Add(h, b) a = Tanh(k) y = MatMul(a, v) }",
                inputs={"x": numbers(8, 6)}, labels=numbers(8, 4, seed=1),
                weights={"w": numbers(6, 8), "b": numbers(8), "v": numbers(8, 4)},
                of=lambda w, i: np.tanh(i["x"] @ w["w"] + w["b"]) @ w["v"])


def classifier():
    """Embeddings, of which rows are read twice, and classes."""
    return dict(text="f (int64[8] ids) => (double[8, 6] y) { e = Gather(table, ids) h = MatMul(e, w) k = Relu(h) s = MatMul(k, v) y = Add(s, b) }",
                inputs={"ids": np.arange(8) * 3 % 5}, labels=np.array([1, 0, 3, 5, 2, 2, 4, 1]),
                weights={"table": numbers(5, 4), "w": numbers(4, 8, seed=2), "v": numbers(8, 6), "b": numbers(6)},
                of=lambda w, i: np.maximum(w["table"][i["ids"]] @ w["w"], 0) @ w["v"] + w["b"])


def tied():
    """A model of language whose table is its head, too."""
    def logits(w, i):
        x = w["table"][i["ids"]]
        mean = x.mean(-1, keepdims=True)
        n = (x - mean) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w["scale"]
        return n @ w["table"].T
    return dict(text="f (int64[2, 5] ids) => (double[2, 5, 8] y) { e = Gather(table, ids) n = LayerNormalization<epsilon = 0.00001>(e, scale) t = Transpose<perm = [1, 0]>(table) y = MatMul(n, t) }",
                inputs={"ids": np.array([[1, 4, 2, 7, 0], [3, 3, 6, 5, 1]])}, labels=None,
                weights={"table": numbers(8, 4), "scale": numbers(4, low=0.5)}, of=logits)


def image():
    """A convolution, a norm with given statistics, a pool."""
    def logits(w, i):
        x = np.pad(i["x"], ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
        h = np.einsum("nchwij,ocij->nohw", windows, w["k"])
        shape = (1, -1, 1, 1)
        h = (h - w["mean"].reshape(shape)) / np.sqrt(w["variance"].reshape(shape) + 1e-5) * w["scale"].reshape(shape) + w["bias"].reshape(shape)
        return (h * (h > 0)).mean((2, 3)) @ w["head"]
    return dict(text="f (double[4, 2, 4, 4] x) => (double[4, 3] y) { h = Conv<pads = [1, 1, 1, 1]>(x, k) n = BatchNormalization(h, scale, bias, mean, variance) a = Relu(n) "
                     "p = GlobalAveragePool(a) s = Constant<value = int64[2] {4, 4}>() q = Reshape(p, s) y = MatMul(q, head) }",
                inputs={"x": numbers(4, 2, 4, 4)}, labels=np.array([0, 2, 1, 1]),
                weights={"k": numbers(4, 2, 3, 3), "scale": numbers(4, low=0.5), "bias": numbers(4), "mean": numbers(4, seed=3), "variance": numbers(4, low=0.4),
                         "head": numbers(4, 3)}, frozen={"mean", "variance"}, of=logits)


def grouped(extents):
    """A convolution of two groups. Of small images gradients of all samples' kernels take more than what they are made of."""
    def logits(w, i):
        x = np.pad(i["x"], ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
        h = np.concatenate([np.einsum("nchwij,ocij->nohw", windows[:, 2 * group:2 * group + 2], w["k"][2 * group:2 * group + 2]) for group in range(2)], 1)
        return np.tanh(h).mean((2, 3)) @ w["head"]
    return dict(text=f"f (double[8, 4, {extents[0]}, {extents[1]}] x) => (double[8, 3] y) {{ h = Conv<pads = [1, 1, 1, 1], group = 2>(x, k) a = Tanh(h) "
                     "p = GlobalAveragePool(a) s = Constant<value = int64[2] {8, 4}>() q = Reshape(p, s) y = MatMul(q, head) }",
                inputs={"x": numbers(8, 4, *extents)}, labels=np.array([0, 2, 1, 1, 0, 2, 2, 1]), weights={"k": numbers(4, 2, 3, 3), "head": numbers(4, 3)}, of=logits)


def looked_up():
    """Each sample looks up places of its own, by pairs of numbers, one of them from the end."""
    places = np.random.default_rng(8).integers(-3, 3, (8, 5, 2))
    def read(w, i):
        h = i["x"] @ w["w"]
        a, c = np.moveaxis(i["places"], -1, 0)
        return np.tanh(h[np.arange(8)[:, None], a, c]) @ w["v"]
    return dict(text="f (double[8, 3, 4, 6] x, int64[8, 5, 2] places) => (double[8, 5, 2] y) { h = MatMul(x, w) g = GatherND<batch_dims = 1>(h, places) a = Tanh(g) y = MatMul(a, v) }",
                inputs={"x": numbers(8, 3, 4, 6), "places": places}, labels=numbers(8, 5, 2, seed=1), weights={"w": numbers(6, 4), "v": numbers(4, 2)}, of=read)


def single(named):
    """A layer with one result. Its bias and its slope are weights, though they are numbers; `g` is one where the plan names it."""
    def of(w, i):
        h = i["x"] @ w["w"] + w["b"]
        return np.where(h < 0, w["p"] * h, h) * w["g"]
    return dict(text="f (double[8, 6] x) => (double[8, 1] y) { h = MatMul(x, w) k = Add(h, b) a = PRelu(k, p) y = Mul(a, g) }",
                inputs={"x": numbers(8, 6)}, labels=numbers(8, 1, seed=1),
                weights={"w": numbers(6, 1), "b": numbers(1), "p": np.array([0.25]), "g": np.array(1.5)}, frozen=set() if named else {"g"}, of=of)


def given():
    """The model gives a loss itself."""
    return dict(text="f (double[8, 3] x, double[8] t) => (double y) { h = MatMul(x, w) e = Sub(h, t) q = Mul(e, e) y = ReduceMean<keepdims = 0>(q) }",
                inputs={"x": numbers(8, 3), "t": numbers(8)}, labels=None, weights={"w": numbers(3)}, of=lambda w, i: np.mean((i["x"] @ w["w"] - i["t"])**2))


def philox(places, step, key):
    """The first word of Philox2x32-10 (Salmon et al. 2011), by its definition."""
    low, high = places & 0xffffffff, places >> 32 ^ step
    for turn in range(10):
        product = low * np.uint64(0xD256D193)
        low, high = product >> np.uint64(32) ^ np.uint64((key + turn * 0x9E3779B9) & 0xffffffff) ^ high, product & np.uint64(0xffffffff)
    return low


# A known answer of its authors.
assert philox(np.uint64(0), np.uint64(0), 0) == 0xff1dae59


def keeps(name, shape, ratio, step, seed=0):
    """What stays of the result `name` of a Dropout node."""
    key = 2166136261
    for byte in name.encode() + seed.to_bytes(8, "little"):
        key = (key ^ byte) * 16777619 & 0xffffffff
    return philox(np.arange(np.prod(shape), dtype=np.uint64), np.uint64(step), key).reshape(shape) >= ratio * 2.0**32


def dropped(ratios=(0.25, 0.5), seed=0):
    """Two nodes of one ratio each, one of them of a tensor that ranks may split along its columns."""
    def of(w, i):
        a = np.tanh(i["x"] @ w["w"]) * keeps("d", (8, 8), ratios[0], i["step"], seed) / (1 - ratios[0])
        return (a @ w["v"]) * keeps("y", (8, 4), ratios[1], i["step"], seed) / (1 - ratios[1])
    return dict(text="f (double[8, 6] x) => (double[8, 4] y) { r = Constant<value = double {0.25}>() s = Constant<value = double {0.5}>() h = MatMul(x, w) a = Tanh(h) d = Dropout(a, r) "
                     "z = MatMul(d, v) y = Dropout(z, s) }",
                inputs={"x": numbers(8, 6)}, labels=numbers(8, 4, seed=1), weights={"w": numbers(6, 8), "v": numbers(8, 4)}, of=of)


def many():
    """How many elements stay of 16,384, column by column: the gradient of a factor."""
    kept = keeps("y", (256, 64), 0.25, 0)
    assert abs(kept.mean() - 0.75) < 4 * np.sqrt(0.75 * 0.25 / kept.size)
    assert abs((kept & keeps("y", (256, 64), 0.25, 1)).mean() - 0.75**2) < 4 * np.sqrt(0.25 / kept.size)
    return dict(text="f (double[256, 64] x) => (double[256, 64] y) { r = Constant<value = double {0.25}>() m = Mul(x, w) y = Dropout(m, r) }",
                inputs={"x": np.ones((256, 64))}, labels=np.zeros((256, 64)), weights={"w": numbers(64, low=0.5)},
                of=lambda w, i: i["x"] * w["w"] * keeps("y", (256, 64), 0.25, i["step"]) / 0.75)


def image_by_batch():
    """The image model, whose norm takes statistics of the batch; running ones keep 0.8 of what they were."""
    model = image()
    shape = (1, -1, 1, 1)

    def activations(w, i):
        x = np.pad(i["x"], ((0, 0), (0, 0), (1, 1), (1, 1)))
        return np.einsum("nchwij,ocij->nohw", np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3)), w["k"])

    def logits(w, i):
        h = activations(w, i)
        h = (h - h.mean((0, 2, 3), keepdims=True)) / np.sqrt(h.var((0, 2, 3), keepdims=True) + 1e-5) * w["scale"].reshape(shape) + w["bias"].reshape(shape)
        return (h * (h > 0)).mean((2, 3)) @ w["head"]

    def running(w, i):
        h = activations(w, i)
        return {"mean": 0.8 * w["mean"] + 0.2 * h.mean((0, 2, 3)), "variance": 0.8 * w["variance"] + 0.2 * h.var((0, 2, 3))}
    text = model["text"].replace("BatchNormalization(", "BatchNormalization<momentum = 0.8>(")
    return model | dict(text=text, of=logits, running=running)
