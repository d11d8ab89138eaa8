"""Every method of a comparison by its name in tables: ours, the papers', general tools, and those without privacy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from counterveil.published import ipw, outcome_matching, record_matching
from counterveil_lab.reproduce.rivals import ours, simple
from counterveil_lab.reproduce.rivals.encoding import Budget, Records, Rival
from counterveil_lab.reproduce.rivals.environment import by_synthesis, by_task
from counterveil_lab.reproduce.rivals.ours import as_published, dpci, global_matching, smooth_matching
from counterveil_lab.reproduce.rivals.privsyn import privsyn
from counterveil_lab.reproduce.rivals.simple import K, k_anonymous

_PROVED = "proof page and audit of the method: counterveil audit"
_LINEAR = (
    "covariates and treatments are public, so that the noise is for the largest coefficient of an outcome"
)
# Its name in tables, the method of `cv.ate`, and its settings for some records if they are not the usual ones.
_Asked = tuple[str, str, Callable[[Records], Any] | None]


def _ours() -> list[Rival]:
    outcome: list[_Asked] = [
        ("auto", "auto", None),
        ("weighting", "weighting", None),
        ("weighting, value alone", "weighting", ours.value_alone),
        ("matching", "matching", None),
        ("stratified", "stratified", ours.by_strata),
        ("difference in means", "difference_in_means", None),
        ("difference in means, value alone", "difference_in_means", ours.means_alone),
    ]
    record: list[_Asked] = [
        ("auto", "auto", None),
        ("auto, confounding bounded", "auto", ours.bounded),
        ("doubly robust", "doubly_robust", None),
        ("stratified", "stratified", ours.by_strata),
        ("folds", "sample_and_aggregate", None),
        ("difference in means", "trial", ours.unadjusted),
    ]
    units: dict[Literal["outcome", "record"], list[_Asked]] = {"outcome": outcome, "record": record}
    found = []
    for protects, listed in units.items():
        for name, method, settings in listed:
            estimate = (
                ours.by_ate(protects, method) if settings is None else ours.by_ate(protects, method, settings)
            )
            found.append(Rival(f"ours, {name} ({protects})", protects, "holds", _PROVED, estimate, ours=True))
    return found


def _private_matching() -> list[Rival]:
    return [
        Rival(
            "PrivATE, label",
            "outcome",
            "refuted",
            "people without a partner left share one, whose outcome moves the sum by more than k + 1 ranges; true for "
            "some studies",
            as_published(outcome_matching),
            delta="none",
            gallery="capacity matching",
        ),
        Rival(
            "PrivATE, sample",
            "record",
            "refuted",
            "the last step is that of the label level, and the noise of the weights takes a solver for exact",
            as_published(record_matching),
            delta="none",
            gallery="capacity matching",
        ),
    ]


def _papers() -> list[Rival]:
    return [
        Rival(
            "IPW-PP",
            "record",
            "refuted",
            "the sum is divided by noisy scores that nothing bounds, its noise is made for the true ones",
            as_published(ipw),
            delta="needed",
            gallery="unclipped weighting",
        ),
        Rival(
            "SmoothDPM",
            "record",
            "refuted",
            "the printed smooth bound is not smooth; the effect alone is safe where epsilon n is above about 5",
            smooth_matching,
            delta="needed",
            gallery="smooth sensitivity that is not smooth",
        ),
        Rival(
            "GlobalDPM",
            "record",
            "refuted",
            "noise for the range B, while moving the one treated person between strata moves the effect by (1 + 1/n) B",
            global_matching,
            delta="none",
        ),
        Rival(
            "DPCI",
            "record",
            "refuted",
            "models of scores and outcomes are fitted on private rows without noise, and the bound is read off them",
            dpci,
            delta="needed",
            gallery="a propensity fitted without protection",
        ),
    ]


def _simple() -> list[Rival]:
    linear = [
        ("difference in means, Laplace", simple.outcome_means),
        ("OLS, Laplace", simple.outcome_ols),
        ("IPW, Laplace", simple.outcome_weighting),
    ]
    return [
        *(Rival(name, "outcome", "holds", _LINEAR, estimate, delta="none") for name, estimate in linear),
        Rival(
            "OLS, noisy Gram",
            "record",
            "holds",
            "noise for one row of columns that are clamped to public ranges; a ridge of the noise's size",
            simple.noisy_gram,
        ),
        Rival(
            "difference in means, OpenDP",
            "record",
            "holds",
            "clamped sums and counts of both arms by OpenDP's Laplace measurements",
            by_task("opendp"),
            delta="none",
            apart=True,
            seeded=False,
        ),
    ]


def _general() -> list[Rival]:
    """Return synthesisers and learners that know nothing of effects."""
    synthesis = (
        "zCDP of noisy marginals, for one row added or removed; the effect is taken from synthetic records"
    )
    boosted = "the authors' proof for one row added or removed, with all bounds given; not audited here"
    return [
        Rival("AIM", "record", "holds", synthesis, by_synthesis("aim"), delta="needed", apart=True),
        Rival("MST", "record", "holds", synthesis, by_synthesis("mst"), delta="needed", apart=True),
        Rival(
            "PrivSyn",
            "record",
            "holds",
            "zCDP of noisy marginals, for one record replaced; a reduced implementation after the paper",
            privsyn,
            delta="needed",
        ),
        Rival(
            "DP-EBM, T-learner", "record", "unproved", boosted, by_task("ebm_t"), delta="needed", apart=True
        ),
        Rival(
            "DP-EBM, X-learner", "record", "unproved", boosted, by_task("ebm_x"), delta="needed", apart=True
        ),
    ]


def _not_private() -> list[Rival]:
    without = "no noise"
    mondrian = f"groups of at least {K} share covariates; what else is known tells their outcomes apart"
    return [
        Rival("k-anonymity, Mondrian", "nothing", "none", mondrian, k_anonymous),
        Rival("AIPW, not private", "nothing", "none", without, simple.aipw),
        Rival("OLS, not private", "nothing", "none", without, simple.ols),
        Rival("difference in means, not private", "nothing", "none", without, simple.difference),
        Rival("DoubleML, not private", "nothing", "none", without, by_task("doubleml"), apart=True),
        # It reads nothing, so that every guarantee holds; it is a yardstick, and takes no part in rankings.
        Rival("zero", "nothing", "holds", "it reads no data", simple.zero),
    ]


RIVALS: dict[str, Rival] = {
    one.name: one
    for one in (*_ours(), *_private_matching(), *_papers(), *_simple(), *_general(), *_not_private())
}

# Tests of no effect in a trial with a yes-or-no outcome, outcomes private: p-values, at noise of pure epsilon.
TESTS: dict[str, Callable[[Records, Budget, int], float]] = {
    "ours, difference in means (outcome)": ours.p_value,
    "DP randomisation test": simple.p_value,
}
