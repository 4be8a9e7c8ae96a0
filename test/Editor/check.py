"""What an editor gets of plans from `cleave lsp`: errors and warnings, completion, hover texts, hints, definitions; and that no text ends it.

Usage: check.py BUILD_DIR [NAME...]

What is wrong with a plan must be what `cleave shard` says of the same file (the cases of test/BadInput). Keys are those that the reader of plans
lists in its errors. What rules pick, and what a rank has of it, is counted from the ONNX file.
"""
import fnmatch
import glob
import json
import os
import re
import subprocess
import sys
import threading

import onnx

sys.path.insert(1, os.path.dirname(sys.path[0]))
sys.path.insert(2, os.path.join(sys.path[1], "BadInput"))
import cases_plan
import completion
import harness
import texts
from client import GPT2, MESH, SIZES, TOP, Client, Gone, Plan, expect, joined
from harness import ROOT

SEVERITIES = {1: "error", 2: "warning", 3: "remark"}


# ===--- Errors and warnings ---------------------------------------------------===


def shard(build, folder, plan, model):
    """(severity, line, column, message) of what `cleave shard` says of a plan, lines from 1; places elsewhere are 0."""
    done = harness.cleave(build, "shard", model, "--plan", plan, "--emit", "propagated", "--color", "never", "-o", os.devnull, cwd=folder)
    said = re.findall(r"^(\S+?)(?::(\d+):(\d+))?: (error|warning): (.*)$", done.stderr, re.M)
    return [(kind, int(line or 0), int(column or 0), message) if file == plan else (kind, 0, 0, message) for file, line, column, kind, message in said]


def first_error(said):
    return next((one for one in said if one[0] == "error"), None)


def bad_plan(build, case):
    """The first error of an editor is that of `cleave shard`."""
    with harness.Folder(build, "cleave-editor-") as folder:
        for name, content in case.files.items():
            with open(folder.at(name), "wb") as file:
                file.write(content)
        wanted = first_error(shard(build, folder.path, "p.yaml", "m.onnx"))
        text = case.files["p.yaml"].decode("utf-8", "replace")
        client = Client(build, "m.onnx", folder=folder.path)
        try:
            plan = Plan(client, text, folder.at("p.yaml"))
            said = [(SEVERITIES[severity], line + 1, place(text, line, character), message) for severity, line, character, message in plan.look()]
        finally:
            code = client.close()
    got = first_error(said)
    if wanted and wanted[1] == 0:
        # Of the model, or of all of the plan: a line of the editor's choice.
        return expect(bool(got) and wanted[3] in got[3], True, f"{wanted} in {got}")
    if wanted and got:
        got = (*got[:3], got[3].split("\n")[0])
    return joined([expect(got, wanted, "first error"), expect(code, 0, "exit code")])


def place(text, line, character):
    """The column, from 1, of a character of a line, in bytes."""
    content = text.split("\n")[line]
    return len(content.encode("utf-16-le")[:2 * character].decode("utf-16-le").encode()) + 1


# Plans and their models; of those without a file an error or a warning is expected.
ON_MODELS = {
    "bert.yaml": "bert_ts17", "bert-3d.yaml": "bert_ts17", "parallel/gpt2-ring.yaml": "gpt2_dyn18", "parallel/t5-megatron.yaml": "t5_like_dyn18",
    "parallel/moe-expert.yaml": "moe_dyn18", "parallel/resnet-spatial.yaml": "resnet_ts17", "parallel/unet-fsdp.yaml": "unet_dyn18", "parallel/gpt2-megatron.yaml": "gpt2_ts17",
    "mesh: {data: 2, rows: 2}\ndims: {batch: 4, seq: 16}\nshard: [{tensor: input_ids, dims: [data, _]}]\n": "gpt2_ts17",
    "mesh: {model: 2}\ndims: {batch: 4, seq: 16}\nlike: megatron\n": "gpt2_ts17",
    "mesh: {model: 5}\ndims: {batch: 4, seq: 16}\nlike: megatron\n": "gpt2_ts17",
    "mesh: {stage: 2, data: 2}\ndims: {batch: 4, seq: 16}\npipeline: {axis: stage, microbatches: 2}\nshard: [{tensor: input_ids, dims: [data, _]}]\n": "gpt2_ts17",
    "mesh: {stage: 2}\ndims: {batch: 4, seq: 16}\npipeline: {axis: stage, microbatches: 2}\nshard: [{tensor: input_ids, dims: [stage, _]}]\n": "gpt2_ts17",
    "mesh: {data: 2}\ndims: {batch: 4, sequence: 16}\n": "gpt2_ts17",
    "mesh: {data: 2}\ndims: {batch: 3, seq: 16}\nshard: [{tensor: input_ids, dims: [data, _]}, {tensor: no_such, dims: [data]}]\n": "gpt2_ts17",
}


