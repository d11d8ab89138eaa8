"""Chains whose every hash is right, forged from nothing: what verification says of their order and form."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from counterveil.accounting import AccessPolicy, Uses
from counterveil.accounting.accounts import GENESIS, digest, seal
from counterveil.accounting.composition import Levels
from counterveil.accounting.ledger import verify_rows
from counterveil.privacy import Budget, Charge, PureEvent, Unit

BUDGET = Budget(1)
USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")
TENTH = Charge(Budget("0.1"), (PureEvent(Fraction(1, 10)),))


def chain(*entries):
    """Return rows that follow each other; an entry is its kind, data set, request and facts."""
    rows, previous = [], GENESIS
    registered = {}
    for seq, (kind, dataset, request, facts, *name) in enumerate(entries, 1):
        if kind in ("reserve", "publish"):
            facts = facts | {"registered": registered.get(dataset, "")}
        rows.append(seal(seq, previous, kind, dataset, request, facts, *name))
        previous = rows[-1].hash
        if kind == "register":
            registered[dataset] = previous
    return rows


def register(dataset="trial"):
    return (
        "register",
        dataset,
        "",
        Levels.granted(BUDGET, None, None).to_dict() | {"access_policy": None, "note": ""},
    )


def reserve(request="one", requests=1, dataset="trial"):
    levels = Levels.granted(BUDGET, None, None)
    cost, totals = levels.cost(TENTH), levels.nothing()
    for _ in range(requests):
        totals = totals.after(USES.unit, cost, False)
    facts = {
        "charge": TENTH.to_dict(),
        "cost": cost.to_dict(),
        "access_policy": AccessPolicy.of_study(USES).to_dict(),
    }
    facts |= {"uses": USES.to_dict(), "fingerprint": "f", "study": None}
    return ("reserve", dataset, request, totals.to_dict() | facts)


def publish(*columns, place=1):
    return ("publish", "trial", "", {"public": list(columns)}, str(place))


def after_publishing(*columns):
    """Return the first request of an account with published columns."""
    policy = AccessPolicy.of_study(USES, published=columns)
    return changed(reserve(), access_policy=policy.to_dict())


def changed(entry, **facts):
    """Return an entry whose facts differ."""
    return (*entry[:3], entry[3] | facts)


def settle(request="one"):
    return ("settle", "trial", request, {"answer": "1", "fingerprint": "f"})


def release(name="a", request="one"):
    return ("release", "trial", request, {"bounds": [], "values": [], "fingerprint": "f"}, name)


def problem(rows):
    return verify_rows(rows, None, None).problem


def test_a_chain_in_order_has_no_problem():
    first = (register(), reserve(), release(), release("b"), settle(), reserve("two", 2))
    rows = chain(*first, register("other"), release(request="two"), settle("two"))
    report = verify_rows(rows, None, rows[2].hash)
    assert (report.problem, report.entries, report.head_hash) == (None, 9, rows[-1].hash)


def test_published_columns_are_in_the_policy_that_the_first_request_fixes():
    first = (register(), publish("age"), publish("sex", place=2))
    assert problem(chain(*first, after_publishing("age", "sex"))) is None
    assert problem(chain(*first, after_publishing("age"))) == (
        "entry 4: its access policy is not that of its account"
    )


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ((register(), reserve(), publish("age")), "entry 3: what is public was fixed before"),
        (
            (changed(register(), access_policy=AccessPolicy().to_dict()), publish("age")),
            "entry 2: what is public was fixed before",
        ),
        (
            (register(), publish("age"), publish("sex", place=3)),
            "entry 3: it is not the next that makes columns public",
        ),
        ((register(), publish("sex", "age")), "entry 2: its columns are not in order"),
        ((publish("age"),), "entry 1: data set 'trial' was not registered before"),
        ((register(), register()), "entry 2: data set 'trial' is registered a second time"),
        ((register(), reserve(), reserve("one", 2)), "entry 3: request 'one' is reserved a second time"),
        (
            (register(), reserve(), settle(), settle()),
            "entry 4: request 'one' is settled a second time",
        ),
        ((register(), settle()), "entry 2: request 'one' was not reserved before"),
        ((register(), release()), "entry 2: request 'one' was not reserved before"),
        ((register(), reserve(), release(), release()), "entry 4: request 'one' releases 'a' a second time"),
        (
            (register(), reserve(), settle(), release()),
            "entry 4: request 'one' is answered before it releases this",
        ),
        ((register("other"), reserve()), "entry 2: data set 'trial' was not registered before"),
        ((register(), reserve(requests=2)), "entry 2: its running total is wrong"),
        ((register(), ("refund", "trial", "one", {})), "entry 2: its kind 'refund' is unknown"),
    ],
)
def test_what_no_ledger_writes_is_named(entries, expected):
    assert problem(chain(*entries)) == expected


def test_an_entry_of_another_chain_does_not_follow():
    rows = chain(register(), reserve())
    stranger = chain(register("other"), reserve())[1]
    assert problem([rows[0], stranger]) == "entry 2: it does not follow the entry before it"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (lambda facts: json.dumps(facts, indent=1), "its content is not in canonical form"),
        (lambda facts: json.dumps([facts]), "its content is not in canonical form"),
        (lambda facts: "register", "its content is not JSON"),
    ],
)
def test_content_in_another_form_is_named_although_its_hash_is_right(body, expected):
    row = chain(register())[0]
    text = body(json.loads(row.body))
    assert problem([replace(row, body=text, hash=digest(GENESIS, text))]) == f"entry 1: {expected}"


HIV = replace(USES, covariates=("hiv",))
RECORD = replace(USES, unit=Unit.RECORD)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (
            (register(), reserve(), changed(reserve("two", 2), uses=HIV.to_dict())),
            "entry 3: the access policy of its account does not allow it (CV-L041)",
        ),
        (
            (
                register(),
                reserve(),
                changed(reserve("two", 2), access_policy=AccessPolicy.of_study(HIV).to_dict()),
            ),
            "entry 3: its access policy is not that of its account",
        ),
        (
            (
                changed(register(), access_policy=AccessPolicy().to_dict()),
                changed(reserve(), access_policy=None),
            ),
            "entry 2: the access policy of its account does not allow it (CV-L041)",
        ),
        (
            (changed(register(), access_policy=AccessPolicy(public=["treated"]).to_dict()), reserve()),
            "entry 2: its access policy is not that of its account",
        ),
        # An answer about records that is counted as one about outcomes, and an unproved one that is not counted.
        (
            (register(), reserve(), changed(reserve("two", 2), uses=RECORD.to_dict())),
            "entry 3: its running total is wrong",
        ),
        (
            (
                changed(register(), access_policy=AccessPolicy(public=["treated"], unproved=True).to_dict()),
                changed(reserve(), access_policy=None, uses=replace(USES, unproved=True).to_dict()),
            ),
            "entry 2: its running total is wrong",
        ),
    ],
)
def test_a_request_that_the_access_policy_refuses_is_found(entries, said):
    assert problem(chain(*entries)) == said
