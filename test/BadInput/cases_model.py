"""Models that cannot be read or imported."""
import os

import numpy as np
from onnx import TensorProto, helper

from case import Case, model, relu, tensor, value


def inspect(name, content, *words, files=None):
    return Case(name, ["inspect", "m.onnx"], {"m.onnx": content, **(files or {})}, ["m.onnx", *words])


def imports(name, content, *words):
    """What inspect still has something to say on."""
    return Case(name, ["import", "m.onnx"], {"m.onnx": content}, ["m.onnx", *words])


def node(op_type, inputs=("x",), outputs=("y",), **attributes):
    return helper.make_node(op_type, list(inputs), list(outputs), name="/n", **attributes)


def single(name, made, *words, shape=(4, 8), extra=(), opset=18, kind=TensorProto.FLOAT):
    """A model of one node `made`, with `extra` initializers."""
    content = model([made], [value("x", shape, kind)], [value("y", None, kind)], extra, opset)
    return inspect(name, content, *words)


def files():
    good = relu()
    yield inspect("empty-file", b"")
    yield inspect("truncated-file", good[:len(good) // 2])
    yield inspect("truncated-by-one", good[:-1])
    yield inspect("random-bytes", np.random.default_rng(0).bytes(4096))
    yield inspect("text-file", b"this is no model\n" * 10)
    yield inspect("png-file", b"\x89PNG\r\n\x1a\n" + bytes(64))
    yield Case("missing-file", ["inspect", "nowhere.onnx"], {}, ["nowhere.onnx"])
    yield Case("folder-as-model", ["inspect", "."], {}, [])
    yield inspect("no-graph", helper.make_model(helper.make_graph([], "g", [], [])).SerializeToString()[:4])
    yield inspect("length-past-the-end", b"\x08\x09\x3a\xff\xff\xff\xff\x0f")
    yield inspect("endless-varint", b"\x08" + b"\xff" * 20)


def graphs():
    yield single("unknown-op", node("Frobnicate"), "/n", "Frobnicate")
    yield single("unknown-domain", helper.make_node("Relu", ["x"], ["y"], name="/n", domain="com.example"), "/n",
                 "com.example")
    yield single("undefined-tensor", node("Add", ("x", "nowhere")), "nowhere")
    yield inspect("duplicate-tensor", model([node("Relu"), node("Abs")], [value("x", (4,))], [value("y", (4,))]), "y")
    yield inspect("cycle", model([node("Add", ("x", "b"), ("a",)), node("Relu", ("a",), ("b",))], [value("x", (4,))],
                                 [value("b", (4,))]), "b")
    yield inspect("undefined-output", model([node("Relu")], [value("x", (4,))], [value("z", (4,))]), "z")
    yield imports("symbolic-dim", relu(("batch", 8)), "batch", "--dim")
    yield imports("negative-dim", relu((-4, 8)), "'x'", "--shape x=..")
    yield imports("dims-without-a-name", relu(("?", "")), "'x'", "--shape x=..")
    yield inspect("overflowing-dims", relu((1 << 40, 1 << 40)))
    yield inspect("no-opset", model([node("Relu")], [value("x", (4,))], [value("y", (4,))], opset=0))
    yield inspect("future-opset", model([node("Relu")], [value("x", (4,))], [value("y", (4,))], opset=99), "99")
    yield single("too-many-inputs", node("Relu", ("x", "x")), "/n")
    yield single("too-few-inputs", node("Add", ("x",)), "/n")
    loop = helper.make_function("local", "F", ["x"], ["y"], [helper.make_node("F", ["x"], ["y"], domain="local")],
                                [helper.make_opsetid("local", 1), helper.make_opsetid("", 18)])
    proto = helper.make_model(
        helper.make_graph([helper.make_node("F", ["x"], ["y"], name="/n", domain="local")], "g", [value("x", (4,))],
                          [value("y", (4,))]),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("local", 1)], functions=[loop], ir_version=9)
    yield inspect("recursive-function", proto.SerializeToString(), "F")


def attributes():
    i64 = lambda *numbers: np.array(numbers, np.int64)
    yield single("wrong-permutation", node("Transpose", perm=[0, 0]), "/n")
    yield single("permutation-too-long", node("Transpose", perm=[0, 1, 2]), "/n")
    yield single("axis-out-of-range", node("Softmax", axis=5), "/n", "5")
    yield single("attribute-of-wrong-type", node("Softmax", axis="one"), "/n", "axis")
    twice = node("Softmax", axis=1)
    twice.attribute.add().CopyFrom(twice.attribute[0])
    yield single("attribute-twice", twice, "/n", "axis", "twice")
    yield single("attribute-missing", node("Cast"), "/n", "to")
    yield single("wrong-mode", node("Pad", ("x", "p"), mode="mirror"), "/n", "mirror",
                 extra=[tensor("p", i64(1, 1, 1, 1))])
    yield single("pads-overflow", node("Pad", ("x", "p")), "/n",
                 extra=[tensor("p", i64((1 << 63) - 1, 0, (1 << 63) - 1, 0))])
    yield single("scale-is-no-number", node("Resize", ("x", "", "s")), "/n", "nan", shape=(1, 1, 4, 4),
                 extra=[tensor("s", np.array([1, 1, np.nan, 2], np.float32))])
    yield single("groups-do-not-divide", node("Conv", ("x", "w"), group=3), "/n", "3", shape=(1, 4, 8, 8),
                 extra=[tensor("w", np.ones((4, 1, 3, 3), np.float32))])
    yield single("heads-do-not-divide", node("Attention", ("x", "x", "x"), q_num_heads=3, kv_num_heads=3), "/n", "3",
                 shape=(1, 4, 8), opset=23)
    yield single("wrong-reshape", node("Reshape", ("x", "s")), "/n", extra=[tensor("s", i64(5, 5))])
    yield single("two-inferred-dims", node("Reshape", ("x", "s")), "/n", extra=[tensor("s", i64(-1, -1))])
    yield single("wrong-split", node("Split", ("x", "s"), ("y", "z"), axis=1), "/n", extra=[tensor("s", i64(5, 5))])
    yield single("shapes-do-not-broadcast", node("Add", ("x", "c")), "/n", extra=[tensor("c", np.ones(3, np.float32))])
    yield single("inner-dims-differ", node("MatMul", ("x", "c")), "/n",
                 extra=[tensor("c", np.ones((3, 2), np.float32))])
    yield single("element-types-differ", node("Add", ("x", "c")), "/n", extra=[tensor("c", np.ones(8, np.int64))])
    yield single("zero-stride", node("Conv", ("x", "w"), strides=[0, 0]), "/n", shape=(1, 3, 8, 8),
                 extra=[tensor("w", np.ones((4, 3, 3, 3), np.float32))])
    yield single("negative-pads", node("Conv", ("x", "w"), pads=[-9, 0, 0, 0]), "/n", shape=(1, 3, 8, 8),
                 extra=[tensor("w", np.ones((4, 3, 3, 3), np.float32))])
    yield single("kernel-too-large", node("MaxPool", kernel_shape=[9, 9]), "/n", shape=(1, 3, 4, 4))
    yield single("channels-differ", node("Conv", ("x", "w")), "/n", shape=(1, 3, 8, 8),
                 extra=[tensor("w", np.ones((4, 5, 3, 3), np.float32))])
    yield single("wrong-rank", node("Conv", ("x", "w")), "/n", extra=[tensor("w", np.ones((4, 3), np.float32))])
    yield single("wrong-equation", node("Einsum", ("x", "x"), equation="ab,bc"), "/n")
    yield single("slice-step-zero", node("Slice", ("x", "s", "e", "a", "t")), "/n",
                 extra=[tensor("s", i64(0)), tensor("e", i64(2)), tensor("a", i64(0)), tensor("t", i64(0))])
    yield single("concat-of-other-shapes", node("Concat", ("x", "c"), axis=0), "/n",
                 extra=[tensor("c", np.ones((2, 3), np.float32))])
    yield single("squeeze-of-a-long-dim", node("Squeeze", ("x", "a")), "/n", extra=[tensor("a", i64(0))])
    yield single("gather-axis", node("Gather", ("x", "i"), axis=7), "/n", extra=[tensor("i", i64(0))])
    yield single("top-k-too-large", node("TopK", ("x", "k"), ("y", "i")), "/n", extra=[tensor("k", i64(99))])


def amplification():
    """Small files that ask for much."""
    calls = [helper.make_function("local", f"F{i}", ["x"], ["y"],
                                  [helper.make_node(f"F{i - 1}", ["x"], ["a"], domain="local"),
                                   helper.make_node(f"F{i - 1}", ["a"], ["y"], domain="local")] if i else
                                  [helper.make_node("Relu", ["x"], ["y"])],
                                  [helper.make_opsetid("local", 1), helper.make_opsetid("", 18)]) for i in range(40)]
    bomb = helper.make_model(
        helper.make_graph([helper.make_node("F39", ["x"], ["y"], name="/n", domain="local")], "g", [value("x", (4,))],
                          [value("y", (4,))]),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("local", 1)], functions=calls, ir_version=9)
    yield inspect("functions-that-double", bomb.SerializeToString(), "nested")
    doubling = [helper.make_node("Concat", [f"t{i}", f"t{i}"], [f"t{i + 1}"], axis=0, name=f"/c{i}") for i in range(70)]
    yield inspect("tensors-that-double", model(doubling, [value("t0", (4,))], [value("t70", None)]), "/c3")
    huge = np.array([1 << 20, 1 << 20, 1 << 10], np.int64)
    yield inspect("petabytes-of-zeros",
                  model([node("ConstantOfShape", ("s",), ("z",)), node("NonZero", ("z",), ("y",))], [],
                        [value("y", None, TensorProto.INT64)], [tensor("s", huge)]), "/n")
    yield inspect("endless-range",
                  model([node("Range", ("a", "b", "c"), ("r",)), node("Reshape", ("x", "r"), ("y",))],
                        [value("x", (4,))], [value("y", None)],
                        [tensor(n, np.int64(v)) for n, v in (("a", 0), ("b", 1 << 60), ("c", 1))]), "/n")


