"""`config.toml` and the settings' variables: read, or refused in one line."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.errors import UsageError
from grass.settings import SETTINGS, read_settings
from tests.fuzz.dose import bounded, examples
from tests.fuzz.garbage import slipped, slipped_bytes, texts

FILES = (
    '[defaults]\nqueue = "q"\nrequire = {gpu = 1, ram = "8G"}\nproject = "p"\n',
    '[defaults]\ngrace = "15s"\npriority = 5\n[retention]\nkeep = "30d"\n',
    '[store]\nurl = "sqlite"\n[notify]\non_finish = ["a", "b"]\non_fail = "x y"\n',
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("config") / "config.toml"


def read(file: Path, variables: dict[str, str]) -> None:
    with bounded(), contextlib.suppress(UsageError):
        read_settings(str(file), variables).listed()


@examples(250)
@given(
    data=st.one_of(
        slipped(FILES).map(lambda text: text.encode("utf-8", "surrogatepass")),
        slipped_bytes([one.encode() for one in FILES]),
    )
)
def test_any_file_is_read_or_refused(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    read(file, {})


@examples(150)
@given(
    variables=st.dictionaries(
        st.sampled_from([setting.variable for setting in SETTINGS]),
        texts("q", "{gpu:1}", "30d", "5", "sqlite", "echo x"),
    )
)
def test_any_variables_are_read_or_refused(
    file: Path, variables: dict[str, str]
) -> None:
    file.unlink(missing_ok=True)
    read(file, variables)
