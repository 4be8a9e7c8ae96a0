"""Pages of `cleave page`: what is in them against the report of the same plan, and how they are in a browser.

Usage: pages.py BUILD_DIR [--screenshots] [NAME...]

Each case is a model under a plan. Its page

  * is one file below a megabyte that names nothing of any network;
  * has, summed up over its layers, the collectives and bytes that `cleave shard` reports, and the peak of its memory is the report's;
  * has as many ops of each kind as the program has;
  * opened in headless Chromium at three widths, in both schemes: no error on the console, nothing wider than the window, no letters below
    12 pixels, contrast of all text 4.5 at least (WCAG 2.1, AA); pointers, keys, tables and the choice among plans do what they say.

The last needs `chromium-headless-shell` or `chromium`; where neither runs the line before the last says so, and all else is tested.
--screenshots leaves a picture of each width and scheme in BUILD_DIR/pages.
"""
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(harness.ROOT, "test", "Models")
PLANS = os.path.join(harness.ROOT, "examples")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000")
WIDTHS = (420, 900, 1500)
MOST_BYTES = 1_000_000
UNSHOWN = {"nn.load", "nn.constant", "nn.param", "nn.iota"}

# Arguments of both `page` and `shard`. A deep one is made by bench/make_gpt.py.
CASES = {
    "megatron": ["gpt2_ts17.onnx", "--plan", "parallel/gpt2-megatron.yaml"],
    "compared": ["gpt2_ts17.onnx", "--plan", "parallel/gpt2-megatron.yaml"],
    "two-axes": ["llama_gqa_dyn18.onnx", "--dim", "batch=4,seq=16", "--mesh", "data=2,model=2", "--like", "data,megatron"],
    "found": ["llama_gqa_dyn18.onnx", "--dim", "batch=4,seq=16", "--devices", "4"],
    "convolutions": ["resnet_ts17.onnx", "--dim", "batch=4", "--plan", "parallel/resnet-data.yaml"],
    "step-in-stages": ["gpt2_ts17.onnx", "--plan", "train-pipeline.yaml", "--train"],
    "measured": ["bert_dyn18.onnx", "--staged"],
    "run": ["gpt2_ts17.onnx", "--plan", "parallel/gpt2-megatron.yaml"],
    "unlike-layers": ["--unlike", "--mesh", "model=2", "--shard", "layers.*.up=[_, model]"],
    "deep": ["--layers=96", "--mesh", "data=8,model=8"],
    "deep-in-stages": ["--layers=96"],
}
# 64 ranks, of which 16 stages: the sizes that a page is to be fluid with.
DEEP_PLAN = """mesh: {data: 2, model: 2, stage: 16}
pipeline: {axis: stage, microbatches: 4}
"""
STAGES = """mesh: {stage: 2}
pipeline: {axis: stage, microbatches: 2, schedule: forward}
"""


class Failed(Exception):
    pass


def find_browser():
    """The first that shows anything at all: what is installed may not run on every machine."""
    for path in filter(None, map(shutil.which, ("chromium-headless-shell", "chromium"))):
        done = subprocess.run([path, *FLAGS, "--dump-dom", "data:text/html,<p>seen</p>"], capture_output=True, text=True, timeout=120)
        if "seen" in done.stdout:
            return path
    return None


BROWSER = find_browser()


def expect(holds, text):
    if not holds:
        raise Failed(text)


def make_deep(words, folder):
    """A GPT of 96 layers, with the plan that the maker writes for it on the mesh of `words`, or in stages."""
    model = folder.at("deep.onnx")
    subprocess.run([sys.executable, os.path.join(harness.ROOT, "bench", "make_gpt.py"), words[0], "--hidden", "64", "--heads", "8", "--seq", "16", "--batch",
                    "8", model], check=True, capture_output=True)
    plan = folder.at("deep.yaml")
    with open(plan) as file:
        text = file.read()
    if len(words) == 1:
        with open(plan, "w") as file:
            file.write(re.sub(r"^mesh:.*\n", DEEP_PLAN, text, flags=re.M))
    return [model, "--plan", plan, *words[1:]]


