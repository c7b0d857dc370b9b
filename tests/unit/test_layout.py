"""Who may import whom: the directions that keep each part usable without the others."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT / "instrumentation", ROOT / "dashboard")


def module_name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {
    module_name(path, source): path for source in SOURCES for path in sorted(source.rglob("*.py"))
}


def imports(text: str, module: str, *, is_package: bool) -> Iterator[str]:
    """Every name that a module imports, wherever the statement stands, as an absolute dotted name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")
            above = above[: len(above) - node.level + is_package] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


IMPORTS = {
    module: sorted(set(imports(path.read_text(), module, is_package=path.name == "__init__.py")))
    for module, path in MODULES.items()
}


def inside(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def importers(of: str, *, by: str) -> list[str]:
    """``module -> name`` for each import of a package's content by the modules of another."""
    return [
        f"{module} -> {name}"
        for module, names in IMPORTS.items()
        if inside(module, by)
        for name in names
        if inside(name, of)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a.b, c", ["a.b", "c"]),
        ("from a import b as x, c", ["a.b", "a.c"]),
        ("from . import d", ["p.q.d"]),
        ("from ..r import e", ["p.r.e"]),
        ("def f():\n    if True:\n        import late", ["late"]),
    ],
)
def test_the_walk_sees_every_form_of_import(text: str, expected: list[str]) -> None:
    assert list(imports(text, "p.q.m", is_package=False)) == expected


def test_a_package_counts_its_dots_from_itself() -> None:
    assert list(imports("from . import d\nfrom ..r import e", "p.q", is_package=True)) == [
        "p.q.d",
        "p.r.e",
    ]


def test_every_part_of_the_layout_is_looked_at() -> None:
    for package in ("a2a_fencing", "a2a_fencing.checker", "a2a_fencing_dashboard.ui"):
        assert any(inside(module, package) and IMPORTS[module] for module in MODULES), package


def test_the_instrumentation_never_imports_the_dashboard() -> None:
    assert importers("a2a_fencing_dashboard", by="a2a_fencing") == []


@pytest.mark.parametrize(
    "library", ["httpx", "msgspec", "pandas", "plotly", "starlette", "streamlit", "uvicorn"]
)
def test_the_instrumentation_needs_nothing_that_only_the_dashboard_brings(library: str) -> None:
    assert importers(library, by="a2a_fencing") == []


def test_the_checker_is_pure() -> None:
    allowed = (
        "a2a_fencing.checker",
        "a2a_fencing.facts",
        "a2a_fencing.conventions",
        "a2a_fencing.scoped",
    )
    impure = {"asyncio", "io", "logging", "os", "pathlib", "random", "socket", "threading", "time"}
    wrong = [
        f"{module} -> {name}"
        for module, names in IMPORTS.items()
        if inside(module, "a2a_fencing.checker")
        for name in names
        if not inside(name, *allowed, *(sys.stdlib_module_names - impure))
    ]
    assert wrong == []


@pytest.mark.parametrize("module", ["a2a_fencing.facts", "a2a_fencing.conventions"])
def test_facts_and_their_names_stand_on_nothing(module: str) -> None:
    wrong = [
        name
        for name in IMPORTS[module]
        if not inside(name, "a2a_fencing.conventions", *sys.stdlib_module_names)
    ]
    assert wrong == []


def test_only_stores_touch_databases() -> None:
    by_others = [
        line
        for line in importers("sqlite3", by="a2a_fencing_dashboard")
        if not line.startswith("a2a_fencing_dashboard.store.")
    ]
    assert by_others == []


def test_engines_are_known_only_inside_the_store() -> None:
    by_others = [
        line
        for line in importers("a2a_fencing_dashboard.store.sqlite", by="a2a_fencing_dashboard")
        if not line.startswith("a2a_fencing_dashboard.store")
    ]
    assert by_others == []


def test_streamlit_stays_in_the_user_interface() -> None:
    by_others = [
        line
        for line in importers("streamlit", by="a2a_fencing_dashboard")
        if not line.startswith("a2a_fencing_dashboard.ui.")
    ]
    assert by_others == []


def test_figures_are_made_without_streamlit_or_a_store() -> None:
    charts = "a2a_fencing_dashboard.ui.charts"
    assert importers("streamlit", by=charts) == []
    assert importers("a2a_fencing_dashboard.store.open_store", by=charts) == []
    assert importers("a2a_fencing_dashboard.store.protocol.Store", by=charts) == []


def test_pages_read_through_queries() -> None:
    pages = "a2a_fencing_dashboard.ui.pages"
    assert importers("a2a_fencing_dashboard.store.open_store", by=pages) == []
    assert importers("a2a_fencing_dashboard.store.protocol.Store", by=pages) == []


@pytest.mark.parametrize("part", ["receiver", "ingest", "store", "histories"])
def test_what_gathers_facts_knows_nothing_of_who_looks_at_them(part: str) -> None:
    by = f"a2a_fencing_dashboard.{part}"
    assert importers("a2a_fencing_dashboard.ui", by=by) == []
    assert importers("a2a_fencing_dashboard.demo", by=by) == []
    assert importers("a2a_fencing_dashboard.cli", by=by) == []


def test_alerts_know_the_dashboards_urls_and_nothing_else_of_it() -> None:
    by = "a2a_fencing_dashboard.alerts"
    ui = importers("a2a_fencing_dashboard.ui", by=by)
    assert {line.partition(" -> ")[2] for line in ui} == {"a2a_fencing_dashboard.ui.links.task_query"}
    for part in ("receiver", "ingest", "demo", "cli", "store.sqlite"):
        assert importers(f"a2a_fencing_dashboard.{part}", by=by) == []
