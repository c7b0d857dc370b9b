"""Fencing tokens and idempotency keys on the wire."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_fencing.facts import TaskKey
from a2a_fencing.fencing import (
    FencingToken,
    ForgedTokenError,
    MalformedTokenError,
    idempotency_key,
)

KEY = TaskKey("postgresql://db:5432/agents#tasks", "alice@example.org", "task-1")


def test_the_header_names_the_task_and_neither_store_nor_owner() -> None:
    header = FencingToken.of(KEY, 3, dispatch_id="r:7", attempt=2).to_header()
    assert header.startswith('3;task="task-1";scope="')
    assert header.endswith('";dispatch="r:7";attempt=2')
    assert "alice" not in header
    assert "postgresql" not in header


@given(
    st.integers(1, 999_999_999_999_999),
    st.text(max_size=60),
    st.one_of(st.none(), st.text(min_size=1, max_size=20)),
    st.one_of(st.none(), st.text(min_size=1, max_size=20)),
)
def test_what_is_sent_is_what_is_read(
    value: int, task_id: str, dispatch: str | None, secret: str | None
) -> None:
    about = {"dispatch_id": dispatch, "attempt": 1} if dispatch is not None else {}
    token = FencingToken.of(TaskKey("s", "o", task_id), value, **about)
    header = token.to_header(secret)
    assert header.isascii()
    assert header.isprintable()
    assert FencingToken.from_header(header, secret) == token
    assert FencingToken.from_header(header) == token


@pytest.mark.parametrize(
    "header",
    [
        "",
        "3",
        "three",
        '"3";task="t";scope="9b1e22c7e0f45a10"',
        '0;task="t";scope="9b1e22c7e0f45a10"',
        '-3;task="t";scope="9b1e22c7e0f45a10"',
        '3.5;task="t";scope="9b1e22c7e0f45a10"',
        '?1;task="t";scope="9b1e22c7e0f45a10"',
        '@3;task="t";scope="9b1e22c7e0f45a10"',
        '9999999999999999;task="t";scope="9b1e22c7e0f45a10"',
        '3;task="t"',
        '3;scope="9b1e22c7e0f45a10"',
        '3;task=t;scope="9b1e22c7e0f45a10"',
        '3;task=7;scope="9b1e22c7e0f45a10"',
        '3;task="t;scope="9b1e22c7e0f45a10"',
        '3;task="t";scope="9b1e22c7e0f45a10";dispatch="d"',
        '3;task="t";scope="9b1e22c7e0f45a10";attempt=1',
        '3;task="t";scope="9b1e22c7e0f45a10";dispatch="d";attempt="1"',
        '3;task="t";scope="9b1e22c7e0f45a10", 4;task="t";scope="9b1e22c7e0f45a10"',
        '(3 4);task="t";scope="9b1e22c7e0f45a10"',
        '3;task="ü";scope="9b1e22c7e0f45a10"',
        '3;task="t\r\nX: y";scope="9b1e22c7e0f45a10"',
        '3;task="t";scope="s"',
        '3;task="t";scope="<b>9b1e22c7e0f4"',
        '3;task="t";scope="9b1e22c7e0f45a10\n"',
        '3;task="' + "t" * 5000 + '";scope="9b1e22c7e0f45a10"',
    ],
)
def test_what_is_no_token_is_refused(header: str) -> None:
    with pytest.raises(MalformedTokenError, match="A2A-Fencing-Token"):
        FencingToken.from_header(header)
    with pytest.raises(MalformedTokenError):
        FencingToken.from_header(header, "secret")


def test_a_token_that_somebody_made_up_or_changed_is_not_genuine() -> None:
    token = FencingToken.of(KEY, 3, dispatch_id="r:7", attempt=1)
    signed = token.to_header("secret")
    assert FencingToken.from_header(signed, "secret") == token
    for forged in (
        token.to_header(),
        token.to_header("another"),
        signed.replace("3;", "4;", 1),
        signed.replace("task-1", "task-2"),
        signed.replace("attempt=1", "attempt=2"),
        signed.partition(";sig=")[0] + ";sig=:AAAA:",
        signed.partition(";sig=")[0] + ';sig="text"',
    ):
        with pytest.raises(ForgedTokenError):
            FencingToken.from_header(forged, "secret")


def test_tasks_of_other_stores_and_owners_are_other_tasks() -> None:
    keys = [
        KEY,
        TaskKey("other#tasks", KEY.owner, KEY.task_id),
        TaskKey(KEY.store, "bob", KEY.task_id),
        TaskKey(KEY.store, KEY.owner, "task-2"),
        TaskKey("a", "b", "c"),
        TaskKey("a\nb", "", "c"),
        TaskKey("", "a\nb", "c"),
    ]
    assert len({FencingToken.of(key, 1).subject for key in keys}) == len(keys)
    assert len({idempotency_key(key, "charge", "1") for key in keys}) == len(keys)


def test_the_idempotency_key_stays_the_same_for_one_logical_action_only() -> None:
    key = idempotency_key(KEY, "charge", "order-17")
    assert key == idempotency_key(TaskKey(KEY.store, KEY.owner, KEY.task_id), "charge", "order-17")
    assert len(key) == 38
    assert key[0] == key[-1] == '"'
    others = [
        idempotency_key(KEY, "charge", "order-18"),
        idempotency_key(KEY, "refund", "order-17"),
        idempotency_key(KEY, "charge\norder", "17"),
        idempotency_key(KEY, "charge", "order\n17"),
    ]
    assert len({key, *others}) == 5


def test_who_takes_the_right_away_outdoes_everybody_who_started_before() -> None:
    cancelled_at = 3
    after = FencingToken.after(KEY, cancelled_at)
    started_before = [FencingToken.of(KEY, version + 1) for version in range(cancelled_at)]
    next_execution = FencingToken.of(KEY, cancelled_at + 1)
    assert all(token.value < after.value for token in started_before)
    assert next_execution.value >= after.value
