from __future__ import annotations

from dataclasses import fields

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.store import codec

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
values = {
    str: text,
    int: int64,
    bool: st.booleans(),
    float: st.floats(allow_nan=False),
}
special = {
    "version": st.none() | int64 | text,
    "base_version": st.none() | int64 | text,
    "witness": st.none() | st.lists(text, max_size=3).map(tuple),
    "time_unix_nano": int64,
    "kind": text,
}


def _field(name: str, annotation: str) -> st.SearchStrategy:
    if name in special:
        return special[name]
    plain = next(kind for kind in values if annotation.startswith(kind.__name__))
    return st.none() | values[plain]


facts = st.fixed_dictionaries(
    {
        field.name: _field(field.name, str(field.type))
        for field in fields(Fact)
        if field.name not in ("id", "replica", "task")
    }
).map(lambda drawn: Fact(id="api:7", replica="api", task=TaskKey("s", "o", "t", 2), **drawn))


@given(facts)
def test_a_fact_comes_back_exactly(fact: Fact) -> None:
    body = codec.encode(fact)

    assert codec.decode(body, replica="api", n=7, task=fact.task) == fact
    assert codec.time_of(body) == fact.time_unix_nano


def test_every_field_is_kept_as_a_key_or_in_the_body() -> None:
    assert {*codec.FIELDS, "id", "replica", "task"} == {field.name for field in fields(Fact)}


def test_a_body_from_before_a_field_existed_is_still_read() -> None:
    fact = Fact(id="api:1", kind="write", time_unix_nano=5, replica="api")
    older = msgspec.msgpack.encode(msgspec.msgpack.decode(codec.encode(fact))[:2])

    assert codec.decode(older, replica="api", n=1, task=None) == fact
