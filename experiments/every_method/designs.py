"""The designs of the table: simulated studies drawn afresh, and real covariates.

Every design numbers its draws. A simulated one makes a new study for each; IHDP takes its files in turn; the
others keep their rows and draw noise alone. Bounds of the outcomes of IHDP and ACIC are the observed ones widened
by 2 % at each end and treated as public, since files differ tenfold; the others have their loaders' bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from counterveil.data import Observational, Outcome, Range, Study, Table, Treatment
from counterveil.datasets import acic2016, ihdp, lalonde, nhefs, nsw, pension401k
from counterveil.datasets.dataset import Dataset
from counterveil.privacy import exact
from experiments.every_method.plain import Plain, difference, doubly_robust, reference_degree
from experiments.record_effect.designs import EFFECT, frame


@dataclass(frozen=True)
class Instance:
    """An attached table, the covariates that make its strata, the truth, and answers without privacy.

    Errors are reported in multiples of `unit`, so that files on different scales can be pooled.
    """

    table: Table
    strata: tuple[str, ...]
    truth: float
    unit: float
    robust: Plain
    means: Plain


@dataclass(frozen=True)
class Design:
    """A row of the table: how a draw's instance is made, and what its truth is."""

    name: str
    load: Callable[[int], Instance]
    fixed: bool = False  # one instance for all draws
    tuned: bool = False  # looked at while the rule of the automatic choice was made
    draws: float = 1.0  # beside those of other designs
    alike: str = ""  # the same for designs that no public number but the outcome's range tells apart


def simulated(kind: str, n: int, first: int) -> Callable[[int], Instance]:
    """Return the loader of a simulated study; draw k has seed first + k."""

    def load(draw: int) -> Instance:
        columns = frame(kind, first + draw, n, 20)
        y = columns["y"]
        names = [name for name in columns if name.startswith("x")]
        domains = dict.fromkeys(names, Range(0, 1)) | dict.fromkeys(names[:4], Range(0, 1).cut("0.5"))
        study = Study(
            Treatment("treated", control=0), Outcome("y", widened(y)), domains, assignment=Observational()
        )
        return instance(Table.attach(columns, study), tuple(names[:4]), EFFECT)

    return load


def instance(table: Table, strata: tuple[str, ...], truth: float | None, unit: float = 1.0) -> Instance:
    """Return an instance; where no truth is known the doubly robust estimate without privacy takes its place."""
    robust = doubly_robust(table, reference_degree(table) if truth is None else 1)
    return Instance(
        table, strata, robust.estimate if truth is None else truth, unit, robust, difference(table)
    )


def widened(y: np.ndarray) -> tuple[float, float]:
    """Return the observed range with 2 % of it added at each end."""
    margin = 0.02 * float(y.max() - y.min())
    return float(y.min()) - margin, float(y.max()) + margin


def attached(
    data: Dataset, cuts: Mapping[str, tuple[float, ...]], observed: bool = False, relative: bool = False
) -> Instance:
    """Return a data set whose strata are made by the covariates of `cuts`, numbers being cut at its points."""
    domains = dict(data.study.covariates)
    for name, points in cuts.items():
        domain = domains[name]
        domains[name] = domain.cut(*points) if isinstance(domain, Range) else domain
    study = data.study._changed(covariates=domains)
    if observed:
        y = np.asarray(data.frame[study.outcome], dtype=float)
        study = study._changed(outcome_range=tuple(exact(bound, "outcome") for bound in widened(y)))
    low, high = (float(bound) for bound in study.outcome_range)
    table = Table.attach(data.frame, study)
    return instance(table, tuple(cuts), data.true_effect, high - low if relative else 1.0)


def files_of_ihdp(first: int, count: int) -> Callable[[int], Instance]:
    strata = {"x1": (0,), "x7": (), "x9": (), "x14": ()}
    return lambda draw: attached(ihdp(first + draw % count), strata, observed=True, relative=True)


def acic(setting: int) -> Callable[[int], Instance]:
    return lambda _: attached(acic2016(setting), {"x_1": (30,), "x_17": (), "x_22": (), "x_24": ()}, True)


REAL = {
    "LaLonde 445": lambda _: attached(lalonde(), {"age": (25,), "black": (), "married": (), "nodegree": ()}),
    "401(k)": lambda _: attached(pension401k(), {"age": (40,), "inc": (20, 40, 60), "pira": (), "marr": ()}),
    "NHEFS": lambda _: attached(
        nhefs(), {"sex": (), "age": (40, 55), "smokeintensity": (15, 25), "wt71": (70,)}
    ),
}
NSW = Design("NSW 722", lambda _: attached(nsw(), {"black": (), "married": (), "nodegree": ()}), fixed=True)
SIZES = (1000, 4000, 10_000, 100_000)
VARIANTS = ("aligned", "nonlinear", "correlated")
# Synth seeds from 30,000 on have been used for nothing else; those below 100 were for choosing rules.
FRESH, TUNING_SEED = 30_000, 0


def synthetic(first: int, tuned: bool) -> list[Design]:
    names = {"plain": "Synth", "correlated": "correlated-skewed"}
    return [
        Design(
            f"{names.get(kind, kind)} {n:,}",
            simulated(kind, n, first),
            tuned=tuned,
            draws=weight,
            alike=str(n),
        )
        for n in SIZES
        for kind in ("plain", *VARIANTS)
        if kind == "plain" or n < SIZES[-1]
        for weight in [{1000: 1.0, 4000: 1.0, 10_000: 0.7, 100_000: 0.2}[n]]
    ]


REPORTED = [
    *synthetic(FRESH, False),
    Design("IHDP 6-25", files_of_ihdp(6, 20), draws=2.0),
    *(
        Design(f"ACIC {k}", acic(k), fixed=True, tuned=k in (2, 3), draws=0.7, alike="ACIC")
        for k in range(1, 6)
    ),
    *(Design(name, load, fixed=True, draws=0.7 if name == "401(k)" else 3.0) for name, load in REAL.items()),
]
TUNING = [
    *synthetic(TUNING_SEED, True),
    Design("IHDP 1-5", files_of_ihdp(1, 5), tuned=True),
    *(Design(f"ACIC {k}", acic(k), fixed=True, tuned=True, draws=0.5) for k in (2, 3)),
]
