"""Ops of training steps that Python has no sign for, with the rules of their gradients (tape.py says what a rule is)."""
import math

from tape import pointwise, record, sum_to

EPSILON = 1e-5


def unary(name, x, rule=None, type=None):
    return record(f"nn.{name} {{0}}", [x], x.shape, rule, type)


def exp(x):
    return unary("exp", x)


def sqrt(x):
    return unary("sqrt", x)


def pow(x, y):
    return pointwise("pow", x, y)


def minimum(x, y):
    return pointwise("min", x, y)


def gelu(x):
    """`x * Phi(x)`, Phi of the normal distribution, whose derivative is its density."""
    def rule(d, _, x):
        share = (unary("erf", x * math.sqrt(0.5)) + 1.0) * 0.5
        density = exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
        return [lambda: d * (share + x * density)]

    return record("nn.gelu {0} {{tanh = false}}", [x], x.shape, rule)


def relu(x):
    def rule(d, y, _):
        zero = y.tape.constant(0.0, y.type)
        return [lambda: select(pointwise("gt", y, zero, type="i1"), d, zero)]

    return unary("relu", x, rule)


def select(condition, x, y):
    return record("nn.select {0}, {1}, {2}", [condition, x, y], condition.shape, type=x.type)


def einsum(equation, *operands):
    inputs, output = equation.split("->")
    inputs = inputs.split(",")
    size = {letter: size for letters, operand in zip(inputs, operands) for letter, size in zip(letters, operand.shape)}

    def rule(d, _, *operands):
        """An operand's gradient is an einsum again: the result's gradient with the other operands."""
        def gradient(at):
            others = [other for other in range(len(operands)) if other != at]
            letters = ",".join([output, *(inputs[other] for other in others)])
            return einsum(f"{letters}->{inputs[at]}", d, *(operands[other] for other in others))
        return [lambda at=at: gradient(at) for at in range(len(operands))]

    places = ", ".join(f"{{{at}}}" for at in range(len(operands)))
    return record(f'nn.einsum {places} "{equation}"', operands, [size[letter] for letter in output], rule)


def constrain(x, sharding, also_gradient=True):
    """An annotation for a value inside; the gradient of an annotation is an annotation, too."""
    return record("spmd.constrain {0}", [x], x.shape,
                  lambda d, _, x: [lambda: constrain(d, sharding) if also_gradient else d], sharding=sharding)


def softmax(x):
    return record(f"nn.softmax {{0}} dim {len(x.shape) - 1}", [x], x.shape)


def log_softmax(x):
    last = len(x.shape) - 1
    return record(f"nn.log_softmax {{0}} dim {last}", [x], x.shape,
                  lambda d, y, x: [lambda: d - exp(y) * d.sum([last], keep=True)])


def standardize(x, dims):
    """(x without mean and at variance 1 along `dims`, what it was multiplied by for that)."""
    centered = x - x.mean(dims, keep=True)
    factor = unary("reciprocal", sqrt((centered * centered).mean(dims, keep=True) + EPSILON))
    return centered * factor, factor


def layer_norm(x, scale, bias):
    """Over the last dim."""
    last = [len(x.shape) - 1]

    def rule(d, _, x, scale, bias):
        normal, factor = standardize(x, last)
        e = d * scale
        inner = e.mean(last, keep=True) + normal * (e * normal).mean(last, keep=True)
        return [lambda: factor * (e - inner), lambda: sum_to(d * normal, scale.shape), lambda: sum_to(d, bias.shape)]

    return record(f"nn.layer_norm {{0}}, {{1}} bias {{2}} dim {last[0]} epsilon {EPSILON:e}", [x, scale, bias], x.shape, rule)


def batch_norm(x, scale, bias):
    """In training: statistics of the whole batch, by channel (dim 1); scale and bias are [channels, 1, 1]. The rule is
    that of Ioffe and Szegedy (2015, section 3) and of every library: the two sums over the batch that x's gradient needs
    are the gradients of bias and scale. Op by op they would be summed once more, times the scale."""
    dims = [0, 2, 3]
    count = math.prod(x.shape[dim] for dim in dims)
    first = len(x.tape.entries)
    normal, factor = standardize(x, dims)
    result = normal * scale + bias

    def rule(d, _, x, scale, bias):
        d_scale, d_bias = sum_to(d * normal, scale.shape), sum_to(d, bias.shape)
        return [lambda: factor * scale * (d - d_bias * (1 / count) - normal * (d_scale * (1 / count))),
                lambda: d_scale, lambda: d_bias]

    x.tape.fuse(first, result, [x, scale, bias], rule)
    return result


