"""The coordinator's study file: one question, the sites it is put to, and how long to wait for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterveil.federation.declared import Declared
from counterveil.federation.messages import Ask, check_id
from counterveil.federation.names import check_address, check_name
from counterveil.federation.toml_files import Settings, read_settings, wrong_setting
from counterveil.inference import POOLING_METHODS

FILE = "study.toml"
DECLARATION = "declaration.toml"
_WHAT = "the study file"
_NUMBER = (int, float)
# Fewer answers than this make no average.
FEWEST = 2
_MOST_WEIGHT = 0.5
_LONGEST_WAIT = 366 * 86400.0


@dataclass(frozen=True, slots=True)
class StudyFile:
    """What is asked of whom; `asks` has each site's question, which differ in epsilon alone.

    `deadline` is how many seconds one run waits, `retry` after how many a silent site is asked again;
    `quorum` is the number of answers from which a result is made. `most_weight` is the most weight of one site in
    the average; `most_rows` has the number of rows that a site is known to have at most, where that is known.
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
    most_weight: float
    most_rows: dict[str, int]

    @classmethod
    def read(cls, folder: Path) -> StudyFile:
        """Return the study in a coordinator's folder, or raise CV-P600."""
        declaration = read_settings(folder / DECLARATION, "the declaration")
        return cls.from_document(read_settings(folder / FILE, _WHAT), declaration)

    @classmethod
    def from_document(cls, document: Mapping[str, Any], declaration: Mapping[str, Any]) -> StudyFile:
        """Return the study in the tables of a study file."""
        table = Settings(_WHAT, document)
        table.known(
            "id", "address", "deadline", "retry", "quorum", "pooling", "most_weight", "question", "sites"
        )
        ask = Ask.from_document(table.get("question", dict))
        if ask.method == "auto":
            raise wrong_setting(_WHAT, "method: the name of an estimator, for stewards to judge", "'auto'")
        sites = {check_name(name): _site(name, said) for name, said in table.get("sites", dict).items()}
        asks = {name: _asked(ask, said) for name, said in sites.items()}
        Declared.of(declaration)
        quorum = table.get("quorum", int, max(FEWEST, len(asks)))
        if not FEWEST <= quorum <= len(asks):
            raise wrong_setting(_WHAT, f"quorum: {FEWEST} to the number of sites, {len(asks)}", f"{quorum}")
        deadline, retry = (
            float(table.get(name, _NUMBER, usual)) for name, usual in (("deadline", 3600), ("retry", 60))
        )
        if not (0 < deadline <= _LONGEST_WAIT and 0 < retry <= _LONGEST_WAIT):
            raise wrong_setting(
                _WHAT, "deadline and retry: positive seconds, a year at most", f"{deadline}, {retry}"
            )
        most_weight = float(table.get("most_weight", _NUMBER, _MOST_WEIGHT))
        if not 0 < most_weight <= 1:
            raise wrong_setting(_WHAT, "most_weight: above 0, at most 1", f"{most_weight}")
        most_rows = {
            name: said.get("most_rows", int) for name, said in sites.items() if "most_rows" in said.values
        }
        if any(rows < 1 for rows in most_rows.values()):
            raise wrong_setting(_WHAT, "most_rows: at least 1", "less")
        pooling = table.get("pooling", str, "mvagg")
        check_pooling(pooling, asks, most_rows)
        return cls(
            study_id=check_id("study id", table.get("id", str)),
            address=check_address(table.get("address", str)),
            declaration=dict(declaration),
            ask=ask,
            asks=asks,
            deadline=deadline,
            retry=retry,
            quorum=quorum,
            pooling=pooling,
            most_weight=most_weight,
            most_rows=most_rows,
        )


def check_pooling(pooling: str, sites: Iterable[str], most_rows: Mapping[str, int]) -> None:
    """Raise CV-P600 where one site alone would be the result because it says that it is the largest."""
    if pooling not in POOLING_METHODS:
        raise wrong_setting(_WHAT, f"pooling: {' or '.join(POOLING_METHODS)}", f"{pooling!r:.80}")
    if pooling == "largest" and any(site not in most_rows for site in sites):
        raise wrong_setting(
            _WHAT, 'pooling = "largest" with most_rows for every site', "a site without most_rows"
        )


def _site(name: str, said: Any) -> Settings:
    table = Settings(f"site {name!r} of the study file", said if isinstance(said, Mapping) else {"": said})
    table.known("epsilon", "most_rows")
    return table


def _asked(ask: Ask, said: Settings) -> Ask:
    """Return the question for one site, with the epsilon that its table names."""
    epsilon = said.get("epsilon", (int, float, str), ask.epsilon)
    return Ask.from_document(ask.to_document() | {"epsilon": epsilon})
