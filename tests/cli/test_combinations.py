"""Values of parameters: after `:::`, and from a file."""

from pathlib import Path
from typing import Any

import pytest

from grass.cli.parsing.combinations import errors_by_row, split, template
from grass.cli.parsing.values_file import ValuesFile
from grass.errors import UsageError


def test_every_combination_is_a_row_and_the_last_list_changes_fastest() -> None:
    command, params = split(["x", "{1}", ":::", "a", "b", ":::", "1", "2"])
    assert command == ["x", "{1}"]
    assert params == {
        "names": ["1", "2"],
        "rows": [["a", "1"], ["a", "2"], ["b", "1"], ["b", "2"]],
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("x :::", "no values follow :::"),
        ("x ::: a ::: ::: b", "no values follow number 2 :::"),
        ("x ::: a :::+ b", "`:::\\+` is not understood"),
        ("x :::: file", "`::::` is not understood"),
        ("x" + " ::: 0 1 2 3 4 5 6 7 8 9" * 6, "1,000,000 combinations"),
    ],
)
def test_lists_that_say_nothing_are_refused(words: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        split(words.split(" "))


@pytest.mark.parametrize(
    ("command", "fields", "filled"),
    [
        (["x", "{1}"], {}, ["x", "{1}"]),
        (["x", "a{}b"], {}, ["x", "a{}b"]),
        (["x"], {}, ["x", "{}"]),
        (["x", "{3}"], {}, ["x", "{3}", "{}"]),
        (["x && y"], {}, ["x && y {}"]),
        ([], {}, ["{}"]),
        (["x"], {"env": {"LR": "{1}"}}, ["x"]),
        (["x"], {"output": "/o/{1}"}, ["x"]),
        (["x"], {"raw": True}, ["x"]),
    ],
)
def test_a_command_that_names_no_value_gets_all_at_its_end(
    command: list[str], fields: dict[str, Any], filled: list[str]
) -> None:
    assert template(command, {"names": ["1"], "rows": [["a"]]}, fields) == filled


def test_named_values_are_not_added_to_a_command() -> None:
    assert template(["x"], {"names": ["lr"], "rows": [["1"]]}, {}) == ["x"]


def test_an_error_about_a_row_names_its_place() -> None:
    wrong, other = UsageError("wrong"), UsageError("wrong")
    wrong.job = 2
    with (
        pytest.raises(UsageError, match=r"^here, line 2: wrong$"),
        errors_by_row(lambda row: f"here, line {row}: "),
    ):
        raise wrong
    with pytest.raises(UsageError, match=r"^wrong$"), errors_by_row(lambda _: "here"):
        raise other


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("a b\n\n c\r\n#d", ["1"], [["a b"], [" c"], ["#d"]]),
        ("a\t1\nb\t\n", ["1", "2"], [["a", "1"], ["b", ""]]),
        ("a \\\nb", ["1"], [["a \\"], ["b"]]),
        (
            '{"lr": 0.1, "on": true}\n{"on": "x y", "lr": 1e-5}\n',
            ["lr", "on"],
            [["0.1", "true"], ["1e-05", "x y"]],
        ),
    ],
)
def test_each_line_of_a_file_is_a_row(
    tmp_path: Path, text: str, names: list[str], rows: list[list[str]]
) -> None:
    assert read(tmp_path, text).params == {"names": names, "rows": rows}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n \n", "values holds no values"),
        ("a\tb\n\nc\n", "values, line 3: 1 values, and 2 in line 1"),
        ('{"a": 1}\nb\n', "values, line 2: Expecting"),
        ('{"a": 1}\n[1]\n', 'values, line 2: write {"lr"'),
        ('{"a": 1}\n{"b": 1}\n', "values, line 2: has b, and line 1 has a"),
        ('{"a": [1]}\n', 'values, line 1: field "a": a value is text or a number'),
        ('{"a": null}\n', 'values, line 1: field "a": a value is text or a number'),
    ],
)
def test_an_error_in_a_file_of_values_names_its_line(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        read(tmp_path, text)
    assert refused.value.message.startswith(f"{tmp_path}/{said}")


def read(folder: Path, text: str) -> ValuesFile:
    file = folder / "values"
    file.write_bytes(text.encode())
    return ValuesFile(str(file))
