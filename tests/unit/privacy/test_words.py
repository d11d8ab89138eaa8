"""Units, estimands, events, budgets, guarantees and caveats: exact, written, and read back."""

import json
import pickle
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tools.reference.caveats_page import examples

from counterveil.bounded_reading import UnreadableError
from counterveil.errors import InternalError, ParameterError
from counterveil.privacy import (
    Adjacency,
    ApproximateEvent,
    Budget,
    Estimand,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    Proof,
    Protected,
    PureEvent,
    ResponseEvent,
    Unit,
    event_from_dict,
    event_to_dict,
    exact,
)
from counterveil.privacy.caveats import (
    FIELDS,
    AtSites,
    Caveat,
    ConfoundingBeyond,
    FoldModels,
    KeptPeople,
    LinearScores,
    confounding,
    read_fact,
    read_facts,
    written,
)

PAIR = Unit.TREATMENT_AND_OUTCOME
HALF = Fraction(1, 2)
EVENTS = [
    PureEvent(HALF),
    LaplaceEvent(HALF),
    GaussianEvent(HALF),
    ResponseEvent(HALF, 3),
    ApproximateEvent(HALF, Fraction(1, 10**6)),
]


@pytest.mark.parametrize("event", EVENTS)
def test_events_survive_json(event):
    assert event_from_dict(event_to_dict(event)) == event


def test_unknown_event_is_refused():
    with pytest.raises(InternalError, match="CV-X001"):
        event_from_dict({"kind": "magic"})


def test_units_and_adjacencies():
    assert Adjacency.of(Unit.parse("outcome"), Protected.ROW) is Adjacency.CHANGE_OUTCOME
    assert Adjacency.of(Unit.parse("record"), Protected.ROW) is Adjacency.REPLACE_RECORD
    assert Adjacency.of(Unit.parse("outcome"), Protected.PERSON) is Adjacency.CHANGE_OUTCOMES_OF_PERSON
    assert Adjacency.of(Unit.parse("record"), Protected.PERSON) is Adjacency.REPLACE_PERSON
    assert Adjacency.of(Unit.parse("treatment and outcome"), Protected.ROW) is Adjacency.CHANGE_PAIR
    with pytest.raises(ParameterError, match="CV-P001"):
        Unit.parse("label")
    with pytest.raises(ParameterError, match="CV-P002"):
        Estimand.parse("LATE")


# Pairs of treatment and outcome are those of single rows.
NEIGHBOURS = [key for key in product(Unit, Protected) if key[0] is not PAIR or key[1] is Protected.ROW]


@pytest.mark.parametrize(("unit", "whose"), NEIGHBOURS)
def test_every_unit_has_neighbours_of_its_own_that_are_read_back(unit, whose):
    promised = Guarantee(HALF, Fraction(0), unit, Proof.FINITE_SAMPLE, ("n",), ("page",), whose=whose)
    assert Guarantee.from_dict(promised.to_dict()) == promised
    assert (unit, whose) == next(key for key in NEIGHBOURS if Adjacency.of(*key) is promised.adjacency)
    assert promised.adjacency.sentence in promised.sentence()


def test_what_is_public_falls_from_level_to_level():
    assert [unit.treatment_public for unit in Unit] == [True, False, False]
    assert [unit.covariates_public for unit in Unit] == [True, True, False]


def promise(proof):
    return Guarantee(Fraction(1), Fraction(0), Unit.RECORD, proof, ("n",), ("page",))


def test_a_proved_promise_has_no_warning_and_others_do():
    assert promise(Proof.FINITE_SAMPLE).warning is None
    for proof in (Proof.ASYMPTOTIC, Proof.REFUTED, Proof.NONE):
        assert promise(proof).warning


def test_simulated_promise_promises_nothing():
    assert "SIMULATED" in promise(Proof.NONE).sentence()
    assert "epsilon = 1" not in promise(Proof.NONE).sentence()
    assert "epsilon = 1" in promise(Proof.FINITE_SAMPLE).sentence()


