"""Bends along a released index are taken out of lines and weights, and what is left is in the interval."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.unit.statistics.moments.small_records import NotingGate

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import feature_map
from counterveil.numerics.products import Standard
from counterveil.privacy import Estimand
from counterveil.statistics.moments.adjusted import (
    ArmEffect,
    Guard,
    Place,
    Scale,
    _assumed,
    _unseen,
    arm_moments,
    bent,
    first_fit,
    release_arm_grams,
    weighted,
)
from counterveil.statistics.moments.records import Records, TableRecords

ROWS = 20_000
STUDY = cv.Study("t", "y", (-4, 8), {"a": cv.Range(-1, 1), "b": cv.Range(-1, 1)}, treated=1, control=0)
SCALE = Scale(Standard(np.zeros(2), np.full(2, 0.58), 4.0, 8.0), Place(-0.1, 0.2, 0.0, 3.0), 5.6, 2.4, 2.5)
TARGETS = {Estimand.ATE: lambda t: t >= 0, Estimand.ATT: lambda t: t == 1, Estimand.ATC: lambda t: t == 0}


class NoisyGate(NotingGate):
    """A gate whose vectors have normal noise of a chosen size."""

    sd = 0.0

    def release_vector(self, name, values, sensitivity):
        found = super().release_vector(name, values, sensitivity)
        drawn = np.random.default_rng(1).normal(size=len(found.values)) * self.sd
        noisy = found.floats() + drawn
        return type("Noisy", (), {"floats": lambda _: noisy, "variance": self.sd**2})()


def people(bend):
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, (ROWS, 2))
    index = x @ np.array([1.0, 0.7]) / 0.7
    curve = bend * np.abs(index) + 0.4 * index
    t = (rng.random(ROWS) < 1 / (1 + np.exp(-curve + curve.mean()))).astype(int)
    y = np.clip(curve + t * (1 + 0.3 * index) + 0.5 * rng.normal(size=ROWS), -4, 8)
    table = Table.attach({"a": x[:, 0], "b": x[:, 1], "t": t, "y": y}, STUDY)
    return Records(table, feature_map(STUDY, 1)), t, 1 + 0.3 * index


def answers(bend, estimand, sd=1e-7, room=1.0):
    """Return the effect's error before and after bends are added, and the two scores."""
    return asked(bend, estimand, sd, room)[:4]


def asked(bend, estimand, sd=1e-7, room=1.0):
    """Return the same, and how far weights leave the hats of both arms out of balance before and after."""
    records, t, gain = people(bend)
    gate = NoisyGate()
    gate.sd = sd
    grams, _ = release_arm_grams(NotingGate(), records, SCALE)
    moments = arm_moments(grams, 1e-6, SCALE, float(t.mean()), 1e-6)
    fit = first_fit(moments, 1e-9)
    straight = weighted(moments, fit, estimand, ROWS, Guard(1.0, 0.0))
    scale, found = bent(gate, records, SCALE, moments, fit, straight, 3.0, room)
    truth, errors, off = gain[TARGETS[estimand](t)].mean(), [], []
    u, arm = (
        np.concatenate(part) for part in zip(*(rows[:2] for rows in scale.rows(_table(records))), strict=True)
    )
    for form, score in ((SCALE, straight.score), (scale, found.score)):
        mean = np.concatenate([score.of(*rows) for rows in form.rows(_table(records))]).mean()
        errors.append(6 * SCALE.unit * (mean + score.effect) - truth)
        weights = u[:, : score.weights.shape[1]] @ score.weights.T * (arm[:, None] == (0, 1))
        wanted = np.array(score.people)[arm.astype(int)]
        off.append(np.linalg.norm((wanted[:, None] - weights).T @ u[:, 3:] / ROWS, axis=1))
    return *errors, straight, found, off


def _table(records):
    return TableRecords(records.source, records.features)


