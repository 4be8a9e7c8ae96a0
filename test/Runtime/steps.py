"""Steps of training written by hand, as functions of `nn`, and the same in numpy.

A network of two layers: y = tanh(x w1 + b1) w2, the loss is the mean of squares of y - labels. Gradients stand in the function as
anybody would derive them on paper.
"""
import numpy as np

BATCH, FEATURES, HIDDEN, CLASSES = 8, 6, 9, 4
RATE, MOMENTUM, BETAS, EPSILON = 0.05, 0.9, (0.9, 0.999), 1e-8


def weights(dtype=np.float32):
    rng = np.random.default_rng(7)
    return {"w1": rng.normal(size=(FEATURES, HIDDEN)).astype(np.float32).astype(dtype) * dtype(0.5),
            "b1": rng.normal(size=(HIDDEN,)).astype(np.float32).astype(dtype) * dtype(0.1),
            "w2": rng.normal(size=(HIDDEN, CLASSES)).astype(np.float32).astype(dtype) * dtype(0.5)}


def samples(count, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, FEATURES)).astype(np.float32)
    return {"x": x, "labels": np.tanh(x @ rng.normal(size=(FEATURES, CLASSES)).astype(np.float32)).astype(np.float32)}


class Text:
    """The ops of a function, one a line."""

    def __init__(self):
        self.lines, self.count = [], 0

    def op(self, words, operands, shape, element="f32"):
        """`words` has a {} for each operand, (name, shape, element); the result likewise."""
        name = f"%v{self.count}"
        self.count += 1
        types = ", ".join(kind(*each[1:]) for each in operands)
        self.lines.append(f"  {name} = nn.{words.format(*(each[0] for each in operands))} : ({types}) -> {kind(shape, element)}")
        return name, shape, element

    def number(self, value):
        name = f"%v{self.count}"
        self.count += 1
        self.lines.append(f"  {name} = nn.constant dense<{value:.17e}> : tensor<f32> -> tensor<f32>")
        return name, (), "f32"

    def binary(self, word, a, b):
        return self.op(word + " {}, {}", [a, b], np.broadcast_shapes(a[1], b[1]))

    def unary(self, word, a):
        return self.op(word + " {}", [a], a[1])

    def einsum(self, a, b, letters, shape):
        return self.op(f'einsum {{}}, {{}} "{letters}"', [a, b], shape)


def kind(shape, element):
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{element}>"


def gradients(text, x, labels, w):
    """(loss, gradient of each weight)"""
    hidden = text.unary("tanh", text.binary("add", text.einsum(x, w["w1"], "ik,kj->ij", (BATCH, HIDDEN)), w["b1"]))
    error = text.binary("sub", text.einsum(hidden, w["w2"], "ik,kj->ij", (BATCH, CLASSES)), labels)
    total = text.op("reduce sum {} dims [0, 1]", [text.binary("mul", error, error)], ())
    loss = text.binary("mul", total, text.number(1 / (BATCH * CLASSES)))
    slope = text.binary("mul", error, text.number(2 / (BATCH * CLASSES)))
    inner = text.einsum(slope, w["w2"], "ij,kj->ik", (BATCH, HIDDEN))
    inner = text.binary("mul", inner, text.binary("sub", text.number(1.0), text.binary("mul", hidden, hidden)))
    return loss, {"w1": text.einsum(x, inner, "ik,ij->kj", (FEATURES, HIDDEN)), "b1": text.op("reduce sum {} dims [0]", [inner], (HIDDEN,)),
                  "w2": text.einsum(hidden, slope, "ik,ij->kj", (HIDDEN, CLASSES))}


