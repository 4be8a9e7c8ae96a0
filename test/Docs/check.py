"""What README.md, CONTRIBUTING.md and docs show: commands are run, and code must stand in the source.

Usage: check.py BUILD_DIR

A picture below a line that is a command with `--draw NAME.svg` must be what that draws. In a block of ```console, a line `$ COMMAND` is run by
bash from the top folder; the lines after it must be its output, in which a line `...` stands for any number of lines. It must succeed, unless the page
shows an error. Indented commands are run by bash as well, those of a page one after the other in one folder, where the files that pages name lie
(`FILES`); they must succeed. What needs more than this machine is listed (`ELSEWHERE`) and counted. A block of ```cpp must be in a
file below lib, letter by letter, and one of ```yaml in a plan of examples. A link to a file of ours, and to a heading in it, must
lead there.
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
from harness import ROOT


def read(path):
    with open(os.path.join(ROOT, path)) as file:
        return file.read()


def examples(path):
    """(command, expected lines) of a page."""
    for block in re.findall(r"^```console\n(.*?)^```", read(path), re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *lines = part.rstrip("\n").split("\n")
            yield command, lines


def links(path):
    """(text, file, heading) of a page's links within this tree, outside of code; without a heading, ""."""
    text = re.sub(r"^ *```.*?^ *```|`[^`\n]*`", "", read(path), flags=re.M | re.S)
    for label, target in re.findall(r"\[([^]]*)\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:", target):
            file, _, heading = target.partition("#")
            yield label, os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path, heading


def anchors(path):
    """What pages call the headings of a file: lower case, without punctuation, spaces as hyphens; repeated ones are numbered."""
    seen = {}
    for title in re.findall(r"^#+ +(.*)$", re.sub(r"^ *```.*?^ *```", "", read(path), flags=re.M | re.S), re.M):
        anchor = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        seen[anchor] = seen.get(anchor, -1) + 1
        yield f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor


def link_problem(page):
    missing = [f"[{label}] leads to {file}{'#' + heading if heading else ''}, which is not there" for label, file, heading in links(page)
               if not os.path.exists(os.path.join(ROOT, file)) or heading and heading not in anchors(file)]
    return "\n".join(missing)


def snippets(path, language):
    """The blocks of a page in a language, without the indentation of the list that they stand in."""
    return [textwrap.dedent(block) for block in re.findall(r"^ *```" + language + r"\n(.*?)^ *```", read(path), re.M | re.S)]


def source(pattern):
    """The files that match, as one text."""
    paths = sorted(glob.glob(pattern, root_dir=ROOT, recursive=True))
    return "\n".join(read(path) for path in paths)


def matches(got, want):
    """True if the lines `got` are `want`, with `...` for any number of them."""
    if not want:
        return not got
    if want[0].strip() == "...":
        return any(matches(got[skip:], want[1:]) for skip in range(len(got) + 1))
    return bool(got) and got[0].rstrip() == want[0].rstrip() and matches(got[1:], want[1:])


def bash(build, command, folder):
    """The command as a reader's shell would run it, with the tools on its PATH."""
    environment = {**os.environ, "PATH": f"{build}/bin{os.pathsep}{os.environ['PATH']}", **MPI}
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True)


def example_problem(build, command, want):
    done = bash(build, command, ROOT)
    shows_error = any("error: " in line for line in want)
    if matches(done.stdout.rstrip("\n").split("\n"), want) and (done.returncode != 0) == shows_error:
        return ""
    return f"prints something else, exit code {done.returncode}:\n{done.stdout[:3000]}"


# The files that indented commands name.
FILES = {"model.onnx": "test/Models/t5_like_dyn18.onnx", "plan.yaml": "examples/parallel/t5-megatron.yaml", "decoder.onnx": "test/Models/gpt2_kv.onnx"}
# What is made of them before.
MADE = ["cleave run model.onnx --plan plan.yaml --quiet --save-inputs in.npz", "cleave compile model.onnx --plan plan.yaml --quiet -o build/bert.cleave"]
# Beginnings of commands that install or build, or need several machines, and why no suite runs them here.
ELSEWHERE = {
    "scripts/": "sets up, or runs this suite",
    "cmake ": "installs",
    "cleave bench --calibrate": "needs a machine that does nothing else",
    "build/gpu-kit/": "needs a GPU",
    "cleave-run gpu.cleave": "needs a GPU",
    "cleave-run gpu.cleave": "needs a GPU",
    "python3 python/tools/run_suites.py": "runs this suite",
    ".venv/bin/python python/tools/run_suites.py": "runs whole suites",
    "torchrun ": "needs torchrun and several machines",
    "srun ": "needs Slurm",
    "mpirun -n 8 --host": "needs several machines",
}
# mpirun refuses to run for root, and more ranks than processors, unless it is told that this is a container.
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
# What a line that is a command begins with. Lines of tables of words (`cleave run      MODEL [--mesh ..]`) are none.
COMMAND = r"(?:cleave(?:-\w+)?|mpirun|srun|torchrun|scripts/\w+|cmake|python3|\.venv/bin/python|build/[\w./-]+)(?: |$)"


