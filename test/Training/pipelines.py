"""Every schedule with gradients, as the program of a step: its gradients are those of the microbatches one after the other.

    pipelines.py BUILD_DIR [CASE...]

A step of momentum leaves the gradients, as they were added up, in the states of the optimizer. In the evaluator those of a schedule are
those of one rank that takes the same microbatches in order, bit by bit, whatever order the table has; in programs, whose kernels are formed
across calls, and where microbatches go two ways, within rounding. One rank is held against numpy. Where ranks have several stages, some are
updated while their rank waits for others: programs have the bits of one that updates all at the end. So have those whose microbatches go two ways,
where the other rank of a stage sends its gradients in time, and those whose labels do not all count, as each rank knows how many do beforehand.
"""
import itertools
import json
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper, parser

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

WIDTH, LAYERS, BATCH = 6, 16, 48
# Within rounding of f32: of numbers of one size.
RTOL, ATOL = 2e-5, 2e-6
# Name: stages of a rank, microbatches for p ranks.
SCHEDULES = {
    "gpipe": (1, lambda p: (2, 4)), "1f1b": (1, lambda p: (2, 8)), "eager-1f1b": (1, lambda p: (4,)), "zb-h1": (1, lambda p: (2 * p,)),
    "zb-h2": (1, lambda p: (2 * p,)), "interleaved": (2, lambda p: (p, 2 * p)), "bfs": (2, lambda p: (4,)), "zb-v": (2, lambda p: (2 * p,)),
    "v-half": (2, lambda p: (2 * p,)), "v-min": (2, lambda p: (2 * p,)), "dualpipe-v": (2, lambda p: (2 * p,)), "hanayo": (2, lambda p: (p,)),
    "dualpipe": (1, lambda p: (2 * p,) if p % 2 == 0 else ()), "chimera": (1, lambda p: (p, 2 * p) if p % 2 == 0 else ()), "auto": (1, lambda p: (p, 6)),
}
# Half of the microbatches go the other way, and have sums of their own.
TWO_WAYS = ("dualpipe", "chimera")
# All F before all B, and the second half of the stages first: of more than three ranks some wait when that half has all of its gradients.
UPDATES_EARLY = {"bfs": 4, "chimera": 8}
# A class that counts for nothing.
IGNORED = 2
RANKS = (1, 2, 3, 4, 8)


def save_model(folder):
    """Layers of a product, a bias and tanh; a skip over four of them."""
    text, last = f'<ir_version: 10, opset_import: ["": 20]> g (float[batch,{WIDTH}] x) => (float[batch,{WIDTH}] y) {{\n', "x"
    for layer in range(LAYERS):
        text += f" m{layer} = MatMul({last}, w{layer})\n a{layer} = Add(m{layer}, b{layer})\n t{layer} = Tanh(a{layer})\n"
        last = f"t{layer}"
        if layer % 4 == 3 and layer > 4:
            text += f" s{layer} = Add(t{layer}, t{layer - 4})\n"
            last = f"s{layer}"
    model = parser.parse_model(text + f" y = Identity({last})\n}}")
    random = np.random.default_rng(1)
    for layer in range(LAYERS):
        for name, shape in ((f"w{layer}", (WIDTH, WIDTH)), (f"b{layer}", (WIDTH,))):
            model.graph.initializer.append(numpy_helper.from_array(random.standard_normal(shape).astype(np.float32) * np.float32(0.5), name))
    for node in model.graph.node:
        node.name = f"/{node.output[0]}/{node.op_type}"
    onnx.save(model, os.path.join(folder, "model.onnx"))
    inputs = {name: random.standard_normal((BATCH, WIDTH)).astype(np.float32) for name in ("x", "labels")}
    np.savez(os.path.join(folder, "inputs.npz"), **inputs)
    return {value.name: numpy_helper.to_array(value) for value in model.graph.initializer}, inputs


def square(value, labels):
    """The gradient of the mean square by the output."""
    return 2 * (value - labels) / value.size


