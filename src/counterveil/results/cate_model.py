"""A released effect as a function of the covariates: evaluated for ever, without further spending."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import frexp
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Range, Study, public_points
from counterveil.errors import refusal
from counterveil.inference.uncertainty import deviations, pointwise, simultaneous
from counterveil.numerics.bases import Basis
from counterveil.numerics.products import blocks, projected
from counterveil.results.cate_answers import CateAnswers, said_first
from counterveil.results.cate_question import Queries, read_columns, reference_queries
from counterveil.results.effect import Effect, check_level
from counterveil.results.result import Released, provenance_from_dict
from counterveil.results.stored import load, no_effects, reads_facts, save

if TYPE_CHECKING:
    from counterveil.results.overlap import OverlapSummary

# Curves of a page, and points of each.
_CURVES, _CURVE_POINTS = 4, 41

# Symmetric matrices as short text: the upper triangle in single precision.


Floats = NDArray[np.float64]

# Largest entries of a binary exponent within this are written as they are. Others are scaled by a power of two, which
# is written before them: single precision ends at exponents of about 126.
_PLAIN = 60


def packed(matrix: Floats) -> str:
    """Return the upper triangle of a symmetric matrix as base64 text of little-endian float32."""
    upper = matrix[np.triu_indices(len(matrix))]
    exponent = frexp(float(np.abs(upper).max(initial=0.0)))[1]
    power = exponent if abs(exponent) > _PLAIN else 0
    text = b64encode(np.ldexp(upper, -power).astype("<f4").tobytes()).decode("ascii")
    return f"{power}:{text}" if power else text


def unpacked(text: str, size: int) -> Floats:
    """Return the (size, size) symmetric matrix that `packed` wrote."""
    power, _, body = text.rpartition(":")
    found = np.zeros((size, size))
    upper = np.frombuffer(b64decode(body), dtype="<f4").astype(np.float64)
    found[np.triu_indices(size)] = np.ldexp(upper, int(power or 0))
    return np.asarray(found + np.triu(found, 1).T)


# A released function in the clothes of a scikit-learn regressor; needs no scikit-learn itself.


class Predictor:
    """Predicts effects; already fitted, so that `fit` reads nothing and returns the same object."""

    _estimator_type = "regressor"

    def __init__(self, model: CateModel) -> None:
        self.model = model
        self.n_features_in_ = len(model.study.covariates)
        self.feature_names_in_ = np.array(list(model.study.covariates), dtype=object)

    def fit(self, X: Any = None, y: Any = None) -> Predictor:  # noqa: ARG002 - nothing is left to fit
        """Return the same object: the function was released before, and rows are never read again."""
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the effect for every row of X."""
        return self.model.effect(X)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - the model has no parameters
        """Return what the object was made of."""
        return {"model": self.model}

    def set_params(self, **parameters: Any) -> Predictor:
        """Return the same object with another model."""
        if "model" in parameters:
            self.__init__(parameters["model"])  # type: ignore[misc]
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


