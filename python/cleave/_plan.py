"""Plans as values, which print as YAML (docs/plan-file.md)."""
from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Optional, Union

import yaml

# What YAML reads as it is written: names of axes, and the words of `dims` but `?`, which has a meaning of its own to some readers.
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*|_|\.\.\.")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"}
# `?` and `model?` as entries of a list.
_OPEN = re.compile(r"(?<=[\[,\s])([A-Za-z_]\w*)?\?(?=\s*[,\]])")


def _write(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_write(key)}: {_write(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_write, value)) + "]"
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) and value.lower() not in _WORDS else json.dumps(value)
    return json.dumps(value)


@dataclass
class Rule:
    """How tensors are sharded. One of `tensor` (an ONNX name), `module` (a module of the PyTorch model) and `node` (with `operand` or
    `result`) says which, as a glob or `re:..`; `dims` says how, an entry a dim: an axis, a list of axes, `_` (whole), `?` (decided for you).
    """
    dims: list[Any]
    tensor: Optional[str] = None
    module: Optional[str] = None
    node: Optional[str] = None
    operand: Optional[int] = None
    result: Optional[int] = None
    more: dict[str, Any] = field(default_factory=dict)  #: `except`, `where`, `priority`, `replicated`, `uneven`, `experts`

    def to_dict(self) -> dict[str, Any]:
        where = {key: getattr(self, key) for key in ("tensor", "module", "node", "operand", "result")}
        return {**{key: value for key, value in where.items() if value is not None}, "dims": list(self.dims), **self.more}

    def __str__(self) -> str:
        return _write(self.to_dict())


@dataclass
class Plan:
    """A plan: `str(plan)` is the plan file. All calls that take `plan=` take one of these, or the path of a file.

        Plan(mesh={"data": 2, "model": 2}, shard=[Rule(tensor="x", dims=["data", "_"])], state={"past_*": "present_*"})

    `more` has other keys of plan files (`pipeline`, `train`, `expect`, `attention`, `cluster`, `devices`) as dicts.
    """
    mesh: dict[str, int] = field(default_factory=dict)
    dims: dict[str, int] = field(default_factory=dict)
    shard: list[Union[Rule, dict[str, Any]]] = field(default_factory=list)
    state: dict[str, str] = field(default_factory=dict)
    free: Union[bool, list[str]] = False
    uneven: bool = False
    more: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{key}: {_write(value)}" for key, value in (("mesh", self.mesh), ("dims", self.dims)) if value]
        if self.shard:
            lines += ["shard:"] + [f"  - {rule if isinstance(rule, Rule) else _write(rule)}" for rule in self.shard]
        lines += [f"{key}: {_write(value)}" for key, value in (("state", self.state), ("free", self.free), ("uneven", self.uneven)) if value]
        return "\n".join(lines + [f"{key}: {_write(value)}" for key, value in self.more.items()]) + "\n"

    @classmethod
    def from_yaml(cls, text: str) -> Plan:
        """The plan of a file's text. What it means is checked where it is used, with places."""
        read = yaml.safe_load(_OPEN.sub(r'"\g<0>"', text)) or {}
        if not isinstance(read, dict):
            raise ValueError("a plan is a mapping of YAML")
        known = {key: read.pop(key) for key in ("mesh", "dims", "state", "free", "uneven") if key in read}
        rules: list[Union[Rule, dict[str, Any]]] = [_make_rule(rule) for rule in read.pop("shard", None) or []]
        return cls(shard=rules, more=read, **known)

    @classmethod
    def load(cls, path: str) -> Plan:
        with open(path, encoding="utf-8") as file:
            return cls.from_yaml(file.read())

    def save(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(str(self))


def _make_rule(read: dict[str, Any]) -> Rule:
    names = ("dims", "tensor", "module", "node", "operand", "result")
    return Rule(**{key: read[key] for key in names if key in read}, more={key: value for key, value in read.items() if key not in names})
