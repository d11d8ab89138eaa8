"""Study files and documents, and the settings of sites and of federated studies."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tools.fuzzing import nasty, trials
from tools.fuzzing.judging import Answer, Attempt, BrokenRuleError

import counterveil as cv
from counterveil.privacy import Unit

_LONG = (
    "a." * 20_000 + "a = 1\n", "[" + "a." * 20_000 + "a]\n", "x = " + "[" * 20_000, "x = " + "{a=" * 5000,
    "x = " + "9" * 5000 + "\n", "x = 9999-99-99\n", "".join(f"k{place} = 1\n" for place in range(60_000)),
    'x = "' + "y" * 2_000_000 + '"\n', '{a = """x"""", ' + "b." * 20_000 + "b = 1}\n", "'''" * 2001, '"' * 4001,
    "\ufeff",
)  # fmt: skip
_SITE = {
    "name": "north",
    "data": "data.csv",
    "ledger": "ledger.db",
    "dataset": "records",
    "coordinator": "localhost:9000",
    "policy": {
        "estimators": ["difference_in_means"],
        "protects": ["outcome"],
        "study_epsilon": "1",
        "min_epsilon": "0",
        "max_delta": "0",
        "min_rows": 0,
        "approval": "automatic",
        "diagnostics": False,
    },
}
_CENTRE = {
    "id": "trial",
    "address": "localhost:9000",
    "deadline": 60.0,
    "retry": 5.0,
    "quorum": 2,
    "pooling": "mvagg",
    "question": {"method": "difference_in_means", "protects": "outcome", "epsilon": "1"},
    "sites": {"north": {"epsilon": "1"}, "south": {"epsilon": "1"}},
}


def make(rng: random.Random, folder: Path) -> Attempt:
    """Return the reading of a broken study, site or coordinator file."""
    kind = rng.random()
    if kind < 0.35:
        document = nasty.broken_facts(rng, trials.STUDY.to_dict(), plain=rng.random() < 0.5)
        return lambda: _used(cv.Study.from_dict(document))
    if kind < 0.75:
        path = folder / "study.toml"
        _write(path, _broken(rng, trials.STUDY.to_toml()))
        return lambda: _used(cv.Study.from_toml(path))
    return _federated(rng, folder)


def _broken(rng: random.Random, whole: str) -> str:
    if rng.random() < 0.15:
        at = rng.choice((0, len(whole)))
        return whole[:at] + rng.choice(_LONG) + whole[at:]
    return nasty.broken_text(rng, whole)


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def _used(study: Any) -> Answer:
    """Return the texts of a study that was read; written and read again it is the same."""
    again = cv.Study.from_dict(study.to_dict())
    if again != study or again.fingerprint() != study.fingerprint():
        raise BrokenRuleError("a study that is not read back as it was written")
    return Answer([str(study), *study.public_facts(Unit.RECORD)])


def _federated(rng: random.Random, folder: Path) -> Attempt:
    from counterveil.data.study_documents import to_toml
    from counterveil.federation.site_files import SiteFile
    from counterveil.federation.study_files import StudyFolder

    home = folder / "federated"
    home.mkdir(exist_ok=True)
    _write(home / "declaration.toml", trials.STUDY.to_toml())
    facts, name = rng.choice(((_SITE, "site.toml"), (_CENTRE, "study.toml")))
    _write(home / name, _broken(rng, to_toml(facts)))

    def attempt() -> Answer:
        if name == "site.toml":
            return Answer([str(SiteFile.read(home).to_document())])
        return Answer([str(StudyFolder(home).study)])

    return attempt
