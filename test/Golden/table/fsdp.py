"""Weights cut to be gathered (FSDP), alone and with tensor parallelism; where moving activations is cheaper."""
from case import Case, Peer
from table.mlp import MLP

CASES = [
    Case("fsdp_mlp_dim0", "x=8", """
        hidden: f32[2048, 256] [x, _] ~ normal(0.022097086912079608)
        up.weight: f32[256, 1024] [x, _] ~ normal(0.0625)
        down.weight: f32[1024, 256] [x, _] ~ normal(0.03125)
        output: f32[2048, 256] [x, _]
    """ + MLP,
         least=1835008, plan="AG both weights (activations are bigger)",
         peer=Peer(1835008, "partitioned", 8.0, collectives={"all_gather": 2}), opset=20, jax_diff=7.2e-07,
         expect={"output": ([0.00452515, -0.00225845, -0.0123062, -0.000979649], 4637.491)}),
    Case("fsdp_mlp_dim1", "x=8", """
        hidden: f32[2048, 256] [x, _] ~ normal(0.022097086912079608)
        up.weight: f32[256, 1024] [_, x] ~ normal(0.0625)
        down.weight: f32[1024, 256] [_, x] ~ normal(0.03125)
        output: f32[2048, 256] [x, _]
    """ + MLP,
         least=1835008, plan="AG both weights", peer=Peer(1835008, "partitioned", 8.0, collectives={"all_gather": 2}),
         opset=20, jax_diff=7.2e-07, expect={"output": ([0.00452515, -0.00225845, -0.0123062, -0.000979649], 4637.491)}),
    Case("fsdp_tp_2x4", "d=2, m=4", """
        hidden: f32[2048, 256] [d, _] ~ normal(0.022097086912079608)
        up.weight: f32[256, 1024] [d, m] ~ normal(0.0625)
        down.weight: f32[1024, 256] [m, d] ~ normal(0.03125)
        output: f32[2048, 256] [d, _]
    """ + MLP,
         least=1835008, plan="AG each weight over d (its m part only), AR over m",
         peer=Peer(1835008, "partitioned", 8.0, collectives={"all_gather": 2, "all_reduce": 1}), opset=20, jax_diff=7.2e-07,
         expect={"output": ([0.00452515, -0.00225845, -0.0123062, -0.000979649], 4637.491)}),
    Case("small_act_wK", "x=4", """
        hidden: f32[4, 4096] [x, _] ~ normal(0.5)
        weight: f32[4096, 4096] [x, _] ~ normal(0.015625)
        output: f32[4, 4096] [x, _] = MatMul(hidden, weight)
    """,
         least=61440, plan="a2a A [x|-]->[-|x], local partial dot, RS",
         peer=Peer(50331648, "partitioned", 4.0, collectives={"all_gather": 1}), jax_diff=5.1e-07,
         expect={"output": ([0.0257162, -0.683239, 0.297758, 1.65767], 6556.098)}),
    Case("small_act_wK_rep", "x=4", """
        hidden: f32[4, 4096] [_, _] ~ normal(0.5)
        weight: f32[4096, 4096] [x, _] ~ normal(0.015625)
        output: f32[4, 4096] [_, _] = MatMul(hidden, weight)
    """,
         least=98304, plan="slice A, AR", peer=Peer(98304, "partitioned", 4.0, collectives={"all_reduce": 1}),
         jax_diff=5.1e-07, expect={"output": ([0.0257162, -0.683239, 0.297758, 1.65767], 6556.098)}),
]
