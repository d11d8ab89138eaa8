"""Claims that fail, of papers and of programs, run under the same testers as ours; replay of several questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, log, pi, sqrt
from typing import Any

import numpy as np

from counterveil.accounting import open_ledger
from counterveil.data import Binary, Outcome, Range, Study, Treatment, Trial
from counterveil.mechanisms import BitSource, LaplacePair, SeededNoise
from counterveil.numerics.matching import matching_coefficients
from counterveil.privacy import Budget
from counterveil.published.asking import textbook_constant
from counterveil.published.strata import (
    printed_log_sd,
    printed_noise_scale,
    printed_smooth_change,
    printed_smoothness,
)
from counterveil.published.strata_sensitivity import StratumCounts
from counterveil.questions.session import Session
from counterveil_lab.attacks.asking import (
    Question,
    Seen,
    Watch,
    WatchedCurator,
    ask_session,
    noted_error,
    overheard,
)
from counterveil_lab.audit import (
    AuditReport,
    AuditRow,
    ExactTester,
    Given,
    Line,
    LowerBound,
    Quantity,
    Tester,
    ThresholdTester,
)
from counterveil_lab.audit.report import FloatArray, Mechanism, Pair, judge

Columns = dict[str, Any]
Play = Callable[[Columns, Watch, BitSource, bool], Seen]
_ROWS = 40


@dataclass(frozen=True)
class Scenario:
    """What is done to two neighbouring data sets, with everything that whoever does it can see.

    `play(data, watch, source, open_handed)` does it; what it shows must be the same on both. Open-handed it skips the
    rule that is under test, and the two must then differ: this is the power of the audit.
    """

    name: str
    unit: str
    pair: tuple[Columns, Columns]
    play: Play

    def examine(self, seed: int) -> AuditReport:
        """Return the audit: the channels in which the neighbours differ, with the rule and without it."""
        ours, theirs = (self._finding(seed, open_handed) for open_handed in (False, True))
        row = AuditRow("replay", ours, theirs, judge(ours, theirs))
        return AuditReport(self.name, Budget(1), (row,), 1, 1.0)

    def _finding(self, seed: int, open_handed: bool) -> LowerBound:
        found = self.differences(seed, open_handed)
        witness = "; ".join(found) or "nothing differs"
        return LowerBound("replay", Quantity.DIFFERENCES, len(found), 0.0, 1.0, witness)

    def differences(self, seed: int, open_handed: bool = False) -> list[str]:
        """Return the channels in which the two data sets look different though they release the same."""
        first = Watch()
        seen = self.play(self.pair[0], first, SeededNoise(seed), open_handed)
        second = Watch(forced=first.releases)
        return seen.differences(self.play(self.pair[1], second, SeededNoise(seed), open_handed))


# One account, two studies: what the first protects, the second must not show.


_AGE = {"age": Range(18, 90)}


def _patients() -> Columns:
    draw = np.random.default_rng(7)
    treated = draw.permutation([0, 1] * (_ROWS // 2))
    return {
        "treated": treated,
        "relapse": draw.binomial(1, 0.4, _ROWS).astype(float),
        "cost": draw.uniform(0, 100, _ROWS),
        "age": draw.uniform(20, 80, _ROWS),
    }


def _other_relapse(columns: Columns) -> Columns:
    relapse = columns["relapse"].copy()
    relapse[0] = 1 - relapse[0]
    return columns | {"relapse": relapse}


def _effect(session: Session, **words: Any) -> Any:
    return session.ate(protects="outcome", **words)


def _by_relapse(session: Session, **words: Any) -> Any:
    return session.groups(by="relapse", protects="outcome", method="difference_in_means", **words)


def _two_studies(data: Columns, watch: Watch, source: BitSource, open_handed: bool) -> Seen:
    """Ask about an outcome, then declare it a covariate whose balance and groups would be printed."""
    first = Study(Treatment("treated", control=0), Outcome("relapse", (0, 1)), _AGE, assignment=Trial())
    second = Study(
        Treatment("treated", control=0),
        Outcome("cost", (0, 100)),
        _AGE | {"relapse": Binary()},
        assignment=Trial(),
    )
    channels: dict[str, str] = {}
    with overheard(channels), open_ledger(":memory:", create=True) as ledger:
        for step, (study, ask) in enumerate(((first, _effect), (second, _effect), (second, _by_relapse))):
            name = f"people {step}" if open_handed else "people"
            with noted_error(channels, f" {step}"):
                if not any(account.dataset == name for account in ledger.datasets()):
                    ledger.register(name, Budget(100))
                with WatchedCurator(data, study, ledger=ledger, dataset=name, noise=source) as session:
                    question = Question(study, ask, Budget(1))
                    ask_session(question, session.watch(watch), channels, f" {step}")
    return Seen(channels)


SCENARIOS: dict[str, Scenario] = {
    one.name: one
    for one in (
        Scenario("account/two studies", "outcome", (_patients(), _other_relapse(_patients())), _two_studies),
    )
}
# Every entry is to be caught at this confidence; exact testers involve no chance.
CONFIDENCE = 0.95
_SAMPLES = 4000


@dataclass(frozen=True)
class Refuted:
    """A claim, who makes it, the neighbours on which it fails, and what is true instead."""

    name: str
    source: str
    claims: str
    fails: str
    instead: str
    budget: Budget
    mechanism: Mechanism
    pair: Pair
    tester: Tester

    def examine(self, seed: int = 1) -> LowerBound:
        """Return what the tester finds; the claim is broken if the finding says so."""
        rng = np.random.default_rng(seed)
        return self.tester.examine(self.mechanism, self.pair, self.budget, error=1 - CONFIDENCE, rng=rng)


@dataclass(frozen=True)
class Noisy:
    """A number plus noise of which value and scale are functions of the data set."""

    value: Callable[[Any], float]
    scale: Callable[[Any], float]
    gaussian: bool = False

    def sample(self, dataset: Any, count: int, rng: np.random.Generator) -> FloatArray:
        """Return releases by floating-point noise, as such programs draw it."""
        scale = self.scale(dataset)
        noise = rng.normal(0, scale, count) if self.gaussian else rng.laplace(0, scale, count)
        found: FloatArray = self.value(dataset) + noise
        return found

    def log_density(self, dataset: Any, outputs: FloatArray) -> FloatArray:
        """Return the log density of the noise at its place."""
        scale = self.scale(dataset)
        away = np.abs(outputs - self.value(dataset)) / scale
        if self.gaussian:
            return -(away**2) / 2 - log(scale * sqrt(2 * np.pi))
        return -away - log(2 * scale)

    def line(self, pair: Pair) -> Line:
        """Return where the exact tester looks."""
        return Line(
            tuple(self.value(one) for one in pair), max(self.scale(one) for one in pair), reach=1e4, points=80
        )


def exact(
    name: str,
    source: str,
    budget: Budget,
    mechanism: Noisy,
    pair: Pair,
    claims: str,
    fails: str,
    instead: str,
) -> Refuted:
    """Return an entry that the exact tester examines."""
    tester = ExactTester(mechanism.line(pair))
    return Refuted(name, source, claims, fails, instead, budget, mechanism, pair, tester)


def sampled(
    name: str,
    source: str,
    budget: Budget,
    mechanism: Mechanism,
    pair: Pair,
    claims: str,
    fails: str,
    instead: str,
) -> Refuted:
    """Return an entry that is caught by samples alone."""
    tester = ThresholdTester(_SAMPLES, (Given(lambda rows: rows[:, 0]),))
    return Refuted(name, source, claims, fails, instead, budget, mechanism, pair, tester)


@dataclass(frozen=True)
class Claimed:
    """What the gallery says of one entry: the finding, and whether the claim was broken."""

    entry: Refuted
    finding: LowerBound

    @property
    def found(self) -> str:
        """The finding beside the claim, in words."""
        size = "no finite bound" if self.finding.found == inf else f"at least {self.finding.found:.3g}"
        return f"{self.finding.quantity.value} {size}, claimed {self.finding.claimed:g}"

    def to_dict(self) -> dict[str, object]:
        """Return the entry and its finding as JSON-ready facts."""
        entry = self.entry
        said = {name: getattr(entry, name) for name in ("name", "source", "claims", "fails", "instead")}
        return said | {"budget": entry.budget.to_dict(), "finding": self.finding.to_dict()}


def shown(entries: dict[str, Refuted], seed: int = 1) -> list[Claimed]:
    """Return every entry with its finding."""
    return [Claimed(entry, entry.examine(seed)) for entry in entries.values()]


def table(found: list[Claimed]) -> str:
    """Return the gallery as text: for each claim who makes it, where it fails and what is true."""
    parts = []
    for one in found:
        verdict = "refuted" if one.finding.violated else "NOT REFUTED"
        entry = one.entry
        parts.append(
            "\n".join(
                [
                    f"{entry.name}: {verdict}, {one.found}",
                    f"  claim    {entry.source}: {entry.claims}",
                    f"  fails    {entry.fails}",
                    f"  instead  {entry.instead}",
                ]
            )
        )
    broken = sum(one.finding.violated for one in found)
    return "\n\n".join([*parts, f"{broken} of {len(found)} claims refuted at {CONFIDENCE:.0%} confidence"])


_INTRODUCTION = (
    "# Claims that fail\n"
    "\n"
    "Made by `counterveil audit --gallery --page FILE`.\n"
    "\n"
    "Each claim below is run on two neighbouring data sets, under the testers that audit our own releases"
    " ([auditing](auditing.md)). A claim is refuted if a lower bound on its epsilon or delta that holds "
    "with 95% confidence, or exactly, lies above what is claimed. The papers' forms can be run as "
    "printed: [published forms](../reference/published.md).\n"
    "\n"
)


def page(found: list[Claimed]) -> str:
    """Return the gallery as a page."""
    parts = []
    for one in found:
        entry = one.entry
        parts.append(
            f"## {entry.name[0].upper()}{entry.name[1:]}\n\n"
            f"- **Who:** {entry.source}.\n"
            f"- **Claim:** {entry.claims}.\n"
            f"- **Fails:** {entry.fails}.\n"
            f"- **Found:** {one.found} ({one.finding.tester} tester).\n"
            f"- **Instead:** {entry.instead}.\n"
        )
    return _INTRODUCTION + "\n".join(parts)


_DELTA = 1e-5


@dataclass(frozen=True)
class CapacityMatching:
    """Two Laplace draws on a matched effect, each for (k + 1) times the range over n, as PrivATE prints them."""

    epsilon: float
    treated = np.array([True] * 3 + [False] * 4)
    scores = np.array([0.40, 0.41, 0.9, 0.40, 0.40, 0.41, 0.41])

    def effect(self, outcomes: tuple[int, ...]) -> float:
        """Return the matched effect: two neighbours, each unit used twice at most."""
        found = matching_coefficients(self.treated, self.scores, 2, 2, 2).coefficients
        return float(found @ np.array(outcomes, dtype=float))

    def noise(self) -> LaplacePair:
        """Return the published noise: k = 1 in both arms, so that each draw is made for a change of 2 / 7."""
        scale = 2 / (len(self.scores) * self.epsilon)
        return LaplacePair(2 / len(self.scores), self.epsilon, scale)

    def sample(self, dataset: tuple[int, ...], count: int, rng: np.random.Generator) -> FloatArray:
        """Return noisy effects."""
        scale = float(self.noise().scale)
        found: FloatArray = self.effect(dataset) + rng.laplace(0, scale, (2, count)).sum(axis=0)
        return found

    def log_density(self, dataset: tuple[int, ...], outputs: FloatArray) -> FloatArray:
        """Return the log density of the two draws together."""
        return self.noise().log_density(outputs - self.effect(dataset))


def _capacity() -> Refuted:
    return Refuted(
        "capacity matching",
        "PrivATE (Yuan et al.), label level",
        "matching in which nobody is used more than k times has noise for k + 1 times the range",
        "seven people, two neighbours, k = 1: two controls find the limit reached and share one treated unit, whose "
        "outcome moves the effect by 3/7, not 2/7",
        "the exact coefficients are public, so noise is made for the largest: cv.ate(method='matching')",
        Budget(1),
        CapacityMatching(1.0),
        ((0,) * 7, (0, 0, 1, 0, 0, 0, 0)),
        ExactTester(Line((0.0, 3 / 7), 0.3, reach=1e4)),
    )


def _smooth() -> Refuted:
    budget, beta = Budget(1, "1e-5"), printed_smoothness(1.0, _DELTA)

    def bound(table: tuple[int, int]) -> float:
        return printed_smooth_change(StratumCounts.of(np.array([table[0]]), np.array([table[1]]), 1), beta)

    matched, alone = (1, 1), (2, 0)
    mechanism = Noisy(
        lambda table: 2.0 if table == matched else 0.0, lambda table: printed_noise_scale(bound(table), 1.0)
    )
    return exact(
        "smooth sensitivity that is not smooth",
        "SmoothDPMatching (Koga, Chaudhuri and Page)",
        budget,
        mechanism,
        (matched, alone),
        "Laplace noise 2 S / epsilon at the printed bound S keeps (epsilon, delta)",
        "two people, a matched pair; then the control becomes treated. The printed S takes the nearest tables for all "
        "that can be reached, and its logarithm moves by more than beta",
        "a bound over all tables within k replacements, with noise of pure epsilon: "
        "cv.published.smooth_matching_proved",
    )


def _scale() -> Refuted:
    epsilon = 5 / 3
    beta = printed_smoothness(epsilon, _DELTA)

    def log_bound(table: tuple[int, int]) -> float:
        counts = StratumCounts.of(np.array([table[0]]), np.array([table[1]]), 1)
        return log(printed_smooth_change(counts, beta))

    mechanism = Noisy(log_bound, lambda _: printed_log_sd(beta, epsilon, _DELTA), gaussian=True)
    return exact(
        "release of the smooth sensitivity",
        "SmoothDPMatching (Koga, Chaudhuri and Page)",
        Budget("5/3", "1e-5"),
        mechanism,
        ((9, 1), (8, 1)),
        "ln S with Gaussian noise for a change of beta keeps (epsilon, delta)",
        "nine treated and one control in a stratum, then eight: ln S moves by 1.4 beta",
        "ln of the corrected S, with Laplace noise of pure epsilon, or a bound that is public from the start",
    )


@dataclass(frozen=True)
class UnclippedWeighting:
    """A propensity coefficient with Gaussian noise, then a weighted sum with noise for the true propensity's bounds.

    The score of a sample is its log likelihood ratio: the attacker sees the noisy coefficient, and with it the weight.
    """

    epsilon: float
    fit_rows: int = 50
    rows: int = 50
    penalty: float = 0.1
    lowest: float = 0.1

    def sample(self, dataset: float, count: int, rng: np.random.Generator) -> FloatArray:
        """Return log ratios of the released sums: of an outcome of 1 against one of -1, both treated at x = 1."""
        constant = textbook_constant(_DELTA) / self.epsilon
        coefficient = rng.normal(0, 2 / (self.fit_rows * self.penalty) * constant, count)
        weight = 1 + np.exp(-np.clip(coefficient, -30, 30))
        sd = 2 / (self.rows * self.lowest) * constant
        effect = dataset * weight / self.rows + rng.normal(0, sd, count)
        found: FloatArray = np.clip(2 * effect * weight / (self.rows * sd**2), -1e6, 1e6)
        return found


def _weighting() -> Refuted:
    return sampled(
        "unclipped weighting",
        "PP-IPW (Lee et al.)",
        Budget("1/5", "1e-5"),
        UnclippedWeighting(0.2),
        (1.0, -1.0),
        "noise for bounds of the true propensity protects a sum that is weighted by the noisy fitted one",
        "100 people, epsilon 1/5: the noisy coefficient is tens of units off, and one person's weight with it",
        "scores clipped at a public bound, noise for that bound: cv.published.ipw_proved",
    )


def _finite(rows: int, epsilon: float) -> float:
    """Return the published standard deviation of an answer, in units of the pseudo-outcome's bound R."""
    return 5 * sqrt(2 * log(rows) * log(2 / _DELTA)) / (epsilon * rows)


