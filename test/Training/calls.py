"""Several steps of training in one call: those of as many calls, bit by bit; without a flush, those of a simulation.

    calls.py BUILD_DIR [CASE...]

`--steps-per-call K` takes K batches, and gives K losses and the states behind them. The evaluator, and programs, are held against K calls of
one step each, whose states go from call to call. PipeDream and 2BW read older weights where microbatches are under way: there numpy computes
which (Narayanan et al. 2019, 2021), and the gradients of a chain whose stages have weights of different steps.
"""
import json
import os
import sys
import tempfile

import numpy as np

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
import pipelines

LAYERS, WIDTH, BATCH = pipelines.LAYERS, pipelines.WIDTH, pipelines.BATCH
RATE, BETA = 0.2, 0.9
# Of adamw: large beside what rounding does to a gradient.
BETAS, EPSILON, DECAY = (0.9, 0.999), 1e-2, 0.01
OPTIMIZERS = {"adamw": f"{{kind: adamw, epsilon: {EPSILON}}}"}
RTOL, ATOL = 2e-5, 2e-6

# Name: lines of the plan, the section `train`, how many steps.
ADAM = "optimizer: adamw, rate: {kind: cosine, peak: 0.05, warmup: 2, steps: 9}, clip: 0.3"
ROWS = ["shard: [{tensor: x, dims: [data, _]}, {tensor: labels, dims: [data, _]}]"]
CALLS = {
    "one device": ([], ADAM, 3), "one device, f16": ([], "optimizer: sgd, precision: {parameters: f16}", 3), "microbatches": ([], ADAM + ", microbatches: 3", 2),
    "data parallel": (["mesh: {data: 2}", *ROWS], ADAM, 3), "ZeRO-1": (["mesh: {data: 2}", *ROWS], ADAM + ", zero: {axis: data, stage: 1, min_bytes: 0}", 4),
    "ZeRO-3, made again": (["mesh: {data: 2}", *ROWS], ADAM + ", zero: {axis: data, stage: 3, min_bytes: 0}, recompute: cheap", 2),
    "rates as inputs": (["mesh: {data: 2}", *ROWS], "optimizer: momentum, rate: input", 3),
    "1f1b": (["mesh: {stage: 2}", "pipeline: {axis: stage, microbatches: 4, schedule: 1f1b}"], ADAM, 3),
    "zb-v": (["mesh: {stage: 2}", "pipeline: {axis: stage, microbatches: 4, schedule: zb-v, chunks: 2}"], ADAM, 2),
    "chimera": (["mesh: {stage: 2}", "pipeline: {axis: stage, microbatches: 2, schedule: chimera}"], ADAM, 2),
    "data x stages, ZeRO-1": (["mesh: {data: 2, stage: 2}", *ROWS, "pipeline: {axis: stage, microbatches: 2, schedule: zb-h1}"], ADAM + ", zero: {axis: data, stage: 1, min_bytes: 0}", 3),
}
# Schedule: ranks, microbatches of a step, steps, optimizer, other axes.
DELAYED = {f"{schedule}, {ranks} ranks, {microbatches} microbatches, {steps} steps, {optimizer}{', data' if rows else ''}": (schedule, ranks, microbatches, steps, optimizer, rows)
           for schedule, ranks, microbatches, steps, optimizer, rows in [
               ("pipedream-2bw", 2, 2, 2, "sgd", []), ("pipedream-2bw", 2, 2, 4, "momentum", []), ("pipedream-2bw", 3, 4, 3, "momentum", []), ("pipedream-2bw", 4, 4, 5, "sgd", []),
               ("pipedream-2bw", 2, 2, 3, "momentum", ROWS), ("pipedream-2bw", 3, 4, 4, "adamw", []), ("pipedream", 3, 2, 4, "adamw", []), ("pipedream", 2, 2, 2, "sgd", []), ("pipedream", 2, 2, 5, "momentum", []), ("pipedream", 3, 2, 4, "sgd", []),
               ("pipedream", 4, 2, 6, "momentum", []), ("pipedream", 4, 4, 3, "sgd", []), ("pipedream", 2, 2, 3, "momentum", ROWS)]}


