"""Steps of jax, for training.py: run by a Python that has jax, numpy and onnx.

    training_jax.py NET MODEL BATCH.npz THREADS [--wide OUT.npz | --losses STEPS]

The nets of training_nets.py written by hand, on the same weights, with the AdamW of onnxruntime-training. Serves steps (training_serve.py);
before them it says what `memory_analysis()` counts of the compiled step. With --wide all is f64, and gradients of the first batch are saved,
by the names of the weights. Numbers of a net are those that a file of f32 holds, but for those of gelu, which is read as the function that it is.
With --losses it prints the losses of so many steps, in f64, as JSON.
"""
import json
import os
import sys

if __name__ == "__main__":
    # Both are read before anything is computed: how many threads the client has, and whether one product has several.
    os.environ["NPROC"] = sys.argv[4]
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if int(sys.argv[4]) > 1 else 'false'}"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from jax import lax  # noqa: E402
from onnx import numpy_helper  # noqa: E402

from training_serve import serve  # noqa: E402

RATE, BETAS, EPSILON = 1e-4, (0.9, 0.999), 1e-6


def number(value):
    """As f32 has it, in any precision: f64 would otherwise tell 0.044715 from the file's."""
    return float(np.float32(value))


def norm(x, w, name, epsilon):
    x = x - x.mean(-1, keepdims=True)
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + number(epsilon)) * w[name + ".weight"] + w[name + ".bias"]


