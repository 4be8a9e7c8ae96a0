"""The kit's networks in torch: the same weights and inputs, as one writes them there. Prints a line of JSON per way of running one.

Usage: peers.py KIT NAME f32|bf16|f16 ROUNDS SECONDS [eager|compile]...

`compile` is torch.compile with CUDA graphs (mode reduce-overhead). Times are those of events on the device, per call, medians; TF32 is off.
Without a device the same runs on the processor, once, so that what is computed can be compared where there is none.
"""
import json
import os
import statistics
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

import networks

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


class TorchOps(networks.Operators):
    """Tensors are made once, before a network is called, and found by name then."""

    def __init__(self, device, dtype):
        self.device, self.dtype, self.tensors, self.tables = device, dtype, {}, {}

    def keep(self, name, array):
        if name not in self.tensors:
            tensor = torch.from_numpy(array).to(self.device)
            tensor = tensor.to(self.dtype) if tensor.is_floating_point() else tensor
            # Pictures and filters as convolutions run fastest; what attention reads stays as it is.
            is_image = tensor.ndim == 4 and name not in ("q", "k", "v")
            self.tensors[name] = tensor.contiguous(memory_format=torch.channels_last) if is_image else tensor
        return self.tensors[name]

    def input(self, name, shape, dtype=networks.FLOAT, below=0):
        return self.tensors[name] if name in self.tensors else self.keep(name, networks.make_input(name, shape, dtype, below))

    def weight(self, name, shape, scale, offset=0.0):
        return self.tensors[name] if name in self.tensors else self.keep(name, networks.draw(name, shape, scale, offset))

    def relu(self, x):
        return F.relu(x)

    def gelu(self, x, tanh=False):
        return F.gelu(x, approximate="tanh" if tanh else "none")

    def silu(self, x):
        return F.silu(x)

    def softmax(self, x):
        return F.softmax(x, -1)

    def layer_norm(self, x, scale, bias):
        return F.layer_norm(x, scale.shape, scale, bias, 1e-5)

    def rms_norm(self, x, scale):
        return F.rms_norm(x, scale.shape, scale, 1e-5)

    def gather(self, table, indices):
        return F.embedding(indices, table)

    def transpose(self, x, permutation):
        y = x.permute(permutation)
        return y.contiguous() if x.ndim == 2 else y

    def sum(self, x, dims):
        return x.sum(dims)

    def mean(self, x, dims):
        return x.mean(dims)

    def attention(self, query, key, value, causal=False):
        return F.scaled_dot_product_attention(query, key, value, is_causal=causal, enable_gqa=query.shape[1] != key.shape[1])

    def rotary(self, x, seq, size):
        if seq not in self.tables:
            tables = networks.get_rotary_tables(seq, size)
            self.tables[seq] = [torch.from_numpy(table).to(self.device, self.dtype) for table in tables]
        cos, sin = self.tables[seq]
        low, high = x.chunk(2, -1)
        return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)

    def conv(self, x, weight, bias, stride, pad):
        return F.conv2d(x, weight, bias, stride, pad)

    def max_pool(self, x, kernel, stride, pad):
        return F.max_pool2d(x, kernel, stride, pad)


def measure(call, device, rounds, seconds):
    """Milliseconds of calls one by one, by events; at most about so many seconds in all."""
    if device == "cpu":
        began = time.perf_counter()
        call()
        return [(time.perf_counter() - began) * 1e3]
    ends, times = time.monotonic() + seconds, []
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    while len(times) < rounds and (len(times) < 3 or time.monotonic() < ends):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return times


def main():
    kit, name, precision, rounds, seconds, *ways = sys.argv[1:]
    with open(os.path.join(kit, "kit.json"), encoding="utf-8") as file:
        is_small = json.load(file)["small"]
    network, sizes = next(group[name] for group in networks.get_sets(is_small) if name in group)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    ops = TorchOps(device, DTYPES[precision])
    with torch.inference_mode():
        result = network(ops, *sizes)
        if os.environ.get("CLEAVE_KIT_RESULT"):
            np.save(os.environ["CLEAVE_KIT_RESULT"], result.float().cpu().numpy())
        for way in ways:
            function = lambda: network(ops, *sizes)
            if way == "compile":
                function = torch.compile(function, mode="reduce-overhead")
            times = measure(function, device, int(rounds), float(seconds))
            print(json.dumps({"way": way, "device": device, "milliseconds": statistics.median(times), "calls": len(times)}), flush=True)


if __name__ == "__main__":
    main()
