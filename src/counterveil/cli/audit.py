"""The command `audit`: attacks on our own releases, with the power of every attack beside it."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from counterveil.cli.options import AsJson, argument, option

Names = Annotated[list[str] | None, argument("METHOD", "Methods, questions, or names that --list shows.")]
Epsilon = Annotated[str | None, option("NUMBER", "Claim to audit; that of the list if omitted.")]
Delta = Annotated[str | None, option("NUMBER", "Its delta; that of the list if omitted.")]
Trials = Annotated[int | None, option("INTEGER", "Samples from each data set; those of the list if omitted.")]
Seed = Annotated[int, option("INTEGER", "Seed of data, search and noise.")]
All = Annotated[bool, option("", "Audit everything: about 10 minutes on 2 cores.", "--all")]
List = Annotated[bool, option("", "Show what can be audited, and stop.", "--list")]


def audit(
    names: Names = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    trials: Trials = None,
    seed: Seed = 1,
    everything: All = False,
    listed: List = False,
    as_json: AsJson = False,
) -> None:
    """Attack releases of this library, and show the power of each attack.

    Every form is asked of neighbouring data sets, the worst that a search finds. Three attacks follow: the largest loss
    of any output, a bet on the likelihood ratio of samples, and a replay in which the neighbour must release the same
    and everything visible must be equal. Each is repeated with a third of the noise, which it must catch. The exit
    code is 1 if a claim is broken or an attack has no power.
    """
    from counterveil.attacks.command import EVERYTHING, chosen, examine_all
    from counterveil.attacks.page import summary

    if listed:
        print("\n".join(EVERYTHING))
        return
    found = []
    for one in examine_all(
        chosen(names or [], everything), epsilon=epsilon, delta=delta, samples=trials, seed=seed
    ):
        found.append(one)
        if not as_json:
            print(f"{one.verdict.value:12} {one.name}", file=sys.stderr, flush=True)
    if as_json:
        print(json.dumps([one.to_dict() for one in found], indent=2))
    else:
        print(str(found[0].report) if len(found) == 1 else summary(found))
    if not all(one.report.passed for one in found):
        raise typer.Exit(1)
