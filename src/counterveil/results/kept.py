"""Answers as a ledger keeps them: read back, with the files that show them; nothing is computed from rows.

In: the stored JSON of answers. Out: the same answers as objects, and reports of them. Reading costs nothing:
what was released once may be looked at as often as anyone likes (post-processing).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from counterveil.bounded_reading import UnreadableError, parse_json
from counterveil.errors import CounterveilError
from counterveil.inference.quotient import NEEDED
from counterveil.privacy.caveats import KeptByTrim
from counterveil.report import markdown, page
from counterveil.report.airlock import csv_of
from counterveil.results.arms import ArmsResult, EventStudyResult, OutcomesResult
from counterveil.results.effect import kind_of
from counterveil.results.functions import CateAnswers, CateModel
from counterveil.results.groups import GroupsResult, PolicyValue, RatioResult, TargetingCurve
from counterveil.results.overlap import OverlapSummary
from counterveil.results.own_release import Release
from counterveil.results.question import missing_caveats
from counterveil.results.regression import Moments
from counterveil.results.released import ReleasedAnswer
from counterveil.results.result import MeasureResult, Result
from counterveil.results.survival import QuantilesResult, SurvivalResult

_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(Result, MeasureResult, RatioResult, ArmsResult, GroupsResult, OutcomesResult, EventStudyResult),
        *(
            SurvivalResult,
            OverlapSummary,
            Release,
            PolicyValue,
            TargetingCurve,
            CateModel,
            CateAnswers,
            Moments,
            QuantilesResult,
        ),
    )
}
_LONGEST = 64 * 2**20


def answer_of(reserved: Mapping[str, Any], text: str) -> Any:
    """Return the released result of a stored answer, None where it is of a kind that has no page.

    `reserved` holds the facts of the entry that reserved its budget, `text` the answer as it is stored.
    """
    asked, uses = reserved["description"], reserved.get("uses") or {}
    try:
        found = parse_json(text, _LONGEST)
        result = kind_of(found, _KINDS).from_dict(found)
    except (UnreadableError, CounterveilError):
        return None
    if isinstance(result, ReleasedAnswer):
        # What rules for missing values take away is a fact of the study, and stands in no stored answer.
        lost = missing_caveats(uses.get("missing") or {})
        result = replace(result, not_covered=(*lost, *result.not_covered))
    if asked.get("measure") == NEEDED and type(result) is Result:
        result = MeasureResult.of_difference(result)
    if isinstance(result, Result) and asked.get("trim") is not None:
        # Who was kept is worked out when rows are at hand; that some were left out must be said here too.
        return replace(result, population=KeptByTrim(str(asked["trim"])))
    return result


def files_of(result: Any) -> dict[str, tuple[str, Callable[[], str]]]:
    """Return the files of a result by name: their type and what writes them."""
    whole = result.view(full=True) if isinstance(result, Moments) else None
    files: dict[str, tuple[str, Callable[[], str]]] = {
        "report.html": ("text/html", lambda: page(whole or result.document()))
    }
    if not isinstance(result, OverlapSummary | Release | Moments):
        files |= {
            "report.md": ("text/markdown", lambda: markdown(result.document())),
            "write-up.txt": ("text/plain", lambda: result.write_up() + "\n"),
            "table.tex": ("text/x-tex", result.to_latex),
        }
    return files | {
        "effects.csv": ("text/csv", lambda: csv_of(result.tidy())),
        "result.json": ("application/json", lambda: json.dumps(result.to_dict(), indent=2) + "\n"),
    }
