"""Noisy second moments of private records for every regression among their columns, and robust standard errors.

Columns (`Columns`). Covariates are features in [-1, 1] (`FeatureMap`), then come logarithms of some, a flag
for every arm but the reference, the outcome and further ones. With a released centre c and scale s they
become z = (x - c) / s, and interactions are products of two of these. `Rows` are standardised columns and
their products, mixed, clipped and weighted to a bounded length.

Private records (`release_regression_moments`). Centres and scales come first. Then the matrix is released
twice: a first time with a small part of the budget, to know which combinations of the columns are
uncorrelated and what the columns leave of each response, and a second time in these. Before either, counts
say how long rows are. Proof: `regression_moments.proof.md`.

Private outcomes alone (`release_outcome_moments`): covariates, arms and their moments are public, and public
columns are made uncorrelated exactly. What is released are the outcome's mean and mean square, then, twice,
counts of residuals by size and moments of the public columns with the residual of the outcome: around its
mean, and around the prediction that the first of them give. Proof: `outcome_moments.proof.md`.

Robust errors (`release_sandwich`) are released at a price of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Categories, Range, Study, Sums
from counterveil.data.domains import Label
from counterveil.data.features import counted_features, feature_map
from counterveil.errors import CounterveilError, refusal
from counterveil.estimators.moments.scaling import first_few, is_near_bound
from counterveil.inference.moments import NoisyMoments, least_squares
from counterveil.numerics.arrays import Floats, Integers, sqrt_up
from counterveil.numerics.products import Column, FeatureMap, WholeSum, exact_gram, grid_bits, steps
from counterveil.privacy import Budget
from counterveil.results.regression import written_out
from counterveil.rows.counts import release_counts, release_sums
from counterveil.rows.moments.grams import release_products
from counterveil.rows.moments.residual_products import release_residual_products
from counterveil.rows.moments.scores import TERM_BITS, counts_between
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT, record_moments
from counterveil.rows.records import MIDDLE, Part, Records, TableRecords
from counterveil.session import Gate, Kind, Plan

CONSTANT = "Intercept"


@dataclass(frozen=True, slots=True)
class Columns:
    """What a row holds, public: covariates' features, flags of arms, outcomes; and products of two of these.

    `responses` says of every column but the products whether it is one that regressions may explain (outcomes, arms):
    no row is given less weight for its value.
    """

    names: tuple[str, ...]
    features: FeatureMap
    arms: tuple[Label, ...]
    responses: tuple[bool, ...]
    products: tuple[tuple[int, int], ...]
    ends: tuple[tuple[float, float], ...]  # middle and half width of every column in its own units
    groups: tuple[tuple[str, tuple[str, ...]], ...]  # covariates or treatments of several columns
    measures: int = 0  # further outcomes, and what was measured of outcomes before
    logs: tuple[tuple[int, float], ...] = ()  # places of features, and the ratio of the ends of their ranges
    log_outcome: tuple[float, ...] = ()  # that ratio of the outcome, if its logarithm is a column

    @classmethod
    def of(cls, study: Study, outcomes: Sequence[str], terms: Sequence[str]) -> Columns:
        """Return the columns that a study and the arguments declare; no row is looked at."""
        features = feature_map(study, 1, reference="first")
        arms = study.arms[1:] if study.arms is not None else (study.treated,)
        treatments = [study.treatment] if study.arms is None else [f"{study.treatment}={arm}" for arm in arms]
        own = [column.source for column in features.columns]
        labels = [_named(study, column) for column in features.columns]
        more = () if study.several is None else study.several.columns[1:]
        raised = [factor for text in terms for factor in _factors(text, study) if factor.startswith("log(")]
        logs = [name[4:-1] for name in dict.fromkeys(raised) if name not in labels]
        _refuse_logs(study, logs)
        log_outcome = tuple(name for name in logs if name == study.outcome)
        logs = [name for name in logs if name != study.outcome]
        names = (*labels, *(f"log({name})" for name in logs), *treatments, study.outcome, *more)
        names = (*names, *(f"log({name})" for name in log_outcome))
        ends = [(column.low + column.width / 2, column.width / 2) for column in features.columns]
        ends += [_logarithms(*_range(study, name)) for name in logs]
        ends += [(0.5, 0.5)] * len(arms) + [_middle(study, name) for name in (study.outcome, *more)]
        ends += [_logarithms(*_range(study, name)) for name in log_outcome]
        groups = [
            (name, tuple(label for label, source in zip(labels, own, strict=True) if source == name))
            for name in study.covariates
        ]
        groups += [(study.treatment, tuple(treatments))]
        _refuse_unknown(outcomes, tuple(study.covariates), "outcomes")
        explained = (study.outcome,) if study.several is None else study.several.names
        responses = [source in outcomes for source in (*own, *logs)] + [True] * len(arms)
        responses += [name in explained for name in (study.outcome, *more)] + [True] * len(log_outcome)
        flags = {
            name: source
            for name, source, known in zip(labels, own, features.two_valued, strict=True)
            if known
        }
        flags |= dict.fromkeys(treatments, study.treatment)
        products, named = _products(terms, study, names, dict(groups), flags)
        return cls(
            (*names, *named),
            features,
            tuple(arms),  # type: ignore[arg-type]
            tuple(responses),
            products,
            tuple(ends),
            tuple((name, members) for name, members in groups if members != (name,)),
            len(more),
            tuple((own.index(name), high / low) for name in logs for low, high in [_range(study, name)]),
            tuple(high / low for name in log_outcome for low, high in [_range(study, name)]),
        )

    @property
    def singles(self) -> int:
        """Number of columns that are no products."""
        return len(self.responses)

    @property
    def counted(self) -> int:
        """The number of columns in the bound of what one record moves; flags of one column count as two at most."""
        numbers = len(self.logs) + 1 + self.measures + len(self.log_outcome)
        return counted_features(self.features) + min(2, len(self.arms)) + numbers

    @property
    def two_valued(self) -> NDArray[np.bool_]:
        """Which single columns hold -1 and 1 alone, so that their squares are known."""
        rest = [False] * len(self.logs) + [True] * len(self.arms)
        rest += [False] * (1 + self.measures + len(self.log_outcome))
        return np.append(self.features.two_valued, rest)

    def block(self, part: Part) -> Floats:
        """Return the (rows, singles) columns of a block of rows, each in [-1, 1]."""
        arms = part.batch.arm[part.rows]
        flags = [np.where(arms == place, 1.0, -1.0) for place in range(1, len(self.arms) + 1)]
        covariates = part.x.T if self.features.columns else np.empty((0, len(arms)))
        more = [(steps[part.rows] - MIDDLE) / MIDDLE for steps in part.batch.measures[: self.measures]]
        logs = [logarithm(covariates[place], ratio) for place, ratio in self.logs]
        more += [logarithm(part.y, ratio) for ratio in self.log_outcome]
        return np.vstack((covariates, *logs, *flags, part.y, *more)).T

    def basis(self, centre: Floats, scale: Floats) -> Floats:
        """Return every named column, the constant first, as a combination of (1, z, products of z)."""
        middle, half = np.array(self.ends).T
        zero = middle + half * centre
        slope = half * scale
        size = 1 + len(self.names)
        found = np.zeros((size, size))
        found[0, 0] = 1.0
        for place in range(self.singles):
            found[1 + place, 0], found[1 + place, 1 + place] = zero[place], slope[place]
        for place, (i, j) in enumerate(self.products, 1 + self.singles):
            found[place, 0] = zero[i] * zero[j]
            found[place, 1 + i] += slope[i] * zero[j]
            found[place, 1 + j] += slope[j] * zero[i]
            found[place, place] = slope[i] * slope[j]
        return found


# Logarithms are rounded to this grid: what the last digits of a library's are does not matter.
_LOG_STEPS = 2.0**30


def logarithm(x: Floats, ratio: float) -> Floats:
    """Return the logarithm of numbers given in [-1, 1], in [-1, 1] itself; `ratio` is that of the ends of its range."""
    found = 2.0 * np.log1p((ratio - 1.0) * (x + 1.0) / 2.0) / log(ratio) - 1.0
    return np.asarray(np.clip(np.rint(found * _LOG_STEPS) / _LOG_STEPS, -1.0, 1.0))


def _logarithms(low: float, high: float) -> tuple[float, float]:
    return (log(low) + log(high)) / 2, (log(high) - log(low)) / 2


def _range(study: Study, name: str) -> tuple[float, float]:
    """Return the ends of the range of the outcome or a covariate, (0, 0) where it is not one of numbers."""
    domain = study.outcome_bounds if name == study.outcome else study.covariates.get(name)
    return domain.floats() if isinstance(domain, Range) else (0.0, 0.0)


def _refuse_logs(study: Study, names: Sequence[str]) -> None:
    """Raise CV-P792 for a logarithm of what is not a number above zero."""
    for name in names:
        low, high = _range(study, name)
        if not 0 < low < high:
            raise refusal("CV-P792", name=name, low=low, high=high)


def _middle(study: Study, name: str) -> tuple[float, float]:
    """Return the middle and half the width of the range of an outcome, or of what was measured before."""
    bounds = study._measured_bounds(name)
    low, high = (study.outcome_bounds if bounds is None else bounds).floats()
    return (low + high) / 2, (high - low) / 2


def _named(study: Study, column: Column) -> str:
    """Return the name of a covariate's column; the first label is the reference and has none."""
    domain = study.covariates[column.source]
    return column.source if column.label is None else f"{column.source}={domain.labels[column.label]}"  # type: ignore[union-attr]


