"""The words of what an answer says of itself: one table, from the values of `counterveil.privacy.caveats`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from counterveil.privacy import Estimand, caveats
from counterveil.privacy.caveats import (
    OPENING,
    AtSites,
    Caveat,
    Fact,
    FoldModels,
    ParallelTrends,
    Target,
    confounding,
    read_fact,
    read_facts,
)

# A caveat is a name, a colon and what is to be said of it; short ones are their name.
_WORDS: dict[Fact, str] = {
    Caveat.NOTHING_ADJUSTED: "CONFOUNDING: the study is not declared randomised and nothing is adjusted for",
    Caveat.CONFOUNDING: "CONFOUNDING by anything that is not among the study's covariates",
    Caveat.CONFOUNDING_WITHIN_STRATA: "CONFOUNDING within strata: by anything that is not one of the declared strata",
    Caveat.CONFOUNDING_WITHIN_MERGED_STRATA: "CONFOUNDING by covariates within merged strata",
    Caveat.CONFOUNDING_WITHIN_GROUPS: "CONFOUNDING within groups: the study is not declared randomised and nothing "
    "else is adjusted for",
    Caveat.CONFOUNDING_BEHIND_NOISY_SCORES: "CONFOUNDING: scores with this much noise adjust for little of it",
    Caveat.CONFOUNDING_NOT_LINEAR_IN_LOGIT: "CONFOUNDING by anything that is not among the covariates, or not linear "
    "in the logit",
    Caveat.CONFOUNDING_LEFT_BY_PENALTY: "CONFOUNDING that the penalised model without intercept leaves",
    Caveat.UNDECLARED_COVARIATES: "undeclared covariates",
    Caveat.OMITTED_VARIABLES: "omitted variables: a coefficient is an effect only if the formula holds what it must",
    Caveat.OTHER_THAN_FEATURES: "treatment or outcome depending on covariates in ways that the features cannot express",
    Caveat.NONLINEARITY: "nonlinearity: relations of treatment and outcome with covariates that the features "
    "do not capture",
    Caveat.NOT_POLYNOMIAL: "outcomes or effects that polynomials of the covariates cannot express",
    Caveat.FLAT_ENDS: "THE ENDS OF RANGES: cosines are flat there, whatever the effect is",
    Caveat.BEYOND_COVARIATES: "people beyond the covariates in the data, to whom effects are carried on flat",
    Caveat.ERRORS_BEYOND_PRODUCT: "errors of the fitted models: those beyond the product that large samples make small",
    Caveat.ERRORS_OF_NOISY_WEIGHTS: "errors of the propensity model: noise in the weights enters exponentially and "
    "biases the sum",
    Caveat.SAMPLING_AND_MODELS: "sampling error and bias of the fitted models",
    Caveat.FAILED_FOLDS: "folds in which the learner fails: they count as an effect of 0, and their number is private",
    Caveat.EXTREME_PROPENSITIES: "propensities outside the declared limits",
    Caveat.FITTED_TO_SAME_ROWS: "a model fitted to the same rows: its recommendations look better on them than on new "
    "people; evaluate it on rows it has not seen",
    Caveat.IMBALANCE: "residual imbalance: see the balance table",
    Caveat.IMBALANCE_WITHIN_GROUPS: "bias from residual imbalance within a group",
    Caveat.MATCHING_BIAS: "bias of matching: a misspecified propensity score, inexact matches",
    Caveat.UNMATCHED: "units without a match, which are dropped",
    Caveat.STRATA_COUNTED_AS_ZERO: "people in strata that lack an arm: their effect is counted as zero",
    Caveat.FIXED_STRATA: "sampling of people: strata and their sizes are treated as fixed",
    Caveat.OWN_RATIOS: "the average of everyone's own ratio: people count by their denominator",
    Caveat.NOT_FOR_PEOPLE: "how the effect differs between people",
    Caveat.UNEVEN_VARIANCE: "heteroskedasticity correlated with the weights",
    Caveat.UNEVEN_VARIANCE_WITHIN_ARM: "variances of outcomes that differ within an arm",
    Caveat.UNEQUAL_VARIANCES: "UNEQUAL VARIANCES of errors: standard errors are classical",
    Caveat.CLUSTERS_DEPEND: "dependence between clusters",
    Caveat.NOISE_OF_SHARES: "noise in the shares of people, which are as released",
    Caveat.NOISE_OF_VARIANCE: "noise of the released variance",
    Caveat.COVERAGE_MEASURED: "large-sample intervals, whose coverage was measured, not proved",
    Caveat.CENSORING: "CENSORING that depends on what would have happened: it is taken to be independent",
    Caveat.CENSORING_WITHIN_STRATA: "CENSORING that depends on what would have happened within strata: it is taken to "
    "be independent",
    Caveat.CENSORING_IN_WEIGHTED_ARMS: "CENSORING that depends on what would have happened in the weighted arms: it is "
    "taken to be independent",
    Caveat.BETWEEN_ENDS_OF_CELLS: "times between the ends of cells: they are taken to lie at the ends",
    Caveat.UNEVEN_CENSORING: "hazards that jump within time cells: more than neighbouring cells suggest",
    Caveat.AFTER_THE_HORIZON: "events after the horizon",
    Caveat.UNEVEN_WITHIN_CELLS: "outcomes that crowd within a cell too little to stand out: taken to lie evenly in it",
    Caveat.CLAMPING: "clamping of outcomes to the declared range: this answer does not say how many lie at its ends",
    Caveat.CLAMPING_OF_PREDICTED: "clamping of outcomes, and of outcomes minus prediction, to the declared range",
    Caveat.CLAMPING_OF_COVARIATES_TOO: "clamping of outcomes and covariates to the declared ranges",
    Caveat.CLAMPING_TO_RANGES: "clamping to the declared ranges",
    Caveat.CLIPPED_RESIDUALS: "clipping of rare large residuals",
    Caveat.CLIPPED_SCORES: "clipping of rare large scores",
    Caveat.CLIPPED_FAR_SCORES: "clipping of scores far beyond their predicted standard deviation",
    Caveat.PRIVACY_REFUTED: "PRIVACY: the claim of this form is refuted; what a record loses is not known",
    Caveat.PRIVACY_ASYMPTOTIC: "PRIVACY: the claim is asymptotic, and false for some data of any size; the noise's "
    "scale, which is shown here, is computed from the rows",
    Target.CONFOUNDED_DIFFERENCE: "the unadjusted difference between the arms, confounding included",
    Target.UNADJUSTED_CONTRAST: "the unadjusted contrast of the arms: no part of the propensity model was "
    "distinguishable from noise",
    Target.SHRUNK_CONTRAST: "the contrast of randomized treatments, which randomized response shrinks towards zero",
    Target.PUBLISHED_ESTIMATE: "the published estimate; that its variance and its scale are noisy themselves is "
    "ignored",
    Target.KERNEL_REGRESSION: "the fitted kernel regression: its sampling error and its bias are not in them",
    Target.UNCLIPPED_CONTRAST: "the contrast weighted by unclipped noisy scores",
    Target.TREATED_TIMES_SHARE: "the effect on the treated times the share treated",
    Target.UNTREATED_TIMES_SHARE: "the effect on the untreated times their share",
    Target.OWN_QUANTITY: "what the method estimates, which its author says is not the average effect",
    Target.NO_QUANTITY: "no quantity: the scale of the published noise is private, so none can be given",
    FoldModels.OUTCOME: "the outcome regression in each arm is linear in the covariates",
    FoldModels.OUTCOME_OR_LOGIT: "the outcome regression or the logit of the propensity score is linear in the "
    "covariates",
}
# Of facts with numbers: a format of their fields.
_FORMATS: dict[type, str] = {
    caveats.ConfoundingBeyond: "CONFOUNDING beyond the declared kappa = {kappa:g}",
    caveats.LearnerBias: "bias of the learner ({learner}) on about {rows} rows, and CONFOUNDING that it does not "
    "remove",
    caveats.MisspecifiedModels: "misspecified models: outcomes that are not linear in the covariates with one effect, "
    "where the propensity model, penalised ({penalty:.3g}) and noisy, is wrong as well",
    caveats.OtherEstimand: "any difference between {estimand} and ATE: under randomisation they agree in expectation",
    caveats.SmallArms: "arms smaller than {share:.0%} of everyone",
    caveats.ResidualImbalance: "residual imbalance: if mean outcomes vary over the covariates with SD s, expect a bias "
    "of about {sds:.2g} s; the interval covers it up to its allowance for bias",
    caveats.ClippedFolds: "effects of folds more than {bound:.4g} from {centre:.4g}, which are clipped",
    caveats.ClampedOutcomes: "outcomes outside {low:.4g} to {high:.4g}, where a private search found them to lie: they "
    "are clamped, and the interval allows for undetected ones just beyond, not for few that are far off",
    caveats.Downweighted: "rows with unusual covariates are downweighted: about {share:.1%} of rows count less; where "
    "effects are not linear this shifts what a regression estimates",
    caveats.Shrinkage: "SHRINKAGE: randomized response mixes the arms and multiplies the effect by about {factor:.2g}",
    caveats.OneLook: "P-VALUE of this analysis alone: over all analyses, zero is ruled out only below {alpha:.3g}",
    caveats.WeightedContrast: "the contrast weighted by the released scores, which range from {low:.3g} to {high:.3g}; "
    "it estimates the effect only if those scores are correct",
    caveats.LearnersAnswer: "the expected answer of {learner} on about {rows} rows",
    caveats.LinearIn: "the propensity score or the outcome regression is linear in {features} features, up to the "
    "allowance for bias",
    caveats.KnownScore: "{column!r} is each person's probability of treatment",
    caveats.KeptByTrim: "people whose propensity scores trim={trim} keeps",
}
_MOST_COLUMNS = 8
_PEOPLE = {Estimand.ATE: "everyone", Estimand.ATT: "the treated", Estimand.ATC: "the untreated"}


def fact_words(fact: Fact) -> str:
    """Return a fact in words."""
    if fact in _WORDS:
        return _WORDS[fact]
    if type(fact) in _FORMATS:
        assert not isinstance(fact, str)
        return _FORMATS[type(fact)].format(**asdict(fact))
    return _composed(fact)


def _any_of(columns: tuple[str, ...]) -> str:
    """Return columns as a sentence lists them, the first of many."""
    listed = [repr(name) for name in columns[:_MOST_COLUMNS]]
    more = len(columns) - len(listed)
    if more:
        return f"{', '.join(listed)} or any of {more} more columns"
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"


def _composed(fact: Fact) -> str:
    """Return the words of a fact whose fields decide what is said."""
    match fact:
        case ParallelTrends():
            rest = "confounding of changes, and effects before treatment starts, are not covered"
            return f"PARALLEL TRENDS assumed: {trend_words(fact)}; {rest}"
        case caveats.ErrorsOfPropensity(penalty, shrunk):
            noisy = "noisy and shrunk" if shrunk else "noisy"
            return (
                f"errors of the propensity model: it is penalised ({penalty:.3g}), {noisy}, which leaves residual "
                "confounding"
            )
        case caveats.BiasBeyond(errors, of_each_arm):
            if of_each_arm:
                return f"bias beyond {errors:g} standard errors from sampling of each arm's mean"
            return (
                f"bias beyond {errors:g} standard errors from sampling, or, where covariates explain less than a fifth "
                "of outcomes, imbalance in them beyond chance"
            )
        case caveats.OtherFunctions(balanced):
            return (
                "misspecification: outcomes and treatment that follow functions of covariates other than the balanced "
                f"features ({', '.join(balanced)}) by more than the allowance for bias"
            )
        case caveats.NotExpressed(families):
            return f"outcomes or effects that the functions cannot express ({', '.join(families)})"
        case caveats.RowsLeftOut(columns):
            return (
                f"PEOPLE WITHOUT A VALUE of {_any_of(columns)}: their rows are left out, so the effect is that of "
                "people whose values are complete"
            )
        case caveats.ValuesFilled(columns):
            return f"missing values of {_any_of(columns)}: the constant that the study declares counts in their place"
        case caveats.StrataLeftOut(estimand, None):
            return f"people in strata that lack an arm: the effect is that of {_PEOPLE[estimand]} in the other strata"
        case caveats.StrataLeftOut(estimand, limit):
            return (
                f"strata that lack an arm or are unbalanced: the effect is an average over {_PEOPLE[estimand]} in "
                f"which a stratum counts at most {limit:g} times its smaller arm (the weight kept shows how much is "
                "lost)"
            )
        case caveats.OutcomesAtEnds():
            return _at_ends(fact)
        case caveats.ClippedPropensities(clip):
            return f"scores outside [{clip:.3g}, {1 - clip:.3g}], which are clipped"
        case caveats.ClippedOutliers(columns, reaches, in_sds):
            unit = " standard deviations" if in_sds else ""
            predicted = "from what other columns predict (both released)"
            said = (
                f"{name} further than {reach:.3g}{unit} {predicted}"
                for name, reach in zip(columns, reaches, strict=True)
            )
            return f"outliers are clipped: {'; '.join(said)}"
    return _composed_of_people(fact)


def _composed_of_people(fact: Fact) -> str:
    """Return the same of facts about sites, bounds, models and people."""
    match fact:
        case caveats.SitesLeftOut(sites):
            return f"the people of sites left out: {', '.join(sites)}"
        case caveats.SitesWithoutAnswer(sites, states):
            said = (f"{site} ({state})" for site, state in zip(sites, states, strict=True))
            return f"the people at sites without a valid answer: {'; '.join(said)}"
        case caveats.NotAdjusted(kappa):
            return (
                f"adjusted=False, covariates were not used; the interval covers if kappa <= {kappa:g}, the declared "
                "bound on confounding"
            )
        case caveats.LinearScores():
            return _linear(fact)
        case caveats.KeptPeople(kept, rows, limit):
            return (
                f"the {kept:,} of {rows:,} people whose propensity score is in [{limit:.3g}, {1 - limit:.3g}]"
            )
    raise TypeError(type(fact).__name__)


def _at_ends(fact: caveats.OutcomesAtEnds) -> str:
    """Return how many outcomes lie at the ends of their range, in capitals where they crowd there."""
    cell = f"{fact.part:.3g} of the range"

    def share(end: tuple[float, ...]) -> str:
        return f"{max(end[0], 0.0):.1%} [{end[1]:.1%}, {end[2]:.1%}]"

    said = {"lower": f"the lowest {cell} holds {share(fact.lower)}"}
    said["upper"] = f"the highest {cell} holds {share(fact.upper)}"
    if not fact.crowded:
        return (
            "clamping of outcomes to the declared range: no crowd at its ends was found; "
            f"{' and '.join(said.values())} of outcomes more than the cell beside it (released)"
        )
    name = "BOTH ENDS" if len(fact.crowded) == 2 else f"THE {fact.crowded[0].upper()} END"
    found = " and ".join(said[end] for end in fact.crowded)
    return (
        f"OUTCOMES AT {name} OF THE DECLARED RANGE: {found} of outcomes more than the cell beside it (released), as "
        "clamping leaves them; declare a wider range unless outcomes cannot lie beyond it"
    )


def trend_words(fact: ParallelTrends) -> str:
    """Return what parallel trends say of the outcome."""
    others = "untreated people with the same covariates" if fact.adjusted else "the untreated"
    both = (
        ", and with treatment that of the untreated as that of the treated did" if fact.of_untreated else ""
    )
    return (
        f"without treatment, {fact.outcome!r} of the treated would have changed as that of {others} did{both}"
    )


def _linear(fact: caveats.LinearScores) -> str:
    more = ["their squares"] * fact.squares + ["pairwise products"] * fact.products
    linear = " and ".join([", ".join(["linear in the covariates", *more[:-1]]), *more[-1:]])
    return f"the {'inverse ' * fact.inverse}propensity score or the outcome regression is {linear}"


def target_words(fact: Fact | None) -> str:
    """Return what an interval is for."""
    if isinstance(fact, AtSites):
        said = (f"{site}, {target_words(one)}" for site, one in zip(fact.sites, fact.facts, strict=True))
        return f"the sites estimate different quantities: {'; '.join(said)}"
    return "the effect" if fact is None else fact_words(fact)


def depends_words(fact: Fact) -> str:
    """Return what an interval depends on, or assumptions: at any site, where there are several."""
    if isinstance(fact, AtSites):
        return "; ".join(dict.fromkeys(fact_words(one) for one in fact.facts if one is not None))
    return fact_words(fact)


def people_words(fact: Fact) -> str:
    """Return who was kept: everybody's answer at once where it is one, else each site's."""
    if isinstance(fact, AtSites):
        said = zip(fact.sites, fact.facts, strict=True)
        return " and ".join(f"{None if one is None else fact_words(one)} ({site})" for site, one in said)
    return fact_words(fact)


def first_words(
    *,
    interval_target: Fact | None,
    condition: Fact | None = None,
    assumptions: Fact | None = None,
    population: Fact | None = None,
) -> str | None:
    """Return what is said before any number, None where there is nothing to say.

    The gravest is said alone: no interval for the effect, then no adjustment, then models that were assumed.
    """
    said = (
        []
        if population is None
        else [f"TRIMMED: the effect is that of {people_words(population)}, not of everyone"]
    )
    if interval_target is not None:
        said.append(f"NO VALID INTERVAL FOR THE EFFECT: the interval is for {target_words(interval_target)}")
    elif condition is not None:
        said.append(f"NOT ADJUSTED: {depends_words(condition)}")
    elif assumptions is not None:
        said.append(f"MODELS ASSUMED: the interval is valid if {depends_words(assumptions)}")
    return "; ".join(said) or None


def opening_of(facts: Mapping[str, Any], name: str) -> Any:
    """Return what a document says under one of the names that come first, None where it says nothing."""
    assert name in OPENING
    return None if facts.get(name) is None else read_fact(name, facts[name])


def caveats_of(facts: Mapping[str, Any]) -> tuple[Fact, ...]:
    """Return what the intervals of a document do not cover, as values."""
    return read_facts("not_covered", facts["not_covered"])


def caveat_words(facts: Mapping[str, Any]) -> list[str]:
    """Return what the intervals of a document do not cover, each in words."""
    return [fact_words(one) for one in caveats_of(facts)]


def trends_of(facts: Mapping[str, Any]) -> str | None:
    """Return what a comparison of changes assumes, None where outcomes are no changes."""
    found = next((one for one in caveats_of(facts) if isinstance(one, ParallelTrends)), None)
    return None if found is None else trend_words(found)


def supposed_words(facts: Mapping[str, Any]) -> list[str]:
    """Return what has to hold beyond the interval for a number to be an effect."""
    return _assumed(caveats_of(facts), "This assumes ")


def assumed_words(assumptions: Fact | None, not_covered: Iterable[Fact]) -> str:
    """Return what an interval assumes in one line: its models, and what else has to hold for it to be an effect's."""
    models = [] if assumptions is None else [f"{depends_words(assumptions)}."]
    found = [*models, *_assumed(tuple(not_covered))] or ["Nothing but that treatment was randomised."]
    return " ".join(f"{one[0].upper()}{one[1:]}" for one in found)


def _assumed(said: tuple[Fact, ...], lead: str = "") -> list[str]:
    trends = next((trend_words(one) for one in said if isinstance(one, ParallelTrends)), None)
    if trends is not None:
        return [f"{lead}parallel trends: {trends}."]
    if Caveat.NOTHING_ADJUSTED in said:
        return ["Nothing was adjusted for: people with and without treatment may differ in other ways."]
    return [f"{lead}no confounding beyond the declared covariates."] if confounding(said) else []
