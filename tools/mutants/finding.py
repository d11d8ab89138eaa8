"""Where in the package a fault goes: by the name of a function and a text inside it, not by file and line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.mutants.mutant import Mutant

# Where statements stand: functions and classes are in no expression.
_STATEMENTS = ("body", "orelse", "finalbody", "handlers", "cases")


class NotPlantableError(Exception):
    """The fault has no place, or more than one."""


@dataclass(frozen=True, slots=True)
class Place:
    """One function or class: its file, its qualified name and the lines it takes (from 0, end excluded)."""

    path: Path
    name: str
    start: int
    end: int


class Sources:
    """All functions and classes of a package, by the last part of their name."""

    def __init__(self, package: Path) -> None:
        self.package = package
        self._lines: dict[Path, list[str]] = {}
        self._places: dict[str, list[Place]] = {}
        for path in sorted(package.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            self._lines[path] = text.splitlines(keepends=True)
            module = ".".join(path.relative_to(package).with_suffix("").parts)
            for place in _places(ast.parse(text), path, module):
                self._places.setdefault(place.name.rsplit(".", 1)[-1], []).append(place)

    def planted(self, mutant: Mutant) -> tuple[Path, str]:
        """Return the file and its text with the fault in it."""
        place = self._place(mutant)
        lines = self._lines[place.path]
        found = self._text(place)
        if found.count(mutant.old) > 1:
            raise NotPlantableError(
                f"{mutant.name}: the text occurs {found.count(mutant.old)} times; give more of it"
            )
        changed = found.replace(mutant.old, mutant.new)
        text = "".join((*lines[: place.start], changed, *lines[place.end :]))
        try:
            if _program(changed) == _program(found):
                raise NotPlantableError(f"{mutant.name}: the program stays the same")
        except SyntaxError as error:
            raise NotPlantableError(f"{mutant.name}: what comes out is no Python ({error})") from None
        return place.path, text

    def _text(self, place: Place) -> str:
        return "".join(self._lines[place.path][place.start : place.end])

    def _place(self, mutant: Mutant) -> Place:
        *hints, last = mutant.function.split(".")
        named = self._places.get(last, [])
        if not named:
            raise NotPlantableError(f"{mutant.name}: the package has no function or class {last!r}")
        holding = [place for place in named if mutant.old in self._text(place)]
        if len(holding) > 1:
            holding = [place for place in holding if set(hints) <= set(place.name.split(".")[:-1])]
        # Of a function inside another of the same name, the inner one.
        holding = [one for one in holding if not any(_inside(other, one) for other in holding)]
        if not holding:
            raise NotPlantableError(f"{mutant.name}: no function {last!r} holds this text")
        if len(holding) > 1:
            where = ", ".join(sorted(place.name for place in holding))
            raise NotPlantableError(
                f"{mutant.name}: put a class or module before the name; it may be {where}"
            )
        return holding[0]


def _program(text: str) -> str:
    """Return what a function or class does, as Python reads it; of one inside another, too."""
    return ast.dump(ast.parse(f"if True:\n{text}" if text[:1].isspace() else text))


def _places(tree: ast.AST, path: Path, name: str) -> Iterator[Place]:
    for node in (one for field in _STATEMENTS for one in getattr(tree, field, ())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own = f"{name}.{node.name}"
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            yield Place(path, own, first - 1, node.end_lineno or node.lineno)
            yield from _places(node, path, own)
        else:
            yield from _places(node, path, name)


def _inside(inner: Place, outer: Place) -> bool:
    return inner is not outer and inner.path == outer.path and outer.start <= inner.start < outer.end