def _refuse_unknown(asked: Sequence[str], known: Sequence[str], argument: str) -> None:
    """Raise CV-P780 for a name that is not among the columns."""
    for name in asked:
        if name not in known:
            raise refusal(
                "CV-P780b", argument=argument, known=", ".join(map(repr, known)) or "no covariates", name=name
            )


def _factors(text: object, study: Study) -> list[str]:
    """Return the names of one or two columns that a term is made of, or raise CV-P781."""
    if not isinstance(text, str):
        raise _no_interaction(text)
    groups = {name: () for name, domain in study.covariates.items() if isinstance(domain, Categories)}
    found = [factor.strip().strip("`") for factor in written_out(text, groups).split(":")]
    if len(found) == 2 or (len(found) == 1 and found[0].startswith("log(")):
        return found
    raise _no_interaction(text)


def _products(
    terms: Sequence[str],
    study: Study,
    names: Sequence[str],
    groups: dict[str, tuple[str, ...]],
    flags: dict[str, str],
) -> tuple[tuple[tuple[int, int], ...], list[str]]:
    """Return pairs of places and names of the products of pairs such as "treat:age"; those of labels are all taken.

    `flags` says of every flag which column it is of: products of two flags of one column are known.
    """
    found: dict[tuple[int, int], str] = {}
    for text in terms:
        factors = _factors(text, study)
        _refuse_unknown(factors, tuple(dict.fromkeys((*groups, *names))), "terms")
        if len(factors) == 1:
            continue
        one, two = (groups.get(factor, (factor,)) for factor in factors)
        own = {
            (names.index(first), names.index(second)): f"{first}:{second}"
            for first in one
            for second in two
            if first not in flags or flags.get(second) != flags[first]
        }
        if not own:
            raise _no_interaction(text)
        found |= {pair: name for pair, name in own.items() if pair[::-1] not in found or pair[0] == pair[1]}
    return tuple(found), list(found.values())


def _no_interaction(text: object) -> CounterveilError:
    return refusal("CV-P781", text=text)


# What responses add to the squared length of a row, in parts of what the other columns have; set on the tuning designs
# of `experiments/regressions`.
_RESPONSES = 0.75


