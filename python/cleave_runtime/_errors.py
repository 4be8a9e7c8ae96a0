"""What goes wrong, as exceptions."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnostic:
    """One thing that the compiler says, and where.

    `severity` is `error`, `warning`, `remark` or `note`. `line` and `column` count from 1, and are 0 where there is none; `file` is `cleave`
    where it is about no file. `node` is the ONNX node that it is about, or empty.
    """
    severity: str
    file: str
    line: int
    column: int
    node: str
    message: str
    notes: tuple[Diagnostic, ...] = ()
    text: str = ""

    def __str__(self) -> str:
        """`plan.yaml:4:5: error: ..`, then a line for each note."""
        return self.text.rstrip()


class Error(Exception):
    """What a call of Cleave could not do.

    `kind` says whose it is: of the compiler `input` (the model, the plan, the data), `options`, `expectation`, `run` or `bug`; of a program
    that runs `program` (the file), `machine`, `weights`, `memory`, `arguments`, `ranks`, `in use` or `closed`.
    Of the compiler `diagnostics` has all that it said; `file`, `line`, `column`, `node`, `message` and `notes` are those of the first error.
    """

    def __init__(self, message: str, kind: str = "input", diagnostics: tuple[Diagnostic, ...] = ()):
        errors = [one for one in diagnostics if one.severity == "error"]
        super().__init__("\n".join(map(str, errors)) if errors else message)
        first = errors[0] if errors else Diagnostic("error", "cleave", 0, 0, "", message)
        self.kind, self.diagnostics = kind, tuple(diagnostics)
        self.file, self.line, self.column = first.file, first.line, first.column
        self.node, self.message, self.notes = first.node, first.message, first.notes


class ArgumentError(Error, ValueError):
    """A tensor that a program has not, or with another type or shape; a number that is no place in a table. Nothing has changed."""

    def __init__(self, message: str):
        super().__init__(message, "arguments")


class InUseError(Error):
    """Another thread is in a call of the program. Nothing has changed."""

    def __init__(self, message: str):
        super().__init__(message, "in use")


class ClosedError(Error):
    """The program is closed."""

    def __init__(self, message: str = "the program is closed"):
        super().__init__(message, "closed")
