"""Three networks that no exporter's fixture shows: ViT with 197 tokens, Swin with shifted windows, experts with groups.

Usage: make.py [NAME...]

Written into this folder as NAME.onnx, with random weights from a fixed seed; the graphs have the ops that exporters write for
these modules (torch.roll as two slices and a concat, windows as reshape, transpose, reshape), nodes are named by module path.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
FLOAT = TensorProto.FLOAT


class Graph:
    """Nodes in order. A node is named PATH/Op, its result after it; weights are normal, divided by the root of the fan-in."""

    def __init__(self, seed):
        self.nodes, self.weights, self.random = [], {}, np.random.default_rng(seed)

    def weight(self, name, shape, scale=None, mean=0.0):
        scale = np.prod(shape[:-1]) ** -0.5 if scale is None else scale
        return self.constant(name, (mean + self.random.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, name, value):
        self.weights[name] = np.asarray(value)
        return name

    def shape(self, *sizes):
        return self.constant("_".join(map(str, ["shape", *sizes])).replace("-", "m"), np.array(sizes, np.int64))

    def op(self, op, path, *operands, **attributes):
        name = f"{path}/{op}"
        while any(node.name == name for node in self.nodes):
            name += "_"
        self.nodes.append(helper.make_node(op, list(operands), [name + "_output_0"], name=name, **attributes))
        return name + "_output_0"

    def reshape(self, path, value, *sizes):
        return self.op("Reshape", path, value, self.shape(*sizes))

    def linear(self, path, value, inner, outer):
        product = self.op("MatMul", path, value, self.weight(f"{path}.weight", [inner, outer]))
        return self.op("Add", path, product, self.weight(f"{path}.bias", [outer], 0.1))

    def norm(self, path, value, width):
        scale, bias = self.weight(f"{path}.weight", [width], 0.1, 1.0), self.weight(f"{path}.bias", [width], 0.1)
        return self.op("LayerNormalization", path, value, scale, bias, axis=-1)

    def attention(self, path, value, rows, tokens, width, heads, bias=None):
        """Over [rows, tokens, width]; `bias` changes the scores [rows, heads, tokens, tokens]."""
        each = width // heads
        parts = []
        for part, order in [("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])]:
            split = self.reshape(f"{path}/{part}", self.linear(f"{path}/{part}", value, width, width), rows, tokens, heads, each)
            parts.append(self.op("Transpose", f"{path}/{part}", split, perm=order))
        scores = self.op("MatMul", f"{path}/scores", parts[0], parts[1])
        scores = self.op("Mul", path, scores, self.constant(f"scale_{each}", np.float32(each ** -0.5)))
        scores = bias(scores) if bias else scores
        context = self.op("MatMul", f"{path}/context", self.op("Softmax", path, scores, axis=-1), parts[2])
        context = self.op("Transpose", f"{path}/context", context, perm=[0, 2, 1, 3])
        return self.linear(f"{path}/output", self.reshape(f"{path}/context", context, rows, tokens, width), width, width)

    def mlp(self, path, value, width):
        hidden = self.op("Gelu", path, self.linear(f"{path}/up", value, width, 4 * width))
        return self.linear(f"{path}/down", hidden, 4 * width, width)

    def write(self, name, inputs, output, shape):
        self.nodes[-1].output[0] = output
        info = [helper.make_tensor_value_info(key, FLOAT, sizes) for key, sizes in inputs.items()]
        graph = helper.make_graph(self.nodes, name, info, [helper.make_tensor_value_info(output, FLOAT, shape)],
                                  [numpy_helper.from_array(value, key) for key, value in self.weights.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], producer_name="make.py", ir_version=9)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, os.path.join(HERE, name + ".onnx"))


def vit197(batch=4, patch=4, side=14, width=32, heads=4, layers=2, classes=8):
    """An image classifier; 14 x 14 patches and the class token are 197 tokens (Dosovitskiy and others, 2021)."""
    graph, tokens = Graph(197), side * side + 1
    patches = graph.op("Conv", "/embed", "image", graph.weight("/embed.weight", [width, 3, patch, patch], 0.15),
                       kernel_shape=[patch, patch], strides=[patch, patch])
    rows = graph.op("Transpose", "/embed", graph.reshape("/embed", patches, batch, width, side * side), perm=[0, 2, 1])
    token = graph.op("Expand", "/embed", graph.weight("/class_token", [1, 1, width], 1.0), graph.shape(batch, 1, width))
    value = graph.op("Concat", "/embed", token, rows, axis=1)
    value = graph.op("Add", "/embed", value, graph.weight("/positions", [1, tokens, width], 0.1))
    for layer in range(layers):
        path = f"/layer.{layer}"
        normed = graph.norm(f"{path}/norm1", value, width)
        value = graph.op("Add", path, value, graph.attention(f"{path}/attention", normed, batch, tokens, width, heads))
        value = graph.op("Add", f"{path}/mlp", value, graph.mlp(f"{path}/mlp", graph.norm(f"{path}/norm2", value, width), width))
    first = graph.op("Gather", "/head", graph.norm("/norm", value, width), graph.constant("zero", np.int64(0)), axis=1)
    graph.linear("/head", first, width, classes)
    graph.write("vit197", {"image": [batch, 3, side * patch, side * patch]}, "logits", [batch, classes])


def roll(graph, path, value, shift, dim, extent):
    """torch.roll by -shift: the first `shift` go behind."""
    def cut(name, begin, end):
        return graph.op("Slice", f"{path}/{name}", value, graph.shape(begin), graph.shape(end), graph.shape(dim))

    return graph.op("Concat", path, cut("behind", shift, extent), cut("before", 0, shift), axis=dim)


def shift_mask(side, window, shift):
    """[windows, tokens, tokens]: -100 between tokens that were no neighbors before the roll (Liu and others, 2021, 3.2)."""
    edges = [slice(0, side - window), slice(side - window, side - shift), slice(side - shift, side)]
    region = np.zeros([side, side])
    for row, one in enumerate(edges):
        for column, other in enumerate(edges):
            region[one, other] = 3 * row + column
    count = side // window
    tokens = region.reshape(count, window, count, window).transpose(0, 2, 1, 3).reshape(count * count, window * window)
    return np.where(tokens[:, :, None] == tokens[:, None, :], 0, -100).astype(np.float32)


def swin_block(graph, path, value, batch, side, width, heads, window, shift):
    count, tokens = side // window, window * window
    windows = count * count
    normed = graph.norm(f"{path}/norm1", value, width)
    for dim in (1, 2) if shift else ():
        normed = roll(graph, f"{path}/roll{dim}", normed, shift, dim, side)
    cut = graph.reshape(f"{path}/windows", normed, batch, count, window, count, window, width)
    cut = graph.op("Transpose", f"{path}/windows", cut, perm=[0, 1, 3, 2, 4, 5])
    cut = graph.reshape(f"{path}/tokens", cut, batch * windows, tokens, width)

    def bias(scores):
        scores = graph.op("Add", f"{path}/positions", scores, graph.weight(f"{path}/positions", [1, heads, tokens, tokens], 0.5))
        if not shift:
            return scores
        apart = graph.reshape(f"{path}/mask_apart", scores, batch, windows, heads, tokens, tokens)
        mask = graph.constant(f"mask_{side}", shift_mask(side, window, shift)[None, :, None])
        return graph.reshape(f"{path}/mask_together", graph.op("Add", f"{path}/mask", apart, mask),
                             batch * windows, heads, tokens, tokens)

    context = graph.attention(f"{path}/attention", cut, batch * windows, tokens, width, heads, bias)
    context = graph.reshape(f"{path}/apart", context, batch, count, count, window, window, width)
    context = graph.op("Transpose", f"{path}/apart", context, perm=[0, 1, 3, 2, 4, 5])
    context = graph.reshape(f"{path}/picture", context, batch, side, side, width)
    for dim in (1, 2) if shift else ():
        context = roll(graph, f"{path}/back{dim}", context, side - shift, dim, side)
    value = graph.op("Add", path, value, context)
    return graph.op("Add", f"{path}/mlp", value, graph.mlp(f"{path}/mlp", graph.norm(f"{path}/norm2", value, width), width))


def swin(batch=2, patch=4, side=16, width=16, window=4, classes=8):
    """Two stages of a plain and a shifted block each, patches merged between (Liu and others, 2021)."""
    graph = Graph(2021)
    value = graph.op("Conv", "/embed", "image", graph.weight("/embed.weight", [width, 3, patch, patch], 0.15),
                     kernel_shape=[patch, patch], strides=[patch, patch])
    value = graph.op("Transpose", "/embed", value, perm=[0, 2, 3, 1])
    for stage, heads in enumerate([2, 4]):
        for block, shift in enumerate([0, window // 2]):
            value = swin_block(graph, f"/stage.{stage}/block.{block}", value, batch, side, width, heads, window, shift)
        if stage == 0:
            parts = []
            for row, column in [(0, 0), (1, 0), (0, 1), (1, 1)]:
                ends = [graph.shape(row, column), graph.shape(side, side), graph.shape(1, 2), graph.shape(2, 2)]
                parts.append(graph.op("Slice", f"/merge/{row}{column}", value, *ends))
            joined = graph.norm("/merge/norm", graph.op("Concat", "/merge", *parts, axis=-1), 4 * width)
            value = graph.op("MatMul", "/merge", joined, graph.weight("/merge.weight", [4 * width, 2 * width]))
            side, width = side // 2, 2 * width
    mean = graph.op("ReduceMean", "/pool", graph.norm("/norm", value, width), graph.shape(1, 2), keepdims=0)
    graph.linear("/head", mean, width, classes)
    graph.write("swin", {"image": [batch, 3, 64, 64]}, "logits", [batch, classes])


def moe_groups(groups=4, tokens=8, width=32, experts=8, chosen=2):
    """A feed-forward layer of 8 experts for 4 groups of tokens, each with its own places in the experts (Lepikhin and others,
    2021, algorithm 1): places are counted within the group, those beyond the capacity stay empty."""
    graph, places = Graph(8), tokens * chosen // experts
    normed = graph.norm("/norm", "hidden", width)
    gates = graph.op("Softmax", "/gate", graph.op("MatMul", "/gate", normed, graph.weight("/gate.weight", [width, experts])))
    graph.nodes.append(helper.make_node("TopK", [gates, graph.shape(chosen)], ["top", "which"], name="/gate/TopK"))
    total = graph.op("ReduceSum", "/gate", "top", graph.shape(-1), keepdims=1)
    share = graph.op("Div", "/gate", "top", total)
    hot = graph.op("OneHot", "/places", "which", graph.constant("experts", np.int64(experts)),
                   graph.constant("off_on", np.array([0, 1], np.float32)))  # [g, s, k, e]
    takes = graph.op("ReduceSum", "/takes", hot, graph.constant("two", np.array([2], np.int64)), keepdims=0)  # [g, s, e]
    place = graph.op("CumSum", "/places", takes, graph.constant("one", np.int64(1)), exclusive=1)
    at = graph.op("OneHot", "/at", graph.op("Cast", "/at", place, to=TensorProto.INT64), graph.constant("places", np.int64(places)),
                  "off_on")  # [g, s, e, c]; beyond the capacity all zeros
    dispatch = graph.op("Einsum", "/dispatch/mask", takes, at, equation="gse,gsec->gsec")
    weights = graph.op("Einsum", "/combine/share", share, hot, equation="gsk,gske->gse")
    combine = graph.op("Einsum", "/combine/mask", weights, dispatch, equation="gse,gsec->gsec")
    sent = graph.op("Einsum", "/dispatch", dispatch, normed, equation="gsec,gsh->egch")
    inner = graph.op("Einsum", "/up", sent, graph.weight("/up.weight", [experts, width, 2 * width], width ** -0.5), equation="egch,ehf->egcf")
    inner = graph.op("Relu", "/up", inner)
    found = graph.op("Einsum", "/down", inner, graph.weight("/down.weight", [experts, 2 * width, width], (2 * width) ** -0.5),
                     equation="egcf,efh->egch")
    graph.op("Add", "/residual", "hidden", graph.op("Einsum", "/combine", combine, found, equation="gsec,egch->gsh"))
    graph.write("moe_groups", {"hidden": [groups, tokens, width]}, "output", [groups, tokens, width])


MODELS = {"vit197": vit197, "swin": swin, "moe_groups": moe_groups}

if __name__ == "__main__":
    for model in sys.argv[1:] or MODELS:
        MODELS[model]()
