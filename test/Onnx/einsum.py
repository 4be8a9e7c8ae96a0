"""Random equations of Einsum against numpy.einsum: operands of no dims, letters that repeat, sizes of 1 and 0, dims behind "...".

Usage: einsum.py BUILD_DIR [NAME...]

Each runs by the evaluator, as a program, and as one for a device that this machine plays.
"""
import os
import random
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

COUNT = 150
# What once lost a term: the first operand, or all, without letters.
WRITTEN = [("...,...->...", [[], [2, 3]]), (",ij->ji", [[], [2, 3]]), (",->", [[], []]), (",,i->i", [[], [], [3]]), (",ij,->ij", [[], [2, 3], []]),
           ("ii,->i", [[3, 3], []]), (",ii->i", [[], [3, 3]]), ("i,i->", [[1], [1]]), ("...,...", [[], []]), (",bik,bkj->bij", [[], [2, 3, 4], [2, 4, 5]])]


def draw_equation(choose):
    """(equation, shapes): of one to three terms, with the letters of at most four sizes."""
    letters = "ijkl"[:choose.randint(1, 4)]
    sizes = {letter: choose.choice([1, 2, 3, 5, 5, 0] if choose.random() < 0.2 else [1, 2, 3, 5]) for letter in letters}
    hidden = [choose.choice([1, 2, 3]) for _ in range(choose.randint(0, 2))] if choose.random() < 0.3 else None
    terms, shapes = [], []
    for _ in range(choose.randint(1, 3)):
        repeats = choose.random() < 0.2
        word = [choose.choice(letters) for _ in range(choose.randint(0, 3))] if repeats else choose.sample(letters, choose.randint(0, len(letters)))
        shape = [sizes[letter] if repeats or choose.random() < 0.9 else 1 for letter in word]
        if hidden is not None and choose.random() < 0.7:
            place, behind = choose.randint(0, len(word)), hidden[choose.randint(0, len(hidden)):]
            word.insert(place, "...")
            shape[place:place] = behind
        terms.append("".join(word))
        shapes.append(shape)
    used = sorted(set("".join(terms)) - {"."})
    equation = ",".join(terms)
    if choose.random() < 0.8:
        result = choose.sample(used, choose.randint(0, len(used)))
        if "..." in equation:
            result.insert(choose.randint(0, len(result)), "...")
        equation += "->" + "".join(result)
    return equation, shapes


def list_cases():
    """{name: (equation, arrays, result)}; numpy says what makes no sense."""
    choose, numbers, cases = random.Random(7), np.random.default_rng(7), {}
    given = iter(WRITTEN)
    while len(cases) < COUNT:
        equation, shapes = next(given, None) or draw_equation(choose)
        arrays = [numbers.standard_normal(shape).astype(np.float32) for shape in shapes]
        try:
            cases[f"{len(cases)} {equation} {shapes}".replace(" ", "")] = equation, arrays, np.asarray(np.einsum(equation, *arrays))
        except ValueError:
            continue
    return cases


def write(case, path):
    equation, arrays, result = case
    names = [f"x{i}" for i in range(len(arrays))]
    inputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, array.shape) for name, array in zip(names, arrays)]
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, result.shape)
    graph = helper.make_graph([helper.make_node("Einsum", names, ["y"], equation=equation)], "einsum", inputs, [output])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=8), path + ".onnx")
    np.savez(path + ".npz", **{f"in:{name}": array for name, array in zip(names, arrays)}, **{"out:y": result})


def main():
    build, wanted, _ = harness.arguments()
    os.environ["CLEAVE_CUDA_LIBRARY"] = "libcleave_emulated_cuda.so"
    with tempfile.TemporaryDirectory() as folder:
        cases = harness.select(list_cases(), wanted)
        rows = []
        for number, (name, case) in enumerate(cases.items()):
            path = os.path.join(folder, str(number))
            write(case, path)
            rows.append((name, path + ".onnx", path + ".npz", 1e-4, 1e-4))
        results = harness.each(lambda flags: harness.conformance(build, rows, *flags), [[], ["--program"], ["--emulated"]])
        texts = {f"{name}{way}": "" if status == "PASS" else f"{status} {reason}"
                 for way, result in zip(("", ", program", ", emulated"), results) for name, (status, reason) in result.items()}
        return harness.run(texts, lambda text: text)


if __name__ == "__main__":
    sys.exit(main())
