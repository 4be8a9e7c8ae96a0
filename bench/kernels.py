"""Times kernels of lib/Codegen: ns per element of the largest tensor, thread CPU time, least of 12 rounds; and compiling.

Usage: kernels.py BUILD_DIR [--isa CPU]            elementwise ops and reductions
       kernels.py BUILD_DIR --peer [NAME...]       contractions, convolutions and attention, beside onnxruntime on the same
                                                   op with one thread: rounds of both by turns, least of each

Never a test. Prints tables for docs/benchmarks.md.
"""
import os
import subprocess
import sys
import tempfile
import time

ROUNDS = 3


def run(build, path, *rest):
    """{name: figure} of cleave-kernels --time."""
    done = subprocess.run([f"{build}/bin/cleave-kernels", path, "--time", *rest], stdout=subprocess.PIPE, text=True,
                          check=True)
    return dict(line.split("\t") for line in done.stdout.splitlines())


def tensor(*shape, element="f32"):
    return f"tensor<{'x'.join(map(str, [*shape, element]))}>"


def function(name, arguments, result, body):
    parameters = ", ".join(f"%{key}: {type}" for key, type in arguments.items())
    return f"func.func @{name}({parameters}) -> {result} {{\n{body}\nreturn %y : {result}\n}}\n"


