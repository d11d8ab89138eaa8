import pytest


def test_the_source_keeps_its_shape(tool, root):
    assert tool("check_modules").problems(root / "src") == []


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("long.py", "x = 1\n" * 400, "401 lines"),
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


def test_an_init_file_may_import_export_and_be_lazy(tool, write, tmp_path):
    write(
        "folder/__init__.py",
        '"""Doc."""\n\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import os\n\n'
        '__all__ = ["f"]\n__version__ = "1"\n_HOMES = {"f": "folder.f"}\n\n\n'
        "def __getattr__(name):\n    raise AttributeError(name)\n",
    )
    assert tool("check_modules").main([str(tmp_path)]) == 0
