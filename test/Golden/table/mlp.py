"""Feed-forward blocks: the hidden dim cut, and the sequence, on several meshes."""
from case import Case, Peer

MLP = """
        ffn.up = MatMul(hidden, up.weight)
        ffn.act = Gelu(ffn.up, approximate="tanh")
        output = MatMul(ffn.act, down.weight)
    """

CASES = [
    Case("mlp_colrow", "x=4", """
        hidden: f32[64, 256] [_, _] ~ normal(0.125)
        up.weight: f32[256, 1024] [_, x] ~ normal(0.0625)
        down.weight: f32[1024, 256] [x, _] ~ normal(0.03125)
        output: f32[64, 256] [_, _]
    """ + MLP,
         least=98304, plan="one AR of the output", peer=Peer(98304, "partitioned", 4.0, collectives={"all_reduce": 1}),
         opset=20, jax_diff=7.3e-07, expect={"output": ([0.0414079, 0.0433948, 0.0227233, -0.04973], 830.8588)}),
    Case("mlp_seqpar", "x=4", """
        hidden: f32[64, 256] [x, _] ~ normal(0.125)
        up.weight: f32[256, 1024] [_, x] ~ normal(0.0625)
        down.weight: f32[1024, 256] [x, _] ~ normal(0.03125)
        output: f32[64, 256] [x, _]
    """ + MLP,
         least=98304, plan="AG input, RS output",
         peer=Peer(98304, "partitioned", 4.0, collectives={"all_gather": 1, "reduce_scatter": 1}), opset=20,
         jax_diff=7.3e-07, expect={"output": ([0.0414079, 0.0433948, 0.0227233, -0.04973], 830.8588)}),
    Case("mlp_bias", "x=4", """
        hidden: f32[64, 256] [_, _] ~ normal(0.125)
        up.weight: f32[256, 1024] [_, x] ~ normal(0.0625)
        up.bias: f32[1024] [x] ~ normal(1)
        down.weight: f32[1024, 256] [x, _] ~ normal(0.03125)
        down.bias: f32[256] [_] ~ normal(1)
        up = Gemm(hidden, up.weight, up.bias)
        output: f32[64, 256] [_, _] = Gemm(Gelu(up, approximate="tanh"), down.weight, down.bias)
    """,
         least=98304, plan="bias of the column layer is local, second bias after the AR",
         peer=Peer(98304, "partitioned", 4.0, collectives={"all_reduce": 1}), opset=20, jax_diff=5.5e-07,
         expect={"output": ([1.48525, 1.29702, 2.3899, 1.25685], 15493.43)}),
    Case("mlp_seqpar_block", "x=4", """
        hidden: f32[2, 64, 256] [_, x, _] ~ normal(1)
        norm.weight: f32[256] [_] ~ normal(1)
        up.weight: f32[256, 1024] [_, x] ~ normal(0.0625)
        down.weight: f32[1024, 256] [x, _] ~ normal(0.03125)
        norm = RMSNormalization(hidden, norm.weight, axis=-1, epsilon=1e-05)
        ffn.up = MatMul(norm, up.weight)
        ffn.act = Gelu(ffn.up, approximate="tanh")
        ffn = MatMul(ffn.act, down.weight)
        output: f32[2, 64, 256] [_, x, _] = Add(hidden, ffn)
    """,
         least=196608, plan="norm on the shard, AG, RS, residual on the shard",
         peer=Peer(196608, "partitioned", 4.0, collectives={"all_gather": 1, "reduce_scatter": 1}), opset=23,
         jax_diff=4.7e-07, expect={"output": ([0.50811, -0.0710692, 0.332772, -0.0510046], 31410.86)}),
    Case("mlp_swiglu_shared_ag", "x=4", """
        hidden: f32[64, 256] [x, _] ~ normal(0.125)
        gate.weight: f32[256, 1024] [_, x] ~ normal(0.0625)
        up.weight: f32[256, 1024] [_, x] ~ normal(0.0625)
        down.weight: f32[1024, 256] [x, _] ~ normal(0.03125)
        gate = MatMul(hidden, gate.weight)
        silu = Mul(gate, Sigmoid(gate))
        up = MatMul(hidden, up.weight)
        gated = Mul(silu, up)
        output: f32[64, 256] [x, _] = MatMul(gated, down.weight)
    """,
         least=98304, plan="one AG shared by gate and up, RS",
         peer=Peer(98304, "partitioned", 4.0, collectives={"all_gather": 1, "reduce_scatter": 1}), jax_diff=6e-07,
         expect={"output": ([-0.010321, -0.00226559, 0.00092843, 0.00745002], 103.35)}),
    Case("mlp_2x4", "d=2, m=4", """
        hidden: f32[64, 256] [d, _] ~ normal(0.125)
        up.weight: f32[256, 1024] [_, m] ~ normal(0.0625)
        down.weight: f32[1024, 256] [m, _] ~ normal(0.03125)
        output: f32[64, 256] [d, _]
    """ + MLP,
         least=49152, plan="AR over m of the half batch",
         peer=Peer(49152, "partitioned", 8.0, collectives={"all_reduce": 1}), opset=20, jax_diff=7.3e-07,
         expect={"output": ([0.0414079, 0.0433948, 0.0227233, -0.04973], 830.8588)}),
    Case("mlp_permuted_mesh", "d=2, m=4", """
        hidden: f32[64, 256] [d, _] ~ normal(0.125)
        up.weight: f32[256, 1024] [_, m] ~ normal(0.0625)
        down.weight: f32[1024, 256] [m, _] ~ normal(0.03125)
        output: f32[64, 256] [d, _]
    """ + MLP,
         least=49152, plan="as mlp_2x4; groups follow device ids",
         peer=Peer(49152, "partitioned", 8.0, collectives={"all_reduce": 1}),
         note="in JAX the devices stand in the order [3, 6, 1, 4, 7, 2, 5, 0]; a plan has no device order; with ranks in "
              "order values and bytes are the same",
         opset=20, jax_diff=7.3e-07, expect={"output": ([0.0414079, 0.0433948, 0.0227233, -0.04973], 830.8588)}),
    Case("mlp_mesh3", "x=3", """
        hidden: f32[60, 240] [_, _] ~ normal(0.12909944487358055)
        up.weight: f32[240, 960] [_, x] ~ normal(0.06454972243679027)
        down.weight: f32[960, 240] [x, _] ~ normal(0.03227486121839514)
        output: f32[60, 240] [_, _]
    """ + MLP,
         least=76800, plan="one AR", peer=Peer(76800, "partitioned", 3.0, collectives={"all_reduce": 1}), opset=20,
         jax_diff=4.8e-07, expect={"output": ([-0.0628682, -0.104584, 0.0254083, -0.0548078], 747.5821)}),
    Case("mlp_mesh6", "x=6", """
        hidden: f32[60, 240] [_, _] ~ normal(0.12909944487358055)
        up.weight: f32[240, 960] [_, x] ~ normal(0.06454972243679027)
        down.weight: f32[960, 240] [x, _] ~ normal(0.03227486121839514)
        output: f32[60, 240] [_, _]
    """ + MLP,
         least=96000, plan="one AR", peer=Peer(96000, "partitioned", 6.0, collectives={"all_reduce": 1}), opset=20,
         jax_diff=4.8e-07, expect={"output": ([-0.0628682, -0.104584, 0.0254083, -0.0548078], 747.5821)}),
    Case("mlp_mesh2x3", "d=2, m=3", """
        hidden: f32[60, 240] [d, _] ~ normal(0.12909944487358055)
        up.weight: f32[240, 960] [_, m] ~ normal(0.06454972243679027)
        down.weight: f32[960, 240] [m, _] ~ normal(0.03227486121839514)
        output: f32[60, 240] [d, _]
    """ + MLP,
         least=38400, plan="AR over m", peer=Peer(38400, "partitioned", 6.0, collectives={"all_reduce": 1}), opset=20,
         jax_diff=4.8e-07, expect={"output": ([-0.0628682, -0.104584, 0.0254083, -0.0548078], 747.5821)}),
]