@dataclass(frozen=True, slots=True)
class Rows:
    """How a row's columns become a working row u, all of it public or released.

    With z = (x - centre) / scale and products of these, f = (1, z, products), a working row is mix f. Responses that
    are numbers are clipped to `windows`. Rows whose squared length, responses left out, is beyond `length` are weighted
    down to it; responses are multiplied by `factors`.
    """

    columns: Columns
    centre: Floats
    scale: Floats
    mix: Floats
    windows: Floats
    length: float
    factors: Floats

    @classmethod
    def standardised(cls, columns: Columns, centre: Floats, scale: Floats) -> Rows:
        """Return rows that are standardised and nothing else."""
        size = 1 + len(columns.names)
        return cls(columns, centre, scale, np.eye(size), np.full(size, np.inf), np.inf, np.ones(size))

    @property
    def largest_sizes(self) -> Floats:
        """The largest size of every entry of f, by the declared ranges."""
        single = (1 + np.abs(self.centre)) / self.scale
        return np.array([1.0, *single, *(single[i] * single[j] for i, j in self.columns.products)])

    @property
    def explained(self) -> NDArray[np.bool_]:
        """Which working columns are responses or products of two of them: lengths leave these out."""
        single = self.columns.responses
        return np.array([False, *single, *(single[i] and single[j] for i, j in self.columns.products)])

    @property
    def joint(self) -> NDArray[np.bool_]:
        """Which working columns are products of a response and another column."""
        single = self.columns.responses
        return np.array(
            [False] * (1 + len(single)) + [single[i] != single[j] for i, j in self.columns.products]
        )

    @property
    def numbers(self) -> NDArray[np.bool_]:
        """Which working columns are responses that are numbers."""
        found = np.zeros(len(self.mix), dtype=np.bool_)
        found[1 : 1 + self.columns.singles] = np.array(self.columns.responses) & ~self.columns.two_valued
        return found

    @property
    def bounds(self) -> Floats:
        """The largest size of every working column that lengths leave out, zero for others; before factors."""
        whole = np.minimum(np.abs(self.mix) @ self.largest_sizes, self.windows)
        return np.where(self.explained, whole, 0.0)

    def unweighted(self, x: Floats) -> tuple[Floats, Floats]:
        """Return (size, rows) working rows of (rows, columns) x, clipped but not weighted, and z (columns, rows)."""
        z = (x.T - self.centre[:, None]) / self.scale[:, None]
        largest = self.largest_sizes[1 : 1 + len(z), None]
        np.clip(z, -largest, largest, out=z)
        f = np.vstack((np.ones(len(x)), z, *(z[i] * z[j] for i, j in self.columns.products)))
        u = np.empty_like(f)
        for place, weights in enumerate(self.mix):
            combined(f, weights, u[place])
        bounded = self.explained
        limits = self.bounds[bounded, None]
        u[bounded] = np.clip(u[bounded], -limits, limits)
        return u, z

    def lengths(self, u: Floats, z: Floats) -> Floats:
        """Return a bound of every row's squared length, the constant included, from columns that are no responses."""
        found = np.zeros(u.shape[1])
        for place in np.flatnonzero(~self.explained & ~self.joint):
            found += u[place] * u[place]
        for i, j, bound in self._pairs():
            found += (bound * z[j if self.columns.responses[i] else i]) ** 2
        return found

    def _pairs(self) -> list[tuple[int, int, float]]:
        """Return the products of a response and another column, with the bound of the response."""
        largest_sizes = self.largest_sizes[1:]
        return [
            (i, j, float(largest_sizes[i if self.columns.responses[i] else j]))
            for i, j in self.columns.products
            if self.columns.responses[i] != self.columns.responses[j]
        ]

    @property
    def default_length(self) -> float:
        """The squared length that is expected of a row with columns of variance one."""
        own = int(np.count_nonzero(~self.explained & ~self.joint))
        return own + sum(bound**2 for _, _, bound in self._pairs())

    @property
    def longest(self) -> float:
        """A bound of the squared length of every row that the declared ranges allow."""
        largest = np.abs(self.mix) @ self.largest_sizes
        single_squares = float(np.sum(largest[~self.explained & ~self.joint] ** 2))
        singles = self.largest_sizes[1:]
        return single_squares + sum(float(singles[i] * singles[j]) ** 2 for i, j, _ in self._pairs())

    def cut(self, windows: Floats, length: float) -> Rows:
        """Return the same with windows and a length, and factors that leave responses their part of it."""
        found = replace(self, windows=windows, length=min(length, self.longest))
        bounds = found.bounds
        most = sqrt(_RESPONSES * found.length / max(int(np.count_nonzero(bounds)), 1))
        return replace(found, factors=most / np.maximum(bounds, most))

    @property
    def squared_max_norm(self) -> Fraction:
        """A bound on the squared length of a weighted row."""
        own = self.factors * self.bounds
        return Fraction(self.length) + sum((Fraction(float(one)) ** 2 for one in own), Fraction(0))

    def _with_weights(self, x: Floats) -> tuple[Floats, Floats]:
        u, z = self.unweighted(x)
        weights = np.minimum(1.0, self.length / self.lengths(u, z))
        return u * self.factors[:, None], weights

    def weighted(self, x: Floats) -> Floats:
        """Return the (rows, size) weighted working rows of (rows, columns) x."""
        u, weights = self._with_weights(x)
        return np.asarray((u * np.sqrt(weights)).T)

    def working(self, records: TableRecords) -> Iterator[tuple[Floats, Floats]]:
        """Yield working rows (size, rows) before they are weighted, and their weights, a block at a time."""
        for part in records.parts():
            yield self._with_weights(self.columns.block(part))

    @property
    def basis(self) -> Floats:
        """The constant and every named column as combinations of working columns, (size, size)."""
        return np.asarray(
            self.columns.basis(self.centre, self.scale) @ np.linalg.inv(self.mix) / self.factors
        )


def combined(f: Floats, weights: Floats, out: Floats | None = None) -> Floats:
    """Return weights f, added up in order: to the bit the same wherever a row stands in a block."""
    found = np.empty(f.shape[1]) if out is None else out
    part = np.empty(f.shape[1])
    found.fill(0.0)
    for place in np.flatnonzero(weights):
        found += np.multiply(f[place], weights[place], out=part)
    return found


