"""What is under docs/generated: the reference of dialects and passes, out of TableGen, one model through the phases, and a picture of a trace."""
import json
import os
import re
import subprocess

from draw_trace import draw

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TBLGEN = "/usr/lib/llvm-22/bin/mlir-tblgen"
HEADER = "<!-- Generated from dialects/ by python/tools/generate_docs.py; do not edit. -->\n\n"

# (page, TableGen file, arguments)
PAGES = [
    ("docs/generated/nn.md", "dialects/Nn/NnAll.td", ["-gen-dialect-doc", "-dialect=nn"]),
    ("docs/generated/spmd.md", "dialects/Spmd/SpmdOps.td", ["-gen-dialect-doc", "-dialect=spmd"]),
    ("docs/generated/exec.md", "dialects/Exec/ExecAll.td", ["-gen-dialect-doc", "-dialect=exec"]),
    ("docs/generated/pipe.md", "dialects/Pipe/PipeOps.td", ["-gen-dialect-doc", "-dialect=pipe"]),
    ("docs/generated/nn-passes.md", "dialects/Nn/NnPasses.td", ["-gen-pass-doc"]),
    ("docs/generated/spmd-passes.md", "dialects/Spmd/SpmdPasses.td", ["-gen-pass-doc"]),
    ("docs/generated/exec-passes.md", "dialects/Exec/ExecPasses.td", ["-gen-pass-doc"]),
    ("docs/generated/pipe-passes.md", "dialects/Pipe/PipePasses.td", ["-gen-pass-doc"]),
]
INCLUDES = ["/usr/lib/llvm-22/include", "dialects", "dialects/Nn", "dialects/Spmd", "dialects/Exec", "dialects/Pipe"]

# One model through the phases: (phase, what has happened).
MODEL = ["examples/mlp.mlir", "--mesh", "model=4", "--shard", "a=[_, model]", "--shard", "b=[model, _]"]
PHASES = [
    ("imported", "Ops of `nn` on static shapes. Importing ONNX gives such a file; this one was written by hand."),
    ("canonical", "Constants are folded, movement is fused and duplicates are merged; a program as small as this one is canonical already. Each sharding annotation of "
                  "the plan is on the tensor that it names, as `spmd.annotation`, with the place of its rule."),
    ("annotated", "Sharding annotations have moved into types: `a` is split by columns and `b` by rows over the axis `model`. Nothing else is decided."),
    ("propagated", "Every type says its sharding. Column-parallel, then row-parallel: the result of the second product is *partial*, each rank holds an addend."),
    ("resharded", "Where the sharding of a value differs from what its user takes, there is a `spmd.reshard`. The caller wants the result replicated."),
    ("partitioned", "The program of one rank: shapes are local, the reshard is an `all_reduce` with the reason for it. `spmd.global` keeps what the arguments are shards of."),
    ("optimized", "Collectives that can be merged, bundled or moved are; here there is one, which stays."),
    ("clustered", "Fusion: what runs as one kernel is in one `exec.fused`, at most one product in each."),
    ("outlined", "Each distinct kernel is there once; equal layers would share it."),
    ("planned", "Buffer assignment: every value is a view of a buffer at a fixed offset, ops are commands on memory. What differs between ranks is in one table, "
                "`exec.rank_table`, so that all ranks have one program."),
    ("ordered", "Commands are in streams: collectives run next to kernels where nothing forbids it, and events order what touches the same bytes. "
                "Here everything depends on everything, so one stream is left. `cleave compile` writes this as a program file."),
]


def phases(build):
    """The page of one model through the phases, as `cleave shard` of this build prints them, without locations."""
    yield HEADER.replace("dialects/", "examples/mlp.mlir") + "# One model through the phases\n"
    yield ("For: compiler engineers who read or write passes.\n\nA two-layer perceptron, Megatron's way on four ranks: what each phase of "
           "[the pipeline](../architecture.md#a-models-way-through-the-house) makes of it. Locations are left out.\n")
    yield "```console\n$ cleave shard " + " ".join(f"'{word}'" if "=[" in word else word for word in MODEL) + " --emit=PHASE\n```\n"
    last = ""
    for phase, what in PHASES:
        done = subprocess.run([f"{build}/bin/cleave", "shard", *MODEL, f"--emit={phase}", "--quiet"], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{phase}: {done.stderr or 'is not built'}")
        text = re.sub(r"^#loc.*\n", "", done.stdout, flags=re.M)
        # Locations hold strings and, nested, other locations.
        text = re.sub(r'(?<!=) loc\((?:[^()"]|"[^"]*"|\([^()]*\))*\)', "", text).strip()
        yield f"## {phase}\n\n{what}\n"
        yield "As before.\n" if text.replace(phase, "") == last else f"```mlir\n{text}\n```\n"
        last = text.replace(phase, "")


def contents(text, header):
    """A table of the passes or ops of a page of TableGen, each with its summary, which leads to them."""
    rows = []
    for title, body in re.findall(r"^### (`.*)\n((?:(?!### ).*\n)*)", text, re.M):
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        summary = re.search(r"^_(.*)_$", body, re.M)
        rows.append(f"| [{title.split('`')[1]}](#{anchor}) | {summary[1] if summary else ''} |")
    return "\n".join([header, "|---|---|", *rows])


def reference(page, text):
    """A page of TableGen, with whom it is for and what is on it."""
    dialect = os.path.basename(page).split(".")[0].removesuffix("-passes")
    if page.endswith("-passes.md"):
        return f"# Passes of `{dialect}`\n\nFor: compiler engineers; why passes are as they are: [rationale](../Dialects/{dialect.capitalize()}/Rationale.md)." \
               f"\n\n{contents(text, '| pass | what it does |')}\n\n{text}"
    text = re.sub(r"^(# .*\n)", rf"\1\nFor: compiler engineers; its passes: [{dialect}-passes.md]({dialect}-passes.md).\n", text, count=1, flags=re.M)
    return text.replace("[TOC]\n\n", "").replace("## Operations\n", f"## Operations\n\n{contents(text, '| op | what it is |')}\n", 1)


def generate(build):
    """(path, text) of every generated page."""
    yield "docs/generated/phases.md", "\n".join(phases(build))
    for page, source, arguments in PAGES:
        command = [TBLGEN, *arguments, *[f"-I{folder}" for folder in INCLUDES], source]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        lines = [line.rstrip() for line in done.stdout.split("\n")]
        text = re.sub(r"^<!-- Autogenerated.*-->\n+", "", "\n".join(lines).strip())
        yield page, HEADER + reference(page, text) + "\n"
    with open(os.path.join(ROOT, "docs", "minilm-trace.json")) as file:
        yield "docs/generated/minilm-trace.svg", draw(json.load(file))


if __name__ == "__main__":
    for path, text in generate(os.path.join(ROOT, "build", "release")):
        os.makedirs(os.path.dirname(os.path.join(ROOT, path)), exist_ok=True)
        with open(os.path.join(ROOT, path), "w") as file:
            file.write(text)