def on_model(build, client, text, name):
    """All that `cleave shard` says of a plan and its model is there, with its place; and nothing else is, where the plan is right."""
    model = f"{ROOT}/test/Models/{name}.onnx"
    if text.endswith(".yaml"):
        with open(f"{ROOT}/examples/{text}", encoding="utf-8") as file:
            text = file.read()
    with harness.Folder(build, "cleave-editor-") as folder:
        with open(folder.at("p.yaml"), "w", encoding="utf-8") as file:
            file.write(f"# model: {model}\n{text}")
        wanted = {(kind, line, message) for kind, line, _, message in shard(build, folder.path, "p.yaml", model)}
    said = Plan(client, f"# model: {model}\n{text}").look()
    lines = {(SEVERITIES[severity], line + 1, message.split("\n")[0]) for severity, line, _, message in said if severity < 3}
    # What is about the model has its name in front, and the line of the comment.
    lines = {(kind, 0 if f"{model}: " in message else line, message.removeprefix(f"{model}: ")) for kind, line, message in lines}
    return expect(sorted(lines) if not any(kind == "error" for kind, *_ in wanted) else sorted(lines & wanted), sorted(wanted), "said")


def several_errors(client):
    plan = Plan(client, MESH + "shard:\n  - {tensor: a, dims: [dat, _]}\n  - {tensor: b, dims: [data, _]}\n  - tensor: c\n    dims: [data]\n    color: red\n"
                "  - {tensor: d, dims: [model, model]}\n")
    said = sorted(plan.look())
    return joined([expect([(severity, line) for severity, line, *_ in said], [(1, 2), (1, 6), (1, 7)], "errors of three rules"),
                   expect("did you mean 'data'?" in said[0][3], True, said[0][3])])


def several_errors_of_model(client):
    plan = Plan(client, TOP + MESH + SIZES + 'shard:\n  - {tensor: nothing_such, dims: [data]}\n  - {tensor: input_ids, dims: [data, _]}\n'
                '  - {tensor: logits, dims: [data]}\n  - {node: "*/h.0/mlp/c_fc/Gemm", operand: 7, dims: [_, model]}\n')
    said = [(line, message) for severity, line, _, message in plan.look() if severity == 1]
    return joined([expect([line for line, _ in said], [4, 6, 7], f"lines of {said}"), expect("nothing_such" in said[0][1], True, said[0][1]),
                   expect("dim" in said[1][1], True, said[1][1]), expect([line for line, _ in plan.hints()], [1, 5], "a hint of the rule that is right")])


def mends(client):
    """What was wrong is taken back as it is mended, and when the plan is closed."""
    plan = Plan(client, MESH + "shard:\n  - {tensor: x, dims: [modl]}\n")
    before = len(plan.look())
    at = plan.text.index("modl")
    plan.change("e", (at + 3, at + 3))
    after = plan.look()
    plan.change("mesh: {da")
    broken = len(plan.look())
    client.notify("textDocument/didClose", textDocument={"uri": plan.uri})
    client.wait(lambda message: message if message.get("method") == "textDocument/publishDiagnostics" and not message["params"]["diagnostics"] else None)
    return joined([expect(before, 1, "errors"), expect(after, [], "errors after it was mended"), expect(broken, 1, "errors of half a plan")])


def without_model(client):
    """What needs no model is told, names are not looked up."""
    right = Plan(client, MESH + "shard:\n  - {tensor: nowhere, dims: [data]}\n").look()
    return expect(right, [], "of a plan without a model")


def model_that_is_not_there(client):
    said = Plan(client, "# a plan\n# model: nowhere.onnx\n" + MESH).look()
    return expect([(severity, line) for severity, line, *_ in said], [(1, 1)], "of a model that is not there") or expect("nowhere.onnx" in said[0][3], True, said)


def sizes_missing(client):
    said = Plan(client, TOP.replace("ts17", "dyn18") + MESH).look()
    return expect([severity for severity, *_ in said][:1], [1], "without sizes") or expect("--dim" in said[0][3], True, said[0][3])


# ===--- Hover texts, hints, definitions ---------------------------------------===


def parameters():
    """Shapes of the parameters of GPT-2 by name, from its file."""
    return {tensor.name: list(tensor.dims) for tensor in onnx.load(GPT2, load_external_data=False).graph.initializer}


