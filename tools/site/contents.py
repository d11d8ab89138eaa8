"""Contents of the site: one page for each section, made from the list in `docs/README.md` and from titles."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.site.places import STAND_INS, with_links

LIST = "docs/README.md"
# What stands above the titles of folders that the list does not name one by one.
INTRODUCTIONS = "tools/site/introductions"
# Sections of the list, and where their page of contents stands.
SECTIONS = {
    "Start here": ("tutorials", "Tutorials"),
    "How to": ("how-to", "How to"),
    "Explanation": ("explanation", "Explanation"),
    "Reference": ("reference", "Reference"),
}
PACKAGES = {
    "mechanisms": "Mechanisms",
    "estimators/moments": "Models of private records",
    "rows/linear": "Sums of private outcomes with public weights",
    "rows/moments": "Moments of private records",
    "rows/pairs": "Private pairs of treatment and outcome",
    "rows/strata": "Counts and sums by cell",
    "rows/folds": "Folds",
    "rows": "Counts, tables, and statistics of one's own",
    "accounting": "Accounting",
    "results": "Results",
    "session": "Session",
    "inference": "Inference",
    "data": "Data",
    "omop": "OMOP tables",
    "federation": "Federation",
    "published": "Published forms",
}

_SECTION = re.compile(r"^\*\*([^*]+)\*\*$")
_ITEM = re.compile(r"^- .*?\]\(([^)\s]+)\)")


@dataclass
class Section:
    """A section of the list: its lines as written, and the pages of the repository that they lead to."""

    lines: list[str]
    pages: list[str]


def sections(text: str) -> dict[str, Section]:
    """Return the sections of the list of pages."""
    found: dict[str, Section] = {}
    current = Section([], [])
    for line in text.splitlines():
        heading = _SECTION.match(line.strip())
        item = _ITEM.match(line)
        if heading:
            current = found.setdefault(heading.group(1), Section([], []))
            continue
        current.lines.append(line)
        if item:
            current.pages.append(posixpath.normpath(posixpath.join("docs", item.group(1))))
    return found


def title_of(text: str) -> str:
    """Return the first heading of a page."""
    return next(line.removeprefix("# ").strip() for line in text.splitlines() if line.startswith("# "))


def toctree(pages: Iterable[str]) -> str:
    """Return a table of contents that is shown in the navigation only."""
    return (
        "```{toctree}\n:hidden:\n\n"
        + "\n".join(re.sub(r"\.(md|ipynb)$", "", page) for page in pages)
        + "\n```\n"
    )


def contents(root: Path, known: dict[str, str]) -> dict[str, str]:
    """Return the pages of contents: their path on the site, and their text."""
    made: dict[str, str] = {}
    listed = sections((root / LIST).read_text(encoding="utf-8"))
    for name, (folder, title) in SECTIONS.items():
        body = with_links(
            "\n".join(listed[name].lines).strip() + "\n", LIST, {**known, LIST: f"{folder}/index.md"}
        )
        shown = [(STAND_INS | known).get(page, "") for page in listed[name].pages]
        inside = [page for page in shown if page.startswith(f"{folder}/")]
        made[f"{folder}/index.md"] = f"# {title}\n\n{body}\n" + toctree(
            page.removeprefix(f"{folder}/") for page in inside
        )
    groups: dict[str, tuple[Callable[[str], str], Iterable[str] | None]] = {
        "proofs": (_package, PACKAGES.values()),
        "experiments": (lambda page: page.split("/")[1].replace("_", " "), None),
        "decisions": (lambda _: "", None),
        "project": (lambda _: "", None),
    }
    for folder, (group_of, order) in groups.items():
        head = (root / INTRODUCTIONS / f"{folder}.md").read_text(encoding="utf-8")
        made[f"{folder}/index.md"] = f"{head}\n{_by_group(root, known, folder, group_of, order)}"
    return made


def _package(page: str) -> str:
    folder = posixpath.dirname(page).removeprefix("proofs/")
    while folder and folder not in PACKAGES:
        folder = posixpath.dirname(folder)
    return PACKAGES[folder]


def _by_group(
    root: Path,
    known: dict[str, str],
    folder: str,
    group_of: Callable[[str], str],
    order: Iterable[str] | None = None,
) -> str:
    """Return a page with the titles of a folder's pages under headings, in a given order or by name."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for source, page in known.items():
        if page.startswith(f"{folder}/"):
            name = title_of((root / source).read_text(encoding="utf-8"))
            groups.setdefault(group_of(page), []).append((name, page.removeprefix(f"{folder}/")))
    lines: list[str] = []
    pages: list[str] = []
    for group in order if order is not None else sorted(groups):
        inside = sorted(groups.get(group, ()), key=lambda item: item[1])
        lines += [f"## {group}", ""] if group and inside else []
        lines += [f"- [{name}]({page})" for name, page in inside] + [""]
        pages += [page for _, page in inside]
    return "\n".join(lines) + "\n" + toctree(pages)
