"""Where each page of the repository stands on the site, and how its links are rewritten."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path, PurePosixPath

from tools.check_docs import prose
from tools.site.names import FOLDER, INDEX

PACKAGE = "src/counterveil/"
PROJECT = (
    "ARCHITECTURE.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "GOVERNANCE.md", "SECURITY.md",
    "SUPPORT.md",
)  # fmt: skip
# Links to folders and to pages that the site shows in another form.
STAND_INS = {"README.md": "index.md", "docs/README.md": "index.md"}

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(\s*<?([^)\s>]+)>?\s*\)")
_OUTSIDE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//|#)", re.IGNORECASE)
_CODE_SPAN = re.compile(r"`[^`]*`")


def place(source: str) -> str | None:
    """Return the path on the site of a file of the repository, or None if the site does not show it."""
    path = PurePosixPath(source)
    if source in STAND_INS:
        return STAND_INS[source]
    if source in PROJECT or source == "benchmarks/README.md":
        return f"project/{(path.stem if source in PROJECT else 'benchmarks').lower()}.md"
    if source.startswith("docs/") and path.suffix in {".md", ".ipynb", ".png"}:
        return source.removeprefix("docs/")
    if source.startswith(PACKAGE) and source.endswith(".proof.md"):
        return f"proofs/{source.removeprefix(PACKAGE).replace('.proof.md', '.md')}"
    if source.startswith("experiments/") and path.suffix == ".md":
        return source
    return None


def sources(root: Path) -> dict[str, str]:
    """Return the pages and pictures of the site: their path in the repository, and on the site."""
    found: dict[str, str] = {}
    patterns = ("*.md", "docs/**/*", "src/**/*.md", "experiments/**/*.md", "benchmarks/README.md")
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            name = path.relative_to(root).as_posix()
            goal = place(name) if path.is_file() and name not in STAND_INS else None
            if goal is not None:
                found[name] = goal
    return found


def with_links(text: str, source: str, known: dict[str, str]) -> str:
    """Return a page whose links lead to where their goals stand on the site; goals outside it become plain text."""
    lines = text.splitlines(keepends=True)
    for number, line in prose(text):
        if "](" in line:
            lines[number - 1] = _relinked(lines[number - 1], source, known)
    return "".join(lines)


def _relinked(line: str, source: str, known: dict[str, str]) -> str:
    code = [match.span() for match in _CODE_SPAN.finditer(line)]
    names = {PurePosixPath(page).stem for page in known if page.startswith(f"{FOLDER}/")}

    def one(match: re.Match[str]) -> str:
        target = match.group(3)
        if _OUTSIDE.match(target) or any(start < match.start() < end for start, end in code):
            return match.group(0)
        path, _, anchor = target.partition("#")
        goal = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        # On the site every public name has a page, which a link to the list of names leads to.
        if goal == INDEX and (name := match.group(2).strip("`").partition("(")[0]) in names:
            goal = f"{FOLDER}/{name}.rst"
        there = known.get(goal) or STAND_INS.get(goal)
        if there is None:
            return match.group(2)
        here = posixpath.dirname(known[source]) or "."
        return f"{match.group(1)}[{match.group(2)}]({posixpath.relpath(there, here)}{'#' if anchor else ''}{anchor})"

    return _LINK.sub(one, line)
