"""Finding C9: a long epsilon was accepted and written as a fraction that the reader refused, for ever."""

import json
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.thinned import examples

from counterveil.accounting import Answered, Uses, open_ledger
from counterveil.errors import CounterveilError
from counterveil.privacy import (
    ApproximateEvent,
    Budget,
    Charge,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    ResponseEvent,
    Unit,
    event_from_dict,
    event_to_dict,
)

LONG, TOO_LONG = "0." + "7" * 250, "0." + "7" * 302
numbers = st.one_of(
    st.fractions(min_value=Fraction(1, 10**9), max_value=50),
    st.decimals(min_value="1e-120", max_value=99, places=120),
    st.integers(1, 10**130),
    st.text("0123456789.e-/", min_size=1, max_size=320),
    st.integers(1, 320).map(lambda digits: "0." + "7" * digits),
    st.integers(-450, 450).map(lambda power: f"1e{power}"),
)

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")
texts = st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.integers(0, 20) | texts, inner, max_size=4)
    ),
    max_leaves=12,
)
descriptions = st.dictionaries(st.integers(0, 20) | texts, values, max_size=5)


def as_read(value):
    return json.loads(json.dumps(value))


@given(numbers, numbers)
@settings(max_examples=150)
def test_every_budget_that_is_accepted_is_read_back(epsilon, delta):
    try:
        budget = Budget(epsilon, delta)
    except CounterveilError:
        return
    assert Budget.from_dict(as_read(budget.to_dict())) == budget


@given(st.fractions(min_value=0), st.fractions(min_value=0), st.integers(2, 9), st.integers(1, 10**1200))
@settings(max_examples=100)
def test_every_draw_that_is_accepted_is_read_back(size, delta, categories, divisor):
    size = size / divisor
    draws = (PureEvent(size), LaplaceEvent(size), GaussianEvent(size), ResponseEvent(size, categories))
    for event in (*draws, ApproximateEvent(size, delta)):
        try:
            facts = event_to_dict(event)
        except CounterveilError:
            continue
        assert event_from_dict(as_read(facts)) == event


@given(numbers, descriptions, values, st.text(max_size=30))
@settings(max_examples=examples(50, 150))
def test_every_request_that_is_accepted_verifies_and_is_answered_again(epsilon, description, answer, note):
    with open_ledger(":memory:") as ledger:
        ledger.register("trial", Budget("1e99"), note=note)
        asked = {"uses": USES, "fingerprint": "f", "description": description}
        try:
            price = Budget(epsilon)
            kept = ledger.reserve("trial", "r", Charge(price, (PureEvent(price.epsilon),)), **asked)
        except CounterveilError:
            assert ledger.last_entry()[0] == 1
            return
        ledger.settle(kept, json.dumps(answer))
        report = ledger.verify()
        assert report.ok, report.problem
        assert ledger.entries()[1].facts["description"] == as_read(description)
        assert ledger.entries()[0].facts["note"] == note
        again = ledger.reserve("trial", "r", Charge(price, (PureEvent(price.epsilon),)), **asked)
        assert again == Answered(json.dumps(answer))
        assert json.loads(again.answer) == as_read(answer)


def test_a_long_epsilon_is_answered_and_verifies_and_one_of_304_characters_is_refused(tmp_path):
    with pytest.raises(CounterveilError, match="CV-B007"):
        Budget(TOO_LONG)
    price = Budget(LONG)
    charge = Charge(price, (PureEvent(price.epsilon),))
    with open_ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.register("trial", Budget(3))
        ledger.settle(ledger.reserve("trial", "r", charge, uses=USES, fingerprint="f", description={}), "1")
        assert ledger.verify().ok
        assert ledger.reserve("trial", "r", charge, uses=USES, fingerprint="f", description={}) == Answered(
            "1"
        )


@pytest.mark.parametrize("epsilon", ["1e-200", "1e200", Fraction(10**5000), Fraction(1, 10**350)])
def test_a_budget_beyond_any_use_is_refused(epsilon):
    with pytest.raises(CounterveilError, match=r"CV-B007|CV-P003"):
        Budget(epsilon)


def test_a_draw_of_thousands_of_digits_is_refused_before_anything_is_spent(tmp_path):
    with open_ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.register("trial", Budget(3))
        charge = Charge(Budget(1), (PureEvent(Fraction(10**5000 - 1, 10**5000)),))
        with pytest.raises(CounterveilError, match="CV-B007"):
            ledger.reserve("trial", "r", charge, uses=USES, fingerprint="f", description={})
        assert ledger.account("trial").requests == 0
        assert ledger.verify().ok


def test_a_fraction_with_a_huge_exponent_is_refused_at_once():
    program = (
        "import resource\n"
        "from counterveil.privacy import event_from_dict\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (60, 60))\n"
        "event_from_dict({'kind': 'pure', 'epsilon': '1e999999999'})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "CV-B007" in done.stderr


@pytest.mark.parametrize("levels", [200, 100_000])
def test_a_description_without_bottom_is_refused_before_anything_is_spent(tmp_path, levels):
    deep = []
    for _ in range(levels):
        deep = [deep]
    charge = Charge(Budget(1), (PureEvent(Fraction(1)),))
    with open_ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.register("trial", Budget(3))
        with pytest.raises(CounterveilError, match="CV-L014"):
            ledger.reserve("trial", "r", charge, uses=USES, fingerprint="f", description={"deep": deep})
        assert ledger.account("trial").requests == 0


def test_a_description_of_megabytes_is_refused_before_anything_is_spent(tmp_path):
    charge = Charge(Budget(1), (PureEvent(Fraction(1)),))
    with open_ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.register("trial", Budget(3))
        with pytest.raises(CounterveilError, match="CV-L066"):
            ledger.reserve(
                "trial", "r", charge, uses=USES, fingerprint="f", description={"text": "x" * 5_000_000}
            )
        assert ledger.account("trial").requests == 0
