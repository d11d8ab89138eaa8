import pytest


def test_the_source_keeps_its_shape(tool, root):
    check = tool("check_modules")
    assert [line for source in check.SOURCES for line in check.problems(root / source)] == []


def test_folders_keep_their_budgets(tool, root):
    assert tool("check_modules").over(root) == []


def test_a_folder_over_its_budget_and_one_without_are_named(tool, write, tmp_path):
    write("src/kept/a.py", "x = 1\n" * 3)
    write("src/grown/b.py", "x = 1\n" * 4)
    write("src/added/deep/c.py", "x = 1\n")
    kept = write("budgets.toml", '[lines]\n"src/kept" = 3\n"src/grown" = 3\n')
    assert tool("check_modules").over(tmp_path, kept) == [
        "src/grown: 4 lines, the budget is 3",
        "src/added: 1 lines, the budget is 0",
    ]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("wide.py", "def f():\n" + "    x = 1\n" * 50, "f has 51 lines"),
        ("utils.py", "", "says nothing"),
        ("helpers/thing.py", "", "says nothing"),
        ("folder/__init__.py", '"""Doc."""\n\n\ndef f():\n    return 1\n', "only imports and exports"),
        ("folder/__init__.py", "LIMIT = 3\n", "only imports and exports"),
        ("folder/__init__.py", "print('hello')\n", "only imports and exports"),
    ],
)
def test_a_module_out_of_shape_is_named(tool, write, tmp_path, name, text, complaint):
    write(name, text)
    found = tool("check_modules").problems(tmp_path)
    assert len(found) == 1
    assert found[0].startswith(name)
    assert complaint in found[0]
    assert tool("check_modules").main([str(tmp_path)]) == 1
