"""Embeddings and losses over a cut vocabulary."""
from case import Case, Peer

CASES = [
    Case("emb_vocab_ids_rep", "x=4", """
        table: f32[4096, 64] [x, _] ~ normal(0.015625)
        ids: i32[4, 32] [_, _] ~ integers(4096)
        rows: f32[4, 32, 64] [_, _, _] = Gather(table, ids, axis=0)
    """,
         least=49152, plan="masked local gather, AR", peer=Peer(49152, "partitioned", collectives={"all_reduce": 1}),
         exact=True, jax_diff=0.0, expect={"rows": ([0.000484881, 0.0330558, 0.0240328, -0.00688395], 102.6347)}),
    Case("emb_vocab_ids_other", "d=2, m=4", """
        table: f32[4096, 64] [m, _] ~ normal(0.015625)
        ids: i32[4, 32] [d, _] ~ integers(4096)
        rows: f32[4, 32, 64] [d, _, _] = Gather(table, ids, axis=0)
    """,
         least=24576, plan="masked local gather, AR over m", peer=Peer(24576, "partitioned", collectives={"all_reduce": 1}),
         exact=True, jax_diff=0.0, expect={"rows": ([0.000484881, 0.0330558, 0.0240328, -0.00688395], 102.6347)}),
    Case("emb_hidden", "x=4", """
        table: f32[4096, 64] [_, x] ~ normal(0.015625)
        ids: i32[4, 32] [_, _] ~ integers(4096)
        rows: f32[4, 32, 64] [_, _, x] = Gather(table, ids, axis=0)
    """,
         least=0, plan="local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0,
         expect={"rows": ([0.000484881, 0.0330558, 0.0240328, -0.00688395], 102.6347)}),
    Case("emb_vocab_seqpar_out", "x=4", """
        table: f32[4096, 64] [x, _] ~ normal(0.015625)
        ids: i32[4, 32] [_, _] ~ integers(4096)
        rows: f32[4, 32, 64] [_, x, _] = Gather(table, ids, axis=0)
    """,
         least=24576, plan="masked local gather, RS", peer=Peer(24576, "partitioned", collectives={"reduce_scatter": 1}),
         exact=True, jax_diff=0.0, expect={"rows": ([0.000484881, 0.0330558, 0.0240328, -0.00688395], 102.6347)}),
    Case("xent_take", "x=4", """
        hidden: f32[4, 32, 64] [_, _, _] ~ normal(1)
        head.weight: f32[64, 2048] [_, x] ~ normal(0.125)
        labels: i32[4, 32] [_, _] ~ integers(2048)
        logits = MatMul(hidden, head.weight)
        log_probs = LogSoftmax(logits, axis=-1)
        picked = GatherElements(log_probs, Unsqueeze(labels, [-1]), axis=-1)
        loss: f32[] [] = Neg(ReduceMean(picked, keepdims=0))
    """,
         least=1542,
         plan="AR max and AR sum per token; label term is summed to one scalar first (mean is linear), scalar AR",
         peer=Peer(2304, "partitioned", 4.0, collectives={"all_reduce": 3}),
         note="LogSoftmax stands for log-sum-exp minus the label's logit", jax_diff=0.0,
         expect={"loss": ([8.08221], 8.08221)}),
    Case("xent_onehot", "x=4", """
        hidden: f32[4, 32, 64] [_, _, _] ~ normal(1)
        head.weight: f32[64, 2048] [_, x] ~ normal(0.125)
        labels: i32[4, 32] [_, _] ~ integers(2048)
        logits = MatMul(hidden, head.weight)
        target_logit = ReduceSum(Mul(OneHot(labels, i32(2048), [0.0, 1.0], axis=-1), logits), [-1], keepdims=0)
        log_sum_exp = ReduceLogSumExp(logits, [-1], keepdims=0)
        loss: f32[] [] = ReduceMean(Sub(log_sum_exp, target_logit), keepdims=0)
    """,
         least=1542,
         plan="AR max and AR sum per token; label term is summed to one scalar first (mean is linear), scalar AR",
         peer=Peer(2304, "partitioned", 4.0, collectives={"all_reduce": 3}), jax_diff=0.0,
         expect={"loss": ([8.08221], 8.08221)}),
    Case("logits_uneven_vocab", "x=4", """
        hidden: f32[64, 32] [_, _] ~ normal(0.125)
        head.weight: f32[32, 1003] [_, x] uneven ~ normal(0.17677669529663687)
        logits = MatMul(hidden, head.weight)
        best: f32[64] [_] = ReduceMax(logits, [-1], keepdims=0)
    """,
         least=384, plan="pad vocab to 1004, mask with -inf, AR max",
         peer=Peer(384, "partitioned", 4.0, collectives={"all_reduce": 1}),
         note="JAX refuses uneven inputs: there they are replicated and constrained inside, here the plan shards them "
              "unevenly",
         jax_diff=1.7e-07),
]
