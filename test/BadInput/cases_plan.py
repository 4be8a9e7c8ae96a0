"""Bad plans, meshes and command lines."""
from case import Case, mlp, model, relu, value
from onnx import helper


def shard(name, *arguments, plan=None, words=(), exit_code=1):
    files = {"m.onnx": mlp()}
    extra = []
    if plan is not None:
        files["p.yaml"] = plan.encode()
        extra = ["--plan", "p.yaml"]
    return Case(name, ["shard", "m.onnx", "-o", "out.mlir", *extra, *arguments], files, list(words), exit_code)


def plans():
    mesh = "mesh: {data: 2, model: 2}\n"
    rule = lambda text: mesh + "shard:\n  - {" + text + "}\n"
    yield shard("plan-absent", "--plan", "nowhere.yaml", words=["nowhere.yaml"])
    yield shard("plan-not-yaml", plan="mesh: {data: 2\n", words=["p.yaml:"])
    yield shard("plan-unknown-key", plan=mesh + "shards: []\n", words=["p.yaml:2:1", "shards"])
    yield shard("plan-unknown-rule-key", plan=rule("tensor: hidden, dims: [data, _], color: red"),
                words=["p.yaml:3:", "color"])
    yield shard("plan-unknown-axis", plan=rule("tensor: hidden, dims: [rows, _]"), words=["p.yaml:3:", "rows"])
    yield shard("plan-wrong-number-of-dims", plan=rule("tensor: hidden, dims: [data]"), words=["p.yaml:3:", "hidden"])
    yield shard("plan-does-not-divide", "--mesh", "data=3", plan="shard:\n  - {tensor: hidden, dims: [data, _]}\n",
                words=["p.yaml:2:", "8", "3"])
    yield shard("plan-axis-twice", plan=rule("tensor: hidden, dims: [data, data]"), words=["p.yaml:3:", "data"])
    yield shard("plan-matches-nothing", plan=rule("tensor: hiden, dims: [data, _]"), words=["p.yaml:3:", "hidden"])
    yield shard("plan-node-matches-nothing", plan=rule('node: "/mlp/upp", operand: 1, dims: [_, model]'),
                words=["p.yaml:3:", "/mlp/up"])
    yield shard("plan-no-such-operand", plan=rule('node: "/mlp/up", operand: 7, dims: [_, model]'),
                words=["p.yaml:3:", "7"])
    yield shard("plan-rules-disagree", words=["p.yaml:4:", "p.yaml:3:"],
                plan=mesh + "shard:\n  - {tensor: w, dims: [_, model]}\n  - {tensor: w, dims: [model, _]}\n")
    yield shard("plan-wrong-sub-axis", plan=rule('tensor: w, dims: [_, "model:(3)2"]'), words=["p.yaml:3:", "model"])
    yield shard("plan-negative-mesh", plan="mesh: {data: -2}\n", words=["p.yaml:1:", "-2"])
    yield shard("plan-rule-without-target", plan=rule("dims: [data, _]"), words=["p.yaml:3:"])
    yield shard("plan-uneven", plan=rule("tensor: hidden, dims: [data, _], uneven: 3"), words=["p.yaml:3:", "true"])
    yield shard("plan-devices-in-the-mesh-too-few", plan="mesh: {data: 2, devices: [0]}\n", words=["p.yaml:1:26"])
    yield shard("plan-devices-twice", plan="mesh: {data: 2, devices: [1, 0]}\ndevices: [0, 1]\n", words=["p.yaml:2:10"])
    yield shard("plan-unsharded-in-a-list", plan=rule("tensor: hidden, dims: [[data, _], _]"), words=["p.yaml:3:36", "'_'"])
    yield shard("plan-comma-missing", plan=rule("tensor: hidden dims: [data, _]"), words=["p.yaml:3:20:", "','"])
    yield shard("plan-comma-missing-in-dims", plan=rule("tensor: hidden, dims: [data _]"), words=["p.yaml:3:33:", "','"])
    yield shard("plan-two-names", plan=rule("tensor: [hidden, w], dims: [data, _]"), words=["p.yaml:3:14", "{a,b}"])
    yield shard("plan-none", plan=rule("tensor: hidden, dims: [data, None]"), words=["p.yaml:3:35", "'_'"])
    yield shard("plan-tab", plan=mesh + "shard:\n\t- {tensor: hidden, dims: [data, _]}\n", words=["p.yaml:3:1", "tab"])
    yield shard("plan-except-all", plan=rule('tensor: "h*", except: hidden, dims: [data, ...]'), words=["p.yaml:3:14", "excepted"])
    yield shard("plan-except-nothing", plan=rule('tensor: "*", except: [hidden, hiden], dims: [...]'),
                words=["p.yaml:3:36", "hiden"])
    yield shard("plan-bad-except", plan=rule('tensor: "h*", except: "re:(", dims: [data, _]'), words=["p.yaml:3:28"])
    yield shard("plan-unknown-where", plan=rule("tensor: hidden, where: fits, dims: [data, _]"), words=["p.yaml:3:29", "divides"])
    yield shard("plan-rest-twice", plan=rule("tensor: hidden, dims: [..., data, ...]"), words=["p.yaml:3:40", "'...'"])
    yield shard("plan-more-than-the-rest", plan=rule("tensor: hidden, dims: [data, _, ..., _]"), words=["p.yaml:3:28", "at least 3"])
    yield shard("plan-two-documents", plan=mesh + "---\n" + mesh, words=["p.yaml:3:1"])
    yield shard("plan-key-twice", plan=mesh + mesh, words=["p.yaml:2:1", "mesh"])
    yield shard("plan-regex-pasted", plan=rule('tensor: "re:hid)|(den", dims: [data, _]'), words=["p.yaml:3:14", "unexpected )"])
    yield shard("plan-regex-with-a-backreference", plan=rule(r'tensor: "re:(h)\\1", dims: [data, _]'), words=["p.yaml:3:14", r"\1"])
    yield shard("plan-bad-regex", plan=rule('tensor: "re:hid(", dims: [data, _]'), words=["p.yaml:3:14"])
    yield shard("plan-bad-glob", plan=rule('tensor: "hid{a", dims: [data, _]'), words=["p.yaml:3:14"])
    yield shard("plan-endless-glob", plan=rule('tensor: "' + "*a" * 60 + '*b", dims: [data, _]'), words=["p.yaml:3:14"])
    yield shard("plan-sub-axis-does-not-divide", plan=rule('tensor: w, dims: ["model:(1)3", _]'), words=["p.yaml:3:24"])
    yield shard("plan-sub-axis-overlaps", plan=rule('tensor: w, dims: ["model:(1)2", model]'), words=["p.yaml:3:"])
    yield shard("plan-replicated-and-used", plan=rule("tensor: hidden, dims: [data, _], replicated: [data]"),
                words=["p.yaml:3:52", "p.yaml:3:29"])
    yield shard("plan-negative-priority", plan=rule("tensor: hidden, dims: [data, _], priority: -1"),
                words=["p.yaml:3:49"])
    yield shard("plan-operand-and-result", plan=rule("node: /mlp/up, operand: 0, result: 0, dims: [_, _]"),
                words=["p.yaml:3:"])
    yield shard("plan-nested-too-deep", plan="mesh: " + "[" * 5000, words=["p.yaml:1:"])
    yield shard("plan-devices-no-permutation", plan="mesh: {data: 2}\ndevices: [0, 0]\n", words=["p.yaml:"])
    yield shard("shard-option-syntax", "--mesh", "data=2", "--shard", "hidden[data, _]", words=["--shard"],
                exit_code=2)
    yield shard("shard-option-unknown-axis", "--mesh", "data=2", "--shard", "hidden=[rows, _]", words=["rows"], exit_code=2)


