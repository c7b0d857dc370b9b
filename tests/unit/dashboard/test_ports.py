from __future__ import annotations

import pytest

from a2a_fencing_dashboard.ports import PortTakenError, free_port, is_loopback, listener

HOST = "127.0.0.1"


def test_a_taken_port_gives_the_next_free_one() -> None:
    with listener(HOST, 0, exact=True) as taken:
        port = taken.getsockname()[1]
        with listener(HOST, port, exact=False) as other:
            assert port < other.getsockname()[1] <= port + 50


def test_a_taken_port_that_was_asked_for_is_an_error() -> None:
    with listener(HOST, 0, exact=True) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTakenError, match=f"port {port} on {HOST}: taken"):
            listener(HOST, port, exact=True)


def test_a_free_port_can_be_bound_by_somebody_else() -> None:
    port = free_port(HOST, 0, exact=True)
    with listener(HOST, port, exact=True) as sock:
        assert sock.getsockname()[1] == port


def test_an_address_of_another_machine_is_not_a_taken_port() -> None:
    with pytest.raises(OSError, match="assign"):
        listener("192.0.2.1", 0, exact=False)


@pytest.mark.parametrize(
    ("host", "alone"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.7", False),
        ("agents.example", False),
    ],
)
def test_who_reaches_an_address(host: str, alone: bool) -> None:
    assert is_loopback(host) is alone
