"""States of compiled programs against onnxruntime, whose outputs are passed back by hand, call by call.

Usage: states.py BUILD_DIR [NAME...]

Each case is a small model with inputs that are next outputs, made here, or the decoder gpt2_kv. Every output of every call
is compared, states among them, on 1 rank and, cut as the case says, on 2 or 4, and as a pipeline; and it is checked which states are copied at the
end of a call, and that states of a pipeline that cannot stay in one rank, or that all microbatches would update, are refused. Under mpirun, where there is one, the decoder is run by cleave-run, which knows the last call's outputs.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
sys.path.insert(0, os.path.join(harness.ROOT, "examples"))
from runtime import Program  # noqa: E402

CALLS = 5
FLOAT, HALF, INT = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n"]
DECODER = os.path.join(harness.ROOT, "test", "Models", "gpt2_kv.onnx")


class Case:
    """A model whose nodes are texts, `y = Add(x, old) axis=1`; how it is cut, by words or by a plan's text, and how many of its states are copied.
    `pipeline`: what a plan says of two stages and two microbatches; `refused`: why that cannot be."""

    def __init__(self, nodes, inputs, outputs, states, cut=(), copied=0, kind=FLOAT, constants=(), pipeline=None, refused=""):
        self.nodes, self.inputs, self.outputs, self.states, self.cut = nodes, inputs, outputs, states, cut
        self.copied, self.kind, self.constants = copied, kind, dict(constants)
        self.pipeline, self.refused = pipeline, refused

    def write(self, path):
        tensors = [[helper.make_tensor_value_info(name, self.kind, shape) for name, shape in part.items()]
                   for part in (self.inputs, self.outputs)]
        initializers = [helper.make_tensor(name, INT if np.issubdtype(value.dtype, np.integer) else FLOAT, value.shape, value.flatten())
                        for name, value in self.constants.items()]
        graph = helper.make_graph([parse(text) for text in self.nodes], "states", *tensors, initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        with open(path, "wb") as file:
            file.write(model.SerializeToString())

    def draw(self, random):
        """Inputs that are no states; integers are small."""
        kind = {FLOAT: np.float32, HALF: np.float16, INT: np.int64}[self.kind]
        return {name: (random.standard_normal(shape) * (1 if self.kind != INT else 9)).astype(kind)
                for name, shape in self.inputs.items() if name not in self.states}


def parse(text):
    results, op, operands, attributes = re.fullmatch(r"(.*) = (\w+)\((.*)\)(.*)", text).groups()
    words = dict(word.split("=") for word in attributes.split())
    return helper.make_node(op, [word.strip() for word in operands.split(",")], results.split(", "),
                            **{key: int(value) for key, value in words.items()})


ROWS, CACHE, HEADS = ["--mesh", "x=2"], [2, 4, 6, 8], ["--mesh", "x=2", "--shard", "past=[_, x, _, _]"]


def uneven(ranks, dims):
    """A plan whose shards of `past` need not be alike: some ranks have less of it, or nothing."""
    return f"mesh: {{x: {ranks}}}\nuneven: true\nshard: [{{tensor: past, dims: [{dims}]}}]\n"


def window(axis, added=1, more=(), nodes=None, **options):
    """A cache that grows by `added` positions along an axis."""
    new, present = list(CACHE), list(CACHE)
    new[axis] = added
    present[axis] += added
    nodes = [f"present = Concat(past, new) axis={axis}"] if nodes is None else nodes
    return Case([*nodes, f"y = ReduceSum(present) keepdims=1", *more], {"past": CACHE, "new": new},
                {"present": present, "y": [1] * 4, **({"z": CACHE} if more else {})}, {"past": "present"}, **options)


SAME = {"old": [4, 8], "x": [4, 8]}
WEIGHTS = {"w": np.linspace(-0.2, 0.2, 64).astype(np.float32).reshape(8, 8)}
BEHIND = ["z = MatMul(y, w)", "u = Tanh(z)", "v = MatMul(u, w)"]
CUT = [*ROWS, "--shard", "old=[x, _]"]
CASES = {
    "sum": Case(["next = Add(old, x)", "y = Relu(next)"], SAME, {"next": [4, 8], "y": [4, 8]}, {"old": "next"}, CUT),
    "sum of halves": Case(["next = Add(old, x)"], SAME, {"next": [4, 8]}, {"old": "next"}, CUT, kind=HALF),
    "sum of integers": Case(["next = Add(old, x)"], SAME, {"next": [4, 8]}, {"old": "next"}, CUT, kind=INT),
    "annotated by the output": Case(["next = Add(old, x)"], SAME, {"next": [4, 8]}, {"old": "next"}, [*ROWS, "--shard", "next=[_, x]"]),
    "product": Case(["s = MatMul(old, w)", "next = Add(s, x)", "y = Softmax(next)"], {"old": [4, 8], "x": [4, 8]},
                    {"next": [4, 8], "y": [4, 8]}, {"old": "next"}, CUT, copied=1,
                    constants={"w": np.linspace(-0.2, 0.2, 64).astype(np.float32).reshape(8, 8)}),
    "old value read behind the new one": Case(
        ["next = Add(old, x)", "s = Softmax(next)", "m = MatMul(s, w)", "y = Add(m, old)"], SAME,
        {"next": [4, 8], "y": [4, 8]}, {"old": "next"}, CUT, copied=1, constants={"w": np.eye(8, dtype=np.float32)}),
    "unchanged": Case(["next = Identity(old)", "y = Add(old, x)"], SAME, {"next": [4, 8], "y": [4, 8]}, {"old": "next"}, CUT),
    "swapped": Case(["c = Identity(b)", "d = Add(a, x)", "y = Sub(a, b)"], {"a": [4, 8], "b": [4, 8], "x": [4, 8]},
                    {"c": [4, 8], "d": [4, 8], "y": [4, 8]}, {"a": "c", "b": "d"}, [*ROWS, "--shard", "{a,b}=[x, _]"], copied=2),
    "returned twice": Case(["next = Add(old, x)", "y = Identity(next)"], SAME, {"next": [4, 8], "y": [4, 8]}, {"old": "next"}, CUT),
    "slides": Case(["all = Concat(old, x) axis=0", "next = Slice(all, from, to)"], {"old": [4, 8], "x": [2, 8]}, {"next": [4, 8]},
                   {"old": "next"}, [*ROWS, "--shard", "old=[_, x]"], copied=1,
                   constants={"from": np.array([2]), "to": np.array([6])}),
    "scattered": Case(["next = ScatterND(old, where, x)", "y = Relu(next)"], {"old": [4, 8], "x": [2, 8]},
                      {"next": [4, 8], "y": [4, 8]}, {"old": "next"}, [*ROWS, "--shard", "old=[_, x]"],
                      constants={"where": np.array([[1], [3]])}),
    "scattered by element": Case(["next = ScatterElements(old, where, x) axis=1", "y = Relu(next)"], {"old": [4, 8], "x": [4, 1]},
                                 {"next": [4, 8], "y": [4, 8]}, {"old": "next"}, CUT,
                                 constants={"where": np.array([[1], [3], [7], [0]])}),
    "grows along dim 0": window(0, cut=[*ROWS, "--shard", "past=[_, x, _, _]"]),
    "grows along dim 1": window(1, cut=[*ROWS, "--shard", "past=[x, _, _, _]"]),
    "grows along dim 2": window(2, cut=HEADS),
    "grows along the last dim": window(3, cut=HEADS),
    "grows by three": window(2, 3, cut=HEADS),
    "grows by more than it is": window(2, 8, cut=HEADS),
    "old window is read, too": window(2, more=["z = Exp(past)"], cut=HEADS),
    "heads of three ranks": window(2, cut=uneven(3, "_, x, _, _")),
    "more ranks than heads": window(2, 3, cut=uneven(8, "_, x, _, _")),
    "more ranks than heads, read, too": window(2, more=["z = Exp(past)"], cut=uneven(5, "_, x, _, _")),
    "grows along dim 0, cut unevenly": window(0, cut=uneven(3, "_, _, _, x")),
    "grows along dim 1, more ranks than rows": window(1, 2, cut=uneven(4, "x, _, _, _")),
    "grows along the last dim, cut unevenly": window(3, cut=uneven(4, "_, _, x, _")),
    "one shape, cut unevenly": Case(["next = Add(past, x)", "y = Relu(next)"], {"past": [4, 7], "x": [4, 7]}, {"next": [4, 7], "y": [4, 7]},
                                    {"past": "next"}, uneven(3, "x, _")),
    "made otherwise": window(2, nodes=["h = Mul(past, half)", "present = Concat(h, new) axis=2"], cut=HEADS, copied=0,
                             constants={"half": np.float32(0.5).reshape(1)}),
}

# What follows on a state is work for the second stage. A state is read and made in one of them.
PIPELINES = {
    "stages behind a state": Case(["next = Add(old, x)", "y = Relu(next)", *BEHIND], SAME, {"next": [4, 8], "v": [4, 8]}, {"old": "next"},
                                  constants=WEIGHTS, pipeline=""),
    "state of the last stage": Case(["h = MatMul(x, w)", "g = Tanh(h)", "k = MatMul(g, w)", "next = Add(old, k)", "y = Relu(next)"], SAME,
                                    {"next": [4, 8], "y": [4, 8]}, {"old": "next"}, constants=WEIGHTS, pipeline=""),
    "a way from old to new": Case(["h = Tanh(old)", "k = MatMul(h, w)", "next = Add(k, x)", "y = Relu(next)", *BEHIND], SAME,
                                  {"next": [4, 8], "v": [4, 8]}, {"old": "next"}, constants=WEIGHTS, pipeline=""),
    "read beside the way": Case(["y = Exp(old)", "z = MatMul(y, w)", "u = Tanh(z)", "v = MatMul(u, w)", "next = Add(old, x)"], SAME,
                                {"next": [4, 8], "v": [4, 8]}, {"old": "next"}, constants=WEIGHTS, pipeline=""),
    "nobody reads the old value": Case(["next = Relu(x)", "z = MatMul(x, w)", "u = Tanh(z)", "v = MatMul(u, w)"], SAME,
                                       {"next": [4, 8], "v": [4, 8]}, {"old": "next"}, constants=WEIGHTS, pipeline=""),
    "unchanged, in the last stage": Case(["h = MatMul(x, w)", "g = Tanh(h)", "k = MatMul(g, w)", "y = Add(old, k)", "next = Identity(old)"], SAME,
                                         {"next": [4, 8], "y": [4, 8]}, {"old": "next"}, constants=WEIGHTS, pipeline=""),
    "window in a pipeline": window(2, 3, nodes=["present = Concat(past, new) axis=2", "e = Exp(present)", "f = Tanh(e)"], pipeline=""),
    "batch behind": Case(["next = Add(old, x)", "y = Relu(next)", "z = Exp(y)"], SAME, {"next": [4, 8], "z": [4, 8]}, {"old": "next"},
                         pipeline='batch: {"*": 1}'),
    "updated by every microbatch": Case(["s = ReduceSum(x, rows) keepdims=0", "next = Add(old, s)", "y = Add(x, next)", "z = Relu(y)"],
                                        {"old": [8], "x": [4, 8]}, {"next": [8], "z": [4, 8]}, {"old": "next"}, constants={"rows": np.array([0])},
                                        pipeline="batch: {x: 0, old: none}", refused="mixes samples of different microbatches"),
    "whole, for all microbatches": Case(["next = Relu(old)", "y = Add(x, old)", "z = MatMul(y, w)", "u = Tanh(z)", "v = MatMul(u, w)"],
                                        {"old": [8], "x": [4, 8]}, {"next": [8], "v": [4, 8]}, {"old": "next"}, constants=WEIGHTS,
                                        pipeline="batch: {x: 0, old: none}", refused="a state stays in one rank"),
}


def last(array, shape):
    """The last positions of an array, as many as `shape` has."""
    return array[tuple(slice(have - want, None) for have, want in zip(array.shape, shape))]


def compile_program(build, model, path, states, words):
    """The number of states that are copied at the end of a call."""
    done = harness.cleave(build, "compile", model, "-o", path, "--remarks", *words,
                          *(word for pair in states.items() for word in ("--state", "=".join(pair))))
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stderr.count("is copied at the end of a call")


def compare(build, case, model, path):
    """Call by call; the states of onnxruntime begin with zeros."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    types = {FLOAT: np.float32, HALF: np.float16, INT: np.int64}
    held = {name: np.zeros(case.inputs[name], types[case.kind]) for name in case.states}
    random, program = np.random.default_rng(2), Program(build, path)
    for call in range(CALLS):
        inputs = case.draw(random)
        expected = dict(zip(case.outputs, session.run(list(case.outputs), {**inputs, **held})))
        if call == 2:  # given as an input, a state is replaced
            inputs.update(held)
        got = program.run(inputs)
        held = {name: last(expected[output], case.inputs[name]) for name, output in case.states.items()}
        for name, want in expected.items():
            if not np.allclose(got[name], want, rtol=1e-5, atol=1e-5):
                return f"call {call}, {name}: {got[name].flatten()[:8]}, expected {want.flatten()[:8]}"
    program.close()
    return ""


