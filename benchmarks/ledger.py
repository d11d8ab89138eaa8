"""The price of the ledger: one request beside a bare synced insert, and whether it grows with the book."""

import sqlite3
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from counterveil.accounting import Ledger, Uses, open_ledger
from counterveil.privacy import Budget, Charge, LaplaceEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")

TITLE = "Ledger: CPU per request (reserve + settle)"
ROUNDS = 5
PER_ROUND = 60
SMALL, LARGE = 10, 10_000
ANSWER = '{"estimate": 1.25, "interval": [0.5, 2.0]}'
PRICE = Charge(Budget("1e-6"), (LaplaceEvent(Fraction(1, 10**6)),))


def bare_table(path: Path) -> sqlite3.Connection:
    """A table with the same durability and nothing else."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE entries (seq INTEGER PRIMARY KEY, body TEXT)")
    return database


def request(ledger: Ledger, request_id: str) -> None:
    kept = ledger.reserve(
        "trial", request_id, PRICE, uses=USES, fingerprint="f", description={"method": "mean"}
    )
    ledger.settle(kept, ANSWER)


def filled(path: Path, entries: int) -> Ledger:
    """A ledger of about `entries` entries; filled without syncs, measured with them."""
    ledger = open_ledger(path, create=True)
    ledger.register("trial", Budget(1))
    ledger._store._run("PRAGMA synchronous = OFF")
    for number in range(entries // 2):
        request(ledger, f"filling {number}")
    ledger._store._run("PRAGMA synchronous = FULL")
    return ledger


def cpu_ms(action: Callable[[str], None], label: str) -> float:
    """CPU milliseconds of one action, the smallest of a few rounds."""
    best = float("inf")
    for round_number in range(ROUNDS):
        start = time.process_time()
        for number in range(PER_ROUND):
            action(f"{label} {round_number} {number}")
        best = min(best, time.process_time() - start)
    return 1000 * best / PER_ROUND


def run() -> list[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        bare = bare_table(place / "bare.db")
        insert = "INSERT INTO entries (body) VALUES (?)"
        bare_ms = cpu_ms(lambda label: bare.execute(insert, (label + "x" * 600,)), "bare")
        bare.close()
        costs = {}
        for entries in (SMALL, LARGE):
            with filled(place / f"{entries}.db", entries) as ledger:
                costs[entries] = cpu_ms(lambda label, ledger=ledger: request(ledger, label), "timed")
    rows = [{"what": "one bare synced insert", "CPU ms": f"{bare_ms:.3f}", "ratio": "1.0"}]
    rows += [
        {
            "what": f"one request (2 synced commits), {entries} entries",
            "CPU ms": f"{cost:.3f}",
            "ratio": f"{cost / bare_ms:.1f}",
        }
        for entries, cost in costs.items()
    ]
    growth = costs[LARGE] / costs[SMALL]
    rows.append({"what": f"{LARGE} against {SMALL} entries", "CPU ms": "", "ratio": f"{growth:.2f}"})
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
