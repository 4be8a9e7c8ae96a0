"""Decisions at the sizes of real models: what is sent, against the formula of the form that is best there.

Usage: sizes.py BUILD_DIR [--fix-table] [NAME...]

A case is a model of a few ops, written in the language of test/Golden/case.py with names for sizes, and one plan. At its real size it is
sharded, not run (weights are arguments: nothing large is written), and every kind of collective is held against a formula. At its
small size it is run as well, and every output must be onnxruntime's. docs/generated/sizes.md must be the table of this run.
"""
import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from typing import Callable

import numpy as np
import onnx
import onnxruntime

sys.path[1:1] = [os.path.dirname(os.path.dirname(sys.path[0])), os.path.join(os.path.dirname(os.path.dirname(sys.path[0])), "Golden")]
import harness
from case import Case as Model
from case import build as build_model
from case import draw, write_plan
from check import compare
from formulas import F32, Sent

MESH = "x=8"


@dataclass
class Case:
    about: str
    model: Callable  # sizes -> the model's lines
    real: dict
    small: dict
    formula: Callable  # (sizes, p) -> Sent, at the real size
    decision: str  # what the formula stands for
    other: Callable = None  # the form that is best at another size, and sends more here
    waits_for: str = ""  # what may not be there yet: words of the refusal
    asks: str = ""  # lines of the plan beside rules


def split(name, batch, length, heads, each):
    """The line that makes NAME by heads."""
    return f"{name} = Transpose(Reshape(MatMul(hidden, {name}.weight), [{batch}, {length}, {heads}, {each}]), perm=[0, 2, 1, 3])\n"


def mlp(s):
    """Two products, both weights cut as the case says."""
    return f"""
        hidden: f32[{s['tokens']}, {s['h']}] [{s['rows']}, _] ~ normal(0.1)
        up.weight: f32[{s['h']}, {s['f']}] {s['up']} ~ normal(0.05)
        down.weight: f32[{s['f']}, {s['h']}] {s['down']} ~ normal(0.05)
        output: f32[{s['tokens']}, {s['h']}] [{s['rows']}, _]
        output = MatMul(Gelu(MatMul(hidden, up.weight)), down.weight)
    """


def attention(s):
    """Causal attention over tokens that are cut; `kv` heads of keys and values serve `heads` of queries."""
    width = s["heads"] * s["d"]
    return f"""
        hidden: f32[{s['b']}, {s['s']}, {width}] [_, x, _] ~ normal(1)
        query.weight: f32[{width}, {width}] ~ fan_in({width})
        key.weight: f32[{width}, {s['kv'] * s['d']}] ~ fan_in({width})
        value.weight: f32[{width}, {s['kv'] * s['d']}] ~ fan_in({width})
        out.weight: f32[{width}, {width}] ~ fan_in({width})
        output: f32[{s['b']}, {s['s']}, {width}] [_, x, _]
        """ + "".join(split(name, s["b"], s["s"], s[heads], s["d"])
                      for name, heads in [("query", "heads"), ("key", "kv"), ("value", "kv")]) + f"""
        context = Transpose(Attention(query, key, value, is_causal=1), perm=[0, 2, 1, 3])
        output = MatMul(Reshape(context, [{s['b']}, {s['s']}, {width}]), out.weight)
    """


def sliding(s):
    """The same where a token sees `w` tokens, itself among them."""
    seen = f"""
        place = Range(0, {s['s']}, 1)
        token = Unsqueeze(place, [1])
        seen = And(LessOrEqual(place, token), Greater(place, Sub(token, {s['w']})))
        context ="""
    return attention(s).replace("context =", seen).replace("Attention(query, key, value, is_causal=1)", "Attention(query, key, value, seen)")


def written_out(s):
    """The same without a mask, as exporters write it: scores, softmax, context."""
    scores = f"Mul(MatMul(query, Transpose(key, perm=[0, 1, 3, 2])), {s['d'] ** -0.5})"
    return attention(s).replace("Attention(query, key, value, is_causal=1)", f"MatMul(Softmax({scores}, axis=-1), value)")


def sliding_written_out(s):
    """The same as products and softmax; what a token does not see gets a number that excludes."""
    scores = f"Where(seen, Mul(MatMul(query, Transpose(key, perm=[0, 1, 3, 2])), {s['d'] ** -0.5}), -1e38)"
    return sliding(s).replace("Attention(query, key, value, seen)", f"MatMul(Softmax({scores}, axis=-1), value)")


