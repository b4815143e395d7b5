"""From typed words to a program: assignments, shell lines, names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.model.jobs.commands import (
    is_shell_line,
    safe_file_name,
    split_assignments,
)

words = st.lists(st.text(alphabet="A=b c/_1", max_size=6), max_size=4)


def test_leading_assignments_are_taken_off() -> None:
    found, rest = split_assignments(["A=1", "B_2=x=y", "python", "C=3"])
    assert found == (("A", "1"), ("B_2", "x=y"))
    assert rest == ("python", "C=3")


def test_a_value_may_be_empty_or_hold_spaces_and_lines() -> None:
    found, _ = split_assignments(["A=", "B=two words\nand lines", "env"])
    assert found == (("A", ""), ("B", "two words\nand lines"))


@pytest.mark.parametrize("word", ["1A=2", "=x", "A-B=1", "--flag=1", "./a=b"])
def test_a_word_that_is_no_assignment_is_the_program(word: str) -> None:
    assert split_assignments([word, "x"]) == ((), (word, "x"))


@given(words)
def test_no_word_is_lost(given_words: list[str]) -> None:
    found, rest = split_assignments(given_words)
    assert [f"{name}={value}" for name, value in found] + list(rest) == given_words


@pytest.mark.parametrize(
    ("command", "shell"),
    [
        (["echo a; echo b"], True),
        (["A=1", "echo $A b"], True),
        (["A=1 python train.py"], True),
        (["B=2", "A=1 python train.py"], True),
        (["sleep\t1"], True),
        (["sleep", "1"], False),
        (["echo", "a b"], False),
        (["ls"], False),
        (["A=1"], False),
        ([], False),
    ],
)
def test_one_word_with_spaces_is_a_shell_line(command: list[str], shell: bool) -> None:
    assert is_shell_line(command) is shell


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("train.py", "train.py"),
        ("a/b", "a_b"),
        ("..", "___"),
        (".", "__"),
        ("", "_"),
        ("a b\nc", "a_b_c"),
        ("é", "_"),
    ],
)
def test_a_name_becomes_one_harmless_folder(name: str, safe: str) -> None:
    assert safe_file_name(name) == safe


@given(st.text(max_size=200))
def test_no_name_leaves_its_folder(name: str) -> None:
    safe = safe_file_name(name)
    assert safe
    assert "/" not in safe
    assert "\0" not in safe
    assert safe not in (".", "..")
    assert len(safe.encode()) <= 255
