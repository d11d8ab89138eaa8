"""The picture of the folders shows what the import contracts hold."""

import re
import tomllib


def test_the_picture_of_the_folders_is_that_of_the_contracts(root):
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    picture = next(block for block in re.findall(r"```\n(.*?)```", text, re.S) if "federation |" in block)
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["name"].startswith("imports point one way"))
    assert picture.split("\n")[:-1] == [line.replace("counterveil.", "") for line in layers]


def test_the_table_of_folders_names_each_of_them(root):
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in (root / "src/counterveil").glob("*/__init__.py")}
    named = set(re.findall(r"^\| `(\w+)`", text, re.M)) | {"cli", "datasets", "settings"}
    assert folders <= named
    assert named - {"errors"} <= folders
