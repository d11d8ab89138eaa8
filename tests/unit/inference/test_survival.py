"""Curves, areas and tests of tables of times: by hand, by finite differences, and where noise takes over."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr
from tests.thinned import thinned

from counterveil.data.follow_up import PARTS, shared_entries
from counterveil.inference.survival.answers import answers_of
from counterveil.inference.survival.blocks import Blocks
from counterveil.inference.survival.crossings import Crossing, CrossingGap
from counterveil.inference.survival.distributions import NoisyHistograms, distributions_of
from counterveil.inference.survival.hazard_ratio import HazardRatio
from counterveil.inference.survival.log_rank import log_rank_of
from counterveil.inference.survival.table_noise import TableNoise
from counterveil.inference.survival.tables import NoisyTables, blocks_of

CELLS = 10
EDGES = tuple(float(place) for place in range(CELLS + 1))


def people(rows=400, seed=1):
    """Return arm, whole times and events of a trial with censoring."""
    draw = np.random.default_rng(seed)
    arm = draw.integers(0, 2, rows)
    event, lost = np.ceil(draw.exponential(np.where(arm == 1, 8, 6))), np.ceil(draw.exponential(12, rows))
    return arm, np.minimum(event, lost), event <= lost


def table(time, event):
    cell = (time - 1).astype(int)
    beyond = (cell >= CELLS) | (~event & (time >= CELLS))
    return np.bincount(
        np.where(beyond, 2 * CELLS, np.where(event, cell, CELLS + cell)), minlength=2 * CELLS + 1
    )


def tables(arm, time, event, strata=None, **given):
    """Return the tables of both arms of every stratum, without noise."""
    strata = np.zeros(len(arm), int) if strata is None else strata
    blocks = [(s, a) for s in range(strata.max() + 1) for a in (0, 1)]
    chosen = [(strata == s) & (arm == a) for s, a in blocks]
    numbers = tuple(tuple(map(float, table(time[rows], event[rows]))) for rows in chosen)
    usual = {"form": "flat", "noise_sd": 0.0, "heavy": False, "totals": (float(len(arm)),), "edges": EDGES}
    usual |= {"convention": "end", "shares": (), "design": (1.0,) * len(blocks)}
    return NoisyTables(numbers=numbers, **(usual | given))


def test_curves_and_test_are_those_by_hand():
    arm, time, event = people()
    known = tables(arm, time, event)
    for place in (0, 1):
        own = arm == place
        exact = [_kaplan_meier(time[own], event[own], end) for end in EDGES]
        assert answers_of(known).curves.survival[place] == pytest.approx(exact, abs=1e-12)
        assert answers_of(known).area(place).estimate == pytest.approx(sum(exact[:-1]), abs=1e-9)
    excess = spread = 0.0
    for day in range(1, CELLS + 1):
        risk, on = time >= day, arm == 1
        died = event & (time == day)
        n, n1, d, d1 = risk.sum(), (risk & on).sum(), died.sum(), (died & on).sum()
        excess += d1 - n1 * d / n
        spread += n1 * (n - n1) * d * (n - d) / (n**2 * (n - 1))
    assert log_rank_of(known).statistic == pytest.approx(excess / sqrt(spread), abs=1e-9)


def test_without_censoring_the_curve_is_the_share_left():
    arm, time, _ = people()
    answers = answers_of(tables(arm, time, np.ones(len(arm), bool)))
    for place in (0, 1):
        left = [(time[arm == place] > end).mean() for end in EDGES]
        assert answers.curves.survival[place] == pytest.approx(left)
        size = (arm == place).sum()
        greenwood = answers.curves.sampling[place].diagonal()[1:]
        # One event more than there were is counted in variances.
        assert greenwood == pytest.approx([p * (1 - p) / size for p in left[1:]], rel=0.05)


def test_the_exact_curve_lies_between_both_extremes_of_a_cell():
    draw = np.random.default_rng(5)
    event, lost = draw.exponential(6, 300), draw.exponential(8, 300)
    time, died = np.minimum(event, lost), event <= lost
    exact = np.array([_kaplan_meier(time, died, end) for end in EDGES])
    grouped = table(np.ceil(time), died).astype(float)
    noise = blocks_of(tables(*people())).noise
    own = Blocks(grouped[None], noise, "end", np.ones(1))
    late = own.curves[0]
    fewest = own.starting[0] - grouped[CELLS : 2 * CELLS]
    early = np.append(1.0, np.cumprod(1 - grouped[:CELLS] / fewest))
    assert (early <= exact + 1e-12).all()
    assert (exact <= late + 1e-12).all()


def _kaplan_meier(time, died, end):
    left = 1.0
    for moment in np.unique(time[died & (time <= end)]):
        left *= 1 - (died & (time == moment)).sum() / (time >= moment).sum()
    return left


@pytest.mark.parametrize("convention", thinned(["middle", "end"], "middle"))
@pytest.mark.parametrize(
    "read",
    [
        (
            lambda known: answers_of(known).area_gap().estimate,
            lambda known: answers_of(known).area_gap().noise,
        ),
        (lambda known: answers_of(known).at(1, 6).estimate, lambda known: answers_of(known).at(1, 6).noise),
        (lambda known: log_rank_of(known).difference, lambda known: log_rank_of(known).noise),
        (
            lambda known: HazardRatio(known).score(-0.3).difference,
            lambda known: HazardRatio(known).score(-0.3).noise,
        ),
    ],
    ids=["restricted means", "survival", "log-rank", "hazard ratio"],
)
def test_noise_enters_as_finite_differences_say(convention, read):
    arm, time, event = people()
    known = tables(arm, time, event, np.arange(len(arm)) % 2, convention=convention, noise_sd=1e-6)
    estimate, noise = read
    slopes, step = np.zeros((4, 2 * CELLS + 1)), 1e-3
    for place in np.ndindex(slopes.shape):
        by = np.zeros_like(slopes)
        by[place] = step
        # The total is public, so that no noise is left along it.
        by -= by.mean()
        ends = [estimate(_moved(known, sign * by)) for sign in (-1, 1)]
        slopes[place] = (ends[1] - ends[0]) / (2 * step)
    # A score moves with hazards of cells to second order, at which it is not 0 away from its own ratio.
    near = 0.03 if read[0](known) == HazardRatio(known).score(-0.3).difference else 1e-4
    assert noise(known) / known.noise_sd**2 == pytest.approx((slopes**2).sum(), rel=near)


def _moved(known, by):
    return replace(known, numbers=tuple(map(tuple, (np.array(known.numbers) + by).tolist())))


def test_a_curve_lost_in_noise_may_be_anywhere_below():
    arm, time, event = people(60)
    answers = answers_of(tables(arm, time, event, noise_sd=8.0))
    lost = answers.at(1, CELLS)
    assert lost.slack > 0
    assert lost.interval(0.95)[0] == 0
    low, high = answers.gap(CELLS).interval(0.95)
    assert high - low > 1
    ratio = answers.area_ratio()
    assert ratio.interval(0.95)[0] <= ratio.estimate <= ratio.interval(0.95)[1]


def test_thin_strata_of_an_arm_are_worth_few_people():
    # Half of everyone is in a stratum where few are treated: the mean over strata errs as its curve does.
    draw = np.random.default_rng(3)
    strata = np.repeat([0, 1], 1000)
    arm = (draw.random(2000) < np.where(strata == 1, 0.03, 0.5)).astype(int)
    event, lost = np.ceil(draw.exponential(np.where(strata == 1, 9, 30))), np.full(2000, 99.0)
    known = tables(arm, np.minimum(event, lost), event <= lost, strata)
    found = answers_of(known).at(1, CELLS)
    own = [event[(arm == 1) & (strata == place)] > CELLS for place in (0, 1)]
    exact = sqrt(sum(one.mean() * (1 - one.mean()) / len(one) for one in own)) / 2
    low, high = found.interval(0.95)
    assert (high - low) / 2 == pytest.approx(1.96 * exact, rel=0.15)
    assert found.size < 150 < answers_of(known).curves.people[1].min()


def test_bias_that_is_allowed_for_lengthens_intervals_where_few_have_the_event():
    arm, time, _ = people()
    few = np.arange(len(arm)) % 20 == 0
    plain, wider = (answers_of(tables(arm, time + 99 * ~few, few, inflation=one)) for one in (1.0, 1.25))
    lengths = [np.subtract(*one.at(1, CELLS).interval(0.95)[::-1]) for one in (plain, wider)]
    assert lengths[1] / lengths[0] == pytest.approx(sqrt(1.25), rel=0.03)


def test_noise_that_both_arms_share_is_in_their_difference():
    arm, time, event = people()
    one_cell = tables(arm, time, event)
    numbers = tuple((sum(one[:CELLS]), 0.0, sum(one[CELLS:])) for one in one_cell.numbers)
    known = replace(one_cell, numbers=numbers, noise_sd=2.0, edges=(0.0, 10.0))
    found, noise = answers_of(known), answers_of(known).curves.noise[:, 1, :, 1]
    assert abs(noise[0, 1]) > 0.05 * noise[0, 0]
    apart = np.array([-1.0, 1.0])
    assert found.gap(1).noise_sd == pytest.approx(sqrt(apart @ noise @ apart), rel=1e-12)
    ratio, gap = found.area_ratio(), found.area_gap()
    scale = np.array([-ratio.estimate, 1.0]) / ratio.other.estimate
    whole = found._weights[1] ** 2 * noise
    assert ratio.noise_sd == pytest.approx(sqrt(scale @ whole @ scale), rel=1e-12)
    assert gap.noise_sd == pytest.approx(sqrt(apart @ whole @ apart), rel=1e-12)


@pytest.mark.parametrize("noise_sd", [1e-4, 1.0])
def test_noise_among_nobody_is_no_event(noise_sd):
    # Everybody is censored before the horizon, and nobody had the event.
    arm, draw = np.arange(400) % 2, np.random.default_rng(1)
    plain = tables(arm, np.ceil(draw.uniform(0, 7, 400)), np.zeros(400, dtype=bool))
    falls = []
    for _ in range(40):
        moved = tuple(tuple(np.array(one) + draw.normal(0, noise_sd, len(one))) for one in plain.numbers)
        shown = answers_of(replace(plain, numbers=moved, noise_sd=noise_sd)).curves.shown
        falls.append(1 - shown[:, -1].min())
    assert np.median(falls) < (0.01 if noise_sd < 1 else 0.6)


def _spread(events, lost, whole):
    """Return a table by 12 cells of expected events and censorings on a finer even grid."""
    fine = [one.reshape(12 * PARTS, -1).sum(axis=1) for one in (events, lost)]
    counts = np.concatenate([*fine, [whole - sum(map(np.sum, fine))]])
    return shared_entries(counts[None], 12, 1, 1, ends=False)[0] / (2 * PARTS)


@pytest.mark.parametrize("place", [1, 200, 399])
def test_where_in_cells_people_are_censored_does_not_move_a_constant_hazard(place):
    # A fifth of those at risk are lost in each cell, all of them after the same part of it.
    stay = 0.8 ** ((np.arange(12 * 400 + 1) + 400 - place) // 400)
    left = np.exp(-np.linspace(0, 2, len(stay)))
    events, lost = -np.diff(left) * stay[:-1], -np.diff(stay) * left[1:]
    known = Blocks(
        _spread(events, lost, 1.0)[None] * 1e6, TableNoise(np.zeros((25, 25)), ()), "middle", np.ones(1)
    )
    exact = left[400::400]
    allowed = known.grouping[0, 1:]
    assert (np.abs(known.curves[0, 1:] - exact) <= allowed).all()
    # Exposure is known to half of a sixteenth of a cell; all or nothing of it would move curves by eight times this.
    assert np.abs(known.curves[0, -1] / exact[-1] - 1) < 0.02
    assert not replace(known, convention="end").grouping.any()


def test_arms_that_lose_people_at_different_rates_do_not_look_different():
    # Expected tables of both arms: the same steep hazard, 400,000 people, twelve cells.
    fine = np.linspace(0, 1, 12 * 4000 + 1)
    left, numbers = np.exp(-1.2 * fine**0.4), []
    for rate in (0.3, 3.0):
        stay = np.exp(-rate * fine)
        events = 200_000 * -np.diff(left) * (stay[1:] + stay[:-1]) / 2
        lost = 200_000 * -np.diff(stay) * (left[1:] + left[:-1]) / 2
        numbers.append(tuple(_spread(events, lost, 200_000).tolist()))
    test = log_rank_of(
        NoisyTables(
            numbers=tuple(numbers),
            form="flat",
            noise_sd=0.0,
            heavy=False,
            totals=(400_000.0,),
            edges=tuple(np.linspace(0, 1, 13).tolist()),
            convention="middle",
            shares=(),
            design=(1.0, 1.0),
        )
    )
    assert abs(test.statistic) > 2
    assert test.p_value > 0.5
    assert replace(test, bias=0.0).p_value < 0.05


def test_a_hazard_ratio_is_the_likeliest_of_grouped_data():
    arm, time, event = people(2000)
    known = tables(arm, time, event)
    found = HazardRatio(known)
    blocks = blocks_of(known)

    def unlikelihood(guess):
        x = np.exp(guess[:-1])[None] * np.exp(guess[-1] * np.array([[0.0], [1.0]]))
        return -np.sum(blocks.events * np.log(-np.expm1(-x)) - (blocks.at_risk - blocks.events) * x)

    best = minimize(unlikelihood, np.full(CELLS + 1, -2.0), method="BFGS")
    assert np.log(found.estimate) == pytest.approx(best.x[-1], abs=1e-4)
    for end in np.log(found.interval(0.95)):
        held = minimize(lambda rest, at=end: unlikelihood(np.append(rest, at)), best.x[:-1], method="BFGS")
        assert 2 * (held.fun - best.fun) == pytest.approx(1.96**2, rel=0.02)
    assert found.proportionality.p_value > 0.01
    turned = np.where(arm == 1, CELLS + 1 - np.clip(time, 1, CELLS), time)
    assert HazardRatio(tables(arm, turned, event)).proportionality.p_value < 1e-6


def test_incidence_of_the_only_cause_is_one_minus_survival():
    arm, time, event = people()
    known = tables(arm, time, event, np.arange(len(arm)) % 2, convention="middle", noise_sd=0.5)
    whole, cause = answers_of(known).curves, answers_of(known, 0).curves
    for name in ("survival", "shown", "noise", "sampling", "grouping"):
        assert getattr(cause, name) == pytest.approx(getattr(whole, name), rel=1e-6, abs=1e-12)


def test_incidences_of_causes_err_as_shares_of_people_do():
    # Nobody is censored: incidences are shares, whose variances and covariances are known.
    arm, time, _ = people(4000)
    cause = np.arange(4000) % 3 == 0
    cell = np.clip(time - 1, 0, CELLS).astype(int)
    entry = np.where(cell == CELLS, 3 * CELLS, cell + CELLS * cause)
    numbers = tuple(tuple(np.bincount(entry[arm == a], minlength=3 * CELLS + 1).tolist()) for a in (0, 1))
    known = replace(tables(arm, time, cause), numbers=numbers, causes=("a", "b"), noise_sd=1e-6)
    found = answers_of(known, 1)
    for at in (3, CELLS):
        share = (cause & (time <= at))[arm == 1].mean()
        assert found.at(1, at).estimate == pytest.approx(1 - share)
        assert found.at(1, at).variance == pytest.approx(share * (1 - share) / (arm == 1).sum(), rel=0.02)
    slopes, step = np.zeros((2, 3 * CELLS + 1)), 1e-2
    for place in np.ndindex(slopes.shape):
        by = np.zeros_like(slopes)
        by[place] = step
        by -= by.mean()
        ends = [answers_of(_moved(known, sign * by), 1).at(1, 6).estimate for sign in (-1, 1)]
        slopes[place] = (ends[1] - ends[0]) / (2 * step)
    assert found.at(1, 6).noise / known.noise_sd**2 == pytest.approx((slopes**2).sum(), rel=1e-4)


def test_events_lost_in_noise_leave_the_ratio_open():
    arm, time, event = people(200)
    few = event & (np.arange(200) % 40 == 0)
    ends = HazardRatio(tables(arm, time, few, noise_sd=3.0)).interval(0.95)
    assert ends[0] == 0
    assert ends[1] == np.inf


def test_quantiles_invert_the_curves_intervals():
    arm, time, event = people(2000)
    known = tables(arm, time, event, convention="middle")
    answers = answers_of(known)
    one, other = (Crossing(answers, side, 0.5) for side in (1, 0))
    curve = answers.curves.survival[1]
    assert np.interp(one.estimate, EDGES, curve) == pytest.approx(0.5)
    low, high = one.interval(0.95)
    place = int(np.ceil(high))
    assert answers.end(1, place).interval(0.95)[1] <= 0.5 < answers.end(1, place - 1).interval(0.95)[1]
    ends = CrossingGap(one, other).interval(0.95)
    assert low - other.interval(0.95)[1] < ends[0] < one.estimate - other.estimate < ends[1]
    late = Crossing(answers, 1, 0.01)
    assert (late.estimate, late.interval(0.95)) == (np.inf, (CELLS, np.inf))


def _ties(ends, whole, unit=1.0):
    """Return answers of 20,000 exponential times, whole or not, without noise and on these ends of cells."""
    time = np.random.default_rng(1).exponential(9.5, 20_000)
    counts = np.histogram((np.ceil(time) - 0.01 if whole else time) * unit, (0.0, *ends))[0]
    numbers = (*map(float, counts), *[0.0] * len(ends), float(len(time) - counts.sum()))
    usual = {"form": "flat", "noise_sd": 0.0, "heavy": False, "totals": (20_000.0,) * 2, "shares": ()}
    usual |= {"convention": "middle", "design": (1.0, 1.0), "edges": (0.0, *map(float, ends))}
    return answers_of(NoisyTables(numbers=(numbers, numbers), cut=12 if len(ends) > 12 else 1, **usual))


def test_intervals_hold_the_median_of_whole_times_where_cells_end_at_them():
    coarse, fine = np.arange(3.0, 37.0, 3.0), np.arange(0.25, 36.25, 0.25)
    # The median of whole times is 7, that of others 6.58.
    for ends, whole, ties in ((coarse, True, True), (coarse + 0.5, False, False), (fine, False, False)):
        answers = _ties(ends, whole)
        low, high = Crossing(answers, 0, 0.5).interval(0.95)
        assert bool(answers.ties) is ties
        assert low < 6.58 < high
        assert not ties or high == 7
    assert _ties(fine, True).ties
    assert Crossing(_ties(fine, True), 0, 0.5).interval(0.95)[1] == 7
    answers = _ties(coarse, True)
    gap = CrossingGap(Crossing(answers, 0, 0.5), Crossing(answers, 1, 0.5)).interval(0.95)
    assert gap == (-1, 1)
    # Months of a year, on cells of an eighth of it: the events of cells tell.
    assert _ties(np.arange(1, 9) / 8, True, 1 / 12).ties == 1 / 12
    assert Crossing(_ties(np.arange(1, 9) / 8, True, 1 / 12), 0, 0.5).interval(0.95)[1] == pytest.approx(
        7 / 12
    )
    assert not _ties(np.arange(1, 9) / 8, False, 1 / 12).ties
    exact = sum(np.exp(-np.arange(36) / 9.5))
    assert answers.area(0).interval(0.95)[0] < exact < answers.area(0).interval(0.95)[1]


def test_a_stratum_that_is_lost_in_the_noise_leaves_the_hazard_ratio_to_the_others():
    arm, time, event = people(2000)
    few = np.arange(2000) < 3
    both = HazardRatio(tables(arm, time, event, few.astype(int), noise_sd=5.0))
    whole = HazardRatio(tables(arm, time, event, noise_sd=5.0))
    assert both.estimate == pytest.approx(whole.estimate, rel=0.02)
    low, high = both.interval(0.95)
    assert 0 < low < both.estimate < high < 2


@pytest.mark.parametrize("level", [0.1, 0.3, 0.5])
def test_a_quantile_where_the_density_jumps_within_a_cell_is_held(level):
    # A share of people lies evenly up to 20 and the others from there to 35; cells are 100 / 48 long.
    edges = np.linspace(0, 100, 49)
    share = level * np.clip(edges / 20, 0, 1) + (1 - level) * np.clip((edges - 20) / 15, 0, 1)
    counts = tuple((1e5 * np.diff(share)).tolist())
    known = NoisyHistograms((counts, counts), 1.0, False, (2e5,), tuple(edges.tolist()), (1.0, 1.0))
    low, high = Crossing(distributions_of(known), 0, 1 - level).interval(0.95)
    assert low <= 20 <= high
    assert high - low < 100 / 48


@pytest.mark.parametrize(("rounded", "part"), [(10, 1), (10, 0.5), (5, 1), (10, 0)])
def test_cells_show_that_outcomes_are_rounded_and_quantiles_are_held(rounded, part):
    # Outcomes are normal, in part rounded; counts are those expected, in cells of 100 / 14.
    def below(values):
        heaps = rounded * (np.floor(values / rounded + 1e-9) + 0.5)
        return part * ndtr((heaps - 50) / 15) + (1 - part) * ndtr((values - 50) / 15)

    edges = np.linspace(0, 100, 15)
    counts = tuple((1000 * np.diff([0, *below(edges[1:-1]), 1])).tolist())
    known = NoisyHistograms((counts, counts), 2.8, True, (2000.0,), tuple(edges.tolist()), (1.0, 1.0))
    answers = distributions_of(known)
    assert answers.curves.heaped >= rounded if part else answers.curves.heaped == 0
    values = np.linspace(0, 100, 100_001)
    for level in (0.25, 0.5, 0.75):
        low, high = Crossing(answers, 0, 1 - level).interval(0.95)
        assert low - 0.01 <= values[np.searchsorted(below(values), level)] <= high + 0.01
