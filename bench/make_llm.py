"""Writes published language models as ONNX, without their weights' bytes: for compiling and planning.

    make_llm.py NAME OUT.onnx [--batch 1] [--seq 2048] [--layers N] [--type bf16]

NAME is a row of MODELS below. Two files appear: OUT.onnx and OUT.bin (the weights as external data, zeros: a sparse file, so that
a terabyte costs no disk). Token ids come in, logits go out.

A layer is spelled as the dynamo exporter writes these models: norms in their parts, rotary positions, keys and values repeated
for the heads that share them. Experts are stacked; each takes the tokens that score it highest, as many as come to an expert on
average (Zhou and others, Mixture-of-Experts with Expert Choice Routing, 2022): the same work as where tokens choose. GPTs have the norms
of the others: sizes are what counts here.
"""

import argparse
import math
import os
from dataclasses import dataclass

import numpy as np
from make_gpt import GraphWriter
from onnx import TensorProto, helper

TYPES = {"f32": (TensorProto.FLOAT, 4), "bf16": (TensorProto.BFLOAT16, 2)}


@dataclass
class Shape:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocabulary: int
    experts: int = 0
    top: int = 0  # experts that a token goes to
    expert_ffn: int = 0
    shared_ffn: int = 0  # of the expert that all tokens go to
    dense_layers: int = 0  # in front of those with experts
    gated: bool = True  # else two products with a tanh between, in the place of a gelu, and no rotary positions
    # Of latent attention: ranks of queries, of keys and values; dims of a head without and with positions, and of a value.
    latent: tuple = ()


# Meta, The Llama 3 Herd of Models, 2024, table 3; Llama 3.2 model card. Jiang and others, Mixtral of Experts, 2024, table 1.
# DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 4.2. Narayanan and others, Efficient Large-Scale Language Model Training
# on GPU Clusters Using Megatron-LM, 2021, table 1; its smallest is Zheng and others, Alpa, 2022, section 8.1.
# Qi and others, Zero Bubble Pipeline Parallelism, 2024, table 3 (6.2B).
MODELS = {
    "llama-1b": Shape(16, 2048, 32, 8, 8192, 128256),
    "llama-8b": Shape(32, 4096, 32, 8, 14336, 128256),
    "llama-70b": Shape(80, 8192, 64, 8, 28672, 128256),
    "llama-405b": Shape(126, 16384, 128, 8, 53248, 128256),
    "mixtral-8x7b": Shape(32, 4096, 32, 8, 14336, 32000, experts=8, top=2, expert_ffn=14336),
    "deepseek-v3": Shape(61, 7168, 128, 128, 18432, 129280, experts=256, top=8, expert_ffn=2048, shared_ffn=2048,
                         dense_layers=3, latent=(1536, 512, 128, 64, 128)),
    "gpt-2.6b": Shape(32, 2560, 32, 32, 10240, 51200, gated=False),
    "gpt-6.2b": Shape(30, 4096, 32, 32, 16384, 51200, gated=False),
    "gpt-18b": Shape(40, 6144, 48, 48, 24576, 51200, gated=False),
    "gpt-39b": Shape(48, 8192, 64, 64, 32768, 51200, gated=False),
    "gpt-76b": Shape(60, 10240, 80, 80, 40960, 51200, gated=False),
    "gpt-145b": Shape(80, 12288, 96, 96, 49152, 51200, gated=False),
    "gpt-310b": Shape(96, 16384, 128, 128, 65536, 51200, gated=False),
    "gpt-530b": Shape(105, 20480, 128, 128, 81920, 51200, gated=False),
    "gpt-1t": Shape(128, 25600, 160, 160, 102400, 51200, gated=False),
}


