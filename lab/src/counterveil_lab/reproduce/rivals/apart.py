"""Rivals that need packages of their own; run as a script by the environment's Python, without this package.

Reads one job a line from standard input, as JSON with a file of arrays, and writes one answer a line. Bounds come with
the job: no package is left to read them off the data.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

# Parts of epsilon of the boosted learners: their models, and the mean of their predictions over private rows.
_MODELS, _MEAN = 0.9, 0.1
_CLIP = 0.05
_FOLDS = 5
# OpenDP's scales, which a search finds, by sensitivity and epsilon.
_SCALES: dict[tuple[float, float], float] = {}
# Steps of a graphical model's fit, usually 1000 and more, and its most megabytes: AIM fits one in every round.
STEPS, MODEL_MB = 100, 4


def peak_megabytes() -> float:
    """Return the peak of this process; Linux counts in `ru_maxrss` what the parent held when it started it."""
    try:
        with Path("/proc/self/status").open(encoding="ascii", errors="replace") as lines:
            return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def synthetic(job: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return the file of synthetic codes by AIM or MST."""
    pandas = import_module("pandas")
    pipelines = import_module("dpmm.pipelines")
    sizes = [int(size) for size in data["sizes"]]
    names = [f"c{place}" for place in range(len(sizes))]
    frame = pandas.DataFrame(data["codes"], columns=names)
    module: Any = import_module(f"dpmm.models.{job['task']}")
    inference = module.FactoredInference
    # MST's first fit takes thousands of steps that no argument changes.
    module.FactoredInference = lambda *given, iters, **named: inference(
        *given, iters=min(iters, STEPS), **named
    )
    kind = {"aim": "AIMPipeline", "mst": "MSTPipeline"}[job["task"]]
    made = getattr(pipelines, kind)(
        epsilon=job["epsilon"],
        delta=job["delta"],
        disable_processing=True,
        n_jobs=1,
        max_model_size=MODEL_MB,
        gen_kwargs={"n_iters": STEPS},
    )
    try:
        made.fit(frame, domain=dict(zip(names, sizes, strict=True)), random_state=job["seed"])
    finally:
        module.FactoredInference = inference
    drawn = made.generate(n_records=len(frame), random_state=job["seed"])
    out = job["file"] + ".made.npy"
    np.save(out, drawn[names].to_numpy().astype(np.int64))
    return {"codes": out}


def _models(job: dict[str, Any], columns: int) -> Any:
    privacy = import_module("interpret.privacy")

    def fitted(x: Any, y: Any, ends: tuple[float, float], part: float, seed: int) -> Any:
        model = privacy.DPExplainableBoostingRegressor(
            epsilon=part * job["epsilon"],
            delta=job["delta"],
            privacy_bounds=[(-1.0, 1.0)] * columns,
            feature_types=["continuous"] * columns,
            privacy_target_min=ends[0],
            privacy_target_max=ends[1],
            n_jobs=1,
            random_state=seed,
        )
        model.fit(x, np.clip(y, *ends))
        return lambda rows: np.clip(model.predict(rows), *ends)

    return fitted


def _mean(values: Any, reach: float, job: dict[str, Any]) -> float:
    """Return the mean of values in [-reach, reach] with Laplace noise for one of them."""
    scale = 2 * reach / (len(values) * _MEAN * job["epsilon"])
    return float(np.mean(values)) + float(np.random.default_rng(job["seed"]).laplace(0, scale))


