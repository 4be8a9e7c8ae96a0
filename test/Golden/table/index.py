"""Lookups, updates, masks, mixtures of experts, caches."""
from case import Case, Peer

SCATTER_ADD = """
        ids64 = Cast(ids, to=i64)
        output = ScatterND(table, Unsqueeze(ids64, [1]), updates, reduction="add")
    """
EXPERTS = """
        slots = Einsum(tokens, dispatch, equation="gsd,gsec->egcd")
        expert_out = Einsum(slots, expert.weight, equation="egcd,edf->egcf")
        output = Einsum(expert_out, dispatch, equation="egcf,gsec->gsf")
    """
APPEND = """
        positions = Expand(position, [2, 1, 8, 16])
        cache_out = ScatterElements(cache, positions, new, axis=1)
    """

CASES = [
    Case("gather_sharded_ids", "x=4", """
        table: f32[1024, 64] [x, _] ~ normal(0.03125)
        ids: i32[256] [x] ~ integers(1024)
        rows: f32[256, 64] [x, _] = Gather(table, ids, axis=0)
    """,
         least=49920, plan="AG ids, masked gather, RS (less than AG of the table)",
         peer=Peer(49920, "partitioned", collectives={"all_gather": 1, "reduce_scatter": 1}), exact=True, jax_diff=0.0,
         expect={"rows": ([-0.0277566, 0.0381383, 0.0276194, -0.00260071], 407.7551)}),
    Case("take_along_sharded_out_rep", "x=4", """
        logits: f32[64, 1024] [_, x] ~ normal(0.125)
        labels: i32[64, 1] [_, _] ~ integers(1024)
        picked: f32[64, 1] [_, _] = GatherElements(logits, labels, axis=1)
    """,
         least=384, plan="masked local, AR", peer=Peer(384, "partitioned", collectives={"all_reduce": 1}), exact=True,
         jax_diff=0.0),
    Case("scatter_add_sharded_op", "x=4", """
        table: f32[1024, 64] [x, _] ~ normal(0.03125)
        ids: i32[256] [_] ~ integers(1024)
        updates: f32[256, 64] [_, _] ~ normal(0.0625)
        output: f32[1024, 64] [x, _]
    """ + SCATTER_ADD,
         least=0, plan="masked local scatter", peer=Peer(0, "partitioned"), jax_diff=0.0,
         expect={"output": ([0.00392907, -0.00412828, 0.0200132, 0.00327813], 2110.41)}),
    Case("scatter_add_sharded_upd", "x=4", """
        table: f32[1024, 64] [x, _] ~ normal(0.03125)
        ids: i32[256] [x] ~ integers(1024)
        updates: f32[256, 64] [x, _] ~ normal(0.0625)
        output: f32[1024, 64] [x, _]
    """ + SCATTER_ADD,
         least=49920, plan="AG ids and updates, masked local scatter",
         peer=Peer(49920, "partitioned", collectives={"all_gather": 2}), jax_diff=0.0,
         expect={"output": ([0.00392907, -0.00412828, 0.0200132, 0.00327813], 2110.41)}),
    Case("scatter_add_rep_op", "x=4", """
        table: f32[128, 64] [_, _] ~ normal(0.08838834764831843)
        ids: i32[1024] [x] ~ integers(128)
        updates: f32[1024, 64] [x, _] ~ normal(0.03125)
        output: f32[128, 64] [_, _]
    """ + SCATTER_ADD,
         least=49152, plan="local scatter into zeros, AR, add",
         peer=Peer(49152, "partitioned", collectives={"all_reduce": 1}), jax_diff=0.0,
         expect={"output": ([-0.0861725, -0.169479, -0.0357732, -0.00400104], 811.9083)}),
    Case("moe_dispatch_a2a", "x=4", """
        tokens: f32[8, 32, 16] [x, _, _] ~ normal(1)
        dispatch: f32[8, 32, 8, 4] [x, _, _, _] ~ normal(1)
        expert.weight: f32[8, 16, 16] [x, _, _] ~ normal(1)
        slots: [x, _, _, _]
        expert_out: [_, x, _, _]
        output: f32[8, 32, 16] [x, _, _]
    """ + EXPERTS,
         least=6144, plan="a2a there, a2a back", peer=Peer(6144, "partitioned", 4.0, collectives={"all_to_all": 2}),
         jax_diff=2e-07),
    Case("moe_dispatch_auto", "x=4", """
        tokens: f32[8, 32, 64] [x, _, _] ~ normal(1)
        dispatch: f32[8, 32, 8, 4] [x, _, _, _] ~ normal(1)
        expert.weight: f32[8, 64, 64] [x, _, _] ~ normal(1)
        output: f32[8, 32, 64] [x, _, _]
    """ + EXPERTS,
         least=24576, plan="a2a there, a2a back, found without constraints inside",
         peer=Peer(24576, "partitioned", 4.0, collectives={"all_to_all": 2}), jax_diff=3.5e-07),
    Case("iota_add", "x=4", """
        vector: f32[1024] [x] ~ normal(1)
        positions = Range(0.0, 1024.0, 1.0)
        output: f32[1024] [x] = Add(vector, positions)
    """,
         least=0, plan="iota + rank offset", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("select_mask", "x=4", """
        mask: i1[64, 64] [x, _] ~ bool(0.5)
        first: f32[64, 64] [x, _] ~ normal(0.125)
        second: f32[64, 64] [_, _] ~ normal(0.125)
        output: f32[64, 64] [x, _] = Where(mask, first, second)
    """,
         least=0, plan="local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("select_mismatch", "x=4", """
        mask: i1[64, 64] [x, _] ~ bool(0.5)
        first: f32[64, 64] [x, _] ~ normal(0.125)
        second: f32[64, 64] [_, x] ~ normal(0.125)
        output: f32[64, 64] [x, _] = Where(mask, first, second)
    """,
         least=3072, plan="a2a of b", peer=Peer(3072, "partitioned", collectives={"all_to_all": 1}), exact=True,
         jax_diff=0.0),
    Case("kv_append_heads", "x=4", """
        cache: f32[2, 128, 8, 16] [_, _, x, _] ~ normal(1)
        new: f32[2, 1, 8, 16] [_, _, x, _] ~ normal(1)
        position: i32[] [] ~ integers(100)
        cache_out: f32[2, 128, 8, 16] [_, _, x, _]
    """ + APPEND,
         least=0, plan="local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("kv_append_seq", "x=4", """
        cache: f32[2, 128, 8, 16] [_, x, _, _] ~ normal(1)
        new: f32[2, 1, 8, 16] [_, _, _, _] ~ normal(1)
        position: i32[] [] ~ integers(100)
        cache_out: f32[2, 128, 8, 16] [_, x, _, _]
    """ + APPEND,
         least=0, plan="masked local update", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("kv_append_seq_updsharded", "x=4", """
        cache: f32[2, 128, 8, 16] [_, x, _, _] ~ normal(1)
        new: f32[2, 1, 8, 16] [_, _, x, _] ~ normal(1)
        position: i32[] [] ~ integers(100)
        cache_out: f32[2, 128, 8, 16] [_, x, _, _]
    """ + APPEND,
         least=768, plan="AG the update only", peer=Peer(768, "partitioned", collectives={"all_gather": 1}), exact=True,
         jax_diff=0.0),
    Case("dynamic_slice_seq", "x=4", """
        cache: f32[2, 128, 8, 16] [_, x, _, _] ~ normal(1)
        start: i32[] [] ~ integers(100)
        positions = Add(start, i32([0, 1, 2, 3, 4, 5, 6, 7]))
        window: f32[2, 8, 8, 16] [_, _, _, _] = Gather(cache, positions, axis=1)
    """,
         least=12288, plan="masked local slice, AR", peer=Peer(98304, "partitioned", collectives={"all_gather": 1}),
         exact=True, jax_diff=0.0),
    Case("onehot_embed", "x=4", """
        table: f32[4096, 64] [x, _] ~ normal(0.015625)
        ids: i32[4, 32] [_, _] ~ integers(4096)
        rows: f32[4, 32, 64] [_, _, _] = MatMul(OneHot(ids, i32(4096), [0.0, 1.0], axis=-1), table)
    """,
         least=49152, plan="one-hot columns local, AR", peer=Peer(49152, "partitioned", 4.0, collectives={"all_reduce": 1}),
         jax_diff=0.0, expect={"rows": ([0.000484881, 0.0330558, 0.0240328, -0.00688395], 102.6347)}),
]