def decode(s):
    """One token of each text, and a cache of keys and values."""
    return f"""
        query: f32[{s['b']}, {s['heads']}, {s['q']}, {s['d']}] [_, {s['cut_heads']}, _, _] ~ normal(1)
        key_cache: f32[{s['b']}, {s['kv']}, {s['s']}, {s['d']}] [_, {s['cut_heads']}, {s['cut']}, _] ~ normal(1)
        value_cache: f32[{s['b']}, {s['kv']}, {s['s']}, {s['d']}] [_, {s['cut_heads']}, {s['cut']}, _] ~ normal(1)
        out.weight: f32[{s['heads'] * s['d']}, {s['heads'] * s['d']}] [{s['cut_heads']}, _] ~ fan_in({s['heads'] * s['d']})
        output: f32[{s['b']}, {s['q']}, {s['heads'] * s['d']}] [_, _, _]
        context = Transpose(Attention(query, key_cache, value_cache), perm=[0, 2, 1, 3])
        output = MatMul(Reshape(context, [{s['b']}, {s['q']}, {s['heads'] * s['d']}]), out.weight)
    """


def layer(s):
    """A layer of a transformer, Megatron's way; between blocks tokens are cut as the case says."""
    width = s["heads"] * s["d"]
    return f"""
        hidden: f32[{s['b']}, {s['s']}, {width}] [_, {s['cut']}, _] ~ normal(1)
        query.weight: f32[{width}, {width}] [_, x] ~ fan_in({width})
        key.weight: f32[{width}, {width}] [_, x] ~ fan_in({width})
        value.weight: f32[{width}, {width}] [_, x] ~ fan_in({width})
        out.weight: f32[{width}, {width}] [x, _] ~ fan_in({width})
        up.weight: f32[{width}, {4 * width}] [_, x] ~ fan_in({width})
        down.weight: f32[{4 * width}, {width}] [x, _] ~ fan_in({4 * width})
        scale.weight: f32[{width}] [_] ~ normal(1)
        """ + "".join(split(name, s["b"], s["s"], s["heads"], s["d"]) for name in ["query", "key", "value"]) + f"""
        context = Transpose(Attention(query, key, value, is_causal=1), perm=[0, 2, 1, 3])
        residual: [_, {s['cut']}, _] = Add(hidden, MatMul(Reshape(context, [{s['b']}, {s['s']}, {width}]), out.weight))
        normed = LayerNormalization(residual, scale.weight)
        output: f32[{s['b']}, {s['s']}, {width}] [_, {s['cut']}, _] = Add(residual, MatMul(Gelu(MatMul(normed, up.weight)), down.weight))
    """


def head(s):
    """Embedding and head over a cut vocabulary."""
    return f"""
        ids: i64[{s['b']}, {s['s']}] [_, _] ~ integers({s['v']})
        table.weight: f32[{s['v']}, {s['h']}] [x, _]{s.get('uneven', '')} ~ normal(1)
        head.weight: f32[{s['h']}, {s['v']}] [_, x]{s.get('uneven', '')} ~ fan_in({s['h']})
        logits: f32[{s['b']}, {s['s']}, {s['v']}] [_, _, x]{s.get('uneven', '')}
        logits = MatMul(Tanh(Gather(table.weight, ids, axis=0)), head.weight)
    """


def loss(s):
    """Cross entropy of logits over a cut vocabulary."""
    return f"""
        logits: f32[{s['tokens']}, {s['v']}] [_, x] ~ normal(1)
        labels: i64[{s['tokens']}, 1] [_, _] ~ integers({s['v']})
        loss: f32[{s['tokens']}, 1] [_, _]
        loss = Neg(GatherElements(LogSoftmax(logits, axis=1), labels, axis=1))
    """


def pictures(s):
    """Convolutions of 3 x 3 over cut rows."""
    text = f"image: f32[{s['b']}, {s['c']}, {s['side']}, {s['side']}] [_, _, x, _] ~ normal(1)\n"
    value = "image"
    for number in range(s["depth"]):
        text += f"w{number}.weight: f32[{s['c']}, {s['c']}, 3, 3] ~ fan_in({9 * s['c']})\n"
        value = f"Relu(Conv({value}, w{number}.weight, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))"
    return text + f"output: f32[{s['b']}, {s['c']}, {s['side']}, {s['side']}] [_, _, x, _] = {value}\n"


