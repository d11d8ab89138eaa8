"""Figures of pages that are quoted from the tables of experiments: a figure has one home, and pages repeat its rows.

A page names the table and the rows between two comments, and `make reference` writes what stands between them:

    <!-- rows of FOLDER/RESULTS.md#heading: a row; others* || a column; another / 1 -->
    <!-- end of rows -->

The heading is written as in a link; the first table below it is meant. A row may end in a star, and "another / 1" takes
the first part of cells such as 0.90 / 4.72.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

PAGES = ("README.md", "docs/how-to/*.md", "docs/explanation/*.md", "docs/tutorials/*.md")
_MARK = re.compile(
    r"(?P<open><!-- rows of (?P<page>[^\s#]+)#(?P<heading>[^\s:]+): (?P<rows>[^>]+?) \|\| (?P<columns>[^>]+?) -->\n)"
    r"(?P<kept>.*?)(?P<close><!-- end of rows -->)",
    re.S,
)


def marked_pages(root: Path) -> dict[str, str]:
    """Return the pages under a root that quote figures, by name, as they should be."""
    found = {}
    for pattern in PAGES:
        for page in sorted(root.glob(pattern)):
            text = page.read_text(encoding="utf-8")
            if _MARK.search(text):
                found[page.relative_to(root).as_posix()] = filled(text, root)
    return found


def filled(text: str, root: Path) -> str:
    """Return a page with the rows that it names, as the tables under a root have them."""
    return _MARK.sub(lambda match: f"{match['open']}\n{_quoted(match, root)}\n\n{match['close']}", text)


def _quoted(match: re.Match[str], root: Path) -> str:
    headings, *rows = _table((root / match["page"]).read_text(encoding="utf-8"), match["heading"])
    wanted = [name.strip() for name in match["columns"].split(";")]
    places = [_place(name, headings) for name in wanted]
    lines = [
        f"| | {' | '.join(name.partition(' / ')[0] for name in wanted)} |",
        "|---|" + "---|" * len(wanted),
    ]
    for pattern in (name.strip() for name in match["rows"].split(";")):
        chosen = [row for row in rows if fnmatchcase(row[0], pattern)]
        if not chosen:
            raise ValueError(f"{match['page']}: no row {pattern!r}")
        lines += [
            f"| {' | '.join([row[0], *(_cell(row[at], part) for at, part in places)])} |" for row in chosen
        ]
    return "\n".join(lines)


def _table(text: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, its own headings first."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("#") and _slug(line) == heading:
            break
    found: list[list[str]] = []
    for line in lines:
        if line.startswith("|"):
            found.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif found:
            break
    if len(found) < 3:
        raise ValueError(f"no table below {heading!r}")
    return [found[0], *found[2:]]


def _slug(line: str) -> str:
    return re.sub(r"[^\w\s-]", "", line.lstrip("#").strip().lower()).replace(" ", "-")


def _place(name: str, headings: list[str]) -> tuple[int, int | None]:
    column, _, part = name.partition(" / ")
    return headings.index(column), int(part) - 1 if part else None


def _cell(cell: str, part: int | None) -> str:
    return cell if part is None else cell.split(" / ")[part]
