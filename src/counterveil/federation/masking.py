"""Masks that cancel in the sum over sites, and the messages of a sum. Proof: masking.proof.md."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from counterveil.bounded_reading import Fields, UnreadableError, parse_message
from counterveil.errors import CounterveilError, refusal
from counterveil.federation.files import check_name
from counterveil.federation.keys import read_public_key
from counterveil.federation.messages import MOST_SITES, VERSION, SiteRequest

try:
    from cryptography.exceptions import InvalidSignature, InvalidTag
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, x25519
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ImportError:
    raise refusal("CV-E060", package="cryptography") from None

_BYTES = 16
MODULUS = 1 << (8 * _BYTES)
_KEY, _SIGNATURE = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{2,300}")
_NUMBER, _NAME = re.compile(r"-?[0-9a-f]{1,32}"), re.compile(r"[a-z0-9_ ]{1,40}")
_BLOCK = 256
# Noise of the least part of a budget exceeds this many of its scales once in 1e26 sums.
_FAR, _PARTS = 60, 50
_MOST_ROWS, _MOST_SUMS, _MOST_NUMBERS, _LONGEST = 10**12, 50, 20_000, 4_000_000


@dataclass(frozen=True, slots=True)
class Member:
    """A site that takes part in a sum: its request, its key for this sum, its rows, and its node's signature."""

    site: str
    request_id: str
    key: str
    rows: int
    signature: str = ""

    @classmethod
    def read(cls, value: object) -> Member:
        """Return the member in a field of a message."""
        facts = Fields.of("a member", value, tuple(cls.__dataclass_fields__))
        try:
            site = check_name(facts.text("site", 40))
        except CounterveilError:
            raise facts.wrong("site") from None
        return cls(
            site,
            facts.text("request_id", 64),
            facts.text("key", pattern=_KEY),
            facts.whole("rows", 1, _MOST_ROWS),
            facts.text("signature", 300, _SIGNATURE),
        )

    def signed(self, study_id: str) -> bytes:
        """Return what the node signs."""
        said = ("counterveil sum", VERSION, study_id, self.site, self.request_id, self.key, self.rows)
        return json.dumps(said).encode()

    def is_signed(self, study_id: str, public_key: Path) -> bool:
        """Return whether the node with this public key signed."""
        try:
            key = read_public_key(public_key)
            key.verify(bytes.fromhex(self.signature), self.signed(study_id), ec.ECDSA(hashes.SHA384()))
        except (InvalidSignature, CounterveilError, ValueError):
            return False
        return True


def signature_of(member: Member, study_id: str, node_key: Path) -> str:
    """Return the node's signature of a member, as digits."""
    key = serialization.load_ssh_private_key(node_key.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    signature: bytes = key.sign(member.signed(study_id), ec.ECDSA(hashes.SHA384()))
    return signature.hex()


@dataclass(frozen=True, slots=True)
class Step:
    """Where a sum stands: who takes part, how many of them may collude, and the sums known so far in grid steps.

    Without members it asks a site whether it will take part, and for its key.
    """

    members: tuple[Member, ...] = ()
    colluding: int = 1
    totals: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, value: object) -> Step:
        """Return the step in a document."""
        facts = Fields.of("a step", value, tuple(cls.__dataclass_fields__))
        members = facts.values["members"]
        totals = facts.table("totals")
        if not isinstance(members, list) or len(members) > MOST_SITES or len(totals) > _MOST_SUMS:
            raise facts.wrong("members")
        return cls(
            tuple(map(Member.read, members)),
            facts.whole("colluding", 1, MOST_SITES),
            {name: read_numbers(totals, name) for name in totals},
        )

    def to_document(self) -> dict[str, Any]:
        """Return the step as JSON-ready facts."""
        totals = {name: [f"{one:x}" for one in numbers] for name, numbers in self.totals.items()}
        return {"members": [asdict(one) for one in self.members], "colluding": self.colluding} | {
            "totals": totals
        }

    @property
    def rows(self) -> int:
        """How many rows all members have."""
        return sum(member.rows for member in self.members)

    def farthest(self, epsilon: str) -> int:
        """Return how far a sum can be from zero, in sensitivities: a row adds at most one, and noise rarely more."""
        return self.rows + int(_FAR * _PARTS * len(self.members) / Fraction(epsilon)) + 1

    def context(self, request: SiteRequest) -> bytes:
        """Return a hash of everything that members must agree on; masks made for two contexts do not cancel."""
        said = (VERSION, request.study_id, request.declaration, request.ask.to_document(), self.to_document())
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).digest()