def moe(s):
    """Experts for groups of tokens whose places are given."""
    return f"""
        tokens: f32[{s['g']}, {s['s']}, {s['h']}] [x, _, _] ~ normal(1)
        dispatch: f32[{s['g']}, {s['s']}, {s['e']}, {s['c']}] [x, _, _, _] ~ bool(0.1)
        up.weight: f32[{s['e']}, {s['h']}, {s['f']}] [x, _, _] ~ fan_in({s['h']})
        down.weight: f32[{s['e']}, {s['f']}, {s['h']}] [x, _, _] ~ fan_in({s['f']})
        output: f32[{s['g']}, {s['s']}, {s['h']}] [x, _, _]
        sent = Einsum(dispatch, tokens, equation="gsec,gsh->egch")
        found = Einsum(Relu(Einsum(sent, up.weight, equation="egch,ehf->egcf")), down.weight, equation="egcf,efh->egch")
        output = Einsum(dispatch, found, equation="gsec,egch->gsh")
    """


def activation(s):
    """M: what a layer hands to the next, in bytes."""
    return s["b"] * s["s"] * s["heads"] * s["d"] * F32


def gather_weights(s, p):
    """Fully sharded: each of the two weights, once."""
    return Sent().all_gather(p, s["h"] * s["f"] * F32, 2)


def send_activations(s, p):
    """Rows of tokens become columns, to meet the rows of the first weight; its result is a sum that is scattered over columns, which are
    the second weight's rows, and the sum behind that over rows."""
    tokens = s["tokens"] * F32
    return Sent().all_to_all(p, tokens * s["h"]).reduce_scatter(p, tokens * s["f"]).reduce_scatter(p, tokens * s["h"])


def ulysses(s, p):
    """Tokens for heads: queries and results, keys and values."""
    return Sent().all_to_all(p, activation(s), 2).all_to_all(p, activation(s) * s["kv"] / s["heads"], 2)


def gather_keys(s, p):
    return Sent().all_gather(p, activation(s) * s["kv"] / s["heads"], 2)


def go_round(s, p):
    """Liu and others, 2023: a rank passes its p-th of keys and of values on, p - 1 times."""
    return Sent().window(activation(s) * s["kv"] / s["heads"] / p, 2 * (p - 1))


def edges(s, p):
    """A rank gives the w - 1 tokens that the first query of its neighbor sees, of keys and of values."""
    return Sent().window((s["w"] - 1) * s["b"] * s["kv"] * s["d"] * F32, 2)


def result(s):
    """The result of attention by `q` queries, in bytes."""
    return s["b"] * s["q"] * s["heads"] * s["d"] * F32


def flash_decoding(s, p):
    """Every rank attends to its keys: maxima, sums of exponentials and results are reduced. The product behind that is cut by columns,
    and its result gathered."""
    return Sent().all_reduce(p, result(s) / s["d"], 2).all_reduce(p, result(s)).all_gather(p, result(s))


def exchange_cache(s, p):
    """Keys and values change tokens for heads, the result heads for rows of the product behind, which is gathered."""
    cache = s["b"] * s["kv"] * s["s"] * s["d"] * F32
    return Sent().all_to_all(p, cache, 2).all_to_all(p, result(s)).all_gather(p, result(s))


def two_reduces(s, p):
    return Sent().all_reduce(p, activation(s), 2)


def gathers_and_scatters(s, p):
    return Sent().all_gather(p, activation(s), 2).reduce_scatter(p, activation(s), 2)


def weights_of_layer(s, p):
    """All six weights are gathered, 12 H^2, and attention exchanges tokens for heads."""
    square = (s["heads"] * s["d"]) ** 2 * F32
    sent = Sent().all_gather(p, square, 4).all_gather(p, 4 * square, 2)
    return sent.all_to_all(p, activation(s), 4)


def look_up(s, p):
    """Each rank has the tokens of its rows of the table; the head sends nothing."""
    return Sent().all_reduce(p, s["b"] * s["s"] * s["h"] * F32)


def three_numbers(s, p):
    """The maximum, the sum of exponentials and the label's logit of each token, never the logits."""
    return Sent().all_reduce(p, s["tokens"] * F32, 3)


def halo(s, p):
    """A rank gives a row to each of two neighbors, from each convolution's operand."""
    return Sent().window(2 * s["b"] * s["c"] * s["side"] * F32, s["depth"])


def to_samples(s, p):
    """Rows are exchanged for samples, once there and once back."""
    return Sent().all_to_all(p, s["b"] * s["c"] * s["side"] ** 2 * F32, 2)


