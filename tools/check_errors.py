"""Checks that each error code of the source has its page, and that each page has its code."""

from __future__ import annotations

import re
import sys
from pathlib import Path

PAGES = "src/counterveil/error_pages"
CODE = re.compile(r"\bCV-[A-Z]\d{3}\b")
SECTIONS = ("What happened", "Why it matters", "How to fix")


def problems(root: Path) -> list[str]:
    """Return one line for each code without a page, page without a code, and page without its sections."""
    used = used_codes(root / "src")
    pages = {path.stem: path for path in sorted((root / PAGES).glob("CV-*.md"))}
    found = [
        f"{code} ({where}): {PAGES}/{code}.md is missing" for code, where in used.items() if code not in pages
    ]
    found += [f"{PAGES}/{code}.md: the source never uses {code}" for code in pages if code not in used]
    for code, path in pages.items():
        found += [f"{PAGES}/{code}.md: {what}" for what in _page(code, path.read_text(encoding="utf-8"))]
    return found


def used_codes(source: Path) -> dict[str, str]:
    """Return every code in the source with the first module that uses it."""
    used: dict[str, str] = {}
    for path in sorted(source.rglob("*.py")):
        for code in CODE.findall(path.read_text(encoding="utf-8")):
            used.setdefault(code, path.relative_to(source).as_posix())
    return dict(sorted(used.items()))


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