def t_learner(job: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return the mean difference of a DP-EBM in each arm."""
    x, t, y = data["x"], data["t"].astype(bool), data["y"]
    ends = (float(data["ends"][0]), float(data["ends"][1]))
    fitted = _models(job, x.shape[1])
    one, none = (fitted(x[own], y[own], ends, _MODELS, job["seed"]) for own in (t, ~t))
    return {"value": _mean(one(x) - none(x), ends[1] - ends[0], job)}


def x_learner(job: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return the mean effect of an X-learner: outcome models on one half, imputed effects on the other."""
    x, t, y = data["x"], data["t"].astype(bool), data["y"]
    ends = (float(data["ends"][0]), float(data["ends"][1]))
    width = ends[1] - ends[0]
    first = np.arange(len(y)) % 2 == 0
    fitted = _models(job, x.shape[1])
    one, none = (fitted(x[first & own], y[first & own], ends, _MODELS, job["seed"]) for own in (t, ~t))
    treated, control = ~first & t, ~first & ~t
    effects = (-width, width)
    on_treated = fitted(x[treated], y[treated] - none(x[treated]), effects, _MODELS, job["seed"] + 1)
    on_control = fitted(x[control], one(x[control]) - y[control], effects, _MODELS, job["seed"] + 1)
    # The usual weight is the propensity; one half needs no data.
    return {"value": _mean((on_treated(x) + on_control(x)) / 2, width, job)}


def doubleml(job: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return DoubleML's interactive regression with linear and logistic learners; not private."""
    dml, linear = import_module("doubleml"), import_module("sklearn.linear_model")
    held = dml.DoubleMLData.from_arrays(data["x"], data["y"], data["t"].astype(float))
    model = dml.DoubleMLIRM(
        held,
        ml_g=linear.LinearRegression(),
        ml_m=linear.LogisticRegression(max_iter=1000),
        n_folds=_FOLDS,
        trimming_threshold=_CLIP,
        draw_sample_splitting=False,
    )
    fold = np.random.default_rng(job["seed"]).permutation(len(data["y"])) % _FOLDS
    model.set_sample_splitting(
        [[(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(_FOLDS)]]
    )
    model.fit()
    low, high = model.confint().to_numpy()[0]
    return {"value": float(model.coef[0]), "low": float(low), "high": float(high)}


def opendp(job: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return the difference of sums over counts, all four by OpenDP with Laplace noise, one record replaced."""
    dp = import_module("opendp.prelude")
    dp.enable_features("contrib")
    low, high = (float(end) for end in data["ends"])
    middle, half = (low + high) / 2, (high - low) / 2
    space = dp.vector_domain(dp.atom_domain(T=float)), dp.symmetric_distance()
    epsilon = job["epsilon"] / 2

    def released(measured: Any, values: Any, start: float) -> float:
        key = (start, epsilon)
        if key in _SCALES:
            return float(measured(_SCALES[key])(values))
        # A replaced record is one that leaves and one that comes: a symmetric distance of 2, in one arm or in two.
        scale = _SCALES[key] = dp.binary_search(
            lambda one: measured(one).map(2) <= epsilon, bounds=(start * 1e-3, start * 1e6)
        )
        return float(measured(scale)(values))

    means = []
    for own in (True, False):
        values = np.clip(data["y"][data["t"].astype(bool) == own] - middle, -half, half).tolist()
        total = released(
            lambda scale: (
                space >> dp.t.then_clamp((-half, half)) >> dp.t.then_sum() >> dp.m.then_laplace(scale)
            ),
            values,
            half,
        )
        count = released(lambda scale: space >> dp.t.then_count() >> dp.m.then_laplace(scale), values, 1.0)
        means.append(float(np.clip(total / max(count, 1.0), -half, half)))
    return {"value": means[0] - means[1]}


TASKS = {
    "aim": synthetic,
    "mst": synthetic,
    "ebm_t": t_learner,
    "ebm_x": x_learner,
    "doubleml": doubleml,
    "opendp": opendp,
}


def main() -> None:
    """Answer jobs until standard input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        job = json.loads(line)
        start = time.process_time()
        # Packages print; only answers may go to the pipe.
        with contextlib.redirect_stdout(sys.stderr):
            try:
                with np.load(job["file"]) as file:
                    answer = TASKS[job["task"]](job, dict(file))
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        answer["seconds"] = time.process_time() - start
        answer["peak"] = peak_megabytes()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
