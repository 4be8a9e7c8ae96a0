"""Attention by heads, with few key/value heads, and over a cut sequence; a whole layer."""
from case import Case, Peer
from table.pieces import attend, attention, layer, project, repeat

BY_HEAD = """
        query_by_head = Transpose(query, perm=[0, 2, 1, 3])
        key_by_head = Transpose(key, perm=[0, 2, 1, 3])
        value_by_head = Transpose(value, perm=[0, 2, 1, 3])
        key_transposed = Transpose(key_by_head, perm=[0, 1, 3, 2])
        scores = MatMul(query_by_head, key_transposed)
        scores_scaled = Mul(scores, 0.25)
        probs = Softmax(scores_scaled, axis=-1)
        context_by_head = MatMul(probs, value_by_head)
        context = Transpose(context_by_head, perm=[0, 2, 1, 3])
    """
GROUPED = (project("hidden", "query", 2, 32, 8, 16) + project("hidden", "key", 2, 32, 2, 16)
           + project("hidden", "value", 2, 32, 2, 16) + repeat("key", 2, 32, 2, 4, 16) + repeat("value", 2, 32, 2, 4, 16)
           + attend(2, 32, 8, 16, "output", "key_repeated", "value_repeated"))



def window(batch, length, heads, left):
    """Attention of [batch, length, heads, 16] in which token i sees the tokens from i - left to i, by a mask of compared counts."""
    shape = f"f32[{batch}, {length}, {heads}, 16] [_, x, _, _]"
    return f"""
        query: {shape} ~ normal(1)
        key: {shape} ~ normal(1)
        value: {shape} ~ normal(1)
        place = Range(0, {length}, 1)
        token = Unsqueeze(place, [1])
        seen = And(LessOrEqual(place, token), Greater(place, Sub(token, {left + 1})))
        attention = Attention(Transpose(query, perm=[0, 2, 1, 3]), Transpose(key, perm=[0, 2, 1, 3]), Transpose(value, perm=[0, 2, 1, 3]), seen)
        context: {shape} = Transpose(attention, perm=[0, 2, 1, 3])
    """


# Bytes of a token's key or value: heads, 16 components, f32.
def token(batch, heads):
    return batch * heads * 16 * 4


