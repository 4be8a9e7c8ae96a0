"""What real models do beside all that: each case is one thing that went wrong somewhere."""
from case import Case, Peer
from table.pieces import attention, gelu_mlp, layer, rms_norm

# Attention that has the feed-forward part beside it, on the same norm.
BESIDE = rms_norm("hidden", "norm") + attention("norm", 2, 32, 8, 16, "attention")
# Sixteen steps, unrolled.
RECURRENCE = "".join(f"""
        input{step} = Gather(sequence, {step}, axis=0)
        recurrent{step} = MatMul({f"state{step - 1}" if step else "initial"}, recurrent.weight)
        state{step} = Tanh(Add(input{step}, recurrent{step}))
        unsqueeze{f"_{step + 1}" if step else ""} = Unsqueeze(state{step}, [0])
    """ for step in range(16)) + f"""
        states = Concat(unsqueeze, {", ".join(f"unsqueeze_{step + 1}" for step in range(1, 16))}, axis=0)
    """

CASES = [
    Case("parallel_block", "x=4", """
        hidden: f32[2, 32, 128] [_, _, _] ~ normal(1)
        norm.weight: f32[128] [_] ~ normal(1)
        query.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        key.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        value.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        out.weight: f32[128, 128] [x, _] ~ normal(0.08838834764831843)
        up.weight: f32[128, 512] [_, x] ~ normal(0.08838834764831843)
        down.weight: f32[512, 128] [x, _] ~ normal(0.044194173824159216)
        output: f32[2, 32, 128] [_, _, _]
    """ + BESIDE + """
        sum = Add(hidden, attention)
    """ + gelu_mlp("norm") + "output = Add(sum, ffn)",
         least=49152, plan="PaLM/GPT-J block: add attention and MLP partials, one AR",
         peer=Peer(98304, "partitioned", 4.0, collectives={"all_reduce": 2}), jax_diff=4.3e-07,
         expect={"output": ([0.633717, -0.261273, 1.29001, -0.63157], 8149.381)}),
    Case("int8_weight_fsdp", "x=8", """
        hidden: f32[2048, 256] [x, _] ~ normal(0.022097086912079608)
        weight: i32[256, 1024] [x, _] ~ integers(127)
        scale: f32[1024] [_] ~ normal(1)
        weight_float = Mul(Cast(weight, to=f32), scale)
        output: f32[2048, 1024] [x, _] = MatMul(hidden, weight_float)
    """,
         least=917504, plan="AG the stored weight, then scale (here int32 stands for a stored type of equal size)",
         peer=Peer(917504, "partitioned", 8.0, collectives={"all_gather": 1}),
         note="the weight is stored as int32, as a control for int8_weight_fsdp_cast", jax_diff=6e-07,
         expect={"output": ([10.3344, -10.3745, 9.83279, 4.00849], 34510480.0)}),
    Case("int8_weight_fsdp_cast", "x=8", """
        hidden: f32[2048, 256] [x, _] ~ normal(0.022097086912079608)
        weight: i8[256, 1024] [x, _] ~ integers(127)
        scale: f32[1024] [_] ~ normal(1)
        weight_float = DequantizeLinear(weight, scale, axis=1)
        output: f32[2048, 1024] [x, _] = MatMul(hidden, weight_float)
    """,
         least=229376, plan="AG the int8 weight (1 byte), dequantize after",
         peer=Peer(917504, "partitioned", 8.0, collectives={"all_gather": 1}),
         note="the weight is an int8 input; in JAX it is int32 and cast at once", jax_diff=6e-07,
         expect={"output": ([10.3344, -10.3745, 9.83279, 4.00849], 34510480.0)}),
    Case("bcast_then_gather", "x=4", """
        vector: f32[256] [x] ~ normal(1)
        wide = Expand(Unsqueeze(vector, [1]), [256, 1024])
        output: f32[256, 1024] [_, _] = Mul(wide, 2.0)
    """,
         least=768, plan="AG the vector, broadcast after", peer=Peer(786432, "partitioned", collectives={"all_gather": 1}),
         compute="the multiplication is repeated unless it is done before the AG", exact=True, jax_diff=0.0),
    Case("gather_h_and_tanh_h", "x=4", """
        hidden: f32[64, 256] [x, _] ~ normal(0.125)
        first.weight: f32[256, 64] [_, x] ~ normal(0.0625)
        second.weight: f32[256, 64] [_, x] ~ normal(0.0625)
        first: f32[64, 64] [_, x] = MatMul(hidden, first.weight)
        second: f32[64, 64] [_, x] = MatMul(Tanh(hidden), second.weight)
    """,
         least=49152, plan="AG h once, tanh after it", peer=Peer(98304, "partitioned", 4.0, collectives={"all_gather": 2}),
         compute="tanh is repeated on 4 ranks", jax_diff=8.3e-09),
    Case("partial_add_bias_reshape_rs", "x=4", """
        left: f32[64, 256] [_, x] ~ normal(0.125)
        right: f32[256, 64] [x, _] ~ normal(0.0625)
        bias: f32[64] [_] ~ normal(1)
        linear = Gemm(left, right, bias)
        output: f32[8, 8, 64] [x, _, _] = Reshape(linear, [8, 8, 64])
    """,
         least=12288, plan="bias after the RS, reshape local",
         peer=Peer(12288, "partitioned", 4.0, collectives={"reduce_scatter": 1}), jax_diff=0.0),
    Case("partial_slice", "x=4", """
        left: f32[64, 256] [_, x] ~ normal(0.125)
        right: f32[256, 64] [x, _] ~ normal(0.0625)
        product = MatMul(left, right)
        output: f32[64, 8] [_, _] = Slice(product, [0], [8], [1])
    """,
         least=3072, plan="slice the partial (or b) first, AR of 8 columns",
         peer=Peer(24576, "partitioned", 4.0, collectives={"all_reduce": 1}), jax_diff=0.0),
    Case("partial_last_token", "x=4", """
        left: f32[256, 256] [_, x] ~ normal(0.0625)
        right: f32[256, 64] [x, _] ~ normal(0.0625)
        product = MatMul(left, right)
        tokens = Reshape(product, [4, 64, 64])
        output: f32[4, 64] [_, _] = Gather(tokens, -1, axis=1)
    """,
         least=1536, plan="slice first, AR of the last token only",
         peer=Peer(98304, "partitioned", 4.0, collectives={"all_reduce": 1}), jax_diff=0.0,
         expect={"output": ([-0.0592923, -0.0619301, 0.0395707, -0.10712], 13.54047)}),
    Case("gather_last_token", "x=4", """
        hidden: f32[4, 64, 64] [_, x, _] ~ normal(1)
        head.weight: f32[64, 256] [_, x] ~ normal(0.125)
        last = Gather(hidden, -1, axis=1)
        logits: f32[4, 256] [_, x] = MatMul(last, head.weight)
    """,
         least=1536, plan="masked AR of 4x64 (a broadcast would be less)",
         peer=Peer(2560, "partitioned", 4.0, collectives={"all_reduce": 1, "permute": 1}), jax_diff=0.0),
    Case("chain_col_row_col", "x=4", """
        hidden: f32[64, 256] [_, _] ~ normal(0.125)
        up1.weight: f32[256, 1024] [_, x] ~ normal(0.0625)
        down1.weight: f32[1024, 256] [x, _] ~ normal(0.03125)
        up2.weight: f32[256, 1024] [_, x] ~ normal(0.0625)
        down2.weight: f32[1024, 256] [x, _] ~ normal(0.03125)
        up1 = MatMul(hidden, up1.weight)
        down1 = MatMul(up1, down1.weight)
        up2 = MatMul(down1, up2.weight)
        output: f32[64, 256] [_, _] = MatMul(up2, down2.weight)
    """,
         least=196608, plan="two AR", peer=Peer(196608, "partitioned", 4.0, collectives={"all_reduce": 2}), jax_diff=7.6e-07,
         expect={"output": ([0.0103942, -0.0366304, 0.159394, -0.0412749], 1618.429)}),
    Case("rnn_fsdp_weight", "x=4", """
        sequence: f32[16, 8, 64] [_, x, _] ~ normal(1)
        recurrent.weight: f32[64, 64] [x, _] ~ normal(0.125)
        initial: f32[8, 64] [x, _] ~ normal(0.35355339059327373)
        states: f32[16, 8, 64] [_, x, _]
    """ + RECURRENCE,
         least=12288, plan="AG the weight once, before the loop",
         peer=Peer(12288, "final", 4.0, collectives={"all_gather": 1}),
         note="the partitioner puts the AG in the body (16 times); XLA hoists it later, so only the final count is right; "
              "unrolled; JAX has a loop",
         jax_diff=8.7e-11),
    Case("groupnorm_chan", "x=4", """
        image: f32[4, 32, 8, 8] [_, x, _, _] ~ normal(1)
        grouped = Reshape(image, [4, 8, 4, 8, 8])
        mean = ReduceMean(grouped, [2, 3, 4], keepdims=1)
        sub = Sub(grouped, mean)
        mean_square = ReduceMean(Mul(grouped, grouped), [2, 3, 4], keepdims=1)
        output: f32[4, 32, 8, 8] [_, x, _, _] = Reshape(Div(sub, Sqrt(Add(mean_square, 1e-05))), [4, 32, 8, 8])
    """,
         least=0, plan="local", peer=Peer(0, "partitioned"), jax_diff=1.9e-07),
    Case("instancenorm_spatial", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, x, _] ~ normal(1)
        output: f32[4, 16, 32, 32] [_, _, x, _] = InstanceNormalization(image, """ + f"{[1.0] * 16}, {[0.0] * 16}," + """
            epsilon=1e-05)
    """,
         least=768, plan="AR of 2 statistics per (n, c)", peer=Peer(1152, "partitioned", collectives={"all_reduce": 3}),
         jax_diff=1.5e-07, expect={"output": ([0.179983, -0.0853146, 0.709574, 0.15855], 52319.34)}),
    Case("depth_to_space_spatial", "x=4", """
        image: f32[4, 16, 16, 16] [_, _, x, _] ~ normal(1)
        output: f32[4, 4, 32, 32] [_, _, x, _] = DepthToSpace(image, blocksize=2, mode="CRD")
    """,
         least=0, plan="local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("flatten_nchw_spatial", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, x, _] ~ normal(1)
        tokens: f32[4, 1024, 16] [_, x, _] = Reshape(Transpose(image, perm=[0, 2, 3, 1]), [4, 1024, 16])
    """,
         least=0, plan="local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0,
         expect={"tokens": ([0.12573, 0.48424, 0.801601, -1.15222], 52283.04)}),
    Case("flatten_then_fc_chan", "x=4", """
        image: f32[4, 16, 8, 8] [_, x, _, _] ~ normal(1)
        fc.weight: f32[1024, 32] [x, _] ~ normal(0.03125)
        logits: f32[4, 32] [_, _] = MatMul(Flatten(image, axis=1), fc.weight)
    """,
         least=768, plan="flattened dim keeps the major shard, AR",
         peer=Peer(768, "partitioned", 4.0, collectives={"all_reduce": 1}), jax_diff=0.0),
    Case("swin_window_partition", "x=2", """
        image: f32[2, 28, 28, 16] [x, _, _, _] ~ normal(1)
        reshape = Reshape(image, [2, 4, 7, 4, 7, 16])
        windows: f32[32, 49, 16] [x, _, _] = Reshape(Transpose(reshape, perm=[0, 1, 3, 2, 4, 5]), [32, 49, 16])
    """,
         least=0, plan="batch major: local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("swin_window_spatial", "x=4", """
        image: f32[2, 28, 28, 16] [_, x, _, _] ~ normal(1)
        reshape = Reshape(image, [2, 4, 7, 4, 7, 16])
        windows: f32[2, 16, 49, 16] [_, x, _, _] = Reshape(Transpose(reshape, perm=[0, 1, 3, 2, 4, 5]), [2, 16, 49, 16])
    """,
         least=0, plan="rows of windows: local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("logits_argmax", "x=8", """
        hidden: f32[8, 64] [_, _] ~ normal(0.35355339059327373)
        head.weight: f32[64, 32768] [_, x] ~ normal(0.125)
        logits = MatMul(hidden, head.weight)
        token: i64[8] [_] = ArgMax(logits, axis=-1, keepdims=0)
    """,
         least=112, plan="AR max value, AR min index", peer=Peer(448, "partitioned", 8.0, collectives={"all_gather": 2}),
         least_note="indices travel as int32; as int64, ONNX's type for them, 168 bytes", jax_diff=0.0,
         expect={"token": ([29870.0, 6061.0, 20255.0, 25431.0], 148955.0)}),
    Case("resize_nearest_down", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, x, _] ~ normal(1)
        output: f32[4, 16, 16, 16] [_, _, x, _] = Slice(image, [0, 0], [32, 32], [2, 3], [2, 2])
    """,
         least=0, plan="local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0,
         expect={"output": ([0.12573, 0.640423, -0.535669, 1.304], 13098.05)}),
    Case("upsample_repeat", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, x, _] ~ normal(1)
        repeated = Reshape(Expand(Unsqueeze(image, [3]), [4, 16, 32, 2, 32]), [4, 16, 64, 32])
        unsqueeze_2 = Unsqueeze(repeated, [4])
        output: f32[4, 16, 64, 64] [_, _, x, _] = Reshape(Expand(unsqueeze_2, [4, 16, 64, 32, 2]), [4, 16, 64, 64])
    """,
         least=0, plan="local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0,
         expect={"output": ([0.12573, 0.12573, -0.132105, -0.132105], 209132.2)}),
    Case("concat_kv_seq", "x=4", """
        past: f32[2, 124, 8, 16] [_, _, _, _] ~ normal(1)
        new: f32[2, 4, 8, 16] [_, _, _, _] ~ normal(1)
        joined: f32[2, 128, 8, 16] [_, x, _, _] = Concat(past, new, axis=1)
    """,
         least=0, plan="both replicated, slice the concat", peer=Peer(24576, "partitioned", collectives={"all_to_all": 1}),
         exact=True, jax_diff=0.0),
    Case("mul_scalar_param_gather", "x=4", """
        hidden: f32[64, 64] [x, _] ~ normal(0.125)
        scale: f32[64, 64] [_, _] ~ normal(0.125)
        output: f32[64, 64] [_, _] = Mul(hidden, scale)
    """,
         least=12288, plan="AG once", peer=Peer(12288, "partitioned", collectives={"all_gather": 1}), exact=True,
         jax_diff=0.0),
    Case("where_causal_rep", "x=4", """
        scores: f32[2, 8, 64, 64] [_, _, _, x] ~ normal(1)
        mask.ones = ConstantOfShape([64, 64], value=1.0)
        mask = Cast(Trilu(mask.ones, upper=0), to=i1)
        scores_masked = Where(mask, scores, -1e9)
        probs: f32[2, 8, 64, 64] [_, _, _, x] = Softmax(scores_masked, axis=-1)
    """,
         least=12288, plan="mask by rank, AR max, AR sum", peer=Peer(12288, "partitioned", collectives={"all_reduce": 2}),
         jax_diff=1.2e-07, expect={"probs": ([1.0, 0.0, 0.0, 0.0], 1024.0)}),
    Case("scatter_kv_paged", "x=4", """
        cache: f32[1024, 8, 16] [x, _, _] ~ normal(1)
        pages: i32[8] [_] ~ choice(1024)
        updates: f32[8, 8, 16] [_, _, _] ~ normal(1)
        ids64 = Cast(pages, to=i64)
        output: f32[1024, 8, 16] [x, _, _] = ScatterND(cache, Unsqueeze(ids64, [1]), updates, reduction="none")
    """,
         least=0, plan="masked scatter", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0,
         expect={"output": ([0.12573, -0.132105, 0.640423, 0.1049], 104709.1)}),
    Case("strided_slice_odd", "x=4", """
        rows: f32[64, 64] [x, _] ~ normal(0.125)
        picked: f32[32, 64] [x, _] = Slice(rows, [1], [64], [0], [2])
    """,
         least=0, plan="local (shard length even)", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("strided_slice_3", "x=4", """
        rows: f32[96, 64] [x, _] ~ normal(0.10206207261596577)
        picked: f32[32, 64] [x, _] = Slice(rows, [0], [96], [0], [3])
    """,
         least=0, plan="local (24 per shard, multiple of 3)", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0),
    Case("maxpool_global_1d", "x=4", """
        sequence: f32[8, 64, 32] [_, x, _] ~ normal(1)
        best: f32[8, 32] [x, _] = ReduceMax(sequence, [1], keepdims=0)
    """,
         least=768, plan="RS with max", peer=Peer(768, "partitioned", collectives={"reduce_scatter": 1}), exact=True,
         jax_diff=0.0),
    Case("cosine_sim", "x=4", """
        left: f32[64, 256] [_, x] ~ normal(0.125)
        right: f32[64, 256] [_, x] ~ normal(0.125)
        left_norm = ReduceL2(left, [-1], keepdims=1)
        left_unit = Div(left, left_norm)
        right_norm = ReduceL2(right, [-1], keepdims=1)
        right_unit = Div(right, right_norm)
        similarity: f32[64, 64] [_, _] = Gemm(left_unit, right_unit, transB=1)
    """,
         least=25344, plan="norm AR, AR of the product", peer=Peer(25344, "partitioned", 4.0, collectives={"all_reduce": 3}),
         jax_diff=6.2e-07),
    Case("parallel_block_paren", "x=4", """
        hidden: f32[2, 32, 128] [_, _, _] ~ normal(1)
        norm.weight: f32[128] [_] ~ normal(1)
        query.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        key.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        value.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        out.weight: f32[128, 128] [x, _] ~ normal(0.08838834764831843)
        up.weight: f32[128, 512] [_, x] ~ normal(0.08838834764831843)
        down.weight: f32[512, 128] [x, _] ~ normal(0.044194173824159216)
        output: f32[2, 32, 128] [_, _, _]
    """ + BESIDE + gelu_mlp("norm") + "output = Add(hidden, Add(attention, ffn))",
         least=49152, plan="as parallel_block, sum bracketed",
         peer=Peer(98304, "partitioned", 4.0, collectives={"all_reduce": 2}), jax_diff=4.3e-07,
         expect={"output": ([0.633717, -0.261273, 1.29001, -0.63157], 8149.381)}),
    Case("attn_mlp_free_seqpar", "x=4", """
        hidden: f32[4, 32, 128] [_, x, _] ~ normal(1)
        norm1.weight: f32[128] [_] ~ normal(1)
        query.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        key.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        value.weight: f32[128, 128] [_, x] ~ normal(0.08838834764831843)
        out.weight: f32[128, 128] [x, _] ~ normal(0.08838834764831843)
        norm2.weight: f32[128] [_] ~ normal(1)
        up.weight: f32[128, 512] [_, x] ~ normal(0.08838834764831843)
        down.weight: f32[512, 128] [x, _] ~ normal(0.044194173824159216)
        output: f32[4, 32, 128] [_, x, _]
    """ + layer(4, 32, 8, 16),
         least=196608, plan="AG RS AG RS",
         peer=Peer(393216, "partitioned", 4.0, collectives={"all_gather": 7, "reduce_scatter": 1}),
         note="Megatron sequence parallel with only boundary shardings given; Shardy lets the tensor with more elements win "
              "(here activation 16384 = weight 16384)",
         jax_diff=5.7e-07, expect={"output": ([0.746997, 0.126412, 1.17674, 0.382012], 16583.31)}),
    Case("layer_2x4_seqpar_hint", "d=2, m=4", """
        hidden: f32[4, 32, 128] [d, m, _] ~ normal(1)
        norm1.weight: f32[128] [_] ~ normal(1)
        query.weight: f32[128, 128] [_, m] ~ normal(0.08838834764831843)
        key.weight: f32[128, 128] [_, m] ~ normal(0.08838834764831843)
        value.weight: f32[128, 128] [_, m] ~ normal(0.08838834764831843)
        out.weight: f32[128, 128] [m, _] ~ normal(0.08838834764831843)
        norm2.weight: f32[128] [_] ~ normal(1)
        up.weight: f32[128, 512] [_, m] ~ normal(0.08838834764831843)
        down.weight: f32[512, 128] [m, _] ~ normal(0.044194173824159216)
        norm1: [d, _, _]
        attention: [d, m, _]
        residual1: [d, m, _]
        norm2: [d, _, _]
        output: f32[4, 32, 128] [d, m, _]
    """ + layer(4, 32, 8, 16),
         least=98304, plan="AG RS AG RS, with the usual constraints written by the user",
         peer=Peer(98304, "partitioned", 8.0, collectives={"all_gather": 2, "reduce_scatter": 2}), jax_diff=5.7e-07,
         expect={"output": ([0.746997, 0.126412, 1.17674, 0.382012], 16583.31)}),
    Case("layer_2x4_seqpar_wide", "d=2, m=4", """
        hidden: f32[4, 32, 512] [d, m, _] ~ normal(1)
        norm1.weight: f32[512] [_] ~ normal(1)
        query.weight: f32[512, 512] [_, m] ~ normal(0.044194173824159216)
        key.weight: f32[512, 512] [_, m] ~ normal(0.044194173824159216)
        value.weight: f32[512, 512] [_, m] ~ normal(0.044194173824159216)
        out.weight: f32[512, 512] [m, _] ~ normal(0.044194173824159216)
        norm2.weight: f32[512] [_] ~ normal(1)
        up.weight: f32[512, 2048] [_, m] ~ normal(0.044194173824159216)
        down.weight: f32[2048, 512] [m, _] ~ normal(0.022097086912079608)
        output: f32[4, 32, 512] [d, m, _]
    """ + layer(4, 32, 8, 64),
         least=393216, plan="AG RS AG RS",
         peer=Peer(393216, "partitioned", 8.0, collectives={"all_gather": 2, "reduce_scatter": 2}),
         note="weights large against activations; no inner constraints", jax_diff=5.2e-07,
         expect={"output": ([0.694641, 1.1227, 0.945283, 1.1262], 66225.35)}),
    Case("last_token_head", "x=4", """
        hidden: f32[4, 64, 128] [_, _, _] ~ normal(1)
        up.weight: f32[128, 512] [_, x] ~ normal(0.08838834764831843)
        down.weight: f32[512, 128] [x, _] ~ normal(0.044194173824159216)
        head.weight: f32[128, 1024] [_, x] ~ normal(0.08838834764831843)
        ffn.up = MatMul(hidden, up.weight)
        ffn.act = Gelu(ffn.up, approximate="tanh")
        ffn = MatMul(ffn.act, down.weight)
        block = Add(hidden, ffn)
        last = Gather(block, -1, axis=1)
        logits: f32[4, 1024] [_, x] = MatMul(last, head.weight)
    """,
         least=3072, plan="slice the last token before the AR of the MLP (decode/prefill head); x is replicated",
         peer=Peer(196608, "partitioned", 4.0, collectives={"all_reduce": 1}), opset=20, jax_diff=4.7e-07,
         expect={"logits": ([0.643827, -0.473424, 0.474054, 0.54321], 3830.022)}),
    # A row-parallel layer (k cut over p ranks) with a low-rank addition: y = x w + (x a) b, whole at the end. Every rank has one
    # term of each of the m n elements of y, and a sum of p such terms costs at least 2 (p - 1) / p of it: reduce-scatter, then
    # all-gather. Nothing more is needed, since (x a) b is linear in the terms of x a: they pass through b and are added to
    # those of x w. With p = 4, m = 32, n = 256 in f32: 2 * 3 / 4 * 32 * 256 * 4 = 49152. Summing x a by itself would send
    # 2 * 3 / 4 * 32 * 8 * 4 = 1536 more. There is no peer's figure; what is expected comes from onnx.reference.
    Case("lora_row_parallel", "x=4", """
        hidden: f32[32, 256] [_, x] ~ normal(1)
        weight: f32[256, 256] [x, _] ~ normal(0.0625)
        lora_a: f32[256, 8] [x, _] ~ normal(0.0625)
        lora_b: f32[8, 256] [_, _] ~ normal(0.125)
        low = MatMul(hidden, lora_a)
        output: f32[32, 256] [_, _] = Add(MatMul(hidden, weight), MatMul(low, lora_b))
    """,
         least=2 * 3 * 32 * 256 * 4 // 4, plan="terms of x a pass through b; AR of the sum",
         compute="every rank multiplies its terms of x a by the whole of b",
         expect={"output": ([0.659799, 0.929876, -0.836438, -0.364631], 6935.12)}),
]