PAGES = (
    "rows/moments/regression_moments.proof.md",
    "rows/moments/record_moments.proof.md",
    "rows/moments/free_gram.proof.md",
)
# Numbers of this module that are choices, and not derived, were set on the tuning designs of
# `experiments/regressions`.
# Percents of the budget for Gaussian noise and for pure; what is left is for the second matrix.
_PERCENTS = {
    False: {"centre": 5, "first reach": 2, "first moments": 15, "reach": 2},
    True: {"centre": 8, "first reach": 5, "first moments": 22, "reach": 5},
}
# Where robust errors are asked for: standard deviations that responses are not clipped below, and those of noise that
# moments must have before they predict responses.
_LEAST_WINDOW, _LEAST_SIGNAL = 5.0, 3.0
# The part of the budget that the middles of sandwiches have, all together.
ROBUST_SHARE = Fraction(1, 4)
# Ends of the cells of a row's squared length, in parts of what is expected of it; one cell lies above the last.
_LENGTHS = np.array([0.6, 0.8, 1.0, 1.15, 1.3, 1.5, 1.65, 1.8, 2.0, 2.25, 2.5, 3.0, 4.0, 6.0, 9.0])
# Ends of the cells of a response's distance from its mean, in standard deviations.
WINDOWS = np.array([2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0])
# Shares of rows that are weighted down and of responses that are clipped, by the least noise of an entry beside its
# sampling error.
CUT = ((0.3, 0.05, 0.0005), (0.1, 0.02, 0.0005), (0.01, 0.002, 0.0002), (0.0, 0.0, 0.0))
# By how many standard deviations counts must show that no more are: for rows, and for responses whose mean is near an
# end of their range, as then few large values may carry it.
SHOWN, SHOWN_OF_FEW = -1.0, 2.0
# Least variance of a column in [-1, 1], and how many standard deviations of its noise it keeps above zero.
_LEAST_VARIANCE, _DOUBT = 1e-4, 1.0
# Least variance of a combination of standardised columns that is stretched to one.
_LEAST_EIGENVALUE = 0.02
# Combinations beyond this condition number cannot be turned back into columns.
_WORST_MIX = 1e12
# Squared lengths of standardised rows that are assumed before anything is known, in parts of their number of columns.
_USUAL_LENGTH = 1.8 * 1.75
# The largest noise of a matrix (its operator norm beside columns of variance one) and number of columns.
MOST_NOISE, MOST_COLUMNS = 0.8, 138


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The public numbers that the split depends on."""

    rows: int
    columns: Columns
    budget: Budget
    mechanism: str
    robust: int = 0  # regressions whose sandwich is released too

    @property
    def pure(self) -> bool:
        """Whether noise comes from the l2 ball rather than from the Gaussian mechanism."""
        return self.mechanism != "gaussian"

    @property
    def least_window(self) -> float:
        """Standard deviations that responses are not clipped below: of unequal variances more are far off."""
        return _LEAST_WINDOW if self.robust else 0.0

    @property
    def least_signal(self) -> float:
        """Standard deviations of noise that a moment must have to predict: else rare rows are clipped where it errs."""
        return _LEAST_SIGNAL if self.robust else 0.0

    @property
    def size(self) -> int:
        """Number of working columns: the constant and every column."""
        return 1 + len(self.columns.names)

    def plan(self) -> Plan:
        """Return the plan of the releases."""
        return self.split(_PERCENTS[self.pure])

    def split(self, percents: Mapping[str, int]) -> Plan:
        """Return the plan with these percents of what sandwiches leave; the rest is for the moments."""
        shares = {name: Fraction(percent, 100) for name, percent in percents.items()}
        shares |= {"moments": 1 - sum(shares.values(), Fraction(0))}
        if self.robust:
            left = 1 - ROBUST_SHARE
            shares = {name: left * share for name, share in shares.items()}
            each = ROBUST_SHARE / self.robust
            for number in range(self.robust):
                shares |= {f"robust reach {number}": each / 5, f"robust {number}": each * 4 / 5}
        counts = Kind.CELLS if self.pure else Kind.VECTOR
        kinds = {name: counts if "reach" in name else Kind.VECTOR for name in shares}
        return Plan.split(self.budget, shares, self.mechanism, kinds)

    @property
    def noise(self) -> float:
        """The operator norm of the matrix's noise that is expected from public numbers."""
        return 2 * sqrt(self.size) * self.entry_noise

    @property
    def entry_noise(self) -> float:
        """The standard deviation of an entry's noise that is expected from public numbers."""
        return (1 + _USUAL_LENGTH * (self.size - 1)) * self.shortest_noise

    @property
    def shortest_noise(self) -> float:
        """The same for rows of length one, the shortest that there can be."""
        strength = self.rows * float(self.plan().amount("moments", Kind.VECTOR))
        entries = sqrt(self.size * (self.size + 1) / 2 + 1) if self.pure else 1.0
        return entries / strength

    @property
    def fewest_rows(self) -> int:
        """The number of rows from which the noise would not hide the moments."""
        return int(self.rows * self.noise / MOST_NOISE) + 1


@dataclass(frozen=True, slots=True)
class ReleasedMoments:
    """The released matrix of working rows, the standard deviation of its noise off the diagonal, and how rows are made.

    `weighted_down` is the share of rows that count less, as released.
    """

    matrix: Floats
    sd: float
    rows: Rows
    weighted_down: float


# Proof: regression_moments.proof.md
def release_regression_moments(gate: Gate, records: Records, design: RowPlan) -> ReleasedMoments:
    """Return the matrix of second moments of weighted working rows, by five releases."""
    first = _look(gate, records, design, release_centre(gate, records, design.columns), "first ")
    return _look(gate, records, design, mixed(first, design.least_signal), "")


