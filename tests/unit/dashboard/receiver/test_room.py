from __future__ import annotations

import contextlib

import pytest

from a2a_fencing_dashboard.receiver.errors import OverloadedError
from a2a_fencing_dashboard.receiver.room import Room


def test_no_more_requests_than_there_is_room_for() -> None:
    room = Room(requests=2, size=100)
    with room.enter(), room.enter(), pytest.raises(OverloadedError):
        room.enter()

    with room.enter():
        pass


def test_no_more_bytes_than_there_is_room_for() -> None:
    room = Room(requests=9, size=100)
    with room.enter() as one, room.enter() as other:
        one.take(60)
        other.take(40)
        with pytest.raises(OverloadedError):
            one.take(1)

    with room.enter() as guest:
        guest.take(100)


def test_room_is_given_back_whatever_happens() -> None:
    room = Room(requests=1, size=10)
    for _ in range(3):
        with contextlib.suppress(ZeroDivisionError), room.enter() as guest:
            guest.take(10)
            raise ZeroDivisionError

    with room.enter() as guest:
        guest.take(10)
