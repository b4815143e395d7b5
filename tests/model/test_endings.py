"""What exit codes and signals tell."""

import pytest

from grass.model.jobs.endings import exit_meaning


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (126, "a program was found, but could not be executed"),
        (127, "a command was not found"),
        (137, "a program in it was killed by SIGKILL (out of memory?)"),
        (139, "a program in it was killed by SIGSEGV (segmentation fault)"),
        (143, "a program in it was killed by SIGTERM"),
    ],
)
def test_exit_codes_of_shells_are_explained(code: int, meaning: str) -> None:
    assert exit_meaning(code) == meaning


@pytest.mark.parametrize("code", [0, 1, 2, 3, 128, 130, 255])
def test_other_exit_codes_mean_what_their_program_says(code: int) -> None:
    assert exit_meaning(code) == ""
