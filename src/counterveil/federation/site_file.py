"""A site's own folder: its settings, and where its ledger, keys and answers lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterveil.federation.names import check_address, check_name
from counterveil.federation.policy import Policy
from counterveil.federation.toml_files import Settings, read_settings
from counterveil.federation.writing import check_private

FILE = "site.toml"
_DATABASES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class SiteFile:
    """The settings of one site; relative paths start at its folder."""

    folder: Path
    name: str
    data: str
    table: str | None
    ledger: str
    dataset: str
    coordinator: str
    policy: Policy

    @classmethod
    def read(cls, folder: Path) -> SiteFile:
        """Return the settings in a site's folder, or raise CV-P600; CV-F045 where others can open it."""
        check_private(folder, folder / FILE, folder / "keys")
        table = Settings("the site's file", read_settings(folder / FILE, "the site's file"))
        table.known("name", "data", "table", "ledger", "dataset", "coordinator", "policy")
        return cls(
            folder=folder,
            name=check_name(table.get("name", str)),
            data=_place(folder, table.get("data", str)),
            table=table.get("table", str, "") or None,
            ledger=_place(folder, table.get("ledger", str, "ledger.db")),
            dataset=table.get("dataset", str, "records"),
            coordinator=check_address(table.get("coordinator", str)),
            policy=Policy.from_document(table.get("policy", dict)),
        )

    def to_document(self) -> dict[str, Any]:
        """Return the settings as the tables of a TOML file."""
        facts: dict[str, Any] = {
            "name": self.name,
            "data": self.data,
            "ledger": self.ledger,
            "dataset": self.dataset,
            "coordinator": self.coordinator,
        }
        facts |= {"table": self.table} if self.table else {}
        return facts | {"policy": self.policy.to_document()}

    @property
    def declaration(self) -> Path:
        """The site's own declaration of roles, bounds and categories."""
        return self.folder / "declaration.toml"

    @property
    def answers(self) -> Path:
        """Where answers and waiting requests are kept."""
        return self.folder / "answers"

    @property
    def keys(self) -> Path:
        """Where the node's key, the coordinator's certificate and the local certificates are kept."""
        return self.folder / "keys"


def _place(folder: Path, place: str) -> str:
    return place if place.startswith(_DATABASES) else str(folder / place)
