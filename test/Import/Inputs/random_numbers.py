"""Ops of random numbers: those of Philox2x32-10, computed here from its paper, on one rank and on several.

Prints `N passed, N failed`; what failed comes before.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.insert(1, os.path.join(sys.path[0], "..", ".."))
import harness  # noqa: E402

SEED = 42.0
SHAPE = (64, 48)


def philox(counter, key):
    """Both words for 64-bit counters (Salmon et al., SC 2011)."""
    low, high, mask = counter & 0xFFFFFFFF, counter >> np.uint64(32), np.uint64(0xFFFFFFFF)
    for _ in range(10):
        product = low * np.uint64(0xD256D193)
        low, high = (product >> np.uint64(32)) ^ np.uint64(key) ^ high, product & mask
        key = (key + 0x9E3779B9) & 0xFFFFFFFF
    return low, high


def known_answers():
    """Of the authors' library, Random123, kat_vectors: philox2x32 10."""
    for counter, key, want in (((0, 0), 0, (0xFF1DAE59, 0x6CD10DF2)),
                               ((0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF, (0x2C3F628B, 0xAB4FD7AD)),
                               ((0x243F6A88, 0x85A308D3), 0x13198A2E, (0xDD7CE038, 0xF62A4C12))):
        low, high = philox(np.array([counter[0] | counter[1] << 32], np.uint64), key)
        assert (int(low[0]), int(high[0])) == want, "the model of the generator is wrong"


def units(shape, key=int(np.float32(SEED).view(np.uint32))):
    words = philox(np.arange(np.prod(shape), dtype=np.uint64).reshape(shape), key)
    return [(word >> np.uint64(8)).astype(np.float64) / 2**24 for word in words]


def cases():
    """Name, nodes, inputs, initializers, expected outputs."""
    x, p = np.linspace(-3, 3, np.prod(SHAPE), dtype=np.float32).reshape(SHAPE), np.full(SHAPE, 0.3, np.float32)
    u, v = units(SHAPE)
    normal = np.sqrt(-2 * np.log(u + 2.0**-24)) * np.cos(2 * np.pi * v)
    like = {"x": x}
    yield "uniform", ["RandomUniformLike", ["x"], {"low": -1.0, "high": 3.0}], like, {}, [u * 4 - 1]
    yield "normal", ["RandomNormalLike", ["x"], {"mean": 0.5, "scale": 2.0}], like, {}, [normal * 2 + 0.5]
    yield "bernoulli", ["Bernoulli", ["x"], {}], {"x": p}, {}, [(u < np.float32(0.3)).astype(np.float32)]
    kept = units(SHAPE, int(SEED))[0] >= 0.25
    yield ("dropout", ["Dropout", ["x", "r", "t"], {}], like, {"r": np.float32(0.25), "t": np.array(True)},
           [np.where(kept, x / 0.75, 0), kept])
    scores = np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]], np.float32))
    drawn = units((2, 3000))[0]
    share = np.cumsum(np.exp(scores), 1)
    yield ("multinomial", ["Multinomial", ["x"], {"sample_size": 3000}], {"x": scores}, {},
           [(share[:, None, :] <= drawn[:, :, None]).sum(2).clip(0, 2)])


def check_moments():
    """Of what is expected: means and deviations within 4 standard errors."""
    u, v = units((400, 400))
    n = u.size
    assert abs(u.mean() - 0.5) < 4 * (1 / 12 / n) ** 0.5 and abs(np.corrcoef(u.ravel(), v.ravel())[0, 1]) < 4 / n**0.5
    assert abs(np.corrcoef(u.ravel()[:-1], u.ravel()[1:])[0, 1]) < 4 / n**0.5
    assert ((np.histogram(u, 64, (0, 1))[0] - n / 64) ** 2).sum() / (n / 64) < 63 + 4 * (2 * 63) ** 0.5


def run(path, arrays, *options):
    out = path[:-5] + ".out.npz"
    done = subprocess.run(["cleave", "run", path, "--inputs", arrays, "--outputs", out, *options], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return (done.stdout[-400:] if done.returncode else ""), (np.load(out) if not done.returncode else {})


def main():
    known_answers()
    check_moments()
    bad, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (op, inputs, attributes), feeds, weights, wanted in cases():
            results = [f"y{i}" for i in range(len(wanted))]
            node = helper.make_node(op, inputs, results, name="n", seed=int(SEED) if op == "Dropout" else SEED, **attributes)
            infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()]
            graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=n) for n in results],
                                      [numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()])
            path = os.path.join(folder, name + ".onnx")
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
            arrays = path[:-5] + ".npz"
            np.savez(arrays, **feeds)
            rules = ["--shard", "x=[a, _]"] if name == "multinomial" else ["--shard", "x=[a, b]"]
            for options in ([], ["--executor", "program"], ["--mesh", "a=2,b=4", *rules, "--check"],
                            ["--mesh", "a=2,b=4", *rules, "--executor", "program"]):
                count += 1
                error, got = run(path, arrays, *options)
                for result, want in zip(results, wanted):
                    if not error and not np.allclose(got[result].astype(np.float64), want, rtol=1e-4, atol=1e-5):
                        error = f"{result} differs by {np.abs(got[result].astype(np.float64) - want).max()}"
                if error:
                    bad.append(f"{name} {' '.join(options)}: {error}")
    return harness.sum_up(bad, count)


if __name__ == "__main__":
    sys.exit(main())
