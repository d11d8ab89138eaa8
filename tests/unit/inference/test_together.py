"""Effects solved together have the intervals and p-values that each has by itself."""

import pytest

from counterveil.inference import uncertainty
from counterveil.inference.uncertainty import Uncertainty, solve_together
from counterveil.mechanisms import Box, Gaussian, Laplace, Staircase

# What the order of sums may change, and that numbers whose binary logarithms agree to 2**-26 are calibrated as one.
ROUNDING = 2e-8
LEVELS = (0.95, 0.9998)


def forget():
    for memory in (
        uncertainty._TAILS,
        uncertainty._HALF_WIDTHS,
        uncertainty._LIKELY,
        uncertainty._INFLATIONS,
    ):
        memory.clear()


def errors():
    """Return estimates whose noises have one shape or another, with and without a noisy variance."""
    found = []
    for size in (3, 40, 500):
        for noise in (Staircase(f"5/{size}", 2), Laplace(f"1/{size}", 1), Gaussian(f"2/{size}", 1)):
            variance = Staircase(f"25/{size**2}", "1/2")
            found.append((0.3, Uncertainty(noise, 2 / size, 6 / size, variance)))
            found.append((-0.1, Uncertainty(noise, 2 / size, 2 / size)))
        found.append(
            (0.0, Uncertainty(Box(f"1/{size}", 1, 7), -0.1, 1 / size, Box(f"1/{size**2}", 1, 7), bias=0.01))
        )
    return [*found, (0.5, Uncertainty(None, 0.2, 0.2)), (0.5, Uncertainty(Laplace(1, 1), 0.0, 0.0))]


def shown():
    return [
        number
        for estimate, known in errors()
        for level in LEVELS
        for number in (known.half_width(level), known.p_value(estimate, level), known.sampling_sd)
    ]


@pytest.mark.parametrize("most", [16_384, 3])
def test_effects_solved_together_have_the_numbers_of_each_alone(most, monkeypatch):
    monkeypatch.setattr(uncertainty, "_MOST_REMEMBERED", most)
    forget()
    alone = shown()
    forget()
    solve_together(errors(), LEVELS)
    assert shown() == pytest.approx(alone, rel=ROUNDING, abs=1e-15)


def test_a_memory_that_another_thread_empties_costs_no_answer():
    memory = {"known": 1.0}

    def solve(keys):
        memory.clear()
        return [2.0] * len(keys)

    assert uncertainty.remembered(memory, ["known", "new"], solve) == [1.0, 2.0]
