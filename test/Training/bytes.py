"""What a step sends, made from an ONNX file by a plan of a few lines, against the formulas of its form, to the byte.

    bytes.py BUILD_DIR [CASE...]

The model is a stack of layers, x = x + relu(x w + b) v, of 1 to 24 of them, with so many tokens that weights are the smaller thing to
send, or for tensor parallelism so few that activations are.
With W = (p - 1) / p for p ranks and Psi bytes of weights, a rank sends

    data parallel, ZeRO-1, ZeRO-2    2 W Psi, and 2 W 4 for the loss        (Rajbhandari et al. 2020)
    ZeRO-3, weights gathered once    2 W Psi, and 2 W 4
    ZeRO-3, gathered twice           3 W Psi, and 2 W 4; the backward reads neither biases nor the first weight
    tensor parallel                  L all_reduces of activations forward and L - 1 backward: nobody asks for the input's gradient
    a length to clip by              as data parallel; 2 W 4 more where gradients are sharded
    hybrid sharding                  weights over S ranks, the batch over S R: 2 (S-1)/S Psi, and 2 (R-1)/R Psi/S, and 2 W 4 over all
    m microbatches                   the same: gradients add up before they are reduced
    of which gradients are sharded   (m + 1) W Psi: ZeRO-2 and -3 keep a share of each sum
    tensor and sequence parallel     where tensor parallelism adds up activations they are scattered and gathered: as many bytes
    parameters of bf16               half of it; gradients in f32 (`wire`) as much as without
    norms by the batch               2 W of two vectors a norm more, and nothing backward
    p stages                         M bytes of activations to the next one and as many gradients to the one before, whatever the number of
                                     microbatches; the last one tells the others how many steps there were, 8 bytes each

and what a rank keeps of weights and of the optimizer follows from the plan as well.
"""
import json
import os
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper, parser

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

WIDTH, INNER = 32, 64


def count_tokens(form):
    return 16 if form.startswith("tensor") else 4096


def make_model(layers, tokens, norms=False, floats="float", dtype=np.float32):
    text, weights, last = "", {}, "x"
    for i in range(layers):
        add = f"BatchNormalization(h{i}, s{i}, b{i}, mean{i}, variance{i})" if norms else f"Add(h{i}, b{i})"
        text += f"h{i} = MatMul({last}, w{i}) k{i} = {add} a{i} = Relu(k{i}) o{i} = MatMul(a{i}, v{i}) x{i} = Add({last}, o{i}) "
        last = f"x{i}"
        weights |= {f"w{i}": (WIDTH, INNER), f"b{i}": (INNER,), f"v{i}": (INNER, WIDTH)} | ({f"s{i}": (INNER,)} if norms else {})
    model = parser.parse_model('<ir_version: 10, opset_import: ["": 18]> f (%s[%d, %d] x) => (%s[%d, %d] y) { %s y = Identity(%s) }' % (floats, tokens, WIDTH, floats, tokens, WIDTH, text, last))
    for name, shape in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(np.random.default_rng(len(name)).standard_normal(shape).astype(dtype), name))
    for name in (f"{word}{i}" for i in range(layers * norms) for word in ("mean", "variance")):
        model.graph.initializer.append(numpy_helper.from_array(np.ones(INNER, np.float32), name))
    return model, 4 * sum(int(np.prod(shape)) for shape in weights.values())


def data(layers, ranks, zero="", **also):
    return {"mesh": f"data: {ranks}", "rules": [("x", "[data, _]"), ("labels", "[data, _]")], "zero": zero and f"{{axis: data, stage: {zero}, min_bytes: 0}}", **also}


def hybrid(layers, ranks):
    """Two replicas of `ranks` ranks, which have a share of the weights each."""
    axes = "[[replica, shard], _]"
    return {"mesh": f"replica: 2, shard: {ranks}", "rules": [("x", axes), ("labels", axes)], "zero": "{axis: shard, stage: 3, min_bytes: 0}"}


def tensor(layers, ranks):
    rules = [("x", "[_, _]"), *((f"w{i}", "[_, model]") for i in range(layers)), *((f"v{i}", "[model, _]") for i in range(layers))]
    return {"mesh": f"model: {ranks}", "rules": rules}


def sequence(layers, ranks):
    """Tensor parallel, and between the layers the tokens are split."""
    given = tensor(layers, ranks)
    return {**given, "rules": [("x", "[model, _]"), *given["rules"][1:], *((f"x{i}", "[model, _]") for i in range(layers)), ("labels", "[model, _]")]}


def stages(layers, ranks):
    return {"mesh": f"stage: {ranks}", "rules": [("x", "[_, _]")], "pipeline": f"{{axis: stage, microbatches: {MICROBATCHES}, schedule: zb-h1}}"}


