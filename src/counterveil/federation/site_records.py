"""What a site remembers of requests: answers that were given, and questions that wait for the steward."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterveil.errors import ParameterError
from counterveil.federation import refusals
from counterveil.federation.messages import Request
from counterveil.federation.writing import read_json, write_json

PENDING, APPROVED, REJECTED = "waiting", "approved", "declined"
# A coordinator cannot fill the disk with questions that nobody answers.
_MOST_WAITING = 1000


@dataclass(frozen=True, slots=True)
class Waiting:
    """A question that needs, or had, the steward's decision."""

    key: str
    state: str
    request: dict[str, Any]


class SiteRecords:
    """The folder `answers` of a site; requests are answered while `locked` is held."""

    def __init__(self, folder: Path) -> None:
        self._answers = folder
        self._waiting = folder / "waiting"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the site's only turn, so that a retry waits for the first answer instead of racing it."""
        self._waiting.mkdir(parents=True, exist_ok=True)
        with (self._answers / "lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def answered(self, request: Request) -> dict[str, Any] | None:
        """Return the result this very request got before; the id of another question is refused."""
        kept = read_json(self._answers / f"{key_of(request)}.json", "fingerprint", "result")
        if kept is None:
            return None
        if kept["fingerprint"] != request.fingerprint():
            raise refusals.RefusedError(refusals.OTHER_QUESTION)
        result: dict[str, Any] = kept["result"]
        return result

    def keep(self, request: Request, result: dict[str, Any]) -> None:
        """Keep an answer before it leaves; None is returned."""
        facts = {"fingerprint": request.fingerprint(), "result": result}
        write_json(self._answers / f"{key_of(request)}.json", facts)

    def decision(self, request: Request) -> str:
        """Return what the steward decided on a request, putting it on the list where it is new."""
        path = self._waiting / f"{key_of(request)}.json"
        kept = read_json(path, "state", "fingerprint")
        if kept is None:
            if sum(1 for _ in self._waiting.glob("*.json")) >= _MOST_WAITING:
                raise refusals.RefusedError(refusals.FAILED)
            facts = {
                "study_id": request.study_id,
                "request_id": request.request_id,
                "question": request.ask.to_document(),
            }
            write_json(path, {"state": PENDING, "fingerprint": request.fingerprint(), "request": facts})
            return PENDING
        if kept["fingerprint"] != request.fingerprint():
            raise refusals.RefusedError(refusals.OTHER_QUESTION)
        return str(kept["state"])

    def waiting(self) -> list[Waiting]:
        """Return all questions that were put to the steward, in the order of their keys."""
        paths = sorted(self._waiting.glob("*.json"))
        found = [(path.stem, read_json(path, "state", "request")) for path in paths]
        return [Waiting(key, str(kept["state"]), dict(kept["request"])) for key, kept in found if kept]

    def decide(self, key: str, state: str) -> Waiting:
        """Write down the steward's decision and return it; an unknown key raises CV-P605."""
        known = {each.key: each for each in self.waiting()}
        if key not in known:
            raise ParameterError(
                "CV-P605",
                "no such request waits here",
                expected=f"one of {', '.join(known) or 'none: nothing waits'}",
                got=repr(key),
                fix="`counterveil site approve FOLDER` without a request lists them",
            )
        path = self._waiting / f"{key}.json"
        write_json(path, (read_json(path) or {}) | {"state": state})
        return Waiting(key, state, known[key].request)


def key_of(request: Request) -> str:
    """Return the name under which a request is kept; neither id can hold the sign between them."""
    return f"{request.study_id}@{request.request_id}"