def check(build, case):
    with tempfile.TemporaryDirectory() as folder:
        model, path = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.cleave")
        case.write(model)
        cut = case.cut
        if isinstance(cut, str):
            cut = ["--plan", os.path.join(folder, "plan.yaml")]
            with open(cut[1], "w") as file:
                file.write(case.cut)
        for words in [[], cut]:
            copied = compile_program(build, model, path, case.states, words)
            if copied != case.copied:
                return f"{words}: {copied} states are copied, expected {case.copied}"
            problem = compare(build, case, model, path)
            if problem:
                return f"{words}: {problem}"
    return ""


def check_pipeline(build, case):
    """Each rank of the pipeline keeps the states of its stage."""
    with tempfile.TemporaryDirectory() as folder:
        model, path, plan = (os.path.join(folder, name) for name in ("model.onnx", "model.cleave", "plan.yaml"))
        case.write(model)
        with open(plan, "w") as file:
            file.write(f"mesh: {{stage: 2}}\npipeline: {{axis: stage, microbatches: 2{', ' * bool(case.pipeline)}{case.pipeline}}}\n")
        try:
            compile_program(build, model, path, case.states, ["--plan", plan])
        except RuntimeError as error:
            return "" if case.refused and case.refused in str(error) and "internal" not in str(error) else str(error)
        return f"expected: {case.refused}" if case.refused else compare(build, case, model, path)


