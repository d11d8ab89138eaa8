"""Checks that each error code has its page, each page its code, and each call of a `Refusal` the facts it names."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

SOURCES = ("src", "lab/src")
PAGES = "src/counterveil/error_pages"
CODE = re.compile(r"\bCV-[A-Z]\d{3}\b")
SECTIONS = ("What happened", "Why it matters", "How to fix")


def problems(root: Path) -> list[str]:
    """Return one line for each code without a page, page without a code, and page without its sections."""
    used = used_codes(*(root / source for source in SOURCES))
    pages = {path.stem: path for path in sorted((root / PAGES).glob("CV-*.md"))}
    found = [
        f"{code} ({where}): {PAGES}/{code}.md is missing" for code, where in used.items() if code not in pages
    ]
    found += [f"{PAGES}/{code}.md: the source never uses {code}" for code in pages if code not in used]
    for code, path in pages.items():
        found += [f"{PAGES}/{code}.md: {what}" for what in _page(code, path.read_text(encoding="utf-8"))]
    return found + wrong_calls(*(root / source for source in SOURCES))


def used_codes(*sources: Path) -> dict[str, str]:
    """Return every code in the sources with the first module that uses it."""
    used: dict[str, str] = {}
    for path, name in _modules(sources).items():
        for code in CODE.findall(path.read_text(encoding="utf-8")):
            used.setdefault(code, name)
    return dict(sorted(used.items()))


def _modules(sources: tuple[Path, ...]) -> dict[Path, str]:
    """Return the modules of several folders, each with its path in its folder."""
    return {
        path: path.relative_to(source).as_posix()
        for source in sources
        for path in sorted(source.rglob("*.py"))
    }


def wrong_calls(*sources: Path) -> list[str]:
    """Return one line for each call of a `Refusal` with more or fewer facts than its texts name."""
    homes = {path: name.removesuffix(".py").replace("/", ".") for path, name in _modules(sources).items()}
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in homes}
    facts = {f"{homes[path]}.{name}": count for path, tree in trees.items() for name, count in _rows(tree)}
    found = []
    for path, tree in trees.items():
        known = _names(tree, homes[path])
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name, _, rest = ast.unparse(call.func).partition(".")
            called = ".".join(filter(None, (known.get(name, f"{homes[path]}.{name}"), rest)))
            starred = any(isinstance(each, ast.Starred) for each in call.args)
            if called in facts and not starred and (len(call.args) != facts[called] or call.keywords):
                found.append(f"{homes[path]}:{call.lineno}: {called} takes {facts[called]} facts")
    return found


def _rows(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the name of every `Refusal` of a module, and how many facts its texts name."""
    calls = (
        (node.targets[0], node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    )
    for target, call in calls:
        if ast.unparse(call.func) == "Refusal":
            given = [*call.args[1:], *(each.value for each in call.keywords)]
            # A text that a function makes, such as how an extra is installed, names no fact.
            texts = [ast.literal_eval(each) for each in given if not isinstance(each, ast.Call)]
            named = {name for text in texts for _, name, _, _ in Formatter().parse(text) if name}
            yield ast.unparse(target), len(named)


def _names(tree: ast.Module, home: str) -> dict[str, str]:
    """Return what the imported names of a module stand for."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {
        each.asname or each.name: f"{node.module or home}.{each.name}"
        for node in imports
        for each in node.names
    }


def _page(code: str, text: str) -> list[str]:
    found = []
    if not text.startswith(f"# {code}: "):
        found.append(f"the first line is not '# {code}: <problem>'")
    headings = [line.lstrip("#").strip() for line in text.splitlines() if line.startswith("##")]
    return found + [f"section '{section}' is missing" for section in SECTIONS if section not in headings]


def main(arguments: list[str]) -> int:
    """Print the problems under the root given (default: here) and return 1 if there are any."""
    found = problems(Path(arguments[0] if arguments else "."))
    print("\n".join(found) or "error codes: in order")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
