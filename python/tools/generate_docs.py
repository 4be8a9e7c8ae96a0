"""What stands under docs/generated: the reference of dialects and passes, out of TableGen, and a picture of a trace."""
import json
import os
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


def generate(build):
    """(path, text) of every generated page."""
    for page, source, arguments in PAGES:
        command = [TBLGEN, *arguments, *[f"-I{folder}" for folder in INCLUDES], source]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        lines = [line.rstrip() for line in done.stdout.split("\n")]
        yield page, HEADER + "\n".join(lines).strip() + "\n"
    with open(os.path.join(ROOT, "docs", "minilm-trace.json")) as file:
        yield "docs/generated/minilm-trace.svg", draw(json.load(file))


if __name__ == "__main__":
    for path, text in generate(None):
        os.makedirs(os.path.dirname(os.path.join(ROOT, path)), exist_ok=True)
        with open(os.path.join(ROOT, path), "w") as file:
            file.write(text)
