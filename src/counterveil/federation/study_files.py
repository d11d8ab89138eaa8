"""The coordinator's study file: one question, the sites it is put to, and how long to wait for them."""

from __future__ import annotations

import fcntl
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from counterveil.bounded_reading import UnreadableError
from counterveil.errors import CounterveilError, ParameterError, refusal, shown
from counterveil.federation.files import (
    TomlTable,
    check_address,
    check_name,
    check_private,
    damaged,
    invalid,
    open_private,
    read_json,
    read_settings,
    write_json,
)
from counterveil.federation.judging import judgeable
from counterveil.federation.messages import Ask, Head, Reply, SiteRequest, check_id
from counterveil.inference.site_weights import POOLING_METHODS
from counterveil.report.pooling import METHODS as POOLING_OF_MEANS
from counterveil.results.measures import OF_MEANS

FILE = "study.toml"
DECLARATION = "declaration.toml"
_WHAT = "the study file"
_NUMBER = (int, float)
# Fewer answers than this make no average; the answer of a study of one site is that site's own.
FEWEST = 2
_MOST_WEIGHT = 0.5
_LONGEST_WAIT = 366 * 86400.0
NO_AGGREGATION, SECURE = "none", "secure"


@dataclass(frozen=True, slots=True)
class StudyFile:
    """What is asked of whom; `asks` has each site's question, which differ in epsilon alone.

    `deadline` is how many seconds one run waits, `retry` after how many a silent site is asked again;
    `quorum` is the number of answers from which a result is made. `max_weight` is the most weight of one site in
    the average; `max_rows` has the number of rows that a site is known to have at most, where that is known.
    `colluding` is how many sites may collude where their parts are added up under masks, 0 where answers are pooled.
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
    max_weight: float
    max_rows: dict[str, int]
    colluding: int = 0

    @property
    def aggregation(self) -> str:
        """What becomes of the sites' answers: "secure" if their parts are summed, else "none"."""
        return SECURE if self.colluding else NO_AGGREGATION

    @classmethod
    def read(cls, folder: Path) -> StudyFile:
        """Return the study in a coordinator's folder, or raise CV-P600."""
        declaration = read_settings(folder / DECLARATION, "the declaration")
        return cls.from_document(read_settings(folder / FILE, _WHAT), declaration)

    @classmethod
    def from_document(cls, document: Mapping[str, Any], declaration: Mapping[str, Any]) -> StudyFile:
        """Return the study in the tables of a study file."""
        table = TomlTable(_WHAT, document)
        known = ("id", "address", "deadline", "retry", "quorum", "pooling", "max_weight", "question", "sites")
        table.known(*known, "aggregation", "colluding")
        ask = Ask.from_document(table.get("question", dict))
        colluding = 0
        if table.get("aggregation", str, NO_AGGREGATION) != NO_AGGREGATION:
            ask, colluding = _summed(table, ask)
        if ask.method == "auto":
            raise _wrong("method: the name of an estimator, which stewards can review", "'auto'")
        sites = {check_name(name): _site(name, said) for name, said in table.get("sites", dict).items()}
        asks = {name: _asked(ask, said) for name, said in sites.items()}
        judgeable(declaration, ask.question)
        if colluding and len({one.epsilon for one in asks.values()}) > 1:
            raise _wrong("one epsilon for all sites whose parts are summed", "several")
        quorum = table.get("quorum", int, len(asks))
        fewest = max(1, min(FEWEST, len(asks)))
        if not fewest <= quorum <= len(asks):
            raise _wrong(f"quorum: {fewest} to the number of sites, {len(asks)}", f"{quorum}")
        if not colluding < quorum:
            raise _wrong(f"colluding: 1 to {quorum - 1}, less than the quorum", f"{colluding}")
        deadline, retry = table.get("deadline", _NUMBER, 3600), table.get("retry", _NUMBER, 60)
        if not (0 < deadline <= _LONGEST_WAIT and 0 < retry <= _LONGEST_WAIT):
            got = f"{shown(deadline)}, {shown(retry)}"
            raise _wrong("deadline and retry: positive seconds, a year at most", got)
        max_weight = table.get("max_weight", _NUMBER, _MOST_WEIGHT)
        if not 0 < max_weight <= 1:
            raise _wrong("max_weight: above 0, at most 1", shown(max_weight))
        max_rows = {
            name: said.get("max_rows", int) for name, said in sites.items() if "max_rows" in said.values
        }
        if any(rows < 1 for rows in max_rows.values()):
            raise _wrong("max_rows: at least 1", "less")
        pooling = table.get("pooling", str, "mvagg")
        check_pooling(pooling, asks, max_rows, ask)
        return cls(
            study_id=check_id("study id", table.get("id", str)),
            address=check_address(table.get("address", str)),
            declaration=dict(declaration),
            ask=ask,
            asks=asks,
            deadline=float(deadline),
            retry=float(retry),
            quorum=quorum,
            pooling=pooling,
            max_weight=float(max_weight),
            max_rows=max_rows,
            colluding=colluding,
        )


