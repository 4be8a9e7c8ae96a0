"""Random small networks of windows, against onnxruntime: convolutions, depthwise and grouped ones, and pools of all kinds, with few rows or one,
over one to three dims; every stride, dilation and pad (none alike, `auto_pad`, larger than a kernel), and pictures whose last band of rows is
short; in networks from seed 401 on transposed convolutions, too. They run as programs, each kernel between pages that fault (test/Codegen/Guards.h).

    windows.py BUILD_DIR [--emulated] [SEED...]

With --emulated for CUDA, on a device that this machine plays, which checks every access. With numbers only these seeds.
"""
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

ort.set_default_logger_severity(4)
# Seeds of networks without transposed convolutions, and how many have them.
COUNT, EMULATED = 400, 150
TRANSPOSED, TRANSPOSED_EMULATED = 100, 40
RTOL, ATOL = 1e-3, 1e-4
# Of one dim; rows of one are what went wrong once.
EXTENTS = [1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 13]
CHANNELS = [1, 2, 3, 4, 8, 16, 16, 17, 24, 33]
# Bytes of a band's input in kernels of convolutions (PixelTile.cpp, ConvolutionTile.cpp) and of pools (PoolTile.cpp).
BANDS = [512 << 10, 256 << 10, 64 << 10]
MOST_NODES = 4


