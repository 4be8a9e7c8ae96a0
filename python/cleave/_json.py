"""Dataclasses from the JSON of reports (docs/report.md)."""
from __future__ import annotations

import dataclasses
import html
import types
import typing
from functools import lru_cache
from typing import Any, Iterable, TypeVar

T = TypeVar("T")


@lru_cache(maxsize=None)
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def convert(kind: Any, value: Any) -> Any:
    """A value of JSON as `kind`: a dataclass, or a list, dict or optional of such."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if value is None or kind is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        return convert(next(one for one in arguments if one is not type(None)), value)
    if origin is list:
        return [convert(arguments[0], one) for one in value]
    if origin is tuple:
        return tuple(convert(arguments[0], one) for one in value)
    if origin is dict:
        return {key: convert(arguments[1], one) for key, one in value.items()}
    return make(kind, value) if isinstance(kind, type) and dataclasses.is_dataclass(kind) else value


def make(kind: type[T], value: dict[str, Any]) -> T:  # a dataclass
    """A dataclass from an object of JSON. A key that the class has no field for is in `json` alone, which holds the object as it came."""
    hints = _hints(kind)  # type: ignore[arg-type]
    names = {field.name for field in dataclasses.fields(typing.cast(Any, kind))}
    fields = {name: convert(hints[name], one) for name, one in value.items() if name in names}
    return kind(**fields, **({"json": value} if "json" in names else {}))


def table(title: str, head: Iterable[str], rows: Iterable[Iterable[Any]], most: int = 40) -> str:
    """A small table of HTML, for notebooks."""
    rows = list(rows)
    cell = lambda tag, value: f"<{tag}>{html.escape(str(value))}</{tag}>"
    lines = ["".join(cell("th", one) for one in head)] + ["".join(cell("td", one) for one in row) for row in rows[:most]]
    more = f"<p>and {len(rows) - most} more</p>" if len(rows) > most else ""
    return f"<b>{html.escape(title)}</b><table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>{more}"


def format_bytes(count: float) -> str:
    """`2.05 kB`; powers of 1000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.0f} bytes" if unit == "bytes" else f"{count:.2f} {unit}"
        count /= 1000
    return f"{count:.2f} TB"


def format_seconds(seconds: float) -> str:
    """`12.3 us`"""
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
