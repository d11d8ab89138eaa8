"""The price of the ledger: one request beside a bare synced insert, and whether it grows with the book."""

import csv
import sqlite3
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from counterveil.accounting import Ledger, Uses, open_ledger
from counterveil.accounting.accounts import seal
from counterveil.accounting.composition import Levels
from counterveil.datasets import simulated_trial
from counterveil.federation.messages import Ask, Reply, SiteRequest
from counterveil.federation.site import Site
from counterveil.federation.site_files import SiteFile, SitePolicy
from counterveil.privacy import Budget, Charge, LaplaceEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")

TITLE = "Ledger: CPU per request (reserve + settle), per opening, and per answer of a site"
ROUNDS = 5
PER_ROUND = 60
SMALL, LARGE = 10, 10_000
FEW, MANY = 100, 100_000
ROWS = 200
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


def cpu_ms(action: Callable[[str], None], label: str, per_round: int = PER_ROUND) -> float:
    """CPU milliseconds of one action, the smallest of a few rounds."""
    best = float("inf")
    for round_number in range(ROUNDS):
        start = time.process_time()
        for number in range(per_round):
            action(f"{label} {round_number} {number}")
        best = min(best, time.process_time() - start)
    return 1000 * best / per_round


def fill_quickly(ledger: Ledger, requests: int, uses: Uses) -> None:
    """Append requests of one study in one transaction, as `reserve` and `settle` write them."""
    levels = Levels.granted(Budget(1), None, None)
    cost, totals = levels.cost(PRICE), levels.nothing()
    day = {"at": "2026-01-01", "asked_by": "somebody", "fingerprint": "f"}
    with ledger._writing():
        last, registered = ledger._store.last(), ledger._store.registration("records")
        seq, previous = last.seq, last.hash
        for number in range(1, requests + 1):
            totals = totals.after(uses.unit, cost, False)
            reserve = totals.to_dict() | {
                "charge": PRICE.to_dict(),
                "cost": cost.to_dict(),
                "access_policy": None,
                "uses": uses.to_dict(),
                "description": {"text": "x" * 600},
                "simulated": False,
                "registered": registered.hash,
                "study": {"epsilon": str(Fraction(number, 10**6)), "delta": "0"},
            }
            for kind, facts in (("reserve", reserve), ("settle", {"answer": ANSWER * 20})):
                row = seal(seq + 1, previous, kind, "records", f"study@{number}", facts | day)
                ledger._store.append(row)
                seq, previous = row.seq, row.hash


def filled_site(folder: Path, entries: int) -> tuple[Site, Uses]:
    """A site with a table of a few rows and a ledger of `entries` entries, and what its study uses."""
    trial = simulated_trial(ROWS, 0.2, outcome="continuous", seed=1)
    folder.mkdir()
    with (folder / "records.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(trial.frame)
        writer.writerows(zip(*(column.tolist() for column in trial.frame.values()), strict=True))
    policy = SitePolicy.from_document({"estimators": ["difference_in_means"], "study_epsilon": "1"})
    places = {"data": str(folder / "records.csv"), "table": None, "ledger": str(folder / "ledger.db")}
    file = SiteFile(folder, "North", dataset="records", coordinator="127.0.0.1:9092", policy=policy, **places)
    file.declaration.write_text(trial.study.to_toml())
    uses = Uses(Unit.OUTCOME, "ate", "difference_in_means", trial.study.treatment, trial.study.outcome)
    with open_ledger(file.ledger, create=True) as ledger:
        ledger.register("records", Budget(1), access_policy=policy.access_policy(trial.study))
        fill_quickly(ledger, entries // 2, uses)
    return Site(file, clock=lambda: 0.0), uses


def site_ms(folder: Path, entries: int) -> tuple[float, float]:
    """CPU milliseconds of one answer of a site: the whole, and what it asks of its ledger."""
    site, uses = filled_site(folder / f"site-{entries}", entries)
    declaration = site.study.to_dict()
    question = Ask(method="difference_in_means", protects="outcome", epsilon="0.001")

    def whole(label: str) -> None:
        request_id = label.replace(" ", "-")
        message = SiteRequest("study", request_id, "North", declaration, question, 1.0, None)
        reply = Reply.from_text(site.answer(message.to_text()))
        if reply.result is None:
            raise RuntimeError(reply.refusal)

    def part(label: str) -> None:
        """Check the head, look up the request and its study, reserve and settle, read the head again."""
        with open_ledger(site.file.ledger) as ledger:
            head = ledger.last_entry()
            ledger.check_contains(*head)
        with open_ledger(site.file.ledger) as ledger:
            ledger.state_of("records", f"study@{label}")
        with open_ledger(site.file.ledger) as ledger:
            ledger.study_spent("records", "study")
        with open_ledger(site.file.ledger) as ledger:
            kept = ledger.reserve(
                "records", f"study@{label}", PRICE, uses=uses, fingerprint="f", description={}
            )
            ledger.settle(kept, ANSWER)
        with open_ledger(site.file.ledger) as ledger:
            ledger.last_entry()

    return cpu_ms(whole, "whole", per_round=4), cpu_ms(part, "part", per_round=4)


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
        sites = {entries: site_ms(place, entries) for entries in (FEW, MANY)}
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
    for part, few, many in zip(("the whole", "its ledger's part"), sites[FEW], sites[MANY], strict=True):
        rows += [
            {"what": f"a site's answer, {part}, {entries} entries", "CPU ms": f"{cost:.1f}", "ratio": ""}
            for entries, cost in ((FEW, few), (MANY, many))
        ]
        against = f"{MANY} against {FEW} entries (at most 2)"
        rows.append({"what": against, "CPU ms": "", "ratio": f"{many / few:.2f}"})
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
