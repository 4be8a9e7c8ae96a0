"""One product, cut in every way; terms of a sum that wait."""
from case import Case, Peer

CASES = [
    Case("dot_contract_both", "x=4", """
        left: f32[64, 256] [_, x] ~ normal(0.125)
        right: f32[256, 128] [x, _] ~ normal(0.0625)
        product: f32[64, 128] [_, _] = MatMul(left, right)
    """,
         least=49152, plan="AR", peer=Peer(49152, "partitioned", 4.0, collectives={"all_reduce": 1}), jax_diff=0.0),
    Case("dot_contract_both_out_m", "x=4", """
        left: f32[64, 256] [_, x] ~ normal(0.125)
        right: f32[256, 128] [x, _] ~ normal(0.0625)
        product: f32[64, 128] [x, _] = Gemm(left, right)
    """,
         least=24576, plan="RS", peer=Peer(24576, "partitioned", 4.0, collectives={"reduce_scatter": 1}), jax_diff=0.0),
    Case("dot_contract_one_ARcheap", "x=4", """
        left: f32[64, 1024] [_, x] ~ normal(0.125)
        right: f32[1024, 64] [_, _] ~ normal(0.03125)
        product: f32[64, 64] [_, _] = MatMul(left, right)
    """,
         least=24576, plan="slice B, AR (less than AG of A)",
         peer=Peer(24576, "partitioned", 4.0, collectives={"all_reduce": 1}), jax_diff=5.9e-07,
         expect={"product": ([0.0386496, -0.0264226, -0.0516704, 0.202091], 406.9982)}),
    Case("dot_2d_summa", "x=2, y=2", """
        left: f32[64, 64] [x, y] ~ normal(0.125)
        right: f32[64, 64] [x, y] ~ normal(0.125)
        product: f32[64, 64] [x, y] = MatMul(left, right)
    """,
         least=8192, plan="AG A over y, AG B over x", peer=Peer(8192, "partitioned", 4.0, collectives={"all_gather": 2}),
         jax_diff=0.0),
    Case("dot_batch_vs_m_conflict", "x=4", """
        left: f32[64, 64] [x, _] ~ normal(0.125)
        right: f32[64, 64] [_, x] ~ normal(0.125)
        product: f32[64, 64] [x, _] = MatMul(left, right)
    """,
         least=12288, plan="AG B", peer=Peer(12288, "partitioned", 4.0, collectives={"all_gather": 1}), jax_diff=0.0),
    Case("dot_out_rep", "x=4", """
        left: f32[64, 64] [x, _] ~ normal(0.125)
        right: f32[64, 16] [_, _] ~ normal(0.125)
        product: f32[64, 16] [_, _] = MatMul(left, right)
    """,
         least=3072, plan="local dot, AG of the result (not of A)",
         peer=Peer(3072, "partitioned", 4.0, collectives={"all_gather": 1}), jax_diff=2.5e-07),
    Case("multi_use_reshard", "x=4", """
        hidden: f32[64, 256] [x, _] ~ normal(0.125)
        first.weight: f32[256, 64] [_, x] ~ normal(0.0625)
        second.weight: f32[256, 64] [_, x] ~ normal(0.0625)
        first: f32[64, 64] [_, x] = MatMul(hidden, first.weight)
        second: f32[64, 64] [_, x] = MatMul(hidden, second.weight)
    """,
         least=49152, plan="one AG for both uses", peer=Peer(49152, "partitioned", 4.0, collectives={"all_gather": 1}),
         jax_diff=0.0),
    Case("multi_use_diff_time", "x=4", """
        hidden: f32[64, 256] [x, _] ~ normal(0.125)
        first.weight: f32[256, 64] [_, x] ~ normal(0.0625)
        second.weight: f32[256, 64] [_, x] ~ normal(0.0625)
        down = MatMul(hidden, first.weight)
        first: f32[64, 256] = Gemm(down, second.weight, transB=1)
        second: f32[64, 64] = MatMul(Tanh(hidden), second.weight)
    """,
         least=73728,
         plan="with both outputs on [_, x]: AG hidden once, tanh after it; AG of the 64x64 product and a2a of second.weight "
              "to rows for the product with its transpose",
         peer=Peer(147456, "partitioned", 4.0, collectives={"all_gather": 3}),
         least_note="before: h and tanh(h): gather h once, recompute tanh", compute="tanh is repeated on 4 ranks",
         note="both outputs are free", jax_diff=8.3e-09),
    Case("partial_sum_two", "x=4", """
        left1: f32[64, 256] [_, x] ~ normal(0.125)
        right1: f32[256, 64] [x, _] ~ normal(0.0625)
        left2: f32[64, 128] [_, x] ~ normal(0.125)
        right2: f32[128, 64] [x, _] ~ normal(0.08838834764831843)
        product1 = MatMul(left1, right1)
        product2 = MatMul(left2, right2)
        output: f32[64, 64] [_, _] = Add(product1, product2)
    """,
         least=24576, plan="add the partials, one AR", peer=Peer(49152, "partitioned", 4.0, collectives={"all_reduce": 2}),
         jax_diff=0.0),
    Case("partial_self_add", "x=4", """
        left: f32[64, 256] [_, x] ~ normal(0.125)
        right: f32[256, 64] [x, _] ~ normal(0.0625)
        product = MatMul(left, right)
        output: f32[64, 64] [x, _] = Add(product, product)
    """,
         least=12288, plan="add, one RS", peer=Peer(12288, "partitioned", 4.0, collectives={"reduce_scatter": 1}),
         jax_diff=0.0),
    Case("partial_then_linear", "x=4", """
        left: f32[64, 256] [_, x] ~ normal(0.125)
        right: f32[256, 512] [x, _] ~ normal(0.0625)
        head.weight: f32[512, 8] [_, _] ~ normal(0.044194173824159216)
        product = MatMul(left, right)
        output: f32[64, 8] [_, _] = MatMul(product, head.weight)
    """,
         least=3072, plan="multiply the partial by replicated w first (linear), AR of the small result",
         peer=Peer(196608, "partitioned", 3.67, collectives={"all_reduce": 1}),
         compute="every rank multiplies its partial product by the whole head.weight (0.5 MFLOP each against 4.2 for the "
                 "first product)",
         jax_diff=9.3e-07, expect={"output": ([0.0933422, 0.114299, 0.0620344, -0.215691], 52.60996)}),
    Case("bias_bcast_match", "x=4", """
        hidden: f32[64, 256] [_, x] ~ normal(0.125)
        bias: f32[256] [x] ~ normal(1)
        output: f32[64, 256] [_, x] = Add(hidden, bias)
    """,
         least=0, plan="local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("bias_bcast_mismatch", "x=4", """
        hidden: f32[64, 256] [x, _] ~ normal(0.125)
        bias: f32[256] [x] ~ normal(1)
        output: f32[64, 256] [x, _] = Add(hidden, bias)
    """,
         least=768, plan="AG the bias, not x", peer=Peer(768, "partitioned", collectives={"all_gather": 1}), exact=True,
         jax_diff=0.0),
    Case("einsum3_megatron", "x=4", """
        hidden: f32[64, 128] [x, _] ~ normal(0.125)
        up.weight: f32[128, 256] [_, x] ~ normal(0.08838834764831843)
        down.weight: f32[256, 64] [x, _] ~ normal(0.0625)
        output: f32[64, 64] [x, _] = Einsum(hidden, up.weight, down.weight, equation="ij,jk,kl->il")
    """,
         least=36864, plan="AG A, local, RS", peer=Peer(49152, "partitioned", 4.0, collectives={"all_reduce": 1}),
         compute="left to right, 1.6 MFLOP per rank; on one device right to left is cheaper, 5.2 in all, but it splits less "
                 "well",
         jax_diff=7.8e-07),
    Case("outer_then_reduce", "x=4", """
        left: f32[256] [x] ~ normal(1)
        right: f32[256] [x] ~ normal(1)
        outer = Mul(Unsqueeze(left, [1]), Unsqueeze(right, [0]))
        output: f32[256] [x] = ReduceSum(outer, [1], keepdims=0)
    """,
         least=768, plan="AG b (algebraic factoring would need only a scalar AR)",
         peer=Peer(768, "partitioned", collectives={"all_gather": 1}),
         least_note="without algebra; taking left out of the sum would leave an AR of one scalar, 6 bytes", jax_diff=1.9e-07),
    # What computing costs beside sending: a product with few columns and a wide weight, wanted whole. Gathered behind the product,
    # 7/8 of 3184 x 768 numbers are 8.56 MB, and each rank computes an eighth; before it, 7/8 of 3184 x 72 numbers are 0.80 MB, and each rank
    # computes 2 x 3184 x 72 x 768 x 7/8 = 0.31 Gflop more. At 67 Tflop/s and 300 GB/s that takes 5 us, and the bytes 26.
    Case("dot_thin_input", "x=8", """
        tokens: f32[3184, 72] [x, _] ~ normal(1)
        weight: f32[72, 768] [_, _] ~ fan_in(72)
        product: f32[3184, 768] [_, _] = MatMul(tokens, weight)
    """,
         least=3184 * 72 * 4 * 7 // 8, plan="AG of the input, which is a tenth of the result; each rank computes all", spread=1.0,
         expect={"product": ([-0.657834, 0.237122, -0.167456, 0.651932], 1945428)}),
]
