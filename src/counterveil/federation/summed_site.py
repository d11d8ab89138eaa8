"""A site's part in a sum: whether it takes part, its masked part of each release, and the answer at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from counterveil.federation import keys
from counterveil.federation import messages as refusals
from counterveil.federation.files import read_json, write_json
from counterveil.federation.masking import (
    KeySeal,
    Member,
    Step,
    masked,
    new_key,
    public_key,
    signature_of,
)
from counterveil.federation.messages import RefusedError, SiteRequest
from counterveil.federation.site_files import SiteFile, key_of
from counterveil.session.summing import NextPart, Summation, SummingSession

PEERS = "peers"


def offer(file: SiteFile, request: SiteRequest, rows: int) -> dict[str, Any]:
    """Return the site's key for a sum and its rows, signed; the same each time."""
    kept = _kept(file, request)
    if kept is None:
        private = new_key()
        member = Member(request.site, request.request_id, public_key(private), rows)
        signed = signature_of(member, request.study_id, file.keys / keys.NODE_KEY)
        kept = {"fingerprint": request.fingerprint(), "private": private, "members": ""}
        kept |= {"key": member.key, "rows": rows, "signature": signed}
        write_json(_path(file, request), kept)
    return {"summed": {name: kept[name] for name in ("key", "rows", "signature")}}


def check_members(file: SiteFile, request: SiteRequest, step: Step) -> str:
    """Return the site's private key if it knows every member, and masks for these members alone; else refuse."""
    kept = _kept(file, request)
    sites = [member.site for member in step.members]
    if kept is None or len({*sites}) != len(sites) or not step.colluding < len(sites):
        raise RefusedError(refusals.OTHER_SUM)
    own = Member(request.site, request.request_id, kept["key"], kept["rows"], kept["signature"])
    for member in step.members:
        peer = file.folder / PEERS / f"{member.site}.pub"
        if member != own and (member.site == own.site or not member.is_signed(request.study_id, peer)):
            raise RefusedError(refusals.OTHER_SUM)
    agreed = replace(step, totals={}).context(request).hex()
    if own not in step.members or kept["members"] not in ("", agreed):
        raise RefusedError(refusals.OTHER_SUM)
    write_json(_path(file, request), kept | {"members": agreed})
    return str(kept["private"])


def opened(request: SiteRequest, step: Step, private: str) -> Callable[..., SummingSession]:
    """Return what opens the site's rows as a part of all rows; rows that changed since the offer are refused."""
    place = [member.site for member in step.members].index(request.site)
    own = step.members[place]
    farther = step.farthest(request.ask.epsilon)
    known = Summation(len(step.members), step.colluding, step.rows, step.totals, farther, place)

    def open_session(*args: Any, **named: Any) -> SummingSession:
        session = SummingSession(*args, known=known, seal=KeySeal(private), **named)
        if session.part_rows != own.rows:
            session.close()
            raise RefusedError(refusals.LOST)
        return session

    return open_session


def part_of(request: SiteRequest, step: Step, private: str, next_part: NextPart) -> dict[str, Any]:
    """Return the masked part of the release that a sum is waiting for."""
    context = step.context(request)
    # Masks cancel among those who drew the same release with the same noise.
    agreed = json.dumps((next_part.name, len(next_part.steps), next_part.bound)).encode()
    hidden = masked(next_part.steps, private, request.site, step.members, context + agreed)
    said = {"name": next_part.name, "numbers": [f"{one:x}" for one in hidden]}
    return {"summed": said | {"bound": f"{next_part.bound:x}", "context": context.hex()}}


def fits(request: SiteRequest, step: Step | None) -> bool:
    """Return whether a question names summed noise where it adds up and is one of a sum, and nowhere else."""
    if step is None:
        return not request.ask.summed
    return request.ask.summed and request.ask.adds_up


def forget(file: SiteFile, request: SiteRequest) -> None:
    """Remove the site's key for a sum whose answer is kept: whoever gets it later could unmask what was sent."""
    _path(file, request).unlink(missing_ok=True)


def _path(file: SiteFile, request: SiteRequest) -> Path:
    return file.answers / "summed" / f"{key_of(request)}.json"


def _kept(file: SiteFile, request: SiteRequest) -> dict[str, Any] | None:
    kept = read_json(_path(file, request), "fingerprint", "private", "members", "key", "rows", "signature")
    if kept is not None and kept["fingerprint"] != request.fingerprint():
        raise RefusedError(refusals.OTHER_QUESTION)
    return kept