def attend(q, k, v, mask=None):
    """[batch, heads, positions, components] each."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / number(np.sqrt(q.shape[-1]))
    if mask is not None:
        scores = jnp.where(mask, scores, number(-3.4e38))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)


def apart(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def together(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def classify(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], -1).mean()


def gpt(w, batch):
    layers, heads = sum(name.endswith("ln_1.weight") for name in w), 4
    x = w["wte.weight"][batch["input_ids"]] + w["wpe.weight"]
    mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    for i in range(layers):
        of = lambda x, name: x @ w[f"h.{i}/{name}.weight"] + w[f"h.{i}/{name}.bias"]
        qkv = of(norm(x, w, f"h.{i}/ln_1", 1e-5), "attn/c_attn").reshape(*x.shape[:2], heads, -1)
        q, k, v = (part.transpose(0, 2, 1, 3) for part in jnp.split(qkv, 3, -1))
        x = x + of(together(attend(q, k, v, mask)), "attn/c_proj")
        x = x + of(jax.nn.gelu(of(norm(x, w, f"h.{i}/ln_2", 1e-5), "mlp/c_fc"), approximate=True), "mlp/c_proj")
    x = norm(x, w, "ln_f", 1e-5)
    return classify(x.reshape(-1, x.shape[-1]) @ w["wte.weight"].T, batch["labels"])


def sentences(w, batch):
    """The exporter has named the six matrices of a layer by numbers, in order."""
    root = "model.0.auto_model."
    matrices = [name for name in sorted(w) if "MatMul" in name]
    at = root + "embeddings."
    x = w[at + "word_embeddings.weight"][batch["input_ids"]] + w[at + "token_type_embeddings.weight"][0] + w[at + "position_embeddings.weight"][:batch["input_ids"].shape[1]]
    x = norm(x, w, at + "LayerNorm", 1e-12)
    mask = batch["attention_mask"].astype(x.dtype)
    for i in range(len(matrices) // 6):
        of = lambda x, number, name: x @ w[matrices[6 * i + number]] + w[f"{root}encoder.layer.{i}.{name}.bias"]
        q, k, v = (apart(of(x, number, f"attention.self.{name}"), 12) for number, name in enumerate(("query", "key", "value")))
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / number(np.sqrt(q.shape[-1])) + ((1 - mask) * -10000)[:, None, None]
        y = together(jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v))
        x = norm(x + of(y, 3, "attention.output.dense"), w, f"{root}encoder.layer.{i}.attention.output.LayerNorm", 1e-12)
        y = jax.nn.gelu(of(x, 4, "intermediate.dense"), approximate=False)
        x = norm(x + of(y, 5, "output.dense"), w, f"{root}encoder.layer.{i}.output.LayerNorm", 1e-12)
    x = (x * mask[..., None]).sum(1) / jnp.clip(mask.sum(1), 1e-9)[:, None]
    return ((x - batch["labels"])**2).mean()


def resnet(w, batch):
    def conv(x, name, stride=1):
        size = w[name + ".weight"].shape[-1]
        return lax.conv_general_dilated(x, w[name + ".weight"], (stride, stride), [(size // 2,) * 2] * 2) + w[name + ".bias"][:, None, None]

    x = jax.nn.relu(conv(batch["image"], "conv1"))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (1, 1)))
    for stage in range(1, 5):
        for number in range(2):
            name = f"layer{stage}.{number}"
            stride = 2 if stage > 1 and number == 0 else 1
            y = conv(jax.nn.relu(conv(x, f"{name}.conv1", stride)), f"{name}.conv2")
            x = jax.nn.relu(y + (conv(x, f"{name}.downsample", stride) if f"{name}.downsample.weight" in w else x))
    return classify(x.mean((2, 3)) @ w["fc.weight"].T + w["fc.bias"], batch["labels"])


NETS = {"gpt": gpt, "sentences": sentences, "resnet": resnet}


def step(net, w, m, v, n, batch):
    """AdamW without decay, n from 1 on."""
    loss, gradients = jax.value_and_grad(net)(w, batch)
    new_w, new_m, new_v = {}, {}, {}
    for name, g in gradients.items():
        new_m[name] = BETAS[0] * m[name] + (1 - BETAS[0]) * g
        new_v[name] = BETAS[1] * v[name] + (1 - BETAS[1]) * g * g
        new_w[name] = w[name] - RATE * (new_m[name] / (1 - BETAS[0]**n)) / (jnp.sqrt(new_v[name] / (1 - BETAS[1]**n)) + EPSILON)
    return loss, new_w, new_m, new_v


def main():
    net, path, data = sys.argv[1:4]
    wide = "--wide" in sys.argv or "--losses" in sys.argv
    jax.config.update("jax_enable_x64", wide)
    model = onnx.load(path)
    # Numbers and the causal mask are no weights.
    w = {tensor.name: jnp.asarray(numpy_helper.to_array(tensor), jnp.float64 if wide else jnp.float32) for tensor in model.graph.initializer
         if tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE) and tensor.dims}
    batch = {name: jnp.asarray(array.astype(np.float64) if wide and array.dtype == np.float32 else array) for name, array in np.load(data).items()}
    if "--losses" in sys.argv:
        state, losses = [w, *({name: jnp.zeros_like(value) for name, value in w.items()} for _ in range(2))], []
        advance = jax.jit(lambda *state: step(NETS[net], *state))
        for number in range(int(sys.argv[sys.argv.index("--losses") + 1])):
            loss, *state = advance(*state, jnp.float64(number + 1), batch)
            losses.append(float(loss))
        return print(json.dumps(losses))
    if "--wide" in sys.argv:
        np.savez(sys.argv[sys.argv.index("--wide") + 1], **{name: np.asarray(g) for name, g in jax.grad(NETS[net])(w, batch).items()})
    m, v = ({name: jnp.zeros_like(value) for name, value in w.items()} for _ in range(2))
    compiled = jax.jit(lambda *state: step(NETS[net], *state), donate_argnums=(0, 1, 2)).lower(w, m, v, jnp.float64(1) if wide else jnp.float32(1), batch).compile()
    memory = compiled.memory_analysis()
    print(json.dumps({"memory": {name: getattr(memory, name + "_size_in_bytes") for name in ("argument", "output", "alias", "temp")}}), flush=True)
    state = [w, m, v, 1]

    def advance():
        loss, *state[:3] = compiled(*state[:3], (jnp.float64 if wide else jnp.float32)(state[3]), batch)
        state[3] += 1
        jax.block_until_ready(state[:3])
        return loss

    serve(advance)


if __name__ == "__main__":
    main()
