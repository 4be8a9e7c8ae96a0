"""The golden sharding cases: right values, no more bytes than needed, never more than the peer.

Usage: check.py BUILD_DIR [--fix-table] [NAME...]

A case passes if it runs with equal values at the least known bytes (2 % slack), or at least no more than the peer, and
splits the compute at least as well as the peer. A case whose rule is not there yet (NEXT says which) must say so: a
refusal that names the reason, or a remark on the op that is replicated. The suite fails when fewer than MINIMUM cases are at the minimum, or when docs/generated/golden.md is not the
table of this run. README.md in this folder explains the files.
"""
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
MINIMUM = 135
SLACK = 1.02
TABLE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs", "generated", "golden.md")
UNEVEN = "uneven shards"
HALO = "halo exchange over a sharded spatial dim"
MOVE = "row exchange along a sharded dim"
# Cases that need a rule of the next step, and what the refusal or a remark must contain.
NEXT = {
    "logits_uneven_vocab": (UNEVEN, "uneven"),
    "dot_rows10_on4": (UNEVEN, "uneven"),
    "dot_contract10_on4": (UNEVEN, "uneven"),
    "max10_on4": (UNEVEN, "uneven"),
    "max3_on2": (UNEVEN, "uneven"),
    "conv_spatial_s1": (HALO, "'nn.conv' op is re"),
    "conv_spatial_s2": (HALO, "'nn.conv' op is re"),
    "conv_spatial_s2_same": (HALO, "'nn.conv' op is re"),
    "conv_spatial_2d": (HALO, "'nn.conv' op is re"),
    "resnet_block_spatial": (HALO, "'nn.conv' op is re"),
    "maxpool3x3s2_spatial": (HALO, "'nn.pool' op is re"),
    "roll1": (MOVE, "'nn.rotate' op is re"),
    "reverse": (MOVE, "'nn.slice' op is re"),
}
TYPES = {"float": np.float32, "int64": np.int64, "int32": np.int32, "int8": np.int8, "bool": np.bool_,
         "float16": np.float16, "double": np.float64, "uint8": np.uint8}


def draw(case):
    """Inputs by the recipe of README.md."""
    rng = np.random.default_rng(case.get("seed", 0))
    inputs = {}
    for item in case["inputs"]:
        shape, ((kind, value),) = item["shape"], item["draw"].items()
        if kind == "normal":
            array = rng.standard_normal(shape) * value
        elif kind == "integers":
            array = rng.integers(0, value, shape)
        elif kind == "permutation":
            array = rng.permutation(value).reshape(shape)
        elif kind == "choice":
            array = rng.choice(value, shape, replace=False)
        else:
            array = rng.random(shape) < value
        inputs[item["name"]] = array.astype(TYPES[item["type"]])
    return inputs


def load(case):
    """(inputs, function that checks outputs) of a case."""
    tolerance = case["tolerance"]
    rtol, atol = (0, 0) if tolerance == "exact" else (tolerance["rtol"], tolerance["atol"])
    if case["data"] == "npz":
        arrays = np.load(os.path.join(HERE, case["name"] + ".npz"))
        inputs = {k[3:]: arrays[k] for k in arrays if k.startswith("in:")}

        def check(outputs):
            assert any(key.startswith("out:") for key in arrays), "the case has no outputs to compare with"
            for key in arrays:
                if key.startswith("out:"):
                    want, got = arrays[key], outputs[key[4:]]
                    assert got.shape == want.shape, f"{key} has shape {got.shape}, expected {want.shape}"
                    scale = max(1.0, float(np.abs(want.astype(np.float64)).max(initial=0)))
                    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol * scale, err_msg=key)
    else:
        inputs = draw(case)

        def check(outputs):
            assert case["expect"], "the case has no outputs to compare with"
            for name, want in case["expect"].items():
                got = outputs[name].astype(np.float64).ravel()
                scale = max(1.0, float(np.abs(got).max(initial=0)))
                np.testing.assert_allclose(got[:4], want["first"], rtol=max(rtol, 1e-5), atol=max(atol, 1e-5) * scale)
                np.testing.assert_allclose(np.abs(got).sum(), want["abs_sum"], rtol=1e-4)
    return inputs, check