def test_errors_survive_pickling():
    with pytest.raises(ParameterError) as refusal:
        Unit.parse("label")
    copy = pickle.loads(pickle.dumps(refusal.value))
    assert copy.code == refusal.value.code
    assert copy.text() == refusal.value.text()


@pytest.mark.parametrize(
    "value", [0.1, "0.1", "1/10", Decimal("0.1"), Fraction(1, 10), np.float64(0.1), "1e-1"]
)
def test_a_tenth_is_a_tenth_however_it_is_written(value):
    assert exact(value, "epsilon") == Fraction(1, 10)


@pytest.mark.parametrize(
    "value", ["one", float("nan"), float("inf"), "1/0", None, True, "1e999999999", "9" * 1000, Decimal("NaN")]
)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ParameterError, match="CV-P003"):
        exact(value, "epsilon")


@pytest.mark.parametrize(
    ("epsilon", "delta", "code"), [(0, 0, "CV-P004"), (-1, 0, "CV-P004"), (1, 1, "CV-P005")]
)
def test_out_of_range(epsilon, delta, code):
    with pytest.raises(ParameterError, match=code):
        Budget(epsilon, delta)


def test_round_trip_and_text():
    budget = Budget("1/3", 1e-6)
    assert Budget.from_dict(budget.to_dict()) == budget
    assert str(budget) == "epsilon 0.333333, delta 1e-06"
    assert str(Budget(1)) == "epsilon 1"


@pytest.mark.parametrize("role", FIELDS)
def test_every_value_survives_a_file(role):
    facts = examples(role)
    assert read_facts(role, json.loads(json.dumps([written(one) for one in facts]))) == tuple(facts)
    # Members of two enumerations are equal where their names are: no name may serve twice.
    names = [str(one) for one in facts if isinstance(one, StrEnum)]
    assert len({*names}) == len(names)


def test_what_sites_say_is_read_one_level_deep():
    said = AtSites(("North", "South"), (FoldModels.OUTCOME, None))
    assert read_fact("assumptions", json.loads(json.dumps(written(said)))) == said
    nested = written(said) | {"facts": [written(said), None]}
    for lie in (nested, written(said) | {"facts": [None]}, written(said) | {"facts": ["clamping", None]}):
        with pytest.raises(UnreadableError):
            read_fact("assumptions", lie)


LINEAR = written(LinearScores(inverse=True, squares=False, products=False))


@pytest.mark.parametrize(
    ("role", "value"),
    [
        ("not_covered", "BUY SHARES"),
        ("not_covered", "one_fold"),
        ("not_covered", 1),
        ("not_covered", ["clamping"]),
        ("not_covered", {"name": "Detail"}),
        ("not_covered", {"name": "Caveat"}),
        ("not_covered", {"name": "SmallArms"}),
        ("not_covered", {"name": "SmallArms", "share": True}),
        ("not_covered", {"name": "SmallArms", "share": float("nan")}),
        ("not_covered", {"name": "SmallArms", "share": 0.1, "text": "BUY SHARES"}),
        ("not_covered", {"name": "OtherEstimand", "estimand": "BUY SHARES"}),
        ("not_covered", {"name": "SitesLeftOut", "sites": "North"}),
        ("not_covered", {"name": "ClippedOutliers", "columns": ["y"], "reaches": ["1"], "in_sds": True}),
        ("population", written(KeptPeople(5, 9, 0.1)) | {"kept": 5.5}),
        ("assumptions", LINEAR | {"squares": "none"}),
        ("condition", LINEAR),
    ],
)
def test_what_no_answer_says_is_refused_and_not_repeated(role, value):
    with pytest.raises(UnreadableError) as refused:
        read_fact(role, value)
    assert "BUY" not in str(refused.value)


def test_what_leaves_room_for_confounders():
    bound = ConfoundingBeyond(0.1)
    assert confounding([Caveat.CLAMPING, bound, Caveat.NOTHING_ADJUSTED]) == [bound, Caveat.NOTHING_ADJUSTED]
