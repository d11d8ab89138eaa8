"""New folders: a site's with its keys and ledger, a study's with its certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from counterveil.accounting import open_ledger
from counterveil.data import Study
from counterveil.data.study_documents import to_toml
from counterveil.errors import refusal
from counterveil.federation import files, keys
from counterveil.federation import site_files as site_file
from counterveil.federation import study_files as study_file
from counterveil.federation.files import check_private, host_of, private_folder, write_whole
from counterveil.federation.site import checked_arguments
from counterveil.federation.site_files import SiteFile
from counterveil.federation.study_files import StudyFile
from counterveil.privacy import Budget


def make_site(
    folder: Path, document: dict[str, Any], study: Study, authority: Path, budget: Budget
) -> SiteFile:
    """Return a new site: its file, declaration, keys, and a ledger with the total budget of its people."""
    _new(folder / site_file.FILE)
    check_private(private_folder(folder))
    write_whole(folder / site_file.FILE, to_toml(document))
    try:
        file = SiteFile.read(folder)
        write_whole(file.declaration, study.to_toml())
        certificate = _read(authority)
    except BaseException:
        (folder / site_file.FILE).unlink()
        raise
    write_whole(file.keys / keys.AUTHORITY, certificate)
    keys.make_server_keys(file.keys, (), "counterveil node", keys.AUTHORITY_OF_NODE)
    keys.make_node_key(file.keys)
    keys.make_secret(file.keys / keys.SECRET)
    with open_ledger(file.ledger, create=True) as ledger:
        if file.dataset not in {account.dataset for account in ledger.datasets()}:
            ledger.register(file.dataset, budget, access_policy=file.policy.access_policy(study))
    return file


def make_study(
    folder: Path, document: dict[str, Any], study: Study, public_keys: dict[str, Path]
) -> StudyFile:
    """Return a new study: its file, declaration, certificates, and the keys of sites that are known already."""
    _new(folder / study_file.FILE)
    made = StudyFile.from_document(document, study.to_dict())
    # What all sites would refuse is not asked.
    checked_arguments(study, made.ask)
    for path in public_keys.values():
        keys.read_public_key(path)
    check_private(private_folder(folder))
    keys.make_server_keys(folder / "keys", (host_of(made.address),), "counterveil coordinator")
    keys.make_secret(folder / "keys" / keys.TOKEN)
    keys.make_secret(folder / "keys" / keys.SECRET)
    private_folder(folder / "sites")
    for site, path in public_keys.items():
        write_whole(folder / "sites" / f"{site}.pub", path.read_bytes())
    write_whole(folder / study_file.DECLARATION, study.to_toml())
    write_whole(folder / study_file.FILE, to_toml(document))
    return made


def change_aggregation(folder: Path, aggregation: str, colluding: int) -> None:
    """Change what becomes of the answers of a study's sites; CV-F024 once a site was asked."""
    for asked in sorted((folder / "requests").glob("*.json")):
        raise refusal("CV-F024", site=asked.stem)
    document, declaration = (
        dict(files.read_settings(folder / name, name)) for name in (study_file.FILE, study_file.DECLARATION)
    )
    document |= {"aggregation": aggregation, "colluding": colluding}
    StudyFile.from_document(document, declaration)
    write_whole(folder / study_file.FILE, to_toml(document))


def _new(path: Path) -> None:
    if path.exists():
        raise refusal("CV-P604", name=path.name, parent=path.parent.name)


def _read(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError:
        content = b""
    if b"BEGIN CERTIFICATE" in content:
        return content
    raise refusal("CV-P606", got=repr(path.name))
