"""Builds the documentation site: `python -m tools.site` gathers the pages, runs the notebooks and writes HTML.

Warnings are errors, links that lead nowhere among them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx
from tools.site.cells import notebook
from tools.site.contents import contents
from tools.site.places import sources, with_links

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/site"
SOURCE, HTML = BUILD / "source", BUILD / "html"


def gather(root: Path = ROOT, target: Path = SOURCE) -> list[Path]:
    """Return the files of the site's source, written below `target`; what is unchanged keeps its time."""
    known = sources(root)
    wanted: dict[str, bytes] = {}
    for source, page in known.items():
        if page.endswith(".md"):
            text = with_links((root / source).read_text(encoding="utf-8"), source, known)
            wanted[page] = (notebook(text) if page.startswith("tutorials/") else text).encode()
        else:
            wanted[page] = (root / source).read_bytes()
    wanted |= {page: text.encode() for page, text in contents(root, known).items()}
    for path in (root / "tools/site/pages").iterdir():
        wanted[path.name] = path.read_bytes()
    for page, content in wanted.items():
        path = target / page
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
    for path in target.rglob("*"):
        if path.is_file() and path.relative_to(target).as_posix() not in wanted:
            path.unlink()
    return [target / page for page in sorted(wanted)]


def main(arguments: list[str]) -> int:
    """Build the site and return 0; `--fresh` forgets what an earlier build kept."""
    if "--fresh" in arguments:
        shutil.rmtree(BUILD, ignore_errors=True)
    gather()
    kept = ["-d", str(BUILD / "kept"), "-D", f"nb_execution_cache_path={BUILD / 'runs'}"]
    code = sphinx(["-W", "--keep-going", "-q", *kept, "-c", str(ROOT / "docs"), str(SOURCE), str(HTML)])
    if code == 0:
        print(f"the site is in {HTML.relative_to(ROOT)}: open index.html there")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
