"""Generates text with a compiled decoder whose cache of keys and values stays in the ranks, and holds it against onnxruntime.

Usage: generate.py BUILD_DIR [MODEL]

The model takes one token, an attention mask, a position and the past keys and values, as exporters write decoders
(test/Models/gpt2_kv.onnx). It is compiled for a window of positions, `--state past_*=present_*`: each call puts what is new
behind what is there, and the caller passes tokens only. Slots of the window that are not filled yet are hidden by the mask.

    call 1    mask   0 0 0 0 1        the cache is zeros; the new position is the last one
    call 2    mask   0 0 0 1 1
    call 3    mask   0 0 1 1 1

onnxruntime is given a cache that grows, and no window. On 1 and 2 ranks, greedy tokens must be equal, logits nearly so.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

from runtime import Program

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, "..", "test", "Models", "gpt2_kv.onnx")
COUNT = 32  # positions that the model has
PROMPT = [17, 101, 3, 88]
# Megatron's way: columns, then rows; the cache follows by its heads.
WEIGHTS = {"1 rank": [], "2 ranks": ["--mesh", "model=2", "--plan", os.path.join(HERE, "generate.yaml")]}


def generate(step):
    """The prompt, then the likeliest token after it, and so on. `step` gives logits for a token at a position."""
    tokens, logits = list(PROMPT), []
    while len(tokens) <= COUNT:
        position = len(logits)
        logits.append(step(tokens[position], position))
        if position + 1 == len(tokens):
            tokens.append(int(logits[-1].argmax()))
    return tokens[:COUNT], np.array(logits[:COUNT])


def peer(model):
    """A step of onnxruntime: what it gives as present is passed as past."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    past = {i.name: np.zeros([1, *i.shape[1:2], 0, *i.shape[3:]], np.float32) for i in session.get_inputs() if "past" in i.name}
    names = [output.name for output in session.get_outputs()]

    def step(token, position):
        feeds = {"input_ids": np.array([[token]]), "position_ids": np.array([[position]]),
                 "attention_mask": np.ones([1, position + 1], np.int64), **past}
        outputs = dict(zip(names, session.run(names, feeds)))
        past.update({name: outputs[name.replace("past", "present")] for name in past})
        return outputs["logits"][0, -1]
    return step


def ours(program):
    """A step of the program: the cache is where it was left."""
    def step(token, position):
        mask = np.zeros([1, COUNT], np.int64)
        mask[0, COUNT - 1 - position:] = 1
        inputs = {"input_ids": np.array([[token]]), "position_ids": np.array([[position]]), "attention_mask": mask}
        return program.run(inputs, ["logits"])["logits"][0, -1]
    return step


def check(build, model, plan, folder, wanted):
    """What is wrong with the tokens of one program, or nothing. Twice: states can be reset."""
    path = os.path.join(folder, "decoder.cleave")
    subprocess.run([os.path.join(build, "bin", "cleave"), "compile", model, "--dim", f"batch=1,past={COUNT - 1},total={COUNT}",
                    "--state", "past_*=present_*", *plan, "-o", path, "--quiet"], check=True)
    program = Program(build, path)
    for _ in range(2):
        program.reset()
        tokens, logits = generate(ours(program))
        if tokens != wanted[0]:
            return f"{tokens}, onnxruntime gives {wanted[0]}"
        error = np.abs(logits - wanted[1]).max()
        if not error <= 1e-4 * np.abs(wanted[1]).max():
            return f"logits differ by {error}"
    program.close()
    print(f"largest difference of logits: {error:.1e}")
    return ""


def main():
    build, model = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else MODEL
    wanted, failed = generate(peer(model)), 0
    print("tokens:", *wanted[0])
    with tempfile.TemporaryDirectory() as folder:
        for name, plan in WEIGHTS.items():
            problem = check(build, model, plan, folder, wanted)
            failed += bool(problem)
            print(f"{name}: {problem or 'as onnxruntime'}")
    print(f"{len(WEIGHTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
