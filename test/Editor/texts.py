"""Any text, in any order: positions, edits, requests too early and too late; and that nothing ends the server."""
import glob
import os
import random

import harness
from client import GPT2, MESH, SIZES, TOP, Client, Plan, expect, joined
from harness import ROOT

def utf16(client):
    """Positions are units of UTF-16: of characters beyond 16 bits two each."""
    plan = Plan(client, "# 🚀🚀 é\nmesh: {data: 2} # 🚀\nshard:\n  - {tensor: \"🚀é\", dims: [nix, _]} # 🚀\n")
    before = plan.text.split("\n")[3]
    wanted = len(before[:before.index("nix")].encode("utf-16-le")) // 2
    first = plan.look()
    at = plan.text.index("nix")
    plan.change("data", (at, at + 3))
    second = plan.look()
    at = plan.text.index("🚀é")
    plan.change("x", (at, at + 1))
    between = plan.ask("completion", {"line": 3, "character": 10 ** 6})
    plan.change("🚀", (at, at + 1))
    split = plan.find("🚀|é")["character"] - 1
    plan.ask("hover", {"line": 3, "character": split})
    return joined([expect([(line, character) for _, line, character, _ in first], [(3, wanted)], "place behind a rocket"), expect(second, [], "after the edit"),
                   expect(plan.complete("[da|ta"), ["data"], "completion behind rockets"), expect(isinstance(between["items"], list), True, "behind the end of a line")])


def increments(client):
    """Random edits leave the server with the text that the editor has: what it says is what it says of the whole text."""
    generator = random.Random(7)
    pieces = ["mesh", ": ", "{", "}", "[", "]", ",", "\n", "\r\n", "  - ", "data", "🚀", "é", '"', "shard:", " ", "2", "?", "# ", "tensor: x"]
    plan, whole = Plan(client, MESH + "shard:\n  - {tensor: x, dims: [data]}\n"), Plan(client, "")
    for _ in range(150):
        start = generator.randrange(len(plan.text) + 1)
        end = min(len(plan.text), start + generator.randrange(4) * generator.randrange(3))
        # A line ends with both characters of "\r\n", and no edit parts them.
        if "\r\n" in (plan.text[start - 1:start + 1], plan.text[end - 1:end + 1]):
            continue
        plan.change(generator.choice(pieces), (start, end))
        whole.change(plan.text)
        if problem := expect(plan.look(), whole.look(), f"of {plan.text!r}"):
            return problem
    return ""


