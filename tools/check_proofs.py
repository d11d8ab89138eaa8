"""Checks that every mechanism and every sensitivity has its proof page, with its sections in their order."""

from __future__ import annotations

import re
import sys
from pathlib import Path

SECTIONS = ("Claim", "Public", "Pseudocode", "Proof", "Tests", "Audit")
ROOMS = ("mechanisms", "sensitivity")
# Modules of those rooms that release nothing and bound nothing; any other module needs a page.
SUPPORTING = {
    "mechanisms/ambient.py",
    "mechanisms/checks.py",
    "mechanisms/fast.py",
    "mechanisms/grid.py",
    "mechanisms/noise.py",
    "mechanisms/protocols.py",
    "mechanisms/registry.py",
    "mechanisms/smooth.py",
    "mechanisms/source.py",
    "mechanisms/special.py",
    "mechanisms/table.py",
}
_HEADING = re.compile(r"^(?:#+\s*|\*\*)([A-Z][a-z]+)\b", re.MULTILINE)


def problems(package: Path) -> list[str]:
    """Return one line for each missing page, each page without module, each section missing or misplaced."""
    found: list[str] = []
    for room in ROOMS:
        for module in sorted((package / room).glob("*.py")):
            name = f"{room}/{module.name}"
            if module.stem != "__init__" and name not in SUPPORTING and not _page(module).exists():
                found.append(f"{name}: {_page(module).name} is missing")
    for page in sorted(package.rglob("*.proof.md")):
        name = page.relative_to(package).as_posix()
        if not page.with_name(page.name.replace(".proof.md", ".py")).exists():
            found.append(f"{name}: there is no such module")
        wanted = SECTIONS if name.split("/")[0] in ROOMS else SECTIONS[:-1]
        found += [f"{name}: {what}" for what in _sections(page.read_text(encoding="utf-8"), wanted)]
    return found


def _page(module: Path) -> Path:
    return module.with_name(f"{module.stem}.proof.md")


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