def _look(gate: Gate, records: Records, design: RowPlan, rows: Rows, name: str) -> ReleasedMoments:
    rows, longer = release_limits(gate, f"{name}reach", records, rows, design)
    squared_max_norm = rows.squared_max_norm
    max_norm = sqrt(float(squared_max_norm))
    matrix, sd = release_products(
        gate, f"{name}moments", records, weighted_rows, (rows,), max_norm, squared_max_norm
    )
    return ReleasedMoments(matrix, sd, rows, longer)


def weighted_rows(records: TableRecords, rows: Rows) -> Iterator[Floats]:
    """Yield the weighted rows, a block at a time."""
    for part in records.parts():
        yield rows.weighted(rows.columns.block(part))


def column_sums(records: TableRecords, columns: Columns) -> Sums:
    """Return sums of columns and of their squares, in steps of 2**-TERM_BITS."""
    first, second = WholeSum(), WholeSum()
    for part in records.parts():
        x = steps(columns.block(part), TERM_BITS).astype(np.int64)
        first.add(x.sum(axis=0))
        second.add((x * x).sum(axis=0))
    return first.whole(), second.whole()


# Proof: regression_moments.proof.md
def release_centre(gate: Gate, records: Records, columns: Columns) -> Rows:
    """Return rows with released centres and scales; variances stay above what their noise hides."""
    n, known = records.count, columns.two_valued
    first, second = records.run(column_sums, columns)
    one = Fraction(1, n << TERM_BITS)
    square = SQUARE_WEIGHT * one / 2**TERM_BITS
    values = [total * one for total in first]
    values += [total * square for total, two in zip(second, known, strict=True) if not two]
    released = gate.release_vector("centre", values, record_moments(n, columns.counted, Fraction(0)))
    found = released.floats()
    sd = sqrt(released.variance)
    centre = np.clip(found[: len(known)], -1.0, 1.0)
    squares = np.ones(len(known))
    squares[~known] = found[len(known) :] / float(SQUARE_WEIGHT)
    variance_noise_sd = sd * np.hypot(np.where(known, 0.0, 1 / float(SQUARE_WEIGHT)), 2 * centre)
    variance = np.maximum(squares - centre**2, np.maximum(_DOUBT * variance_noise_sd, _LEAST_VARIANCE))
    return Rows.standardised(columns, centre, np.sqrt(np.minimum(variance, 1.0)))


def limit_counts(records: TableRecords, rows: Rows) -> Sums:
    """Return how many rows have their length, and each response that is a number its distance, in each cell."""
    watched = np.flatnonzero(rows.numbers)
    lengths = np.zeros(len(_LENGTHS) + 1, dtype=np.int64)
    windows = np.zeros((len(watched), len(WINDOWS) + 1), dtype=np.int64)
    for part in records.parts():
        u, z = rows.unweighted(rows.columns.block(part))
        cells = np.searchsorted(_LENGTHS * rows.default_length, rows.lengths(u, z))
        lengths += np.bincount(cells, minlength=len(lengths))
        for place, column in enumerate(watched):
            cells = np.searchsorted(WINDOWS, np.abs(u[column]))
            windows[place] += np.bincount(cells, minlength=windows.shape[1])
    return lengths, windows.ravel()


# Proof: regression_moments.proof.md
def release_limits(
    gate: Gate, name: str, records: Records, rows: Rows, design: RowPlan
) -> tuple[Rows, float]:
    """Return the rows cut to released windows and a released length, and the share of longer ones."""
    n = records.count
    watched = np.flatnonzero(rows.numbers)
    lengths, windows = records.run(limit_counts, rows)
    values = [Fraction(int(count)) for count in (*lengths, *windows)]
    moved = Fraction(2 * (1 + len(watched)))
    released = release_sums(gate, name, values, design.pure, moved, sqrt_up(moved))
    noisy = released.floats()
    variance = released.variance
    beside = design.entry_noise * sqrt(n)
    long, clipped = next((long, clipped) for least, long, clipped in CUT if beside >= least)
    limits = np.full(len(rows.mix), np.inf)
    cells = noisy[len(lengths) :].reshape(len(watched), -1)
    for column, own in zip(watched, cells, strict=True):
        shown = SHOWN_OF_FEW if is_near_bound(float(rows.centre[column - 1])) else SHOWN
        edges = np.append(WINDOWS, np.inf)
        limits[column] = max(first_few(own, variance, clipped * n, shown, edges)[0], design.least_window)
    edges = rows.default_length * np.append(_LENGTHS, _LENGTHS[-1])
    length, longer = first_few(noisy[: len(lengths)], variance, long * n, SHOWN, edges)
    found = rows.cut(limits, length)
    return found, min(max(longer / n, 0.0), 1.0) if found.length < found.longest else 0.0


def mixed(first: ReleasedMoments, signal: float = 0.0) -> Rows:
    """Return rows of uncorrelated columns and of what columns leave of responses, by the first matrix.

    Combinations whose variance the noise hides are not stretched. Arms, other responses of two values and products with
    responses stay as they are. All columns do where noise left no weight to the rows.
    """
    rows = first.rows
    matrix = first.matrix / np.outer(first.rows.factors, first.rows.factors)
    plain = Rows.standardised(rows.columns, rows.centre, rows.scale)
    if matrix[0, 0] <= 0:
        return plain
    means = matrix[0] / matrix[0, 0]
    covariance = matrix / matrix[0, 0] - np.outer(means, means)
    noise = first.sd / np.outer(first.rows.factors, first.rows.factors) / matrix[0, 0]
    mix = np.eye(len(matrix))
    own = np.flatnonzero(~rows.explained & ~rows.joint)[1:]
    if len(own):
        values, vectors = np.linalg.eigh(covariance[np.ix_(own, own)])
        least = max(_LEAST_EIGENVALUE, 2 * sqrt(len(own)) * first.sd / matrix[0, 0])
        root = (vectors / np.sqrt(np.clip(values, least, None))) @ vectors.T
        mix[np.ix_(own, own)] = root
        mix[own, 0] = -root @ means[own]
    others = np.flatnonzero(~rows.numbers)[1:]
    for place in np.flatnonzero(rows.numbers):
        _leave(mix, covariance, means, noise[place], int(place), others, signal)
    sound = np.isfinite(mix).all() and np.linalg.cond(mix) < _WORST_MIX
    return replace(plain, mix=mix) if sound else plain


