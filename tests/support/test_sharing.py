"""What tests share lies beside them: a file of tests is nobody's library."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
IMPORT = re.compile(r"^(?:from|import) .*\btest_\w+.*$", re.MULTILINE)


def test_no_file_of_tests_is_imported_by_another() -> None:
    files = TESTS.glob("**/*.py")
    found = {str(path): IMPORT.findall(path.read_text()) for path in files}
    assert {path: lines for path, lines in found.items() if lines} == {}
