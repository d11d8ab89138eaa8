"""E16: the coordinator's folder was readable by everyone and held a live token; the API described itself to all."""

import os
import stat

import pytest

from counterveil.errors import CounterveilError
from counterveil.federation.site import check_site
from counterveil.federation.study_files import StudyFolder


def open_to_others(folder):
    paths = [folder, *folder.rglob("*")]
    return [path.name for path in paths if stat.S_IMODE(path.stat().st_mode) & 0o077]


@pytest.fixture
def permissive():
    before = os.umask(0)
    yield
    os.umask(before)


def test_nothing_in_the_folders_can_be_opened_by_others(permissive, world):
    world.run()
    assert open_to_others(world.path / "study") == []
    assert [name for name in open_to_others(world.path / "North") if not name.startswith("ledger")] == []


@pytest.mark.parametrize("name", ["", "keys", "keys/token", "keys/secret", "keys/server.key"])
def test_a_study_whose_secrets_are_open_is_not_run(world, name):
    (world.path / "study" / name).chmod(0o755)
    with pytest.raises(CounterveilError, match="CV-F045"):
        StudyFolder(world.path / "study")


@pytest.mark.parametrize("name", ["", "keys", "keys/node", "keys/secret", "site.toml"])
def test_a_site_whose_secrets_are_open_does_not_run(world, name):
    (world.path / "North" / name).chmod(0o744)
    with pytest.raises(CounterveilError, match="CV-F045"):
        check_site(world.path / "North")


def test_the_api_does_not_describe_itself():
    pytest.importorskip("flwr", reason="needs the extra [federation]")
    from counterveil.federation.engines.flower import child

    made = child._without_pages(dict, title="SuperLink API", docs_url="/docs")
    assert made == {"title": "SuperLink API", "docs_url": None, "redoc_url": None, "openapi_url": None}
