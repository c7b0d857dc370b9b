from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from a2a_fencing_dashboard.store import StoreError, open_store
from a2a_fencing_dashboard.store.protocol import Window


def failure(url: str) -> str:
    with pytest.raises(StoreError) as caught:
        open_store(url)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_missing_file_becomes_an_empty_store(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/new.db")

    assert store.overview(Window()).facts == 0
    assert store.overview(Window()).verdict == "unknown"
    store.close()


def test_a_relative_path_is_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    open_store("sqlite:///here.db").close()

    assert (tmp_path / "here.db").is_file()


@pytest.mark.parametrize("url", ["", "sqlite://", "sqlite:///", "mysql://x", "facts.db"])
def test_an_unknown_url_is_refused(url: str) -> None:
    assert "sqlite:///path" in failure(url)


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    assert "nowhere" in failure(f"sqlite:///{tmp_path}/nowhere/facts.db")


def test_a_directory_is_no_store(tmp_path: Path) -> None:
    assert str(tmp_path) in failure(f"sqlite:///{tmp_path}")


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary, " * 100)

    assert "not a database" in failure(f"sqlite:///{path}")
    assert path.read_text() == "dear diary, " * 100


def test_the_database_of_another_application_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE tasks (id)")
    db.close()
    before = path.read_bytes()

    assert "another application" in failure(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    open_store(f"sqlite:///{path}").close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 999")
    db.close()

    assert "newer a2a-fencing (schema 999)" in failure(f"sqlite:///{path}")
