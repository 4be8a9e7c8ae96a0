"""Plans for numbers of devices that divide little of a model: 3, 5, 6 and 7, found with `--uneven`.

Usage: uneven.py BUILD_DIR [NAME...]

A case is a model and a number of devices. With `--uneven` what is found takes no longer than without, by prediction, but for 2 %; the
models of ODD, of whose sizes 5 and 7 divide nothing that helps, take a fifth less there; every output of its program is that of one device (`run --check`: the evaluator, a
program, an emulated device, in turn); a plan that pads says so, and is the same plan when it is taken from its file.
"""
import json
import os
import sys
import tempfile

import yaml

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

MODELS = os.path.dirname(os.path.abspath(__file__))
# Sizes that are no multiples of any number of devices here.
ODD = {"gpt2_dyn18": "batch=4,seq=11", "llama_gqa_dyn18": "batch=4,seq=11", "vit_dyn18": "batch=4", "resnet_ts17": "batch=4",
       "bert_ts17": "batch=4,seq=11"}
# Others; without dims the sizes are fixed.
OTHERS = {"mlp_external": "batch=16", "unet_dyn18": "", "moe_dyn18": "", "t5_like_dyn18": ""}
DEVICES = (3, 5, 6, 7)
LOWERINGS = ([], ["--executor", "program"], ["--device", "cuda-emulated"])


def find(build, words, folder):
    """(seconds of a call, the plan, its file)."""
    report, plan = os.path.join(folder, "found.json"), os.path.join(folder, "found.yaml")
    done = harness.cleave(build, "plan", *words, "--stages", "1", "-o", plan, "--report", report, "--quiet")
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:])
    with open(report) as file, open(plan) as text:
        return json.load(file)["best"]["seconds"], yaml.safe_load(text), plan


def problem(case):
    build, number, model, devices = case
    dims = ODD.get(model) or OTHERS[model]
    words = [os.path.join(MODELS, model + ".onnx"), "--devices", str(devices)] + (["--dim", dims] if dims else [])
    with tempfile.TemporaryDirectory() as folder:
        try:
            even, _, _ = find(build, words, folder)
            seconds, plan, path = find(build, [*words, "--uneven"], folder)
        except RuntimeError as error:
            return str(error)
        if plan.get("uneven") is not True:
            return f"the plan does not say that it pads: {plan}"
        # Coordinate descent over more choices may end elsewhere.
        if seconds > 1.02 * even:
            return f"takes {seconds} s, and {even} s without padding"
        if model in ODD and devices in (5, 7) and seconds > 0.8 * even:
            return f"takes {seconds} s, hardly less than the {even} s of splits that divide"
        done = harness.cleave(build, "run", words[0], "--plan", path, "--check", "--quiet", *LOWERINGS[number % len(LOWERINGS)])
        return "" if done.returncode == 0 else f"exit {done.returncode}: {(done.stderr + done.stdout).strip()[-300:]}"


def main():
    build, names, _ = harness.arguments()
    cases = {f"{model} {devices}": (build, number, model, devices)
             for number, (model, devices) in enumerate((model, devices) for model in (*ODD, *OTHERS) for devices in DEVICES)}
    return harness.run(harness.select(cases, names), problem)


if __name__ == "__main__":
    sys.exit(main())
