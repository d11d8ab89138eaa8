"""Pages that are made for the site and are not kept in the repository: the table of errors, and the audits.

Links lead to them as if they stood in `docs/`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.reference.errors_page import errors_page

ERRORS = "docs/reference/errors.md"
# The words of `counterveil audit` that write each page.
AUDITS = {
    "docs/explanation/how-we-attack-ourselves.md": "--all",
    "docs/explanation/claims-that-fail.md": "--gallery",
}


def generated(kept: Path) -> dict[str, str]:
    """Return the text of every page; audits, which take minutes, run where the folder `kept` has no page of them."""
    pages = {ERRORS: errors_page()}
    for name, words in AUDITS.items():
        page = kept / Path(name).name
        if not page.exists():
            _audit(words, page)
        pages[name] = page.read_text(encoding="utf-8")
    return pages


def without_audits() -> dict[str, str]:
    """Return the same with nothing on the pages of audits: enough to follow links."""
    return {ERRORS: errors_page()} | dict.fromkeys(AUDITS, "")


def _audit(words: str, page: Path) -> None:
    """Run audits and write their page; one that breaks a claim or has no power raises CalledProcessError."""
    page.parent.mkdir(parents=True, exist_ok=True)
    unfinished = page.with_suffix(".unfinished")
    program = [sys.executable, "-m", "counterveil", "audit", words, "--jobs", str(os.cpu_count() or 1)]
    subprocess.run([*program, "--page", str(unfinished)], check=True, stdout=subprocess.DEVNULL)
    unfinished.replace(page)
