"""The fixtures as programs of pipelines: stages, microbatches, schedules and meshes inside of a stage, against their recorded outputs.

Usage: pipelines.py BUILD_DIR [--emulated] [NAME...]

Each goes the whole way from a plan with `pipeline:` to a program file, which threads run (some by TCP, too): with a stage for each rank in
order (`forward`), or several (`circular`). Parameters that several stages use are
counted. Where a model takes any batch, the recorded inputs come several times, so that `data` divides the
microbatches; samples do not know of each other, so outputs come as often. Over `model` the weights of dots and convolutions are cut as in sharded.py.
--emulated: programs for CUDA, on devices that this machine plays, which check every access; some with a process for each.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
from sharded import rules

HERE = os.path.dirname(os.path.abspath(__file__))
# Name, mesh, microbatches, stages (0: one for each rank of the pipeline), how often the batch comes.
CASES = [
    ("gpt2_ts17", "stage=2", 3, 0, 1), ("gpt2_ts17", "stage=4", 3, 0, 1), ("gpt2_ts17", "stage=2", 6, 4, 2),
    ("gpt2_ts17", "stage=2,data=2,model=2", 3, 0, 4), ("gpt2_ts17", "model=2,stage=3", 3, 0, 1),
    ("bert_ts17", "stage=2", 3, 4, 1), ("bert_ts17", "stage=3,model=2", 3, 0, 1), ("bert_ts17", "data=2,stage=2,model=2", 3, 4, 4),
    ("bert_dyn18", "stage=2", 2, 0, 1), ("bert_dyn18", "stage=2", 2, 4, 1),
    ("mlp_external", "stage=2", 6, 0, 1), ("vit_dyn18", "stage=3", 3, 0, 1), ("vit_dyn18", "stage=2,model=2", 3, 4, 1),
    ("resnet_ts17", "stage=2", 3, 4, 1), ("resnet_ts17", "stage=4", 3, 0, 1),
    ("unet_dyn18", "stage=2", 2, 4, 1), ("unet_dyn18", "stage=3", 2, 0, 1),
    ("t5_like_dyn18", "stage=4", 2, 0, 1), ("t5_like_dyn18", "stage=2", 2, 4, 1),
    ("llama_gqa_dyn18", "stage=3", 3, 0, 1), ("llama_gqa_dyn18", "stage=2,model=2", 3, 0, 1), ("llama_gqa_dyn23", "stage=2", 3, 4, 1),
    ("gpt2_kv", "stage=2", 3, 0, 1), ("gpt2_fp16", "stage=2", 3, 0, 1), ("llama_bf16", "stage=2", 3, 0, 1),
]
# Batches that microbatches do not divide: some have a sample more, on each of the devices that a plan gives the batch to.
UNEVEN = [
    ("gpt2_ts17", "stage=2", 2, 0, 1), ("gpt2_ts17", "stage=2", 4, 4, 2), ("gpt2_ts17", "stage=2,data=2,model=2", 4, 0, 4),
    ("bert_ts17", "stage=2", 2, 4, 1), ("bert_ts17", "data=2,stage=2,model=2", 5, 0, 4), ("bert_ts17", "stage=3,model=2", 2, 0, 1),
    ("mlp_external", "stage=2", 4, 0, 1), ("vit_dyn18", "stage=2,model=2", 2, 4, 1), ("vit_dyn18", "stage=3", 2, 0, 1),
    ("resnet_ts17", "stage=2", 2, 4, 1), ("llama_gqa_dyn18", "stage=3", 2, 0, 1), ("llama_gqa_dyn18", "stage=2,model=2", 2, 0, 1),
    ("gpt2_kv", "stage=2", 2, 0, 1),
]
BY_TCP = {("gpt2_ts17", "stage=2"), ("bert_ts17", "stage=2"), ("t5_like_dyn18", "stage=4"), ("vit_dyn18", "stage=2,model=2")}
TOLERANCE = {"gpt2_fp16": 3e-2, "llama_bf16": 1e-1}
# Rows of all samples go to experts in one tensor, which is no batch any more.
REFUSED = {"moe_dyn18": ("stage=2", 2, 0, 1, "mixes samples of different microbatches")}


# By options of compilation and of what runs.
TARGETS = {False: ([], {}), True: (["--target", "cuda:emulated"], {"CLEAVE_CUDA_LIBRARY": "libcleave_emulated_cuda.so"})}


class Refused(Exception):
    """A tool said no."""


def call(*command, **environment):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace", env={**os.environ, **environment})
    if done.returncode:
        raise Refused(f"{os.path.basename(command[0])} {command[2]}: exit {done.returncode}: {done.stderr[-500:]}")


def repeat(arrays, times):
    """All arrays, which begin with the batch, that many times."""
    return {key: np.concatenate([array] * times) for key, array in arrays.items()}


def find_dims(name, arrays):
    """--dim for the model's dims without a size."""
    model = onnx.load(os.path.join(HERE, name + ".onnx"), load_external_data=False)
    sizes = {dim.dim_param: size for value in model.graph.input if "in:" + value.name in arrays
             for dim, size in zip(value.type.tensor_type.shape.dim, arrays["in:" + value.name].shape) if dim.dim_param}
    return ["--dim", ",".join(f"{key}={size}" for key, size in sizes.items())] * bool(sizes)