def to_experts(s, p):
    """Places in the experts, filled or not, go there and back."""
    return Sent().all_to_all(p, s["g"] * s["e"] * s["c"] * s["h"] * F32, 2)


def all_tokens(s, p):
    """All tokens are gathered, and sums of what experts found scattered; which place a token has goes to the place's expert."""
    tokens = s["g"] * s["s"] * F32
    return Sent().all_gather(p, tokens * s["h"]).reduce_scatter(p, tokens * s["h"]).all_to_all(p, tokens * s["e"] * s["c"])


FSDP = {"rows": "x", "up": "[x, _]", "down": "[x, _]"}
WIDE, NARROW = {**FSDP, "h": 4096, "f": 16384}, {**FSDP, "h": 64, "f": 256}
LONG, SHORT = {"b": 1, "s": 131072, "heads": 32, "d": 128}, {"b": 1, "s": 32, "heads": 8, "d": 4}
CACHE, SMALL_CACHE = {**LONG, "kv": 8, "cut": "x", "cut_heads": "_"}, {**SHORT, "kv": 2, "cut": "x", "cut_heads": "_"}
BLOCK, SMALL_BLOCK = {"heads": 32, "d": 128, "cut": "_"}, {"b": 2, "s": 16, "heads": 8, "d": 4, "cut": "_"}
WORDS, FEW_WORDS = {"b": 1, "s": 2048, "h": 4096}, {"b": 1, "s": 8, "h": 16, "v": 64}
PICTURE, SMALL_PICTURE = {"b": 1, "c": 64, "depth": 4}, {"b": 1, "c": 4, "side": 16, "depth": 2}
MOE, SMALL_MOE = {"g": 8, "h": 4096, "e": 64, "c": 64, "f": 16384}, {"g": 8, "s": 8, "h": 8, "e": 8, "c": 2, "f": 16}

