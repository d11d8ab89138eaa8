"""Checks the inequalities at the heart of proof pages: each as a statement for an SMT solver, and the page names it.

    python -m tools.check_bounds     # needs the package z3-solver

A file of `tests/bounds` names its page, says in words what it states, and denies it: the solver must find the denial
unsatisfiable. With the wrong constant that its third line names, the solver must find an example.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = "tests/bounds"
_HEADER = re.compile(
    r"; page: (?P<page>\S+)\n; states: (?P<states>.+)\n"
    r"; constant: (?P<means>.+); with (?P<wrong>\S+) the statement is false\n"
)
_CONSTANT = re.compile(r"^\(define-fun constant \(\) Real .+\)$", re.MULTILINE)
_LINE = re.compile(r"^\*\*Machine-checked:\*\* `(\S+)`: (.+)$", re.MULTILINE)
# A statement of a few numbers takes hundredths of a second.
MOST_MILLISECONDS = 20_000


@dataclass(frozen=True)
class Statement:
    """One statement: its file, the page it belongs to, what it says, and the constant with which it is false."""

    path: Path
    page: str
    states: str
    means: str
    wrong: str
    text: str

    @classmethod
    def read(cls, path: Path) -> Statement:
        """Return the statement in a file, or raise ValueError where its header is not in form."""
        text = path.read_text(encoding="utf-8")
        found = _HEADER.match(text)
        if found is None or len(_CONSTANT.findall(text)) != 1:
            raise ValueError(f"{path.name}: the header or the constant is not in form")
        return cls(path, found["page"], found["states"], found["means"], found["wrong"], text)

    @property
    def line(self) -> str:
        """What the page must say after the name of the file."""
        return f"{self.states}. With {self.wrong} for {self.means} it is refuted."

    @property
    def mistaken(self) -> str:
        """The statement with the wrong constant."""
        over, _, under = self.wrong.partition("/")
        value = f"(/ {over} {under})" if under else f"{over}.0"
        return _CONSTANT.sub(f"(define-fun constant () Real {value})", self.text)


def statements(root: Path) -> list[Statement]:
    """Return all statements, by name."""
    return [Statement.read(path) for path in sorted((root / FOLDER).glob("*.smt2"))]


def problems(root: Path) -> list[str]:
    """Return one line for each statement that its page does not show, and each page that shows one not there."""
    found: list[str] = []
    known = {f"{FOLDER}/{one.path.name}": one for one in statements(root)}
    for name, one in known.items():
        page = root / one.page
        shown = dict(_LINE.findall(page.read_text(encoding="utf-8"))) if page.exists() else {}
        if shown.get(name) != one.line:
            found.append(f"{one.page}: does not show `{name}`: {one.line}")
    for page in sorted((root / "src").rglob("*.proof.md")):
        for name, _ in _LINE.findall(page.read_text(encoding="utf-8")):
            if name not in known or root / known[name].page != page:
                found.append(
                    f"{page.relative_to(root)}: shows `{name}`, which is not there or another page's"
                )
    return found


def answers(one: Statement) -> tuple[str, str]:
    """Return what the solver says to the denial: with the right constant, and with the wrong one."""
    import z3

    found = []
    for text in (one.text, one.mistaken):
        solver = z3.Solver()
        solver.set("timeout", MOST_MILLISECONDS)
        solver.from_string(text)
        found.append(str(solver.check()))
    return found[0], found[1]


def failures(root: Path) -> Iterator[str]:
    """Yield one line for each statement that the solver does not prove, or whose wrong constant it does not refute."""
    for one in statements(root):
        said = answers(one)
        if said != ("unsat", "sat"):
            yield f"{one.path.name}: {said[0]} where unsat is expected, {said[1]} with {one.wrong} where sat is"


def main() -> int:
    """Print what is wrong and return 1 if anything is."""
    root = Path(__file__).resolve().parent.parent
    found = [*problems(root), *failures(root)]
    print("\n".join(found) or f"{len(statements(root))} statements proved, their wrong constants refuted")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