def late_answers(client):
    """Of a text that is edited again at once a request is answered, or refused as too old (-32801)."""
    plan = Plan(client, TOP + MESH)
    numbers = []
    for number in range(20):
        plan.change(TOP + MESH + f"dims: {{batch: {number + 1}, seq: 16}}\n")
        numbers.append(client.start("textDocument/inlayHint", textDocument={"uri": plan.uri}, range={"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}))
    codes = set()
    for number in numbers:
        try:
            client.finish(number)
            codes.add(0)
        except Client.Refused as refused:
            codes.add(refused.code)
    return expect(codes <= {0, -32801} and 0 in codes, True, codes) or expect(plan.hints(), [(1, "4 ranks")], "of the last text")


def refused(call):
    try:
        call()
        return 0
    except Client.Refused as error:
        return error.code


def protocol(build):
    """Requests too early and too late, unknown ones, wrong ones; how it ends."""
    early = Client(build, initialize=False)
    problems = [expect(refused(lambda: early.request("textDocument/hover", textDocument={"uri": "file:///a"}, position={"line": 0, "character": 0})), -32002, "before it is initialized")]
    early.notify("exit")
    problems.append(expect(early.process.wait(timeout=300), 1, "exit code without a shutdown"))
    client = Client(build)
    position = {"line": 0, "character": 0}
    problems += [expect(refused(lambda: client.request("initialize", capabilities={})), -32600, "a second initialize"),
                 expect(refused(lambda: client.request("textDocument/rename", a=1)), -32601, "an unknown request"),
                 expect(refused(lambda: client.request("textDocument/hover", textDocument=3)), -32602, "wrong parameters"),
                 expect(refused(lambda: client.request("textDocument/hover", textDocument={"uri": "file:///not/open"}, position=position)), -32602, "a plan that is not open")]
    client.notify("textDocument/didChange", textDocument={"uri": "file:///not/open", "version": 2}, contentChanges=[{"text": "x"}])
    client.notify("$/unknown")
    client.send_bytes(b"Content-Length: 9\r\n\r\n{\"broken\"")
    problems.append(expect(Plan(client, "mesh: 3", "untitled:Untitled-1").look()[0][0], 1, "a plan that is not saved, after a broken message"))
    client.request("shutdown")
    for method in ("textDocument/hover", "textDocument/completion", "textDocument/inlayHint", "shutdown", "initialize"):
        parameters = {"textDocument": {"uri": "untitled:Untitled-1"}, "position": position, "range": {"start": position, "end": position}, "capabilities": {}}
        problems.append(expect(refused(lambda: client.request(method, **parameters)), -32600, f"{method} after the shutdown"))
    client.notify("exit")
    problems.append(expect(client.process.wait(timeout=300), 0, "exit code after a shutdown"))
    gone = Client(build)
    gone.process.stdin.close()
    problems.append(expect(gone.process.wait(timeout=300), 1, "exit code of an editor that is gone"))
    return joined(problems)


def options(build):
    """The model may come from the editor, or from the command line, and sizes of its dims; a comment in the plan goes before."""
    rule = "shard:\n  - {tensor: input_ids, dims: [data, _]}\n"
    text = MESH + SIZES + rule
    problems = []
    for words, given, plan, line in (([GPT2], {}, text, 3), ([], {"model": GPT2}, text, 3), ([GPT2, "--dim", "batch=4,seq=16"], {}, MESH + rule, 2)):
        client = Client(build, *words, options=given)
        problems.append(expect(Plan(client, plan).hints()[1:], [(line, "i64[2, 16] a rank")], f"with {words} and {given}"))
        client.close()
    with harness.Folder(build, "cleave-editor-") as folder:
        os.symlink(GPT2, folder.at("mine.onnx"))
        client = Client(build, "nowhere.onnx")
        problems.append(expect(len(Plan(client, "#model: mine.onnx\n" + text, folder.at("p.yaml")).hints()), 2, "a model next to the plan"))
        client.close()
    return joined(problems)


# ===--- Any text --------------------------------------------------------------===


def try_text(plan):
    """Asks all that there is to ask about the end of a text."""
    for what in ("completion", "hover", "definition"):
        plan.ask(what, plan.place(len(plan.text)))
    plan.hints()
    return plan.look()


def truncated(client, path):
    """A plan up to every third character, and from there to its end: nothing of it is a surprise."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    plan = Plan(client, text)
    for size in range(0, len(text), 3):
        plan.change(text[:size])
        try_text(plan)
    for size in range(0, len(text), 11):
        plan.change(text[size:])
        try_text(plan)
    plan.change(text)
    return expect([one for one in plan.look() if one[0] == 1], [], "errors of the whole plan")


def truncated_with_model(client):
    """Likewise where each text is looked at with its model."""
    with open(f"{ROOT}/examples/parallel/gpt2-megatron.yaml", encoding="utf-8") as file:
        text = TOP + file.read()
    plan = Plan(client, text)
    for size in range(len(TOP), len(text), 9):
        plan.change(text[:size])
        try_text(plan)
    return ""


def damaged(client, seed):
    """A plan with characters put in, taken out and exchanged at random."""
    generator = random.Random(seed)
    with open(generator.choice(sorted(glob.glob(f"{ROOT}/examples/**/*.yaml", recursive=True))), encoding="utf-8") as file:
        text = file.read()
    plan = Plan(client, text)
    for _ in range(60):
        start = generator.randrange(len(text) + 1)
        inserted = "".join(generator.choice("{}[],:\"'#-?&*!|>%@`\\~ \t\r\n\0é🚀azAZ019_.") for _ in range(generator.randrange(4)))
        text = text[:start] + inserted + text[start + generator.randrange(4):]
        plan.change(text)
        try_text(plan)
    return ""


def deep(client):
    """Brackets and dashes a hundred thousand deep."""
    for text in ("[" * 100000, "{a: " * 50000, "- " * 100000, "\n".join(" " * depth + "a:" for depth in range(2000)), "shard: " + "{tensor: [" * 30000, '"' * 99999, ":" * 99999):
        plan = Plan(client, text)
        try_text(plan)
    return ""


def processor_seconds(client):
    with open(f"/proc/{client.process.pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def large(build):
    """100,000 rules: an edit, what is asked then, and a look take time that is linear in the plan (processor seconds against a plan of a tenth)."""
    seconds = []
    for count in (10000, 100000):
        client = Client(build)
        text = MESH + "shard:\n" + "".join(f'  - {{tensor: "layer.{number}.weight", dims: [data, model]}}\n' for number in range(count))
        plan = Plan(client, text)
        if problem := expect(plan.look(), [], "errors"):
            return problem
        at = len(text) - 8
        for word in ("x", "", "x", ""):
            plan.change(word, (at, at + 1 if not word else at))
            plan.complete("layer.7|.", 0)
            plan.complete("[data, mo|del]", count - 2)
            plan.hover("[da|ta, model]", count - 2)
        plan.look()
        seconds.append(processor_seconds(client))
        client.close()
    # Ten times as much, and what a start takes; a plan that takes its square would take a hundred.
    return expect(seconds[1] < 30 * max(seconds[0], 0.2), True, f"processor seconds {seconds}")
