"""What a worker says of itself is looked at before it is kept."""

import pytest
from tests.support.brokerage import Brokerage

from grass.broker.core.workers.message_checks import LONGEST_TEXT
from grass.errors import ProtocolError

RACK = "0123456789abcdef"


@pytest.mark.parametrize("field", ["name", "boot", "instance"])
@pytest.mark.parametrize("text", ["\udcff", "x" * (LONGEST_TEXT + 1)])
def test_a_hello_with_text_that_cannot_be_kept_is_refused(
    broker: Brokerage, field: str, text: str
) -> None:
    with pytest.raises(ProtocolError):
        broker.join(RACK, **{field: text})
    assert RACK not in broker.state.workers
