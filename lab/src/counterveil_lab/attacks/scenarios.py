"""Replay of more than one question: an account that two studies use, and a site that gets hostile messages."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from counterveil.accounting import open_ledger
from counterveil.audit import AuditReport, AuditRow, Finding, Quantity
from counterveil.audit.protocols import judge
from counterveil.data import Binary, Range, Study, open_table
from counterveil.federation.messages import Ask, Request
from counterveil.federation.setup import make_site
from counterveil.federation.site import Site
from counterveil.mechanisms import BitSource, SeededNoise
from counterveil.privacy import Budget
from counterveil.questions import Curator
from counterveil.settings import Stratified
from counterveil_lab.attacks.asking import (
    Question,
    Seen,
    Watch,
    WatchedCurator,
    ask_curator,
    noted_error,
    overheard,
)

Columns = dict[str, Any]
Play = Callable[[Columns, Watch, BitSource, bool], Seen]
_ROWS = 40


@dataclass(frozen=True)
class Scenario:
    """What is done to two neighbouring data sets, with everything that whoever does it can see.

    `play(data, watch, source, open_handed)` does it; what it shows must be the same on both. Open-handed it skips the
    rule that is under test, and the two must then differ: this is the power of the audit.
    """

    name: str
    unit: str
    pair: tuple[Columns, Columns]
    play: Play

    def examine(self, seed: int) -> AuditReport:
        """Return the audit: the channels in which the neighbours differ, with the rule and without it."""
        ours, theirs = (self._finding(seed, open_handed) for open_handed in (False, True))
        row = AuditRow("replay", ours, theirs, judge(ours, theirs))
        return AuditReport(self.name, Budget(1), (row,), 1, 1.0)

    def _finding(self, seed: int, open_handed: bool) -> Finding:
        found = self.differences(seed, open_handed)
        witness = "; ".join(found) or "nothing differs"
        return Finding("replay", Quantity.DIFFERENCES, len(found), 0.0, 1.0, witness)

    def differences(self, seed: int, open_handed: bool = False) -> list[str]:
        """Return the channels in which the two data sets look different though they release the same."""
        first = Watch()
        seen = self.play(self.pair[0], first, SeededNoise(seed), open_handed)
        second = Watch(forced=first.releases)
        return seen.differences(self.play(self.pair[1], second, SeededNoise(seed), open_handed))


# One account, two studies: what the first protects, the second must not show.


_AGE = {"age": Range(18, 90)}


def _patients() -> Columns:
    draw = np.random.default_rng(7)
    treated = draw.permutation([0, 1] * (_ROWS // 2))
    return {
        "treated": treated,
        "relapse": draw.binomial(1, 0.4, _ROWS).astype(float),
        "cost": draw.uniform(0, 100, _ROWS),
        "age": draw.uniform(20, 80, _ROWS),
    }


def _other_relapse(columns: Columns) -> Columns:
    relapse = columns["relapse"].copy()
    relapse[0] = 1 - relapse[0]
    return columns | {"relapse": relapse}


def _effect(curator: Curator, **words: Any) -> Any:
    return curator.ate(protects="outcome", **words)


def _by_relapse(curator: Curator, **words: Any) -> Any:
    return curator.groups(by="relapse", protects="outcome", method="difference_in_means", **words)


def _two_studies(data: Columns, watch: Watch, source: BitSource, open_handed: bool) -> Seen:
    """Ask about an outcome, then declare it a covariate whose balance and groups would be printed."""
    first = Study("treated", "relapse", (0, 1), _AGE, control=0, randomised=True)
    second = Study("treated", "cost", (0, 100), _AGE | {"relapse": Binary()}, control=0, randomised=True)
    channels: dict[str, str] = {}
    with overheard(channels), open_ledger(":memory:", create=True) as ledger:
        for step, (study, ask) in enumerate(((first, _effect), (second, _effect), (second, _by_relapse))):
            name = f"people {step}" if open_handed else "people"
            with noted_error(channels, f" {step}"):
                if not any(account.dataset == name for account in ledger.datasets()):
                    ledger.register(name, Budget(100))
                with WatchedCurator(data, study, ledger=ledger, dataset=name, noise=source) as curator:
                    question = Question(study, ask, Budget(1))
                    ask_curator(question, curator.watch(watch), channels, f" {step}")
    return Seen(channels)


# A site and a coordinator who asks for more than the site allows.


_SITE_STUDY = Study("t", "y", (0, 1), {"sex": Binary()}, control=0, treated=1, randomised=True)
_COLUMNS = {"t": "INTEGER", "y": "DOUBLE", "sex": "INTEGER", "case_no": "VARCHAR"}
_SETTINGS = {"pairing": "single", "sensitivity": "smooth"}
_SPELLINGS = ("order", "order='case_no'#", " order", "order ", "pairing', order='case_no")


def _cases() -> Columns:
    places = np.arange(_ROWS)
    return {
        "t": places % 2,
        "y": places % 5 / 4,
        "sex": places % 3 % 2,
        "case_no": places.astype(str).astype(object),
    }


def _incomplete(columns: Columns) -> Columns:
    numbers = columns["case_no"].copy()
    numbers[0] = None
    return columns | {"case_no": numbers}


@contextmanager
def _site(data: Columns) -> Iterator[Site]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = str(folder / "data.duckdb")
        with duckdb.connect(place) as database:
            names = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
            database.execute(f"CREATE TABLE cases ({names})")
            rows = [tuple(row) for row in zip(*(column.tolist() for column in data.values()), strict=True)]
            database.executemany("INSERT INTO cases VALUES (?, ?, ?, ?)", rows)
        (folder / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\n")
        rules = {"estimators": ["stratified"], "protects": ["record"], "study_epsilon": "100"}
        document = {
            "name": "North",
            "data": place,
            "table": "cases",
            "coordinator": "127.0.0.1:9092",
            "policy": rules,
        }
        file = make_site(folder / "site", document, _SITE_STUDY, folder / "ca.crt", Budget(100))
        yield Site(file, clock=lambda: 1000.0)


def _message(request_id: str, settings: dict[str, Any]) -> str:
    """Return a request as it travels, with settings that a coordinator of ours would not send."""
    question = Ask("stratified", "record", "1")
    request = Request("s1", request_id, "North", _SITE_STUDY.to_dict(), question, deadline=4e9)
    facts = json.loads(request.to_text())
    facts["ask"]["settings"] = settings
    return json.dumps(facts)


def _hostile_messages(data: Columns, _: Watch, source: BitSource, open_handed: bool) -> Seen:
    """Send a site settings that name a private column in several spellings; its replies must not tell about it."""
    channels: dict[str, str] = {}
    with _site(data) as site, overheard(channels):
        for place, spelling in enumerate(_SPELLINGS):
            reply = json.loads(site.answer(_message(f"r{place}", _SETTINGS | {spelling: "case_no"})))
            # A reply that should have been a refusal has noise of its own, which tells nothing.
            channels[f"reply {place}"] = (
                f"refusal {reply['refusal']}, answered: {reply['result'] is not None}"
            )
        if open_handed:
            with noted_error(channels):
                settings = Stratified(pairing="single", sensitivity="smooth", order="case_no")
                rows, budget = open_table(site.file.data, site.file.table), Budget(1)
                with Curator(rows, _SITE_STUDY, budget=budget, noise=source, attach=False) as curator:
                    curator.ate(protects="record", epsilon=1, method="stratified", settings=settings)
    channels.pop("log", None)  # stays at the site
    return Seen(channels)


SCENARIOS: dict[str, Scenario] = {
    one.name: one
    for one in (
        Scenario("account/two studies", "outcome", (_patients(), _other_relapse(_patients())), _two_studies),
        Scenario(
            "federation/hostile settings", "record", (_cases(), _incomplete(_cases())), _hostile_messages
        ),
    )
}
