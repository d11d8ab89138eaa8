"""What arguments of questions may be (types for editors and checkers), and how a call is written again.

In: the checked arguments of a call. Out: `Repeat`, the text of the same call in Python and on the command
line, which reports show below an answer. Values are checked where questions are checked; nothing private
enters.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import MISSING, fields
from fractions import Fraction
from numbers import Number as AnyNumber
from typing import Any, Literal

import numpy as np

from counterveil.report import Repeat
from counterveil.report.words import ANEW, FREE, SIMULATED
from counterveil.settings.methods import Settings

Protects = Literal["outcome", "treatment and outcome", "record"] | str
EstimandName = Literal["ATE", "ATT", "ATC", "ATO"] | str
Mechanism = Literal["staircase", "laplace", "gaussian"] | str
ArmsMethod = Literal["auto", "difference_in_means", "weighting", "matching", "doubly_robust"] | str
AteMethod = (
    Literal[
        "auto",
        "difference_in_means",
        "trial",
        "matching",
        "doubly_robust",
        "stratified",
        "weighting",
        "sample_and_aggregate",
    ]
    | str
)
CateMethod = Literal["auto", "t_learner", "r_learner", "series"] | str
EventStudyMethod = Literal["auto", "difference_in_means", "weighting", "matching"] | str
GroupsMethod = Literal["auto", "difference_in_means", "weighting", "matching", "adjusted", "arms"] | str
OutcomesMethod = (
    Literal["auto", "difference_in_means", "weighting", "matching", "trial", "doubly_robust"] | str
)
PolicyMethod = Literal["auto", "scores", "adjusted", "difference_in_means", "weighting", "matching"] | str
SurvivalMethod = Literal["auto", "kaplan_meier", "stratified", "weighting"] | str
QuantilesMethod = Literal["auto", "trial", "weighting"] | str
PoolMethod = Literal["mvagg", "ivw", "all", "largest", "random_effects"] | str
Spending = Literal["obrien_fleming", "pocock", "always_valid"] | str
PlannedQuestion = (
    Literal[
        "ate",
        "arms",
        "outcomes",
        "groups",
        "event_study",
        "cate",
        "policy_value",
        "survival",
        "quantiles",
        "moments",
        "compliance",
        "interim",
    ]
    | str
)


# The command of a question, and the options that it has beside those of every question.
COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ate": ("estimate", ("method", "estimand", "mechanism", "trim", "measure", "settings")),
    "outcomes": ("outcomes", ("method", "estimand", "mechanism", "measure")),
    "arms": ("arms", ("method", "mechanism")),
    "event_study": ("event-study", ("method", "estimand", "mechanism", "settings", "reference")),
    "groups": ("groups", ("method", "mechanism", "by")),
    "cate": ("cate", ("method",)),
    "overlap": ("overlap", ("mechanism",)),
    "quantiles": ("quantiles", ("method", "mechanism")),
    "survival": ("survival", ("method", "mechanism", "settings")),
    "policy_value": ("policy-value", ("method", "policy", "cost")),
}
_EVERY = ("protects", "epsilon", "delta", "level", "request_id")
_LEVEL = 0.95  # where nobody names one


def repeat_of(name: str, study: Any, given: Mapping[str, Any], simulated: bool = False) -> Repeat:
    """Return how to ask the question of that name again, with what was given beside data, study and ledger."""
    remark = f"{SIMULATED} {ANEW}" if simulated else ANEW
    return Repeat(study, python_call(name, given), command_line(name, given), remark)


def repeat_of_pool(names: list[str], method: str, level: float) -> Repeat:
    """Return how to pool the same sites again, from their results as `--json` writes them."""
    files = {name: f"site-{place}.json" for place, name in enumerate(names, 1)}
    lines = ["import counterveil as cv", "", f"result = cv.pool({literal(files)}, method={method!r}"]
    lines[-1] += ")" if level == _LEVEL else f", level={level!r})"
    words = ["counterveil", "pool", *files.values(), "--method", method]
    words += [] if level == _LEVEL else ["--level", repr(level)]
    return Repeat(None, "\n".join(lines), shlex.join(words), FREE)


def python_call(question: str, given: Mapping[str, Any]) -> str:
    """Return a program that asks the question and writes its report."""
    lines = ["import counterveil as cv", "", 'study = cv.Study.from_toml("study.toml")']
    words = []
    for name, value in given.items():
        text = literal(value)
        if text is None:
            # Objects of the analyst's own have no text.
            lines.append(f"{name} = ...  # {type(value).__name__}, as it was passed")
            text = name
        words.append(f"    {name}={text},")
    if "request_id" in given:
        words.append('    ledger="LEDGER",  # the place of the ledger that was charged')
    lines += [
        f"result = cv.{question}(",
        '    "DATA",  # the path of a file, or a frame',
        "    study,",
        *words,
        ")",
    ]
    return "\n".join([*lines, 'result.to_html("report.html")'])


def literal(value: Any) -> str | None:
    """Return a value as Python writes it, None where it has no such text."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, np.generic):
        return literal(value.item())
    if isinstance(value, Fraction) or (isinstance(value, AnyNumber) and not isinstance(value, complex)):
        return repr(str(value))
    if isinstance(value, Settings):
        return _settings(value)
    if isinstance(value, Mapping):
        pairs = [(literal(key), literal(one)) for key, one in value.items()]
        known = [f"{key}: {one}" for key, one in pairs if key is not None and one is not None]
        return f"{{{', '.join(known)}}}" if len(known) == len(pairs) else None
    if isinstance(value, list | tuple):
        parts = [literal(one) for one in value]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        end = "," * (isinstance(value, tuple) and len(known) == 1)
        return f"[{', '.join(known)}]" if isinstance(value, list) else f"({', '.join(known)}{end})"
    conditions = getattr(value, "conditions", None)
    return _where(conditions) if isinstance(conditions, Mapping) else None


