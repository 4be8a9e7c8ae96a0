"""Parts of transformers, as lines of a model: what several cases are made of."""


def rms_norm(of, name):
    return f"""
        {name}.mean_square = ReduceMean(Pow({of}, 2.0), [-1], keepdims=1)
        {name} = Mul(Mul({of}, Reciprocal(Sqrt(Add({name}.mean_square, 1e-05)))), {name}.weight)
    """


def project(of, name, batch, length, heads, size):
    """A product with NAME.weight, taken apart into heads."""
    return f"""
        {name}.proj = MatMul({of}, {name}.weight)
        {name} = Transpose(Reshape({name}.proj, [{batch}, {length}, {heads}, {size}]), perm=[0, 2, 1, 3])
    """


def repeat(name, batch, length, heads, times, size):
    """Each key or value head, for the `times` query heads that read it."""
    return f"""
        {name}_repeated = Reshape(Expand(Unsqueeze({name}, [2]), [{batch}, {heads}, {times}, {length}, {size}]),
                                  [{batch}, {heads * times}, {length}, {size}])
    """


def attend(batch, length, heads, size, result, key="key", value="value"):
    """Causal attention of query over `key` and `value`, and the product with out.weight."""
    return f"""
        mask.ones = ConstantOfShape([{length}, {length}], value=1.0)
        mask = Cast(Trilu(mask.ones, upper=0), to=i1)
        key_transposed = Transpose({key}, perm=[0, 1, 3, 2])
        scores = MatMul(query, key_transposed)
        scores_scaled = Mul(scores, {size ** -0.5})
        scores_masked = Where(mask, scores_scaled, -1000000000.0)
        probs = Softmax(scores_masked, axis=-1)
        context = MatMul(probs, {value})
        context_by_position = Transpose(context, perm=[0, 2, 1, 3])
        {result} = MatMul(Reshape(context_by_position, [{batch}, {length}, {heads * size}]), out.weight)
    """


def attention(of, batch, length, heads, size, result):
    """Multi-head self-attention."""
    parts = [project(of, name, batch, length, heads, size) for name in ("query", "key", "value")]
    return "".join(parts) + attend(batch, length, heads, size, result)


def gelu_mlp(of):
    """A feed-forward part whose gelu is that of a tanh, node by node."""
    return f"""
        ffn.up = MatMul({of}, up.weight)
        ffn.bent = Mul(Add(ffn.up, Mul(Pow(ffn.up, 3.0), 0.044715)), 0.7978846)
        ffn.act = Mul(Mul(ffn.up, 0.5), Add(Tanh(ffn.bent), 1.0))
        ffn = MatMul(ffn.act, down.weight)
    """


def layer(batch, length, heads, size):
    """A transformer layer: attention, then a feed-forward part, each after a norm and added to what comes in."""
    return (rms_norm("hidden", "norm1") + attention("norm1", batch, length, heads, size, "attention")
            + "residual1 = Add(hidden, attention)\n" + rms_norm("residual1", "norm2") + gelu_mlp("norm2")
            + "output = Add(residual1, ffn)\n")
