"""The folder that a console works in: its ledgers, data, studies and sites, read anew for every page."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from counterveil.accounting import Account, Ledger, open_ledger
from counterveil.bounded_reading import UnreadableError, parse_toml, read_text, read_toml
from counterveil.data import Study, open_table
from counterveil.data.sources.dispatch import columns_of
from counterveil.data.study_documents import named_study, names_in
from counterveil.errors import CounterveilError, LedgerError, StudyError, masked, refusal, unforeseen
from counterveil.federation.files import write_whole

FILE = "console.toml"
# Stands between a file and one of the studies in it, where TOML has a table for each.
SEVERAL, _SEVERAL = "~", "[study."
STUDIES, PROPOSED, LEDGER = "studies", "proposed", "ledger.db"
LONGEST_STUDY = 1_000_000
# An analyst's: some thousand columns.
LONGEST_PROPOSAL = 200_000
_KEYS = ("ledgers", "data", "federation")
_DATA = (".csv", ".parquet")
CODEBOOKS = "codebooks"
_CODEBOOKS = (".csv", ".tsv", ".json", ".sav", ".dta", ".por", ".xpt")
# Headings that tell a codebook in the folder from rows: the names of columns, and what is said of them.
_DESCRIBED = {"name", "variable", "column", "field_name", "variable_/_field_name"}
_DESCRIBING = {"kind", "role", "type", "field_type"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")
# A folder with more files than this is not one that somebody made for a console.
_MOST_FILES = 500


@dataclass(frozen=True, slots=True)
class LedgerPlace:
    """A ledger of the folder: a short key for addresses, a name for people, and where it is."""

    key: str
    name: str
    place: str


@dataclass(frozen=True, slots=True)
class RowsPlace:
    """Rows: a name for people, and where they are."""

    name: str
    place: str
    table: str | None = None

    def open(self) -> Any:
        """Return the source as questions take it."""
        return open_table(self.place, self.table)


@dataclass(frozen=True, slots=True)
class DataSet:
    """An account of a ledger and the rows that belong to it, None where the folder has none."""

    key: str
    ledger: LedgerPlace
    account: Account
    source: RowsPlace | None


_Made = TypeVar("_Made")


class KeptReadings(Generic[_Made]):
    """What was made of texts, by their digests: a list does not read every text again on every page."""

    def __init__(self, most: int = 1_000) -> None:
        self._most = most
        self._made: dict[str, _Made] = {}

    def of(self, text: str, make: Callable[[], _Made]) -> _Made:
        """Return what is made of a text, now or before."""
        key = _digest(text)
        if key in self._made:
            return self._made[key]
        made = make()
        if len(self._made) >= self._most:
            self._made = {}
        self._made[key] = made
        return made


@dataclass(frozen=True, slots=True)
class StudyText:
    """A study file: its name, its text, and whether an analyst proposed it."""

    name: str
    text: str
    proposed: bool = False

    @property
    def digest(self) -> str:
        """What tells this text from another one."""
        return _digest(self.text)

    @property
    def file(self) -> str:
        """The name of the file, without that of one of its studies."""
        return self.name.partition(SEVERAL)[0]

    def study(self) -> Study:
        """Return the study, or raise its refusal."""
        return Study.from_dict(self.document())

    def document(self) -> dict[str, Any]:
        """Return the declarations, or raise CV-S014 or CV-S125."""
        try:
            return named_study(parse_toml(self.text), self.name.partition(SEVERAL)[2] or None)
        except UnreadableError as error:
            raise refusal("CV-S014", name=self.name, error=error) from None


_Keyed = TypeVar("_Keyed", LedgerPlace, DataSet)


class Workspace:
    """A folder with ledgers, data, studies and sites; nothing of it is kept between two pages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not folder.is_dir():
            raise refusal("CV-W009", expected="a folder that exists", got=str(folder))
        self._settings()

    def _settings(self) -> dict[str, Any]:
        """Return what `console.toml` says, nothing where there is none, or raise CV-W009."""
        path = self.folder / FILE
        if not path.exists():
            return {}
        try:
            found = read_toml(path)
        except UnreadableError as error:
            raise refusal("CV-W009", expected=f"{FILE}: TOML in UTF-8", got=str(error)) from None
        strange = next((key for key in found if key not in _KEYS), None)
        if strange is not None:
            raise refusal("CV-W009", expected=f"{FILE}: only the keys {', '.join(_KEYS)}", got=repr(strange))
        for key, kind in zip(_KEYS, (list, dict, list), strict=True):
            value: Any = found.get(key, kind())
            inner: Any = value.values() if isinstance(value, dict) else value
            right = isinstance(value, kind)
            if not right or not all(isinstance(each, str) for each in inner):
                raise refusal("CV-W009", expected=f"{FILE}: {key} with texts", got="another value")
        return found

    def _absolute(self, place: str) -> str:
        return place if "://" in place else str(self.folder / place)

    # Ledgers and the data sets in them.

    def ledgers(self) -> list[LedgerPlace]:
        """Return the ledgers of the folder."""
        named = self._settings().get("ledgers")
        names = named if named is not None else [path.name for path in _files(self.folder, (".db",))]
        return [LedgerPlace(_key(name), masked(name), self._absolute(name)) for name in names]

    def ledger(self, key: str) -> LedgerPlace:
        """Return a ledger by its key."""
        return _found(self.ledgers(), key, "a ledger of this folder")

    @contextmanager
    def opened(self, place: LedgerPlace, *, inspect: bool = True) -> Iterator[Ledger]:
        """Hold a ledger open; for reading only unless something is to be written."""
        with open_ledger(place.place, inspect=inspect) as book:
            yield book

    def new_ledger(self) -> LedgerPlace:
        """Return where a data set is registered if the folder has no ledger yet."""
        known = self.ledgers()
        return known[0] if known else LedgerPlace(_key(LEDGER), LEDGER, str(self.folder / LEDGER))

    def datasets(self) -> tuple[list[DataSet], list[tuple[LedgerPlace, LedgerError]]]:
        """Return the data sets of all ledgers, and the ledgers that cannot be read."""
        accounts: list[tuple[LedgerPlace, Account]] = []
        problems: list[tuple[LedgerPlace, LedgerError]] = []
        for place in self.ledgers():
            try:
                with self.opened(place) as book:
                    accounts += [(place, account) for account in book.datasets()]
            except LedgerError as error:
                problems.append((place, error))
        sources = self.sources()
        # One account and one file: they belong together, as on the command line.
        only = next(iter(sources.values())) if len(sources) == len(accounts) == 1 else None
        found = [
            DataSet(_key(place.name, account.dataset), place, account, sources.get(account.dataset) or only)
            for place, account in accounts
        ]
        return found, problems

    def dataset(self, key: str) -> DataSet:
        """Return a data set by its key."""
        return _found(self.datasets()[0], key, "a data set of this folder")

    def sources(self) -> dict[str, RowsPlace]:
        """Return the rows in the folder by the name of their account: as `console.toml` says, or as files are named."""
        named = self._settings().get("data")
        if named is not None:
            split = {name: place.partition("#") for name, place in named.items()}
            return {
                name: RowsPlace(masked(place), self._absolute(place), table or None)
                for name, (place, _, table) in split.items()
            }
        files = [*_files(self.folder, _DATA), *_files(self.folder / "data", _DATA)]
        found = {path.stem: RowsPlace(str(path.relative_to(self.folder)), str(path)) for path in files}
        return {name: source for name, source in found.items() if not self._is_codebook(source)}

    def loose(self) -> dict[str, RowsPlace]:
        """Return the rows in the folder that have no account."""
        named = {each.source.place for each in self.datasets()[0] if each.source is not None}
        return {name: source for name, source in self.sources().items() if source.place not in named}

    def columns(self, source: RowsPlace) -> frozenset[str] | None:
        """Return the names of the columns of a file, none of one that cannot be read, None for rows elsewhere."""
        found = self._header(source)
        return frozenset() if isinstance(found, CounterveilError) else found

    def fault(self, source: RowsPlace) -> CounterveilError | None:
        """Return why the columns of a file cannot be read, None where they can or the rows lie elsewhere."""
        found = self._header(source)
        return found if isinstance(found, CounterveilError) else None

    def _header(self, source: RowsPlace) -> frozenset[str] | CounterveilError | None:
        try:
            stat = Path(source.place).stat()
        except OSError:
            return None
        if source.table is not None or not source.place.endswith(_DATA):
            return None
        # Of the status too, which a change of permissions changes.
        key = f"{source.place}\n{stat.st_mtime_ns}\n{stat.st_ctime_ns}\n{stat.st_size}"
        return _HEADERS.of(key, partial(_header_of, source))

    def _is_codebook(self, source: RowsPlace) -> bool:
        """Return whether the header of a file is that of a codebook."""
        names = {name.lower().replace(" ", "_") for name in self.columns(source) or ()}
        return not names.isdisjoint(_DESCRIBED) and not names.isdisjoint(_DESCRIBING)

    # Studies: files that people write, here or elsewhere.

    def studies(self, proposed: bool = False) -> list[str]:
        """Return the names of the studies, or of those that analysts proposed."""
        files = _files(self._studies(proposed), (".toml",))
        if not proposed:
            files += [path for path in _files(self.folder, (".toml",)) if _is_study(path)]
        found = {name for path in files if _NAME.fullmatch(path.stem) for name in _names(path)}
        return sorted(found)

    def study(self, name: str, proposed: bool = False) -> StudyText:
        """Return a study file, or raise CV-W007."""
        path = self._study_path(name, proposed)
        try:
            return StudyText(name, read_text(path, LONGEST_STUDY), proposed)
        except UnreadableError as error:
            raise refusal("CV-W007", expected="a study of this folder", got=f"{name}: {error}") from None

    def save_study(self, name: str, text: str, before: str, proposed: bool = False) -> StudyText:
        """Write a study file and return it; `before` is the digest of the text that was edited, "" for a new one."""
        path = self._study_path(name, proposed)
        now = self.study(name, proposed).digest if path.exists() else ""
        if now != before:
            raise refusal("CV-W008", what=f"the study {name}")
        write_whole(path, text)
        return StudyText(name, text, proposed)

    def accepted(self, name: str) -> StudyText | None:
        """Return the accepted study that a proposed one of this name would replace, None where there is none."""
        return self.study(name) if self._study_path(name, False).exists() else None

    def accept(self, name: str, digest: str, replaces: str) -> None:
        """Put a proposed study among those that may be asked.

        `digest` is that of the text that was looked at, `replaces` that of the accepted one it was compared with, ""
        for none.
        """
        offered, before = self.study(name, proposed=True), self.accepted(name)
        if offered.digest != digest:
            raise refusal("CV-W008", what=f"the proposed study {name}")
        if ("" if before is None else before.digest) != replaces:
            raise refusal("CV-W008", what=f"the accepted study {name}")
        write_whole(self._study_path(name, False), offered.text)
        self._study_path(name, True).unlink(missing_ok=True)

    def _studies(self, proposed: bool) -> Path:
        return self.folder / STUDIES / PROPOSED if proposed else self.folder / STUDIES

    def _study_path(self, name: str, proposed: bool) -> Path:
        file, sign, part = name.partition(SEVERAL)
        if not all(_NAME.fullmatch(word) for word in ([file, part] if sign else [file])):
            raise refusal("CV-W010", name=name)
        inside, beside = self._studies(proposed) / f"{file}.toml", self.folder / f"{file}.toml"
        return beside if not proposed and not inside.exists() and _is_study(beside) else inside

    def codebooks(self, everywhere: bool) -> list[str]:
        """Return the files of `codebooks/` and, if wanted, others in the folder that may describe columns."""
        rows = {each.source.place for each in self.datasets()[0] if each.source is not None}
        found = _files(self.folder / CODEBOOKS, _CODEBOOKS)
        beside = _files(self.folder, _CODEBOOKS) if everywhere else []
        found += [
            path
            for path in beside
            if path.suffix not in _DATA or self._is_codebook(RowsPlace(path.name, str(path)))
        ]
        return [str(path.relative_to(self.folder)) for path in found if str(path) not in rows]

    # Federation.

    def federation(self, file: str) -> list[Path]:
        """Return the folders of the federation that hold a file: those of sites, or those of studies."""
        named = self._settings().get("federation")
        if named is not None:
            folders = [Path(self._absolute(place)) for place in named]
        else:
            above = (self.folder, self.folder / "federation", self.folder / "sites")
            folders = [
                path for each in above if each.is_dir() for path in sorted(each.iterdir())[:_MOST_FILES]
            ]
        return [path for path in folders if (path / file).is_file()]


