"""Models written as ONNX for each rank: run piece by piece in onnxruntime, all ranks together, they give what the original does.

Usage: export.py BUILD_DIR [--all] [NAME...]

A case is a fixture on a mesh of `models-sharded`, a plan of examples/parallel, a pipeline of `models-pipelines` or of the examples, a quantized model of `models-quantized`, a loop whose trip count is an
input, a small program of test/Execute, or a model of a public package with a plan of `wild` (two models; with --all all of them). Every file must pass ONNX's
checker with its shape inference, which must agree with what the file says of each value. Then lockstep.py runs all ranks:
what lies between collectives in onnxruntime (bf16: ONNX's reference evaluator), collectives in numpy, by what docs/export.md says of them. Outputs must be those that
onnxruntime gave for the original model. Padding of uneven shards is NaN on the way in: nobody may read it.
"""
import collections
import json
import os
import re
import shutil
import sys
import tempfile
import threading

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import yaml
from onnx import TensorProto, helper

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(os.path.dirname(HERE), "Models")
sys.path[1:1] = [os.path.dirname(HERE), os.path.join(MODELS, "Parallel"), MODELS]
import check as parallel
import each
import harness
import lockstep
import pipelines
import quantized
import sharded
import wild
from cases import CASES as FORMS

# Of test/Execute: an LRN over an even number of channels, which onnxruntime refuses.
OTHER = {"neighbors.mlir channels.mlir"}
# Totals over all cases, and the least that there must be of each.
COUNTS = collections.Counter()
LEAST = {"files": 950, "segments": 3100, "collectives": 3100, "outputs": 500, "cleave.Send": 230}
LOCK = threading.Lock()


def is_same(given, inferred):
    """Whether shape inference has nothing else to say of a value."""
    if not inferred.HasField("tensor_type") or not inferred.tensor_type.HasField("shape"):
        return True
    a, b = given.tensor_type, inferred.tensor_type
    dims = list(zip(a.shape.dim, b.shape.dim))
    return a.elem_type == b.elem_type and len(a.shape.dim) == len(b.shape.dim) and \
        all(x.dim_value == y.dim_value for x, y in dims if y.HasField("dim_value"))


def check_file(path):
    """What ONNX's checker and its shape inference have against a file, or an empty string."""
    onnx.checker.check_model(path, full_check=True)
    model = onnx.load(path)
    given = {info.name: info.type for info in [*model.graph.value_info, *model.graph.output]}
    made = [name for node in model.graph.node for name in node.output if name]
    if missing := set(made) - set(given):
        return f"nothing is said of {sorted(missing)[:3]}"
    if len(set(made)) != len(made):
        return "two nodes make one value"
    del model.graph.value_info[:]
    for info in onnx.shape_inference.infer_shapes(model).graph.value_info:
        if not is_same(given[info.name], info.type):
            return f"{info.name} is said to be other than ONNX infers: {given[info.name]} {info.type}"
    return ""


def run(build, model, options, arrays):
    """(what is wrong or an empty string, outputs)."""
    with tempfile.TemporaryDirectory() as folder:
        done = harness.cleave(build, "export", model, "-o", folder, "--quiet", *options)
        if done.returncode:
            return f"exit {done.returncode}: {done.stderr.strip()[:500]}", None
        with open(os.path.join(folder, "export.json")) as file:
            files = json.load(file)["files"]
        for entry in files:
            if text := check_file(os.path.join(folder, entry["model"])):
                return f"{entry['model']}: {text}", None
        program = lockstep.Program(folder)
        outputs = program.run(arrays)
    segments = [step for step in program.steps if isinstance(step, lockstep.Segment)]
    with LOCK:
        meetings = [step for step in program.steps if isinstance(step, onnx.NodeProto)]
        COUNTS.update(f"{step.domain}.{step.op_type}" for step in meetings)
        COUNTS.update(files=len(files), segments=len(segments), collectives=len(meetings), outputs=len(outputs),
                      ranks=program.ranks, runs=len(segments) * program.ranks)
    return "", outputs


def fixture(build, name, mesh):
    path = os.path.join(MODELS, name)
    arrays = dict(np.load(path + ".npz"))
    is_uneven = mesh in sharded.UNEVEN_MESHES
    mesh = sharded.meet(mesh, arrays)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as plan:
        plan.write("uneven: true\n")
        plan.flush()
        options = ["--inputs", path + ".npz", "--mesh", mesh, *["--plan", plan.name] * is_uneven,
                   *sharded.rules(name, mesh, arrays, is_uneven)]
        text, outputs = run(build, path + ".onnx", options, {key[3:]: array for key, array in arrays.items() if key.startswith("in:")})
    if text:
        return text
    tolerance = sharded.TOLERANCE.get(name, 1e-4) * (1.5 if is_uneven else 1)
    return harness.difference(outputs, arrays, tolerance, tolerance / 10)


