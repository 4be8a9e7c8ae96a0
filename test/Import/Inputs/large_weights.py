"""Imports a model with 8 GiB of external weights and prints whether they stayed out of memory.

    large_weights.py CLEAVE FOLDER

The weights are a sparse file, so they cost no disk. They may not be read, copied or printed: what is allowed is far
below what a single one of the eight needs.
"""
import os
import subprocess
import sys

from onnx import TensorProto, helper

WEIGHTS, WIDTH = 8, 16384
WEIGHT_BYTES = WIDTH * WIDTH * 4
LIMIT_KB = 400_000


def write_model(folder):
    nodes, weights = [], []
    for i in range(WEIGHTS):
        tensor = TensorProto(name=f"w{i}", dims=[WIDTH, WIDTH], data_type=TensorProto.FLOAT,
                             data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "weights.bin"), ("offset", i * WEIGHT_BYTES), ("length", WEIGHT_BYTES)):
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
        nodes.append(helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"], f"/layer.{i}/MatMul"))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, WIDTH]) for name in ("x0", f"x{WEIGHTS}")]
    graph = helper.make_graph(nodes, "large", ends[:1], ends[1:], weights)
    with open(os.path.join(folder, "large.onnx"), "wb") as file:
        file.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                     ir_version=8).SerializeToString())
    with open(os.path.join(folder, "weights.bin"), "wb") as file:
        file.truncate(WEIGHTS * WEIGHT_BYTES)


def main():
    cleave, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    write_model(folder)
    output = os.path.join(folder, "out.mlir")
    child = subprocess.Popen([cleave, "import", os.path.join(folder, "large.onnx"), "-o", output])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"cleave import: exit {child.returncode}")
    os.remove(os.path.join(folder, "weights.bin"))
    if usage.ru_maxrss >= LIMIT_KB:
        sys.exit(f"{WEIGHTS * WEIGHT_BYTES} bytes of weights took {usage.ru_maxrss} kB, limit {LIMIT_KB}")
    with open(output) as file:
        sys.stdout.write(file.read())


if __name__ == "__main__":
    main()
