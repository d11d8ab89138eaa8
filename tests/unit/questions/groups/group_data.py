"""Small studies with groups whose effects are known."""

import numpy as np
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data import Table

EFFECTS = {"north": 0.5, "south": 1.5, "east": -0.5}
COVARIATES = {"site": cv.Categories(list(EFFECTS)), "age": cv.Range(20, 80), "sex": cv.Binary("f", "m")}


def study(randomised=True, share=None, covariates=None):
    """Return a study of the columns of `rows`."""
    known, design = covariates or COVARIATES, {"randomised": randomised, "treated_share": share}
    return study_of("t", "y", (-4, 6), known, control=0, **design)


def rows(n=6000, seed=0, share=0.5, confounded=False):
    """Return columns whose effect is that of the site; with `confounded`, age moves treatment and outcome."""
    generator = np.random.default_rng(seed)
    site = generator.choice(list(EFFECTS), n, p=[0.5, 0.3, 0.2])
    age = generator.uniform(20, 80, n)
    sex = generator.choice(["f", "m"], n)
    lean = (age - 50) / 30
    chance = 0.5 + 0.3 * lean if confounded else np.full(n, share)
    t = (generator.random(n) < chance).astype(int)
    effect = np.array([EFFECTS[one] for one in site])
    y = 1 + effect * t + lean + (0.3 * (sex == "m")) + generator.uniform(-1, 1, n)
    return {"t": t, "y": y, "site": site.tolist(), "age": age, "sex": sex.tolist()}


def table(**arguments):
    """Return the same rows attached."""
    return Table.attach(rows(**arguments), study())


class AgeModel:
    """A public model whose effect grows with age."""

    def effect(self, columns):
        return (np.asarray(columns["age"], dtype=float) - 50) / 30
