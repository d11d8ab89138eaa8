"""Checks that every mechanism and every sensitivity has its proof page, with its sections in their order."""

from __future__ import annotations

import re
import sys
from pathlib import Path

SECTIONS = ("Claim", "Public", "Pseudocode", "Proof", "Tests", "Audit")
PACKAGES = ("mechanisms", "rows")
# Modules of those packages that release nothing and bound nothing; any other module needs a page.
SUPPORTING = {
    "mechanisms/noise.py",
    "mechanisms/registry.py",
}
_PROOF = re.compile(r"^# Proof: (\S+\.proof\.md)$", re.MULTILINE)
_PUBLIC = re.compile(r"^(?:def|class) ([a-zA-Z]\w*)", re.MULTILINE)
_HEADING = re.compile(r"^(?:#+\s*|\*\*)([A-Z][a-z]+)\b", re.MULTILINE)


def problems(package: Path) -> list[str]:
    """Return one line for each bound or mechanism without a page, each page nobody names, each misplaced section."""
    found: list[str] = []
    for module in sorted((package / "mechanisms").glob("*.py")):
        name = f"mechanisms/{module.name}"
        if module.stem != "__init__" and name not in SUPPORTING and not _page(module).exists():
            found.append(f"{name}: {_page(module).name} is missing")
    for module in sorted(package.rglob("*sensitivity.py")):
        name = module.relative_to(package).as_posix()
        found += [f"{name}: {what}" for what in _unproved(module)]
    for page in sorted(package.rglob("*.proof.md")):
        name = page.relative_to(package).as_posix()
        if not _named(page):
            found.append(f"{name}: no module of this folder has its name or names it")
        wanted = SECTIONS if name.split("/")[0] in PACKAGES else SECTIONS[:-1]
        found += [f"{name}: {what}" for what in _sections(page.read_text(encoding="utf-8"), wanted)]
    return found


def _page(module: Path) -> Path:
    return module.with_name(f"{module.stem}.proof.md")


def _named(page: Path) -> bool:
    """Whether a module beside the page has its name or names it in a line of its own."""
    if page.with_name(page.name.replace(".proof.md", ".py")).exists():
        return True
    line = re.compile(rf"^# Proof: {re.escape(page.name)}$", re.MULTILINE)
    return any(line.search(module.read_text(encoding="utf-8")) for module in page.parent.glob("*.py"))


def _unproved(module: Path) -> list[str]:
    """Return what a module of bounds defines above the first page it names, and pages that are missing."""
    found: list[str] = []
    pages = [(match.start(), match.group(1)) for match in _PROOF.finditer(module.read_text(encoding="utf-8"))]
    found += [f"{name} is missing" for _, name in pages if not module.with_name(name).exists()]
    if _page(module).exists():
        return found
    text = module.read_text(encoding="utf-8")
    first = pages[0][0] if pages else len(text)
    found += [f"{match.group(1)} stands under no page" for match in _PUBLIC.finditer(text[:first])]
    return found


def _sections(text: str, wanted: tuple[str, ...]) -> list[str]:
    first: dict[str, int] = {}
    for match in _HEADING.finditer(text):
        first.setdefault(match.group(1), match.start())
    found = [f"section '{section}' is missing" for section in wanted if section not in first]
    places = [first[section] for section in wanted if section in first]
    if places != sorted(places):
        found.append(f"the sections are not in the order {', '.join(wanted)}")
    return found


def main(arguments: list[str]) -> int:
    """Print the problems of the package given (default `src/counterveil`) and return 1 if there are any."""
    found = problems(Path(arguments[0] if arguments else "src/counterveil"))
    print("\n".join(found) or "proof pages: in order")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