def loops():
    """Control flow without an end, or of all too much."""
    def body(nodes, outputs=("o",), extra=()):
        inputs = [value("i", (), TensorProto.INT64), value("ci", (), TensorProto.BOOL), value("s", None)]
        return helper.make_graph([helper.make_node("Identity", ["ci"], ["co"]), *nodes, *extra], "b", inputs,
                                 [value("co", (), TensorProto.BOOL), *(value(name, None) for name in outputs)])

    def loop(graph, trips="", source="x", target="y", name="/n"):
        return helper.make_node("Loop", [trips, "c", source], [target], name=name, body=graph)

    def whole(made, *words, trips=10, functions=(), **options):
        constants = [tensor("c", np.bool_(True)), tensor("t", np.int64(trips))]
        graph = helper.make_graph([made], "g", [value("x", (4,))], [value("y", None)], constants)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("local", 1)],
                                  functions=list(functions), ir_version=9)
        return inspect(options["name"], proto.SerializeToString(), *words)

    step = helper.make_node("Neg", ["s"], ["o"])
    yield whole(loop(body([step])), "/n", "never ends", name="endless-loop")
    yield whole(loop(body([step]), "t"), "/n", "never ends", trips=(1 << 63) - 1, name="loop-of-all-numbers")
    counted = helper.make_node("Cast", ["i"], ["k"], to=TensorProto.FLOAT)
    far = [counted, helper.make_node("Add", ["s", "k"], ["o"])]
    yield whole(loop(body(far)), "/n", "never ends", name="endless-loop-that-counts")
    empty = helper.make_graph([], "b", [value("i", (), TensorProto.INT64), value("ci", (), TensorProto.BOOL)],
                              [value("ci", (), TensorProto.BOOL)])
    yield whole(helper.make_node("Loop", ["", "c"], [], name="/n", body=empty), name="endless-loop-of-nothing")
    doubling = [helper.make_node("Concat", ["s", "s"], ["o"], axis=0, name="/twice")]
    yield whole(loop(body(doubling), "t"), "/twice", "too large", trips=1000, name="loop-that-doubles")
    yield whole(loop(body(doubling), "t"), "/n", "changes its type, from tensor<4xf32> to tensor<8xf32>", trips=10 ** 6, name="loop-that-is-not-unrolled-doubles")
    nested = body(doubling)
    for depth in range(10):
        nested = body([helper.make_node("Loop", ["t", "ci", "s"], ["o"], name=f"/l{depth}", body=nested)])
    yield whole(loop(nested, "t"), "/l0", "too large", name="loops-in-ten-loops")
    call = helper.make_node("F", ["s"], ["o"], domain="local", name="/call")
    inner = helper.make_node("Loop", ["", "c", "x"], ["y"], name="/inner", body=body([call]))
    recursive = helper.make_function("local", "F", ["x"], ["y"], [
        helper.make_node("Constant", [], ["c"], value=tensor("", np.bool_(True))), inner],
                                     [helper.make_opsetid("local", 1), helper.make_opsetid("", 18)])
    yield whole(helper.make_node("F", ["x"], ["y"], domain="local", name="/n"), "calls itself", functions=[recursive],
                name="function-that-calls-itself-in-a-loop")
    changing = helper.make_graph([helper.make_node("ReduceSum", ["s"], ["r"], keepdims=0),
                                  helper.make_node("Less", ["r", "r"], ["co"]), *doubling], "b",
                                 [value("i", (), TensorProto.INT64), value("ci", (), TensorProto.BOOL), value("s", None)],
                                 [value("co", (), TensorProto.BOOL), value("o", None)])
    yield whole(loop(changing, "t"), "/n", "different types", name="loop-of-data-that-changes-shape")
    sequence = helper.make_graph([helper.make_node("Identity", ["ci"], ["co"]), helper.make_node("SequenceInsert", ["s", "x"], ["o"])],
                                 "b", [value("i", (), TensorProto.INT64), value("ci", (), TensorProto.BOOL),
                                       helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)],
                                 [value("co", (), TensorProto.BOOL), helper.make_tensor_sequence_value_info("o", TensorProto.FLOAT, None)])
    start = helper.make_node("SequenceEmpty", [], ["e"])
    graph = helper.make_graph([start, loop(sequence, source="e", target="z"), helper.make_node("ConcatFromSequence", ["z"], ["y"], axis=0)],
                              "g", [value("x", (4,))], [value("y", None)], [tensor("c", np.bool_(True))])
    yield inspect("sequence-without-end", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)],
                                                            ir_version=9).SerializeToString(), "/n", "only a loop that is unrolled can carry")
    zero = lambda *shape: tensor("w" if len(shape) == 3 and shape[1] == 4 else "r", np.zeros(shape, np.float32))
    yield inspect("recurrent-net-of-other-gates", model([node("LSTM", ("x", "w", "r"))], [value("x", (5, 2, 3))], [value("y", None)],
                                                        [zero(1, 4, 3), zero(1, 5, 4)]), "/n", "[1, 16, 4]")