class FunctionBasis(Protocol):
    """Public functions of the covariates."""

    @property
    def size(self) -> int:
        """Number of features."""
        ...

    def features(self, columns: Mapping[str, Floats], part: slice | None = None) -> Floats:
        """Return the (n, size) features of columns of numbers or codes."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the basis as JSON-ready facts, with its `kind`."""
        ...


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class CateModel(Released):
    """A released function: effect(x) = basis(x) @ weights. Nothing in it is private any more.

    `covariance` is that of the weights around the best function of the basis (privacy noise, sampling and what
    shrinkage leaves out); `noise_covariance` is the privacy part alone. `heterogeneous` is False where the
    public numbers did not afford effects that differ, or where `auto` found no evidence that they do: the effect is
    then one number, and there are no intervals for people, only that of the average effect in `table`. `higher` are
    functions
    beyond the basis and their variances: what the basis leaves out, for intervals and bands alone. `shrinkage` is what
    was taken off the weights as measured, where `covariance` is that of those: intervals are longer by its size at
    both ends, so that they hold the ones around the effect as measured.
    `effects` and `table` are about reference points: the middle of all covariates, and each covariate moved by itself.
    """

    study: Study
    basis: FunctionBasis
    weights: Floats
    covariance: Floats
    noise_covariance: Floats
    treatment: str = field(init=False)
    outcome: str = field(init=False)
    heterogeneous: bool = True
    higher: tuple[FunctionBasis, Floats] | None = None
    shrinkage: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("treatment", "outcome"):
            object.__setattr__(self, name, getattr(self.study, name))

    @property
    def caution(self) -> str | None:
        """What every rendering says first: that the effect is one number, or that no interval is for it."""
        return said_first(self, not self.heterogeneous)

    def effect(self, X: Any) -> Floats:
        """Return the effect for every row of a table of covariates; values are clamped to the public bounds."""
        columns = read_columns(X, self.study)
        rows = len(next(iter(columns.values())))
        found = np.empty(rows)
        for part in blocks(rows):
            found[part] = projected(self.basis.features(columns, part), self.weights)
        return found

    def predict(self, X: Any) -> Floats:
        """Return the same as `effect`, under the word of scikit-learn."""
        return self.effect(X)

    def interval(self, X: Any, level: float | None = None) -> tuple[Floats, Floats]:
        """Return the two ends of an interval for every row; each holds by itself. One effect for all: CV-P528."""
        chosen = self._level_for_people(level)
        features, covariance = self._with_higher(X)
        return self._around(features, covariance, pointwise(chosen))

    def effect_interval(self, X: Any, alpha: float = 0.05) -> tuple[Floats, Floats]:
        """Return the two ends of an interval of level 1 - alpha for every row (EconML's words)."""
        return self.interval(X, 1 - alpha)

    def band(self, X: Any, level: float | None = None) -> tuple[Floats, Floats]:
        """Return the two ends of intervals that hold for all rows of X together. One effect for all: CV-P528."""
        chosen = self._level_for_people(level)
        features, covariance = self._with_higher(X)
        return self._around(features, covariance, simultaneous(features, covariance, chosen))

    def average(self, X: Any, level: float | None = None) -> tuple[float, float, float]:
        """Return the mean effect over the rows of X, which are taken as public, and the ends of its interval.

        One effect for all is the average over the study's people, not over others: CV-P528.
        """
        chosen = self._level_for_people(level)
        features, covariance = self._with_higher(X)
        mean = features.mean(axis=0, keepdims=True)
        low, high = self._around(mean, covariance, pointwise(chosen))
        return float(low[0] + high[0]) / 2, float(low[0]), float(high[0])

    def answers(self, queries: Queries) -> CateAnswers:
        """Return the effects at public queries, with an interval for each."""
        features = self.basis.features(queries.columns)
        total = deviations(*self._joined(features, queries.columns))
        noise = deviations(features, self.noise_covariance)
        return CateAnswers(
            queries=queries.rows,
            estimates=tuple((features @ self.weights).tolist()),
            sampling=tuple(np.sqrt(np.maximum(total**2 - noise**2, 0.0)).tolist()),
            noise=tuple(noise.tolist()),
            guarantee=self.guarantee,
            spent=self.spent,
            method=self.method,
            treatment=self.study.treatment,
            outcome=self.study.outcome_name,
            level=self.level,
            releases=self.releases,
            not_covered=self.not_covered,
            distinct=len({row.tobytes() for row in features}),
            rank=self.basis.size,
            details=self.details,
            interval_of=self.interval_of,
            condition=self.condition,
            assumes=self.assumes,
            one_effect=not self.heterogeneous,
            shrunk=tuple(np.abs(self._shrunk(features)).tolist()),
        )

    def to_sklearn(self) -> Predictor:
        """Return an object with `predict`, `fit` and `get_params`, as scikit-learn's pipelines expect."""
        return Predictor(self)

    def at_reference(self) -> tuple[tuple[str, ...], CateAnswers]:
        """Return names of reference points and the effects there; one point where there is one effect for all."""
        names, queries = reference_queries(self.study, None if self.heterogeneous else 1)
        return names if self.heterogeneous else ("everybody",), self.answers(queries)

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effects at reference points, named by the covariate that is moved."""
        names, found = self.at_reference()
        return tuple(replace(one, name=name) for name, one in zip(names, found.table, strict=True))

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary a reference point, with the names that R's `broom` uses, and underscores."""
        names, found = self.at_reference()
        return [{"point": name} | row for name, row in zip(names, found._rows(), strict=True)]

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, with a row for every reference point."""
        names, found = self.at_reference()
        rows = zip(names, found.effect_facts(), strict=True)
        asked, about = "counterveil.ate asks for this effect by itself", "one effect for everybody"
        if self.heterogeneous:
            asked = "evaluate with .effect(X), .interval(X), .band(X), as often as you like"
            about = f"effect as a function of the covariates, {self.basis.size} weights"
        points = "all covariates at the middle of their range or their first label, with one of them varied"
        return self.to_dict() | {
            "sentence": about,
            "effects": [facts | {"name": name} for name, facts in rows],
            "notes": [("Points", points)] * self.heterogeneous + [("Use", asked)],
        }

    def page_facts(self, overlap: OverlapSummary | None = None) -> dict[str, Any]:
        """Return what a page shows: the facts of `report_facts`, and curves along the covariates that hold numbers."""
        # Named in full: with slots, the class in `super()` is not the one that is left.
        facts = Released.page_facts(self, overlap)
        if not self.heterogeneous or self.interval_of is not None:
            return facts
        numeric = [name for name, domain in self.study.covariates.items() if isinstance(domain, Range)]
        curves = [self._curve(name) for name in numeric[:_CURVES]]
        return facts | {"effect_curves": curves, "curves_left": len(numeric) - len(curves)}

    def _curve(self, feature: str) -> dict[str, Any]:
        """Return the effect along one covariate, with intervals and band, the others as at the reference point."""
        ranges = {name: domain for name, domain in self.study.covariates.items() if isinstance(domain, Range)}
        x = np.linspace(*ranges[feature].floats(), _CURVE_POINTS)
        columns = {
            name: np.full(len(x), sum(domain.floats()) / 2 if isinstance(domain, Range) else 0.0)
            for name, domain in self.study.covariates.items()
        } | {feature: x}
        features, covariance = self._joined(self.basis.features(columns), columns)
        inner = self._around(features, covariance, pointwise(self.level))
        outer = self._around(features, covariance, simultaneous(features, covariance, self.level))
        return {
            "feature": feature,
            "x": x.tolist(),
            "effect": (features[:, : len(self.weights)] @ self.weights).tolist(),
            "interval": [end.tolist() for end in inner],
            "band": [end.tolist() for end in outer],
        }

    def _numbers(self) -> dict[str, Any]:
        return {
            "kind": "cate",
            "heterogeneous": self.heterogeneous,
            "study": self.study.to_dict(),
            "basis": self.basis.to_dict(),
            "weights": self.weights.tolist(),
            "covariance": packed(self.covariance),
            "noise_covariance": packed(self.noise_covariance),
            "higher": None
            if self.higher is None
            else {"basis": self.higher[0].to_dict(), "variances": self.higher[1].tolist()},
            "shrinkage": None if self.shrinkage is None else self.shrinkage.tolist(),
        }

    def _shown(self) -> dict[str, Any]:
        # A model holds no interval: what is written is what was released.
        return {}

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> CateModel:
        """Return the model written by `to_dict`."""
        own = provenance_from_dict(facts)
        study = Study.from_dict(facts["study"])
        if (own.pop("treatment"), own.pop("outcome")) != (study.treatment, study.outcome_name):
            raise ValueError("a model of another study")
        made = cls(
            study=study,
            basis=Basis.from_dict(facts["basis"]),
            weights=np.array(facts["weights"], dtype=np.float64),
            covariance=unpacked(facts["covariance"], len(facts["weights"])),
            noise_covariance=unpacked(facts["noise_covariance"], len(facts["weights"])),
            heterogeneous=facts["heterogeneous"],
            higher=None
            if facts["higher"] is None
            else (Basis.from_dict(facts["higher"]["basis"]), np.array(facts["higher"]["variances"])),
            shrinkage=None if facts["shrinkage"] is None else np.array(facts["shrinkage"], dtype=np.float64),
            **own,
        )
        # Evaluated once: weights and functions that do not belong together are refused here, not when it is used.
        one = public_points(made.study, 1)
        features, covariance = made._joined(made.basis.features(one), one)
        made._around(features, covariance, 1.0)
        return made

    def save(self, path: str | Path) -> Path:
        """Write the model as JSON, with no data in it; return the path."""
        return save(self.to_dict(), path)

    @classmethod
    def load(cls, path: str | Path) -> CateModel:
        """Return the model that `save` wrote; another file is refused with CV-P552."""
        writer = "CateModel.save or `counterveil cate --out`"
        return load(path, cls.from_dict, lambda got: no_effects(got, writer))

    def _level_for_people(self, level: float | None) -> float:
        """Return the level of intervals for people, or raise CV-P528 where there are none."""
        if not self.heterogeneous:
            raise refusal("CV-P528")
        return self.level if level is None else check_level(level)

    def _with_higher(self, X: Any) -> tuple[Floats, Floats]:
        columns = read_columns(X, self.study)
        return self._joined(self.basis.features(columns), columns)

    def _joined(self, features: Floats, columns: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        """Return features and covariance with those of the higher functions beside them."""
        if self.higher is None:
            return features, self.covariance
        basis, variances = self.higher
        size, total = len(self.weights), len(self.weights) + len(variances)
        covariance = np.zeros((total, total))
        covariance[:size, :size] = self.covariance
        covariance[np.arange(size, total), np.arange(size, total)] = variances
        return np.concatenate((features, basis.features(columns)), axis=1), covariance

    def _around(self, features: Floats, covariance: Floats, factor: float) -> tuple[Floats, Floats]:
        own = features[:, : len(self.weights)]
        middle = own @ self.weights
        half = factor * deviations(features, covariance) + np.abs(self._shrunk(own))
        return middle - half, middle + half

    def _shrunk(self, features: Floats) -> Floats:
        """Return by how much shrinkage moved the effect at every row of features."""
        if self.shrinkage is None:
            return np.zeros(len(features))
        return np.asarray(features @ self.shrinkage)