def update(step, optimizer, weight, state, gradient):
    """The next weight and states; of adamw as torch has it, n from 1 on: each rank counts the steps that it has done."""
    if optimizer != "adamw":
        moment = (BETA * state.get("m", 0) if optimizer == "momentum" else 0) + gradient
        return weight - RATE * moment, {"m": moment}
    (b1, b2), n = BETAS, step + 1
    m, v = b1 * state.get("m", 0) + (1 - b1) * gradient, b2 * state.get("v", 0) + (1 - b2) * gradient**2
    return weight * (1 - RATE * DECAY) - RATE * m / (1 - b1**n) / (np.sqrt(v / (1 - b2**n)) + EPSILON), {"m": m, "v": v}


def find_stage(layer, ranks):
    return layer * ranks // LAYERS


def simulate(weights, batches, case):
    """Losses, weights and states of the steps, in f64. Rank s has done the B of `warmup = p - 1 - s` fewer microbatches than F, when an F begins."""
    schedule, ranks, microbatches, steps, optimizer, shared = case
    versions, states, losses = [{name: value.astype(float) for name, value in weights.items()}], {name: {} for name in weights}, []

    def version(stage, step, microbatch):
        if schedule == "pipedream-2bw":
            return max(step - 1, 0)
        return max(step * microbatches + microbatch - (ranks - 1 - stage), 0) // microbatches

    for step in range(steps):
        sums, loss = {name: 0 for name in weights}, 0
        for microbatch in range(microbatches):
            # Of ranks that share the batch each has a piece of its own rows.
            shards = np.arange(BATCH).reshape(2 if shared else 1, -1)
            rows = np.concatenate(np.split(shards, microbatches, axis=1)[microbatch])
            part = {name: value[step][rows] for name, value in batches.items()}
            mixed = {name: versions[version(find_stage(int(name[1:]), ranks), step, microbatch)][name] for name in weights}
            found = pipelines.differentiate(mixed, part)
            sums = {name: sums[name] + found[name] / microbatches for name in weights}
            loss += compute_loss(mixed, part) / microbatches
        made = {name: update(step, optimizer, versions[-1][name], states[name], sums[name]) for name in weights}
        versions.append({name: weight for name, (weight, _) in made.items()})
        states = {name: state for name, (_, state) in made.items()}
        losses.append(loss)
    return losses, versions[-1], states


def compute_loss(weights, inputs):
    value, skipped = inputs["x"].astype(float), {}
    for layer in range(LAYERS):
        value = skipped[layer] = np.tanh(value @ weights[f"w{layer}"] + weights[f"b{layer}"])
        if layer % 4 == 3 and layer > 4:
            value = value + skipped[layer - 4]
    return np.mean((value - inputs["labels"])**2)


