"""The pages about settings name what there is: no more, no less."""

from pathlib import Path

from grass.setting_values import KINDS
from grass.settings import SETTINGS

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def cells(page: str) -> list[list[str]]:
    lines = (REFERENCE / page).read_text().splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("| `")]
    return [
        [*(cell.strip().strip("`") for cell in row[:-1]), row[-1].strip()]
        for row in rows
    ]


def test_every_setting_is_documented_with_its_kind_default_and_variable() -> None:
    shown = [tuple(row) for row in cells("config.md") if len(row) == 5]
    assert shown == [
        (
            setting.name,
            KINDS[setting.kind][0].removeprefix("a "),
            "unset" if setting.default is None else str(setting.default),
            setting.variable,
            setting.about,
        )
        for setting in SETTINGS
    ]


def test_every_variable_is_among_those_that_grass_reads() -> None:
    page = (REFERENCE / "environment.md").read_text()
    assert [one.variable for one in SETTINGS if f"`{one.variable}`" not in page] == []