def product(m, k, n, width=16):
    """(name, text, elements of the largest tensor, flops, ONNX)"""
    import onnx.helper as h
    x, w, y, packed = tensor(m, k), tensor(k, n), tensor(m, n), tensor(-(-n // width), k, width, 1)
    body = (f"%w = exec.unpack %p order [0, 1] batch 0 width {width} interleave 1 : ({packed}) -> {w}\n"
            f'%e = nn.einsum %x, %w "mk,kn->mn" : ({x}, {w}) -> {y}\n'
            f"%y = nn.add %e, %b : ({y}, {tensor(n)}) -> {y}")
    nodes = [h.make_node("MatMul", ["x", "w"], ["e"]), h.make_node("Add", ["e", "b"], ["y"])]
    return (f"product_{m}x{k}x{n}", function(f"product_{m}x{k}x{n}", {"x": x, "p": packed, "b": tensor(n)}, y, body),
            max(m * k, -(-n // width) * width * k, m * n), 2 * m * k * n,
            (nodes, {"x": (m, k)}, {"w": (k, n), "b": (n,)}, (m, n)))


def convolution(size, channels, out, kernel, stride=1, groups=1, width=16, last=False):
    """With channels last here, where `last`; the peer always has them first, and chooses by itself."""
    import onnx.helper as h
    pad, result = kernel // 2, (size + 2 * (kernel // 2) - kernel) // stride + 1
    x, w = tensor(1, channels, size, size), tensor(out, channels // groups, kernel, kernel)
    y, b = tensor(1, out, result, result), tensor(out)
    name = f"conv_{size}_{channels}_{out}_k{kernel}s{stride}" + (f"g{groups}" if groups > 1 else "")
    arguments, head = {"x": x, "w": w, "b": b}, ""
    largest = max(channels * size * size, out * result * result)
    if groups == 1:
        packed = tensor(-(-out // width), kernel, kernel, channels, width, 1)
        arguments = {"x": x, "p": packed, "b": b}
        head = f"%w = exec.unpack %p order [2, 3, 1, 0] batch 0 width {width} interleave 1 : ({packed}) -> {w}\n"
        largest = max(largest, -(-out // width) * width * channels * kernel * kernel)
    if last and groups > 1:
        packed = tensor(kernel, kernel, channels // groups, out)
        arguments = {"x": x, "p": packed, "b": b}
        head = f"%w = exec.unpack %p order [2, 3, 1, 0] batch 0 width 0 interleave 1 : ({packed}) -> {w}\n"
    if last:
        arguments["x"] = tensor(1, size, size, channels)
        head += f"%t = nn.transpose %x [0, 3, 1, 2] : ({arguments['x']}) -> {x}\n"
    body = head + (f"%c = nn.conv %{'t' if last else 'x'}, %w, %b strides [{stride}, {stride}] pads_low [{pad}, {pad}] pads_high [{pad}, {pad}] "
                   f"dilations [1, 1] groups {groups} : ({x}, {w}, {b}) -> {y}\n%{'r' if last else 'y'} = nn.relu %c : ({y}) -> {y}")
    if last:
        name += "_last"
        body += f"\n%y = nn.transpose %r [0, 2, 3, 1] : ({y}) -> {(y := tensor(1, result, result, out))}"
    nodes = [h.make_node("Conv", ["x", "w", "b"], ["c"], strides=[stride] * 2, pads=[pad] * 4, group=groups),
             h.make_node("Relu", ["c"], ["y"])]
    return (name, function(name, arguments, y, body), largest,
            2 * out * result * result * channels // groups * kernel * kernel,
            (nodes, {"x": (1, channels, size, size)}, {"w": (out, channels // groups, kernel, kernel), "b": (out,)},
             (1, out, result, result)))


def attention(batch, queries, keys, heads, size):
    import onnx.helper as h
    q, k = tensor(batch, heads, queries, size), tensor(batch, heads, keys, size)
    m = tensor(batch, 1, 1, keys)
    name = f"attention_{batch}x{heads}_{queries}x{keys}x{size}"
    body = f"%y = nn.attention %q, %k, %v mask %m scale 0.125 : ({q}, {k}, {k}, {m}) -> {q}"
    nodes = [h.make_node("MatMul", ["q", "k"], ["s"]), h.make_node("Mul", ["s", "scale"], ["t"]),
             h.make_node("Add", ["t", "m"], ["u"]), h.make_node("Softmax", ["u"], ["p"], axis=-1),
             h.make_node("MatMul", ["p", "v"], ["y"])]
    return (name, function(name, {"q": q, "k": k, "v": k, "m": m}, q, body), batch * heads * max(queries, keys) * size,
            4 * batch * heads * queries * keys * size,
            (nodes, {"q": (batch, heads, queries, size), "k": (batch, heads, size, keys), "v": (batch, heads, keys, size),
                     "m": (batch, 1, 1, keys)}, {"scale": ()}, (batch, heads, queries, size)))


def cases():
    for shape in [(32, 384, 1536), (256, 384, 1152), (256, 1536, 384), (1024, 1536, 384), (128, 768, 3072), (128, 3072, 768),
                  (1, 768, 3072)]:
        yield product(*shape)
    for shape in [(56, 64, 64, 3), (28, 128, 128, 3), (14, 256, 256, 3), (7, 512, 512, 3), (56, 64, 256, 1), (14, 1024, 256, 1),
                  (7, 512, 2048, 1), (224, 3, 64, 7, 2), (56, 128, 128, 3, 2), (80, 96, 96, 3, 1, 96), (80, 96, 96, 5, 2, 96),
                  (160, 16, 32, 3, 2), (320, 3, 16, 3, 2), (80, 32, 32, 3), (20, 128, 128, 3), (40, 192, 192, 1), (160, 96, 24, 3), (7, 256, 256, 3)]:
        yield convolution(*shape)
        yield convolution(*shape, last=True)
    for shape in [(1, 32, 32, 12, 32), (8, 128, 128, 12, 32), (1, 128, 128, 12, 64), (1, 1, 512, 12, 64)]:
        yield attention(*shape)


def peer(model, inputs, outputs):
    """A function that gives the least seconds of some runs of onnxruntime."""
    import numpy as np
    import onnx
    import onnxruntime
    nodes, arguments, weights, result = model
    draw = np.random.default_rng(1)
    graph = onnx.helper.make_graph(
        nodes, "g", [onnx.helper.make_tensor_value_info(key, 1, shape) for key, shape in arguments.items()],
        [onnx.helper.make_tensor_value_info("y", 1, result)],
        [onnx.numpy_helper.from_array(draw.standard_normal(shape).astype("float32"), key) for key, shape in weights.items()])
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(made.SerializeToString(), options)
    feeds = {key: draw.standard_normal(shape).astype("float32") for key, shape in arguments.items()}
    binding = session.io_binding()
    for key, array in feeds.items():
        binding.bind_cpu_input(key, array)
    binding.bind_output("y")

    def least():
        best, end = 1e9, time.perf_counter() + 0.3
        while time.perf_counter() < end:
            start = time.thread_time()
            session.run_with_iobinding(binding)
            best = min(best, time.thread_time() - start)
        return best
    return least


def compare(build, names):
    print("| kernel | us | GF/s | onnxruntime us | ratio | compile ms |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, text, largest, flops, model in cases():
            if names and name not in names:
                continue
            path = os.path.join(folder, "kernel.mlir")
            with open(path, "w") as file:
                file.write(text)
            theirs = peer(model, None, None)
            own, other, compiling = 1e9, 1e9, 0
            for _ in range(ROUNDS):
                figures = run(build, path)
                own = min(own, float(figures[name]) * largest * 1e-9)
                compiling = figures["compiling, ms a kernel"]
                other = min(other, theirs())
            print(f"| {name.replace('_', ' ')} | {own * 1e6:.1f} | {flops / own * 1e-9:.0f} | {other * 1e6:.1f} | "
                  f"{other / own:.2f} | {compiling} |", flush=True)


def main():
    build, rest = sys.argv[1], sys.argv[2:]
    if "--peer" in rest:
        return compare(build, [word for word in rest if word != "--peer"])
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels.mlir")
    print("| kernel | ns an element |\n|---|---|")
    for name, figure in run(build, path, *rest).items():
        print(f"| {name.replace('_', ' ')} | {figure} |")


if __name__ == "__main__":
    main()
