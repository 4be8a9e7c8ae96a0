"""What is asked wrongly of a step of training: the errors of `train`, of its data, its checkpoints and its program, one for each thing that users get wrong.

Their numbers are those of the list that training was designed with. A program
that is run without data (23), and a disk that not all ranks see (25), are in test/Runtime/train.py.
"""
import io

import numpy as np
import onnx
from onnx import numpy_helper, parser

from case import Case

RANDOM = np.random.default_rng(5)
LOSS = "loss: {kind: cross_entropy, of: logits}"
MSE = "loss: {kind: mse, of: y}, optimizer: sgd"


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def made(text, **weights):
    model = parser.parse_model('<ir_version: 10, opset_import: ["": 18]> ' + text)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items())
    return model.SerializeToString()


def arrays(**data):
    file = io.BytesIO()
    np.savez(file, **data)
    return file.getvalue()


def array(value):
    file = io.BytesIO()
    np.save(file, value)
    return file.getvalue()


def safetensors(**tensors):
    """A file of f32, by its specification."""
    header, data = [], b""
    for name, value in tensors.items():
        header.append(f'"{name}": {{"dtype": "F32", "shape": {list(value.shape)}, "data_offsets": [{len(data)}, {len(data) + value.nbytes}]}}')
        data += value.tobytes()
    text = ("{" + ", ".join(header) + "}").encode()
    return len(text).to_bytes(8, "little") + text + data


LINEAR = made("f (float[4, 8] x) => (float[4, 3] logits) { h = MatMul(x, w) logits = Add(h, b) }", w=floats(8, 3), b=floats(3))
UNREAD = made("f (float[4, 8] x) => (float[4, 3] logits) { h = MatMul(x, w) logits = Add(h, b) }", w=floats(8, 3), b=floats(3), unread=floats(8, 3))
INTEGERS = made("f (float[4, 8] x) => (float[4, 3] logits) { v = Cast<to = 1>(w) h = MatMul(x, v) logits = Add(h, b) }", w=RANDOM.integers(-3, 3, (8, 3), np.int8), b=floats(3))
CUBE = made("f (float[4, 8] x) => (float[4, 5, 5] logits) { h = MatMul(x, w) logits = Reshape(h, shape) }", w=floats(8, 25), shape=np.array([4, 5, 5]))
CHOICE = made("f (float[4, 8] x) => (float[4, 3] logits) { h = MatMul(x, w) a = ArgMax<axis = 1, keepdims = 1>(h) c = Cast<to = 1>(a) d = MatMul(c, v) logits = Add(d, b) }",
              w=floats(8, 3), v=floats(1, 3), b=floats(3))
LOOP = made("""f (float[4, 8] x) => (float[4, 8] y) { h = MatMul(x, w)
  y = Loop(n, yes, h) <body = body (int64 i, bool c, float[4, 8] a) => (bool goes, float[4, 8] o) { o = Mul(a, a) s = ReduceSum<keepdims = 0>(o) goes = Less(s, most) }> }""",
            w=floats(8, 8), n=np.array(1000000), yes=np.array(True), most=np.float32(100))
NORM = made("f (float[4, 3, 4, 4] x) => (float[4, 3, 4, 4] y) { h = Conv(x, k) y = BatchNormalization(h, s, b, mean, var) }", k=floats(3, 3, 1, 1), s=floats(3), b=floats(3), mean=floats(3),
            var=np.ones(3, np.float32))
CHAIN = made("f (float[4, 8] x) => (float[4, 8] y) { a = MatMul(x, w0) c = Tanh(a) d = MatMul(c, w1) y = Tanh(d) }", w0=floats(8, 8), w1=floats(8, 8))
DATA = {"x": floats(8, 8), "labels": RANDOM.integers(0, 3, 8)}


def step(number, train, *words, model=LINEAR, plan="", command="run", more=(), files=None, exit_code=2):
    """`train` is the section; `plan` is the plan's text next to it."""
    with_plan = ["--plan", "p.yaml"] if plan else []
    return Case(f"step-{number}", [command, "m.onnx", f"--train={{{train}}}", *with_plan, *more], {"m.onnx": model, **({"p.yaml": plan.encode()} if plan else {}), **(files or {})}, list(words), exit_code)


def in_stages(schedule):
    return f"mesh: {{p: 2}}\npipeline: {{axis: p, microbatches: 2, schedule: {schedule}}}\n"