def make_unlike(words, folder):
    """Six layers of equal shapes, of which the fourth has another function."""
    def weight(name, *shape):
        return numpy_helper.from_array(np.full(shape, 0.1, np.float32), name)

    nodes, weights, x = [], [], "x"
    for layer in range(6):
        name = f"layers.{layer}"
        weights += [weight(f"{name}.up", 16, 64), weight(f"{name}.down", 64, 16)]
        nodes += [helper.make_node("MatMul", [x, f"{name}.up"], [f"{name}.h"], name=f"/{name}/up/MatMul"),
                  helper.make_node("Tanh" if layer == 3 else "Relu", [f"{name}.h"], [f"{name}.a"], name=f"/{name}/act/F"),
                  helper.make_node("MatMul", [f"{name}.a", f"{name}.down"], [f"{name}.y"], name=f"/{name}/down/MatMul")]
        x = f"{name}.y"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 16]) for name in ("x", x)]
    model = helper.make_model(helper.make_graph(nodes, "unlike", values[:1], values[1:], weights), opset_imports=[helper.make_opsetid("", 18)])
    onnx.save(model, folder.at("unlike.onnx"))
    return [folder.at("unlike.onnx"), *words[1:]]


def find_words(name, folder):
    words = CASES[name]
    if words[0] == "--unlike":
        return make_unlike(words, folder)
    if words[0].startswith("--layers"):
        return make_deep(words, folder)
    words = [os.path.join(MODELS, words[0]), *words[1:]]
    if "--staged" in words:
        with open(folder.at("stages.yaml"), "w") as file:
            file.write(STAGES)
        return [words[0], "--plan", folder.at("stages.yaml")]
    return [os.path.join(PLANS, word) if word.endswith(".yaml") else word for word in words]


def cleave(build, *words):
    done = harness.cleave(build, *words)
    expect(done.returncode == 0, f"{' '.join(words[:2])}: exit {done.returncode}: {done.stderr.strip()[-300:]}")


def read_model(text):
    found = re.search(r'<script type="application/json" id="model">(.*?)</script>', text, re.S)
    return json.loads(found.group(1))


def list_sent(plan):
    """(node, kind, axes, bytes, cause) of everything that a rank sends, layer by layer. Numbers of layers are the first's."""
    return [(re.sub(r"\d+", "*", op["node"]), sent["kind"], tuple(sent["axes"]), sent["bytes"], re.sub(r"\d+", "*", sent["cause"]))
            for layer in plan["layers"] for op in plan["kinds"][layer["kind"]]["ops"] for sent in op.get("sent", [])]


def check_report(plan, report, in_stages):
    """The graph of the page says what the report says, which counts the program itself."""
    expected = [(re.sub(r"\d+", "*", one["node"]), one["kind"], tuple(one["axes"]), one["wire_bytes_per_rank"], re.sub(r"\d+", "*", one["cause"]))
                for one in report["collectives"]]
    sent = list_sent(plan)
    # The report of a pipeline is of the rank that sends most; the page has all stages, each once.
    if in_stages:
        expect(set(expected) <= set(sent), f"collectives of the report that the page lacks: {sorted(set(expected) - set(sent))[:2]}")
    else:
        expect(sorted(sent) == sorted(expected), f"{len(sent)} collectives on the page, {len(expected)} in the report")
        expect(plan["memory"]["peak"] == report["peak_bytes_per_rank"], f"peak {plan['memory']['peak']}, {report['peak_bytes_per_rank']} in the report")
        expect(max(sum(point[1:]) for point in plan["memory"]["points"]) == plan["memory"]["peak"], "no point of the memory is its peak")
    for layer in plan["layers"]:
        for op in plan["kinds"][layer["kind"]]["ops"]:
            expect(all(0 <= line < len(plan["texts"]) for line in op.get("why", [])), f"{op['node']}: no such text")
            expect(all(0 <= read < len(plan["kinds"][layer["kind"]]["ops"]) for read in op["reads"]), f"{op['node']}: reads no such op")


def check_ops(plan, module):
    """As many ops of each kind as the module has, but for constants and weights, which a page names where they are read."""
    with open(module) as file:
        there = Counter(re.findall(r"^ +(?:%[\w:, %]+ = )?((?:nn|spmd|exec)\.\w+)", file.read(), re.M))
    shown = Counter(op["op"] for layer in plan["layers"] for op in plan["kinds"][layer["kind"]]["ops"])
    for kind, number in there.items():
        expect(shown[kind] in (number, 0) and (shown[kind] or kind in UNSHOWN), f"{shown[kind]} ops {kind}, {number} in the program")
    expect(set(shown) <= set(there), f"ops that the program lacks: {sorted(set(shown) - set(there))}")
    return sum(shown.values())