def external():
    def with_data(name, words, fields, files=None):
        weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[8], data_location=TensorProto.EXTERNAL)
        for key, text in fields.items():
            weight.external_data.add(key=key, value=text)
        content = model([node("Add", ("x", "w"))], [value("x", (4, 8))], [value("y", (4, 8))], [weight])
        return inspect(name, content, "w", *words, files=files)

    yield with_data("external-absent", ["w.bin"], {"location": "w.bin"})
    yield with_data("external-escapes", [], {"location": "../w.bin"})
    yield with_data("external-absolute", [], {"location": "/etc/passwd"})
    yield with_data("external-short", ["w.bin"], {"location": "w.bin", "length": "32"}, {"w.bin": bytes(16)})
    yield with_data("external-overflow", [], {"location": "w.bin", "offset": str((1 << 63) - 8), "length": "32"},
                    {"w.bin": bytes(64)})
    yield with_data("external-wrong-length", [], {"location": "w.bin", "length": "16"}, {"w.bin": bytes(64)})
    yield with_data("external-negative-offset", [], {"location": "w.bin", "offset": "-4"}, {"w.bin": bytes(64)})
    yield with_data("external-symlink", [], {"location": "w.bin"},
                    {"real.bin": bytes(64), "w.bin": lambda path: os.symlink("real.bin", path)})
    yield with_data("external-without-location", [], {"length": "32"})
    short = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[8], raw_data=bytes(12))
    yield inspect("data-shorter-than-its-shape",
                  model([node("Add", ("x", "w"))], [value("x", (4, 8))], [value("y", (4, 8))], [short]), "w")


def cases():
    for group in (files, graphs, attributes, amplification, loops, external):
        yield from group()
    # Not bad at all: 20,000 ops in a chain must not exhaust the stack.
    names = ["x"] + [f"t{i}" for i in range(20000)]
    chain = [helper.make_node("Neg", [a], [b], name=f"/{b}") for a, b in zip(names, names[1:])]
    content = model(chain, [value("x", (2,))], [value(names[-1], (2,))])
    yield Case("chain-of-20000-ops", ["inspect", "m.onnx", "--quiet"], {"m.onnx": content}, exit_code=0)
