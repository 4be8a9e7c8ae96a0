"""The examples run as they are; each holds its results against something else."""
import ast
import json
import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = os.path.join(ROOT, "examples", "python")


@pytest.mark.parametrize("name", sorted(name for name in os.listdir(EXAMPLES) if name.endswith(".py")))
def test_example(name):
    if name.startswith("torch"):
        pytest.importorskip("torch")
    done = subprocess.run([sys.executable, os.path.join(EXAMPLES, name)], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stdout + done.stderr


def test_cells_of_the_notebook(monkeypatch):
    monkeypatch.setenv("CLEAVE_ROOT", ROOT)
    with open(os.path.join(EXAMPLES, "notebook.ipynb"), encoding="utf-8") as file:
        cells = ["".join(cell["source"]) for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
    names, shown = {}, []
    for cell in cells:
        *lines, last = ast.parse(cell).body
        exec(compile(ast.Module(lines, []), "cell", "exec"), names)
        shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names)) if isinstance(last, ast.Expr) else \
            exec(compile(ast.Module([last], []), "cell", "exec"), names)
    assert shown[-1].ok
    # What a notebook shows is small, and is a table where it is a report.
    tables = [one._repr_html_() for one in shown if hasattr(one, "_repr_html_")]
    assert len(tables) == 4 and all("<table>" in one and len(one) < 20000 for one in tables)
    names["program"].close()
