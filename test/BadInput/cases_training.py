"""Steps of training that files describe wrongly: `training_info`, and folders of onnxruntime's artifacts."""
import os
import shutil

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

from case import Case

HERE = os.path.dirname(os.path.abspath(__file__))
ARTIFACTS = os.path.join(HERE, "..", "Training", "Artifacts", "mlp")
GRAPH = "f (float[2, 3] x) => (float[2, 4] y) { y = MatMul(x, W) }"
STEP = """s (float[2, 4] t) => (float loss, float[3, 4] Wn, int64 Tn) { d = Sub(y, t) q = Mul(d, d) loss = ReduceMean<keepdims = 0>(q)
  xt = Transpose(x) g = MatMul(xt, d) Wn = Sub(W, g) one = Constant<value = int64 {1}>() Tn = Add(T, one) }"""
BEGIN = "i () => (float[3, 4] W0) { shape = Constant<value = int64[2] {3, 4}>() W0 = ConstantOfShape(shape) }"


def model(step=STEP, update=(("W", "Wn"), ("T", "Tn")), begin="", initialization=(), steps=1, graph=GRAPH):
    made = helper.make_model(parser.parse_graph(graph), opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    made.graph.initializer.append(numpy_helper.from_array(np.ones((3, 4), np.float32), "W"))
    for _ in range(steps):
        info = made.training_info.add()
        info.algorithm.CopyFrom(parser.parse_graph(step))
        info.algorithm.initializer.append(numpy_helper.from_array(np.int64(0), "T"))
        if begin:
            info.initialization.CopyFrom(parser.parse_graph(begin))
        for to, bindings in ((info.update_binding, update), (info.initialization_binding, initialization)):
            for key, value in bindings:
                to.add(key=key, value=value)
    return made.SerializeToString()


def pair(second, update=(("b", "bn"),), first=STEP, initializers=()):
    """A second algorithm, which changes a bias of its own making."""
    made = onnx.load_from_string(model(first))
    info = made.training_info.add()
    info.algorithm.CopyFrom(parser.parse_graph(second))
    for name in ("b", *initializers):
        info.algorithm.initializer.append(numpy_helper.from_array(np.float32(1), name))
    for key, value in update:
        info.update_binding.add(key=key, value=value)
    return made.SerializeToString()


def trained(name, content, *words, arguments=(), exit_code=1):
    return Case("training-info-" + name, ["run", "m.onnx", "--train", *arguments], {"m.onnx": content}, ["m.onnx", *words], exit_code)


def training_info():
    yield trained("binds-an-unknown-name", model(update=[("w", "Wn")]), "training_info[0].update_binding: 'w' is not an initializer of the model or of its algorithm; did you mean 'W'")
    yield trained("binds-to-no-output", model(update=[("W", "Wm")]), "'W' becomes 'Wm', which is not an output of the algorithm or the model; did you mean 'Wn'")
    yield trained("binds-twice", model(update=[("W", "Wn"), ("W", "Wn")]), "'W' is bound twice")
    yield trained("binds-nothing", model(update=[]), "training_info binds nothing")
    yield trained("bound-by-two", model(steps=2), "training_info[1].update_binding: 'W' is bound twice")
    yield trained("reads-another-algorithm", pair("s () => (float bn) { bn = Add(b, loss) }"), "training_info[1].algorithm reads 'loss', which is an algorithm's before it: each has the model and its own")
    yield trained("reads-what-it-does-not-declare", pair("s () => (float bn) { e = Sub(y, t) m = ReduceMean<keepdims = 0>(e) bn = Add(b, m) }"), "training_info[1].algorithm reads 't', which is an algorithm's before it")
    yield trained("input-of-other-type", pair("s (float[2, 5] t) => (float bn) { m = ReduceMean<keepdims = 0>(t) bn = Add(b, m) }"),
                  "training_info[1].algorithm declares the input 't' otherwise than an algorithm before it, and a step has one of it")
    yield trained("input-with-the-name-of-a-value", pair("s (float d) => (float bn) { bn = Add(b, d) }"), "training_info[1].algorithm has the input 'd', which is a value of an algorithm before it")
    yield trained("state-and-initializer-of-one-name", pair("s () => (float bn) { bn = Add(b, T) }", initializers=("T",)),
                  "training_info[1].algorithm has the initializer 'T', and so has an algorithm before it: a state needs a name of its own")
    yield trained("loss-of-the-second-alone", pair("s (float[2, 4] t) => (float loss, float bn) { e = Sub(y, t) loss = ReduceMean<keepdims = 0>(e) bn = Add(b, loss) }", first=STEP.replace("float loss, ", "")),
                  "training_info gives no loss: no output of the first algorithm or the model that is bound to nothing is one float")
    yield trained("next-of-other-shape", model(STEP.replace("Wn = Sub(W, g)", "v = Sub(W, g) Wn = Transpose(v)").replace("float[3, 4] Wn", "float[4, 3] Wn")),
                  "update_binding: 'Wn' is tensor<4x3xf32>, and 'W' is tensor<3x4xf32>", "it is defined by node")
    yield trained("next-of-other-type", model(STEP.replace("Tn = Add(T, one)", "u = Add(T, one) Tn = Cast<to = 6>(u)").replace("int64 Tn", "int32 Tn")),
                  "update_binding: 'Tn' is tensor<i32>, and 'T' is tensor<i64>")
    yield trained("without-loss", model(STEP.replace("float loss, ", "")), "training_info gives no loss")
    yield trained("loss-of-many", model(STEP.replace("loss = ReduceMean<keepdims = 0>(q)", "loss = Identity(q)").replace("float loss", "float[2, 4] loss")), "output 'loss' is not one float")
    as_input = model(graph=GRAPH.replace("x) =>", "x, float[3, 4] W) =>"))
    yield Case("training-info-state-given", ["run", "m.onnx", "--train", "--shape", "W=3x4"], {"m.onnx": as_input}, ["a shape is given for input 'W', which the model lacks"], 2)
    yield trained("unknown-op", model(STEP.replace("Sub(W, g)", "Sup(W, g)")), "(Sup, ai.onnx 18, output 'Wn')", "not supported")
    yield trained("name-of-both-graphs", model(STEP.replace("d = Sub", "y = Sub")), "defines tensor 'y' a second time")
    yield trained("initialization-with-input", model(begin=BEGIN.replace("i ()", "i (float z)")), "training_info[0].initialization has the input 'z'")
    yield trained("initialization-binds-no-output", model(begin=BEGIN, initialization=[("W", "V0")]), "'W' becomes 'V0', which is not an output of the initialization")
    yield trained("initialization-of-other-shape", model(begin=BEGIN.replace("{3, 4}", "{4, 4}").replace("[3, 4] W0", "[4, 4] W0"), initialization=[("W", "W0")]),
                  "weight 'W' is given as float[4, 4], the model has float[3, 4]")
    yield trained("initialization-of-other-type", model(begin=BEGIN, initialization=[("T", "W0")]), "'T' has int64 elements, but begins as 'W0', which has others")
    yield trained("initialization-that-reads-the-model", model(begin=BEGIN.replace("ConstantOfShape(shape)", "Neg(W)"), initialization=[("W", "W0")]), "uses tensor 'W', which nothing defines")
    yield Case("training-info-in-stages", ["run", "m.onnx", "--train", "--plan", "p.yaml"], {"m.onnx": model(), "p.yaml": b"mesh: {p: 2}\npipeline: {axis: p, microbatches: 2}\n"},
               ["the step of training_info runs in microbatches, and not in stages, of which there would be 2; the plan's 'train' makes a step that does"], 2)
    two = pair("s (float[2, 4] t) => (float bn) { e = Sub(y, t) m = ReduceMean<keepdims = 0>(e) bn = Add(b, m) }")
    yield Case("training-info-of-two-in-microbatches", ["run", "m.onnx", "--train", "--plan", "p.yaml"], {"m.onnx": two, "p.yaml": b"mesh: {p: 1}\npipeline: {axis: p, microbatches: 2}\n"},
               ["mixes samples of different microbatches: operand 1 is made of all of them", "p.yaml:2:11: note: dim 0 is the batch of 'x'"])


def folder(change=lambda path: None):
    """A copy of the good one, changed."""
    def make(path):
        shutil.copytree(ARTIFACTS, path)
        os.remove(os.path.join(path, "steps.npz"))
        change(path)
    return make


def edit(name, change):
    """Changes the bytes of a file."""
    def do(path):
        at = os.path.join(path, name)
        with open(at, "rb") as file:
            content = change(file.read())
        with open(at, "wb") as file:
            file.write(content)
    return folder(do)


def edit_model(name, change):
    def do(content):
        read = onnx.load_from_string(content)
        change(read)
        return read.SerializeToString()
    return edit(name, do)


def artifact(name, make, *words, arguments=(), exit_code=1, seconds=10):
    return Case("artifacts-" + name, ["run", "--artifacts", "a", "--dim", "batch=4", *arguments], {"a": make}, list(words), exit_code, seconds=seconds)


def optimizer_with(**attributes):
    def change(read):
        node = read.graph.node[0]
        for attribute in node.attribute:
            if attribute.name in attributes:
                attribute.i = attributes[attribute.name]
    return edit_model("optimizer_model.onnx", change)


def op_type(name):
    return edit_model("optimizer_model.onnx", lambda read: setattr(read.graph.node[0], "op_type", name))


def artifacts():
    for missing in ("training_model.onnx", "eval_model.onnx"):
        yield artifact(f"without-{missing}", folder(lambda path, missing=missing: os.remove(os.path.join(path, missing))), f"a/{missing} is missing: generate_artifacts")
    yield artifact("without-checkpoint", folder(lambda path: os.remove(os.path.join(path, "checkpoint"))), "a/checkpoint")
    yield artifact("without-optimizer", folder(lambda path: os.remove(os.path.join(path, "optimizer_model.onnx"))), "a/optimizer_model.onnx is missing, and no plan has a section 'train' with an 'optimizer'")
    yield Case("artifacts-without-folder", ["run", "--artifacts", "nowhere"], {}, ["nowhere/eval_model.onnx is missing"])
    for length in (0, 7, 40, 200, 600):
        yield artifact(f"checkpoint-of-{length}-bytes", edit("checkpoint", lambda content, length=length: content[:length]), "a/checkpoint")
    # The root, a vtable, a vector's length, a string's offset.
    for place in (0, 8, 0x20, 0x34, 0x40):
        flip = lambda content, place=place: content[:place] + bytes([content[place] ^ 0x7F]) + content[place + 1:]
        yield artifact(f"checkpoint-flipped-at-{place}", edit("checkpoint", flip), "a/checkpoint")
    yield artifact("checkpoint-of-something-else", edit("checkpoint", lambda content: b"x" * len(content)), "a/checkpoint: this is not a checkpoint of onnxruntime")
    yield artifact("optimizer-unknown", op_type("LionOptimizer"), "a/optimizer_model.onnx: node 'onnx::AdamWOptimizer", "(LionOptimizer) is none of the optimizers that are known")
    yield artifact("optimizer-of-unknown-mode", optimizer_with(adam_mode=2), "adam_mode is 2, 0 and 1 are known")
    yield artifact("without-accumulators", edit_model("training_model.onnx", lambda read: [read.graph.node.remove(node) for node in list(read.graph.node) if node.op_type == "InPlaceAccumulatorV2"]),
                   "a/training_model.onnx: trains nothing: it has no node InPlaceAccumulatorV2")
    yield artifact("trained-and-not-in-checkpoint", edit("checkpoint", lambda content: content.replace(b"fc2.weight", b"fc3.weight")), "'fc2.weight' is trained, and not in the checkpoint")
    yield artifact("weight-of-other-shape", edit_model("eval_model.onnx", lambda read: setattr(read.graph.input[2].type.tensor_type.shape.dim[0], "dim_value", 7)),
                   "weight 'fc1.weight' is given as float[6, 8], the model has float[7, 8]")
    yield Case("artifacts-and-another-model", ["run", "m.onnx", "--artifacts", "a"], {"a": folder(), "m.onnx": model()}, ["--artifacts a is about a/eval_model.onnx, and m.onnx is another model"], 2)
    yield Case("training-model-itself", ["run", "a/training_model.onnx", "--dim", "batch=4"], {"a": folder()}, ["it is of a graph that onnxruntime made for training; --artifacts takes the folder that it is in"])


def cases():
    yield from training_info()
    yield from artifacts()
