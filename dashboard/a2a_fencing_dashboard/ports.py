"""TCP ports on this machine."""

from __future__ import annotations

import errno
import socket
from ipaddress import ip_address
from typing import Final

_TRIES: Final = 50
_TAKEN: Final = (errno.EADDRINUSE, errno.EACCES)


class PortTakenError(OSError):
    """The port that was asked for is not free."""


def listener(host: str, port: int, *, exact: bool) -> socket.socket:
    """A listening socket on this port or, unless `exact`, on the next free one.

    Args:
        host: Address to bind.
        port: First port to try; 0 lets the system choose.
        exact: Whether no other port will do.

    Raises:
        PortTakenError: No port could be had.
        OSError: The address cannot be bound at all.
    """
    last = port if exact else min(port + _TRIES, 65535)
    for candidate in range(port, last + 1):
        sock = _bind(host, candidate)
        if sock is not None:
            return sock
    tried = f"port {port}" if exact else f"ports {port}-{last}"
    raise PortTakenError(f"{tried} on {host}: taken")


def free_port(host: str, port: int, *, exact: bool) -> int:
    """The number of a free port, chosen as `listener` does, for servers that bind by themselves."""
    with listener(host, port, exact=exact) as sock:
        return int(sock.getsockname()[1])


def _bind(host: str, port: int) -> socket.socket | None:
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    # A port that was closed a moment ago is free; one that somebody listens on is not.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        # Two sockets may share an address until one of them listens.
        sock.listen(1024)
    except OSError as error:
        sock.close()
        if error.errno in _TAKEN:
            return None
        raise
    return sock


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens on this address or name."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