def hovers(client):
    shapes = parameters()
    pattern = "inner.transformer.h.*.mlp.c_proj.weight"
    picked = sorted(name for name in shapes if fnmatch.fnmatchcase(name, pattern))
    plan = Plan(client, TOP + "mesh: {data: 2, model: 4}\n" + SIZES.replace("16", "16") + f'shard:\n  - {{tensor: "{pattern}", dims: [model, _]}}\n  - tensor: input_ids\n    dims: [data, _]\n')
    text = plan.hover("h.*.mlp|.c_proj")
    rows, columns = shapes[picked[0]]
    line = f"- `{picked[0]}` f32[{rows}, {columns}] is `[model, _]`: a rank has f32[{rows // 4}, {columns}]"
    ids = plan.hover("input|_ids")
    return joined([expect(f"picks {len(picked)} tensors" in text, True, text), expect(line in text, True, f"{line} in {text}"),
                   expect("i64[4, 16] is `[data, _]`: a rank has i64[2, 16]" in ids, True, ids),
                   expect(plan.hover("dat|a: 2"), "axis `data` of the mesh: 2 ranks along it, 4 apart: rank 0 meets rank 4", "axis in the mesh"),
                   expect(plan.hover("[mod|el"), "axis `model` of the mesh: 4 ranks along it, 1 apart: rank 0 meets rank 1", "axis in a rule"),
                   expect("Rules" in plan.hover("sha|rd"), True, "key"), expect(plan.hover("[model|, "), plan.hover("[mod|el"), "end of a word"),
                   expect(plan.hover(",| _]}"), None, "of nothing")])


def decided(client):
    """What a rule leaves open is shown as it is decided: columns of the one matrix, whose product with rows of the next is summed."""
    rows, columns = next(shape for name, shape in parameters().items() if name.endswith("mlp.c_fc.weight"))
    plan = Plan(client, TOP + MESH + SIZES + 'shard:\n  - {tensor: "*.mlp.c_fc.weight", dims: [?, ?]}\n  - {tensor: "*.mlp.c_fc.bias", dims: [model]}\n'
                '  - {tensor: "*.mlp.c_proj.weight", dims: [model, _]}\n')
    said = plan.hover("c_f|c.weight")
    return expect(f"f32[{rows}, {columns}] is `[_, model]`: a rank has f32[{rows}, {columns // 2}]" in said, True, said)


def hover_of_wrong(client):
    """Names are looked up of a rule that is wrong; without a model the text says how to name one."""
    wrong = Plan(client, TOP + MESH + 'shard:\n  - {tensor: "*c_attn.bias", dims: [dta]}\n').hover("c_at|tn")
    layers = sum(name.endswith("c_attn.bias") for name in parameters())
    none = Plan(client, MESH + "shard: [{tensor: x, dims: [data]}]\n").hover(" x|,")
    return expect(f"matches {layers} names" in wrong, True, wrong) or expect("# model:" in none, True, none)


def hints(client):
    shapes = parameters()
    plan = Plan(client, TOP + MESH + SIZES + 'shard:\n  - {tensor: input_ids, dims: [data, _]}\n  - {tensor: "*.mlp.c_fc.weight", dims: [_, model]} # up\n'
                '  - module: "inner.transformer.h.*.mlp.c_fc"\n    dims: [model]\n')
    rows, columns = next(shape for name, shape in shapes.items() if name.endswith("mlp.c_fc.weight"))
    layers = sum(name.endswith("mlp.c_fc.weight") for name in shapes)
    errors = [one for one in plan.look() if one[0] == 1]
    return expect(errors, [], "errors") or expect(plan.hints()[:4], [(1, "4 ranks"), (4, "i64[2, 16] a rank"), (5, f"{layers} tensors, f32[{rows}, {columns // 2}] a rank"),
                                                  (6, f"{layers} tensors, f32[{columns // 2}] a rank")], "hints")


