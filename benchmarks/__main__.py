"""`python -m benchmarks [name ...]`: runs every benchmark, or the named ones, and prints their tables.

`growth` comes last and takes options of its own: what follows its name is for it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.growth import command as growth

GROWTH = "growth"


def subjects() -> list[str]:
    folder = Path(__file__).parent
    return sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))


def show(name: str, console: Console) -> None:
    module = import_module(f"benchmarks.{name}")
    rows: list[dict[str, str]] = module.run()
    table = Table(title=f"{name}: {module.TITLE}", title_justify="left")
    for heading in rows[0]:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row.values())
    console.print(table)


def main() -> int:
    words = sys.argv[1:] or [*subjects(), GROWTH]
    place = words.index(GROWTH) if GROWTH in words else len(words)
    chosen, options = words[:place], words[place + 1 :]
    unknown = sorted(set(chosen) - set(subjects()))
    if unknown:
        known = ", ".join([*subjects(), GROWTH])
        sys.exit(f"no benchmark called {', '.join(unknown)}; there are: {known}")
    console = Console(width=max(100, Console().width))
    for name in chosen:
        show(name, console)
    return growth.main(options) if place < len(words) else 0


if __name__ == "__main__":
    sys.exit(main())