def run_measured(build, words, folder):
    """The trace of a run by the plan of `words`."""
    program, trace = folder.at("p.cleave"), folder.at("t.json")
    cleave(build, "compile", *words, "-o", program)
    done = subprocess.run([f"{build}/bin/cleave-run", program, "--ranks", "threads", "--repeat", "1", "--trace", trace], capture_output=True, text=True)
    expect(done.returncode == 0, f"exit {done.returncode}: {done.stderr[-300:]}")
    return trace


def check_measured(schedule, trace):
    """A bar for each action of the table, on its rank, from the first of its commands in the trace on, which are microseconds."""
    with open(trace) as file:
        bars = [event for event in json.load(file)["traceEvents"] if "action" in event.get("args", {})]
    first, starts, at = min(bar["ts"] for bar in bars), {}, {}
    for bar in bars:
        action = (bar["pid"], bar["args"]["stage"], bar["args"]["microbatch"])
        starts.setdefault(action, []).append(bar["ts"])
    for rank, row in enumerate(schedule["measured"]["ranks"]):
        expect(all(begin <= end for *_, begin, end in row), f"bars of rank {rank}: {row}")
        at |= {(rank, stage, microbatch): begin / 1e3 + first for _, stage, microbatch, begin, _ in row}
    shown = {(rank, bar[1], bar[2]) for rank, row in enumerate(schedule["ranks"]) for bar in row}
    expect(set(starts) == set(at) == shown, f"actions {sorted(at)}, in the trace {sorted(starts)}, in the table {sorted(shown)}")
    expect(all(any(abs(begin - start) < 0.01 for start in starts[action]) for action, begin in at.items()), f"begins {at}, in the trace {starts}")
    expect(schedule["measured"]["makespan"] >= max(bar[4] for row in schedule["measured"]["ranks"] for bar in row) - 1e-6, "the makespan ends before")
    return len(at)


def check_run(plan, trace):
    """Of each layer the commands of its nodes, by what they do, in the mean of ranks; a row for each rank and stream, whose bars, joined where
    they are short, cover those of the trace; nodes of the first and the last layer are among the trace's."""
    with open(trace) as file:
        bars = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X" and not event["cat"].endswith(",kernel")]
    ranks, run = len({bar["pid"] for bar in bars}), plan["run"]
    due = [0.0, 0.0, 0.0]
    for bar in bars:
        due[2 if bar["cat"].endswith(",finish") else int(bar["cat"] != "launch" and bar["cat"] != "copy")] += bar["dur"] * 1e3 / ranks
    sums = [sum(layer[doing] for layer in run["layers"]) for doing in range(3)]
    # A half of a nanosecond for each layer's mean.
    expect(all(abs(a - b) <= 1 + len(run["layers"]) for a, b in zip(sums, due)), f"sums of layers {sums}, of the trace {due}")
    expect(len(run["layers"]) == len(plan["layers"]) + 1, f"{len(run['layers'])} layers")
    expect(abs(run["makespan"] - 1e3 * max(bar["ts"] + bar["dur"] for bar in bars)) < 1, f"makespan {run['makespan']}")
    threads = sorted({(bar["pid"], bar["tid"]) for bar in bars})
    expect([row["rank"] for row in run["rows"]] == [rank for rank, _ in threads], f"rows of {[row['rank'] for row in run['rows']]}")
    for row, thread in zip(run["rows"], threads):
        own = [(round(bar["ts"] * 1e3), round((bar["ts"] + bar["dur"]) * 1e3)) for bar in bars if (bar["pid"], bar["tid"]) == thread]
        shown = [(begin, begin + length) for _, _, begin, length in row["bars"]]
        expect(all(a[1] <= b[0] for a, b in zip(shown, shown[1:])), f"bars of rank {thread[0]} overlap")
        expect(all(any(a <= begin and end <= b + 1 for a, b in shown) for begin, end in own), f"rank {thread[0]}: a command is in no bar")
    # The layers that repeat are told apart: what one node did is with its own.
    for layer, described in enumerate(plan["layers"]):
        number = re.search(r"\.h\.(\d+)$", described["title"])
        if number:
            nodes = [bar for bar in bars if f"/h.{number.group(1)}/" in bar["args"]["node"]]
            spent = sum(bar["dur"] for bar in nodes) * 1e3 / ranks
            expect(abs(sum(run["layers"][layer]) - spent) <= 0.02 * spent + 3, f"layer {described['title']}: {run['layers'][layer]}, nodes {spent}")
    return len(bars) + len(run["layers"])