def _summed(table: TomlTable, ask: Ask) -> tuple[Ask, int]:
    """Return the question with summed noise, and how many sites may collude."""
    if table.get("aggregation", str) != SECURE:
        raise _wrong(f'aggregation: "{NO_AGGREGATION}" or "{SECURE}"', repr(table.values["aggregation"]))
    if not ask.adds_up:
        wanted = (
            f'with aggregation = "{SECURE}": survival by kaplan_meier or stratified, or an ATE by difference_in_means '
            "of outcomes or an unadjusted trial of records, or groups by arms or moments of records"
        )
        raise _wrong(
            wanted,
            "a question whose weights or models are each site's own: pool it; for private pairs ask for records",
        )
    colluding = table.get("colluding", int, 1)
    if colluding < 1:
        raise _wrong("colluding: at least 1, as every site sees the sums", f"{colluding}")
    return replace(ask, mechanism=ask.shares), colluding


def _wrong(expected: str, got: str) -> CounterveilError:
    return invalid(_WHAT, expected, got)


def check_pooling(pooling: str, sites: Iterable[str], max_rows: Mapping[str, int], ask: Ask) -> None:
    """Raise CV-P600 for a method that the measure does not have, or where one site would say that it is the largest."""
    known = tuple(POOLING_OF_MEANS) if ask.measure in OF_MEANS else POOLING_METHODS
    known = ("all", "mvagg") if ask.question == "moments" else known
    if pooling not in known:
        raise _wrong(f"pooling: {' or '.join(known)} for this question", f"{pooling!r:.80}")
    if pooling == "largest" and any(site not in max_rows for site in sites):
        raise _wrong(
            'pooling = "largest" with max_rows for every site',
            "a site without max_rows",
        )


def _site(name: str, said: Any) -> TomlTable:
    table = TomlTable(f"site {name!r} of the study file", said if isinstance(said, Mapping) else {"": said})
    table.known("epsilon", "max_rows")
    return table


def _asked(ask: Ask, said: TomlTable) -> Ask:
    """Return the question for one site, with the epsilon that its table names."""
    epsilon = said.get("epsilon", (int, float, str), ask.epsilon)
    return Ask.from_document(ask.to_document() | {"epsilon": epsilon})


# What would let others speak for the coordinator.
_SECRETS = ("token", "secret", "server.key")