CASES = {
    "fsdp-131072-tokens": Case("fully sharded products of 4,096 x 16,384; batch 64 of 2,048 tokens", mlp, {**WIDE, "tokens": 131072},
                               {**NARROW, "tokens": 64}, gather_weights, "gathers weights", send_activations),
    "fsdp-64-tokens": Case("the same; one token of each of 64 texts", mlp, {**WIDE, "tokens": 64}, {**NARROW, "tokens": 8},
                           send_activations, "sends activations, and leaves weights where they are", gather_weights),
    "context-32-heads": Case("attention over 131,072 cut tokens; 32 heads of 128", attention, {**LONG, "kv": 32}, {**SHORT, "kv": 8},
                             ulysses, "exchanges tokens for heads", gather_keys),
    "context-written-out": Case("the same as products and softmax, without a mask", written_out, {**LONG, "kv": 32}, {**SHORT, "kv": 8},
                                ulysses, "exchanges tokens for heads", gather_keys),
    "context-8-kv": Case("the same with 8 heads of keys and values", attention, {**LONG, "kv": 8}, {**SHORT, "kv": 8}, ulysses,
                         "exchanges tokens for heads", gather_keys),
    "context-2-kv": Case("the same with 2, fewer than ranks", attention, {**LONG, "kv": 2}, {**SHORT, "kv": 2}, gather_keys,
                         "gathers keys and values", ulysses),
    "ring-32-heads": Case("32 heads of keys and values, in a ring as the plan asks", attention, {**LONG, "kv": 32}, {**SHORT, "kv": 8}, go_round,
                          "passes keys and values round", asks="attention: ring"),
    "ring-2-kv": Case("2 heads of keys and values, in a ring", attention, {**LONG, "kv": 2}, {**SHORT, "kv": 2}, go_round,
                      "passes keys and values round", ulysses, asks="attention: ring"),
    "window-32768": Case("attention over 32,768 cut tokens in windows of 4,096; 32 heads, 8 of keys and values", sliding,
                         {**LONG, "s": 32768, "kv": 8, "w": 4096}, {**SHORT, "kv": 8, "w": 7}, edges,
                         "gives 4,095 tokens to a neighbor", ulysses),
    "window-written-out": Case("the same as products and softmax, 32 heads of each, as the plan asks", sliding_written_out,
                               {**LONG, "s": 32768, "kv": 32, "w": 4096}, {**SHORT, "kv": 8, "w": 7}, edges,
                               "gives 4,095 tokens to a neighbor", gather_keys, asks="attention: gather"),
    "decode-cut-tokens": Case("one token of 8 texts, a cache of 131,072 tokens that is cut along them", decode, {**CACHE, "b": 8, "q": 1},
                              {**SMALL_CACHE, "q": 1}, flash_decoding, "attends to its keys, and combines", exchange_cache),
    "decode-cut-heads": Case("the same, the cache cut by heads", decode, {**CACHE, "b": 8, "q": 1, "cut": "_", "cut_heads": "x"},
                             {**SMALL_CACHE, "kv": 8, "q": 1, "cut": "_", "cut_heads": "x"},
                             lambda s, p: Sent().all_reduce(p, result(s)), "one all_reduce behind the product"),
    "prefill-131072": Case("2,048 queries, a cache of 131,072 tokens that is cut along them", decode, {**CACHE, "q": 2048},
                           {**SMALL_CACHE, "q": 16}, flash_decoding, "attends to its keys, and combines", exchange_cache),
    "prefill-2048": Case("2,048 queries, a cache of 2,048 tokens", decode, {**CACHE, "s": 2048, "q": 2048}, {**SMALL_CACHE, "q": 32},
                         exchange_cache, "exchanges tokens of the cache for heads", flash_decoding),
    "megatron-131072-tokens": Case("a Megatron layer of width 4,096; batch 64 of 2,048 tokens", layer, {**BLOCK, "b": 64, "s": 2048},
                                   SMALL_BLOCK, two_reduces, "two all_reduces"),
    "megatron-1-token": Case("the same, one token", layer, {**BLOCK, "b": 1, "s": 1}, SMALL_BLOCK, two_reduces, "two all_reduces"),
    "sequence-2048": Case("the same with tokens cut between blocks; one text of 2,048", layer, {**BLOCK, "b": 1, "s": 2048, "cut": "x"},
                          {**SMALL_BLOCK, "cut": "x"}, gathers_and_scatters, "two all_gathers and two reduce_scatters", weights_of_layer),
    "sequence-131072": Case("one text of 131,072", layer, {**BLOCK, "b": 1, "s": 131072, "cut": "x"}, {**SMALL_BLOCK, "cut": "x"},
                            weights_of_layer, "gathers weights, and exchanges tokens for heads", gathers_and_scatters),
    "vocabulary-131072": Case("table and head of 131,072 words, cut", head, {**WORDS, "v": 131072}, FEW_WORDS, look_up,
                              "looks up own rows; logits stay cut"),
    "vocabulary-50257": Case("of 50,257 words", head, {**WORDS, "v": 50257, "uneven": " uneven"}, {**FEW_WORDS, "v": 61, "uneven": " uneven"},
                             look_up, "looks up own rows; logits stay cut", waits_for="uneven shards are not supported"),
    "loss-131072": Case("cross entropy of 16,384 tokens over 131,072 words, cut", loss, {"tokens": 16384, "v": 131072},
                        {"tokens": 16, "v": 64}, three_numbers, "three numbers a token"),
    "picture-2048": Case("four convolutions of 3 x 3, 64 channels; a picture of 2,048 x 2,048, rows cut", pictures,
                         {**PICTURE, "side": 2048}, SMALL_PICTURE, halo, "gives rows to neighbors"),
    "pictures-512": Case("64 pictures of 512 x 512", pictures, {**PICTURE, "b": 64, "side": 512}, SMALL_PICTURE, halo,
                         "gives rows to neighbors", to_samples),
    "pictures-16": Case("8 pictures of 16 x 16", pictures, {**PICTURE, "b": 8, "side": 16}, {**SMALL_PICTURE, "b": 8, "side": 8},
                        to_samples, "exchanges rows for pictures", halo),
    "experts-2048-tokens": Case("64 experts of 4,096 x 16,384; 2,048 tokens a rank, 64 places in each expert", moe, {**MOE, "s": 2048},
                                SMALL_MOE, to_experts, "sends places to experts", all_tokens),
    "experts-8-tokens": Case("8 tokens a rank, as many places", moe, {**MOE, "s": 8}, {**SMALL_MOE, "s": 4, "c": 8}, all_tokens,
                             "gathers tokens, and scatters results", to_experts),
}


def write(case, sizes, folder, name):
    """The model, and it and its plan as files; arguments called *.weight are parameters."""
    text = case.model(sizes)
    model = Model(name, MESH, text, None, case.about, opset=23)
    onnx_path, plan = os.path.join(folder, name + ".onnx"), os.path.join(folder, name + ".yaml")
    onnx.save(build_model(model), onnx_path)
    with open(plan, "w") as file:
        file.write(write_plan(model).rstrip("\n") + "\n" + case.asks + "\n")
    return model, onnx_path, plan