def open_two(build):
    """Programs that are open at once keep their kernels and states apart."""
    programs, x = [], np.ones([4, 8], np.float32)
    with tempfile.TemporaryDirectory() as folder:
        for op in ("Add", "Sub"):
            case = Case([f"next = {op}(old, x)"], SAME, {"next": [4, 8]}, {"old": "next"})
            model, path = os.path.join(folder, op + ".onnx"), os.path.join(folder, op + ".cleave")
            case.write(model)
            compile_program(build, model, path, case.states, [])
            programs.append(Program(build, path))
        for call in (1, 2, 3):
            got = [program.run({"x": x})["next"][0, 0] for program in programs]
            if got != [call, -call]:
                return f"{got} at call {call}"
        programs[0].reset()
        got = [program.run({"x": x})["next"][0, 0] for program in programs]
    for program in programs:
        program.close()
    return "" if got == [1, -4] else f"{got} when the first one was reset"


#===----------------------------------------------------------------------===#
# The decoder
#===----------------------------------------------------------------------===#

BATCH, PAST = 2, 6
MEGATRON = os.path.join(harness.ROOT, "examples", "generate.yaml")
PLANS = {"alone": (1, []), "heads": (2, ["--mesh", "model=2"]), "all heads": (4, ["--mesh", "model=4"]),
         "batch": (2, ["--mesh", "data=2", "--shard", "input_ids=[data, _]", "--shard", "past_*=[data, _, _, _]"]),
         "both": (4, ["--mesh", "data=2,model=2", "--shard", "input_ids=[data, _]"])}
