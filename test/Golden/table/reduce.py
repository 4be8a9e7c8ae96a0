"""Reductions, norms, searches and scans along cut dims."""
from case import Case, Peer

CASES = [
    Case("softmax_sharded", "x=4", """
        logits: f32[64, 256] [_, x] ~ normal(0.125)
        probs: f32[64, 256] [_, x] = Softmax(logits, axis=-1)
    """,
         least=768, plan="AR max, AR sum", peer=Peer(768, "partitioned", collectives={"all_reduce": 2}), jax_diff=2.2e-07),
    Case("layernorm_sharded", "x=4", """
        hidden: f32[64, 256] [_, x] ~ normal(0.125)
        norm.weight: f32[256] [x] ~ normal(1)
        norm.bias: f32[256] [x] ~ normal(1)
        output: f32[64, 256] [_, x] = LayerNormalization(hidden, norm.weight, norm.bias, axis=-1, epsilon=1e-05)
    """,
         least=768, plan="AR sum, AR sum of squares (or one AR of the pair)",
         peer=Peer(768, "partitioned", collectives={"all_reduce": 2}), jax_diff=8.7e-08),
    Case("rmsnorm_sharded", "x=4", """
        hidden: f32[64, 256] [_, x] ~ normal(0.125)
        norm.weight: f32[256] [x] ~ normal(1)
        output: f32[64, 256] [_, x] = RMSNormalization(hidden, norm.weight, axis=-1, epsilon=1e-05)
    """,
         least=384, plan="one AR", peer=Peer(384, "partitioned", collectives={"all_reduce": 1}), opset=23, jax_diff=1e-07),
    Case("batchnorm_batch", "x=4", """
        image: f32[8, 8, 8, 16] [x, _, _, _] ~ normal(1)
        mean = ReduceMean(image, [0, 1, 2], keepdims=1)
        centered = Sub(image, mean)
        variance = ReduceMean(Mul(centered, centered), [0, 1, 2], keepdims=1)
        output: f32[8, 8, 8, 16] [x, _, _, _] = Div(centered, Sqrt(Add(variance, 1e-05)))
    """,
         least=192, plan="AR of 2 statistics per channel", peer=Peer(288, "partitioned", collectives={"all_reduce": 3}),
         jax_diff=3.7e-07),
    Case("reduce_one_of_two", "d=2, m=4", """
        matrix: f32[64, 64] [d, m] ~ normal(0.125)
        sums: f32[64] [d] = ReduceSum(matrix, [1], keepdims=0)
    """,
         least=192, plan="AR over m", peer=Peer(192, "partitioned", collectives={"all_reduce": 1}), jax_diff=8e-08),
    Case("reduce_out_sharded", "x=4", """
        matrix: f32[64, 256] [x, _] ~ normal(0.125)
        sums: f32[256] [x] = ReduceSum(matrix, [0], keepdims=0)
    """,
         least=768, plan="RS", peer=Peer(768, "partitioned", collectives={"reduce_scatter": 1}), jax_diff=3.9e-07),
    Case("argmax_sharded", "x=4", """
        scores: f32[64, 256] [_, x] ~ normal(0.125)
        best: i64[64] [_] = ArgMax(scores, axis=-1, keepdims=0)
    """,
         least=768, plan="local argmax; AR max of values, AR min of the index where equal",
         peer=Peer(1536, "partitioned", collectives={"all_gather": 2}),
         least_note="indices travel as int32; as int64, ONNX's type for them, 1152 bytes", exact=True, jax_diff=0.0),
    Case("topk_sharded", "x=4", """
        scores: f32[64, 4096] [_, x] ~ permutation(262144)
        values: f32[64, 8] [_, _]
        indices: i64[64, 8] [_, _]
        values, indices = TopK(scores, [8], axis=-1)
    """,
         least=12288, plan="local top-8, AG 4x8 candidates and indices, top-8",
         peer=Peer(786432, "partitioned", collectives={"all_gather": 1}),
         least_note="indices travel as int32; as int64, ONNX's type for them, 18432 bytes", exact=True, jax_diff=0.0,
         expect={"values": ([262126.0, 262122.0, 262002.0, 261947.0], 134065500.0),
                 "indices": ([1420.0, 1987.0, 305.0, 2944.0], 1063085.0)}),
    Case("sort_sharded_2d", "x=4", """
        keys: f32[64, 256] [_, x] ~ permutation(16384)
        sorted: f32[64, 256] [_, x]
        sorted, order = TopK(keys, [256], axis=-1, largest=0)
    """,
         least=24576, plan="a2a to rows, sort, a2a back", peer=Peer(24576, "partitioned", collectives={"all_to_all": 2}),
         exact=True, jax_diff=0.0),
    Case("sort_sharded_1d", "x=4", """
        keys: f32[4096] [x] ~ permutation(4096)
        sorted: f32[4096] [x]
        sorted, order = TopK(keys, [4096], axis=-1, largest=0)
    """,
         least=12288, plan="bitonic merge-split: log2(4)*(log2(4)+1)/2 = 3 CP rounds of the whole shard",
         peer=Peer(12288, "partitioned", collectives={"all_gather": 1}),
         compute="as many bytes as AG and a repeated sort; the plan splits the work", exact=True, jax_diff=0.0),
    Case("cumsum_sharded", "x=4", """
        sequence: f32[64, 1024] [_, x] ~ normal(0.125)
        sums: f32[64, 1024] [_, x] = CumSum(sequence, 1)
    """,
         least=768, plan="local cumsum, AG of 4 totals per row, add the prefix",
         peer=Peer(196608, "partitioned", collectives={"all_gather": 1}),
         least_note="two permutes of one total per row (log-step scan) would send 512", jax_diff=1.1e-06,
         expect={"sums": ([0.0157163, -0.00079683, 0.079256, 0.0923685], 145990.0)}),
]
