"""`counterveil demo`: the whole way on real data, from a table to a private effect and its ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    folder: Annotated[Path, typer.Option(help="Where the demo's ledger and report are kept.")] = Path(
        "demo-output"
    ),
) -> None:
    """Estimate what a job-training programme did to earnings, at epsilon 1, and show the ledger."""
    import counterveil as cv
    from counterveil.cli.ledger import print_accounts
    from counterveil.datasets import lalonde
    from counterveil.report.text import wrapped

    folder.mkdir(parents=True, exist_ok=True)
    training = lalonde()
    told = [f"{training.name}: {training.source}", training.notes, "Only outcomes are private here."]
    print("\n".join(line for each in told for line in wrapped(each)) + "\n")
    ledger = folder / "ledger.db"
    if not ledger.exists():
        with cv.open_ledger(ledger, create=True) as book:
            book.register("lalonde", cv.Budget(epsilon=3))
    with cv.Curator(training.frame, training.study, ledger=ledger, dataset="lalonde") as curator:
        # A named request: run the demo again and the ledger resends the same answer, free of charge.
        result = curator.ate(protects="outcome", epsilon=1, request_id="demo")
        report = result.to_html(folder / "report.html")
        print(result)
        print(f"\nReport written to {report}\n")
        print_accounts(curator.ledger)
