"""Reshapes, transposes, slices, and moves from dim to dim."""
from case import Case, Peer

CASES = [
    Case("concat_sharded_dim", "x=4", """
        first: f32[16, 64] [x, _] ~ normal(0.25)
        second: f32[16, 64] [x, _] ~ normal(0.25)
        joined: f32[32, 64] [x, _] = Concat(first, second, axis=0)
    """,
         least=2048, plan="each chunk moves to its owner once by CP; ranks 1,2 send both chunks",
         peer=Peer(3072, "partitioned", collectives={"all_to_all": 3}), exact=True, jax_diff=0.0),
    Case("concat_other_dim", "x=4", """
        first: f32[16, 64] [x, _] ~ normal(0.25)
        second: f32[16, 64] [x, _] ~ normal(0.25)
        joined: f32[16, 128] [x, _] = Concat(first, second, axis=1)
    """,
         least=0, plan="local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("slice_half", "x=4", """
        rows: f32[64, 64] [x, _] ~ normal(0.125)
        picked: f32[32, 64] [x, _] = Slice(rows, [0], [32], [0], [1])
    """,
         least=4096, plan="rank 1 sends both its halves of 8 rows",
         peer=Peer(6144, "partitioned", collectives={"permute": 2}), exact=True, jax_diff=0.0),
    Case("slice_strided", "x=4", """
        rows: f32[64, 64] [x, _] ~ normal(0.125)
        picked: f32[32, 64] [x, _] = Slice(rows, [0], [64], [0], [2])
    """,
         least=0, plan="local stride", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("roll1", "x=4", """
        rows: f32[64, 64] [x, _] ~ normal(0.125)
        tail = Slice(rows, [63], [64], [0])
        head = Slice(rows, [0], [63], [0])
        rolled: f32[64, 64] [x, _] = Concat(tail, head, axis=0)
    """,
         least=256, plan="CP of one row", peer=Peer(256, "partitioned", collectives={"permute": 1}),
         least_note="needs Slice, Slice, Concat of one tensor seen as a rotation", exact=True, jax_diff=0.0),
    Case("reverse", "x=4", """
        rows: f32[64, 64] [x, _] ~ normal(0.125)
        picked: f32[64, 64] [x, _] = Slice(rows, [-1], [-65], [0], [-1])
    """,
         least=4096, plan="CP of the shard, local reverse", peer=Peer(4096, "partitioned", collectives={"permute": 1}),
         exact=True, jax_diff=0.0),
    Case("repeat_sharded", "x=4", """
        rows: f32[16, 64] [x, _] ~ normal(0.25)
        output: f32[32, 64] [x, _] = Reshape(Expand(Unsqueeze(rows, [1]), [16, 2, 64]), [32, 64])
    """,
         least=0, plan="local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("reshape_split_div", "x=4", """
        rows: f32[24, 16] [x, _] ~ normal(0.20412414523193154)
        split: f32[4, 6, 16] [x, _, _] = Reshape(rows, [4, 6, 16])
    """,
         least=0, plan="local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("reshape_split_24_x8", "x=8", """
        rows: f32[24, 16] [x, _] ~ normal(0.20412414523193154)
        split: f32[4, 6, 16] [_, _, _] = Reshape(rows, [4, 6, 16])
    """,
         least=1344, plan="AG (replicated output wanted)", peer=Peer(1344, "partitioned", collectives={"all_gather": 2}),
         exact=True, jax_diff=0.0),
    Case("reshape_split_xy", "x=4, y=2", """
        rows: f32[24, 16] [[x, y], _] ~ normal(0.20412414523193154)
        split: f32[4, 6, 16] [x, y, _] = Reshape(rows, [4, 6, 16])
    """,
         least=0, plan="major axis to the major factor: local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("reshape_split_minor", "x=2", """
        rows: f32[24, 16] [x, _] ~ normal(0.20412414523193154)
        split: f32[4, 6, 16] [_, x, _] = Reshape(rows, [4, 6, 16])
    """,
         least=384, plan="each rank has 2 of the 4 groups, keeps half of every group: a2a of half the shard",
         peer=Peer(384, "partitioned", collectives={"all_to_all": 1}), exact=True, jax_diff=0.0),
    Case("reshape_merge_major", "x=4", """
        rows: f32[4, 6, 16] [x, _, _] ~ normal(1)
        merged: f32[24, 16] [x, _] = Reshape(rows, [24, 16])
    """,
         least=0, plan="local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("reshape_merge_minor_free", "x=2", """
        rows: f32[4, 6, 16] [_, x, _] ~ normal(1)
        merged = Reshape(rows, [24, 16])
        output: f32[24, 16] [_, _] = Mul(merged, 2.0)
    """,
         least=768, plan="AG (replicated output)", peer=Peer(768, "partitioned", collectives={"all_gather": 1}), exact=True,
         jax_diff=0.0),
    Case("reshape_heads_2x4", "d=2, m=4", """
        hidden: f32[4, 32, 128] [d, _, m] ~ normal(1)
        heads: f32[4, 8, 32, 16] [d, m, _, _] = Transpose(Reshape(hidden, [4, 32, 8, 16]), perm=[0, 2, 1, 3])
    """,
         least=0, plan="local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("transpose_reshard", "x=4", """
        matrix: f32[64, 64] [x, _] ~ normal(0.125)
        transposed: f32[64, 64] [x, _] = Transpose(matrix, perm=[1, 0])
    """,
         least=3072, plan="a2a", peer=Peer(3072, "partitioned", collectives={"all_to_all": 1}), exact=True, jax_diff=0.0),
    Case("transpose_follow", "x=4", """
        matrix: f32[64, 64] [x, _] ~ normal(0.125)
        transposed: f32[64, 64] [_, x] = Transpose(matrix, perm=[1, 0])
    """,
         least=0, plan="local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("move_dim_a2a", "x=4", """
        matrix: f32[64, 64, 4] [x, _, _] ~ normal(1)
        doubled: f32[64, 64, 4] [_, x, _] = Mul(matrix, 2.0)
    """,
         least=12288, plan="a2a", peer=Peer(12288, "partitioned", collectives={"all_to_all": 1}), exact=True, jax_diff=0.0),
    Case("move_axis_x_to_y", "x=2, y=2", """
        matrix: f32[64, 64] [x, _] ~ normal(0.125)
        doubled: f32[64, 64] [y, _] = Mul(matrix, 2.0)
    """,
         least=8192, plan="CP between (0,1) and (1,0)", peer=Peer(8192, "partitioned", collectives={"permute": 1}),
         least_note="one permute; the two ranks that keep their half send nothing, with their help in a second permute 4096 "
                    "would do",
         exact=True, jax_diff=0.0),
    Case("swap_xy_2x2", "x=2, y=2", """
        matrix: f32[64, 64] [x, y] ~ normal(0.125)
        doubled: f32[64, 64] [y, x] = Mul(matrix, 2.0)
    """,
         least=4096, plan="CP of the block between (0,1) and (1,0)",
         peer=Peer(4096, "partitioned", collectives={"permute": 1}), exact=True, jax_diff=0.0),
    Case("xy_to_yx_major", "x=2, y=4", """
        matrix: f32[64, 64] [[x, y], _] ~ normal(0.125)
        doubled: f32[64, 64] [[y, x], _] = Mul(matrix, 2.0)
    """,
         least=2048, plan="pure CP (rank permutation)", peer=Peer(2048, "partitioned", collectives={"permute": 1}),
         exact=True, jax_diff=0.0),
    Case("move_permuted_mesh", "x=2, y=2", """
        matrix: f32[64, 64] [x, y] ~ normal(0.125)
        doubled: f32[64, 64] [y, x] = Mul(matrix, 2.0)
    """,
         least=4096, plan="CP", peer=Peer(4096, "partitioned", collectives={"permute": 1}),
         note="in JAX the devices stand in the order [2, 0, 3, 1]; a plan has no device order; with ranks in order values "
              "and bytes are the same",
         exact=True, jax_diff=0.0),
    Case("reshard_x_to_y_dim", "x=2, y=4", """
        matrix: f32[64, 64] [x, _] ~ normal(0.125)
        doubled: f32[64, 64] [_, y] = Mul(matrix, 2.0)
    """,
         least=2048, plan="slice to [x|y], then AG over x: result 64x16, (1/2) of it",
         peer=Peer(2048, "partitioned", collectives={"all_gather": 1}), exact=True, jax_diff=0.0),
]
