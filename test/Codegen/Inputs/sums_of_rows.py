"""Arrays for sums-of-rows.mlir, and what numpy makes of them, one update after the other.

    sums_of_rows.py draw INPUTS.npz | compare INPUTS.npz OUTPUTS.npz

`draw` gives each row of a table of 30 none, one or many of 40 updates. Updates of f16 add up in f32.
"""
import sys

import numpy as np


def draw():
    random = np.random.default_rng(1)
    ids = random.integers(-30, 12, 40)  # rows from 12 on by negative numbers alone, many of them twice
    ids[:9] = 3
    pair = np.stack([random.integers(-4, 4, (3, 5)), random.integers(-6, 6, (3, 5))], -1)
    pair[:, 0] = (1, 2)
    return {"ids": ids, "rows": random.standard_normal((40, 20), np.float32), "w": random.standard_normal((30, 20), np.float32), "pair": pair,
            "some": random.standard_normal((3, 5, 9), np.float32), "half": random.standard_normal((40, 20)).astype(np.float16),
            "double": random.standard_normal((40, 20))}


def add(begins, at, updates, wide):
    table = begins.astype(wide)
    np.add.at(table, at, updates.astype(wide))  # in their order, each sum rounded
    return table.astype(begins.dtype)


def expect(given):
    table = add(np.zeros((30, 20), np.float32), given["ids"], given["rows"], np.float32)
    pair = given["pair"].reshape(-1, 2)
    return {"table": table, "next": given["w"] - np.float32(0.5) * table,
            "pairs": add(np.ones((4, 6, 9), np.float32), (pair[:, 0], pair[:, 1]), given["some"].reshape(-1, 9), np.float32),
            "halves": add(np.zeros((30, 20), np.float16), given["ids"], given["half"], np.float32),
            "wide": add(np.zeros((30, 20)), given["ids"], given["double"], np.float64)}


def main(what, inputs, outputs=None):
    if what == "compare":
        got = np.load(outputs)
        for name, want in expect(dict(np.load(inputs))).items():
            print(name, "equal" if np.array_equal(want, got[name]) else f"differs by {np.abs(want - got[name]).max()}")
        return
    np.savez(inputs, **draw())


if __name__ == "__main__":
    main(*sys.argv[1:])
