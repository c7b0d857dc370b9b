"""How much of what was sent is held in memory at once, from a request's first byte to its answer."""

from __future__ import annotations

from types import TracebackType

from a2a_fencing_dashboard.receiver.errors import OverloadedError


class Room:
    """A bound on requests and on the bytes of their bodies; belongs to one event loop."""

    def __init__(self, *, requests: int, size: int) -> None:
        """Has room for so many requests with bodies of `size` bytes together."""
        self._requests = requests
        self._size = size

    def enter(self) -> Guest:
        """Lets a request in.

        Raises:
            OverloadedError: There are too many.
        """
        if not self._requests:
            raise OverloadedError("too many requests wait to be stored")
        self._requests -= 1
        return Guest(self)

    def take(self, size: int) -> None:
        """Makes room for more bytes.

        Raises:
            OverloadedError: There is none.
        """
        if size > self._size:
            raise OverloadedError("too many bytes wait to be stored")
        self._size -= size

    def leave(self, size: int) -> None:
        """Gives back the room of a request with so many bytes."""
        self._requests += 1
        self._size += size


class Guest:
    """A request in the room; leaves at the end of the ``with`` block."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._size = 0

    def take(self, size: int) -> None:
        """Makes room for more bytes of the body.

        Raises:
            OverloadedError: There is none.
        """
        self._room.take(size)
        self._size += size

    def __enter__(self) -> Guest:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._room.leave(self._size)