@pytest.mark.parametrize("estimand", list(TARGETS))
def test_a_kink_that_biases_lines_and_weights_is_followed(estimand):
    before, after, straight, found, off = asked(1.0, estimand)
    assert abs(before) > 0.1
    assert abs(after) < 0.25 * abs(before)
    assert off[0].max() > 0.05
    assert off[1].max() < 1e-3 * off[0].max()
    # A fifth of the bias that was found is in the interval, and more than is left.
    bias = 6 * SCALE.unit * (found.bias - straight.bias)
    assert bias == pytest.approx(0.2 * abs(before - after), rel=0.05)
    assert bias > abs(after) / 2


def test_noise_hides_bends_and_lengthens_the_interval():
    found = [answers(0.0, Estimand.ATE, sd)[3] for sd in (1e-6, 1e-3, 1e-2)]
    products, doubts = [one.product for one in found], [one.doubt for one in found]
    assert products == sorted(products)
    assert products[2] > 100 * products[0]
    assert doubts == sorted(doubts)
    assert doubts[0] < 0.005
    assert doubts[2] > 0.06


@pytest.mark.parametrize("estimand", list(TARGETS))
def test_a_kink_that_noise_hides_is_allowed_for(estimand):
    _, after, _, found = answers(1.0, estimand, 0.03)
    none = answers(1.0, estimand, 0.03, room=0.0)[3]
    # Noise leaves most of the bias, and the allowance, one more standard deviation, is of its size.
    assert abs(after) > 0.15
    assert 6 * SCALE.unit * 1.96 * found.hidden > abs(after) / 2
    assert found.product == pytest.approx(none.product + found.hidden**2)
    assert none.hidden == 0
    twice = answers(1.0, estimand, 0.03, room=2.0)[3]
    assert twice.hidden == pytest.approx(2 * found.hidden)
    # The second interval allows for twice the expected size of one curve, whatever the first does, and never for less.
    wider = answers(1.0, estimand, 0.03, room=3.0)[3]
    assert found.undetected == none.undetected == twice.undetected == pytest.approx(2 * found.hidden)
    assert wider.undetected == wider.hidden
    assert 6 * SCALE.unit * 1.96 * found.undetected > abs(after)


def test_what_is_not_seen_of_a_curve():
    own, value = np.diag([0.5, 0.5, 0.25, 0.75]), np.array([1.0, -1.0, 2.0, 0.0])
    doubt = np.diag([0.1, 0.1, 0.2, 0.0])
    far = np.full(2, 100.0)
    assert _unseen((value, doubt, own), 1.0, far) == pytest.approx([0.1, 0.05])
    # Half of the index is known: as much again as what is seen or doubted is hidden.
    assert _unseen((value, doubt, own), 0.5, far) == pytest.approx([0.1 + 1.1, 0.05 + 1.05])
    # An index of which nothing is known hides nineteen times as much, not infinitely much, and no more than a half.
    assert _unseen((value, doubt, own), 0.0, far) == pytest.approx([0.1 + 19 * 1.1, 0.05 + 19 * 1.05])
    assert _unseen((value, doubt, own), 0.0, np.array([2.0, 0.2])) == pytest.approx([1.0, 0.1])


@pytest.mark.parametrize(
    ("known", "doubt", "said"), [(0.9, 0.01, "followed"), (0.6, 0.01, "undetected"), (0.9, 0.1, "undetected")]
)
def test_bends_are_said_to_be_followed_where_index_and_curves_are_known(known, doubt, said):
    effect = ArmEffect(0, 0, 0, 0, 0, 0.5, 0, 0, 0, known, doubt)
    session = SimpleNamespace(study=STUDY)
    assert _assumed(session, feature_map(STUDY, 1), effect).curvature == said


def test_without_a_kink_nothing_changes():
    before, after, straight, found = answers(0.0, Estimand.ATE)
    assert after == pytest.approx(before, abs=0.005)
    assert 6 * SCALE.unit * (found.bias - straight.bias) < 0.005
    assert found.product - straight.product < 1e-6
