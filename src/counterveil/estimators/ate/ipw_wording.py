"""What the results of inverse weighting say in words: what was released, what the interval does not cover."""

from __future__ import annotations

from fractions import Fraction

from counterveil.data import Study, Table
from counterveil.estimators.ate.ipw_nuisances import LEAST_SHARE, Fitting, Nuisances
from counterveil.estimators.ate.ipw_settings import IPWSettings
from counterveil.kernels.inverse_weights import Weighing
from counterveil.privacy import Estimand


def interval_of(study: Study, nuisances: Nuisances, weighing: Weighing) -> str | None:
    """Return None where the propensity is declared by a trial's design, else what the interval is for."""
    if study.treated_share is not None:
        return None
    if not nuisances.adjusted:
        return "the unadjusted contrast of the arms: nothing of the propensity model stood out from its noise"
    return (
        "the contrast weighted by the released scores, clipped to "
        f"[{weighing.low:.3g}, {weighing.high:.3g}]; it is the effect only if those scores are right"
    )


def not_covered(
    study: Study, settings: IPWSettings, fitting: Fitting | None, estimand: Estimand
) -> tuple[str, ...]:
    """Return what the interval does not cover, the worst first."""
    clamping = "clamping of outcomes to the declared range"
    if study.treated_share is not None:
        return (clamping,)
    penalty, clip = 0.0 if fitting is None else fitting.penalty, settings.clip or 0.0
    shrunk = " and shrunk" if settings.shrink else ""
    said = [
        f"SCORES: the propensity model is penalised ({penalty:.3g}), noisy{shrunk}; what it gets wrong is "
        "confounding that is left",
        "CONFOUNDING by anything that is not among the covariates, or not linear in the logit",
        f"scores outside [{clip:.3g}, {1 - clip:.3g}], which are clipped",
        clamping,
    ]
    if estimand is not Estimand.ATE:
        said.append(f"arms smaller than {LEAST_SHARE:.0%} of everyone")
    return tuple(said)


def releases(
    settings: IPWSettings, fitting: Fitting | None, weighing: Weighing, outcome_unit: Fraction
) -> tuple[tuple[str, str], ...]:
    """Return what was released, in words."""
    said: list[tuple[str, str]] = []
    if fitting is not None:
        said.append(
            (
                "weights of the propensity model",
                f"sensitivity {float(fitting.sensitivity):.4g}, first rows only",
            )
        )
    if settings.centred:
        where = "with the weights" if fitting is not None else "all rows"
        said.append(("both arms' totals", f"{where}; they centre the outcomes"))
    largest = weighing.scale * float(outcome_unit)
    said.append(("weighted sum", f"each row's part lies within {largest:.4g} of zero"))
    said.append(("its squares", "with the sum"))
    if weighing.estimand != "ATE" and fitting is not None:
        said.append(("number treated", "with the sum"))
    return tuple(said)


def details(
    table: Table,
    settings: IPWSettings,
    fitting: Fitting | None,
    nuisances: Nuisances,
    weighing: Weighing,
    law: str,
) -> dict[str, float | str]:
    """Return single figures; all of them are public or released."""
    lo, unit = float(table.study.outcome_range[0]), float(table.outcome_unit)
    found: dict[str, float | str] = {"rows": table.rows, "law": law, "form": settings.form or ""}
    if fitting is None:
        found["propensity (declared)"] = weighing.low
    else:
        found |= {
            "adjusted": "yes" if nuisances.adjusted else "no",
            "rows of the propensity model": fitting.rows,
            "penalty": fitting.penalty,
            "noise of each weight, sd": nuisances.noise_sd,
            "part of the slopes kept": nuisances.kept,
            "lowest score": weighing.low,
            "highest score": weighing.high,
        }
    if settings.centred:
        found["centre of the treated"] = lo + unit * weighing.centres[0]
        found["centre of the controls"] = lo + unit * weighing.centres[1]
    return found
