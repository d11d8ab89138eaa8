"""The coordinator's study file: one question, the sites it is put to, and how long to wait for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from counterveil.federation.messages import Ask, check_id
from counterveil.federation.names import check_address, check_name
from counterveil.federation.toml_files import Settings, read_settings, wrong_setting

FILE = "study.toml"
DECLARATION = "declaration.toml"
_WHAT = "the study file"
_NUMBER = (int, float)
# Fewer answers than this make no average.
FEWEST = 2


@dataclass(frozen=True, slots=True)
class StudyFile:
    """What is asked of whom; `asks` has each site's question, which differ in epsilon alone.

    `deadline` is how many seconds one run waits, `retry` after how many a silent site is asked again;
    `quorum` is the number of answers from which a result is made.
    """

    study_id: str
    address: str
    declaration: dict[str, Any]
    ask: Ask
    asks: dict[str, Ask]
    deadline: float
    retry: float
    quorum: int
    pooling: str

    @classmethod
    def read(cls, folder: Path) -> StudyFile:
        """Return the study in a coordinator's folder, or raise CV-P600."""
        declaration = read_settings(folder / DECLARATION, "the declaration")
        return cls.from_document(read_settings(folder / FILE, _WHAT), declaration)

    @classmethod
    def from_document(cls, document: Mapping[str, Any], declaration: Mapping[str, Any]) -> StudyFile:
        """Return the study in the tables of a study file."""
        table = Settings(_WHAT, document)
        table.known("id", "address", "deadline", "retry", "quorum", "pooling", "question", "sites")
        ask = Ask.from_document(table.get("question", dict))
        if ask.method == "auto":
            raise wrong_setting(_WHAT, "method: the name of an estimator, for stewards to judge", "'auto'")
        asks = {check_name(name): _asked(ask, name, said) for name, said in table.get("sites", dict).items()}
        quorum = table.get("quorum", int, max(FEWEST, len(asks)))
        if not FEWEST <= quorum <= len(asks):
            raise wrong_setting(_WHAT, f"quorum: {FEWEST} to the number of sites, {len(asks)}", f"{quorum}")
        deadline, retry = (
            float(table.get(name, _NUMBER, usual)) for name, usual in (("deadline", 3600), ("retry", 60))
        )
        if min(deadline, retry) <= 0:
            raise wrong_setting(_WHAT, "deadline and retry: positive seconds", f"{deadline}, {retry}")
        return cls(
            study_id=check_id("study id", table.get("id", str)),
            address=check_address(table.get("address", str)),
            declaration=dict(declaration),
            ask=ask,
            asks=asks,
            deadline=deadline,
            retry=retry,
            quorum=quorum,
            pooling=table.get("pooling", str, "mvagg"),
        )


def _asked(ask: Ask, name: str, said: Any) -> Ask:
    """Return the question for one site, with the epsilon that its table names."""
    table = Settings(f"site {name!r} of the study file", said if isinstance(said, Mapping) else {"": said})
    table.known("epsilon")
    return replace(ask, epsilon=str(table.get("epsilon", (int, float, str), ask.epsilon)))
