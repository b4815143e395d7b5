"""Whose process is at the other end of a connection on loopback."""

import os
import socket
import sys

import pytest

from grass.api.server.web_server import _listed, _uid_of


def test_the_kernel_tells_whose_connection_it_is() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = listener.getsockname()
        with socket.create_connection(near) as client:
            far = client.getsockname()
            accepted, _ = listener.accept()
            with accepted:
                assert _uid_of(far, near) == os.geteuid()
                client.close()
                assert _uid_of(far, near) is None


LITTLE = {
    ("127.0.0.1", 4004): "0100007F:0FA4",
    ("::1", 80): "00000000000000000000000001000000:0050",
    ("::ffff:127.0.0.1", 1): "0000000000000000FFFF00000100007F:0001",
}


@pytest.mark.skipif(sys.byteorder != "little", reason="of another order")
@pytest.mark.parametrize("address", LITTLE)
def test_an_address_is_written_as_the_kernel_lists_it(address: tuple[str, int]) -> None:
    assert _listed(address) == LITTLE[address]