def read_numbers(table: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """Return whole numbers that are written to the base 16 under a name of a table."""
    if not _NAME.fullmatch(name):
        raise UnreadableError("a sum: the name is invalid")
    texts = Fields("a sum", table).texts(name, _MOST_NUMBERS, 40)
    if not all(_NUMBER.fullmatch(text) for text in texts):
        raise UnreadableError("a sum: the numbers are invalid")
    return tuple(int(text, 16) for text in texts)


def sum_request(question: SiteRequest, step: Step) -> str:
    """Return a question to a site, and where the sum over sites stands, as they travel."""
    said = {"version": VERSION, "question": question.to_text(), "step": step.to_document()}
    return json.dumps(said)


def read_request(text: str) -> tuple[SiteRequest, Step | None]:
    """Return a request, with the step where it is one of a sum; anything else raises CV-F001."""
    try:
        return SiteRequest.from_text(text), None
    except CounterveilError as plain:
        try:
            facts = Fields.of(
                "a message", parse_message(text, longest=_LONGEST), ("version", "question", "step")
            )
            facts.whole("version", VERSION, VERSION)
            return SiteRequest.from_text(facts.text("question", _LONGEST)), Step.read(facts.table("step"))
        except UnreadableError:
            raise plain from None


def new_key() -> str:
    """Return a new private key, as digits."""
    key: bytes = x25519.X25519PrivateKey.generate().private_bytes_raw()
    return key.hex()


def public_key(private: str) -> str:
    """Return the public half of a private key, as digits."""
    key: bytes = _private(private).public_key().public_bytes_raw()
    return key.hex()


def masked(
    numbers: Sequence[int], private: str, own: str, members: Iterable[Member], context: bytes
) -> list[int]:
    """Return numbers plus the masks that this site shares with every other member, modulo 2**128.

    Of two members the one whose name is first adds their mask, the other takes it off.
    """
    found = list(numbers)
    for member in members:
        if member.site != own:
            mask = _mask(private, member.key, context, len(found))
            sign = 1 if own < member.site else -1
            found = [one + sign * other for one, other in zip(found, mask, strict=True)]
    return [one % MODULUS for one in found]


def total_of(parts: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """Return the sums of masked numbers as signed numbers around zero; all masks must be in them."""
    sums = [sum(column) % MODULUS for column in zip(*parts, strict=True)]
    return tuple(one - MODULUS if one >= MODULUS // 2 else one for one in sums)


class KeySeal:
    """Hides a site's own numbers in its ledger, by a key that its private key for the sum gives."""

    def __init__(self, private: str) -> None:
        key = HKDF(hashes.SHA256(), 64, salt=None, info=b"counterveil part").derive(bytes.fromhex(private))
        self._cipher = AESSIV(key)

    def close(self, name: str, numbers: Sequence[str]) -> str:
        """Return a sealed text; its length tells how many numbers there are and nothing of them."""
        width = _BLOCK * -(-max(map(len, numbers)) // _BLOCK)
        text = "".join(number.ljust(width) for number in numbers)
        sealed: bytes = self._cipher.encrypt(text.encode(), [name.encode()])
        return f"{width} {sealed.hex()}"

    def open(self, name: str, text: str) -> list[str]:
        """Return the numbers; a text that was not sealed with this key raises CV-F500."""
        width, sealed = text.split()
        wide = int(width)
        try:
            found = self._cipher.decrypt(bytes.fromhex(sealed), [name.encode()]).decode()
        except InvalidTag:
            raise refusal(
                "CV-F500", expected="the key that the site made for this sum", got="another"
            ) from None
        return [found[start : start + wide].rstrip() for start in range(0, len(found), wide)]


def _mask(private: str, public: str, context: bytes, count: int) -> list[int]:
    """Return the stream that two keys share in a context, as whole numbers below 2**128."""
    shared = _private(private).exchange(x25519.X25519PublicKey.from_public_bytes(bytes.fromhex(public)))
    key = HKDF(hashes.SHA256(), 32, salt=None, info=b"counterveil sum" + context).derive(shared)
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), None).encryptor().update(bytes(_BYTES * count))
    return [int.from_bytes(stream[i : i + _BYTES], "little") for i in range(0, len(stream), _BYTES)]


def _private(digits: str) -> x25519.X25519PrivateKey:
    return x25519.X25519PrivateKey.from_private_bytes(bytes.fromhex(digits))
