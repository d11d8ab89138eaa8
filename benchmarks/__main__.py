"""`python -m benchmarks [name ...]`: runs every benchmark, or the named ones, and prints their tables."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table


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


def main() -> None:
    chosen = sys.argv[1:] or subjects()
    unknown = sorted(set(chosen) - set(subjects()))
    if unknown:
        sys.exit(f"no benchmark called {', '.join(unknown)}; there are: {', '.join(subjects())}")
    console = Console(width=max(100, Console().width))
    for name in chosen:
        show(name, console)


if __name__ == "__main__":
    main()
