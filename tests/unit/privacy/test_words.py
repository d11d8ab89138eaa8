"""Units, estimands, events and guarantees."""

import pickle
from fractions import Fraction
from itertools import product

import pytest

from counterveil.errors import InternalError, ParameterError
from counterveil.privacy import (
    Adjacency,
    ApproximateEvent,
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