def browse(path, width, scheme, picture):
    """What script.js found when it used the page."""
    with open(path) as file:
        text = file.read()
    with open(os.path.join(HERE, "use-page.js")) as file:
        script = file.read()
    used, seen = (f"{path[:-5]}-{width}-{scheme}{what}.html" for what in ("", "-seen"))
    # Errors are caught from the first script on.
    text = text.replace("<head>", "<head><script>window.errors = []; addEventListener('error', event => errors.push(event.message));"
                        "console.error = (...words) => errors.push(words.join(' '));</script>", 1)
    with open(used, "w") as file:
        file.write(text.replace("</body>", f"<script>const wantedScheme = '{scheme}';\n{script}</script></body>"))
    flags = [*FLAGS, f"--window-size={width},2400"]
    done = subprocess.run([BROWSER, *flags, "--dump-dom", f"file://{used}"], capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="used">(.*?)</pre>', done.stdout, re.S)
    expect(found, f"the page was not used: {done.stderr.strip()[-200:]}")
    if picture:
        with open(path) as file, open(seen, "w") as plain:
            plain.write(file.read().replace("</body>", f"<script>setScheme('{scheme}');</script></body>"))
        subprocess.run([BROWSER, *flags, "--hide-scrollbars", f"--screenshot={picture}", f"file://{seen}"], capture_output=True, timeout=120)
    return json.loads(found.group(1).replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))


def check_page(build, name, pictures, counts):
    with harness.Folder(build, "cleave-page-") as folder:
        words, page, report = find_words(name, folder), folder.at("page.html"), folder.at("report.json")
        other = ["--compare", os.path.join(PLANS, "parallel/gpt2-data.yaml")] if name == "compared" else []
        if name in ("measured", "run"):
            other = ["--measured", run_measured(build, words, folder)]
        cleave(build, "page", *words, *other, "-o", page)
        cleave(build, "shard", *words, "-o", folder.at("sharded.mlir"), "--report", report)
        with open(page) as file:
            text = file.read()
        with open(report) as file:
            report = json.load(file)
        expect(len(text) < MOST_BYTES, f"{len(text)} bytes")
        expect(not re.search(r"""(src|href)=["'](?!#|data:,)""", text), "the page refers to another file")
        model = read_model(text)
        expect(model["version"] == 3, f"version {model['version']}")
        if name == "measured":
            counts.append(check_measured(model["plans"][0]["schedule"], other[1]))
        if name == "run":
            counts.append(check_run(model["plans"][0], other[1]))
        check_report(model["plans"][0], report, "schedule" in model["plans"][0])
        counts.append(len(list_sent(model["plans"][0])))
        if "schedule" not in model["plans"][0]:
            counts.append(check_ops(model["plans"][0], folder.at("sharded.mlir")))
        for width in WIDTHS if BROWSER else ():
            for scheme in ("light", "dark"):
                picture = os.path.join(pictures, f"{name}-{width}-{scheme}.png") if pictures else None
                used = browse(page, width, scheme, picture)
                expect(not used["problems"], f"at {width} in {scheme}: {'; '.join(used['problems'][:4])}")
                counts.append(used["checked"])


def main():
    build, names, flags = harness.arguments("--screenshots")
    pictures = os.path.join(build, "pages") if flags else None
    if pictures:
        os.makedirs(pictures, exist_ok=True)
    counts = []

    def problem(name):
        try:
            check_page(build, name, pictures, counts)
        except Failed as error:
            return str(error)
        return None

    chosen = list(harness.select(CASES, names))
    failed = harness.tell_failures(chosen, harness.each(problem, chosen))
    print(f"{sum(counts)} things compared" + ("" if BROWSER else "; no Chromium runs here: pages were not opened"))
    return harness.close(len(chosen), failed)


if __name__ == "__main__":
    sys.exit(main())
