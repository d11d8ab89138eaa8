"""Checks that each code of the source has a row in the table of refusals, each row a use, and each call its facts."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

TABLE = "src/counterveil/refusals.toml"
SOURCES = ("src", "lab/src", "r/inst/python")
CODE = re.compile(r"\bCV-[A-Z]\d{3}[b-z]?\b")
FIELDS = ("problem", "expected", "got", "fix")
FUNCTIONS = ("refusal", "filled")


def problems(root: Path) -> list[str]:
    """Return one line for each code without a row, row without use or texts, and call with other facts."""
    table = tomllib.loads((root / TABLE).read_text(encoding="utf-8"))
    used = used_codes(root)
    found = [
        f"{code} ({where}): {TABLE} has no such row" for code, where in used.items() if code not in table
    ]
    found += [f"{TABLE}: the source never uses {code}" for code in table if code not in used]
    for code, row in table.items():
        wanted = ("problem", "fix", "why") if len(code) == len("CV-P001") else ("problem", "fix")
        found += [f"{TABLE}: {code} has no {name}" for name in wanted if not row.get(name)]
    return found + list(wrong_calls(root, table))


def used_codes(root: Path) -> dict[str, str]:
    """Return every code in the source with the first module that uses it."""
    used: dict[str, str] = {}
    for path, name in _modules(root):
        for code in CODE.findall(path.read_text(encoding="utf-8")):
            used.setdefault(code, name)
    return dict(sorted(used.items()))


def wrong_calls(root: Path, table: dict[str, dict[str, str]]) -> Iterator[str]:
    """Yield one line for each refusal with more, fewer or other facts than the texts of its row name."""
    for path, name in _modules(root):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                not isinstance(node, ast.Call)
                or not node.args
                or getattr(node.func, "id", None) not in FUNCTIONS
            ):
                continue
            row = node.args[0]
            given = {each.arg for each in node.keywords}
            if not isinstance(row, ast.Constant) or row.value not in table or None in given:
                continue
            texts = [table[row.value].get(field) for field in FIELDS]
            if None in texts:
                yield f"{name}:{node.lineno}: {row.value} is a row without expected or got"
            elif given != facts(*(text for text in texts if text)):
                yield f"{name}:{node.lineno}: {row.value} takes {', '.join(sorted(facts(*filter(None, texts))))}"


def facts(*texts: str) -> set[str]:
    """Return the names in braces."""
    return {name for text in texts for _, name, _, _ in Formatter().parse(text) if name}


def _modules(root: Path) -> Iterator[tuple[Path, str]]:
    for source in SOURCES:
        for path in sorted((root / source).rglob("*.py")):
            yield path, path.relative_to(root / source).as_posix()


def main(arguments: list[str]) -> int:
    """Print the problems under the root given (default: here) and return 1 if there are any."""
    found = problems(Path(arguments[0] if arguments else "."))
    print("\n".join(found) or "error codes: in order")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