def _leave(
    mix: Floats,
    covariance: Floats,
    means: Floats,
    noise: Floats,
    place: int,
    others: Integers,
    signal: float,
) -> None:
    """Write into `mix` what the other columns leave of a response, divided by its standard deviation."""
    coefficients = np.zeros(len(mix))
    if len(others):
        values, vectors = np.linalg.eigh(covariance[np.ix_(others, others)])
        least = max(_LEAST_EIGENVALUE, 2 * sqrt(len(others)) * float(noise[0]))
        with_response = vectors.T @ covariance[others, place]
        with_response *= np.abs(with_response) > signal * float(noise[0])
        coefficients[others] = vectors @ (with_response / np.clip(values, least, None))
    change = -coefficients
    change[place] = 1.0
    change[0] = -float(change @ means) + change[0] * means[0]
    left = float(change[1:] @ covariance[1:, 1:] @ change[1:])
    variance = max(left, _DOUBT * float(noise[place]), _LEAST_EIGENVALUE)
    mix[place] = change / sqrt(variance)


# Percents of the budget, Gaussian and pure; what is left is for the second moments. Chosen like those for records.
_OUTCOMES_PERCENTS = {
    False: {"centre": 3, "first reach": 2, "first moments": 12, "reach": 3},
    True: {"centre": 5, "first reach": 4, "first moments": 16, "reach": 5},
}
_BITS = 16  # steps of public columns, in their moments
# Squared lengths of public rows are told apart this finely.
_EDGES = np.geomspace(1.0, 1e6, 400)
# Least variance of a combination of public columns that is stretched to one, and of the outcome.
_OUTCOMES_LEAST_EIGENVALUE, _OUTCOMES_LEAST_VARIANCE = 1e-6, 1e-8
# Moments of uncorrelated public rows are about one; those below this part of the largest are of no variance.
_NO_VARIANCE = 1e-3
# Where outcomes are clipped, about, in standard deviations of their residuals: before it is known.
_USUAL_CLIP = 3.0
# Share of the rows that noise may add to the residuals beyond a clip.
_UNSURE = 0.1


def outcome_plan(design: RowPlan) -> Plan:
    """Return the plan of the releases."""
    return design.split(_OUTCOMES_PERCENTS[design.pure])


@dataclass(frozen=True, slots=True)
class OutcomeRows:
    """How public columns become uncorrelated rows u of bounded length; all of it public.

    f = (1, columns, products) in [-1, 1], u = mix f, weighted down to a squared length of `length`. `prediction`, which
    is released, holds the coefficients of u that are taken off the outcome before it is clipped to [-clip, clip].
    """

    columns: Columns
    mix: Floats
    length: float
    prediction: Floats
    clip: float

    def parts(self, records: TableRecords) -> Iterator[tuple[Floats, Floats]]:
        """Yield u (size, rows) before it is weighted and what is left of the outcome, a block at a time."""
        for f, outcome in self._features(records):
            u = np.empty((len(self.mix), f.shape[1]))
            for line, weights in zip(u, self.mix, strict=True):
                combined(f, weights, line)
            yield u, outcome - combined(u, self.prediction)

    def residuals(self, records: TableRecords) -> Iterator[Floats]:
        """Yield what is left of the outcome alone, up to rounding."""
        slopes = combined(self.mix, self.prediction)
        return (outcome - combined(f, slopes) for f, outcome in self._features(records))

    def _features(self, records: TableRecords) -> Iterator[tuple[Floats, Floats]]:
        for part in records.parts():
            x = self.columns.block(part).T
            yield (
                np.vstack((np.ones(x.shape[1]), x[:-1], *(x[i] * x[j] for i, j in self.columns.products))),
                x[-1],
            )

    def working(self, records: TableRecords) -> Iterator[tuple[Floats, Floats]]:
        """Yield (u, what is left of the outcome), clipped but not weighted, and the weights, a block at a time."""
        for u, left in self.parts(records):
            yield np.vstack((u, np.clip(left, -self.clip, self.clip))), self.roots(u) ** 2

    def roots(self, u: Floats) -> Floats:
        """Return the square roots of the rows' weights."""
        return np.asarray(np.sqrt(np.minimum(1.0, self.length / squared(u))))

    def basis(self) -> Floats:
        """Return the constant and every named column as combinations of (u, what is left of the outcome)."""
        place = self.columns.singles
        size = len(self.mix) + 1
        found = np.zeros((size, size))
        found[np.arange(size) != place, :-1] = np.linalg.inv(self.mix)
        found[place, :-1], found[place, -1] = self.prediction, 1.0
        return np.asarray(self.columns.basis(np.zeros(place), np.ones(place)) @ found)


def public_products(records: TableRecords, rows: OutcomeRows) -> Sums:
    """Return the sum of u u' over weighted public rows, in steps of 4**-_BITS."""
    return (exact_gram(((u * rows.roots(u)).T for u, _ in rows.parts(records)), rows_bits(rows)),)


def rows_bits(rows: OutcomeRows) -> int:
    """Return the grid of the public rows."""
    return grid_bits(sqrt(min(rows.length, float(_EDGES[-1]))))


def public_lengths(records: TableRecords, rows: OutcomeRows) -> Sums:
    """Return how many public rows have their squared length in each cell."""
    return (counts_between(_EDGES, (squared(u) for u, _ in rows.parts(records)), "left"),)


def residual_counts(records: TableRecords, rows: OutcomeRows, edges: Floats) -> Sums:
    """Return how many residuals have their size in each cell."""
    return (counts_between(edges, (np.abs(left) for left in rows.residuals(records)), "left"),)