def expect(form, layers, ranks, psi):
    """(bytes sent by a rank, bytes of weights of a rank)."""
    if form == "stages":
        # A rank between others sends both ways.
        activations = 4 * count_tokens(form) * WIDTH
        return activations + 8 if ranks == 2 else 2 * activations, psi / ranks
    share, loss = (ranks - 1) / ranks, 2 * (ranks - 1) / ranks * 4
    activations = 4 * count_tokens(form) * WIDTH
    if form == "tensor":
        # Of the biases only what the ranks hold is theirs.
        return (2 * layers - 1) * 2 * share * activations, psi / ranks
    if form == "tensor, sequence":
        return (4 * layers - 1) * share * activations + loss, psi / ranks
    if form == "hybrid":
        return 2 * share * psi + 2 / 2 * psi / ranks + 2 * (2 * ranks - 1) / (2 * ranks) * 4, psi / ranks
    if form in ("zero2, microbatches", "zero3, microbatches"):
        return (MICROBATCHES + 1) * share * psi + loss, psi / ranks if form.startswith("zero3") else psi
    size, wire = (2, 4 if "wire" in form else 2) if "bf16" in form else (4, 4)
    # Each weight of a rank is gathered in its own floats, and its gradient is scattered as the wire has it.
    sent = share * psi * (2 * wire if form.startswith("data") else size + wire) / 4 + loss * (1 + (form == "zero2, clipped"))
    if form == "zero3, twice":
        sent += share * (psi - 4 * (layers * INNER + WIDTH * INNER))
    if "norms" in form:
        sent += layers * 2 * 2 * share * 4 * INNER
    return sent, psi * size / 4 / (ranks if form.startswith("zero3") else 1)


MICROBATCHES = 4
BF16, WIRE = "{parameters: bf16}", "{parameters: bf16, wire: f32}"
FORMS = {
    "data": data, "data, clipped": lambda *size: data(*size, clip="1.0"), "data, microbatches": lambda *size: data(*size, microbatches=MICROBATCHES),
    **{f"zero{stage}": lambda *size, stage=stage: data(*size, zero=stage) for stage in (1, 2, 3)},
    **{f"zero{stage}, microbatches": lambda *size, stage=stage: data(*size, zero=stage, microbatches=MICROBATCHES) for stage in (1, 2, 3)},
    "zero3, twice": lambda *size: data(*size, zero="3, gather: twice"),
    "zero2, clipped": lambda *size: data(*size, zero=2, clip="1.0"),
    **{f"zero{stage} bf16": lambda *size, stage=stage: data(*size, zero=stage, precision=BF16) for stage in (1, 3)},
    "data bf16": lambda *size: data(*size, precision=BF16), "data bf16, wire": lambda *size: data(*size, precision=WIRE),
    "zero1 bf16, wire": lambda *size: data(*size, zero=1, precision=WIRE),
    "data bf16 file": data, "data bf16 file, wire": lambda *size: data(*size, precision="{wire: f32}"), "data norms": lambda *size: data(*size, batch_norm="batch"),
    "hybrid": hybrid, "tensor": tensor, "tensor, sequence": sequence,
    "stages": stages,
}
CASES = {f"{form}, {layers} layers on {ranks}": (form, layers, ranks) for form in FORMS for layers, ranks in (((2, 2), (6, 2), (8, 4), (24, 4)) if form == "stages" else ((1, 2), (2, 4), (6, 2), (24, 4)))}


def problem(build, case, folder):
    form, layers, ranks = CASES[case]
    at = lambda suffix: os.path.join(folder, case.replace(" ", "_") + suffix)
    model, psi = make_model(layers, count_tokens(form), "norms" in form, *(("bfloat16", ml_dtypes.bfloat16) if "file" in form else ()))
    onnx.save(model, at(".onnx"))
    plan = FORMS[form](layers, ranks)
    with open(at(".yaml"), "w") as file:
        file.write(f"mesh: {{{plan['mesh']}}}\nshard:\n" + "".join(f"  - {{tensor: {name}, dims: {dims}}}\n" for name, dims in plan["rules"]))
        if "pipeline" in plan:
            file.write(f"pipeline: {plan['pipeline']}\n")
        file.write("train:\n  loss: {kind: mse, of: y}\n  optimizer: adamw\n" + "".join(f"  {key}: {value}\n" for key, value in plan.items() if value and key not in ("mesh", "rules", "pipeline")))
    # The forms of papers are those of bytes; by time, which decides steps for this machine, ranks may send more to keep and to compute less.
    done = harness.cleave(build, "shard", at(".onnx"), "--train", "--plan", at(".yaml"), "--optimize=balanced", "-o", at(".mlir"), "--report", at(".json"), "--quiet")
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr[-400:]}"
    with open(at(".json")) as file:
        report = json.load(file)
    sent = sum(total["wire_bytes_per_rank"] for total in report["totals"].values())
    want, weights = expect(form, layers, ranks, psi)
    kept = report["parameters"]["bytes_per_rank"]
    if sent != want:
        return f"a rank sends {sent} bytes, by formula {want:.0f}: {({kind: (total['count'], total['wire_bytes_per_rank']) for kind, total in report['totals'].items()})}"
    return "" if kept == weights else f"a rank has {kept} bytes of weights, by formula {weights:.0f}"


def main():
    build, names, _ = harness.arguments()
    cases = harness.select({name: name for name in CASES}, names)
    with tempfile.TemporaryDirectory() as folder:
        return harness.run(cases, lambda case: problem(build, case, folder))


if __name__ == "__main__":
    sys.exit(main())