def chain(path):
    """10,000 tensors."""
    nodes = [helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"], name=f"/layer.{i}/act") for i in range(10000)]
    with open(path, "wb") as file:
        file.write(model(nodes, [value("t0", (8,))], [value("t10000", (8,))]))


def many():
    """100,000 rules, each of another kind; what is last is wrong, so that all of them are looked at."""
    kinds = {"names": lambda i: f"t{i % 10000}", "equal": lambda i: "t*", "prefixes": lambda i: f"t{i % 10000}*{'*' * (i // 10000)}",
             "middles": lambda i: f"*{i % 10000}*{'*' * (i // 10000)}", "regexes": lambda i: f"re:t{i % 10000}.{{0,{i // 10000 + 1}}}",
             "alternatives": lambda i: f"t{{{i % 10000},{i * 7 % 10000}}}"}
    for name, kind in kinds.items():
        rules = "".join(f'  - {{tensor: "{kind(i)}", dims: [?]}}\n' for i in range(100000))
        plan = f"mesh: {{data: 2}}\nshard:\n{rules}  - {{tensor: nowhere-at-all, dims: [data]}}\n"
        yield Case(f"plan-of-100000-rules-{name}", ["shard", "m.onnx", "--plan", "p.yaml", "-o", "o.mlir"], {"m.onnx": chain, "p.yaml": plan.encode()},
                   ["p.yaml:100003:14", "nowhere-at-all"], seconds=60)


def meshes():
    yield shard("mesh-syntax", "--mesh", "data", words=["data"], exit_code=2)
    yield shard("mesh-colon", "--mesh", "data:2", words=["data:2"], exit_code=2)
    yield shard("mesh-zero", "--mesh", "data=0", words=["0"], exit_code=2)
    yield shard("mesh-twice", "--mesh", "data=2,data=2", words=["data"], exit_code=2)
    yield shard("mesh-too-large", "--mesh", "a=65536,b=65536", words=["mesh"], exit_code=2)
    yield shard("mesh-absent", words=["mesh"], exit_code=2)


def command_lines():
    line = lambda name, *arguments: Case(name, list(arguments), {"m.onnx": mlp()}, [], 2)
    yield line("unknown-command", "frobnicate", "m.onnx")
    yield line("unknown-option", "inspect", "m.onnx", "--mehs", "data=2")
    yield line("option-without-argument", "shard", "m.onnx", "--mesh")
    yield line("option-of-another-command", "inspect", "m.onnx", "--check")
    yield line("no-model", "run", "--check")
    yield line("empty-argument", "explain", "m.onnx", "")
    yield line("empty-value", "run", "m.onnx", "--mesh", "")
    yield line("argument-of-a-flag", "run", "m.onnx", "--check=yes")
    yield line("unknown-shell", "completion", "tcsh")
    yield line("unknown-phase", "shard", "m.onnx", "--emit", "molten")
    yield line("unknown-precision", "compile", "m.onnx", "--precision", "fp8", "-o", "m.cleave")
    yield line("precision-of-another-command", "shard", "m.onnx", "--precision", "bf16")
    fault = lambda name, words, *arguments: Case(name, list(arguments), {"m.onnx": mlp()}, words, 2)
    yield fault("precision-split", ["split", "AMX"], "compile", "m.onnx", "--precision", "split", "--isa", "x86-64-v3", "-o", "m.cleave")
    yield fault("precision-of-the-evaluator", ["--executor=program"], "run", "m.onnx", "--precision", "bf16")
    yield line("dim-syntax", "inspect", "m.onnx", "--dim", "batch")
    yield line("dim-twice", "inspect", "m.onnx", "--dim", "batch=2,batch=3")
    yield line("dim-sizes-syntax", "compile", "m.onnx", "-o", "m.cleave", "--dim", "batch=2,x")
    yield line("dim-sizes-without-a-name", "compile", "m.onnx", "-o", "m.cleave", "--dim", "2,3")
    yield line("variants-of-a-run", "run", "m.onnx", "--dim", "batch=2,3")


def variants():
    yield Case("variant-does-not-divide", ["compile", "m.onnx", "-o", "m.cleave", "--mesh", "data=2", "--shard", "x=[data, _]",
                                           "--dim", "batch=2,3"], {"m.onnx": relu(("batch", 8))}, ["size 3", "batch=3"], 2)


def clusters():
    device = "device: {flops: {f32: 1T}, bandwidth: 1GB/s}\n"
    link = "links: {bandwidth: 1GB/s}\n"

    def cluster(name, text, *words, exit_code=1):
        return Case("cluster-" + name, ["shard", "m.onnx", "-o", "out.mlir", "--mesh", "x=2", "--cluster", "c.yaml"],
                    {"m.onnx": mlp(), "c.yaml": text if isinstance(text, bytes) else text.encode()}, list(words), exit_code)
    yield shard("cluster-unknown", "--mesh", "x=2", "--cluster", "9xH1000", words=["9xH1000", "9xH100"], exit_code=2)
    yield shard("cluster-is-a-folder", "--mesh", "x=2", "--cluster", ".", words=["directory"], exit_code=2)
    yield cluster("empty", "", "c.yaml:1:1")
    yield cluster("binary", bytes(range(256)) * 64, "c.yaml:1:")
    yield cluster("not-yaml", "device: {flops: {f32: 1T}\n", "c.yaml:")
    yield cluster("list", "[1, 2]\n", "c.yaml:1:1")
    yield cluster("deep", "links: " + "[" * 100000, "c.yaml:1:")
    yield cluster("too-large", "#" * (1 << 21) + "\n" + device + link, "1 MB")
    yield cluster("key-twice", device + link + link, "c.yaml:3:1")
    yield cluster("alias", "device: &d {flops: {f32: 1T}, bandwidth: 1GB/s}\nlinks: *d\n", "c.yaml:2:9")
    yield cluster("overflow", device + "links: {bandwidth: 9e307TB/s}\n", "c.yaml:2:20")
    yield cluster("nothing-a-second", "device: {flops: {f32: 0T}, bandwidth: 1GB/s}\n" + link, "c.yaml:1:23")
    yield cluster("tiny", device + "links: {bandwidth: 1e-300MB/s}\n", "c.yaml:2:20")
    yield cluster("negative-latency", device + "links: {latency: -1us, bandwidth: 1GB/s}\n", "c.yaml:2:18")
    yield cluster("no-devices", device + "links: [{name: a, devices: 0, bandwidth: 1GB/s}]\n", "c.yaml:2:28")
    yield cluster("too-few-devices", device + "links: [{name: a, devices: 1, bandwidth: 1GB/s}]\n", "2 ranks", "1 devices", exit_code=2)
    yield cluster("axis-not-in-the-mesh", device + link + "axes: {y: {bandwidth: 1GB/s}}\n", "'y'", exit_code=2)
    yield cluster("two-documents", device + link + "---\n" + device, "c.yaml:4:1")


def cases():
    for group in (plans, many, meshes, command_lines, variants, clusters):
        yield from group()