def shard(build, case, sizes, folder, name, *command):
    """(what is wrong, the report or None) of `cleave COMMAND` on the model with its weights as parameters."""
    model, onnx_path, plan = write(case, sizes, folder, name)
    path, report = os.path.join(folder, name + ".mlir"), os.path.join(folder, name + ".json")
    done = harness.cleave(build, "import", onnx_path, "-o", path)
    if done.returncode:
        return f"import: exit {done.returncode}: {done.stderr.strip()[:300]}", None
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(re.sub(r'(nn\.name = "[\w.]+\.weight")', r"\1, nn.parameter", text))
    arguments = list(command)
    if "run" in command:
        arrays = draw(model)
        np.savez(path + ".in.npz", **arrays)
        arguments += ["--inputs", path + ".in.npz", "--outputs", path + ".out.npz", "--check", "--quiet"]
    else:
        arguments += ["-o", os.devnull]
    done = harness.cleave(build, arguments[0], path, "--plan", plan, "--report", report, *arguments[1:])
    if done.returncode:
        return f"exit {done.returncode}: {(done.stderr + done.stdout).strip()[:400]}", None
    if "run" in command:
        session = onnxruntime.InferenceSession(onnx_path)
        names = [value.name for value in session.get_outputs()]
        expected = {f"out:{key}": value for key, value in zip(names, session.run(None, arrays))}
        if text := harness.difference(np.load(path + ".out.npz"), expected, 1e-4, 1e-5):
            return "values: " + text, None
    with open(report) as file:
        return "", json.load(file)


def problem(build, case, name, folder):
    """(what is wrong or an empty string, report at the real size or None)."""
    text, report = shard(build, case, case.real, folder, name, "shard")
    if case.waits_for and case.waits_for in text:
        return "", None
    if text:
        return text, None
    formula = case.formula(case.real, report["ranks"])
    if text := compare(formula.table(), report["totals"]):
        return text, report
    if case.other and case.other(case.real, report["ranks"]).total() <= formula.total():
        return "another form would send less", report
    flops = report["flops"]
    if flops["per_rank"] * report["ranks"] > flops["total"] * 1.01:
        return f"a rank computes {flops['per_rank']} of {flops['total']} flops", report
    text, _ = shard(build, case, case.small, folder, name + "-small", "run")
    return text and "at its small size: " + text, report


def format_table(rows):
    lines = ["<!-- Generated by test/Models/Parallel/sizes.py --fix-table; do not edit. -->", "",
             "# Decisions at real sizes, on 8 ranks", "",
             "For: deployers who choose a form of parallelism ([what each is](../parallel.md)).", "",
             "Bytes that a rank sends, kind by kind as by formula (`test/Models/Parallel/sizes.py`); f32. Sharded at these sizes, run at small ones.",
             "The last column is what the form that is best at another size would send by its formula.", "",
             "| case | what | decision | collectives | bytes | by formula | other form |", "|---|---|---|---|---|---|---|"]
    for name, (_, report) in rows:
        case = CASES[name]
        kinds, sent = "", "waits for uneven shards"
        if report:
            kinds = ", ".join(f"{total['count']} {kind}" for kind, total in sorted(report["totals"].items()) if total["wire_bytes_per_rank"])
            sent = sum(total["wire_bytes_per_rank"] for total in report["totals"].values())
        other = f"{case.other(case.real, 8).total():.0f}" if case.other else ""
        lines.append(f"| {name} | {case.about} | {case.decision} | {kinds} | {sent} | {case.formula(case.real, 8).total():.0f} | {other} |")
    return "\n".join(lines) + "\n"


def main():
    build, names, flags = harness.arguments("--fix-table")
    chosen = harness.select(CASES, names)
    with tempfile.TemporaryDirectory() as folder:
        rows = list(zip(chosen, harness.each(lambda name: problem(build, CASES[name], name, folder), chosen)))
    failed = 0
    for name, (text, _) in rows:
        failed += bool(text)
        print(f"FAILED {name}: {text}" if text else f"ok {name}")
    if not names:
        failed += harness.check_generated("sizes.md", format_table(rows), "--fix-table" in flags)
    return harness.close(len(rows), failed)


if __name__ == "__main__":
    sys.exit(main())