class Calls:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.weights, _ = pipelines.save_model(folder)
        random = np.random.default_rng(2)
        self.batches = {name: random.standard_normal((8, BATCH, WIDTH)).astype(np.float32) for name in ("x", "labels")}

    def at(self, name):
        return os.path.join(self.folder, name)

    def call(self, name, lines, inputs, steps, executor):
        plan, given, made = (self.at(f"{name}{suffix}".replace(" ", "_")) for suffix in (".yaml", ".in.npz", ".out.npz"))
        with open(plan, "w") as file:
            file.write("\n".join([f"dims: {{batch: {BATCH}}}", *lines]) + "\n")
        np.savez(given, **inputs)
        done = harness.cleave(self.build, "run", self.at("model.onnx"), "--train", "--plan", plan, "--inputs", given, "--outputs", made, "--quiet",
                              "--executor", executor, "--steps-per-call", str(steps))
        if done.returncode:
            raise RuntimeError(done.stderr[-400:] or f"exit {done.returncode}")
        return {key.removeprefix("out:"): value for key, value in np.load(made).items()}

    def take(self, first, steps, rate):
        """The batches of some steps, and their rates where these are inputs; of one step as they are."""
        taken = {name: value[first:first + steps] for name, value in self.batches.items()}
        if rate:
            taken["rate"] = np.float32(0.05) / np.arange(first + 1, first + steps + 1, dtype=np.float32)
        return {name: value if steps > 1 else value[0] for name, value in taken.items()}

    def check_calls(self, name, case):
        """Equal bits in the evaluator and in programs: a step computes what it computed."""
        lines, train, steps = case
        lines = [*lines, f"train: {{loss: {{kind: mse, of: y}}, {train}}}"]
        for executor in ("reference", "program"):
            told, states = [], {}
            for step in range(steps):
                one = self.call(f"{name}.{executor}.{step}", lines, {**self.take(step, 1, "rate: input" in train), **states}, 1, executor)
                states = {key[5:-1]: value for key, value in one.items() if key.startswith("next(")}
                told.append({key: value for key, value in one.items() if not key.startswith("next(")})
            want = {**{f"next({key})": value for key, value in states.items()}, **{key: np.stack([each[key] for each in told]) for key in told[0]}}
            given = self.call(f"{name}.{executor}", lines, self.take(0, steps, "rate: input" in train), steps, executor)
            if set(given) != set(want):
                return f"{executor}: other outputs: {sorted(set(given) ^ set(want))}"
            for key, value in want.items():
                if value.shape != given[key].shape or value.tobytes() != given[key].tobytes():
                    return f"{executor}: {key} is {given[key].shape} and off by {np.abs(value.astype(float) - given[key]).max() if value.shape == given[key].shape else '-'}"
        return ""

    def check_delayed(self, name, case):
        schedule, ranks, microbatches, steps, optimizer, rows = case
        losses, weights, states = simulate(self.weights, self.batches, case)
        firsts = [next(layer for layer in range(LAYERS) if find_stage(layer, ranks) == stage) for stage in range(ranks)]
        mesh = f"mesh: {{{'data: 2, ' if rows else ''}stage: {ranks}}}"
        stages = ", ".join(f'{{first: "/m{layer}/MatMul"}}' for layer in firsts)
        lines = [mesh, *rows, f"pipeline: {{axis: stage, microbatches: {microbatches}, schedule: {schedule}, stages: [{stages}]}}",
                 f"train: {{loss: {{kind: mse, of: y}}, optimizer: {OPTIMIZERS.get(optimizer, optimizer)}, rate: {RATE}}}"]
        want = {"loss": np.array(losses), **{f"next({key})": value for key, value in weights.items()}}
        if optimizer != "sgd":
            want |= {f"next({kind}({key}))": value for key, state in states.items() for kind, value in state.items()}
        for executor in ("reference", "program"):
            given = self.call(f"{name}.{executor}", lines, self.take(0, steps, False), steps, executor)
            for key, value in want.items():
                if not np.allclose(given[key], value, RTOL, ATOL):
                    return f"{executor}: {key} is not numpy's, by {np.abs(given[key] - value).max():.1e}"
        return ""

    def check_training(self, steps):
        """`cleave train` with several steps in a call: the losses, and the checkpoint, of one with single ones."""
        np.savez(self.at("data.npz"), **{name: value.reshape(-1, WIDTH) for name, value in self.batches.items()})
        with open(self.at("train.yaml"), "w") as file:
            file.write(f"dims: {{batch: {BATCH}}}\nmesh: {{stage: 2}}\npipeline: {{axis: stage, microbatches: 2}}\ntrain: {{loss: {{kind: mse, of: y}}, {ADAM}}}\n")
        made = []
        for name, count in (("one", 1), ("several", steps)):
            log, saved = self.at(f"{name}{steps}.jsonl"), self.at(f"{name}{steps}.safetensors")
            done = harness.cleave(self.build, "train", self.at("model.onnx"), "--plan", self.at("train.yaml"), "--data", self.at("data.npz"), "--steps", "12", "--log", log,
                                  "--save", saved, "--quiet", "--steps-per-call", str(count), "--eval-data", self.at("data.npz"))
            if done.returncode:
                return done.stderr[-400:]
            with open(log) as file, open(saved, "rb") as weights:
                made.append(([{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in file], weights.read()))
        if len(made[0][0]) != 13 or made[0] != made[1]:
            return f"{len(made[1][0])} lines of {len(made[0][0])}, or other numbers"
        return ""


def main():
    build, wanted, _ = harness.arguments()
    with tempfile.TemporaryDirectory() as folder:
        calls = Calls(build, folder)
        cases = {**{f"calls, {name}": (calls.check_calls, name, case) for name, case in CALLS.items()},
                 **{name: (calls.check_delayed, name, case) for name, case in DELAYED.items()},
                 **{f"training, {steps} steps in a call": (calls.check_training, steps) for steps in (2, 4)}}
        return harness.run(harness.select(cases, wanted), lambda case: case[0](*case[1:]))


if __name__ == "__main__":
    sys.exit(main())
