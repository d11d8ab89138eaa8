"""`counterveil rehearse`: how long intervals would be, on made-up data."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from counterveil.cli.options import AsJson, Delta, Law, Level, Method, Protects, Settings, StudyFile, Target
from counterveil.cli.showing import say

Rows = Annotated[int, typer.Option(help="How many people the study will have.")]
Epsilons = Annotated[list[str], typer.Option(help="Privacy loss to try; may be repeated.")]
Effect = Annotated[float, typer.Option(help="Supposed effect, in the unit of the outcome.")]
Mean = Annotated[
    float | None, typer.Option(help="Supposed mean outcome without treatment; middle of the range.")
]
Sd = Annotated[
    float | None, typer.Option(help="Supposed standard deviation of outcomes; a sixth of the range.")
]
YesNo = Annotated[bool, typer.Option("--yes-no", help="Outcomes are one end of the range or the other.")]
Explained = Annotated[
    float, typer.Option(help="Supposed share of outcomes that follows the covariates, 0 to 1.")
]
Confounding = Annotated[
    float, typer.Option(help="Supposed standard deviation of the log-odds of treatment that follows them.")
]
Share = Annotated[float | None, typer.Option(help="Supposed share treated; as declared, or a half.")]
Draws = Annotated[int, typer.Option(help="How many studies are made up.")]
Seed = Annotated[int, typer.Option(help="Where their randomness starts.")]


def rehearse(
    study: StudyFile,
    rows: Rows,
    protects: Protects,
    epsilon: Epsilons,
    delta: Delta = "0",
    method: Method = "auto",
    estimand: Target = "ATE",
    level: Level = 0.95,
    law: Law = None,
    setting: Settings = None,
    effect: Effect = 0.0,
    mean: Mean = None,
    sd: Sd = None,
    binary: YesNo = False,
    explained: Explained = 0.0,
    confounding: Confounding = 0.0,
    share: Share = None,
    draws: Draws = 20,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Say how long the intervals of a study would be; reads no data and spends nothing.

    People are made up from the declared ranges and labels and from what is supposed here.
    """
    import counterveil as cv
    from counterveil.questions import settings_from_text

    found = cv.plan(
        cv.Study.from_toml(study),
        rows=rows,
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        method=method,
        estimand=estimand,
        level=level,
        law=law,
        settings=settings_from_text(method, setting or [], protects),
        mean=mean,
        sd=sd,
        effect=effect,
        explained=explained,
        confounding=confounding,
        share=share,
        binary=binary,
        draws=draws,
        seed=seed,
        tell=_tell if sys.stderr.isatty() else None,
    )
    say(found.to_dict(), str(found), as_json)


def _tell(done: int, draws: int) -> None:
    """Show on a terminal how far it is, on one line that the answer takes over."""
    text = f"{done} of {draws} studies"
    sys.stderr.write(f"\r{text}" if done < draws else "\r" + " " * len(text) + "\r")
    sys.stderr.flush()