def _files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    """Return the files of a folder with one of these endings, in order."""
    if not folder.is_dir():
        return []
    found = sorted(path for path in folder.iterdir() if path.suffix in endings and path.is_file())
    return [path for path in found if not path.name.startswith(".") and path.name != FILE][:_MOST_FILES]


def _is_study(path: Path) -> bool:
    """Return whether a TOML file declares a treatment; a folder holds access policies and others too."""
    try:
        return path.is_file() and not {"treatment", "study"}.isdisjoint(read_toml(path))
    except UnreadableError:
        return False


def _names(path: Path) -> list[str]:
    """Return the names of the studies in a file; one that cannot be read is listed, so that it can be mended."""
    try:
        text = read_text(path, LONGEST_STUDY)
        # Lists are made on many pages: a file is parsed only if it may hold several studies.
        parts = _PARTS.of(text, lambda: _parts_of(text)) if _SEVERAL in text else ()
    except UnreadableError:
        parts = ()
    named = [f"{path.stem}{SEVERAL}{part}" for part in parts if _NAME.fullmatch(part)]
    return named or [path.stem]


_PARTS: KeptReadings[tuple[str, ...]] = KeptReadings()
_HEADERS: KeptReadings[frozenset[str] | CounterveilError] = KeptReadings()


def _header_of(source: RowsPlace) -> frozenset[str] | CounterveilError:
    """Return the names of the columns of a file, or why they cannot be read: one bad file is not all of them."""
    try:
        return frozenset(columns_of(source.open()))
    except Exception as fault:
        return fault if isinstance(fault, CounterveilError) else unforeseen(fault)


def _parts_of(text: str) -> tuple[str, ...]:
    try:
        return tuple(names_in(parse_toml(text)))
    except (UnreadableError, StudyError):
        return ()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _key(*names: str) -> str:
    """Return a short text for addresses that stands for names of any kind."""
    return hashlib.sha256("\n".join(names).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _found(listed: list[_Keyed], key: str, what: str) -> _Keyed:
    for each in listed:
        if each.key == key:
            return each
    raise refusal("CV-W007", expected=what, got="an address that names none")
