"""Exchanges with neighbors: pads, resizes, slices, concatenations and norms along the dim that is cut.

How the least is derived is said above each case, by the argument of README.md: a rank has to be sent whatever its part of the
result is made of and it does not have, and only one rank has it. No case has a peer's figure; what is expected comes from
onnxruntime 1.31.1.
"""
from case import Case

# Bytes of a row of image: batch 2, 8 channels, 32 columns, f32.
ROW = 2 * 8 * 32 * 4


def image(rows, columns=32):
    return f"image: f32[2, 8, {rows}, {columns}] [_, _, x, _] ~ normal(1)"


def parts(count):
    return "\n".join(f"part{i}: f32[8, 16] [x, _] ~ normal(1)" for i in range(count))


CASES = [
    # 32 rows become 40, 10 on each rank: of image the rows [10 p - 4, 10 p + 6), where a rank has [8 p, 8 p + 8). Rank 0: rows 4
    # to 1 in the mirror, and 0 to 5, all its own. Rank 1: 6 to 15, so 6 and 7 come from rank 0. Rank 2: 16 to 25, so 24 and 25
    # come from rank 3. Rank 3: 26 to 31, and 30 to 27 in the mirror, all its own. The busiest sends 2 rows.
    Case("pad_reflect_spatial", "x=4", image(32) + """
        output: f32[2, 8, 40, 32] [_, _, x, _] = Pad(image, [0, 0, 4, 0, 0, 0, 4, 0], mode="reflect")
    """,
         least=2 * ROW, plan="two rows from the one neighbor that a rank's part reaches into", exact=True,
         expect={"output": ([-0.568549, -1.0298, -1.043, 0.268417], 16339.16)}),
    # As a style network pads: 64 rows become 66, 33 on each rank, rows -1 to 31 and 32 to 64, in the mirror all a rank's own. A
    # window of 3 then reaches one row into the other half: 8 channels of 256 columns. The row that is sent has 2 columns of
    # padding more, 0.8 % above the least.
    Case("conv_reflect_spatial", "x=2", """
        image: f32[1, 8, 64, 256] [_, _, x, _] ~ normal(1)
        weight: f32[8, 8, 3, 3] [_, _, _, _] ~ normal(0.1)
        padded = Pad(image, [0, 0, 1, 1, 0, 0, 1, 1], mode="reflect")
        output: f32[1, 8, 64, 256] [_, _, x, _] = Conv(padded, weight)
    """,
         least=8 * 256 * 4, plan="pad locally, then a row from the neighbor",
         expect={"output": ([0.673461, -0.13918, -1.21104, -1.72784], 87842.62)}),
    # As above, but rank 0 wants rows 28 to 31 in front of 0 to 5, and rank 3 rows 0 to 3 behind 26 to 31: rank 0 sends 2 rows to
    # rank 1 and 4 to rank 3, rank 3 sends 2 rows to rank 2 and 4 to rank 0.
    Case("pad_wrap_spatial", "x=4", image(32) + """
        output: f32[2, 8, 40, 32] [_, _, x, _] = Pad(image, [0, 0, 4, 0, 0, 0, 4, 0], mode="wrap")
    """,
         least=6 * ROW, plan="rows from neighbors, the first and the last rank being neighbors too", exact=True, opset=19,
         expect={"output": ([1.33555, -0.556489, 0.787541, -0.00344985], 16324.65)}),
    # Row o of the result lies at 31/63 o. Rank 0 makes rows 0 to 15, at 0 to 7.38: it wants row 8 of rank 1. Rank 1 makes 16 to 31, at
    # 7.87 to 15.25: rows 7 and 16. Rank 2: 32 to 47, at 15.75 to 23.13: rows 15 and 24. Rank 3 from 48 on, at 23.62: row 23. So
    # ranks 1 and 2 send a row to each side.
    Case("resize_corners_spatial", "x=4", image(32) + """
        output: f32[2, 8, 64, 64] [_, _, x, _] = Resize(image, None, None, [2, 8, 64, 64], mode="linear",
                                                        coordinate_transformation_mode="align_corners")
    """,
         least=2 * ROW, plan="a row from each neighbor; each rank samples by its own coordinates",
         expect={"output": ([0.12573, -0.00114101, -0.128012, 0.235765], 34778.14)}),
    # Row o lies at 2 o + 0.5 and is made of rows 2 o - 1 to 2 o + 2. A rank makes 8 of them, of rows [16 p - 1, 16 p + 17): its own
    # 16, and one of each neighbor.
    Case("resize_cubic_half", "x=4", image(64) + """
        output: f32[2, 8, 32, 32] [_, _, x, _] = Resize(image, None, None, [2, 8, 32, 32], mode="cubic")
    """,
         least=2 * ROW, plan="a row from each neighbor",
         expect={"output": ([-0.0625156, 0.279316, 0.299215, 0.139669], 11126.67)}),
    # Row o is row floor(o / 1.5): rows 12 p to 12 p + 11 of the result are made of rows 8 p to 8 p + 7, which are a rank's own.
    Case("resize_nearest_3_2", "x=4", image(32) + """
        output: f32[2, 8, 48, 32] [_, _, x, _] = Resize(image, None, None, [2, 8, 48, 32], mode="nearest", nearest_mode="floor",
                                                        coordinate_transformation_mode="asymmetric")
    """,
         least=0, plan="local", exact=True,
         expect={"output": ([0.12573, -0.132105, 0.640423, 0.1049], 19627.36)}),
    # Twelve parts of 8 rows, 2 rows of each on every rank. A rank wants three whole parts, 24 rows, of which it has 6: all get 18
    # rows that they do not have, and so all together send 4 * 18. Rows have 16 numbers.
    Case("concat_12_parts", "x=4", parts(12) + f"""
        output: f32[96, 16] [x, _] = Concat({", ".join(f"part{i}" for i in range(12))}, axis=0)
    """,
         least=18 * 16 * 4, plan="one exchange of all parts: each rank keeps a quarter of what it has", exact=True,
         expect={"output": ([0.12573, -0.132105, 0.640423, 0.1049], 1210.126)}),
    # A channel is normalized by two on each side: a rank wants two channels of each neighbor. (Sums of their squares would be as
    # many: x8^2 for channel 6, x8^2 + x9^2 for channel 7.) A channel has 2 * 16 * 16 numbers.
    Case("lrn_channels", "x=4", """
        image: f32[2, 32, 16, 16] [_, x, _, _] ~ normal(1)
        output: f32[2, 32, 16, 16] [_, x, _, _] = LRN(image, size=5, alpha=0.1)
    """,
         least=4 * 2 * 16 * 16 * 4, plan="two channels from each neighbor",
         expect={"output": ([0.12432, -0.131982, 0.614912, 0.0957751], 12062.13)}),
    # Rows 0, 2, .. 30 of 64, four on each rank, where a rank has [16 p, 16 p + 16). Rank 0 has its four, and those of rank 1; rank 1
    # has those of ranks 2 and 3, eight rows of 16 numbers. (Filling in would be a sum of 16 rows: 3 / 4 of them.)
    Case("slice_steps_of_front", "x=4", """
        table: f32[64, 16] [x, _] ~ normal(1)
        output: f32[16, 16] [x, _] = Slice(table, [0], [32], [0], [2])
    """,
         least=8 * 16 * 4, plan="only rows that are wanted travel", exact=True,
         expect={"output": ([0.12573, -0.132105, 0.640423, 0.1049], 208.177)}),
    # Rows 63, 61, .. 1, eight on each rank: rank p wants the odd rows of rank 3 - p.
    Case("slice_steps_from_end", "x=4", """
        table: f32[64, 16] [x, _] ~ normal(1)
        output: f32[32, 16] [x, _] = Slice(table, [-1], [-100], [0], [-2])
    """,
         least=8 * 16 * 4, plan="ranks change places, with half of their rows", exact=True,
         expect={"output": ([-0.543998, -0.0440591, -0.0772926, -0.0363704], 393.5896)}),
    # The middle of a picture, as a U-Net crops what it skips: rows 8 to 39 of 48, 8 on each rank. Rank 0 wants 8 to 15 and has up to
    # 11, rank 3 wants 32 to 39 and has 36 on; ranks 1 and 2 have theirs, and send 4 rows each, of the 32 columns that stay.
    Case("crop_both_dims", "x=4", image(48, 48) + """
        output: f32[2, 8, 32, 32] [_, _, x, _] = Slice(image, [8, 8], [40, 40], [2, 3])
    """,
         least=4 * ROW, plan="columns are cropped first, then four rows from the neighbor", exact=True,
         expect={"output": ([-0.207266, -0.581033, 0.531251, 0.089056], 13034.82)}),
    # The step before, of each position of a sequence, as recurrent models without attention mix it in: 16 positions on each rank, of which
    # the first wants one of the rank before.
    Case("token_shift", "x=4", """
        hidden: f32[2, 64, 128] [_, x, _] ~ normal(1)
        before = Pad(hidden, [0, 1, 0, 0, -1, 0])
        output: f32[2, 64, 128] [_, x, _] = Add(Mul(hidden, 0.75), Mul(before, 0.25))
    """,
         least=2 * 128 * 4, plan="a position to the next rank",
         expect={"output": ([0.0942977, -0.0990786, 0.480317, 0.0786751], 10310.88)}),
    # Queries, keys and values in one value, 16 columns of each, as a product with all three weights leaves them: 12 blocks of 4 columns, 3 on
    # each rank (q0 q1 q2, q3 k0 k1, k2 k3 v0, v1 v2 v3), of which rank r wants q_r, k_r and v_r. Each rank has one of its own, so it
    # gets two others, and as all ranks send as much together as all get, one at least sends two: of 32 rows of 4 columns. Ranks
    # send q1 q2, q3 k0, k3 v0 and v1 v2.
    Case("split_fused", "x=4", """
        fused: f32[32, 48] [_, x] ~ normal(1)
        queries: f32[32, 16] [_, x]
        keys: f32[32, 16] [_, x]
        values: f32[32, 16] [_, x]
        queries, keys, values = Split(fused, [16, 16, 16], axis=1)
    """,
         least=2 * 32 * 4 * 4, plan="all parts in one exchange", exact=True,
         expect={"queries": ([0.12573, -0.132105, 0.640423, 0.1049], 400.5545),
                 "keys": ([-0.544259, -0.3163, 0.411631, 1.04251], 392.7578),
                 "values": ([-0.159225, 0.540846, 0.214659, 0.355373], 416.8139)}),
    # The same of two parts on 8 ranks, 6 columns of gates and 6 of values each: 16 blocks of 6, 2 on each rank, g0 g1, g2 g3, .., v6 v7.
    # Rank 0 keeps g0 and rank 7 v7; the 6 others have nothing of their own, and send both.
    Case("split_gated", "x=8", """
        fused: f32[16, 96] [_, x] ~ normal(1)
        gates: f32[16, 48] [_, x]
        values: f32[16, 48] [_, x]
        gates, values = Split(fused, [48, 48], axis=1)
        output: f32[16, 48] [_, x] = Mul(Sigmoid(gates), values)
    """,
         least=2 * 16 * 6 * 4, plan="both parts in one exchange",
         expect={"gates": ([0.12573, -0.132105, 0.640423, 0.1049], 609.9409),
                 "values": ([1.80163, 1.3151, 0.35738, -1.20832], 600.1853),
                 "output": ([0.957373, 0.614182, 0.23403, -0.635818], 295.3891)}),
]
