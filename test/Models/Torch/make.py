"""Makes the fixtures of this folder: fresh exports of torch, small, with random weights.

Usage: make.py [NAME...]

Run by hand, where torch and transformers are (README.md says which versions these files are of). Each `NAME.onnx` has a `NAME.npz`: inputs
(`in:X`), and what torch computes in double precision from the same weights (`out:Y`, rounded to f32). onnxruntime must give the same from
the file, or nothing is written. `index.json` says which dims have names and at what sizes the inputs have them.

Stack traces and other notes of the exporter are left out, which are most of its bytes, but of the fixtures in WITH_MODULES which module each
node is of; everything else is what it writes.
"""
import json
import os
import sys
import tempfile
import warnings
import zipfile

import numpy as np
import onnx
import onnxruntime
import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
AGREE = 2e-5  # of the largest element, onnxruntime in f32 with torch in f64
VOCABULARY, HIDDEN, HEADS, LAYERS, INNER = 72, 24, 4, 2, 40
DECODER = {"vocab_size": VOCABULARY, "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
           "num_attention_heads": HEADS, "max_position_embeddings": 32, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


class Picked(torch.nn.Module):
    """A model whose inputs have these names, and whose outputs are these fields of what it returns."""

    def __init__(self, model, names, *fields, **more):
        super().__init__()
        self.model, self.names, self.fields, self.more = model, names, fields, more

    def forward(self, *inputs):
        found = self.model(**dict(zip(self.names, inputs)), **self.more)
        return tuple(getattr(found, field) for field in self.fields)


class Cached(torch.nn.Module):
    """A decoder's step: keys and values of the past come in and those with the new positions go out, layer by layer."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, *past):
        cache = transformers.DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        found = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        present = [tensor for layer in found.past_key_values.layers for tensor in (layer.keys, layer.values)]
        return (found.logits, *present)


def tokens(random, *shape):
    return random.integers(3, VOCABULARY, shape)


def mask(batch, length):
    """Sample by sample one position fewer, at the end."""
    return (np.arange(length)[None] < length - np.arange(batch)[:, None] % 3).astype(np.int64)


def floats(random, *shape):
    """Of few bits, which take few bytes."""
    return np.round(random.standard_normal(shape).astype(np.float32) * 16) / 16


def decoder(config, model, random):
    model = model(config)
    return (Picked(model, ["input_ids", "attention_mask"], "logits", use_cache=False),
            {"input_ids": tokens(random, 4, 12), "attention_mask": mask(4, 12)}, ["logits"],
            {"input_ids": {0: "batch", 1: "seq"}, "attention_mask": {0: "batch", 1: "seq"}})


def make_llama_cache(random):
    config = transformers.LlamaConfig(**DECODER, num_key_value_heads=2, attn_implementation="eager")
    past = {f"past.{layer}.{kind}": floats(random, 4, 2, 5, HIDDEN // HEADS) for layer in range(LAYERS) for kind in ("key", "value")}
    named = {"input_ids": {0: "batch"}, "attention_mask": {0: "batch", 1: "total"}, **{name: {0: "batch", 2: "past"} for name in past}}
    return (Cached(transformers.LlamaForCausalLM(config)), {"input_ids": tokens(random, 4, 1), "attention_mask": np.ones([4, 6], np.int64), **past},
            ["logits", *(name.replace("past", "present") for name in past)], named)


def make_qwen3(random):
    config = transformers.Qwen3Config(**DECODER, num_key_value_heads=2, head_dim=12, attn_implementation="sdpa", tie_word_embeddings=True)
    return decoder(config, transformers.Qwen3ForCausalLM, random)


def make_gemma2(random):
    config = transformers.Gemma2Config(**DECODER, num_key_value_heads=2, head_dim=8, sliding_window=4, query_pre_attn_scalar=8, attn_implementation="eager")
    return decoder(config, transformers.Gemma2ForCausalLM, random)


def make_neox(random):
    config = transformers.GPTNeoXConfig(**DECODER, rotary_pct=0.34, attn_implementation="eager")
    return decoder(config, transformers.GPTNeoXForCausalLM, random)


def make_granite(random):
    config = transformers.GraniteConfig(**DECODER, num_key_value_heads=2, attn_implementation="sdpa", use_cache=False)
    model = transformers.GraniteForCausalLM(config)
    # As users export it, without a module around it.
    return (model, {"input_ids": tokens(random, 4, 12), "attention_mask": mask(4, 12)}, ["logits"],
            {"input_ids": {0: "batch", 1: "seq"}, "attention_mask": {0: "batch", 1: "seq"}})


def make_mixtral(random):
    config = transformers.MixtralConfig(**{**DECODER, "num_hidden_layers": 1}, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, attn_implementation="eager", experts_implementation="batched_mm")
    return decoder(config, transformers.MixtralForCausalLM, random)


def make_deberta(random):
    config = transformers.DebertaV2Config(**DECODER, type_vocab_size=0, relative_attention=True, position_buckets=8, pos_att_type=["c2p", "p2c"], conv_kernel_size=3)
    return (Picked(transformers.DebertaV2Model(config), ["input_ids", "attention_mask"], "last_hidden_state"),
            {"input_ids": tokens(random, 4, 12), "attention_mask": mask(4, 12)}, ["last_hidden_state"],
            {"input_ids": {0: "batch"}, "attention_mask": {0: "batch"}})


def make_roberta(random):
    config = transformers.RobertaConfig(**{**DECODER, "pad_token_id": 1}, type_vocab_size=1, attn_implementation="eager")
    return (Picked(transformers.RobertaModel(config), ["input_ids", "attention_mask"], "last_hidden_state", "pooler_output"),
            {"input_ids": tokens(random, 4, 12), "attention_mask": mask(4, 12)}, ["last_hidden_state", "pooler_output"],
            {"input_ids": {0: "batch", 1: "seq"}, "attention_mask": {0: "batch", 1: "seq"}})


def make_whisper(random):
    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY, num_mel_bins=8, d_model=HIDDEN, encoder_layers=1, decoder_layers=1, encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS, encoder_ffn_dim=INNER, decoder_ffn_dim=INNER, max_source_positions=12, max_target_positions=16,
        bos_token_id=1, eos_token_id=2, pad_token_id=0, decoder_start_token_id=1, attn_implementation="eager")
    return (Picked(transformers.WhisperForConditionalGeneration(config), ["input_features", "decoder_input_ids"], "logits", use_cache=False),
            {"input_features": floats(random, 4, 8, 24), "decoder_input_ids": tokens(random, 4, 6)}, ["logits"],
            {"input_features": {0: "batch"}, "decoder_input_ids": {0: "batch", 1: "seq"}})


def make_t5(random):
    config = transformers.T5Config(vocab_size=VOCABULARY, d_model=HIDDEN, d_kv=8, d_ff=INNER, num_layers=1, num_decoder_layers=1, num_heads=HEADS,
                                   feed_forward_proj="gated-gelu", relative_attention_num_buckets=8, relative_attention_max_distance=12,
                                   decoder_start_token_id=0, pad_token_id=0, eos_token_id=1)
    return (Picked(transformers.T5ForConditionalGeneration(config), ["input_ids", "attention_mask", "decoder_input_ids"], "logits", use_cache=False),
            {"input_ids": tokens(random, 4, 10), "attention_mask": mask(4, 10), "decoder_input_ids": tokens(random, 4, 6)}, ["logits"],
            {"input_ids": {0: "batch", 1: "seq"}, "attention_mask": {0: "batch", 1: "seq"}, "decoder_input_ids": {0: "batch", 1: "target"}})


def pictures(model, random, size, *fields):
    return Picked(model, ["pixel_values"], *fields), {"pixel_values": floats(random, 4, 3, size, size)}, list(fields), {"pixel_values": {0: "batch"}}


def make_convnext(random):
    config = transformers.ConvNextConfig(hidden_sizes=[8, 16, 32], depths=[1, 2, 1], num_stages=3, patch_size=4, num_labels=10, image_size=32)
    return pictures(transformers.ConvNextForImageClassification(config), random, 32, "logits")


def make_regnet(random):
    config = transformers.RegNetConfig(embedding_size=8, hidden_sizes=[8, 16, 24], depths=[1, 2, 1], groups_width=4, layer_type="y", num_labels=10)
    return pictures(transformers.RegNetForImageClassification(config), random, 32, "logits")


def make_swin(random):
    config = transformers.SwinConfig(image_size=32, patch_size=4, embed_dim=16, depths=[2, 1], num_heads=[2, 4], window_size=4, mlp_ratio=2.0, num_labels=10)
    return pictures(transformers.SwinForImageClassification(config), random, 32, "logits")


def make_clip(random):
    text = {**DECODER, "num_hidden_layers": 1, "projection_dim": 24}
    vision = {"hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": 1, "num_attention_heads": HEADS, "image_size": 16, "patch_size": 8, "projection_dim": 24}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=24, attn_implementation="eager")
    ids = tokens(random, 6, 8)
    ids[:, -1] = 2
    return (Picked(transformers.CLIPModel(config), ["input_ids", "pixel_values", "attention_mask"], "logits_per_image", "text_embeds", "image_embeds"),
            {"input_ids": ids, "pixel_values": floats(random, 4, 3, 16, 16), "attention_mask": mask(6, 8)},
            ["logits_per_image", "text_embeds", "image_embeds"],
            {"input_ids": {0: "texts", 1: "seq"}, "pixel_values": {0: "pictures"}, "attention_mask": {0: "texts", 1: "seq"}})


# Name -> (what makes it, whether by the dynamo exporter, opset).
FIXTURES = {"llama_cache": (make_llama_cache, True, 20), "qwen3": (make_qwen3, True, 18), "gemma2": (make_gemma2, True, 18), "neox_ts": (make_neox, False, 17),
            "mixtral": (make_mixtral, True, 18), "deberta": (make_deberta, True, 18), "roberta_ts": (make_roberta, False, 17), "whisper": (make_whisper, True, 18),
            "t5_ts": (make_t5, False, 17), "convnext": (make_convnext, True, 18), "regnet_ts": (make_regnet, False, 17),
            "swin": (make_swin, True, 18), "clip": (make_clip, True, 18), "granite": (make_granite, True, 18)}
WITH_MODULES = ("granite",)
SCOPES = "pkg.torch.onnx.name_scopes"


def draw_weights(model, seed):
    """Weights that keep the scale of what they take, and scales, shifts and statistics that change something."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if not tensor.is_floating_point() or "inv_freq" in name or "embed_positions" in name:
                continue
            noise = torch.randn(tensor.shape, generator=random)
            if tensor.ndim > 1:
                fan = tensor.shape[1:].numel() if "emb" not in name else 4
                tensor.copy_(noise / fan**0.5)
            elif "running_var" in name:
                tensor.copy_(1 + 0.2 * noise.abs())
            else:
                tensor.add_(0.1 * noise)


def bare(model, keeps=()):
    """Without notes, but those of nodes with these keys."""
    def strip(graph):
        graph.doc_string = ""
        del graph.metadata_props[:]
        for entry in [*graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer]:
            entry.doc_string = ""
            kept = [(note.key, note.value) for note in entry.metadata_props if note.key in keeps]
            del entry.metadata_props[:]
            for key, value in kept:
                entry.metadata_props.add(key=key, value=value)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    strip(attribute.g)

    model.doc_string = ""
    del model.metadata_props[:]
    strip(model.graph)
    return model


def export(model, inputs, outputs, named, is_dynamo, opset, path):
    values = tuple(torch.from_numpy(array) for array in inputs.values())
    names = {"input_names": list(inputs), "output_names": outputs}
    if is_dynamo:
        # A dim of the same name has the same size.
        dims = {name: torch.export.Dim(name, min=2, max=4096) for axes in named.values() for name in axes.values()}
        shapes = [{axis: dims[name] for axis, name in named.get(key, {}).items()} for key in inputs]
        if not isinstance(model, (Picked, Cached)):
            torch.onnx.export(model, (), path, kwargs=dict(zip(inputs, values)), dynamo=True, opset_version=opset, external_data=False, optimize=True,
                              verbose=False, dynamic_shapes=dict(zip(inputs, shapes)), **names)
            return
        dynamic = {"dynamic_shapes": (tuple(shapes),)} if not isinstance(model, Cached) else {"dynamic_shapes": (*shapes[:2], tuple(shapes[2:]))}
        torch.onnx.export(model, values, path, dynamo=True, opset_version=opset, external_data=False, optimize=True, verbose=False, **dynamic, **names)
    else:
        torch.onnx.export(model, values, path, dynamo=False, opset_version=opset, dynamic_axes=named, **names)


def write_arrays(path, arrays):
    """As numpy does, with the same bytes on any day."""
    with zipfile.ZipFile(path, "w") as file:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(name + ".npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with file.open(entry, "w") as stream:
                np.lib.format.write_array(stream, np.ascontiguousarray(array))


def make(name, seed):
    """The facts of a fixture."""
    maker, is_dynamo, opset = FIXTURES[name]
    torch.manual_seed(seed)
    model, inputs, outputs, named = maker(np.random.default_rng(seed))
    model.eval()
    draw_weights(model, seed)
    path = os.path.join(HERE, name + ".onnx")
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        export(model, inputs, outputs, named, is_dynamo, opset, raw := os.path.join(folder, "m.onnx"))
        onnx.save(bare(onnx.load(raw), (SCOPES,) if name in WITH_MODULES else ()), path)
        wide = [torch.from_numpy(array).double() if array.dtype == np.float32 else torch.from_numpy(array) for array in inputs.values()]
        found = model.double()(**dict(zip(inputs, wide))) if name in WITH_MODULES else model.double()(*wide)
        expected = [found[key].numpy() for key in outputs] if name in WITH_MODULES else [tensor.numpy() for tensor in found]
    found = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(outputs, inputs)
    worst = max(float(np.abs(have - want).max() / np.abs(want).max()) for have, want in zip(found, expected))
    if worst > AGREE:
        raise RuntimeError(f"{name}: onnxruntime differs from torch by {worst:.2g}")
    write_arrays(os.path.join(HERE, name + ".npz"), {**{"in:" + key: array for key, array in inputs.items()},
                                                     **{"out:" + key: array.astype(np.float32) for key, array in zip(outputs, expected)}})
    dims = {dim: inputs[key].shape[axis] for key, axes in named.items() for axis, dim in axes.items()}
    print(f"{name}: {os.path.getsize(path)} bytes, onnxruntime is off by {worst:.2g}", flush=True)
    return {"exporter": "dynamo" if is_dynamo else "torchscript", "opset": opset, "seed": seed, "dims": dims}


def main():
    warnings.simplefilter("ignore")
    listing = os.path.join(HERE, "index.json")
    facts = {}
    if os.path.exists(listing):
        with open(listing, encoding="utf-8") as file:
            facts = json.load(file)
    for seed, name in enumerate(FIXTURES, 1):
        if name in sys.argv[1:] or not sys.argv[1:]:
            facts[name] = make(name, seed)
    with open(listing, "w", encoding="utf-8") as file:
        json.dump({name: facts[name] for name in FIXTURES if name in facts}, file, indent=0)
        file.write("\n")


if __name__ == "__main__":
    main()