def residual_products(records: TableRecords, rows: OutcomeRows) -> Sums:
    """Return sums of u rho and of rho^2 in parts of their bounds, in steps of 4**-TERM_BITS; both are weighted."""
    total = WholeSum()
    square = WholeSum()
    max_norm = sqrt(rows.length)
    for u, left in rows.parts(records):
        roots = rows.roots(u)
        rho = steps(np.clip(left / rows.clip, -1.0, 1.0) * roots, TERM_BITS).astype(np.int64)
        direction = steps(u * roots / max_norm, TERM_BITS).astype(np.int64)
        total.add((direction * rho).sum(axis=1))
        square.add(np.array([(rho * rho).sum()]))
    return total.whole(), square.whole()


@dataclass(frozen=True, slots=True)
class OutcomeMoments:
    """Public moments of u (size, size), released ones with the residual (size,) and of its square, and their noise."""

    public: Floats
    crossed: Floats
    square: float
    sd: float
    square_sd: float
    rows: OutcomeRows
    weighted_down: float

    @property
    def matrix(self) -> Floats:
        """The moments of (u, residual)."""
        return np.block([[self.public, self.crossed[:, None]], [self.crossed, np.array([self.square])]])

    @property
    def noise(self) -> Floats:
        """The standard deviation of the noise of each; none where moments are public."""
        found = np.zeros((len(self.public) + 1,) * 2)
        found[-1, :-1] = found[:-1, -1] = self.sd
        found[-1, -1] = self.square_sd
        return found


# Proof: outcome_moments.proof.md
def release_outcome_moments(gate: Gate, records: Records, design: RowPlan) -> OutcomeMoments:
    """Return the moments of public columns with the outcome, by five releases."""
    rows, public, longer = public_rows(records, design)
    mean, sd = release_location(gate, records, rows)
    prediction = np.zeros(len(public))
    prediction[0] = mean
    rows = replace(rows, prediction=prediction)
    rows = _release_clip(gate, "first reach", records, rows, design, sd, mean)
    first = release_residual_moments(gate, "first moments", records, rows, public, longer)
    # Directions without variance, as of columns that depend on each other, predict nothing.
    # What noise alone pretends is cut to what moments can be: outcomes and public columns are bounded.
    most = sqrt(rows.length) * rows.clip
    crossed = np.clip(first.crossed, -most, most)
    crossed = np.where(np.abs(crossed) > design.least_signal * first.sd, crossed, 0.0)
    inverse = np.linalg.pinv(public, rcond=_NO_VARIANCE, hermitian=True)
    more = inverse @ crossed
    noise = first.sd**2 * float(np.trace(inverse))
    # A prediction of which half may be noise makes what is left of outcomes longer, and clips it.
    more, noise = (more, noise) if crossed @ more > 2 * noise else (np.zeros_like(more), 0.0)
    left = (first.square - crossed @ more) / public[0, 0] + noise
    sd = sqrt(min(max(left, first.square_sd, _OUTCOMES_LEAST_VARIANCE), 1.0))
    rows = replace(rows, prediction=rows.prediction + more)
    rows = _release_clip(gate, "reach", records, rows, design, sd, mean)
    return release_residual_moments(gate, "moments", records, rows, public, longer)


# Proof: outcome_moments.proof.md
def release_location(gate: Gate, records: Records, rows: OutcomeRows) -> tuple[float, float]:
    """Return the mean and the standard deviation of the outcome in [-1, 1], from its released mean and mean square."""
    n = records.count
    first, second = (sums[-1] for sums in records.run(column_sums, rows.columns))
    one = Fraction(1, n << TERM_BITS)
    values = [first * one, SQUARE_WEIGHT * second * one / 2**TERM_BITS]
    released = gate.release_vector("centre", values, record_moments(n, 1, Fraction(0)))
    found = released.floats()
    noise = sqrt(released.variance)
    mean = float(np.clip(found[0], -1.0, 1.0))
    variance_noise_sd = noise * float(np.hypot(1 / float(SQUARE_WEIGHT), 2 * mean))
    return mean, sqrt(
        min(max(found[1] / float(SQUARE_WEIGHT) - mean**2, variance_noise_sd, _OUTCOMES_LEAST_VARIANCE), 1.0)
    )


def public_rows(records: Records, design: RowPlan) -> tuple[OutcomeRows, Floats, float]:
    """Return uncorrelated rows, their moments, and the share of rows that are weighted down; nothing is private."""
    size = len(design.columns.names)
    n = records.count
    rows = OutcomeRows(design.columns, np.eye(size), np.inf, np.zeros(size), 1.0)
    # No row of numbers in [-1, 1] is longer.
    plain = replace(rows, length=float(size))
    matrix = _mean(records.run(public_products, plain)[0], n, rows_bits(plain))
    means = matrix[0] / matrix[0, 0]
    values, vectors = np.linalg.eigh((matrix / matrix[0, 0] - np.outer(means, means))[1:, 1:])
    root = (vectors / np.sqrt(np.clip(values, _OUTCOMES_LEAST_EIGENVALUE, None))) @ vectors.T
    mix = np.eye(size)
    mix[1:, 1:], mix[1:, 0] = root, -root @ means[1:]
    rows = replace(rows, mix=mix)
    (counts,) = records.run(public_lengths, rows)
    above = np.cumsum(counts[::-1].astype(np.int64))[::-1][1:]
    share = next(long for least, long, _ in CUT if _beside(design, size) >= least)
    # Instruments would not allow weights that depend on what they explain.
    share = 0.0 if any(design.columns.responses[: -1 - len(design.columns.arms)]) else share
    place = int(np.flatnonzero(above <= share * n)[0]) if above[-1] <= share * n else len(_EDGES) - 1
    rows = replace(rows, length=float(_EDGES[place]))
    public = _mean(records.run(public_products, rows)[0], n, rows_bits(rows))
    return rows, public, float(above[place]) / n


def _beside(design: RowPlan, size: int) -> float:
    """Return the noise of a moment beside its sampling error, about."""
    amount = float(outcome_plan(design).amount("moments", Kind.VECTOR))
    entries = sqrt(size + 2) if design.pure else 1.0
    return 2 * _USUAL_CLIP * sqrt(2.0 * size) * entries / (amount * sqrt(design.rows))