class TypedWriter(GraphWriter):
    """Weights of any type."""

    def __init__(self, weights_file, type_name):
        super().__init__(weights_file)
        self.type, self.element_bytes = TYPES[type_name]

    def weight(self, name, shape):
        tensor = TensorProto(name=name, dims=shape, data_type=self.type, data_location=TensorProto.EXTERNAL)
        length = math.prod(shape) * self.element_bytes
        places = (("location", self.weights_file), ("offset", self.weights_bytes), ("length", length))
        for key, value in places:
            tensor.external_data.add(key=key, value=str(value))
        self.weights_bytes += -(-length // 64) * 64
        self.initializers.append(tensor)
        return name

    def scalar(self, name, value):
        return self.constant(name, self.type, [], [value])

    def shape(self, *sizes):
        """The name of a constant list of sizes, one for equal lists."""
        name = "sizes." + "x".join(map(str, sizes))
        if all(one.name != name for one in self.initializers):
            self.constant(name, TensorProto.INT64, [len(sizes)], sizes)
        return name


class Llm:
    def __init__(self, graph, shape, batch, seq):
        self.graph, self.shape, self.batch, self.seq = graph, shape, batch, seq
        self.head = shape.latent[2] + shape.latent[3] if shape.latent else shape.hidden // shape.heads
        for name, value in {"epsilon": 1e-5, "two": 2.0, "lowest": -3e38, "scale": self.head ** -0.5}.items():
            graph.scalar(name, value)
        # A mask of positions, made as exporters make it: from numbers of rows and columns.
        positions = np.arange(seq)
        graph.constant("rows", TensorProto.INT64, [seq, 1], positions)
        graph.constant("columns", TensorProto.INT64, [1, seq], positions)
        self.mask = graph.node("/mask", "LessOrEqual", ["columns", "rows"])
        turned = shape.latent[3] if shape.latent else self.head
        for name in ("cos", "sin"):
            graph.weight(name, [seq, turned])

    def linear(self, path, x, width_in, width_out):
        return self.graph.node(path, "MatMul", [x, self.graph.weight(f"{path[1:]}.weight", [width_in, width_out])])

    def norm(self, path, x, width):
        node, graph = self.graph.node, self.graph
        square = node(f"{path}/Pow", "Pow", [x, "two"])
        mean = node(f"{path}/ReduceMean", "ReduceMean", [square, graph.shape(-1)], keepdims=1)
        root = node(f"{path}/Sqrt", "Sqrt", [node(f"{path}/Add", "Add", [mean, "epsilon"])])
        x = node(f"{path}/Mul", "Mul", [x, node(f"{path}/Reciprocal", "Reciprocal", [root])])
        return node(f"{path}/Mul_1", "Mul", [graph.weight(f"{path[1:]}.weight", [width]), x])

    def by_heads(self, path, x, heads, size):
        x = self.graph.node(f"{path}/Reshape", "Reshape", [x, self.graph.shape(self.batch, self.seq, heads, size)])
        return self.graph.node(f"{path}/Transpose", "Transpose", [x], perm=[0, 2, 1, 3])

    def rotate(self, path, x, size):
        node, shape = self.graph.node, self.graph.shape
        left = node(f"{path}/Slice", "Slice", [x, shape(0), shape(size // 2), shape(3)])
        right = node(f"{path}/Slice_1", "Slice", [x, shape(size // 2), shape(size), shape(3)])
        turned = node(f"{path}/Concat", "Concat", [node(f"{path}/Neg", "Neg", [right]), left], axis=3)
        return node(f"{path}/Add", "Add", [node(f"{path}/Mul", "Mul", [x, "cos"]),
                                           node(f"{path}/Mul_1", "Mul", [turned, "sin"])])

    def repeat(self, path, x):
        """One head of keys or values for each head of queries."""
        shape, batch, seq = self.shape, self.batch, self.seq
        group = shape.heads // shape.kv_heads
        if group == 1:
            return x
        x = self.graph.node(f"{path}/Unsqueeze", "Unsqueeze", [x, self.graph.shape(2)])
        x = self.graph.node(f"{path}/Expand", "Expand", [x, self.graph.shape(batch, shape.kv_heads, group, seq, self.head)])
        return self.graph.node(f"{path}/Reshape_1", "Reshape", [x, self.graph.shape(batch, shape.heads, seq, self.head)])

    def grouped(self, path, x):
        """Queries, keys and values by heads, of [batch, seq, hidden]."""
        shape = self.shape
        q = self.by_heads(f"{path}/q", self.linear(f"{path}/q_proj", x, shape.hidden, shape.heads * self.head), shape.heads, self.head)
        k, v = (self.by_heads(f"{path}/{one}", self.linear(f"{path}/{one}_proj", x, shape.hidden, shape.kv_heads * self.head),
                              shape.kv_heads, self.head) for one in "kv")
        if shape.gated:
            q, k = self.rotate(f"{path}/q", q, self.head), self.rotate(f"{path}/k", k, self.head)
        return q, self.repeat(f"{path}/k", k), self.repeat(f"{path}/v", v)

    def latent(self, path, x):
        """The same through low ranks (DeepSeek-V3, section 2.1.1)."""
        node, graph, heads = self.graph.node, self.graph, self.shape.heads
        q_rank, kv_rank, plain, turned, value = self.shape.latent
        hidden = self.shape.hidden

        def split(name, x, sizes, axis=3):
            return node(f"{path}/{name}", "Split", [x, graph.shape(*sizes)], outputs=2, axis=axis)

        q = self.norm(f"{path}/q_a_norm", self.linear(f"{path}/q_a_proj", x, hidden, q_rank), q_rank)
        q = self.by_heads(f"{path}/q", self.linear(f"{path}/q_b_proj", q, q_rank, heads * (plain + turned)), heads, plain + turned)
        q_plain, q_turned = split("q_split", q, (plain, turned))
        low = self.linear(f"{path}/kv_a_proj", x, hidden, kv_rank + turned)
        low, k_turned = split("kv_a_split", low, (kv_rank, turned), axis=2)
        both = self.linear(f"{path}/kv_b_proj", self.norm(f"{path}/kv_a_norm", low, kv_rank), kv_rank, heads * (plain + value))
        k_plain, v = split("kv_split", self.by_heads(f"{path}/kv", both, heads, plain + value), (plain, value))
        k_turned = self.rotate(f"{path}/k", self.by_heads(f"{path}/k_turned", k_turned, 1, turned), turned)
        k_turned = node(f"{path}/k/Expand", "Expand", [k_turned, graph.shape(self.batch, heads, self.seq, turned)])
        q = node(f"{path}/q/Concat_1", "Concat", [q_plain, self.rotate(f"{path}/q", q_turned, turned)], axis=3)
        return q, node(f"{path}/k/Concat_1", "Concat", [k_plain, k_turned], axis=3), v

    def attention(self, path, x):
        node, shape = self.graph.node, self.shape
        q, k, v = self.latent(path, x) if shape.latent else self.grouped(path, x)
        k = node(f"{path}/k/Transpose_1", "Transpose", [k], perm=[0, 1, 3, 2])
        scores = node(f"{path}/Mul", "Mul", [node(f"{path}/MatMul", "MatMul", [q, k]), "scale"])
        scores = node(f"{path}/Where", "Where", [self.mask, scores, "lowest"])
        x = node(f"{path}/MatMul_1", "MatMul", [node(f"{path}/Softmax", "Softmax", [scores], axis=-1), v])
        width = shape.heads * (shape.latent[4] if shape.latent else self.head)
        x = node(f"{path}/Transpose", "Transpose", [x], perm=[0, 2, 1, 3])
        x = node(f"{path}/Reshape", "Reshape", [x, self.graph.shape(self.batch, self.seq, width)])
        return self.linear(f"{path}/o_proj", x, width, shape.hidden)

    def silu(self, path, x):
        return self.graph.node(f"{path}/Mul", "Mul", [x, self.graph.node(f"{path}/Sigmoid", "Sigmoid", [x])])

    def feed_forward(self, path, x, width):
        hidden = self.shape.hidden
        up = self.linear(f"{path}/up_proj", x, hidden, width)
        if not self.shape.gated:
            return self.linear(f"{path}/down_proj", self.graph.node(f"{path}/Tanh", "Tanh", [up]), width, hidden)
        gate = self.silu(f"{path}/act", self.linear(f"{path}/gate_proj", x, hidden, width))
        return self.linear(f"{path}/down_proj", self.graph.node(f"{path}/Mul", "Mul", [gate, up]), width, hidden)

    def experts(self, path, x):
        """Each expert takes the tokens that score it highest, and adds what it makes of them, times the score, to theirs."""
        node, graph, shape = self.graph.node, self.graph, self.shape
        tokens, hidden, count = self.batch * self.seq, shape.hidden, shape.experts
        taken = max(1, tokens * shape.top // count)
        flat = node(f"{path}/Reshape", "Reshape", [x, graph.shape(tokens, hidden)])
        scores = node(f"{path}/Sigmoid", "Sigmoid", [self.linear(f"{path}/router", flat, hidden, count)])
        scores = node(f"{path}/Transpose", "Transpose", [scores], perm=[1, 0])
        score, place = node(f"{path}/TopK", "TopK", [scores, graph.shape(taken)], outputs=2, axis=-1)
        rows = node(f"{path}/Gather", "Gather", [flat, place], axis=0)  # [experts, taken, hidden]

        def stacked(name, x, width_in, width_out):
            return node(f"{path}/{name}", "MatMul", [x, graph.weight(f"{path[1:]}.{name}.weight", [count, width_in, width_out])])

        inner = node(f"{path}/Mul", "Mul", [self.silu(f"{path}/act", stacked("gate_proj", rows, hidden, shape.expert_ffn)),
                                            stacked("up_proj", rows, hidden, shape.expert_ffn)])
        made = stacked("down_proj", inner, shape.expert_ffn, hidden)
        made = node(f"{path}/Mul_1", "Mul", [made, node(f"{path}/Unsqueeze", "Unsqueeze", [score, graph.shape(2)])])
        made = node(f"{path}/Reshape_1", "Reshape", [made, graph.shape(count * taken, hidden)])
        place = node(f"{path}/Reshape_2", "Reshape", [place, graph.shape(count * taken, 1)])
        zeros = node(f"{path}/Sub", "Sub", [flat, flat])
        x = node(f"{path}/ScatterND", "ScatterND", [zeros, place, made], reduction="add")
        return node(f"{path}/Reshape_3", "Reshape", [x, graph.shape(self.batch, self.seq, hidden)])

    def layer(self, number, x):
        path, shape, node = f"/layers.{number}", self.shape, self.graph.node
        x = node(f"{path}/Add", "Add", [x, self.attention(f"{path}/self_attn", self.norm(f"{path}/input_norm", x, shape.hidden))])
        n = self.norm(f"{path}/post_norm", x, shape.hidden)
        if not shape.experts or number < shape.dense_layers:
            return node(f"{path}/Add_1", "Add", [x, self.feed_forward(f"{path}/mlp", n, shape.ffn)])
        made = self.experts(f"{path}/moe", n)
        if shape.shared_ffn:
            made = node(f"{path}/Add_2", "Add", [made, self.feed_forward(f"{path}/shared", n, shape.shared_ffn)])
        return node(f"{path}/Add_1", "Add", [x, made])


def make_llm(name, path, batch=1, seq=2048, layers=0, type="bf16"):
    """Writes both files, and returns the number of nodes."""
    shape, stem = MODELS[name], os.path.splitext(path)[0]
    graph = TypedWriter(os.path.basename(stem) + ".bin", type)
    model = Llm(graph, shape, batch, seq)
    x = graph.node("/embed", "Gather", [graph.weight("embed.weight", [shape.vocabulary, shape.hidden]), "ids"], axis=0)
    for number in range(layers or shape.layers):
        x = model.layer(number, x)
    x = model.linear("/lm_head", model.norm("/norm", x, shape.hidden), shape.hidden, shape.vocabulary)
    given = [helper.make_tensor_value_info("ids", TensorProto.INT64, [batch, seq])]
    made = [helper.make_tensor_value_info(x, graph.type, [batch, seq, shape.vocabulary])]
    proto = helper.make_model(helper.make_graph(graph.nodes, name, given, made, graph.initializers),
                              opset_imports=[helper.make_opsetid("", 18)], ir_version=8, producer_name="make_llm")
    with open(path, "wb") as file:
        file.write(proto.SerializeToString())
    with open(stem + ".bin", "wb") as file:
        file.truncate(graph.weights_bytes)
    return len(graph.nodes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=MODELS)
    parser.add_argument("out")
    parser.add_argument("--type", choices=TYPES, default="bf16")
    for option, default in (("batch", 1), ("seq", 2048), ("layers", 0)):
        parser.add_argument(f"--{option}", type=int, default=default)
    arguments = vars(parser.parse_args())
    print(make_llm(arguments.pop("name"), arguments.pop("out"), **arguments), "nodes")


if __name__ == "__main__":
    main()