def _many_queries() -> Refuted:
    rows, queries = 13247, 1312
    mechanism = Noisy(lambda one: 2 * one / rows, lambda _: _finite(rows, 1.0) / sqrt(queries), gaussian=True)
    return exact(
        "finite CATE, many queries",
        "DP-CATE, Theorem 1",
        Budget(1, "1e-5"),
        mechanism,
        (0.0, 1.0),
        "each of d answers has noise that does not grow with d",
        "13,247 people, 1,312 queries, a constant effect: one person moves all answers alike, and their mean has the "
        "noise of one over 36",
        "a function that is released once (cv.cate), or noise for the whole vector (cv.groups)",
    )


def _one_neighbour() -> Refuted:
    mechanism = Noisy(lambda one: one, lambda _: _finite(2700, 1.0), gaussian=True)
    return exact(
        "finite CATE, a learner that follows one person",
        "DP-CATE, Theorem 1",
        Budget(1, "1e-5"),
        mechanism,
        (0.0, 1.0),
        "the influence function of an average bounds what one person does to any learner",
        "2,700 people, one nearest neighbour: the answer at a person is that person's own",
        "any learner on disjoint folds, clipped and averaged: cv.cate(method='sample_and_aggregate')",
    )


def _functional() -> Refuted:
    features, bandwidth = 8, 1.0
    volume = (sqrt(2 * pi) * bandwidth) ** features
    # Both in units of L / (lambda n), and in the norm of the kernel: what all queries together tell.
    sd = 4 * sqrt(2 * log(2 / _DELTA)) / volume
    mechanism = Noisy(lambda one: one / sqrt(volume), lambda _: sd, gaussian=True)
    return exact(
        "functional CATE",
        "DP-CATE, Theorem 2",
        Budget(1, "1e-5"),
        mechanism,
        (0.0, 1.0),
        "one person moves the function by L over (sqrt(2 pi) h)^q lambda n",
        "8 covariates, bandwidth 1: the norm of the function moves by L over (sqrt(2 pi) h)^(q/2) lambda n, which is "
        f"{sqrt(volume) / 4:.0f} times what the noise is made for",
        "functions with bounded coefficients and noise for them: cv.cate(method='t_learner')",
    )