def _mean(total: NDArray[np.object_], rows: int, bits: int) -> Floats:
    found = [[float(Fraction(int(value), rows * 4**bits)) for value in row] for row in total]
    return np.array(found)


# Proof: outcome_moments.proof.md
def release_residual_moments(
    gate: Gate, name: str, records: Records, rows: OutcomeRows, public: Floats, longer: float
) -> OutcomeMoments:
    """Return moments of u with what is left of the outcome, and of its square."""
    sums = partial(records.run, residual_products, rows)
    found = release_residual_products(gate, name, records.count, sums, rows.clip, sqrt(rows.length))
    released = found.products, found.square, found.sd, found.square_sd
    return OutcomeMoments(public, *released, rows, longer)


# Proof: outcome_moments.proof.md
def _release_clip(
    gate: Gate, name: str, records: Records, rows: OutcomeRows, design: RowPlan, sd: float, mean: float
) -> OutcomeRows:
    """Return the rows with what residuals are clipped to, from noisy counts of their sizes.

    Outcomes lie in [-1, 1]. Where residuals would be clipped no lower, or noise may hide many of them, nothing is taken
    off the outcomes: they are in their range as they are, whatever the prediction.
    """
    edges = WINDOWS * sd
    (counts,) = records.run(residual_counts, rows, edges)
    released = release_counts(gate, name, counts, design.pure)
    clipped = next(share for least, _, share in CUT if _beside(design, len(rows.mix)) >= least)
    shown = SHOWN_OF_FEW if is_near_bound(mean) else SHOWN
    found, _ = first_few(
        released.floats(), released.variance, clipped * records.count, shown, np.append(edges, np.inf)
    )
    found = max(found, design.least_window * sd)
    unsure = sqrt(released.variance * len(edges))
    if found < 1.0 and unsure <= _UNSURE * records.count:
        return replace(rows, clip=found)
    return replace(rows, prediction=np.zeros(len(rows.mix)), clip=1.0)


# The middle of a regression's sandwich, for errors of unequal variance (HC1).
#
# Given the released coefficients b of a regression, rows are w = q T x e: T makes regressors x uncorrelated, e is
# what b leaves of the response, q the weight of a row. Counts of |w|^2 are released, then the mean of w w' of rows
# shortened to a length that these counts give. Proof: `robust_moments.proof.md`.


PAGE = "rows/moments/robust_moments.proof.md"
# Ends of the cells of |w|^2, in parts of what errors of equal variance give on average.
_ROBUST_EDGES = np.array([2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 160.0, 320.0])
# Sizes of numbers in rows that double precision multiplies without loss of sense.
_LARGEST = 1e60


@dataclass(frozen=True, slots=True)
class Sandwich:
    """How rows of a sandwich are made of working rows; all of it public or released.

    `turned` (p, m) gives the uncorrelated regressors of a working row, `residual` (m,) what is left of the response.
    """

    rows: Rows | OutcomeRows
    turned: Floats
    residual: Floats
    squared_length: float = inf

    def blocks(self, records: TableRecords) -> Iterator[Floats]:
        """Yield the rows w (p, rows), none longer than `squared_length` allows."""
        for v, weights in self.rows.working(records):
            w = np.array([combined(v, own) for own in self.turned]) * (weights * combined(v, self.residual))
            if self.squared_length < inf:
                w *= np.sqrt(self.squared_length / np.maximum(squared(w), self.squared_length))
            yield w


def squared(w: Floats) -> Floats:
    """Return the squared lengths of the columns of w, added up in order."""
    found = np.zeros(w.shape[1])
    for row in w:
        found += row * row
    return found


def sandwich_rows(records: TableRecords, sandwich: Sandwich) -> Iterator[Floats]:
    """Yield the shortened rows, a block at a time."""
    for w in sandwich.blocks(records):
        yield w.T


def sandwich_counts(records: TableRecords, sandwich: Sandwich, edges: Floats) -> Sums:
    """Return how many rows have their squared length in each cell."""
    return (counts_between(edges, (squared(w) for w in sandwich.blocks(records)), "left"),)


# Proof: robust_moments.proof.md
def release_sandwich(
    gate: Gate,
    number: int,
    records: Records,
    rows: Rows | OutcomeRows,
    moments: NoisyMoments,
    regressors: Floats,
    response: Floats,
    design: RowPlan,
) -> tuple[Floats, Floats, float]:
    """Return T (p, p), the released mean of w w' (p, p) and its noise off the diagonal."""
    fit = least_squares(moments, regressors, response)
    size = len(regressors)
    turn = np.zeros((len(regressors),) * 2)
    default_size = 1.0
    if fit.identified:
        values, vectors = np.linalg.eigh(fit.unit * moments.rows)
        turn = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        default_size = size * fit.variance
    sandwich = Sandwich(rows, turn @ regressors, fit.residual)
    if not (np.abs(sandwich.turned).max() < _LARGEST and 1 / _LARGEST < default_size < _LARGEST):
        turn = np.zeros_like(turn)
        default_size = 1.0
        sandwich = Sandwich(rows, turn @ regressors, np.zeros_like(response))
    edges = _ROBUST_EDGES * default_size
    (counts,) = records.run(sandwich_counts, sandwich, edges)
    released = release_counts(gate, f"robust reach {number}", counts, design.pure)
    beside = design.entry_noise * sqrt(records.count)
    shortened = next(share for least, _, share in CUT if beside >= least)
    longest, _ = first_few(
        released.floats(),
        released.variance,
        shortened * records.count,
        SHOWN,
        np.append(edges, 2 * edges[-1]),
    )
    short = Sandwich(rows, sandwich.turned, sandwich.residual, longest)
    bound = Fraction(longest)
    matrix, sd = release_products(
        gate, f"robust {number}", records, sandwich_rows, (short,), sqrt(longest), bound
    )
    return turn, matrix, sd
