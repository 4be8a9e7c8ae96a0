"""Sizes that the mesh does not divide."""
from case import Case, Peer

CASES = [
    Case("dot_rows10_on4", "x=4", """
        left: f32[10, 64] [x, _] uneven ~ fan_in(10)
        right: f32[64, 128] [_, _] ~ normal(0.125)
        product: f32[10, 128] [_, _] = MatMul(left, right)
    """,
         least=4608, plan="slice padded, local dot, AG of 12 padded rows (ragged AG would be 10)",
         peer=Peer(4608, "partitioned", 3.33, collectives={"all_gather": 1}),
         compute="the minimum given splits the product; AG of left (12 padded rows) with the product repeated would be 2304",
         note="JAX refuses uneven inputs: there they are replicated and constrained inside, here the plan shards them "
              "unevenly",
         jax_diff=0.0),
    Case("dot_contract10_on4", "x=4", """
        left: f32[64, 10] [_, x] uneven ~ normal(0.125)
        right: f32[10, 128] [x, _] uneven ~ fan_in(10)
        product: f32[64, 128] [_, _] = MatMul(left, right)
    """,
         least=6912, plan="AG left and right (both padded from 10 to 12), the product on every rank",
         peer=Peer(49152, "partitioned", 3.33, collectives={"all_reduce": 1}), spread=1,
         compute="0.16 MFLOP are done on 4 ranks, which costs less than the bytes that it saves on any machine that is known. "
                 "Nothing splits them for nothing: of the result, 32768 bytes, a rank that makes 1 / 3.33 lacks 22938, and can have "
                 "them as they are or make them. 28032 is the least with the product split (AG left, a2a right to columns, AG of the "
                 "result), and is taken from 0.1 to 0.15 bytes a repeated flop on; it is 1/64. From 0.02 on dot_thin_input sends "
                 "8.56 MB for 0.80, and from 0.04 on attn_gqa2_kvrep more than the peer: a price that splits these 0.16 MFLOP is worse",
         least_note="was 29760: a2a left to rows, AG right, local product, AG of the result; and before 49152: zero-masked "
                    "padding, AR",
         note="JAX refuses uneven inputs: there they are replicated and constrained inside, here the plan shards them "
              "unevenly",
         jax_diff=0.0),
    Case("max10_on4", "x=4", """
        matrix: f32[64, 10] [_, x] uneven ~ normal(0.125)
        best: f32[64] [_] = ReduceMax(matrix, [-1], keepdims=0)
    """,
         least=384, plan="-inf mask, AR", peer=Peer(384, "partitioned", collectives={"all_reduce": 1}),
         note="JAX refuses uneven inputs: there they are replicated and constrained inside, here the plan shards them "
              "unevenly",
         exact=True, jax_diff=0.0),
    Case("max3_on2", "x=2", """
        matrix: f32[64, 3] [_, _] ~ normal(0.125)
        doubled: [_, x] uneven = Mul(matrix, 2.0)
        best: f32[64] [_] = ReduceMax(doubled, [-1], keepdims=0)
    """,
         least=256, plan="-inf mask, AR", peer=Peer(256, "partitioned", collectives={"all_reduce": 1}),
         compute="the input is replicated, so without the inner rule nothing need be sent",
         exact=True, jax_diff=0.0),
    # Below: no peer's figure; what is expected comes from onnxruntime.
    # A rank has 126 of 1003 rows, the last one 121, and finds an index or gives zeros: a sum of 8 terms of m = 4 * 16 * 32
    # elements, 2 * 7 / 8 * m * 4. Of the table itself 7 / 8 * 1008 * 32 * 4 would be sent.
    Case("lookup1003_on8", "x=8", """
        table: f32[1003, 32] [x, _] uneven ~ normal(1)
        ids: i64[4, 16] [_, _] ~ integers(1003)
        found: f32[4, 16, 32] [_, _, _] = Gather(table, ids)
    """,
         least=2 * 7 * 4 * 16 * 32 * 4 // 8, plan="masked look-up, AR", exact=True,
         expect={"found": ([0.0140737, -0.441036, 0.456568, 0.154234], 1584.372)}),
    # 33 of 197 columns on each of 6 ranks, 32 on the last: the maximum and the sum of 64 rows, 2 * 5 / 6 * 64 * 4 each, rounded
    # up. Rows instead, there and back, would be 2 * 5 / 6 * 64 * 33 * 4.
    Case("softmax197_on2x3", "x=2, y=3", """
        scores: f32[64, 197] [_, [x, y]] uneven ~ normal(1)
        weights: f32[64, 197] [_, [x, y]] uneven = Softmax(scores, axis=-1)
    """,
         least=854, plan="-inf mask, AR of the maximum, AR of the sum",
         expect={"weights": ([0.00369312, 0.00285376, 0.00617905, 0.00361699], 64)}),
    # Heads do not meet: 3, 3, 3 and 1 of them, and nothing to send.
    Case("heads10_on4", "x=4", """
        query: f32[2, 10, 16, 8] [_, x, _, _] uneven ~ normal(1)
        key: f32[2, 10, 16, 8] [_, x, _, _] uneven ~ normal(1)
        value: f32[2, 10, 16, 8] [_, x, _, _] uneven ~ normal(1)
        weights = Softmax(Mul(MatMul(query, Transpose(key, perm=[0, 1, 3, 2])), 0.35355339), axis=-1)
        mixed: f32[2, 10, 16, 8] [_, x, _, _] uneven = MatMul(weights, value)
    """,
         least=0, plan="local",
         expect={"mixed": ([-0.22881, 0.0214453, -0.0888304, 0.0820199], 710.9429)}),
    # Mean and variance of 64 rows, 2 * 3 / 4 * 64 * 4 each, of 10 columns and not of 12. Rows instead: 3 / 4 * 64 * 3 * 4 there and
    # as much back.
    Case("norm10_on4", "x=4", """
        hidden: f32[64, 10] [_, x] uneven ~ normal(1)
        scale: f32[10] [x] uneven ~ normal(1)
        normed: f32[64, 10] [_, x] uneven = LayerNormalization(hidden, scale, axis=-1, epsilon=1e-05)
    """,
         least=2 * (2 * 3 * 64 * 4 // 4), plan="zero mask, AR of the sum, AR of the squares",
         expect={"normed": ([-0.0302471, -0.0920729, -0.454205, -0.0156344], 409.0321)}),
    # 3 rows on 8 ranks, 5 of which have none: a sum of 64 elements over 8 ranks, 2 * 7 / 8 * 64 * 4.
    Case("sum3_on8", "x=2, y=4", """
        rows: f32[3, 64] [[x, y], _] uneven ~ normal(1)
        total: f32[64] [_] = ReduceSum(rows, [0], keepdims=0)
    """,
         least=2 * 7 * 64 * 4 // 8, plan="zero mask, AR",
         expect={"total": ([-0.11385, -1.42048, 1.18089, 1.69368], 77.08479)}),
]
