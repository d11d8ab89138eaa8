"""The pages of the site are gathered whole; that Sphinx builds them without a warning is checked by `make docs`."""

import re

import pytest
from tools.site.contents import SECTIONS, sections
from tools.site.gather import gathered
from tools.site.outputs import with_outputs


@pytest.fixture(scope="module")
def site(root):
    return gathered(root)


def test_every_proof_and_every_experiment_has_its_place(site, root):
    found = sum(1 for _ in (root / "src/counterveil").glob("**/*.proof.md"))
    assert found == sum(page.startswith("proofs/") for page in site) - 1 > 50
    assert {"index.md", "project/architecture.md", "experiments/coverage/RESULTS.md"} <= set(site)


def test_the_list_of_documents_names_every_page_of_its_folders(root):
    listed = sections((root / "docs/README.md").read_text(encoding="utf-8"))
    for section, (folder, _) in SECTIONS.items():
        there = {f"docs/{folder}/{p.name}" for p in (root / "docs" / folder).glob("*.[im]*")}
        assert there <= set(listed[section].pages), section


def test_every_link_leads_to_a_page_of_the_site(site):
    for page, content in site.items():
        if not page.endswith(".md"):
            continue
        for target in re.findall(r"\]\(([^):#\s]+\.md)", content.decode()):
            parts = page.split("/")[:-1]
            for piece in target.split("/"):
                parts = parts[:-1] if piece == ".." else [*parts, piece]
            assert "/".join(parts) in site, f"{page}: {target}"
    sections = re.findall(r"^[a-z-]+/index$", site["index.md"].decode(), re.MULTILINE)
    assert sections
    assert {f"{name}.md" for name in sections} <= set(site)


PAGE = "# Title\n\n```python\nx = 2\nx + 1\n```\n\n<!-- output -->\n\n```text\nold\n```\n\n```sh\nls\n```\n"


def test_outputs_are_those_of_a_run():
    assert with_outputs(PAGE) == PAGE.replace("old", "3")
    empty = PAGE.replace("old\n", "")
    assert with_outputs(empty) == PAGE.replace("old", "3")