def run(cleave, case, folder):
    """A row of the table: (verdict, bytes or None, note)."""
    name = case["name"]
    paths = {k: os.path.join(folder, f"{name}.{k}") for k in ("in.npz", "out.npz", "json")}
    inputs, check = load(case)
    np.savez(paths["in.npz"], **inputs)
    command = [cleave, "run", f"{HERE}/{name}.onnx", "--plan", f"{HERE}/{name}.yaml", "--inputs", paths["in.npz"],
               "--outputs", paths["out.npz"], "--report", paths["json"], "--remarks", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True)
    reason, words = NEXT.get(name, ("", ""))
    if done.returncode == 1 and reason and words in done.stderr:
        return "next", None, reason
    if done.returncode:
        return "FAILED", None, f"exit {done.returncode}: {done.stderr.strip()[:300]}"
    try:
        check(dict(np.load(paths["out.npz"])))
    except (AssertionError, KeyError) as error:
        return "FAILED", None, "values: " + " ".join(str(error).split())[:300]
    with open(paths["json"]) as file:
        report = json.load(file)
    sent = sum(total["wire_bytes_per_rank"] for total in report["totals"].values())
    least, peer = case["min"], case["xla"]["bytes"]
    if reason:
        return ("next", sent, reason) if words in done.stderr else ("FAILED", sent, f"no remark says {words}")
    flops, spread = report["flops"], case["xla"].get("spread") or 1
    if flops["per_rank"] * spread > flops["total"] * SLACK:
        return "FAILED", sent, f"a rank computes {flops['per_rank']} of {flops['total']} flops, the peer 1 / {spread}"
    if least is not None and sent < least / SLACK:
        return "FAILED", sent, f"sends less than the least known {least}: index.json is wrong, or nothing was split"
    if least is not None and sent <= least * SLACK:
        return "minimum", sent, ""
    if sent > peer * SLACK:
        return "FAILED", sent, f"sends more than the peer's {peer}"
    if least is None:
        return "runs", sent, "no minimum is claimed"
    return "above", sent, ""


def format_table(rows):
    lines = ["<!-- Generated by test/Golden/check.py --fix-table; do not edit. -->", "",
             "# Golden cases: bytes that the busiest rank sends", "",
             "| case | verdict | bytes | least known | peer (JAX 0.10.2, Shardy) | note |", "|---|---|---|---|---|---|"]
    for case, (verdict, sent, note) in rows:
        lines.append(f"| {case['name']} | {verdict} | {'' if sent is None else sent} | {case['min']} | "
                     f"{case['xla']['bytes']} | {note} |")
    return "\n".join(lines) + "\n"


def check_table(text, fixes):
    """1 if the table in docs is another one; writes it where `fixes`."""
    old = open(TABLE).read() if os.path.exists(TABLE) else ""
    if fixes:
        os.makedirs(os.path.dirname(TABLE), exist_ok=True)
        with open(TABLE, "w") as file:
            file.write(text)
    elif old != text:
        print("docs/generated/golden.md is stale; mend it with: python3 test/Golden/check.py build/release --fix-table")
        return 1
    return 0


def main():
    fixes = "--fix-table" in sys.argv
    build, *wanted = [argument for argument in sys.argv[1:] if argument != "--fix-table"]
    with open(os.path.join(HERE, "index.json")) as file:
        cases = [case for case in json.load(file)["cases"] if not wanted or case["name"] in wanted]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        rows = list(zip(cases, pool.map(lambda case: run(f"{build}/bin/cleave", case, folder), cases)))
    for case, (verdict, sent, note) in rows:
        print(f"{verdict:8s} {case['name']:28s} {sent} (least {case['min']}, peer {case['xla']['bytes']}) {note}")
    failed = sum(verdict == "FAILED" for _, (verdict, _, _) in rows)
    least = sum(verdict == "minimum" for _, (verdict, _, _) in rows)
    print(f"{least} of {len(rows)} at the minimum")
    if not wanted and least < MINIMUM:
        print(f"expected at least {MINIMUM} at the minimum")
        failed += 1
    if not wanted:
        failed += check_table(format_table(rows), fixes)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