CASES = [
    Case("attn_heads", "x=4", """
        hidden: f32[2, 32, 128] [_, _, _] ~ normal(1)
        query.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        key.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        value.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        out.weight: f32[128, 128] [x, _] ~ normal(0.08838834764831843)
        output: f32[2, 32, 128] [_, _, _]
    """ + attention("hidden", 2, 32, 8, 16, "output"),
         least=49152, plan="one AR", peer=Peer(49152, "partitioned", 4.0, collectives={"all_reduce": 1}), jax_diff=1.7e-07,
         expect={"output": ([1.02051, -0.65314, -0.448702, -1.11242], 2738.154)}),
    Case("attn_heads_seqpar", "x=4", """
        hidden: f32[2, 32, 128] [_, x, _] ~ normal(1)
        query.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        key.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        value.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        out.weight: f32[128, 128] [x, _] ~ normal(0.08838834764831843)
        output: f32[2, 32, 128] [_, x, _]
    """ + attention("hidden", 2, 32, 8, 16, "output"),
         least=49152, plan="one AG shared by q,k,v; RS",
         peer=Peer(49152, "partitioned", 4.0, collectives={"all_gather": 1, "reduce_scatter": 1}), jax_diff=1.7e-07,
         expect={"output": ([1.02051, -0.65314, -0.448702, -1.11242], 2738.154)}),
    Case("attn_gqa2_kvrep", "x=4", """
        hidden: f32[2, 32, 128] [_, _, _] ~ normal(1)
        query.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        key.weight: f32[128, 32] [_, _] ~ normal(0.08838834764831843)
        value.weight: f32[128, 32] [_, _] ~ normal(0.08838834764831843)
        out.weight: f32[128, 128] [x, _] ~ normal(0.08838834764831843)
        output: f32[2, 32, 128] [_, _, _]
    """ + GROUPED,
         least=49152, plan="K,V of the needed head from the replicated weights; AR",
         peer=Peer(49152, "partitioned", 3.43, collectives={"all_reduce": 1}),
         compute="two ranks share a key/value head and both project it", jax_diff=5.1e-07),
    Case("attn_gqa2_kvsharded", "x=4", """
        hidden: f32[2, 32, 128] [_, _, _] ~ normal(1)
        query.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        key.weight: f32[128, 32] [_, x] ~ normal(0.08838834764831843)
        value.weight: f32[128, 32] [_, x] ~ normal(0.08838834764831843)
        out.weight: f32[128, 128] [x, _] ~ normal(0.08838834764831843)
        output: f32[2, 32, 128] [_, _, _]
    """ + GROUPED,
         least=53248, plan="pairs of ranks (sub-axis x:(2)2) AG the halves of their one kv head; AR",
         peer=Peer(53248, "partitioned", 4.0, collectives={"all_gather": 2, "all_reduce": 1}), jax_diff=5.1e-07),
    Case("attn_qseq", "x=4", """
        query: f32[2, 64, 8, 16] [_, x, _, _] ~ normal(1)
        key: f32[2, 64, 8, 16] [_, _, _, _] ~ normal(1)
        value: f32[2, 64, 8, 16] [_, _, _, _] ~ normal(1)
        context: f32[2, 64, 8, 16] [_, x, _, _]
    """ + BY_HEAD,
         least=0, plan="local", peer=Peer(0, "partitioned", 4.0), jax_diff=1.1e-07),
    Case("attn_qseq_causal", "x=4", """
        query: f32[2, 64, 8, 16] [_, x, _, _] ~ normal(1)
        key: f32[2, 64, 8, 16] [_, _, _, _] ~ normal(1)
        value: f32[2, 64, 8, 16] [_, _, _, _] ~ normal(1)
        query_by_head = Transpose(query, perm=[0, 2, 1, 3])
        key_by_head = Transpose(key, perm=[0, 2, 1, 3])
        value_by_head = Transpose(value, perm=[0, 2, 1, 3])
        attention = Attention(query_by_head, key_by_head, value_by_head, is_causal=1)
        context: f32[2, 64, 8, 16] [_, x, _, _] = Transpose(attention, perm=[0, 2, 1, 3])
    """,
         least=0, plan="mask slice computed from the rank", peer=Peer(0, "partitioned", 4.0), opset=23, jax_diff=9e-08),
    Case("attn_kvseq", "x=4", """
        query: f32[2, 64, 8, 16] [_, _, _, _] ~ normal(1)
        key: f32[2, 64, 8, 16] [_, x, _, _] ~ normal(1)
        value: f32[2, 64, 8, 16] [_, x, _, _] ~ normal(1)
        context: f32[2, 64, 8, 16] [_, _, _, _]
    """ + BY_HEAD,
         least=73728,
         plan="less than reducing numerators: a2a k and v from sequence to heads (8 heads on 4 ranks), q sliced by heads, "
              "local attention, AG of the result",
         peer=Peer(110592, "partitioned", 4.0, collectives={"all_reduce": 3}),
         least_note="was 110592; before: AR max, AR sum, AR numerator (scores never move)", jax_diff=1.1e-07),
    Case("attn_all_seq", "x=4", """
        query: f32[2, 64, 8, 16] [_, x, _, _] ~ normal(1)
        key: f32[2, 64, 8, 16] [_, x, _, _] ~ normal(1)
        value: f32[2, 64, 8, 16] [_, x, _, _] ~ normal(1)
        context: f32[2, 64, 8, 16] [_, x, _, _]
    """ + BY_HEAD,
         least=49152, plan="Ulysses: a2a q,k,v to heads, local attention, a2a back (heads 8 % 4 == 0)",
         peer=Peer(98304, "partitioned", 4.0, collectives={"all_gather": 2}), jax_diff=1.1e-07),
    # Four heads on eight ranks: heads go over four of them, the sequence stays over pairs (sub-axis x:(1)2). Of a tensor of
    # n bytes a rank has n / 8: each of q, k, v and the result sends 3 / 4 of that by all_to_all, and the two ranks of a pair give
    # each other their half of the n / 4 of k and of v. With n = 64 * 4 * 16 * 4: 4 * 3 n / 32 + 2 n / 8. Gathering k and v over
    # all ranks is 2 * 7 n / 8. What is expected comes from onnxruntime.
    Case("attn_all_seq_few_heads", "x=8", """
        query: f32[1, 64, 4, 16] [_, x, _, _] ~ normal(1)
        key: f32[1, 64, 4, 16] [_, x, _, _] ~ normal(1)
        value: f32[1, 64, 4, 16] [_, x, _, _] ~ normal(1)
        context: f32[1, 64, 4, 16] [_, x, _, _]
    """ + BY_HEAD,
         least=4 * 3 * 16384 // 32 + 2 * 16384 // 8, plan="a2a q,k,v to heads over 4 ranks, AG k,v over 2, a2a back",
         expect={"context": ([-0.372494, 0.0593223, 0.00943506, -0.140431], 648.066)}),
    # A token sees 7 before itself. Of 64 tokens rank p has [16 p, 16 p + 16): it needs keys and values of [16 p - 7, 16 p), which rank p - 1
    # has and no other. So ranks 0 to 2 send 7 of each. Exchanging tokens for heads is 4 * 3 n / 16, n = 64 * 1024 bytes: 49152. By the
    # argument of "Minima of exchanges" in README.md. Expected: onnxruntime 1.31.1.
    Case("attn_window", "x=4", window(2, 64, 8, 7),
         least=2 * 7 * token(2, 8), plan="7 keys and values of the neighbor before", opset=23,
         expect={"context": ([0.124163, -1.24023, 2.32667, 0.516644], 6603.276)}),
    # The window is longer than a shard: of 64 tokens rank p has 8 and needs the 19 before them, 8 of rank p - 1, 8 of rank p - 2 and 3
    # of rank p - 3. Rank 0 sends 8 to rank 1, 8 to rank 2 and 3 to rank 3, and so do ranks 1 to 4: 19 of each of keys and values.
    # Gathering is 2 * 7 n / 8 of n = 4096 bytes, 7168; there is one head.
    Case("attn_window_far", "x=8", window(1, 64, 1, 19),
         least=2 * 19 * token(1, 1), plan="19 keys and values, of three neighbors before", opset=23,
         expect={"context": ([0.801601, 0.125022, 0.318692, 1.32818], 305.2702)}),
    # The same with four heads, n = 16384. Heads go over h of the 8 ranks, 4 tensors of (h - 1) n / (8 h), and then a rank needs 19 tokens of
    # 4 / h heads, whether of one neighbor or of several: 9728 for h = 1, 4096 + 4864 = 8960 for h = 2, and 6144 + 2432 = 8576 for h = 4.
    Case("attn_window_few_heads", "x=8", window(1, 64, 4, 19),
         least=4 * 3 * 16384 // 32 + 2 * 19 * token(1, 1), plan="a2a q,k,v to heads over 4 ranks, 19 keys and values of the other rank of a pair, a2a back",
         opset=23, expect={"context": ([1.09096, -0.753179, 0.411449, -0.323581], 1255.552)}),
    # One query over keys that lie cut: two numbers per head (maximum, sum) and the weighted values are reduced, whatever the
    # number of keys: 2 * 7 / 8 of (2 * 8 + 2 * 8 + 2 * 8 * 64) * 4 bytes. Keys and values are 2 MB each. Expected: onnxruntime.
    Case("attn_decode_kvseq", "x=8", """
        query: f32[2, 1, 8, 64] [_, _, _, _] ~ normal(1)
        key: f32[2, 512, 8, 64] [_, x, _, _] ~ normal(1)
        value: f32[2, 512, 8, 64] [_, x, _, _] ~ normal(1)
        context: f32[2, 1, 8, 64] [_, _, _, _]
    """ + BY_HEAD,
         least=2 * 7 * (2 * 8 + 2 * 8 + 2 * 8 * 64) * 4 // 8, plan="AR max, AR sum, AR numerator",
         expect={"context": ([-0.0701349, 0.285488, 0.0342946, -0.0426538], 130.386)}),
    # The same with two key/value heads for eight, in one op: 2 * 3 / 4 of (8 + 8 + 8 * 64) * 4 bytes. Expected: onnxruntime.
    Case("attn_decode_gqa_kvseq", "x=4", """
        query: f32[1, 8, 1, 64] [_, _, _, _] ~ normal(1)
        key: f32[1, 2, 256, 64] [_, _, x, _] ~ normal(1)
        value: f32[1, 2, 256, 64] [_, _, x, _] ~ normal(1)
        context: f32[1, 8, 1, 64] [_, _, _, _] = Attention(query, key, value)
    """,
         least=2 * 3 * (8 + 8 + 8 * 64) * 4 // 4, plan="AR max, AR sum, AR numerator", opset=23,
         expect={"context": ([0.136055, 0.0195558, 0.026, 0.0502547], 45.853)}),
    Case("attn_seq_to_heads", "x=4", """
        query: f32[2, 64, 8, 16] [_, x, _, _] ~ normal(1)
        key: f32[2, 64, 8, 16] [_, x, _, _] ~ normal(1)
        value: f32[2, 64, 8, 16] [_, x, _, _] ~ normal(1)
        query_by_head: [_, x, _, _]
        key_by_head: [_, x, _, _]
        value_by_head: [_, x, _, _]
        context: f32[2, 64, 8, 16] [_, x, _, _]
    """ + BY_HEAD,
         least=49152, plan="user-written Ulysses constraints: 4 a2a",
         peer=Peer(49152, "partitioned", 4.0, collectives={"all_to_all": 4}), jax_diff=1.1e-07),
    Case("layer_2x4", "d=2, m=4", """
        hidden: f32[4, 32, 128] [d, _, _] ~ normal(1)
        norm1.weight: f32[128] [_] ~ normal(1)
        query.weight: f32[128, 128] [_, m] ~ normal(0.08838834764831843)
        key.weight: f32[128, 128] [_, m] ~ normal(0.08838834764831843)
        value.weight: f32[128, 128] [_, m] ~ normal(0.08838834764831843)
        out.weight: f32[128, 128] [m, _] ~ normal(0.08838834764831843)
        norm2.weight: f32[128] [_] ~ normal(1)
        up.weight: f32[128, 512] [_, m] ~ normal(0.08838834764831843)
        down.weight: f32[512, 128] [m, _] ~ normal(0.044194173824159216)
        output: f32[4, 32, 128] [d, _, _]
    """ + layer(4, 32, 8, 16),
         least=98304, plan="two AR over m", peer=Peer(98304, "partitioned", 8.0, collectives={"all_reduce": 2}),
         jax_diff=5.7e-07, expect={"output": ([0.746997, 0.126412, 1.17674, 0.382012], 16583.31)}),
    Case("bmm_batch_heads", "d=2, m=4", """
        query: f32[4, 8, 32, 16] [d, m, _, _] ~ normal(1)
        key: f32[4, 8, 32, 16] [d, m, _, _] ~ normal(1)
        scores: f32[4, 8, 32, 32] [d, m, _, _] = Einsum(query, key, equation="bhqd,bhkd->bhqk")
    """,
         least=0, plan="local", peer=Peer(0, "partitioned", 8.0), jax_diff=1.6e-07),
]
