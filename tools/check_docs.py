"""Checks the documents: their examples run, and their internal links lead somewhere.

Every ```python block of a page runs, in order and in one namespace, in a temporary directory. A block
that follows the line `<!-- no-run -->` is left out.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.site.generated import without_audits

RUNNABLE = ("README.md", "docs/tutorials/*.md", "docs/how-to/*.md", "docs/reference/ledger.md")
LINKED = ("*.md", "docs/**/*.md", "src/**/*.md", "experiments/**/*.md")
NO_RUN = "<!-- no-run -->"
SECONDS = 300

_FENCE = re.compile(r"^\s*(```+|~~~+)\s*([\w+-]*)")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|!\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
_CODE_SPAN = re.compile(r"`[^`]*`")
_OUTSIDE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)

# Every page runs in a process of its own, forked from one that has imported what nearly all pages import.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["counterveil.questions.session", "counterveil.drafting.estimating"])


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the number of its first line, its text, and whether it is to run."""

    language: str
    line: int
    text: str
    run: bool


def blocks_of(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    found: list[Block] = []
    fence, language, start, body, before, run = "", "", 0, [""], "", True
    for number, line in enumerate(text.splitlines(), 1):
        match = _FENCE.match(line)
        if not fence and match:
            fence, language, start, body, run = (
                match.group(1),
                match.group(2),
                number + 1,
                [],
                before != NO_RUN,
            )
        elif fence and line.strip() == fence:
            found.append(Block(language, start, "\n".join(body) + "\n", run))
            fence = ""
        elif fence:
            body.append(line)
        if line.strip():
            before = line.strip()
    return found


def runnable_pages(root: Path) -> list[Path]:
    """Return the pages whose examples are run."""
    return sorted({path for pattern in RUNNABLE for path in root.glob(pattern)})


def run_page(page: Path, root: Path) -> str | None:
    """Return None if the page's examples run, or the end of what went wrong."""
    blocks = [
        (b.line, b.text)
        for b in blocks_of(page.read_text(encoding="utf-8"))
        if b.language == "python" and b.run
    ]
    if not blocks:
        return None
    name = page.relative_to(root).as_posix()
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as said:
        child = _PROCESSES.Process(target=_run_blocks, args=(name, blocks, folder, said.name))
        child.start()
        child.join(SECONDS)
        if child.is_alive():
            child.kill()
            return f"{name}: the examples take more than {SECONDS} seconds"
        problem = said.read().decode(errors="replace")
    return None if child.exitcode == 0 else f"{name}: {problem.strip()[-2000:]}"


def _run_blocks(page: str, blocks: list[tuple[int, str]], folder: str, said: str) -> None:
    """Run the blocks of a page in a folder; what they print goes to a file, with the traceback at its end."""
    os.chdir(folder)
    with Path(said).open("ab", buffering=0) as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    space = {"__name__": "__main__"}
    try:
        for line, source in blocks:
            # Padded, so that a traceback names the line of the page.
            exec(compile("\n" * (line - 1) + source, page, "exec"), space)
    except BaseException:
        traceback.print_exc()
        raise SystemExit(1) from None


def broken_links(root: Path, generated: Mapping[str, str] | None = None) -> list[str]:
    """Return one line for each internal link that leads nowhere; `generated` has pages that only the site has."""
    found: list[str] = []
    made = {(root / name).resolve(): text for name, text in (generated or {}).items()}
    for page in sorted({path for pattern in LINKED for path in root.glob(pattern)}):
        for number, target in _links(page.read_text(encoding="utf-8")):
            if _OUTSIDE.match(target):
                continue
            path, _, anchor = target.partition("#")
            goal = (page.parent / path).resolve() if path else page.resolve()
            where = f"{page.relative_to(root).as_posix()}:{number}"
            if goal not in made and not goal.exists():
                found.append(f"{where}: {target} does not exist")
                continue
            if not anchor or goal.suffix != ".md":
                continue
            if anchor not in anchors(made[goal] if goal in made else goal.read_text(encoding="utf-8")):
                found.append(f"{where}: {target}: there is no such heading")
    return found


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines outside fenced blocks."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        match = _FENCE.match(line)
        if not fence and match:
            fence = match.group(1)
        elif fence and line.strip() == fence:
            fence = ""
        elif not fence:
            yield number, line


def _links(text: str) -> Iterator[tuple[int, str]]:
    for number, line in prose(text):
        for match in _LINK.finditer(_CODE_SPAN.sub("`code`", line)):
            yield number, match.group(1) or match.group(2)


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as the usual renderers spell them."""
    found: set[str] = set()
    for _, line in prose(text):
        if line.startswith("#"):
            plain = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            found.add(plain.replace(" ", "-"))
    return found


def main(arguments: list[str]) -> int:
    """Print the problems under the root given (default: here) and return 1 if there are any."""
    root = Path(arguments[0] if arguments else ".").resolve()
    found = broken_links(root, without_audits())
    found += [problem for page in runnable_pages(root) if (problem := run_page(page, root))]
    print("\n".join(found) or "documents: in order")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