def papers() -> Iterator[Refuted]:
    """Yield the papers' claims."""
    yield _capacity()
    yield _smooth()
    yield _scale()
    yield _weighting()
    yield _many_queries()
    yield _one_neighbour()
    yield _functional()


_REFUTED_ROWS = 10


def _scaled_mean(values: tuple[float, ...]) -> float:
    """Return the mean of values that were scaled to [0, 1] by their own smallest and largest."""
    found = np.array(values)
    return float(np.mean((found - found.min()) / (found.max() - found.min())))


def _scaler() -> Refuted:
    near = (0.0, *(0.01,) * (_REFUTED_ROWS - 2))
    mechanism = Noisy(_scaled_mean, lambda values: 1 / len(values))
    return exact(
        "a scaler fitted without protection",
        "pipelines that standardise before a private learner (PrivateTargeting and others)",
        Budget(1),
        mechanism,
        ((*near, 1.0), (*near, 0.01)),
        "columns scaled to [0, 1] by the data's own range have sensitivity 1 / n",
        "ten values, one of which leaves the far end: the other eight move from .01 to 1",
        "bounds declared in the study; values outside are clamped: cv.Range(low, high)",
    )


@dataclass(frozen=True)
class FittedPropensity:
    """A weighted mean whose propensity was fitted on the other half of the rows, with noise as if it were known."""

    rows: int = 100
    clip: float = 0.1

    def value(self, treated: bool) -> float:
        """Return the weighted mean; the one row of the first half with these covariates decides the propensity."""
        propensity = 1 - self.clip if treated else self.clip
        return 1 / propensity

    def scale(self, _: bool) -> float:
        """Return the Laplace scale for one row of the second half at epsilon 1."""
        return 2 / (self.rows * self.clip)