def _changed(settings: Settings) -> dict[str, Any]:
    """Return the settings that differ from what they are by default."""
    found = {}
    for each in fields(settings):
        value = getattr(settings, each.name)
        usual = each.default if each.default_factory is MISSING else each.default_factory()
        if value is not usual and not (type(value) is type(usual) and value == usual):
            found[each.name] = value
    return found


def _settings(settings: Settings) -> str | None:
    parts = {name: literal(value) for name, value in _changed(settings).items()}
    if any(part is None for part in parts.values()):
        return None
    said = ", ".join(f"{name}={part}" for name, part in parts.items())
    return f"cv.settings.{type(settings).__name__}({said})"


def _where(conditions: Mapping[str, tuple[Any, ...]]) -> str | None:
    """Return the call that makes a policy of conditions."""
    kept = {name: tuple(c[1:]) if c[0] == "between" else list(c[1:]) for name, c in conditions.items()}
    said = literal(kept)
    return None if said is None else f"cv.Policy.where(**{said})"


def command_line(question: str, given: Mapping[str, Any]) -> str:
    """Return the command that asks the same, empty where an argument has no option there."""
    command, options = COMMANDS.get(question, ("", ()))
    if not command or any(name not in (*_EVERY, *options) for name in given):
        return ""
    words = ["counterveil", command, "DATA", "--study", "study.toml"]
    for name, value in given.items():
        added = _options(name, value)
        if added is None:
            return ""
        words += added
    if "request_id" in given:
        words += ["--ledger", "LEDGER"]
    return shlex.join([*words, "--report", "report.html"])


def _options(name: str, value: Any) -> list[str] | None:
    """Return the words that stand for an argument, None where there are none."""
    if name == "settings":
        return _set(value)
    if name == "by":
        return _by(value)
    if name == "policy":
        return ["--policy", "policy.json"]  # as Policy.save writes it
    text = str(value.item() if isinstance(value, np.generic) else value)
    return [f"--{name.replace('_', '-')}", text]


def _set(settings: Any) -> list[str] | None:
    words: list[str] = []
    for name, value in _changed(settings).items():
        text = value if isinstance(value, str) else literal(value)
        if text is None:
            return None
        words += ["--set", f"{name}={text}"]
    return words


def _by(by: Any) -> list[str] | None:
    cuts = by if isinstance(by, Mapping) else dict.fromkeys([by] if isinstance(by, str) else by)
    words: list[str] = []
    for name, points in cuts.items():
        if "=" in str(name) or any("," in str(point) for point in points or ()):
            return None
        words += ["--by", str(name) if points is None else f"{name}={','.join(map(str, points))}"]
    return words
