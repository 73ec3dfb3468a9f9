"""Settings: a TOML file, then `--set key=value`, into a strict tree of named fields.

An unknown key is an error that suggests the near one; a value of the wrong kind is an error that names key, value and
rule. A name or value that a setting had in an earlier version still works, with a warning that says the new one. Knows
no particular setting: every stage declares its own as a `Section`.
"""

from __future__ import annotations

import copy
import logging
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from albert.errors import UsageError, did_you_mean

log = logging.getLogger(__name__)


class Renamed(NamedTuple):
    """What a setting is called now, and those of its values that have other names now."""

    name: str  # dotted
    values: Mapping[Any, Any] = {}


class Section(BaseModel):
    """A group of settings: no unknown fields, no silent conversions, no change after checking."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
    renamed: ClassVar[Mapping[str, Renamed]] = {}  # by the dotted names of earlier versions


Settings = TypeVar("Settings", bound=Section)


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Read `--set key=value` words; a value that is not TOML is taken as text."""
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(f"--set {assignment}: write it as key=value")
        try:
            values[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            values[name] = text.strip()
    return values


def read_settings(
    kind: type[Settings], *, file: Path | None = None, assignments: Iterable[str] = (), defaults: Mapping[str, Any] = {}
) -> Settings:
    """Merge defaults, a file and assignments, later ones winning, and check the result.

    `defaults` and assignments have dotted keys: `train.steps`.
    """
    values: dict[str, Any] = {}
    told = _read_toml(file) if file is not None else {}
    for layer in (_tree(defaults), told, _tree(parse_assignments(assignments))):
        _merge(values, with_new_names(kind, layer, warn=True))
    return check_settings(kind, values, source=str(file) if file else "settings")


def with_new_names(kind: type[Section], values: Mapping[str, Any], *, warn: bool = False) -> dict[str, Any]:
    """Return a tree of values in which what earlier versions called otherwise has its present name."""
    tree = copy.deepcopy(dict(values))
    for old, (new, renamed_values) in kind.renamed.items():
        place, last = _section(tree, old)
        if last not in place:
            continue
        given = place.pop(last)
        value = renamed_values.get(given, given) if isinstance(given, str) else given
        there, field = _section(tree, new)
        if field in there:
            raise UsageError(f"{old}={given!r} is the old name of {new}={there[field]!r}: give one of them")
        _put(tree, new, value)
        if warn and (old, given) != (new, value):
            log.warning("the setting %s=%r is now called %s=%r: the old name still works", old, given, new, value)
    return tree


def assigned_names(kind: type[Section], assignments: Iterable[str]) -> set[str]:
    """Return the dotted names of what `--set` words set, as they are called now."""
    return set(flatten(with_new_names(kind, _tree(parse_assignments(assignments)))))


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the leaves of nested settings by their dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def check_settings(kind: type[Settings], values: Mapping[str, Any], *, source: str) -> Settings:
    """Check a tree of values; every problem in one error."""
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        problems = [_explain(kind, problem) for problem in error.errors()]
        raise UsageError(f"{source}: " + "; ".join(problems)) from None


def _explain(kind: type[BaseModel], problem: Any) -> str:
    where = [str(part) for part in problem["loc"]]
    name = ".".join(part for part in where if part.isidentifier() and part not in ("float", "int", "literal"))
    if problem["type"] == "extra_forbidden":
        elsewhere = [f"'{known}'" for known in _names(kind) if known.split(".")[-1] == where[-1]]
        if elsewhere:
            return f"'{name}' is unknown: did you mean {' or '.join(elsewhere)}?"
        return f"'{name}' is unknown: {did_you_mean(where[-1], _fields(kind, where[:-1]))}"
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    return f"{name}={problem['input']!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}"


def _fields(kind: type[BaseModel], path: list[str]) -> list[str]:
    for part in path:
        kind = _inner(kind, part) or kind
    return list(kind.model_fields)


def _names(kind: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of all settings, without those of the sections."""
    for field in kind.model_fields:
        inner = _inner(kind, field)
        if inner is None:
            yield prefix + field
        else:
            yield from _names(inner, f"{prefix}{field}.")


def _inner(kind: type[BaseModel], field: str) -> type[BaseModel] | None:
    annotation = kind.model_fields[field].annotation if field in kind.model_fields else None
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: can't be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: not valid TOML: {error}") from error


def _section(tree: dict[str, Any], name: str) -> tuple[dict[str, Any], str]:
    """Return the section of a tree that a dotted name lies in, empty where there is none, and its last part."""
    *sections, last = name.split(".")
    for section in sections:
        inner = tree.get(section)
        tree = inner if isinstance(inner, dict) else {}
    return tree, last


def _tree(values: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in values.items():
        _put(tree, name, value)
    return tree


def _put(values: dict[str, Any], name: str, value: Any) -> None:
    *sections, last = name.split(".")
    for section in sections:
        inner = values.setdefault(section, {})
        if not isinstance(inner, dict):
            raise UsageError(f"--set {name}: '{section}' is a value, not a section")
        values = inner
    values[last] = value


def _merge(values: dict[str, Any], other: Mapping[str, Any]) -> None:
    for name, value in other.items():
        if isinstance(value, Mapping) and isinstance(values.get(name), dict):
            _merge(values[name], value)
        else:
            values[name] = value
