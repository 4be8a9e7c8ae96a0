"""Quantized caches of GroupQueryAttention: forms that onnxruntime refuses on processors (keys and values scaled otherwise, float8) against
the documented formula in numpy, and plans, under which caches must move as the bytes that they are, as many as a formula says.

Prints `N passed, N failed of N`; what failed comes before.
"""

import itertools
import os
import re
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.insert(1, os.path.join(sys.path[0], "..", ".."))
import harness  # noqa: E402

RNG = np.random.default_rng(5)
HEADS, FEW, SIZE, PAST = 4, 2, 16, 8
FORMS = {"int8": np.int8, "int4": np.uint8, "float8": ml_dtypes.float8_e4m3fn}


def bits_of(form):
    return 4 if form == "int4" else 8


def quantize(x, scale, form):
    """What is kept of x, as numbers of which each is one: before 4-bit ones are packed."""
    if form == "float8":
        return np.clip(x / scale, -448, 448).astype(FORMS[form])
    most = 2 ** (bits_of(form) - 1) - 1
    return np.clip(np.rint(x / scale), -most - 1, most).astype(np.int8)


def pack(numbers, form):
    """Two of 4 bits in a byte, the first in the low bits, each 8 more."""
    if form != "int4":
        return numbers
    up = (numbers + 8).astype(np.uint8)
    return up[..., ::2] | up[..., 1::2] << 4


def attend(q, k, v, past):
    """Heads [batch, heads, length, size]; query i sees keys up to past + i."""
    k, v = (np.repeat(x, HEADS // FEW, 1) for x in (k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(SIZE)
    seen = np.arange(k.shape[2]) <= np.arange(q.shape[2])[:, None] + past
    weights = np.exp(np.where(seen, scores, -np.inf) - scores.max(-1, keepdims=True))
    y = weights / weights.sum(-1, keepdims=True) @ v
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)


def make(form, types, batch, length, path):
    """A model, what it is fed, and what it must give. The cache is full before what is new."""
    def flat(heads):
        return RNG.standard_normal((batch, length, heads * SIZE)).astype(np.float32)

    def apart(x, heads):
        return x.reshape(batch, length, heads, SIZE).transpose(0, 2, 1, 3).astype(np.float64)

    feeds = {"q": flat(HEADS), "k": flat(FEW), "v": flat(FEW)}
    scales = [((0.3 if form == "int4" else 0.02) * (1 + RNG.random(1 if each == "PER_TENSOR" else (1, FEW, 1, SIZE)))).astype(np.float32)
              for each in types]
    kept, expected = [], []
    for name, scale in zip("kv", scales):
        old = quantize(RNG.standard_normal((batch, FEW, PAST, SIZE)), scale, form)
        kept.append(np.concatenate([old, quantize(apart(feeds[name], FEW), scale, form)], 2))
        feeds["p" + name] = pack(old, form)
        expected.append(pack(kept[-1], form))
    wide = [numbers.astype(np.float64) * scale for numbers, scale in zip(kept, scales)]
    expected.insert(0, attend(apart(feeds["q"], HEADS), *wide, PAST))
    feeds["lengths"] = np.full(batch, PAST + length - 1, np.int32)
    constants = {"total": np.array(PAST + length, np.int32), "ks": scales[0], "vs": scales[1]}
    names = ["q", "k", "v", "pk", "pv", "lengths", "total"] + [""] * 5 + ["ks", "vs"]
    node = helper.make_node("GroupQueryAttention", names, ["y", "ok", "ov"], domain="com.microsoft", num_heads=HEADS, kv_num_heads=FEW,
                            k_quant_type=types[0], v_quant_type=types[1], kv_cache_bit_width=bits_of(form))
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()]
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=n) for n in ("y", "ok", "ov")],
                              [numpy_helper.from_array(a, n) for n, a in constants.items()])
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    np.savez(path[:-5] + ".npz", **{n: a.view("V1") if form == "float8" and n in ("pk", "pv") else a for n, a in feeds.items()})
    return dict(zip(("y", "ok", "ov"), expected))


def run(path, *options):
    done = subprocess.run(["cleave", "run", path, "--inputs", path[:-5] + ".npz", "--outputs", path[:-5] + ".out.npz", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return "" if done.returncode == 0 else done.stdout[-400:] or "fails", done.stdout


def against_numpy(path):
    pairs = [("PER_TENSOR", "PER_CHANNEL"), ("PER_CHANNEL", "PER_TENSOR"), ("PER_CHANNEL", "PER_CHANNEL")]
    for form, types, (batch, length), who in itertools.product(FORMS, pairs, ((1, 1), (1, 3), (2, 1)), ("reference", "program")):
        wanted = make(form, types, batch, length, path)
        problem, _ = run(path, "--executor", who)
        got = {} if problem else np.load(path[:-5] + ".out.npz")
        for name, want in wanted.items() if got else ():
            if name != "y" and got[name].tobytes() != want.tobytes():
                problem = f"{name} is not what is kept"
            elif name == "y" and not np.allclose(got[name], want, rtol=1e-4, atol=1e-5):
                problem = f"y differs by {np.abs(got[name] - want).max()}"
        yield f"{form} {types} {batch}x{length} {who}", problem


def on_the_wire(path):
    """Both caches of 2 samples, on 2 ranks. Gathered, each rank sends its half of both; by heads and by samples, nothing. Of 4 bits a
    cache is half as large."""
    plans = {"samples": (["q=[a, _, _]"], 0), "heads": (["{pk,pv}=[_, a, _, _]", "q=[_, _, a]"], 0),
             "keys, gathered": (["{pk,pv}=[_, _, a, _]", "{ok,ov}=[_, _, _, _]"], 0.5)}
    for form, (label, (rules, share)), who in itertools.product(("int8", "int4"), plans.items(), ("reference", "program")):
        # With what is new keys are odd in number, so that the cache that comes out is whole.
        make(form, ("PER_CHANNEL", "PER_TENSOR"), 2, 1, path)
        problem, text = run(path, "--mesh", "a=2", *itertools.chain(*(("--shard", rule) for rule in rules)), "--check", "--executor", who)
        sent = re.search(r"sent by a rank: +([\d.]+) (B|kB)\n", text)
        expected = share * 2 * (2 * FEW * PAST * SIZE * bits_of(form) // 8)
        if not problem and (not sent or float(sent[1]) * (1000 if sent[2] == "kB" else 1) != expected):
            problem = f"sends {sent and sent[0].strip()}, expected {expected} bytes"
        yield f"{form} by {label}, {who}", problem


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        results = [*against_numpy(path), *on_the_wire(path)]
    bad = [f"{label}: {problem}" for label, problem in results if problem]
    return harness.sum_up(bad, len(results))


if __name__ == "__main__":
    sys.exit(main())