def pipeline(build, case):
    """A stage for each rank, or several, whatever microbatches there are."""
    name, mesh, microbatches, stages, times = case
    path = os.path.join(MODELS, name)
    arrays = pipelines.repeat(dict(np.load(path + ".npz")), times)
    with tempfile.TemporaryDirectory() as folder:
        pipelines.write_plan(plan := os.path.join(folder, "plan.yaml"), name, mesh, microbatches, stages, arrays)
        options = ["--plan", plan, *pipelines.find_dims(name, arrays)]
        text, outputs = run(build, path + ".onnx", options, {key[3:]: array for key, array in arrays.items() if key.startswith("in:")})
    tolerance = pipelines.TOLERANCE.get(name, 1e-4)
    return text or harness.difference(outputs, arrays, tolerance, tolerance / 10)


def staged(build, name):
    """A plan of the examples that has a pipeline."""
    plan, model = os.path.join(harness.ROOT, "examples", name + ".yaml"), os.path.join(MODELS, "bert_ts17.onnx")
    with open(plan) as file:
        dims = {"batch": 8, "seq": 32, **yaml.safe_load(file).get("dims", {})}
    arrays = parallel.draw(onnxruntime.InferenceSession(model), dims)
    words = ["--dim", ",".join(f"{key}={size}" for key, size in dims.items())]
    text, outputs = run(build, model, ["--plan", plan, *words], arrays)
    return text or harness.difference(outputs, infer(model, arrays), 1e-4, 1e-5)


# Of a loop whose trip count is an input: nothing sent in its body, terms of a product, and both with samples apart.
LOOPED = {"a loop by samples": ("data=2", ["x=[data, _]"]), "a loop over terms": ("model=2", ["x=[_, model]", "w=[model, _]"]),
          "a loop over columns": ("data=2,model=2", ["x=[data, _]", "w=[_, model]"])}