def _propensity() -> Refuted:
    fitted = FittedPropensity()
    return exact(
        "a propensity fitted without protection",
        "cross-fitted pipelines that add noise to the last step (PrivateTargeting and others)",
        Budget(1),
        Noisy(fitted.value, fitted.scale),
        (True, False),
        "with clipped scores one person moves a weighted mean by 2 / (n clip)",
        "one person of the first half is alone in a cell; their treatment decides the score, and the weight, of a "
        "hundred people of the second half",
        "models are released with noise of their own: cv.published.ipw_proved or cross_fit_proved",
    )


def _bounds() -> Refuted:
    def spread(values: tuple[float, ...]) -> float:
        # A program that finds no spread draws no noise; a scale this small is as good as none.
        return max((max(values) - min(values)) / len(values), 1e-12)

    same = (0.0,) * (_REFUTED_ROWS - 1)
    mechanism = Noisy(lambda values: float(np.mean(values)), spread)
    return sampled(
        "bounds read off the data",
        "tools that take the data's range where none is given (diffprivlib and DP-EBM, with a warning)",
        Budget(1),
        mechanism,
        ((*same, 0.0), (*same, 1.0)),
        "a mean with noise for the range that was found has epsilon 1",
        "ten equal values have no range and get no noise; one other value shows at once",
        "a range is declared, or released with noise of its own: `counterveil.drafting.estimate_ranges`",
    )


