"""Jaeger's JSON, as its user interface downloads it: facts are the logs of spans.

Jaeger knows no arrays and keeps microseconds: a list comes as JSON text, times lose their last digits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from a2a_fencing.facts import ATTRIBUTES, Fact, from_attributes, is_fact

_LISTS = frozenset(attribute for attribute, types in ATTRIBUTES.values() if list in types)


def is_document(document: Any) -> bool:
    """Whether this is a download of traces."""
    return isinstance(document, dict) and isinstance(document.get("data"), list)


def facts(document: Mapping[str, Any]) -> Iterator[Fact]:
    """The facts among the logs of every span.

    Raises:
        MalformedFactError: A log claims to be a fact but cannot be one.
        AttributeError, KeyError, TypeError, ValueError: The document is not Jaeger's.
    """
    for trace in document["data"]:
        for span in trace["spans"]:
            for log in span.get("logs") or ():
                attributes = {field["key"]: _value(field) for field in log["fields"]}
                name = str(attributes.get("event", ""))
                if is_fact(name, attributes):
                    yield from_attributes(
                        name,
                        attributes,
                        time_unix_nano=int(log["timestamp"]) * 1000,
                        trace_id=span.get("traceID"),
                        span_id=span.get("spanID"),
                    )


def _value(field: Mapping[str, Any]) -> Any:
    value = field.get("value")
    if field.get("type") == "int64":
        # Beyond what JavaScript counts exactly, Jaeger writes digits as text.
        return int(value or 0)
    if field["key"] in _LISTS and isinstance(value, str):
        return json.loads(value)
    return value