class Network:
    """One network by seed: a chain of windows, with what stands between them in models."""

    def __init__(self, seed, is_small):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []
        self.dims = int(self.pick([1, 2, 2, 2, 2, 3]))
        self.name = "x"
        self.shape = self.draw_shape(is_small)
        self.input = list(self.shape)
        for _ in range(1 + self.below(MOST_NODES)):
            self.pick([self.conv, self.conv, self.conv, self.pool, self.pool, self.between] if seed <= COUNT else [self.conv_transpose, self.conv_transpose, self.conv, self.between])()
        if not self.nodes:
            self.conv()

    def below(self, bound):
        return int(self.random.integers(bound))

    def pick(self, values):
        return values[self.below(len(values))]

    def chance(self, percent):
        return self.below(100) < percent

    def draw_shape(self, is_small):
        """One in six pictures has bands of a few rows, and now and then one row behind the last whole one."""
        if is_small or self.dims != 2 or not self.chance(16):
            return [1 + self.below(2), self.pick(CHANNELS), *(self.pick(EXTENTS) for _ in range(self.dims))]
        channels, rows = self.pick([1, 2, 64, 256]), 1 + self.below(5)
        width = min(self.pick(BANDS) // 4 // channels // rows, 4096)
        return [1, channels, rows * (1 + self.below(3)) + self.below(2), width]

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        array = self.random.standard_normal(shape) / np.sqrt(max(np.prod(shape[1:]), 1))
        self.weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def add(self, op, inputs, shape, **attributes):
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        self.name, self.shape = output, list(shape)

    def window(self, is_pool):
        """Attributes of a window, and the extents of its result."""
        kernel, strides, dilations, low, high = ([] for _ in range(5))
        auto = self.pick(["SAME_UPPER", "SAME_LOWER", "VALID"]) if self.chance(25) else "NOTSET"
        for extent in self.shape[2:]:
            size, stride, dilation = self.pick([1, 2, 3, 3, 3, 4, 5, 7]), self.pick([1, 1, 1, 2, 2, 3]), self.pick([1, 1, 1, 2, 3])
            # onnxruntime wants less padding than a pool's window has; of a convolution there may be as much as one likes.
            pads = [self.below(size if is_pool else size + 3) for _ in range(2)]
            if is_pool:  # each window has an element of the picture
                dilation = 1
            span = (size - 1) * dilation + 1
            if auto.startswith("SAME"):  # as onnxruntime has it
                stride, dilation = min(stride, size), 1
            elif span > extent + (0 if auto == "VALID" else sum(pads)):
                size = dilation = 1
            kernel, strides, dilations = kernel + [size], strides + [stride], dilations + [dilation]
            low, high = low + [pads[0] if size > 1 or not is_pool else 0], high + [pads[1] if size > 1 or not is_pool else 0]
        ceil = is_pool and auto == "NOTSET" and self.chance(30)
        result = []
        for i, extent in enumerate(self.shape[2:]):
            span = (kernel[i] - 1) * dilations[i] + 1
            padded = extent + low[i] + high[i] if auto == "NOTSET" else extent
            count = -(-extent // strides[i]) if auto.startswith("SAME") else (padded - span) // strides[i] + 1
            if ceil and (padded - span) % strides[i] and count * strides[i] < extent + low[i]:
                count += 1
            result.append(count)
        attributes = {"kernel_shape": kernel, "strides": strides}
        attributes |= {"pads": low + high} if auto == "NOTSET" else {"auto_pad": auto}
        if not is_pool:
            attributes["dilations"] = dilations
        return attributes | ({"ceil_mode": 1} if ceil else {}), result

    def conv(self):
        channels = self.shape[1]
        attributes, result = self.window(False)
        out = channels if self.chance(30) else self.pick(CHANNELS)
        groups = channels if out == channels and self.chance(60) else 2 if channels % 2 == out % 2 == 0 and self.chance(20) else 1
        if np.prod(result) * out * channels // groups * np.prod(attributes["kernel_shape"]) > 1e8:
            return
        inputs = [self.name, self.weight(out, channels // groups, *attributes["kernel_shape"])]
        if self.chance(60):
            inputs.append(self.weight(out))
        self.add("Conv", inputs, [self.shape[0], out, *result], group=groups, **attributes)

    def conv_transpose(self):
        """What is padded is cut off; behind the last window there may be more (`output_padding`)."""
        channels, attributes, result = self.shape[1], {name: [] for name in ("kernel_shape", "strides", "dilations", "output_padding")}, []
        low, high = [], []
        for extent in self.shape[2:]:
            size, stride, dilation = self.pick([1, 2, 3, 3, 4, 5]), self.pick([1, 2, 2, 3, 4]), self.pick([1, 1, 1, 2, 3])
            whole, more = (extent - 1) * stride + (size - 1) * dilation + 1, self.below(stride)
            pads = [self.below(min(size * dilation, (whole + more) // 2 + 1)) for _ in range(2)]
            if sum(pads) >= whole + more:
                pads = [0, 0]
            for name, value in zip(attributes, (size, stride, dilation, more)):
                attributes[name].append(value)
            low, high = low + [pads[0]], high + [pads[1]]
            result.append(whole + more - sum(pads))
        groups = 2 if channels % 2 == 0 and self.chance(30) else 1
        out = self.pick(CHANNELS)
        if np.prod(result) * out * groups * channels * np.prod(attributes["kernel_shape"]) > 1e7:
            return
        inputs = [self.name, self.weight(channels, out, *attributes["kernel_shape"])]
        if self.chance(60):
            inputs.append(self.weight(out * groups))
        self.add("ConvTranspose", inputs, [self.shape[0], out * groups, *result], group=groups, pads=low + high, **attributes)

    def pool(self):
        attributes, result = self.window(True)
        op = self.pick(["MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"])
        if op == "AveragePool" and self.chance(40):
            attributes["count_include_pad"] = 1
        if op == "LpPool":
            attributes["p"] = self.pick([1, 2, 3])
        self.add(op, [self.name], [*self.shape[:2], *result], **attributes)

    def between(self):
        op = self.pick(["Relu", "Sigmoid", "Add", "Transpose"])
        if op == "Transpose" and self.dims == 2:
            self.add(op, [self.name], [*self.shape[:2], self.shape[3], self.shape[2]], perm=[0, 1, 3, 2])
        elif op == "Add":
            # onnxruntime counts one window too many before it runs, where rounded up the last one is all padding.
            rounded = any(attribute.name == "ceil_mode" for node in self.nodes for attribute in node.attribute)
            extents = [1] * self.dims if rounded else self.shape[2:]
            self.add(op, [self.name, self.weight(self.shape[1], *extents)], self.shape)
        else:
            self.add("Relu" if op == "Transpose" else op, [self.name], self.shape)

    def build(self):
        tensor = lambda name, shape: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "windows", [tensor("x", self.input)], [tensor(self.name, self.shape)], self.weights)
        return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 20)])


def prepare(seed, folder, is_small):
    """A row for cleave-conformance: what onnxruntime computes is what is expected."""
    network = Network(seed, is_small)
    model, path = network.build(), os.path.join(folder, f"{seed}.onnx")
    onnx.save(model, path)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    x = network.random.standard_normal(network.input).astype(np.float32)
    (expected,) = session.run(None, {"x": x})
    arrays = os.path.join(folder, f"{seed}.npz")
    np.savez(arrays, **{"in:x": x, f"out:{network.name}": expected})
    return str(seed), path, arrays, RTOL, ATOL


def main():
    build, seeds, flags = harness.arguments("--emulated")
    is_emulated = "--emulated" in flags
    count, transposed = (EMULATED, TRANSPOSED_EMULATED) if is_emulated else (COUNT, TRANSPOSED)
    drawn = [harness.draw_seeds(1, count), harness.draw_seeds(COUNT + 1, transposed)]
    seeds = [int(seed) for seed in seeds] or [seed for first, number in drawn for seed in range(first, first + number)]
    os.environ["CLEAVE_CUDA_LIBRARY"] = "libcleave_emulated_cuda.so"
    with tempfile.TemporaryDirectory() as folder:
        rows = [prepare(seed, folder, is_emulated) for seed in seeds]
        halves = harness.each(lambda half: harness.conformance(build, half, "--emulated" if is_emulated else "--guards"), [rows[::2], rows[1::2]])
    results = {**halves[0], **halves[1]}
    for name, (status, reason) in results.items():
        if status != "PASS":
            print(f"FAILED seed {name}: {status} {reason}")
    failed = sum(status != "PASS" for status, _ in results.values()) + len(rows) - len(results)
    if not is_emulated:
        print("{} kernels with {} operands and {} temporaries ran between guards".format(*harness.count_guarded(reason for _, reason in results.values())))
    return harness.close(len(rows), failed)


if __name__ == "__main__":
    sys.exit(main())