def write_plan(path, name, mesh, microbatches, stages, arrays):
    """The whole mesh, what is cut inside of a stage, and the pipeline."""
    sizes = dict(entry.split("=") for entry in mesh.split(","))
    inside = ",".join(entry for entry in mesh.split(",") if not entry.startswith("stage="))
    words = rules(name, inside, arrays)[1::2] if inside else []
    chunks = (stages or int(sizes["stage"])) // int(sizes["stage"])
    how = f"chunks: {chunks}, schedule: circular" if chunks > 1 else "schedule: forward"
    how += ", uneven: true" * ((name, mesh, microbatches, stages) in {case[:4] for case in UNEVEN})
    lines = [f"mesh: {{{mesh.replace('=', ': ').replace(',', ', ')}}}",
             f"pipeline: {{axis: stage, microbatches: {microbatches}, {how}}}", *["shard:"] * bool(words),
             *(f"  - {{tensor: {word.partition('=')[0]!r}, dims: {word.partition('=')[2]}}}" for word in words)]
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


def compile_program(build, folder, name, mesh, microbatches, stages, arrays, words):
    """The program of a pipeline."""
    plan, program = os.path.join(folder, "plan.yaml"), os.path.join(folder, "m.cleave")
    write_plan(plan, name, mesh, microbatches, stages, arrays)
    call(f"{build}/bin/cleave", "compile", os.path.join(HERE, name + ".onnx"), "--plan", plan, *find_dims(name, arrays), *words, "--quiet", "-o", program)
    return program


def problem(build, name, mesh, microbatches, stages, times, launcher, isEmulated=False):
    """What is wrong, or an empty string."""
    words, environment = TARGETS[isEmulated]
    arrays = repeat(dict(np.load(os.path.join(HERE, name + ".npz"))), times)
    with tempfile.TemporaryDirectory() as folder:
        program = compile_program(build, folder, name, mesh, microbatches, stages, arrays, words)
        inputs, outputs = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
        np.savez(inputs, **{key[3:]: array for key, array in arrays.items() if key.startswith("in:")})
        call(f"{build}/bin/cleave-run", program, "--inputs", inputs, "--outputs", outputs, "--deadline", "30",
             *(["--local"] if launcher == "tcp" else ["--ranks", "threads"]), **environment)
        tolerance = TOLERANCE.get(name, 1e-4)
        return harness.difference(np.load(outputs), arrays, tolerance, tolerance / 10)


