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
         compute="0.16 MFLOP are done on 4 ranks, which costs less than the 22848 bytes that it saves on any machine that "
                 "is known",
         least_note="was 29760, the least with the product split: a2a left to rows, AG right, local product, AG of the result; "
                    "and before 49152: zero-masked padding, AR",
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
]