def make_loop(path):
    """x = tanh(x @ w + k) n times, while the sum of x is below a limit; k is read from outside."""
    value = lambda name, shape, kind=TensorProto.FLOAT: helper.make_tensor_value_info(name, kind, shape)
    body = helper.make_graph(
        [helper.make_node("MatMul", ["a", "w"], ["b"]), helper.make_node("Add", ["b", "k"], ["c"]), helper.make_node("Tanh", ["c"], ["next"]),
         helper.make_node("ReduceSum", ["next"], ["sum"], keepdims=0), helper.make_node("Less", ["sum", "limit"], ["more"])],
        "body", [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("a", [4, 8])],
        [value("more", [], TensorProto.BOOL), value("next", [4, 8])])
    graph = helper.make_graph(
        [helper.make_node("Neg", ["bias"], ["k"]), helper.make_node("Loop", ["n", "", "x"], ["y"], "loop", body=body), helper.make_node("Exp", ["y"], ["z"])],
        "looped", [value("x", [4, 8]), value("w", [8, 8]), value("bias", [8]), value("n", [], TensorProto.INT64), value("limit", [])], [value("z", [4, 8])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


def looped(build, name):
    """No iteration, some, and an end by the condition before the count is reached."""
    mesh, rules = LOOPED[name]
    random = np.random.default_rng(3)
    base = {"x": random.standard_normal((4, 8)), "w": random.standard_normal((8, 8)) / 2, "bias": random.standard_normal(8)}
    with tempfile.TemporaryDirectory() as folder:
        make_loop(path := os.path.join(folder, "loop.onnx"))
        asked = ["--mesh", mesh, *(word for rule in rules for word in ("--shard", rule))]
        for count, limit in ((0, 1e9), (1, 1e9), (6, 1e9), (6, -1e9)):
            arrays = {**{key: array.astype(np.float32) for key, array in base.items()}, "n": np.array(count), "limit": np.array(limit, np.float32)}
            text, outputs = run(build, path, asked, arrays)
            if text := text or harness.difference(outputs, infer(path, arrays), 1e-5, 1e-6):
                return f"{count} times up to {limit}: {text}"
    return ""


def infer(path, arrays):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options)
    return {f"out:{value.name}": array for value, array in zip(session.get_outputs(), session.run(None, arrays))}


def form(build, name):
    case, plan = FORMS[name], os.path.join(harness.ROOT, "examples", "parallel", name + ".yaml")
    model = os.path.join(MODELS, case.model + ".onnx")
    with open(plan) as file:
        dims = yaml.safe_load(file).get("dims", {})
    arrays = parallel.draw(onnxruntime.InferenceSession(model), dims)
    text, outputs = run(build, model, ["--plan", plan], arrays)
    return text or harness.difference(outputs, infer(model, arrays), 1e-4, 1e-5)


def check_quantized(build, name, mesh):
    base, quantizer, how = quantized.CASES[name]
    with np.load(os.path.join(MODELS, base + ".npz")) as recorded:
        arrays = {key[3:]: recorded[key] for key in recorded.files if key.startswith("in:")}
    with tempfile.TemporaryDirectory() as folder:
        path, copy = os.path.join(folder, "q.onnx"), os.path.join(folder, base + ".onnx")
        shutil.copy(os.path.join(MODELS, base + ".onnx"), copy)  # beside which the quantizer writes
        quantizer(copy, path, arrays, **how)
        np.savez(os.path.join(folder, "in.npz"), **arrays)
        rules = quantized.get_rules(onnx.load(path), arrays, mesh)
        text, outputs = run(build, path, ["--inputs", os.path.join(folder, "in.npz"), "--mesh", mesh, *rules], arrays)
        return text or quantized.compare(outputs, {key[4:]: array for key, array in infer(path, arrays).items()})


def found(build, name, kind, asked):
    """A model of a public package."""
    model, path = wild.MODELS[name], os.path.join(wild.FOLDER, name + ".onnx")
    arrays = wild.draw(model, onnxruntime.InferenceSession(path))
    with tempfile.TemporaryDirectory() as folder:
        np.savez(os.path.join(folder, "in.npz"), **arrays)
        text, outputs = run(build, path, ["--inputs", os.path.join(folder, "in.npz"), *asked], arrays)
    return text or harness.difference(outputs, infer(path, arrays), model.tolerance, model.tolerance)


def parts():
    """{name: text} of the small programs of test/Execute, which have each collective in all of its forms, and of test/Export."""
    programs = {}
    for folder in (os.path.join(harness.ROOT, "test", "Execute"), HERE):
        for file in sorted(name for name in os.listdir(folder) if name.endswith(".mlir")):
            with open(os.path.join(folder, file)) as source:
                text = source.read()
            if re.search(r"^//--- \S+$", text, re.M):
                programs.update({f"{file} {name}": part for name, part in each.split(text)})
            else:
                programs[file] = text
    return programs


def executed(build, text):
    """Against the evaluator, on one device and on ranks, which has no other source for such programs."""
    with tempfile.TemporaryDirectory() as folder:
        path, given, made = (os.path.join(folder, name) for name in ("p.mlir", "in.npz", "out.npz"))
        with open(path, "w") as file:
            file.write(text)
        done = harness.cleave(build, "run", path, "--save-inputs", given, "--outputs", made, "--quiet")
        if done.returncode:
            return f"exit {done.returncode}: {done.stderr.strip()[:300]}"
        with np.load(given) as inputs, np.load(made) as outputs:
            arrays, expected = dict(inputs), dict(outputs)
        text, outputs = run(build, path, [], arrays)
    if text:
        return text
    got = {name: array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array for name, array in outputs.items()}
    widened = {f"out:{name}": (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32) if array.dtype.kind == "V" else array
               for name, array in expected.items()}
    return harness.difference(got, widened, 1e-3, 1e-5)


def main():
    build, names, flags = harness.arguments("--all")
    with open(os.path.join(MODELS, "index.json")) as file:
        fixtures = json.load(file)
    cases = {f"{name} on {mesh}": (fixture, name, mesh) for name in fixtures
             for mesh in [*sharded.MESHES, *sharded.UNEVEN_MESHES, *sharded.PICTURE_MESHES * (name in sharded.PICTURES)]}
    cases.update({name: (form, name) for name in FORMS})
    cases.update({f"{' '.join(map(str, case))} in a pipeline": (pipeline, case) for case in pipelines.CASES + pipelines.UNEVEN})
    cases.update({name: (looped, name) for name in LOOPED})
    cases.update({name: (staged, name) for name in ("bert-3d", "bert-pipeline")})
    cases.update({f"{name} on {mesh}": (check_quantized, name, mesh) for name in quantized.CASES for mesh in quantized.MESHES})
    cases.update({name: (executed, text) for name, text in parts().items() if name not in OTHER})
    for name in wild.choose([], "--all" in flags):
        if not wild.MODELS[name].refusal:
            plans = wild.plans(wild.MODELS[name], os.path.join(wild.FOLDER, name + ".onnx"))
            cases.update({f"{name} {kind}": (found, name, kind, asked) for kind, asked in plans.items()})
    code = harness.run(harness.select(cases, names), lambda case: case[0](build, *case[1:]))
    print(", ".join(f"{count} {what}" for what, count in sorted(COUNTS.items())))
    if not names and not harness.is_drawn() and any(COUNTS[what] < least for what, least in LEAST.items()):
        print(f"expected at least {LEAST}")
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
