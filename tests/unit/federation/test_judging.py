"""What a coordinator computes again of one reply: how far its estimate may lie, and where its ledger ends."""

import copy
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import ParameterError
from counterveil.federation.judging import (
    OTHER_NOISE,
    OUT_OF_REACH,
    WENT_BACK,
    Expected,
    SetAsideError,
    _check_reach,
)
from counterveil.federation.judging_tables import judged
from counterveil.federation.messages import Ask, Head, Reply, SiteRequest
from counterveil.federation.site import checked_arguments


@pytest.fixture
def answered(new_site, trial):
    """Return a request for weighted means and a site's reply to it."""
    site = new_site(estimators=["weighting"], protects=["outcome"])
    ask = Ask(method="weighting", protects="outcome", epsilon="1")
    request = SiteRequest("s1", "r1", site.file.name, trial.study.to_dict(), ask, 2000.0, None)
    return request, Reply.from_text(site.answer(request.to_text()))


def test_a_difference_without_a_variance_of_its_own_is_judged_by_the_largest(new_site, trial):
    site = new_site(estimators=["difference_in_means"], protects=["outcome"])
    ask = Ask("difference_in_means", "outcome", epsilon="1", settings={"variance_share": 0})
    request = SiteRequest("s1", "r1", site.file.name, trial.study.to_dict(), ask, 2000.0, None)
    reply = Reply.from_text(site.answer(request.to_text()))
    assert judged(request, reply, None, None).uncertainty.variance_noise is None
    forged = copy.deepcopy(reply.result)
    forged["uncertainty"]["variance"] /= 4
    with pytest.raises(SetAsideError):
        judged(request, replace(reply, result=forged), None, None)


def test_a_claimed_variance_does_not_widen_the_reach_of_an_estimate(answered, trial):
    request, reply = answered
    assert judged(request, reply, None, None).estimate == reply.result["estimate"]
    low, high = trial.study.outcome_range
    forged = copy.deepcopy(reply.result)
    width, step = float(high - low), float(Fraction(forged["uncertainty"]["noise"]["sensitivity"]))
    # Weights that add up to one bound the variance: the sum of their squares is at most the largest.
    forged["uncertainty"]["variance_cap"] = width * step
    assert judged(request, replace(reply, result=forged), None, None).estimate == reply.result["estimate"]
    forged["estimate"] = 12 * width
    with pytest.raises(SetAsideError, match=OUT_OF_REACH):
        judged(request, replace(reply, result=forged), None, None)
    forged["uncertainty"]["variance_cap"] = 1e6 * width**2
    with pytest.raises(SetAsideError, match=OTHER_NOISE):
        judged(request, replace(reply, result=forged), None, None)


def test_an_estimate_without_limits_is_judged_by_the_declared_outcome(answered, trial):
    request, reply = answered
    declared, result = Expected.of(request.declaration), judged(request, reply, None, None)
    low, high = trial.study.outcome_range
    _check_reach(declared, replace(result, estimate=float(high - low), limits=None))
    with pytest.raises(SetAsideError, match=OUT_OF_REACH):
        _check_reach(declared, replace(result, estimate=12.0 * float(high - low), limits=None))


def test_a_ledger_that_ends_before_an_earlier_answer_went_back(answered):
    request, reply = answered
    seq, here = reply.head.seq, reply.head.hash
    for known in (Head(seq, here), Head(seq - 1, "0" * 64)):
        judged(request, reply, None, known)
    for known in (Head(seq + 1, "0" * 64), Head(seq, "0" * 64)):
        with pytest.raises(SetAsideError, match=WENT_BACK):
            judged(request, reply, None, known)


@pytest.mark.parametrize("method", ["difference_in_means", "weighting"])
def test_an_honest_site_with_a_range_that_is_far_too_wide_is_not_set_aside(new_site, tmp_path, method):
    rng, rows = np.random.default_rng(1), 4000
    table = np.column_stack([np.arange(rows) % 2, rng.normal(5, 1, rows).round(3), rng.uniform(0, 1, rows)])
    path = tmp_path / "wide.csv"
    np.savetxt(path, table, "%g", ",", header="t,y,x", comments="")
    study = cv.Study("t", "y", (-95, 105), {"x": cv.Range(0, 1)}, treated=1, control=0, randomised=True)
    site = new_site(data=path, study=study, estimators=[method], protects=["outcome"])
    ask = Ask(method, "outcome", epsilon="1")
    request = SiteRequest("s1", "r1", site.file.name, study.to_dict(), ask, 2000.0, None)
    result = judged(request, Reply.from_text(site.answer(request.to_text())), None, None)
    assert len(result.releases) == 2


def test_a_search_for_the_range_is_refused_at_sites():
    study = cv.Study("t", "y", (-95, 105), treated=1, control=0, randomised=True)
    ask = Ask("difference_in_means", "outcome", epsilon="1", settings={"find_range": True})
    with pytest.raises(ParameterError, match="CV-P025"):
        checked_arguments(study, ask)
