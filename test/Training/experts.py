"""Mixtures of experts in stages, with experts on ranks of an axis of their own: losses of twenty steps, against those of one device.

    experts.py BUILD_DIR [CASE...]

Who counts places of experts over the whole batch mixes samples, and is refused in microbatches. Two forms that do not: every expert takes every
token (`dense`), and each sample has places of its own (`places`, GShard with a group for each sample: Lepikhin et al. 2020), which tokens that
come too late do not get. Between experts that are on ranks and samples that are on the same ranks, tokens travel twice a layer.
"""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper, parser

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
import losses

BATCH, TOKENS, WIDTH, HIDDEN, EXPERTS, PLACES, LAYERS = 4, 6, 8, 12, 4, 2, 4

DENSE = """
 one{i} = Unsqueeze(x{i}, first)
 up{i} = MatMul(one{i}, w1_{i})
 act{i} = Relu(up{i})
 down{i} = MatMul(act{i}, w2_{i})
 turned{i} = Transpose <perm = [2, 0, 1]> (chosen{i})
 wide{i} = Unsqueeze(turned{i}, last)
 weighed{i} = Mul(down{i}, wide{i})
 y{i} = ReduceSum <keepdims = 0> (weighed{i}, first)"""
PER_SAMPLE = """
 queue{i} = CumSum(mask{i}, middle)
 own{i} = Mul(queue{i}, mask{i})
 place{i} = Unsqueeze(own{i}, last)
 is{i} = Equal(place{i}, places)
 sent{i} = Cast <to = 1> (is{i})
 in{i} = Einsum <equation = "bsec,bsh->ebch"> (sent{i}, x{i})
 up{i} = Einsum <equation = "ebch,ehf->ebcf"> (in{i}, w1_{i})
 act{i} = Relu(up{i})
 down{i} = Einsum <equation = "ebcf,efh->ebch"> (act{i}, w2_{i})
 weight{i} = Unsqueeze(chosen{i}, last)
 back{i} = Mul(sent{i}, weight{i})
 y{i} = Einsum <equation = "bsec,ebch->bsh"> (back{i}, down{i})"""


def save_model(folder, name, experts):
    text = f'<ir_version: 10, opset_import: ["": 18]> g (float[batch,{TOKENS},{WIDTH}] x0) => (float[batch,{TOKENS},{WIDTH}] out) {{'
    for layer in range(LAYERS):
        text += (f"\n gate{layer} = MatMul(x{layer}, wg_{layer})\n p{layer} = Softmax <axis = -1> (gate{layer})\n most{layer} = ReduceMax <keepdims = 1> (p{layer}, last)\n"
                 f" isMost{layer} = Equal(p{layer}, most{layer})\n mask{layer} = Cast <to = 1> (isMost{layer})\n chosen{layer} = Mul(p{layer}, mask{layer})")
        text += experts.format(i=layer) + f"\n x{layer + 1} = Add(x{layer}, y{layer})"
    model = parser.parse_model(text + f"\n out = Identity(x{LAYERS})\n}}")
    random = np.random.default_rng(3)
    dense = "Unsqueeze(x{i}" in experts
    arrays = {"first": np.array([0]), "last": np.array([-1]), "middle": np.array(1), "places": np.arange(1, PLACES + 1, dtype=np.float32)}
    for layer in range(LAYERS):
        shapes = {"wg": (WIDTH, EXPERTS), "w1": (EXPERTS, WIDTH, HIDDEN), "w2": (EXPERTS, HIDDEN, WIDTH)}
        for kind, shape in shapes.items():
            value = random.standard_normal(shape).astype(np.float32) * np.float32(0.3)
            arrays[f"{kind}_{layer}"] = value[:, None] if dense and kind != "wg" else value
    used = {word for node in model.graph.node for word in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(value, key) for key, value in arrays.items() if key in used)
    for node in model.graph.node:
        node.name = f"/{node.output[0]}/{node.op_type}"
    onnx.save(model, os.path.join(folder, name + ".onnx"))


ROWS = [("{x0,labels}", "[expert, _, _]")]
MODELS = {name: dict(model=name, dims={"batch": BATCH}) for name in ("dense", "places")}
WEIGHTS = {"dense": [("\"w{1,2}_*\"", "[expert, _, _, _]")], "places": [("\"w{1,2}_*\"", "[expert, _, _]")]}
CASES = {f"{name}, {words}": losses.case(model, mesh, rules, stages=stages, **train) for name, model in MODELS.items() for words, mesh, rules, stages, train in [
    ("experts on ranks", "expert: 2", WEIGHTS[name], "", {}), ("stages", "stage: 2", [], "microbatches: 2", {}),
    ("experts on ranks, stages", "stage: 2, expert: 2", WEIGHTS[name], "microbatches: 2, schedule: zb-h1", {}),
    ("samples and experts on the same ranks, stages", "stage: 2, expert: 2", WEIGHTS[name] + ROWS, "microbatches: 2", {}),
    ("samples and experts on the same ranks, four stages on two", "stage: 2, expert: 2", WEIGHTS[name] + ROWS, "microbatches: 2, schedule: zb-v, chunks: 2", losses.zero(1, "expert"))]}


class Experts(losses.Losses):
    def problem(self, name):
        wrong = super().problem(name)
        if wrong or "same ranks" not in name or not name.startswith("places"):
            return wrong
        done = harness.cleave(self.build, "run", os.path.join(self.folder, CASES[name]["model"] + ".onnx"), "--train", "--plan",
                              os.path.join(self.folder, name.replace(" ", "_") + ".yaml"))
        # A layer's tokens go to their experts and come back, and so do their gradients.
        return "" if "x all_to_all " in done.stdout else f"no all_to_all: {done.stdout[-600:]}{done.stderr[-300:]}"


def main():
    build, names, _ = harness.arguments()
    cases = harness.select({name: name for name in CASES}, names)
    with tempfile.TemporaryDirectory() as folder:
        save_model(folder, "dense", DENSE)
        save_model(folder, "places", PER_SAMPLE)
        # The models of this suite are made here; what is held against what is that of losses.py.
        losses.MODELS, losses.CASES = folder, CASES
        return harness.run(cases, Experts(build, folder).problem)


if __name__ == "__main__":
    sys.exit(main())
