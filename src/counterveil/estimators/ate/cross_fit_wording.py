"""What the results of cross-fitting say in words."""

from __future__ import annotations

from counterveil.curator.parallel import ParallelPlan
from counterveil.estimators.ate.cross_fit_settings import CrossFitSettings
from counterveil.estimators.ate.doubly_robust_plan import Design

PAGES = (
    "sensitivity/robust_score.proof.md",
    "sensitivity/penalised_fit.proof.md",
    "sensitivity/free_gram.proof.md",
    "sensitivity/record_moments.proof.md",
    "sensitivity/record_norms.proof.md",
    "curator/parallel.proof.md",
)
_PURE_PAGES = ("mechanisms/ball.proof.md", "mechanisms/laplace.proof.md")


def pages(law: str) -> tuple[str, ...]:
    """Return the pages that prove the promise, beside that of the law itself."""
    return PAGES if law == "gaussian" else (*PAGES, *_PURE_PAGES)


def releases(plan: ParallelPlan, declared: float | None) -> tuple[tuple[str, str], ...]:
    """Return what was released, in words."""
    said = [
        ("means and mean squares of all columns, lengths of rows", "all rows"),
        ("second moments of covariates, treatment and outcome", "each half"),
    ]
    if declared is None:
        said.append(("weights of the propensity model", "each half"))
    said.append(("mean score and its squares", f"all rows; parts of the budget: {plan.shares}"))
    return tuple(said)


def not_covered(settings: CrossFitSettings, penalty: float, declared: float | None) -> tuple[str, ...]:
    """Return what the interval does not cover, the worst first."""
    if declared is not None:
        return (
            "clipping of scores far beyond their predicted spread",
            "clamping of outcomes to the declared range",
        )
    return (
        "MODELS: outcomes that are not linear in the covariates with one effect, where the propensity model, "
        f"penalised ({penalty:.3g}) and noisy, is wrong as well",
        "CONFOUNDING by anything that is not among the covariates",
        f"propensities outside [{settings.clip:.3g}, {1 - settings.clip:.3g}], which are clipped, and scores far "
        "beyond their predicted spread",
        "clamping of outcomes to the declared range; the interval is a large-sample one whose coverage was "
        "measured, not proved",
    )


def details(
    half: Design, penalty: float, declared: float | None, clip: float, share: float, kept: float
) -> dict[str, float | str]:
    """Return single figures; all of them are public or released."""
    found: dict[str, float | str] = {"adjusted": True, "features": half.features, "law": half.law}
    found["share treated (released)"] = share
    found["clip of scores, in half ranges"] = clip
    if declared is not None:
        return found | {"propensity (declared)": declared}
    return found | {"penalty": penalty, "part of the slopes kept": kept}
