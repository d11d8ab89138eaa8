"""Checks that documents are short: words of each folder, and the length of their sentences.

python -m tools.check_prose            # words, mean words of a sentence, share of long ones; exit code 1 over a limit
python -m tools.check_prose . OTHER    # beside another tree, such as a clone of an older commit

Words are counted with code and tables, sentences without. A page counts toward the first folder that fits.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LIMITS = {
    r"README\.md": 600,
    r"CHANGELOG\.md": 1_500,
    r"docs/tutorials/": 4_500,
    r"docs/how-to/": 14_000,
    r"docs/explanation/": 9_050,
    r"docs/reference/(api|cli|errors)\.md": 47_000,
    r"docs/reference/": 7_000,
    r"docs/decisions/": 7_000,
    r"docs/": 500,
    r".*\.proof\.md": 42_000,
    r"experiments/": 15_639,
    r"benchmarks/": 800,
    r"": 5_000,
}
MEAN_WORDS, LONG, LONG_SHARE = 18.0, 30, 0.07
_NOT_OURS = {"build", "dist", "node_modules"}
_FENCED = re.compile(r"^ *(```+|~~~+).*?^ *\1", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"(?:[-*+]|\d+\.) ")
_END = re.compile(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bal\.)[\"')\]*]*\s+(?=[\"'(\[*]*[A-Z0-9])")


@dataclass
class Folder:
    """The words of a folder's pages, its limit, and the number of words of each sentence."""

    limit: int
    words: int = 0
    sentences: list[int] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """Mean words of a sentence."""
        return sum(self.sentences) / max(len(self.sentences), 1)

    @property
    def long(self) -> float:
        """Share of sentences of more than LONG words."""
        return sum(count > LONG for count in self.sentences) / max(len(self.sentences), 1)

    @property
    def over(self) -> bool:
        """Whether a limit is exceeded."""
        return self.words > self.limit or self.mean > MEAN_WORDS or self.long > LONG_SHARE


def measured(root: Path) -> dict[str, Folder]:
    """Return the folders of a checkout by their patterns."""
    found = {pattern: Folder(limit) for pattern, limit in LIMITS.items()}
    for path in sorted(root.rglob("*.md")):
        name = path.relative_to(root)
        if not any(part.startswith(".") or part in _NOT_OURS for part in name.parts):
            folder = found[next(pattern for pattern in LIMITS if re.match(pattern, name.as_posix()))]
            text = path.read_text(encoding="utf-8")
            folder.words += words(text)
            folder.sentences += [count for sentence in sentences(text) if (count := words(sentence)) > 2]
    return found


def _name(pattern: str) -> str:
    return pattern.replace("\\", "") or "other"


def words(text: str) -> int:
    """Return how many parts between blanks hold a letter or a digit."""
    return sum(any(map(str.isalnum, part)) for part in text.split())


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences outside code, comments, tables and headings."""
    text = re.sub(r"<!--.*?-->", "", _FENCED.sub("", text), flags=re.DOTALL)
    paragraph = ""
    for line in [*_LINK.sub(r"\1", re.sub(r"`[^`\n]*`", "Code", text)).splitlines(), ""]:
        bare = line.strip()
        apart = not bare or bare.startswith(("|", "#", ">>>")) or line.startswith("    ")
        if apart or _ITEM.match(bare):
            yield from _END.split(paragraph)
            paragraph = ""
        if not apart:
            paragraph += " " + _ITEM.sub("", bare, count=1) if not paragraph else " " + bare
    yield from _END.split(paragraph)


def main(arguments: list[str]) -> int:
    """Print every folder of every tree beside its limit and return 1 if one of the first tree is over."""
    trees = [measured(Path(root)) for root in arguments or ["."]]
    for pattern, limit in LIMITS.items():
        cells = [
            f"{tree[pattern].words:8,} {tree[pattern].mean:5.1f} {tree[pattern].long:6.1%}" for tree in trees
        ]
        mark = "   OVER" if trees[0][pattern].over else ""
        print(f"{_name(pattern):38} of {limit:7,} {'  |  '.join(cells)}{mark}")
    totals = [sum(one.words for one in tree.values()) for tree in trees]
    print(
        f"{'all':38} of {sum(LIMITS.values()):7,} " + "  |  ".join(f"{total:8,}{'':13}" for total in totals)
    )
    return int(any(one.over for one in trees[0].values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