class StudyFolder:
    """A folder with a study; what it holds outlives any process."""

    def __init__(self, path: Path) -> None:
        check_private(path, path / "keys", *(path / "keys" / name for name in _SECRETS))
        self.path = path
        self.study = StudyFile.read(path)

    @property
    def keys(self) -> Path:
        """Where the coordinator's certificates and its token are kept."""
        return self.path / "keys"

    def public_key(self, site: str) -> Path:
        """Return where the public key of a site's node belongs."""
        return self.path / "sites" / f"{site}.pub"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Hold the only run of this study, or raise CV-F023."""
        with open_private(self.path / "lock") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise refusal("CV-F023") from None
            yield

    def request(self, site: str, deadline: float = 0.0) -> SiteRequest:
        """Return the request for a site, under the id it had before; a new id is kept before it is used."""
        path = self.path / "requests" / f"{site}.json"
        kept = read_json(path, "request_id", "fingerprint")
        study = self.study
        request_id = uuid.uuid4().hex if kept is None else kept["request_id"]
        question = (study.study_id, request_id, site, study.declaration, study.asks[site])
        request = SiteRequest(*question, deadline, self.head(site))
        if kept is None:
            write_json(path, {"request_id": request_id, "fingerprint": request.fingerprint()})
        elif kept["fingerprint"] != request.fingerprint():
            raise refusal("CV-F024", site=site)
        return request

    def renew(self, site: str) -> None:
        """Forget the id of a site's request and its reply, so that it is asked, and pays, anew."""
        if site not in self.study.asks:
            raise invalid("the name of a site", f"one of {', '.join(self.study.asks)}", repr(site))
        (self.path / "requests" / f"{site}.json").unlink(missing_ok=True)
        (self.path / "replies" / f"{site}.json").unlink(missing_ok=True)
        (self.path / "sum.json").unlink(missing_ok=True)

    def keep(self, site: str, reply: Reply) -> None:
        """Keep a reply; a result is never replaced by a refusal."""
        before = self.reply(site)
        if before is None or not before.ok:
            facts = reply.to_document() | {"arrived": time.time_ns()}
            write_json(self.path / "replies" / f"{site}.json", facts)

    def reply(self, site: str) -> Reply | None:
        """Return the reply of a site to the request it has now, None where there is none yet; CV-P660 if damaged."""
        path = self.path / "replies" / f"{site}.json"
        kept = read_json(path, "request_id", "arrived")
        asked = read_json(self.path / "requests" / f"{site}.json", "request_id")
        if kept is None or asked is None:
            return None
        try:
            reply = Reply.from_document({name: value for name, value in kept.items() if name != "arrived"})
        except CounterveilError:
            raise damaged(path, "not a reply") from None
        return reply if reply.request_id in (asked["request_id"], "") else None

    def arrived(self, site: str) -> int:
        """Return when the reply of a site arrived, in billionths of a second; the earlier of two alike is believed."""
        kept = read_json(self.path / "replies" / f"{site}.json", "arrived") or {}
        found = kept.get("arrived")
        return found if isinstance(found, int) else 0

    def keep_head(self, site: str, head: Head) -> None:
        """Keep where a site's ledger ended."""
        write_json(self.path / "heads" / f"{site}.json", asdict(head))

    def head(self, site: str) -> Head | None:
        """Return the last end of a site's ledger that it told of, None before its first answer."""
        path = self.path / "heads" / f"{site}.json"
        try:
            return Head.read(read_json(path, "seq", "hash"))
        except UnreadableError as error:
            raise damaged(path, str(error)) from None

    def replies(self) -> dict[str, Reply]:
        """Return the replies that arrived, in the order of the study file; a damaged file counts as none."""
        found: dict[str, Reply] = {}
        for site in self.study.asks:
            try:
                reply = self.reply(site)
            except ParameterError:
                continue
            if reply is not None:
                found[site] = reply
        return found

    def note(self, facts: dict[str, Any]) -> None:
        """Keep what is known of the last run: its times, and which sites were seen."""
        write_json(self.path / "run.json", facts)

    def last_run(self) -> dict[str, Any]:
        """Return what was noted of the last run: `seen` and `set_aside`, nothing before the first."""
        path = self.path / "run.json"
        facts = read_json(path, "seen", "set_aside")
        if facts is None:
            return {}
        if not isinstance(facts["seen"], list) or not isinstance(facts["set_aside"], dict):
            raise damaged(path, "other facts")
        return facts