@dataclass(frozen=True)
class FloatingPointLaplace:
    """Textbook Laplace noise in doubles; a sample says whether its last bits fit a sum with one."""

    def sample(self, dataset: float, count: int, rng: np.random.Generator) -> FloatArray:
        """Return 1 for a small output that is no multiple of 2**-53, else 0."""
        uniform = rng.random(count)
        sign = np.where(rng.random(count) < 0.5, -1.0, 1.0)
        outputs = dataset + sign * -np.log1p(-uniform)
        fine = np.ldexp(outputs, 53)
        found: FloatArray = ((np.abs(outputs) < 0.25) & (fine != np.floor(fine))).astype(np.float64)
        return found


def _doubles() -> Refuted:
    return sampled(
        "floating-point Laplace",
        "textbook samplers (Mironov 2012, 'On significance of the least significant bits')",
        Budget(1),
        FloatingPointLaplace(),
        (0.0, 1.0),
        "-b log(u) in doubles, added to the value, is Laplace noise",
        "1 + x has the last bits of a number near 1, x alone those of a small one. A small output whose last bits are "
        "fine cannot come from 1",
        "exact draws on a public grid: every mechanism of counterveil.mechanisms, audited in `counterveil audit --all`",
    )


def practice() -> Iterator[Refuted]:
    """Yield what programs do."""
    yield _scaler()
    yield _propensity()
    yield _bounds()
    yield _doubles()


GALLERY: dict[str, Refuted] = {one.name: one for one in (*papers(), *practice())}
