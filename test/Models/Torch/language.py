"""Causal language models as Transformers exports them: each is planned and checked, in f32 and bf16.

Usage: language.py BUILD_DIR FOLDER [--fix-table] [NAME...]

Run by hand, where torch, transformers and onnxscript are; models are exported into FOLDER where it has them not yet (README.md says which
versions the table is of). Two layers of 64 with random weights, and what `torch.onnx.export(dynamo=True)` makes of
`AutoModelForCausalLM.from_config`, nothing taken away. What must hold, of 4 devices, batch 4 and 16 tokens:

  * `cleave plan` finds a plan, and `--like megatron` one of rules alone; each names every weight that it splits by its module (but those of
    all experts side by side, of which one module reads two);
  * `cleave run --check` with either gives on every rank what one device gives, by the evaluator and, in f32, as a program.

docs/generated/language-models.md is the table of a whole run.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(1, os.path.join(sys.path[0], "..", ".."))
import harness

SIZES = {"vocab_size": 128, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
DECODER = {**SIZES, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64}
GROUPED = {**DECODER, "num_key_value_heads": 2}
HEADED = {**GROUPED, "head_dim": 16}
SHORT = {**SIZES, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 4}
# Configurations by the model types of Transformers.
CONFIGS = {
    "biogpt": DECODER,
    "bloom": {**SIZES, "hidden_size": 64, "n_layer": 2, "n_head": 4},
    "codegen": {**SHORT, "rotary_dim": 8, "n_ctx": 64},
    "cohere": GROUPED,
    "ctrl": {**SIZES, "n_positions": 64, "n_embd": 64, "dff": 128, "n_layer": 2, "n_head": 4},
    "ernie4_5": HEADED,
    "exaone4": GROUPED,
    "falcon": {**SIZES, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
    "gemma": HEADED,
    "gemma2": {**HEADED, "sliding_window": 8, "query_pre_attn_scalar": 16},
    "gemma3_text": {**HEADED, "sliding_window": 8, "query_pre_attn_scalar": 16},
    "glm": HEADED,
    "gpt2": SHORT,
    "gpt_bigcode": SHORT,
    "gpt_neo": {**SIZES, "hidden_size": 64, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]],
                "max_position_embeddings": 64, "window_size": 8},
    "gpt_neox": DECODER,
    "gpt_oss": {**HEADED, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8},
    "gptj": {**SHORT, "rotary_dim": 8},
    "granite": GROUPED,
    "helium": HEADED,
    "llama": GROUPED,
    "mistral": GROUPED,
    "mixtral": {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2},
    "mpt": {"vocab_size": 128, "d_model": 64, "n_heads": 4, "n_layers": 2, "max_seq_len": 64, "expansion_ratio": 2},
    "nemotron": GROUPED,
    "olmo": GROUPED,
    "olmo2": GROUPED,
    "opt": {**SIZES, "hidden_size": 64, "ffn_dim": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64,
            "word_embed_proj_dim": 64},
    "persimmon": DECODER,
    "phi": DECODER,
    "phi3": GROUPED,
    "phimoe": {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen2": GROUPED,
    "qwen2_moe": {**GROUPED, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 64},
    "qwen3": HEADED,
    "seed_oss": HEADED,
    "smollm3": GROUPED,
    "stablelm": GROUPED,
    "starcoder2": GROUPED,
    "xglm": {**SIZES, "d_model": 64, "ffn_dim": 128, "num_layers": 2, "attention_heads": 4, "max_position_embeddings": 64},
}
# Experts of which each takes the tokens that chose it have shapes that depend on data; exporters are given the other form.
WITH_EXPERTS = ("gpt_oss", "mixtral", "phimoe", "qwen2_moe")
TYPES = ("f32", "bf16")


class Failed(Exception):
    pass


def export(name, word, path):
    """Weights keep the scale of what they take; scales and shifts change something."""
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(name, **CONFIGS[name], use_cache=False)
    if name in WITH_EXPERTS:
        config._experts_implementation = "batched_mm"
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for _, tensor in model.named_parameters():
            noise = torch.randn_like(tensor)
            tensor.add_(0.1 * noise) if tensor.ndim == 1 else tensor.copy_(noise / tensor.shape[-1] ** 0.5)
    if word == "bf16":
        model = model.to(torch.bfloat16)
    inputs = {"input_ids": torch.randint(3, 128, (4, 16)), "attention_mask": torch.ones(4, 16, dtype=torch.int64)}
    dims = {key: {0: "batch", 1: "seq"} for key in inputs}
    torch.onnx.export(model, (), path, kwargs=inputs, dynamo=True, dynamic_shapes=dims, external_data=False, verbose=False,
                      input_names=list(inputs), output_names=["logits"])


def export_beside(name, word, path):
    """In a process of its own, which says little."""
    done = subprocess.run([sys.executable, os.path.abspath(__file__), "--export", name, word, path], capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise Failed(f"cannot be exported: {done.stderr.strip()[-300:]}")


def cleave(build, *words):
    done = harness.cleave(build, *words)
    if done.returncode:
        raise Failed(f"{' '.join(words[:4])}: exit {done.returncode}: {(done.stderr + done.stdout).strip()[-400:]}")
    return done.stdout


def count_rules(path):
    """(by modules, of weights by tensors) in a plan; inputs have no other name."""
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if line.startswith("  - {")]
    tensors = [line for line in lines if "tensor:" in line and '"input_ids"' not in line and '"attention_mask"' not in line]
    return sum("module:" in line for line in lines), len(tensors)


def check(build, model, plan, *words):
    """The largest difference of an output."""
    said = cleave(build, "run", model, "--plan", plan, "--check", *words)
    found = re.search(r"check logits: .*largest difference ([0-9.e+-]+)", said)
    if not found:
        raise Failed(f"says nothing of logits: {said[-200:]}")
    return float(found.group(1))


def try_model(build, folder, name):
    """Row of the table."""
    row, path = {}, os.path.join(folder, "{}-{}.onnx")
    with tempfile.TemporaryDirectory() as scratch:
        for word in TYPES:
            model = path.format(name, word)
            if not os.path.exists(model):
                export_beside(name, word, model)
            words = ["--devices", "4", "--dim", "batch=4,seq=16", "--quiet"]
            found, like, report = (os.path.join(scratch, file) for file in ("found.yaml", "like.yaml", "report.json"))
            cleave(build, "plan", model, *words, "-o", found, "--report", report)
            cleave(build, "plan", model, *words, "--like", "megatron", "-o", like)
            with open(report, encoding="utf-8") as file:
                best = json.load(file)["best"]
            for plan in (found, like):
                if count_rules(plan)[1] and name not in WITH_EXPERTS:
                    raise Failed(f"a plan for {word} names a weight by its tensor")
            worst = max(check(build, model, plan, *more) for plan in (found, like)
                        for more in ([[], ["--executor", "program"]] if word == "f32" else [[]]))
            row[word] = (best["mesh"], best["seconds"] * 1e6, count_rules(found)[0], count_rules(like)[0], worst)
    return row


def format_table(rows):
    lines = ["<!-- Written by test/Models/Torch/language.py --fix-table; do not edit. -->", "", "# Causal language models of Transformers", "",
             "For: deployers who ask whether their model can be planned as it is exported.", "",
             f"{len(rows)} models, two layers of 64 with random weights, as `torch.onnx.export(dynamo=True)` writes them, on 4 devices (`cpu-threads`,",
             "batch 4, 16 tokens): what `cleave plan` finds, the predicted time of a call, how many rules name weights by modules, in it and in",
             "`--like megatron`, and how far outputs of both are off one device's (`run --check`), at most.", "",
             "| model | f32 | | | | | bf16 | | | | |", "|---|---|---|---|---|---|---|---|---|---|---|",
             "| | mesh | a call, us | rules | megatron | off by | mesh | a call, us | rules | megatron | off by |"]
    for name, row in rows.items():
        cells = [f"{mesh} | {us:.1f} | {found} | {like} | {worst:.1e}" for mesh, us, found, like, worst in (row[word] for word in TYPES)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:2] == ["--export"]:
        return export(*sys.argv[2:])
    build, names, flags = harness.arguments("--fix-table")
    if not names:
        sys.exit("usage: language.py BUILD_DIR FOLDER [--fix-table] [NAME...]")
    folder, *names = names
    os.makedirs(folder, exist_ok=True)
    rows, wrong = {}, []
    chosen = harness.select({name: name for name in CONFIGS}, names)
    for name in chosen:
        try:
            rows[name] = try_model(build, folder, name)
            wrong.append("")
        except Failed as error:
            wrong.append(str(error))
        print(name, rows.get(name, wrong[-1]), flush=True)
    failed = harness.tell_failures(chosen, wrong)
    if len(chosen) == len(CONFIGS) and not failed:
        failed += harness.check_generated("language-models.md", format_table(rows), "--fix-table" in flags)
    return harness.close(len(chosen), failed)


if __name__ == "__main__":
    sys.exit(main())