def trained(number, *words, data=None, optimizer="sgd", more=("--steps", "3"), files=None, exit_code=1):
    return step(number, f"{LOSS}, optimizer: {optimizer}", *words, command="train", more=["--data", "d.npz", *more], files={"d.npz": arrays(**(data or DATA)), **(files or {})}, exit_code=exit_code)


def cases():
    yield step("01-without-loss", "optimizer: sgd", "'train' needs a loss: 'loss: {kind: cross_entropy, of: OUTPUT}', or 'loss: {output: NAME}' where the model has one")
    yield step("02-loss-of-nothing", "loss: {kind: cross_entropy, of: logit}, optimizer: sgd", "--train:1:", "the loss is of 'logit', which the model does not compute; did you mean 'logits'?")
    yield step("03-loss-of-many", "loss: {output: logits}, optimizer: sgd", "'logits' is 'tensor<4x3xf32>': a loss is one number; 'kind: mse' and others make one")
    yield step("04-two-dims-of-classes", f"{LOSS}, optimizer: sgd", "'logits' is 'tensor<4x5x5xf32>', whose classes may be along dim 1 or 2: say 'classes: 2'", model=CUBE)
    yield step("05-all-frozen", f'{LOSS}, optimizer: sgd, freeze: "*"', "'freeze' leaves nothing to train: the model has 2 parameters")
    # Nothing flows through a choice, which is no mistake in itself: other weights learn.
    yield step("06-through-a-choice", f"{LOSS}, optimizer: sgd", "warning: 'w' has a gradient of zeros: the loss depends on it in steps alone", model=CHOICE, exit_code=0)
    yield step("07-loop-that-data-ends", MSE, "'nn.loop' has no gradient", "a trip count that is known at import is unrolled", "'w' needs its gradient: freeze it, or take the loss of another value", model=LOOP, exit_code=1)
    yield step("08-integers", f"{LOSS}, optimizer: sgd, only: [w, b]", "--train:1:", "'only' picks 'w', which is 'tensor<8x3xi8>': integers are not trained; their scales may be", model=INTEGERS)
    yield step("08-integers-in-a-group", f'{LOSS}, optimizer: sgd, groups: [{{tensors: "w*", rate: 2}}]', "'groups' picks 'w', which is 'tensor<8x3xi8>'", model=INTEGERS)
    yield step("09-norm-in-stages", f"{MSE}, batch_norm: batch", "'batch_norm: batch' takes statistics of the whole batch, which no microbatch has: 'frozen' keeps the file's, or no 'pipeline'", model=NORM, plan=in_stages("1f1b"))
    yield step("10-zero-over-nothing", f"{LOSS}, optimizer: sgd, zero: {{axis: modell, stage: 1}}", "'zero' is over \"modell\", which is not an axis of the mesh; did you mean 'model'?", plan="mesh: {data: 2, model: 2}\n")
    yield step("11-zero-4", f"{LOSS}, optimizer: sgd, zero: {{axis: data, stage: 4}}", "'zero' has the stages 1, 2 and 3, got 4", plan="mesh: {data: 2}\n")
    yield step("12-rate-without-end", f"{LOSS}, optimizer: sgd, rate: {{kind: cosine, peak: 0.1}}", "rate 'cosine' needs 'steps'")
    yield step("13-group-of-nothing", f"{LOSS}, optimizer: sgd, groups: [{{tensors: w9, rate: 2}}]", "'groups' picks 'w9', which no parameter that the model reads is called; did you mean 'w'?")
    yield step("13-frozen-that-nothing-reads", f"{LOSS}, optimizer: sgd, freeze: unread", "--train:1:", "'freeze' picks 'unread', which no parameter that the model reads is called", model=UNREAD)
    yield step("13-group-of-no-effect", f"{LOSS}, optimizer: sgd, groups: [{{tensors: w}}]", "--train:1:", "a group says 'decay' or 'rate' of its tensors")
    yield step("05-only-of-none", f"{LOSS}, optimizer: sgd, only: []", "--train:1:", "'only' leaves nothing to train: it has no patterns")
    yield step("12-floor-above-peak", f"{LOSS}, optimizer: sgd, rate: {{kind: linear, peak: 0.1, floor: 0.2, steps: 9}}", "a rate falls from 'peak' to 'floor', which is above it")
    yield step("01-loss-of-no-weight", "loss: {kind: cross_entropy, of: logits, weight: 0}, optimizer: sgd", "--train:1:", "a 'weight' of 0 leaves nothing to minimize")
    yield step("05-clipped-to-nothing", f"{LOSS}, optimizer: sgd, clip: 0", "--train:1:", "clipped to a length of 0 no gradient is left")
    for name in ("w", "h", "logits"):
        yield step(f"17-labels-called-{name}", f"loss: {{kind: cross_entropy, of: logits, labels: {name}}}, optimizer: sgd", "--train:1:",
                   f"labels '{name}' are to be an input of the step, and the model has a tensor of that name")
    yield step("17-labels-called-as-a-state", "loss: {kind: cross_entropy, of: logits, labels: \"m(w)\"}, optimizer: adam", "--train:1:",
               "has two arguments 'm(w)': a tensor of the model, or labels, have the name of a state of the step")
    yield step("16-array-twice", f"{LOSS}, optimizer: sgd", "d has 'x' twice: in .npz files, and as x.npy", command="train", more=["--data", "d", "--steps", "1"],
               files={"d/a.npz": arrays(**DATA), "d/x.npy": array(DATA["x"])}, exit_code=1)
    yield step("14-rule-of-no-state", f"{LOSS}, optimizer: adam", "p.yaml:2:", "there is no tensor 'm(w9)'; did you mean 'm(w)'", plan="mesh: {data: 2}\nshard: [{tensor: m(w9), dims: [data, _]}]\n", exit_code=1)
    yield trained("15-without-labels", "the data has no 'labels'; it has 'x', 'y': name the array so, or say 'labels: y'", data={"x": DATA["x"], "y": DATA["labels"]})
    yield trained("16-of-two-lengths", "'x' has 8 samples, 'labels' 7", data={"x": DATA["x"], "labels": DATA["labels"][:7]})
    yield trained("16-less-than-a-batch", "d.npz has 3 samples, a batch is 4", data={name: array[:3] for name, array in DATA.items()})
    yield trained("17-labels-of-floats", "'labels' is f32[8], expected i32 or i64 [8]", data={"x": DATA["x"], "labels": floats(8)})
    yield trained("17-label-of-no-class", "label 5 of sample 4 is not one of 3 classes; 'ignore: 5' passes over it", data={"x": DATA["x"], "labels": np.array([0, 1, 2, 1, 5, 0, 0, 0])})
    yield step("18-schedule-without-gradients", MSE, "schedule \"forward\" has no gradients: a step of training takes gpipe, 1f1b", model=CHAIN, plan=in_stages("forward"), exit_code=1)
    yield Case("step-18-schedule-that-needs-gradients", ["run", "m.onnx", "--plan", "p.yaml"], {"m.onnx": CHAIN, "p.yaml": in_stages("zb-h1").encode()}, ["schedule \"zb-h1\" needs gradients", "'cleave train', or --train"])
    yield step("19-without-a-flush", MSE, "schedule \"pipedream\" changes weights without a flush: --steps-per-call 2 or more", model=CHAIN, plan=in_stages("pipedream"), exit_code=1)
    yield step("20-gradients-that-vanish", f"{LOSS}, optimizer: sgd, precision: {{parameters: f16, scale: none}}", "warning: precision f16 with 'scale: none': gradients below 6e-8 vanish", exit_code=0)
    yield step("21-too-large", "loss: {kind: mse, of: y}, optimizer: adam, recompute: auto, memory_limit: 2kB", "no choice of what to compute again fits 2000 B on a rank: the least is", model=CHAIN, command="shard",
               more=["--mesh", "one=1", "--emit", "planned", "-o", "o.mlir"])
    yield trained("22-weights-of-other-shapes", 's.safetensors: "w" is f32[8, 5], the model has f32[8, 3]', more=["--steps", "1", "--weights-from", "s.safetensors"],
                  files={"s.safetensors": safetensors(w=floats(8, 5), b=floats(3))})
    yield trained("22-without-states", 's.safetensors: has no "', "--weights-from begins with new states", optimizer="adam", more=["--steps", "1", "--resume", "s.safetensors"],
                  files={"s.safetensors": safetensors(w=floats(8, 3), b=floats(3))})
    yield trained("24-not-a-number", "rank 0: loss is NaN at step 1; no state is saved; --find-nan names the command", data={"x": np.full((8, 8), np.nan, np.float32), "labels": DATA["labels"]},
                  more=["--steps", "2", "--save", "s.safetensors"], exit_code=4)
    yield trained("25-where-nobody-can-write", "cannot write nowhere/s.safetensors: No such file or directory", more=["--steps", "1000000000", "--save", "nowhere/s.safetensors"])
    yield trained("25-over-a-folder", "cannot write d: Is a directory", more=["--steps", "1000000000", "--save", "d"], files={"d/x": b""})
