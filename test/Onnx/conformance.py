"""ONNX's own tests: each node test passes or is refused with a reason; none is wrong and none crashes. So it is with
the small graphs that PyTorch once exported, in opset 6 mostly. The nine whole networks that ONNX brings along all pass.

    conformance.py BUILD_DIR [--program|--emulated] [--write] [--list] [CASE...]

With --write, docs/generated/onnx-conformance.md is written anew: which ops pass, and a table of the reasons for
refusing, with counts. With --program all are compiled and run as programs, with --emulated (without the networks) for CUDA, on a device that this machine plays; the page must be the same. Without it, a page that is out of date fails. With case names only these are run.
"""

import argparse
import collections
import os
import re
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

PAGE = os.path.join(harness.ROOT, "docs/generated/onnx-conformance.md")
DATA = os.path.join(os.path.dirname(onnx.__file__), "backend/test/data")
NETWORKS = os.path.join(DATA, "light")
GROUPS = ("node", "pytorch-converted", "pytorch-operator", "simple")
FOLDERS = {name: os.path.join(DATA, group, name) for group in GROUPS for name in os.listdir(os.path.join(DATA, group))}
# The suite cannot shrink unnoticed: so many cases exist in onnx 1.22.0, and so many pass.
CASES = 1905
WHOLE_NETWORKS = 9
LEAST_PASSING = 1864
# Tolerances of ONNX's backend tests.
RTOL, ATOL = 1e-3, 1e-7
# Types that numpy lacks, and their bits.
SMALL = {
    getattr(onnx.TensorProto, name): int(bits)
    for bits, names in {
        8: "FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ FLOAT8E8M0",
        4: "INT4 UINT4 FLOAT4E2M1",
        2: "INT2 UINT2",
    }.items()
    for name in names.split()
}
# Of random numbers ONNX defines type and shape; the recorded ones are numpy's (test/Import/random.test has ours).
RANDOM = re.compile(r"test_(bernoulli\w*|training_dropout(_default)?(_mask)?)")
PLAIN = {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"}
# What numpy's transform leaves of zeros is recorded: 2e-7.
LOOSE = {"test_dft_inverse": 1e-6, "test_dft_inverse_opset19": 1e-6}


def read_tensor(path):
    """A tensor as an array that .npz can hold; None for strings, sequences and types that numpy lacks."""
    with open(path, "rb") as file:
        data = file.read()
    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(data)
        if tensor.data_type == onnx.TensorProto.BFLOAT16:
            return numpy_helper.to_array(tensor).view(np.uint16).view("V2")
        if tensor.data_type in SMALL:
            # One byte an element, of which the low bits count.
            bits = numpy_helper.to_array(tensor).view(np.uint8) & (2 ** SMALL[tensor.data_type] - 1)
            return bits.astype(np.uint8).view("V1")
        if tensor.data_type in (onnx.TensorProto.STRING, onnx.TensorProto.UNDEFINED):
            return None
        array = numpy_helper.to_array(tensor)
    except Exception:
        return None
    return array if array.dtype.str[1:] in PLAIN and onnx_type(array) == tensor.data_type else None


def read_list(path, declared):
    """Elements of a sequence or an optional value, and whether it is an optional tensor, whose name is its own. ONNX writes a value that is
    there as a sequence or a tensor now and then, where the type is optional."""
    def sequence(data):
        value = onnx.SequenceProto()
        value.ParseFromString(data)
        return [numpy_helper.to_array(tensor) for tensor in value.tensor_values]

    with open(path, "rb") as file:
        data = file.read()
    if declared.WhichOneof("value") == "sequence_type":
        return sequence(data), False
    isSingle = declared.optional_type.elem_type.WhichOneof("value") == "tensor_type"
    value = onnx.OptionalProto()
    try:
        value.ParseFromString(data)
        array = numpy_helper.to_optional(value)
    except Exception:
        array = read_tensor(path) if isSingle else sequence(data)
    return [] if array is None else [array] if isSingle else list(array), isSingle


def onnx_type(array):
    return onnx.helper.np_dtype_to_tensor_dtype(array.dtype)


def prepare(name, folder):
    """Writes a test's arrays as an .npz file: `in:X` and `out:Y`."""
    case = FOLDERS[name]
    graph = onnx.load(os.path.join(case, "model.onnx"), load_external_data=False).graph
    arrays = {}
    for kind, prefix, infos in (("input", "in:", graph.input), ("output", "out:", graph.output)):
        for index, info in enumerate(infos):
            path = os.path.join(case, "test_data_set_0", f"{kind}_{index}.pb")
            if not os.path.exists(path):
                continue
            if info.type.WhichOneof("value") == "tensor_type":
                # A value of another kind than its declaration (a small float) has no array; such a model is refused for its types.
                array = read_tensor(path)
                if array is not None:
                    arrays[prefix + info.name] = array
                continue
            elements, isSingle = read_list(path, info.type)
            if kind == "input":
                arrays["len:" + info.name] = np.array(len(elements), np.int64)
            for number, array in enumerate(elements):
                arrays[prefix + info.name + ("" if isSingle else f".{number}")] = array
    target = os.path.join(folder, name + ".npz")
    np.savez(target, **arrays)
    return name, f"{case}/model.onnx", target, RTOL, "inf" if RANDOM.fullmatch(name) else LOOSE.get(name, ATOL)


def prepare_network(name, folder):
    """A network of ONNX's light suite, whose input is n numbers from 0 on, divided by n."""
    path = os.path.join(NETWORKS, name + ".onnx")
    graph = onnx.load(path).graph
    weights = {tensor.name for tensor in graph.initializer}
    (image,) = [info for info in graph.input if info.name not in weights]
    shape = [dim.dim_value for dim in image.type.tensor_type.shape.dim]
    count = np.prod(shape)
    ramp = (np.arange(count).reshape(shape) / count).astype(np.float32)
    target = os.path.join(folder, name + ".npz")
    expected = read_tensor(os.path.join(NETWORKS, name + "_output_0.pb"))
    np.savez(target, **{"in:" + image.name: ramp, "out:" + graph.output[0].name: expected})
    return name, path, target, RTOL, ATOL


def run(build, names, prepare, flags):
    """(status, reason) of every case; half of them at a time."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [prepare(name, folder) for name in names]
        halves = harness.each(lambda half: harness.conformance(build, half, *flags), [rows[::2], rows[1::2]])
        return {**halves[0], **halves[1]}


def generalize(reason):
    """A reason without the names of its case, and the op it is about."""
    found = re.match(r"(?:error: )?node (?:'[^']*' )?\((\w+), ([\w.]+) \d+(?:, output '.*?')?\): (.*)", reason)
    op, text = (found[1] if found[2] == "ai.onnx" else f"{found[2]}.{found[1]}", found[3]) if found else ("", reason)
    text = re.sub(r"\('[^']*'\) ", "", text)
    text = re.sub(r"^(input|output) '[^']*'", r"an \1", text)
    text = re.sub(r"opset \d+ of", "the opset of", text)
    return re.sub(r"(?<![\w])-?\d+(?![\w])", "N", text), op


def page(results):
    counts = collections.Counter(status for status, _ in results.values())
    reasons = collections.defaultdict(list)
    for name, (status, reason) in sorted(results.items()):
        if status == "REFUSED":
            text, op = generalize(reason)
            reasons[text].append(op)
    lines = [
        "<!-- Generated by test/Onnx/conformance.py --write; do not edit. -->",
        "",
        "# ONNX node tests",
        "",
        "For: deployers who want to know whether a model can be imported ([what is](../import.md)).",
        "",
        f"Of the {len(results)} node tests and small graphs of onnx {onnx.__version__}, {counts['PASS']} pass, {counts['REFUSED']} are "
        f"refused, {counts['WRONG']} are wrong and {counts['CRASH']} crash.",
        "A test passes if the model imports and the reference evaluator gives the expected outputs within ONNX's own "
        f"tolerances (rtol {RTOL:g}, atol {ATOL:g}).",
        "Operands that decide a shape are taken from the test's inputs; of random numbers type and shape are compared.",
        "",
        "## Why tests are refused",
        "",
        "| reason | tests | ops |",
        "|---|---|---|",
    ]
    for text, ops in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
        names = ", ".join(sorted({op for op in ops if op}))
        lines.append(f"| {text.replace('|', '/')} | {len(ops)} | {names} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--program", action="store_true")
    parser.add_argument("--emulated", action="store_true")
    options = parser.parse_args()
    names = options.names or harness.draw(sorted(FOLDERS))
    is_whole = len(names) == len(FOLDERS)
    flags = ["--program"] if options.program else ["--emulated"] if options.emulated else []
    os.environ["CLEAVE_CUDA_LIBRARY"] = "libcleave_emulated_cuda.so"
    results = run(options.build, names, prepare, flags)
    counts = collections.Counter(status for status, _ in results.values())
    bad = [(name, *result) for name, result in sorted(results.items()) if result[0] in ("WRONG", "CRASH")]
    for name, status, reason in bad:
        print(f"{status} {name}: {reason}")
    if options.list or options.names:
        for name, (status, reason) in sorted(results.items()):
            print(f"{status} {name}: {reason}")
    failed = len(bad) + len(set(names) - set(results))
    if is_whole and not options.emulated:
        networks = sorted(file[:-5] for file in os.listdir(NETWORKS) if file.endswith(".onnx"))
        whole = run(options.build, networks, prepare_network, flags)
        broken = [f"{status} {name}: {reason}" for name, (status, reason) in whole.items() if status != "PASS"]
        print("\n".join(broken + [f"{len(whole) - len(broken)} of {WHOLE_NETWORKS} whole networks pass"]))
        failed += len(broken) + abs(WHOLE_NETWORKS - len(whole))
    if is_whole:
        text = page(results)
        if options.write:
            os.makedirs(os.path.dirname(PAGE), exist_ok=True)
            with open(PAGE, "w") as file:
                file.write(text)
        elif not os.path.exists(PAGE) or open(PAGE).read() != text:
            print("docs/generated/onnx-conformance.md is out of date: run test/Onnx/conformance.py BUILD_DIR --write")
            failed += 1
        if counts["PASS"] < LEAST_PASSING or len(results) != CASES:
            print(f"{counts['PASS']} of {len(results)} cases pass, expected at least {LEAST_PASSING} of {CASES}")
            failed += 1
    print(f"{counts['PASS']} pass, {counts['REFUSED']} refused, {counts['WRONG']} wrong, {counts['CRASH']} crashed")
    return harness.close(len(results), failed)


if __name__ == "__main__":
    sys.exit(main())
