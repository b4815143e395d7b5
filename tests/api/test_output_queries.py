"""What may stand behind the question mark of an output's path."""

from pathlib import Path

import pytest
from tests.api.farm import runs_out_of_sight
from tests.support.calling import Api, play

NOT_NUMBERS = ["x", "-1", "1.0", "9" * 5000]


@pytest.mark.parametrize("field", ["attempt", "begin", "tail"])
@pytest.mark.parametrize("follow", ["", "follow=1&"])
def test_what_is_no_number_is_refused_in_one_line(
    tmp_path: Path, field: str, follow: str
) -> None:
    async def story(api: Api) -> None:
        await runs_out_of_sight(api)
        for text in NOT_NUMBERS:
            answer = await api.get(f"/jobs/1/output?{follow}{field}={text}")
            assert (answer.status, answer.document["code"]) == (400, "usage")

    play(tmp_path, story)