def make_tied(path):
    """A decoder in small, whose embedding is its head, too; input, output, bytes of the embedding."""
    random = np.random.default_rng(5)
    table, *layers = (random.standard_normal(shape).astype(np.float32) / 4 for shape in [(16, 32), *[(16, 16)] * 3])
    # Looked up by columns, so that the head needs no transposed copy.
    nodes = [helper.make_node("Gather", ["table", "ids"], ["columns"], axis=1), helper.make_node("Transpose", ["columns"], ["h0"], perm=[1, 2, 0])]
    for index in range(len(layers)):
        nodes += [helper.make_node("MatMul", [f"h{index}", f"w{index}"], [f"m{index}"]), helper.make_node("Tanh", [f"m{index}"], [f"h{index + 1}"])]
    nodes.append(helper.make_node("MatMul", [f"h{len(layers)}", "table"], ["logits"]))
    weights = {"table": table, **{f"w{index}": layer for index, layer in enumerate(layers)}}
    graph = helper.make_graph(nodes, "tied", [helper.make_tensor_value_info("ids", TensorProto.INT64, [6, 5])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [6, 5, 32])],
                              [onnx.numpy_helper.from_array(array, key) for key, array in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    ids = random.integers(0, 32, (6, 5))
    expected = table.T[ids]
    for layer in layers:
        expected = np.tanh(expected @ layer)
    return ids, expected @ table, table.nbytes


def tied(build, words, copies):
    """How many ranks hold the embedding: told in a remark, and seen in the programs of the ranks."""
    with tempfile.TemporaryDirectory() as folder:
        model, plan, program, inputs, outputs = (os.path.join(folder, name) for name in ("m.onnx", "plan.yaml", "m.cleave", "in.npz", "out.npz"))
        ids, expected, table = make_tied(model)
        with open(plan, "w") as file:
            file.write(f"mesh: {{stage: 2}}\npipeline: {{axis: stage, microbatches: 3, {words}}}\n")
        done = harness.cleave(build, "compile", model, "--plan", plan, "--remarks", "--quiet", "-o", program)
        if done.returncode:
            raise Refused(done.stderr)
        told = f"remark: parameter 'table', {table} bytes, is used by stages" in done.stderr
        ranks = harness.cleave(build, "shard", model, "--plan", plan, "--emit=clustered", "-o", "-").stdout.split("func.func @main.rank")[1:]
        held = sum("@table" in rank for rank in ranks)
        if told != (copies > 1) or held != copies:
            return f"told: {told}; {held} ranks hold it"
        np.savez(inputs, ids=ids)
        call(f"{build}/bin/cleave-run", program, "--inputs", inputs, "--outputs", outputs, "--ranks", "threads")
        return harness.difference(np.load(outputs), {"out:logits": expected}, 1e-5, 1e-5)


# Loops that stay loops: ONNX's Loop of a number of iterations that only an input says, and a Scan of too many steps to be unrolled. Which,
# mesh, microbatches of six samples, further words of the pipeline, and annotations.
LOOPS = [
    ("loop", "stage=2", 3, "", []), ("loop", "stage=2", 4, "uneven: true", []),
    ("loop", "stage=3", 2, 'stages: [{nodes: "first"}, {first: "again"}, {first: "last"}]', []),
    ("loop", "stage=2,data=2", 3, 'stages: [{nodes: "first"}, {first: "again"}]', ["{tensor: x, dims: [data, _]}"]),
    ("loop", "stage=2,model=2", 3, 'stages: [{nodes: "first"}, {first: "again"}]', ["{tensor: w1, dims: [_, model]}"]),
    # Two samples of a microbatch on three devices.
    ("loop", "stage=2,data=3", 3, 'stages: [{nodes: "first"}, {first: "again"}]', ["{tensor: x, dims: [data, _], uneven: true}"]),
    ("scan", "stage=2,data=3", 3, "", ["{tensor: xs, dims: [_, data, _], uneven: true}"]),
    ("loop", "stage=2", 6, "chunks: 2, schedule: circular", []),
    ("scan", "stage=2", 3, "", []), ("scan", "stage=2,data=2", 3, "", ["{tensor: xs, dims: [_, data, _]}"]),
]
LOOPS_REFUSED = [
    ('stages: [{nodes: "first"}, {first: "within"}]', 'plan.yaml:2:', "node 'within', at which stage 1 is to start, is in the body of loop 'again', which is whole in one stage"),
    ('batch: {x: 1}', 'mixes samples of different microbatches'),
]


def write_loop(path, kind):
    """A product, a loop that reads it, a product; inputs by name."""
    random = np.random.default_rng(11)
    tensor = helper.make_tensor_value_info
    weights = {f"w{i}": (random.standard_normal((4, 4)) / 2).astype(np.float32) for i in range(3)}
    if kind == "loop":
        body = helper.make_graph(
            [helper.make_node("MatMul", ["h", "w1"], ["m"], "within"), helper.make_node("Add", ["m", "p"], ["s"]), helper.make_node("Tanh", ["s"], ["next"]),
             helper.make_node("Identity", ["go"], ["goes"])],
            "body", [tensor("i", TensorProto.INT64, []), tensor("go", TensorProto.BOOL, []), tensor("h", TensorProto.FLOAT, [6, 4])],
            [tensor("goes", TensorProto.BOOL, []), tensor("next", TensorProto.FLOAT, [6, 4])])
        inputs = {"x": random.standard_normal((6, 4)).astype(np.float32), "n": np.array(7)}
        nodes = [helper.make_node("MatMul", ["x", "w0"], ["p"], "first"), helper.make_node("Loop", ["n", "", "x"], ["all"], "again", body=body),
                 helper.make_node("MatMul", ["all", "w2"], ["r"], "last"), helper.make_node("Softmax", ["r"], ["q"]), helper.make_node("MatMul", ["q", "w0"], ["y"])]
        outputs = [tensor("y", TensorProto.FLOAT, [6, 4])]
    else:
        body = helper.make_graph(
            [helper.make_node("MatMul", ["h", "w1"], ["m"], "within"), helper.make_node("Add", ["m", "p"], ["s"]),
             *(helper.make_node("Tanh", ["s" if i == 0 else f"t{i - 1}"], [f"t{i}"]) for i in range(7)), helper.make_node("Add", ["t6", "p"], ["next"]),
             helper.make_node("Identity", ["next"], ["out"])],
            "body", [tensor("h", TensorProto.FLOAT, [6, 4]), tensor("p", TensorProto.FLOAT, [6, 4])],
            [tensor("next", TensorProto.FLOAT, [6, 4]), tensor("out", TensorProto.FLOAT, [6, 4])])
        inputs = {"xs": random.standard_normal((6000, 6, 4)).astype(np.float32)}
        nodes = [helper.make_node("MatMul", ["xs", "w0"], ["ps"], "first"), helper.make_node("Scan", ["zeros", "ps"], ["h", "outs"], "again", body=body, num_scan_inputs=1),
                 helper.make_node("MatMul", ["outs", "w2"], ["ys"], "last")]
        weights["zeros"] = np.zeros((6, 4), np.float32)
        outputs = [tensor("h", TensorProto.FLOAT, [6, 4]), tensor("ys", TensorProto.FLOAT, [6000, 6, 4])]
    graph = helper.make_graph(nodes, kind, [tensor(key, TensorProto.INT64 if key == "n" else TensorProto.FLOAT, array.shape) for key, array in inputs.items()],
                              outputs, [onnx.numpy_helper.from_array(array, key) for key, array in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return inputs


def looped(build, kind, mesh, microbatches, words, annotations, isEmulated=False):
    """A pipeline with a loop in a stage against onnxruntime, as a program, and on simulated ranks against the whole model."""
    flags, environment = TARGETS[isEmulated]
    with tempfile.TemporaryDirectory() as folder:
        model, plan, program, source, outputs = (os.path.join(folder, name) for name in ("m.onnx", "plan.yaml", "m.cleave", "in.npz", "out.npz"))
        inputs = write_loop(model, kind)
        batch = "batch: {xs: 1}" if kind == "scan" else "batch: {x: 0, n: none}"
        pipeline = ", ".join(["axis: stage", f"microbatches: {microbatches}", *[batch] * ("batch" not in words), *[words] * bool(words)])
        with open(plan, "w") as file:
            file.write("\n".join([f"mesh: {{{mesh.replace('=', ': ').replace(',', ', ')}}}", f"pipeline: {{{pipeline}}}", *["shard:"] * bool(annotations),
                                  *(f"  - {annotation}" for annotation in annotations)]) + "\n")
        np.savez(source, **inputs)
        canonical = harness.cleave(build, "shard", model, "--emit=canonical", "-o", "-")
        if "nn.loop" not in canonical.stdout:
            return "there is no loop: " + canonical.stderr
        call(f"{build}/bin/cleave", "compile", model, "--plan", plan, *flags, "--quiet", "-o", program)
        call(f"{build}/bin/cleave-run", program, "--inputs", source, "--outputs", outputs, "--deadline", "60", "--ranks", "threads", **environment)
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        wrong = harness.difference(np.load(outputs), dict(zip(["out:" + name for name in names], session.run(None, inputs))), 1e-4, 1e-5)
        if not wrong and not isEmulated:
            # With inputs from a file the number of iterations would be known, and the loop none.
            call(f"{build}/bin/cleave", "run", model, "--plan", plan, "--check", "--quiet")
        return wrong


def loop_refused(build, words, *whys):
    try:
        looped(build, "loop", "stage=2", 2, words, [])
    except Refused as error:
        missing = [why for why in whys if why not in str(error)]
        return f"not said: {missing}, but {error}" if missing else ""
    return f"expected: {whys}"


def refused(build, name, mesh, microbatches, stages, times, why):
    try:
        problem(build, name, mesh, microbatches, stages, times, "threads")
    except Refused as error:
        return "" if why in str(error) else str(error)
    return f"expected: {why}"


def main():
    build, wanted, flags = harness.arguments("--emulated")
    cases = {}
    for name, mesh, microbatches, stages, times in CASES + UNEVEN:
        for launcher in ["threads", *["tcp"] * ((name, mesh) in BY_TCP)]:
            title = f"{name} on {mesh}, {microbatches} microbatches, {stages or 'a stage a rank'} {'stages' * bool(stages)} by {launcher}"
            cases[" ".join(title.split())] = lambda case=(name, mesh, microbatches, stages, times, launcher): problem(build, *case, bool(flags))
    for case in LOOPS:
        # Thousands of steps take long on a device that is played.
        if not (flags and case[0] == "scan"):
            cases[f"{case[0]} on {case[1]}, {case[2]} microbatches, {case[3] or 'cut where it is best'}"] = lambda case=case: looped(build, *case, bool(flags))
    if not flags:
        for words, *whys in LOOPS_REFUSED:
            cases[f"a loop with {words}"] = lambda words=words, whys=whys: loop_refused(build, words, *whys)
        cases["an embedding that is the head, too"] = lambda: tied(build, "schedule: forward", 2)
        cases["an embedding together with the head"] = lambda: tied(build, "placement: v, together: [table]", 1)
        for name, case in REFUSED.items():
            cases[name] = lambda name=name, case=case: refused(build, name, *case)
    return harness.run(harness.select(cases, wanted), lambda case: case())


if __name__ == "__main__":
    sys.exit(main())
