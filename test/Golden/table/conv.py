"""Windows: batch, channels and space."""
from case import Case, Peer

RESNET_BLOCK = """
        conv1 = Conv(image, conv1.weight, pads=[1, 1, 1, 1])
        conv2 = Conv(Relu(conv1), conv2.weight, pads=[1, 1, 1, 1])
        residual = Add(image, conv2)
        output = Relu(residual)
    """

CASES = [
    Case("conv_batch", "x=4", """
        image: f32[4, 16, 32, 32] [x, _, _, _] ~ normal(1)
        weight: f32[16, 16, 3, 3] [_, _, _, _] ~ normal(1)
        output: f32[4, 16, 32, 32] [x, _, _, _] = Conv(image, weight, pads=[1, 1, 1, 1])
    """,
         least=0, plan="local", peer=Peer(0, "partitioned", 4.0), jax_diff=5.1e-07,
         expect={"output": ([-4.82666, 7.26965, -16.8471, -15.8883], 621389.9)}),
    Case("conv_cout", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, _, _] ~ normal(1)
        weight: f32[16, 16, 3, 3] [x, _, _, _] ~ normal(1)
        output: f32[4, 16, 32, 32] [_, x, _, _] = Conv(image, weight, pads=[1, 1, 1, 1])
    """,
         least=0, plan="local", peer=Peer(0, "partitioned", 4.0), jax_diff=5.1e-07,
         expect={"output": ([-4.82666, 7.26965, -16.8471, -15.8883], 621389.9)}),
    Case("conv_cin", "x=4", """
        image: f32[4, 16, 32, 32] [_, x, _, _] ~ normal(1)
        weight: f32[16, 16, 3, 3] [_, x, _, _] ~ normal(1)
        output: f32[4, 16, 32, 32] [_, _, _, _] = Conv(image, weight, pads=[1, 1, 1, 1])
    """,
         least=252672,
         plan="less than the all-reduce: a2a of the input from channels to batch, AG of the small weight, local conv on the "
              "batch shard, AG of the result",
         peer=Peer(393216, "partitioned", 4.0, collectives={"all_reduce": 1}),
         least_note="was 393216; before: AR of the output", jax_diff=5.1e-07,
         expect={"output": ([-4.82666, 7.26965, -16.8471, -15.8883], 621389.9)}),
    Case("conv_cin_cout", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, _, _] ~ normal(1)
        conv1.weight: f32[64, 16, 3, 3] [x, _, _, _] ~ normal(1)
        conv2.weight: f32[16, 64, 3, 3] [_, x, _, _] ~ normal(1)
        conv1 = Conv(image, conv1.weight, pads=[1, 1, 1, 1])
        output: f32[4, 16, 32, 32] [_, _, _, _] = Conv(Relu(conv1), conv2.weight, pads=[1, 1, 1, 1])
    """,
         least=251904,
         plan="less than the all-reduce: slice the replicated input on the batch, AG both small weights, AG of the result",
         peer=Peer(393216, "partitioned", 4.0, collectives={"all_reduce": 1}),
         least_note="was 393216; before: Megatron for conv: one AR", jax_diff=3.9e-07,
         expect={"output": ([-328.876, 4.58564, -221.026, -59.3146], 9187685.0)}),
    Case("conv_depthwise_chan", "x=4", """
        image: f32[4, 16, 32, 32] [_, x, _, _] ~ normal(1)
        weight: f32[16, 1, 3, 3] [x, _, _, _] ~ normal(1)
        output: f32[4, 16, 32, 32] [_, x, _, _] = Conv(image, weight, group=16, pads=[1, 1, 1, 1])
    """,
         least=0, plan="local", peer=Peer(0, "partitioned", 4.0), jax_diff=1.2e-07,
         expect={"output": ([-0.0295188, -0.0239563, -1.31827, -2.12305], 162265.2)}),
    Case("conv_spatial_s1", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, x, _] ~ normal(1)
        weight: f32[16, 16, 3, 3] [_, _, _, _] ~ normal(1)
        output: f32[4, 16, 32, 32] [_, _, x, _] = Conv(image, weight, pads=[1, 1, 1, 1])
    """,
         least=16384, plan="one row each way", peer=Peer(16384, "partitioned", 4.0, collectives={"permute": 2}),
         jax_diff=5.1e-07, expect={"output": ([-4.82666, 7.26965, -16.8471, -15.8883], 621389.9)}),
    Case("conv_spatial_s2", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, x, _] ~ normal(1)
        weight: f32[16, 16, 3, 3] [_, _, _, _] ~ normal(1)
        output: f32[4, 16, 16, 16] [_, _, x, _] = Conv(image, weight, pads=[1, 1, 1, 1], strides=[2, 2])
    """,
         least=8192, plan="window 2i-1..2i+1: only the upper neighbor's last row",
         peer=Peer(8192, "partitioned", 4.0, collectives={"permute": 1}), jax_diff=5.6e-07,
         expect={"output": ([-4.82666, -16.8471, 6.64709, 2.29319], 154503.1)}),
    Case("conv_spatial_s2_same", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, x, _] ~ normal(1)
        weight: f32[16, 16, 3, 3] [_, _, _, _] ~ normal(1)
        output: f32[4, 16, 16, 16] [_, _, x, _] = Conv(image, weight, auto_pad="SAME_UPPER", strides=[2, 2])
    """,
         least=8192, plan="window 2i..2i+2: only the lower neighbor's first row",
         peer=Peer(8192, "partitioned", 4.0, collectives={"permute": 1}), jax_diff=4.4e-07,
         expect={"output": ([1.53606, -1.44749, 2.61366, -11.307], 155595.0)}),
    Case("conv_spatial_2d", "d=2, m=4", """
        image: f32[4, 16, 32, 32] [_, _, d, m] ~ normal(1)
        weight: f32[16, 16, 3, 3] [_, _, _, _] ~ normal(1)
        output: f32[4, 16, 32, 32] [_, _, d, m] = Conv(image, weight, pads=[1, 1, 1, 1])
    """,
         least=10752, plan="1 row of 8 (d has one neighbor), then 2 columns of 17",
         peer=Peer(11264, "partitioned", 8.0, collectives={"permute": 4}),
         least_note="the two d neighbors swap rows in one permute with the operand chosen by rank; as two permutes a "
                    "report adds up 12800",
         jax_diff=5.1e-07, expect={"output": ([-4.82666, 7.26965, -16.8471, -15.8883], 621389.9)}),
    Case("conv_1x1_spatial", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, x, _] ~ normal(1)
        weight: f32[16, 16, 1, 1] [_, _, _, _] ~ normal(1)
        output: f32[4, 16, 32, 32] [_, _, x, _] = Conv(image, weight)
    """,
         least=0, plan="local", peer=Peer(0, "partitioned", 4.0), jax_diff=0.0,
         expect={"output": ([6.38543, -0.487833, 6.83933, 7.24529], 213577.1)}),
    Case("conv_patch16_spatial", "x=4", """
        image: f32[4, 3, 64, 64] [_, _, x, _] ~ normal(1)
        weight: f32[32, 3, 16, 16] [_, _, _, _] ~ normal(1)
        output: f32[4, 32, 4, 4] [_, _, x, _] = Conv(image, weight, strides=[16, 16])
    """,
         least=0, plan="stride = window = shard: local", peer=Peer(0, "partitioned", 4.0), jax_diff=5.1e-07),
    Case("maxpool2x2s2_spatial", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, x, _] ~ normal(1)
        output: f32[4, 16, 16, 16] [_, _, x, _] = MaxPool(image, kernel_shape=[2, 2], strides=[2, 2])
    """,
         least=0, plan="local", peer=Peer(0, "partitioned"), exact=True, jax_diff=0.0,
         expect={"output": ([0.540846, 0.640423, 0.361595, 1.49343], 17395.58)}),
    Case("maxpool3x3s2_spatial", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, x, _] ~ normal(1)
        output: f32[4, 16, 16, 16] [_, _, x, _] = MaxPool(image, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    """,
         least=8192, plan="one row from above", peer=Peer(8192, "partitioned", collectives={"permute": 1}),
         exact=True, jax_diff=0.0),
    Case("global_avgpool_spatial", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, x, _] ~ normal(1)
        features: f32[4, 16] [_, _] = Flatten(GlobalAveragePool(image), axis=1)
    """,
         least=384, plan="AR of N*C", peer=Peer(384, "partitioned", collectives={"all_reduce": 1}), jax_diff=4.6e-07),
    Case("resize_nearest2x", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, x, _] ~ normal(1)
        output: f32[4, 16, 64, 64] [_, _, x, _] = Resize(image, None, [1.0, 1.0, 2.0, 2.0],
            coordinate_transformation_mode="asymmetric", mode="nearest", nearest_mode="floor")
    """,
         least=0, plan="local repeat", peer=Peer(196608, "partitioned", collectives={"all_gather": 1}), exact=True,
         jax_diff=0.0, expect={"output": ([0.12573, 0.12573, -0.132105, -0.132105], 209132.2)}),
    Case("resnet_block_batch", "x=4", """
        image: f32[4, 16, 32, 32] [x, _, _, _] ~ normal(1)
        conv1.weight: f32[16, 16, 3, 3] [_, _, _, _] ~ normal(1)
        conv2.weight: f32[16, 16, 3, 3] [_, _, _, _] ~ normal(1)
        output: f32[4, 16, 32, 32] [x, _, _, _]
    """ + RESNET_BLOCK,
         least=0, plan="local", peer=Peer(0, "partitioned", 4.0), jax_diff=4.5e-07,
         expect={"output": ([0.0, 8.59014, 4.278, 23.3393], 1730751.0)}),
    Case("resnet_block_spatial", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, x, _] ~ normal(1)
        conv1.weight: f32[16, 16, 3, 3] [_, _, _, _] ~ normal(1)
        conv2.weight: f32[16, 16, 3, 3] [_, _, _, _] ~ normal(1)
        output: f32[4, 16, 32, 32] [_, _, x, _]
    """ + RESNET_BLOCK,
         least=32768, plan="two halos of one row each way", peer=Peer(32768, "partitioned", 4.0, collectives={"permute": 4}),
         jax_diff=4.5e-07, expect={"output": ([0.0, 8.59014, 4.278, 23.3393], 1730751.0)}),
    # What follows has no peer's figure; what is expected comes from onnxruntime. The least is what a rank in the middle has of its
    # neighbors' windows: no element that another rank needs can come from elsewhere.
    #
    # A dilation of 4 reaches 4 rows and 4 columns beyond a shard of 16 x 8: 4 * 8 for the one neighbor along d, 2 * 16 * 4 for
    # those along m, and two corners of 4 * 4, of 8 channels in f32.
    Case("conv_depthwise_dilated_2d", "d=2, m=4", """
        image: f32[1, 8, 32, 32] [_, _, d, m] ~ normal(1)
        weight: f32[8, 1, 3, 3] [_, _, _, _] ~ normal(1)
        output: f32[1, 8, 32, 32] [_, _, d, m] = Conv(image, weight, pads=[4, 4, 4, 4], dilations=[4, 4], group=8)
    """,
         least=(4 * 8 + 2 * 16 * 4 + 2 * 4 * 4) * 8 * 4, plan="rows, columns and corners",
         expect={"output": ([0.720525, 0.755943, -1.15995, 1.00953], 17488.49)}),
    # Windows of 7 rows on shards of 2: the upper row goes one rank down and two up, the lower one two down and one up. A window
    # of 7 x 1 would leave columns to themselves: two all_to_all send less then.
    Case("conv_edges_wider_than_shards", "x=8", """
        image: f32[1, 4, 16, 16] [_, _, x, _] ~ normal(1)
        weight: f32[4, 4, 7, 7] [_, _, _, _] ~ normal(1)
        output: f32[1, 4, 16, 16] [_, _, x, _] = Conv(image, weight, pads=[3, 3, 3, 3])
    """,
         least=(3 + 3) * 16 * 4 * 4, plan="each row to three ranks", expect={"output": ([-1.61281, 1.98096, 0.381365, -3.65265], 9839.202)}),
    # One row each way of 32 x 64 elements, and no count of what is padded.
    Case("avgpool3x3_spatial", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, x, _] ~ normal(1)
        output: f32[4, 16, 32, 32] [_, _, x, _] = AveragePool(image, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    """,
         least=2 * 32 * 64 * 4, plan="one row each way", expect={"output": ([0.0938115, 0.205055, 0.287349, 0.0209761], 18034.8)}),
    # Row o of the result is made of rows (o - 2) / 2 to (o + 1) / 2 of the input: one more on each side of a shard.
    Case("conv_transpose_spatial", "x=4", """
        image: f32[4, 16, 16, 16] [_, _, x, _] ~ normal(1)
        weight: f32[16, 16, 4, 4] [_, _, _, _] ~ normal(1)
        output: f32[4, 16, 32, 32] [_, _, x, _] = ConvTranspose(image, weight, pads=[1, 1, 1, 1], strides=[2, 2])
    """,
         least=2 * 16 * 64 * 4, plan="one row each way", expect={"output": ([2.31337, -3.56784, 7.77264, -7.46393], 396644.8)}),
    # Row o lies at (o + 0.5) / 2 - 0.5, between two rows: the first of a shard reaches up, the last one down.
    Case("resize_linear2x", "x=4", """
        image: f32[4, 16, 32, 32] [_, _, x, _] ~ normal(1)
        output: f32[4, 16, 64, 64] [_, _, x, _] = Resize(image, None, [1.0, 1.0, 2.0, 2.0],
            coordinate_transformation_mode="half_pixel", mode="linear")
    """,
         least=2 * 32 * 64 * 4, plan="one row each way", expect={"output": ([0.12573, 0.0612714, -0.0676461, 0.061027], 133018.9)}),
]