# Meshes of which `stage` is a pipeline: the cache of a layer stays on its stage's rank.
STAGES = {"stages": "stage=2", "four stages": "stage=4", "stages and heads": "stage=2,model=2"}


def pipeline_plan(folder, mesh):
    """With Megatron's rules inside of a stage."""
    path = os.path.join(folder, "pipeline.yaml")
    with open(MEGATRON) as rules, open(path, "w") as file:
        file.write(f"mesh: {{{mesh.replace('=', ': ').replace(',', ', ')}}}\npipeline: {{axis: stage, microbatches: {BATCH}}}\n")
        file.write(rules.read() if "model" in mesh else "")
    return path


def decode(build, ranks, words, mpi, mesh=""):
    """The same token again and again, so that cleave-run can do it: only the cache differs from call to call."""
    if any("model" in word for word in words):
        words = [*words, "--plan", MEGATRON]
    feeds = {"input_ids": np.array([[5], [99]]), "position_ids": np.array([[3], [4]]), "attention_mask": np.ones([BATCH, PAST + 1], np.int64)}
    feeds["attention_mask"][1, :3] = 0
    session = onnxruntime.InferenceSession(DECODER, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    held = {name: np.zeros([BATCH, 4, PAST, 16], np.float32) for name in (i.name for i in session.get_inputs()) if "past" in name}
    expected = []
    for _ in range(CALLS):
        expected.append(dict(zip(names, session.run(names, {**feeds, **held}))))
        held = {name: expected[-1][name.replace("past", "present")][:, :, 1:] for name in held}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "decoder.cleave")
        words = ["--plan", pipeline_plan(folder, mesh)] if mesh else words
        copied = compile_program(build, DECODER, path, {"past_*": "present_*"}, ["--dim", f"batch={BATCH},past={PAST},total={PAST + 1}", *words])
        if copied:
            return f"{copied} states are copied"
        if mpi:
            inputs, outputs = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
            np.savez(inputs, **feeds)
            subprocess.run([*MPIRUN, str(ranks), f"{build}/bin/cleave-run", path, "--ranks", "mpi", "--inputs", inputs, "--outputs", outputs,
                            "--repeat", str(CALLS - 1)], check=True, capture_output=True)
            got = dict(np.load(outputs))
            return harness.difference(got, {"out:logits": expected[-1]["logits"]}, 1e-4, 1e-4)
        program = Program(build, path)
        for call in range(CALLS):
            problem = harness.difference(program.run(feeds), {f"out:{name}": want for name, want in expected[call].items()}, 1e-4, 1e-4)
            if problem:
                return f"call {call}, {problem}"
        program.close()
    return ""


def main():
    build, names, _ = harness.arguments()
    cases = {name: (lambda case=case: check(build, case)) for name, case in CASES.items()}
    cases.update({name: (lambda case=case: check_pipeline(build, case)) for name, case in PIPELINES.items()})
    cases["two at once"] = lambda: open_two(build)
    for name, (ranks, words) in PLANS.items():
        cases[f"decoder, {name}"] = lambda ranks=ranks, words=words: decode(build, ranks, words, mpi=False)
        if ranks > 1 and shutil.which("mpirun"):
            cases[f"decoder, {name}, MPI"] = lambda ranks=ranks, words=words: decode(build, ranks, words, mpi=True)
    for name, mesh in STAGES.items():
        ranks = int(np.prod([int(axis.split("=")[1]) for axis in mesh.split(",")]))
        for mpi in [False, True] if shutil.which("mpirun") else [False]:
            cases[f"decoder, {name}{', MPI' * mpi}"] = lambda ranks=ranks, mesh=mesh, mpi=mpi: decode(build, ranks, [], mpi, mesh)
    return harness.run(harness.select(cases, names), lambda case: case())


if __name__ == "__main__":
    sys.exit(main())