def attention(q, k, v):
    """Causal, [batch, heads, sequence, size of a head]; the way back computes the scores again from q and k."""
    scale, (_, _, length, size) = q.shape[3] ** -0.5, q.shape

    def rule(d, y, q, k, v):
        scores = einsum("bhsd,bhtd->bhst", q, k) * scale
        row, column = (q.tape.record(f"nn.iota dim {dim} start 0 step 1", [], (length, length), "i64") for dim in (0, 1))
        keep = pointwise("ge", row, column, type="i1")
        hidden = q.tape.constant(-1e30, q.type)
        share = softmax(record("nn.select {0}, {1}, {2}", [keep, scores, hidden], scores.shape, type=q.type))
        d_share = einsum("bhsd,bhtd->bhst", d, v)
        d_scores = share * (d_share - (d * y).sum([3], keep=True)) * scale
        return [lambda: einsum("bhst,bhtd->bhsd", d_scores, k), lambda: einsum("bhst,bhsd->bhtd", d_scores, q),
                lambda: einsum("bhst,bhsd->bhtd", share, d)]

    return record(f"nn.attention {{0}}, {{1}}, {{2}} scale {scale:e} causal", [q, k, v], (*q.shape[:3], size), rule)


def gather(table, indices):
    """Rows of the table; the way back adds gradients of rows up where an index repeats."""
    def rule(d, _, table, indices):
        zeros = table.tape.constant(0.0, table.type).broadcast(table.shape)
        rows = indices.reshape(*indices.shape, 1)
        return [lambda: record("nn.scatter_nd add {0}, {1}, {2}", [zeros, rows, d], table.shape)]

    return record("nn.gather {0}, {1} dim 0", [table, indices], indices.shape + table.shape[1:], rule)


def pick(x, labels):
    """Of the last dim, the element that the label says; the dim stays."""
    last = len(x.shape) - 1

    def rule(d, _, x, indices):
        zeros = x.tape.constant(0.0, x.type).broadcast(x.shape)
        return [lambda: record(f"nn.scatter_elements add {{0}}, {{1}}, {{2}} dim {last}", [zeros, indices, d], x.shape)]

    indices = labels.reshape(*labels.shape, 1)
    return record(f"nn.gather_elements {{0}}, {{1}} dim {last}", [x, indices], indices.shape, rule)


def cross_entropy(logits, labels, fused=True):
    """The mean of -log softmax at the labels; `fused` with the rule that people write: softmax minus one-hot."""
    first, depth, last = len(logits.tape.entries), logits.shape[-1], len(logits.shape) - 1
    logs = log_softmax(logits)
    picked = pick(logs, labels)
    loss = -picked.mean(list(range(len(picked.shape))))

    def rule(d, _, logits):
        off_on = logits.tape.constant([0.0, 1.0], logits.type)
        hot = record(f"nn.one_hot {{0}}, {{1}} depth {depth} dim {last}", [labels, off_on], logits.shape, type=logits.type)
        return [lambda: (exp(logs) - hot) * (d * (1 / math.prod(labels.shape)))]

    if fused:
        logits.tape.fuse(first, loss, [logits], rule)
    return loss


def conv(x, filters, stride=1):
    """With filters of 3 x 3 on an image with a border of one zero."""
    out = [(size - 1) // stride + 1 for size in x.shape[2:]]

    def windows(stride, dilation):
        return f"strides {[stride] * 2} pads_low [1, 1] pads_high [1, 1] dilations {[dilation] * 2}"

    def d_input(d, x, filters):
        rest = [size - 1 - stride * (steps - 1) for size, steps in zip(x.shape[2:], out)]
        return record(f"nn.conv_transpose {{0}}, {{1}} {windows(stride, 1)} output_pads {rest} groups 1",
                      [d, filters], x.shape)

    def d_filters(d, x, filters):
        """The image as filters: batch and channels change places, and so do strides and dilations."""
        wide = [size + 2 - stride * (steps - 1) for size, steps in zip(x.shape[2:], out)]
        taps = record(f"nn.conv {{0}}, {{1}} {windows(1, stride)} groups 1",
                      [x.transpose(1, 0, 2, 3), d.transpose(1, 0, 2, 3)],
                      (x.shape[1], filters.shape[0], *wide)).transpose(1, 0, 2, 3)
        return taps if taps.shape == filters.shape else record(
            f"nn.slice {{0}} starts [0, 0, 0, 0] sizes {list(filters.shape)} steps [1, 1, 1, 1]", [taps], filters.shape)

    return record(f"nn.conv {{0}}, {{1}} {windows(stride, 1)} groups 1", [x, filters], (x.shape[0], filters.shape[0], *out),
                  lambda d, _, x, filters: [lambda: d_input(d, x, filters), lambda: d_filters(d, x, filters)])


def recomputed(body, x, parameters):
    """`body(x, *parameters)`, of which only x is kept: the way back computes it once more (Chen and others, 2016)."""
    tape = x.tape
    first = len(tape.entries)
    result = body(x, *parameters)

    def rule(d, _, x, *parameters):
        inputs = [tape.barrier(x), *parameters]
        first = len(tape.entries)
        again = body(*inputs)
        found = tape.pull(tape.entries[first:], again, d, inputs, {})
        return [lambda one=one: one for one in found]

    tape.fuse(first, result, [x, *parameters], rule)
    return result