def hints_of_range(client):
    plan = Plan(client, MESH + "shard: []\n")
    answer = client.request("textDocument/inlayHint", textDocument={"uri": plan.uri}, range={"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}})
    return expect(answer, [], "below the mesh") or expect(plan.hints(), [(0, "4 ranks")], "of all lines")


def definitions(client):
    plan = Plan(client, 'mesh:\n  data: 2\n  model: 8\nfree: [data]\nshard:\n  - {tensor: x, dims: ["model:(1)2", data?]}\nexpect: {no: [permute over model]}\ntrain: {zero: {axis: data}}\n')
    table = [("[da|ta]", (1, 2)), ("mod|el:(1)2", (2, 2)), (" da|ta?", (1, 2)), ("over mo|del", (2, 2)), ("axis: dat|a", (1, 2))]
    return joined([expect(plan.define(words), [want], words) for words, want in table] + [expect(plan.define("per|mute"), [(2, 2)], "the entry's axis"), expect(plan.define("tens|or"), [], "a key")])


# ===--- What the keys are said to be ------------------------------------------===


def documented(build, client):
    """Each key that is offered has a place in the pages about plans."""
    pages = "".join(open(f"{ROOT}/docs/{name}.md").read() for name in ("plan-file", "training", "cluster", "pipelines"))
    fenced = r"^ *```.*?^ *```"
    code = " ".join(re.findall(fenced, pages, re.M | re.S) + re.findall(r"^    (.+)$", pages, re.M) + re.findall(r"`([^`]+)`", re.sub(fenced, "", pages, flags=re.M | re.S)))
    named = set(re.findall(r"\w+", code))
    missing = set()
    for section in completion.SECTIONS.values():
        plan = Plan(client, section.replace("|", ""))
        missing |= {item["label"] for item in plan.ask("completion", plan.place(section.index("|")))["items"]} - named
    return expect(missing, set(), "keys that no page names")


def extension(build):
    """The folder for VS Code says nothing that is not there."""
    folder = f"{ROOT}/editors/vscode"
    with open(f"{folder}/package.json") as file:
        package = json.load(file)
    source = open(f"{folder}/{package['main']}").read()
    settings = package["contributes"]["configuration"]["properties"]
    read = set(re.findall(r"\.get\(\"([\w.]+)\"", source))
    commands = {command["command"] for command in package["contributes"]["commands"]}
    programs = {name: value["default"] for name, value in settings.items() if name.endswith("path")}
    words = re.findall(r'"lsp"', source)
    problems = [expect(package["dependencies"].keys(), {"vscode-languageclient"}, "dependencies"), expect(package.get("private"), True, "private"),
                expect({name.removeprefix("cleave.") for name in settings}, read, "settings that are read"),
                expect(set(re.findall(r'registerCommand\("([\w.]+)"', source)), commands, "commands that are registered"), expect(len(words), 1, "the command that is run")]
    for name, program in programs.items():
        problems.append(expect(os.access(f"{build}/bin/{program}", os.X_OK), True, f"{program} of {name}"))
    with open(f"{folder}/README.md") as file:
        readme = file.read()
    problems += [expect(name in readme, True, f"{name} in its README") for name in settings]
    languages = {language["id"] for language in package["contributes"]["languages"]}
    problems.append(expect(set(re.findall(r'language: "([\w-]+)"', source)) <= languages | {"yaml"}, True, "languages"))
    if subprocess.run(["sh", "-c", "command -v node"], capture_output=True).returncode == 0:
        problems.append(expect(subprocess.run(["node", "--check", f"{folder}/{package['main']}"]).returncode, 0, "node --check"))
    return joined(problems)


# ===--- All of it -------------------------------------------------------------===


def main():
    build, names, _ = harness.arguments()
    clients = threading.local()

    def shared(function, *arguments):
        """A case with the server of its thread, which the next one has too, unless it is gone."""
        def case():
            if getattr(clients, "one", None) is None:
                clients.one = Client(build)
            try:
                return function(clients.one, *arguments)
            except Gone:
                clients.one = None
                return "the server has ended"
        return case

    cases = {}
    for case in cases_plan.plans():
        # Those that are about the file alone, and the model of all of them.
        if "p.yaml" in case.files and case.arguments[:6] == ["shard", "m.onnx", "-o", "out.mlir", "--plan", "p.yaml"] and len(case.arguments) == 6:
            cases[f"error {case.name}"] = lambda case=case: bad_plan(build, case)
    for function in (several_errors, several_errors_of_model, mends, without_model, model_that_is_not_there, sizes_missing, completion.choices, hovers, decided, hover_of_wrong, hints, hints_of_range,
                     definitions, texts.utf16, texts.increments, texts.late_answers, texts.truncated_with_model, texts.deep):
        cases[function.__name__.replace("_", "-")] = shared(function)
    for function in (texts.protocol, texts.options, texts.large, extension):
        cases[function.__name__] = lambda function=function: function(build)
    for name, section in completion.SECTIONS.items():
        cases[f"keys of {name}"] = shared(lambda client, section: completion.keys(build, client, section), section)
    for name, case in completion.WORDS.items():
        cases[f"words, {name}"] = shared(completion.words, case)
    for number, (text, name) in enumerate(ON_MODELS.items()):
        cases[f"on its model, {text if text.endswith('.yaml') else number}"] = shared(lambda client, text, name: on_model(build, client, text, name), text, name)
    cases["documented"] = shared(lambda client: documented(build, client))
    for path in sorted(glob.glob(f"{ROOT}/examples/**/*.yaml", recursive=True)):
        cases[f"truncated {os.path.relpath(path, ROOT + '/examples')}"] = shared(texts.truncated, path)
    for seed in range(8):
        cases[f"damaged {seed}"] = shared(texts.damaged, seed)
    return harness.run(harness.select(cases, names), lambda case: case())


if __name__ == "__main__":
    sys.exit(main())