def indented(path):
    """The commands of a page's indented blocks, without what is said behind them."""
    text = re.sub(r"^ *```.*?^ *```", "", read(path), flags=re.M | re.S)
    for line in re.findall(rf"^    ({COMMAND}.*)$", text, re.M):
        if not re.search(r"\bMODEL\b|\bPROGRAM\b|: error: ", line):
            yield re.split(r"\s+#\s|\s{4,}", line)[0].strip().removesuffix(" ...")


def elsewhere(command):
    return next((why for start, why in ELSEWHERE.items() if command.startswith(start)), None)


def lay_files(build, page, folder):
    """What the commands of a page need: links to the tree, models and inputs, and the cluster that the page describes."""
    for name in set(os.listdir(ROOT)) - {"build"}:
        os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    os.mkdir(os.path.join(folder, "build"))
    os.symlink(build, os.path.join(folder, "build", "release"))
    for name, source in FILES.items():
        shutil.copy(os.path.join(ROOT, source), os.path.join(folder, name))
    plan = os.path.join(folder, "plan.yaml")
    with open(plan) as file:
        text = file.read()
    with open(plan, "w") as file:
        file.write(text.replace("mesh: {model: 4}", "mesh: {data: 2, model: 2}"))
    if cluster := re.search(r"^    device:\n(?:    .*\n)+", read(page), re.M):
        with open(os.path.join(folder, "ours.yaml"), "w") as file:
            file.write(textwrap.dedent(cluster[0]))
    return next((done.stdout for command in MADE if (done := bash(build, command, folder)).returncode), "")


def commands_problem(build, page, commands):
    """The commands of a page, in the order of the page: what one writes the next may read."""
    with tempfile.TemporaryDirectory() as folder:
        if problem := lay_files(build, page, folder):
            return problem
        for command in commands:
            done = bash(build, command, folder)
            if done.returncode or "Running 0 tests" in done.stdout:
                return f"{command}: exit code {done.returncode}:\n{done.stdout[-3000:]}"
    return ""


def pictures(path):
    """(command, picture) of a page; the command draws into its last word."""
    return re.findall(r"^`(cleave [^`]* --draw) [^ `]+\.svg`:\n\n!\[[^]]*\]\(([^)]+\.svg)\)", read(path), re.M)


def picture_problem(build, command, path):
    with tempfile.TemporaryDirectory() as folder:
        drawn = os.path.join(folder, "p.svg")
        done = subprocess.run([f"{build}/bin/cleave", *shlex.split(command)[1:], drawn], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            return done.stderr
        with open(drawn) as new, open(os.path.join(ROOT, "docs", path)) as old:
            return "" if new.read() == old.read() else f"{path} is not what {command} draws now"


# A page and its paragraphs, as lint counts them: (line, words).
PARAGRAPHS = """# Title

one two
three

* four five
  six
1. seven

| a table |
|---|

    code

```
more code
```
eight
"""
COUNTED = [(3, 3), (6, 3), (8, 1), (18, 1)]


def paragraphs_problem():
    sys.path.append(os.path.join(ROOT, "python", "tools"))
    import lint
    got = list(lint.paragraphs(PARAGRAPHS))
    return "" if got == COUNTED else f"lint counts {got}, expected {COUNTED}"


def main():
    build, names, _ = harness.arguments()
    pages = ["README.md", "CONTRIBUTING.md", *sorted(glob.glob("docs/*.md", root_dir=ROOT))]
    sources = {"cpp": source("lib/**/*.cpp") + source("examples/*.cpp"), "yaml": source("examples/**/*.yaml")}
    cases, left_out = {"lint: words of paragraphs": paragraphs_problem}, 0
    others = [page for place in ("*.md", "docs/generated/*.md", "docs/Dialects/*/*.md", "test/**/*.md")
              for page in sorted(glob.glob(place, root_dir=ROOT, recursive=True)) if page not in pages]
    for page in [*pages, *others]:
        cases[f"{page}: links"] = lambda page=page: link_problem(page)
    for page in pages:
        for language in sources:
            for number, text in enumerate(snippets(page, language), 1):
                cases[f"{page}: {language} {number}"] = lambda language=language, text=text: (
                    "" if text in sources[language] else f"is in no file:\n{text}")
        for command, path in pictures(page):
            cases[f"{page}: {path}"] = lambda command=command, path=path: picture_problem(build, command, path)
        here = [command for command in indented(page) if not elsewhere(command)]
        if here:
            cases[f"{page}: {len(here)} commands"] = lambda page=page, here=here: commands_problem(build, page, here)
        left_out += len(list(indented(page))) - len(here)
        for number, (command, want) in enumerate(examples(page), 1):
            cases[f"{page}: example {number}, {command}"] = lambda command=command, want=want: example_problem(build, command, want)
    print(f"{left_out} indented commands are for other machines")
    return harness.run(harness.select(cases, names), lambda case: case())


if __name__ == "__main__":
    sys.exit(main())
