"""An unadjusted comparison whose interval is longer by a declared bound on confounding.

Where rows and budget do not afford adjustment, |unadjusted difference - effect| <= kappa sd(y) / (0.75 sd(t))
may be declared. Everything that is added is computed from the released comparison, so that it costs nothing.

In: a released difference in means with its error, the released share treated and the declared `kappa`, a
number without unit. Out: the same estimate, in units of the outcome, with the bound as a bias at both ends of
its interval. y is the outcome, t the treatment (0 or 1), sd the standard deviation over everyone, where sd(y)
is taken at its upper limit from the released second moment. The bound is an assumption of the user, not a
result; it is post-processing, and privacy is that of the comparison
(`rows/moments/centred_contrast.proof.md`).
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

from counterveil.estimators.moments.scaling import inner_share
from counterveil.numerics.public_choices import LEFT_OF_TREATMENT
from counterveil.privacy.caveats import ConfoundingBeyond, NotAdjusted, confounding
from counterveil.privacy.provenance import Estimator
from counterveil.report.methods import estimator_words
from counterveil.results.question import Question
from counterveil.results.result import Result


def with_confounding_bound(comparison: Result, question: Question, rows: int, kappa: float) -> Result:
    """Return a released difference in means with kappa sd(y) / (0.75 sd(t)) added at both ends of its interval."""
    uncertainty = comparison.uncertainty
    share = inner_share(float(comparison.details["share_treated"]))
    # The contrast weights a row by 1/q or 1/(1-q), at least one over the larger of the two.
    second_moment = max(uncertainty.known_sd(1 - question.level) ** 2 - uncertainty.extra, 0.0) * rows
    sd = max(share, 1 - share) * sqrt(second_moment + comparison.estimate**2)
    bound = kappa * sd / (LEFT_OF_TREATMENT * sqrt(share * (1 - share)))
    details: dict[str, float | str] = {"adjusted": False, "kappa": kappa, "confounding_bound": bound}
    other_caveats = (caveat for caveat in comparison.not_covered if not confounding([caveat]))
    return replace(
        comparison,
        method=estimator_words(Estimator.BOUNDED_CONFOUNDING),
        uncertainty=replace(uncertainty, bias=bound),
        not_covered=(ConfoundingBeyond(kappa), *other_caveats),
        details=details | comparison.details,
        interval_target=None,
        condition=NotAdjusted(kappa),
    )
