"""Writes pages of `docs/reference/` from the code; with `--check` compares them only."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

from tools.reference.backends_page import backends_page
from tools.reference.caveats_page import caveats_page
from tools.reference.cli_page import cli_page

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "docs/reference/cli.md": cli_page,
    "docs/reference/backends.md": backends_page,
    "docs/reference/caveats.md": caveats_page,
}


def drift(root: Path = ROOT) -> list[str]:
    """Return the lines in which the pages under a root differ from what the code says now."""
    found: list[str] = []
    for name, text in made().items():
        page = root / name
        kept = page.read_text(encoding="utf-8").splitlines() if page.exists() else []
        found += difflib.unified_diff(kept, text.splitlines(), name, "the code", lineterm="", n=0)
    return found


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` print how they drifted and return 1 if they did."""
    if arguments == ["--check"]:
        found = drift()
        print("\n".join([*found, "run: make reference"] if found else ["reference pages: in order"]))
        return bool(found)
    for name, text in made().items():
        (ROOT / name).write_text(text, encoding="utf-8")
    return 0


def made() -> dict[str, str]:
    """Return all pages by name, as the code says."""
    return {name: make() for name, make in PAGES.items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
