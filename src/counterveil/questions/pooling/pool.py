"""`pool(...)`: the private answers of several sites as one answer; nothing is spent.

In come results, what their `to_dict` gave, or paths of files; by their kind they go to `effects` (one
difference), `measures` (a measure of both means), `tables` (several effects) or `moments` (second moments).
All of it is post-processing of released numbers, so that everyone keeps the guarantee of their own site.

Averages, their errors and the pooled guarantee: `inference/pooling.proof.md`; for effects that differ between
sites: `inference/random_effects.proof.md`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from counterveil.errors import refusal
from counterveil.questions.asking import refuses_unknown
from counterveil.questions.choices import PoolMethod, repeat_of_pool
from counterveil.questions.pooling.agreement import check_agreement, sizes_of
from counterveil.questions.pooling.averages import check_method
from counterveil.questions.pooling.effects import (
    PooledNumberNeededToTreat,
    PooledResult,
    average_of_results,
    number_needed_to_treat_of,
    pooled_result,
)
from counterveil.questions.pooling.measures import PooledMeasure, pool_measures
from counterveil.questions.pooling.moments import PooledMoments, added_up
from counterveil.questions.pooling.reading import Sources, kind_of_all, named, read_answer, read_sites
from counterveil.questions.pooling.tables import PooledTable, pooled_table
from counterveil.results.effect import check_level
from counterveil.results.regression import Moments
from counterveil.results.result import MeasureResult, difference_result
from counterveil.settings import WeightLimits


def pool_one(
    results: Sources, method: str, level: float, weight_limits: WeightLimits | None
) -> PooledResult | PooledMeasure | PooledNumberNeededToTreat:
    """Return the average of effects or of measures, one of each site."""
    sites = read_sites(results, measures=True)
    if not any(isinstance(result, MeasureResult) for _, result in sites):
        return average_of_results(sites, method, level, weight_limits)
    check_agreement(sites)
    if all(isinstance(result, MeasureResult) and result.means is not None for _, result in sites):
        pooled = pool_measures(sites, sizes_of(sites), method, level=level, bounds=weight_limits)
        repeat = repeat_of_pool([name for name, _ in sites], method, level)
        return pooled if weight_limits is not None else replace(pooled, repeat=repeat)
    differences = [(name, difference_result(cast("MeasureResult", result))) for name, result in sites]
    return number_needed_to_treat_of(pooled_result(differences, method, level, weight_limits))


@refuses_unknown
def pool(
    results: Sources,
    *,
    method: PoolMethod = "mvagg",
    level: float = 0.95,
    weight_limits: WeightLimits | None = None,
) -> PooledResult | MeasureResult | PooledTable | PooledMoments:
    """Pool the private answers of several sites; nothing is spent.

    Ratios, odds ratios and lifts are those of the arms' means, averaged by size; numbers needed to treat that
    sites were asked for are those of the average difference, and ``as_measure("nnt")`` of pooled ratios gives
    them too. Answers of several effects are pooled row by row; second moments are added up, and regressions
    fitted once.

    Parameters
    ----------
    results : sequence or mapping of results, dicts or paths
        Results of `ate`, `arms`, `groups`, `outcomes`, `survival` or `moments`, what their `to_dict` gave, or
        paths of JSON files; a mapping names the sites. All answer the same question, and nobody is in two
        sites.
    method : {"mvagg", "ivw", "all", "largest", "random_effects"}, default "mvagg"
        Which average: of the subset of sites with the least variance, with weights by size; of all sites, by
        inverse variances; of all sites, by size; the largest site alone; or the mean of sites whose effects
        may differ, where the noisiest are left out.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1; the privacy noise is included.
    weight_limits : cv.settings.WeightLimits, optional
        For sites that do not trust each other: the most weight of each. Weights then follow sizes and the
        scales of the noise, not the variances that sites report.

    Returns
    -------
    PooledResult, MeasureResult, PooledTable or PooledMoments
        The average of one effect, of a measure, of several effects row by row, or the sum of second moments;
        with the weights of the sites and how far they differ.

    Raises
    ------
    CounterveilError
        CV-P5xx for results that answer different questions, are the same release twice, or cannot be read.

    See Also
    --------
    ate : One site's effect.

    Notes
    -----
    With weights w_j that add up to 1, the estimate is sum_j w_j e_j and its variance sum_j w_j^2 v_j, noise
    included: inverse variances are w_j = (1 / v_j) / sum_k 1 / v_k. "random_effects" adds the variance between
    sites (Paule and Mandel [1]_) and has Student's t over sites. Sites hold different people, so that the privacy
    loss of each person is that of their own site (parallel composition).

    References
    ----------
    .. [1] Paule, R. C. and Mandel, J. (1982). Consensus values and weighting factors.
       Journal of Research of the National Bureau of Standards 87, 377-385.

    Examples
    --------
    >>> import counterveil as cv
    >>> sites = {}
    >>> for seed, name in enumerate(["north", "south"]):
    ...     data = cv.datasets.simulated_trial(n=1000, effect=0.3, seed=seed)
    ...     noise = cv.SeededNoise(seed)
    ...     sites[name] = cv.ate(data.frame, data.study, protects="outcome", epsilon=2, noise=noise)
    >>> round(cv.pool(sites).estimate, 1)
    0.3
    """
    level = check_level(level)
    check_method(method)
    if not isinstance(weight_limits, WeightLimits | None):
        raise refusal("CV-P019b", expected="cv.settings.WeightLimits", kind=type(weight_limits).__name__)
    if kind_of_all(results) is not None:
        return pool_answers(results, method, level, weight_limits)
    return pool_one(results, method, level, weight_limits)


def pool_answers(
    sources: Any, method: str, level: float, bounds: WeightLimits | None
) -> PooledTable | PooledMoments:
    """Return the answers of several sites as one: tables row by row, moments added up."""
    sites = named(sources, read_answer)
    check_agreement(sites)
    if all(isinstance(result, Moments) for _, result in sites):
        return added_up(sites, method, level, bounds)
    return pooled_table(sites, method, level, bounds)
