"""Every method at the edges of what may be asked: refused before it is charged, or answered."""

from itertools import product

import pytest
from tests.thinned import examples, thinned
from tools.answer_sweep.__main__ import DELTAS, EPSILONS, main
from tools.answer_sweep.running import run, trouble
from tools.answer_sweep.ways import KINDS, ways

WAYS = ways()
# Kernel smoothing over all pairs of rows takes seconds whatever the budget: the whole sweep asks it.
QUICK = [name for name in WAYS if "influence" not in name]
EDGES = list(product((4, 8, 20), EPSILONS, DELTAS[:2], KINDS))


@pytest.mark.parametrize("name", thinned(QUICK, *QUICK[::2]))
def test_a_charged_question_is_answered(name):
    place = QUICK.index(name)
    # A stride prime to the number of edges gives every way other edges.
    for turn in range(examples(1, 2)):
        rows, epsilon, delta, kind = EDGES[(37 * (2 * place + turn)) % len(EDGES)]
        found = run(WAYS[name], rows, kind, {"epsilon": epsilon, "delta": delta})
        # Seconds are not looked at: no test depends on the clock.
        assert found.fault is None, (rows, kind, epsilon, delta, found.fault)
        assert found.answer is not None or not found.charged, (rows, kind, epsilon, delta, found.refused)


def test_a_fault_after_the_charge_is_noticed():
    def ask(session, **budget):
        session.ate(protects="outcome", method="difference_in_means", **budget)
        raise ZeroDivisionError

    asked = WAYS["difference_in_means outcome ATE"]
    found = run(type(asked)(asked.declared, ask), 20, "usual", {"epsilon": "1", "delta": "0"})
    assert found.charged
    assert trouble(found).startswith("CHARGED")


@pytest.mark.slow
def test_the_sweep_finds_nothing():
    assert main(["--part", "11"]) == 0
