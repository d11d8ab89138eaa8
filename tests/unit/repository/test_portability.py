import pytest

# In pieces, so that this file passes its own test.
SLASH = "/"


def test_no_file_depends_on_one_machine(tool, root):
    assert tool("check_portability").problems(root) == []


@pytest.mark.parametrize(
    "line",
    [
        f"data = '{SLASH}home/ann/data.csv'",
        f"see {SLASH}work/main for more",
        f"#!{SLASH}root/bin/python",
        f"cache: {SLASH}tmp/w/v",
        "pip install --index" + "-url https://somewhere/simple counterveil",
        "https://files.python" + "hosted.org/packages/x.whl",
    ],
)
def test_a_line_that_depends_on_one_machine_is_named(tool, write, tmp_path, line):
    write("notes.md", f"fine\n{line}\n")
    (found,) = tool("check_portability").problems(tmp_path)
    assert found.startswith("notes.md:2: ")
    assert tool("check_portability").main([str(tmp_path)]) == 1
