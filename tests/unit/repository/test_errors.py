PAGE = "# CV-Z001: it broke\n\n## What happened\n\n## Why it matters\n\n## How to fix\n"


def test_every_code_has_its_page(tool, root):
    assert tool("check_errors").problems(root) == []


def test_codes_are_found_in_the_source(tool, root):
    used = tool("check_errors").used_codes(root / "src")
    assert used["CV-P001"] == "counterveil/privacy/guarantee.py"


def test_a_code_without_page_and_a_page_without_code_are_named(tool, write, tmp_path):
    write("lab/src/part.py", 'raise Error("CV-Z001")\n')
    write("src/counterveil/error_pages/CV-Z002.md", PAGE.replace("Z001", "Z002"))
    found = tool("check_errors").problems(tmp_path)
    assert found == [
        "CV-Z001 (part.py): src/counterveil/error_pages/CV-Z001.md is missing",
        "src/counterveil/error_pages/CV-Z002.md: the source never uses CV-Z002",
    ]
    assert tool("check_errors").main([str(tmp_path)]) == 1


def test_a_page_without_its_sections_is_named(tool, write, tmp_path):
    write("src/part.py", 'raise Error("CV-Z001")\n')
    write("src/counterveil/error_pages/CV-Z001.md", "# Something broke\n\n## What happened\n")
    found = tool("check_errors").problems(tmp_path)
    assert len(found) == 3
    write("src/counterveil/error_pages/CV-Z001.md", PAGE)
    assert tool("check_errors").main([str(tmp_path)]) == 0


def test_a_call_of_a_refusal_with_other_facts_than_its_texts_name_is_named(tool, write, tmp_path):
    row = 'gone = Refusal("CV-Z001", "{name!r} is gone", expected="{name!r}", got="{what}", fix="look")\n'
    write("src/part/table.py", row + 'raise gone("a", "b")\n')
    write("src/part/calls.py", 'from part.table import gone\nraise gone("a")\n')
    write("src/part/others.py", 'from part import table\nraise table.gone("a", "b", "c")\n')
    write("src/counterveil/error_pages/CV-Z001.md", PAGE)
    assert tool("check_errors").problems(tmp_path) == [
        "part.calls:2: part.table.gone takes 2 facts",
        "part.others:2: part.table.gone takes 2 facts",
    ]
