"""A small study, its people with planted values among them, and questions asked of them with the money counted."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from typing import Any

from tools.fuzzing.judging import NUMBER_CANARY, TEXT_CANARY, Answer, BrokenRuleError

import counterveil as cv
from counterveil.errors import CounterveilError

RANGE = (-3, 5)
STUDY = cv.Study(
    treatment="arm",
    outcome=cv.Outcome("score", RANGE),
    covariates={
        "age": cv.Range(18, 90).cut(40, 65),
        "smoker": cv.Binary(),
        "site": cv.Categories(["north", "south", "east"]),
    },
    assignment=cv.Trial(share="1/4"),
    missing={"score": cv.Fill(0), "age": cv.Fill(50), "site": cv.Fill("north")},
)
COLUMNS = STUDY.columns
BUDGET = cv.Budget(1000, "1/2")
OUTCOME_METHODS = ("auto", "difference_in_means", "matching", "stratified", "weighting")
RECORD_METHODS = (
    "auto", "trial", "doubly_robust", "stratified",
    "sample_and_aggregate",
)  # fmt: skip


PUBLISHED = ("outcome_matching", "record_matching", "smooth_matching", "ipw", "cross_fit",
    "record_matching_proved", "ipw_proved", "cross_fit_proved")  # fmt: skip


def people(rng: random.Random, rows: int | None = None) -> dict[str, list[Any]]:
    """Return the columns of a few people; some outcomes are the planted number."""
    count = rng.choice((3, 9, 16, 16, 40, 40, 120)) if rows is None else rows
    low, high = RANGE
    return {
        "arm": [int(place % 4 == 0) for place in range(count)],
        "score": [
            NUMBER_CANARY if rng.random() < 0.1 else round(rng.uniform(low, high), 3) for _ in range(count)
        ],
        "age": [rng.randint(18, 90) for _ in range(count)],
        "smoker": [rng.randint(0, 1) for _ in range(count)],
        "site": [rng.choice(["north", "south", "east"]) for _ in range(count)],
    }


CELLS = (
    None, "", " ", "NA", "nan", "NAN", "NaN ", "-nan", "\u00a0nan", "inf", "-Infinity", "1e400", "1e-400", "1e5",
    "0x1p3",
    "1_000", "١", "1,5", "true", "TRUE", TEXT_CANARY, f"{TEXT_CANARY}\x1b[2J", f"{NUMBER_CANARY}", NUMBER_CANARY,
    -NUMBER_CANARY * 10, float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 10**30, 10**400, -(2**63), 2**64,
    -0.0,
    True, False, b"\xff", [1], {"a": 1}, (1, 2), object, 5e-324, "\x00", "\ud800", "x" * 5000, "2020-01-01",
)  # fmt: skip


def cell(rng: random.Random) -> Any:
    """Return a cell that a reader may stumble over."""
    return rng.choice(CELLS)


def question(rng: random.Random) -> tuple[str, dict[str, Any]]:
    """Return the name and the arguments of a sound question."""
    protects = rng.choice(("outcome", "record"))
    asked: dict[str, Any] = {"protects": protects, "epsilon": rng.choice(("1", 0.1, "1/3", 5, 0.01, 50))}
    kind = rng.random()
    if kind < 0.75:
        asked["method"] = rng.choice(OUTCOME_METHODS if protects == "outcome" else RECORD_METHODS)
        asked["estimand"] = rng.choice(("ATE", "ATE", "ATT", "ATC"))
        asked["delta"] = rng.choice((0, 0, "1e-6"))
        return "ate", asked
    if kind < 0.8:
        given = {"epsilon": asked["epsilon"], "delta": rng.choice((0, "1e-6")), "accept": "unproved"}
        return f"published.{rng.choice(PUBLISHED)}", given
    if kind < 0.9:
        return "groups", asked | {"by": rng.choice((["smoker"], {"age": (30, 60)}, ["site", "smoker"]))}
    return "cate", {"protects": "record", "epsilon": asked["epsilon"], "delta": "1e-6"}


def warm_up() -> None:
    """Ask each method once, so that what is compiled at first use is not timed; None is returned."""
    data = people(random.Random(0), 120)
    asked = [("outcome", method) for method in OUTCOME_METHODS] + [
        ("record", method) for method in RECORD_METHODS
    ]
    for protects, method in asked:
        with suppress(CounterveilError):
            ask(data, STUDY, "ate", {"protects": protects, "method": method, "epsilon": 5})
    for name, arguments in (("cate", {"delta": "1e-6"}), ("groups", {"by": ["site"]})):
        ask(data, STUDY, name, {"protects": "record", "epsilon": 50} | arguments)


def ask(source: Any, study: Any, name: str, arguments: dict[str, Any]) -> Answer:
    """Return the texts of an answer, its ledger's entries among them; a charge without an answer breaks a rule."""
    with cv.open_ledger(":memory:", create=True) as ledger:
        ledger.register("people", BUDGET)
        try:
            with cv.Session(source, study, ledger=ledger, dataset="people") as session:
                module, _, form = name.rpartition(".")
                if module:
                    result = getattr(cv.published, form)(session, **arguments)
                else:
                    result = getattr(session, name)(**arguments)
        except CounterveilError as error:
            if ledger.account("people").requests:
                raise BrokenRuleError(f"charged without an answer: {error.code}: {error.got[:80]}") from None
            raise
        except Exception:
            if ledger.account("people").requests:
                raise BrokenRuleError("charged without an answer: an uncoded error") from None
            raise
        account = ledger.account("people")
        entries = [entry.kind for entry in ledger.entries()]
        if account.requests != 1 or entries.count("settle") != 1 or account.spent.epsilon <= 0:
            raise BrokenRuleError(f"an answer, and these entries: {entries}")
        texts = [json.dumps(dict(entry.facts), default=str) for entry in ledger.entries()]
    texts += [str(result), repr(account), json.dumps(result.to_dict())]
    return Answer(texts)
