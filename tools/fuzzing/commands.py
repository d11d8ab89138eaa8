"""The command line: commands, options and `--set` values that are wrong in every way a shell can pass."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from tools.fuzzing import documents, nasty, trials
from tools.fuzzing.judging import Answer, Attempt, BrokenRuleError

import counterveil as cv
from counterveil.cli.app import main

_EXIT_CODES = {0, 1, 2, 3, 4, 5, 6, 7, 8}
_SETS = (
    "neighbours", "limit", "c", "variance_by", "features", "signal", "residual", "variance_share",
    "strata",
    "cuts", "pairing", "sensitivity", "noise", "smoothness", "unmatched", "order", "degree", "covariance",
    "means", "sds", "kappa", "form", "clip", "fit_share", "reach", "folds", "learner", "bound", "models", "",
)  # fmt: skip
_METHODS = tuple(dict.fromkeys((*trials.OUTCOME_METHODS, *trials.RECORD_METHODS)))


def prepare(folder: Path) -> None:
    """Write the files that commands are given."""
    home = folder / "commands"
    home.mkdir(exist_ok=True)
    columns = trials.people(random.Random(5), 60)
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    (home / "data.csv").write_text("\n".join([",".join(columns), *rows]))
    (home / "study.toml").write_text(trials.STUDY.to_toml())
    for name, facts in documents.released().items():
        (home / f"{name}.json").write_text(json.dumps(facts))
    with cv.open_ledger(home / "ledger.db", create=True) as ledger:
        ledger.register("people", trials.BUDGET)
        ledger.publish("people", trials.STUDY.public_columns("outcome"))


def make(rng: random.Random, folder: Path) -> Attempt:
    """Return the running of a command with one to three wrong words."""
    words = _command(rng, folder / "commands")
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(words))
        how = rng.random()
        if how < 0.7:
            words[at] = nasty.text(rng) if not words[at].startswith("--") or how < 0.05 else words[at]
        elif how < 0.8:
            del words[at]
        elif how < 0.9:
            words.insert(at, nasty.text(rng))
        else:
            words.append(rng.choice(("--json", "--help", "--report", "--level", "--mechanism")))
        if not words:
            break
    # A shell cannot pass this character.
    words = [word.replace("\0", "") for word in words]
    if any(word in ("run", "demo", "create") for word in words[:3]):
        words = ["doctor"]
    return lambda: _run(words, folder / "commands")


def _command(rng: random.Random, home: Path) -> list[str]:
    common = [
        str(home / "data.csv"),
        "--study",
        str(home / "study.toml"),
        "--epsilon",
        rng.choice(("1", "0.1", "1/3")),
    ]
    protects = ["--protects", rng.choice(("outcome", "record"))]
    ledger = ["--ledger", str(home / "ledger.db"), "--dataset", "people"] * (rng.random() < 0.3)
    setting = [
        word
        for _ in range(rng.choice((0, 1, 2)))
        for word in ("--set", f"{rng.choice(_SETS)}={nasty.text(rng)}")
    ]
    asked = ["estimate", *common, *protects, "--method", rng.choice(_METHODS), *setting, *ledger]
    others = (
        ["groups", *common, *protects, "--by", rng.choice(("smoker", "age=40,65", "age=", "site"))],
        ["policy-value", *common, "--policy", str(home / "policy.json"), "--cost", "1"],
        ["pool", str(home / "north.json"), str(home / "south.json"), "--method", "ivw"],
        ["effect", str(home / "model.json"), str(home / "data.csv"), "--level", "0.9"],
        ["check", str(home / "data.csv"), "--study", str(home / "study.toml")],
        ["ledger", "show", str(home / "ledger.db"), "--entries"],
        ["ledger", "verify", str(home / "ledger.db"), "--head-hash", "abc"],
        ["explain", "CV-P004"],
        [
            "plan",
            "--study",
            str(home / "study.toml"),
            "--rows",
            "40",
            *protects,
            "--epsilon",
            "1",
            "--draws",
            "2",
        ],
        ["federation", "site", "check", str(home)],
        ["federation", "coordinator", "status", str(home)],
        ["federation", "coordinator", "result", str(home)],
    )
    return asked if rng.random() < 0.6 else rng.choice(others)


def _run(words: list[str], home: Path) -> Answer:
    before = sys.argv
    sys.argv = ["counterveil", *words]
    try:
        main()
        code: object = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = before
    if code not in _EXIT_CODES:
        raise BrokenRuleError(f"exit code {code} of counterveil {' '.join(words)[:300]!r}")
    with cv.open_ledger(home / "ledger.db") as ledger:
        texts = [json.dumps(dict(entry.facts), default=str) for entry in ledger.entries()]
    return Answer(texts)
