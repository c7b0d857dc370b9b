"""Results of scenarios: as a table for people, as JSON, and as JUnit XML for a build server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from a2a_fencing_dashboard.scenarios.figures import Result

_HEADINGS: Final = {
    "attempts": "attempts",
    "accepted": "accepted",
    "conflicts": "conflicts",
    "terminal_rejected": "rejected",
    "dropped": "dropped",
    "overwritten": "overwritten",
    "evidence": "evidence",
    "stored": "stored",
    "streamed": "remote stream",
}


def table(results: Sequence[Result]) -> Iterator[str]:
    """Observed figures, a line a scenario; where one differs, with the expected one: ``2 (not 1)``."""
    rows = [["scenario", *_HEADINGS.values(), ""]]
    for result in results:
        cells = [_cell(result, name) for name in _HEADINGS]
        rows.append([result.scenario.name, *cells, "ok" if result.ok else "DIFFERS"])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield ""
    for result in results:
        if result.error is not None:
            yield f"{result.scenario.name} was not played to its end: {result.error}"
    wrong = sum(not result.ok for result in results)
    yield "not as expected: " + f"{wrong} of {len(results)}" if wrong else "every figure is as expected"


def as_json(results: Sequence[Result]) -> str:
    """An array with one object a scenario."""
    return json.dumps(
        [
            {
                "name": result.scenario.name,
                "story": result.scenario.story,
                "ok": result.ok,
                "error": result.error,
                "expected": {k: v for k, v in result.scenario.expected if v is not None},
                "observed": {k: v for k, v in result.observed if v is not None},
            }
            for result in results
        ],
        indent=2,
    )


def write_junit(results: Sequence[Result], path: Path) -> None:
    """A test case a scenario, each with one property per figure.

    Raises:
        OSError: The file cannot be written.
    """
    failures = sum(not result.ok for result in results)
    suite = ElementTree.Element(
        "testsuite", name="a2a-fencing scenario", tests=str(len(results)), failures=str(failures)
    )
    for result in results:
        case = ElementTree.SubElement(
            suite, "testcase", classname="a2a_fencing.scenario", name=result.scenario.name
        )
        properties = ElementTree.SubElement(case, "properties")
        for name, value in result.observed:
            if value is not None:
                ElementTree.SubElement(properties, "property", name=name, value=str(value))
        if not result.ok:
            text = result.error or "; ".join(
                f"{name}: expected {expected}, observed {observed}"
                for name, (expected, observed) in result.differences.items()
            )
            ElementTree.SubElement(case, "failure", message=text)
    ElementTree.indent(suite)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _cell(result: Result, name: str) -> str:
    observed = dict(result.observed)[name]
    shown = "-" if observed is None else str(observed)
    expected = result.differences.get(name)
    return f"{shown} (not {expected[0]})" if expected is not None else shown