def classify(value, labels):
    """That of the cross entropy over the labels that count."""
    shares = np.exp(value - value.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    return (shares - np.eye(WIDTH)[labels]) * (labels != IGNORED)[:, None] / np.sum(labels != IGNORED)


def differentiate(weights, inputs, loss=square):
    """Gradients of a loss, in f64."""
    kept, skipped, value = [], {}, inputs["x"].astype(float)
    for layer in range(LAYERS):
        before, value = value, np.tanh(value @ weights[f"w{layer}"].astype(float) + weights[f"b{layer}"])
        kept.append((before, value))
        skipped[layer] = value
        if layer % 4 == 3 and layer > 4:
            value = value + skipped[layer - 4]
    gradient = loss(value, inputs["labels"])
    found, waiting = {}, {}
    for layer in reversed(range(LAYERS)):
        if layer % 4 == 3 and layer > 4:
            waiting[layer - 4] = gradient
        gradient = (gradient + waiting.pop(layer, 0)) * (1 - kept[layer][1] ** 2)
        found[f"w{layer}"], found[f"b{layer}"] = kept[layer][0].T @ gradient, gradient.sum(0)
        gradient = gradient @ weights[f"w{layer}"].T.astype(float)
    return found


class Steps:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        weights, inputs = save_model(folder)
        self.gradients = differentiate(weights, inputs)
        # Microbatches differ in how many labels count.
        labels = np.random.default_rng(3).integers(0, WIDTH, BATCH)
        labels[:BATCH // 4] = np.where(np.arange(BATCH // 4) % 3, IGNORED, labels[:BATCH // 4])
        inputs["labels"] = labels
        np.savez(os.path.join(folder, "classes.npz"), **inputs)
        self.gradients_of_classes = differentiate(weights, inputs, classify)
        self.number = itertools.count()

    def run(self, lines, *flags, inputs="inputs.npz"):
        """What a step gives, or why there is nothing."""
        number = next(self.number)
        plan, outputs = (os.path.join(self.folder, f"{number}.{kind}") for kind in ("yaml", "npz"))
        with open(plan, "w") as file:
            file.write("\n".join([f"dims: {{batch: {BATCH}}}", *lines]) + "\n")
        done = harness.cleave(self.build, "run", os.path.join(self.folder, "model.onnx"), "--train", "--plan", plan, "--inputs",
                              os.path.join(self.folder, inputs), "--outputs", outputs, "--quiet", *flags)
        return (None, done.stderr[-400:] or f"exit {done.returncode}") if done.returncode else (dict(np.load(outputs)), "")

    def train(self, **more):
        return [f"train: {{loss: {{kind: mse, of: y}}, optimizer: momentum, rate: 0.1{''.join(f', {key}: {value}' for key, value in more.items())}}}"]

    def one(self, microbatches):
        """The same microbatches on one rank, against numpy; what it gives is what all else is held against."""
        lines = self.train(**{"microbatches": microbatches} if microbatches > 1 else {})
        given, text = self.run(lines, "--executor", "reference")
        wrong = [name for name, want in self.gradients.items() if given and not np.allclose(given[f"next(m({name}))"], want, 1e-4, 1e-6)]
        return given, text or (f"the gradient of {wrong[0]} is not numpy's" if wrong else "")

    def check_clipped(self, clip):
        """With a length to clip by each stage adds up its squares early. The bits are those of squares at the end, and the gradients those of numpy,
        shortened to that length where they are longer."""
        lines = ["mesh: {stage: 4}", "pipeline: {axis: stage, microbatches: 4, schedule: bfs, chunks: 2}", *self.train(clip=clip)]
        report = os.path.join(self.folder, f"clip-{clip}.json")
        given, text = self.run(lines, "--executor", "program", "--report", report)
        late, more = self.run([lines[0], lines[1].replace("}", ", update: end}"), lines[2]], "--executor", "program")
        if text or more:
            return text or more
        with open(report) as file:
            told = json.load(file)["pipeline"]["schedule"]
        if not told["updated_early"] or not any("'norm'" in late["why"] for late in told["updated_late"]):
            return f"squares are not early, or the report does not say what the rest waits for: {told}"
        if other := [name for name, value in given.items() if value.tobytes() != late[name].tobytes()]:
            return f"{other[0]} has other bits where all are updated at the end"
        length = np.sqrt(sum(np.sum(np.square(gradient)) for gradient in self.gradients.values()))
        want = {f"next(m({name}))": (gradient * min(1, clip / length)).astype(np.float32) for name, gradient in self.gradients.items()}
        return self.compare({name: given[name] for name in want}, want)

    def check_ignored(self):
        """Where labels do not all count, gradients of microbatches are weighed by how many do, which no stage waits for. Bits are those of the same
        microbatches on one rank in the evaluator, and of updates at the end; gradients are numpy's."""
        train = f"train: {{loss: {{kind: cross_entropy, of: y, ignore: {IGNORED}}}, optimizer: momentum, rate: 0.1}}"
        lines = ["mesh: {stage: 4}", "pipeline: {axis: stage, microbatches: 4, schedule: bfs, chunks: 2}", train]
        report = os.path.join(self.folder, "ignored.json")
        ways = ((lines, "reference"), ([train.replace("rate", "microbatches: 4, rate")], "reference"), (lines, "program"),
                ([lines[0], lines[1].replace("}", ", update: end}"), lines[2]], "program"))
        results = [self.run(way, "--executor", who, *(("--report", report) if number == 2 else ()), inputs="classes.npz") for number, (way, who) in enumerate(ways)]
        if texts := [text for _, text in results if text]:
            return texts[0]
        (evaluated, _), (alone, _), (given, _), (late, _) = results
        for some, others in ((evaluated, alone), (given, late)):
            if other := [name for name, value in some.items() if value.tobytes() != others[name].tobytes()]:
                return f"{other[0]} has other bits"
        with open(report) as file:
            told = json.load(file)["pipeline"]["schedule"]
        if not told["updated_early"] or any("needs" in late["why"] for late in told["updated_late"]):
            return f"updates wait for what others make of the labels: {told}"
        want = {f"next(m({name}))": gradient.astype(np.float32) for name, gradient in self.gradients_of_classes.items()}
        return self.compare({name: given[name] for name in want}, want)

    def check_both_ways(self):
        """A table of two ways by hand that updates stage 3 at home, on rank 3, in the wait before the last I of its other stage, with what rank 0 sends in
        its own: in the evaluator and in programs the bits are those of the table that updates all at the end."""
        table = os.path.join(self.folder, "both.json")
        done = harness.cleave(self.build, "schedule", "--schedule", "dualpipe", "--ranks", "4", "--microbatches", "8", "--report", table, "--quiet")
        if done.returncode:
            return done.stderr[-400:]
        with open(table) as file:
            told = json.load(file)
        for rank, action, before in ((0, "REDUCE_GRAD", ("RECV_B", 3)), (3, "UPDATE", ("I", 7))):
            row = told["programs"][rank]
            places = [place for place, known in enumerate(row) if (known.get("do"), known.get("microbatch"), known.get("stage")) == (*before, 0)]
            row.insert(places[0], {"do": action, "stage": 3})
        with open(table, "w") as file:
            json.dump(told, file)
        lines = ["mesh: {stage: 4}", f"pipeline: {{axis: stage, microbatches: 8, schedule: {table}}}", *self.train()]
        end = [lines[0], lines[1].replace(table, "dualpipe").replace("}", ", update: end}"), *lines[2:]]
        for who in ("reference", "program"):
            (early, text), (late, more) = self.run(lines, "--executor", who), self.run(end, "--executor", who)
            if text or more:
                return text or more
            if other := [name for name, value in early.items() if value.tobytes() != late[name].tobytes()]:
                return f"{who}: {other[0]} has other bits where all are updated at the end"
        return ""

    def compare(self, given, want):
        return harness.difference(given, {f"out:{name}": value for name, value in want.items()}, RTOL, ATOL)

    def check(self, case, want):
        schedule, ranks, microbatches, chunks = case
        lines = [f"mesh: {{stage: {ranks}}}", f"pipeline: {{axis: stage, microbatches: {microbatches}, schedule: {schedule}{f', chunks: {chunks}' if chunks > 1 else ''}}}",
                 *self.train()]
        given, text = self.run(lines, "--executor", "reference")
        if text:
            return text
        if schedule in TWO_WAYS and (text := self.compare(given, want)):
            return f"evaluator: {text}"
        for name, value in want.items() if schedule not in TWO_WAYS else ():
            if value.tobytes() != given[name].tobytes():
                return f"evaluator: {name} has other bits, by {np.abs(value - given[name]).max():.1e}"
        report = os.path.join(self.folder, f"{'-'.join(map(str, case))}.json")
        given, text = self.run(lines, "--executor", "program", "--report", report)
        return text or self.compare(given, want) or self.check_updates(lines, given, report, schedule)

    def check_updates(self, lines, given, report, schedule):
        """A step that is updated early has the bits of one that is not; and there is one."""
        with open(report) as file:
            told = json.load(file)["pipeline"]["schedule"]
        if not told.get("updated_early"):
            return "no stage is updated early" if told["ranks"] >= UPDATES_EARLY.get(schedule, told["ranks"] + 1) else ""
        if needs := [late for late in told["updated_late"] if "needs" in late["why"]]:
            return f"updates need gradients of other stages: {needs}"
        late, text = self.run([lines[0], lines[1].replace("}", ", update: end}"), *lines[2:]], "--executor", "program")
        other = [name for name, value in given.items() if not text and value.tobytes() != late[name].tobytes()]
        return text or (f"{other[0]} has other bits where all are updated at the end" if other else "")


def list_cases():
    for name, (chunks, choose) in SCHEDULES.items():
        for ranks in RANKS:
            if ranks * chunks <= LAYERS and not (chunks > 1 and ranks == 1):
                for microbatches in choose(ranks):
                    yield f"{name}, {ranks} ranks, {microbatches} microbatches", (name, ranks, microbatches, chunks)


def main():
    build, wanted, _ = harness.arguments()
    with tempfile.TemporaryDirectory() as folder:
        steps = Steps(build, folder)
        cases = harness.select(dict(list_cases()), wanted)
        counts = sorted({case[2] for case in cases.values()})
        alone = dict(zip(counts, harness.each(steps.one, counts)))
        results = {f"one rank, {count} microbatches": text for count, (_, text) in alone.items()}
        texts = harness.each(lambda case: alone[case[2]][1] or steps.check(case, alone[case[2]][0]), cases.values())
        results |= dict(zip(cases, texts))
        for name, clip in () if wanted else (("clipped", 1e-3), ("not clipped", 1e3)):
            results[f"bfs, 4 ranks, {name}"] = steps.check_clipped(clip)
        if not wanted:
            results["bfs, 4 ranks, labels that do not count"] = steps.check_ignored()
            results["dualpipe, 4 ranks, updated in between"] = steps.check_both_ways()
        return harness.run(results, lambda text: text)


if __name__ == "__main__":
    sys.exit(main())
