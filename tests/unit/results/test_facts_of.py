"""Facts of effects are those of each, and a summary solves no more rows than it shows."""

from counterveil.inference.uncertainty import Uncertainty
from counterveil.mechanisms import Laplace
from counterveil.results import Effect, effect
from counterveil.results.effect import FactsOf, Linear

EFFECTS = [
    Effect(place, Linear(0.1 * place, Uncertainty(Laplace(1, place + 1), 0.1, 0.1)), 0.95, 3)
    for place in range(3)
]


def test_rows_that_are_not_read_are_not_solved(monkeypatch):
    asked = []
    monkeypatch.setattr(effect, "solve_together", lambda errors, _: asked.append(len(errors)))
    facts, each = FactsOf(EFFECTS, [{"arm": place} for place in range(3)]), [one.facts() for one in EFFECTS]
    assert facts[:2] == [{"arm": place} | one for place, one in enumerate(each[:2])]
    assert (facts[-1], len(facts), asked) == ({"arm": 2} | each[2], 3, [2, 1])
    assert list(FactsOf(EFFECTS)) == each
