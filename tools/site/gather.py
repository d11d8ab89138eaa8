"""Gathers the pages of the site from the repository, with those that are generated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tools.site.cells import notebook
from tools.site.contents import contents
from tools.site.formulas import formulas
from tools.site.names import INDEX, index, pages
from tools.site.places import sources, with_links

# What becomes of the text of a page, by its folder on the site.
MADE: dict[str, Callable[[str], str]] = {"tutorials": notebook, "proofs": formulas}
# Pages that only the site has.
OWN = "tools/site/pages"


def gathered(root: Path, generated: Mapping[str, str]) -> dict[str, bytes]:
    """Return the files of the site's source: their path there, and their content.

    `generated` has texts by the path at which links of the repository expect them.
    """
    made = pages(root)
    known = sources(root) | {source: source.removeprefix("docs/") for source in (*made, *generated)}
    wanted: dict[str, bytes] = {}
    for source, page in known.items():
        if source in made:
            wanted[page] = made[source].encode()
        elif page.endswith(".md"):
            kept = generated[source] if source in generated else (root / source).read_text(encoding="utf-8")
            text = with_links(index(kept) if source == INDEX else kept, source, known)
            make = MADE.get(page.split("/")[0])
            wanted[page] = (make(text) if make else text).encode()
        else:
            wanted[page] = (root / source).read_bytes()
    wanted |= {page: text.encode() for page, text in contents(root, known).items()}
    return wanted | {path.name: path.read_bytes() for path in (root / OWN).iterdir()}


def write(wanted: dict[str, bytes], target: Path) -> None:
    """Write files below a folder and remove all others; what is unchanged keeps its time."""
    for page, content in wanted.items():
        path = target / page
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
    for path in target.rglob("*"):
        if path.is_file() and path.relative_to(target).as_posix() not in wanted:
            path.unlink()