def step(optimizer, file=None):
    """The module's text; weights lie in `file`, or stand in the module."""
    text, values, results = Text(), weights(), []
    arguments = [f'%x: {kind((BATCH, FEATURES), "f32")} {{nn.name = "x", nn.role = "batch"}}',
                 f'%labels: {kind((BATCH, CLASSES), "f32")} {{nn.name = "labels", nn.role = "batch"}}']
    params, at, w, moments = [], 0, {}, {}
    for name, value in values.items():
        numbers = str(value.tolist()) if file is None else ""
        source = f'#nn.weight<"{file}", {at}, {value.nbytes}>' if file else f"dense<{numbers}> : {kind(value.shape, 'f32')}"
        params.append(f"nn.param @{name} : {kind(value.shape, 'f32')} = {source}")
        at += value.nbytes
        w[name] = (f"%{name}", value.shape, "f32")
        arguments.append(f'%{name}: {kind(value.shape, "f32")} {{nn.name = "{name}", nn.role = "parameter", nn.begins = @{name}}}')
        for kept in {"momentum": ["m"], "adam": ["m", "v"]}[optimizer]:
            moments[kept, name] = (f"%{kept}_{name}", value.shape, "f32")
            arguments.append(f'%{kept}_{name}: {kind(value.shape, "f32")} {{nn.name = "{kept}({name})", nn.role = "optimizer"}}')
    loss, grads = gradients(text, ("%x", (BATCH, FEATURES), "f32"), ("%labels", (BATCH, CLASSES), "f32"), w)
    results.append((loss, '{nn.name = "loss"}'))
    squares = [text.op(f"reduce sum {{}} dims [{', '.join(map(str, range(len(each[1]))))}]", [text.binary("mul", each, each)], ()) for each in grads.values()]
    norm = text.unary("sqrt", text.binary("add", text.binary("add", *squares[:2]), squares[2]))
    results.append((norm, '{nn.name = "norm"}'))
    if optimizer == "adam":
        arguments.append('%count: tensor<i64> {nn.name = "count", nn.role = "count"}')
        one = "%one"
        text.lines.insert(0, "  %one = nn.constant dense<1> : tensor<i64> -> tensor<i64>")
        done = text.op("add {}, {}", [("%count", (), "i64"), (one, (), "i64")], (), "i64")
        results.append((done, '{nn.name = "next(count)", spmd.state = "count"}'))
        steps = text.op("cast {}", [done], ())
        left = [text.binary("sub", text.number(1.0), text.unary("exp", text.binary("mul", steps, text.number(float(np.log(beta))))))
                for beta in BETAS]
    for name, grad in grads.items():
        def decay(kept, beta, value):
            return text.binary("add", text.binary("mul", moments[kept, name], text.number(beta)), text.binary("mul", value, text.number(1 - beta)))
        if optimizer == "momentum":
            m = text.binary("add", text.binary("mul", moments["m", name], text.number(MOMENTUM)), grad)
            update = m
            kept = {"m": m}
        else:
            m, v = decay("m", BETAS[0], grad), decay("v", BETAS[1], text.binary("mul", grad, grad))
            root = text.binary("add", text.unary("sqrt", text.binary("div", v, left[1])), text.number(EPSILON))
            update = text.binary("div", text.binary("div", m, left[0]), root)
            kept = {"m": m, "v": v}
        new = text.binary("sub", w[name], text.binary("mul", update, text.number(RATE)))
        results.append((new, f'{{nn.name = "next({name})", spmd.state = "{name}"}}'))
        for word, value in kept.items():
            results.append((value, f'{{nn.name = "next({word}({name}))", spmd.state = "{word}({name})"}}'))
    types = ", ".join(f"{kind(*each[1:])} {attribute}" for each, attribute in results)
    returned = ", ".join(each[0] for each, _ in results) + " : " + ", ".join(kind(*each[1:]) for each, _ in results)
    return "\n".join([*params, f"func.func @main({', '.join(arguments)}) -> ({types}) {{", *text.lines, f"  return {returned}", "}"]) + "\n"


def write_weights(path):
    with open(path, "wb") as file:
        for value in weights().values():
            file.write(value.tobytes())


def train(optimizer, data, order):
    """(losses, weights, moments) of numpy in f64, with batches of samples in that order."""
    w = weights(np.float64)
    moments = {(kept, name): np.zeros_like(value) for name, value in w.items() for kept in "mv"}
    losses = []
    for count, rows in enumerate(order, 1):
        x, labels = (data[name][rows].astype(np.float64) for name in ("x", "labels"))
        hidden = np.tanh(x @ w["w1"] + w["b1"])
        error = hidden @ w["w2"] - labels
        losses.append((error ** 2).mean())
        slope = 2 / error.size * error
        inner = slope @ w["w2"].T * (1 - hidden ** 2)
        for name, grad in {"w1": x.T @ inner, "b1": inner.sum(0), "w2": hidden.T @ slope}.items():
            if optimizer == "momentum":
                moments["m", name] = MOMENTUM * moments["m", name] + grad
                w[name] -= RATE * moments["m", name]
                continue
            for kept, beta, value in (("m", BETAS[0], grad), ("v", BETAS[1], grad ** 2)):
                moments[kept, name] = beta * moments[kept, name] + (1 - beta) * value
            m, v = (moments[kept, name] / (1 - beta ** count) for kept, beta in zip("mv", BETAS))
            w[name] -= RATE * m / (np.sqrt(v) + EPSILON)
    return losses, w, moments
