"""How the dashboard is started, without starting it."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event

import pytest

from a2a_fencing_dashboard.ui import server
from a2a_fencing_dashboard.ui.access import TokenGate
from a2a_fencing_dashboard.ui.settings import Settings


class App:
    """Takes the place of Streamlit's app and remembers how it was used."""

    def __init__(self, script, *, middleware):
        self.script = Path(script)
        self.middleware = [entry.cls for entry in middleware]

    def run(self, *, config):
        self.config = config


@pytest.fixture
def start(monkeypatch):
    """Starts with these arguments; gives the app and the environment of its process."""
    environment: dict[str, str] = {}
    made: list[App] = []

    def make(*args, **kwargs):
        made.append(App(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(server.st, "App", make)
    monkeypatch.setattr(server.os, "environ", environment)
    monkeypatch.setattr(server, "spare_the_collector", lambda *after: None)
    monkeypatch.setattr(server, "share_arenas", lambda most: None)
    monkeypatch.setattr(server, "ENDED", Event())
    monkeypatch.setattr(sys, "argv", ["a2a-fencing", "dashboard", "--token", "s3cret"])

    def started(*args, **kwargs):
        server.serve(*args, **kwargs)
        return made[-1], environment

    return started


def test_it_binds_to_loopback_and_reports_to_nobody(start):
    app, _ = start("sqlite:///x.db")
    assert app.config["server.address"] == "127.0.0.1"
    assert app.config["browser.gatherUsageStats"] is False
    assert app.config["server.headless"] is True
    assert app.config["server.fileWatcherType"] == "none"
    assert "127.0.0.1" in app.config["server.allowedHosts"]


def test_another_address_can_be_reached_by_any_name(start):
    app, _ = start("sqlite:///x.db", host="0.0.0.0", port=9000)
    assert (app.config["server.address"], app.config["server.port"]) == ("0.0.0.0", 9000)
    assert "server.allowedHosts" not in app.config


def test_the_entry_is_absolute_and_has_no_folder_of_pages_beside_it(start):
    app, _ = start("sqlite:///x.db")
    assert app.script.is_absolute()
    assert app.script.is_file()
    assert not (app.script.parent / "pages").exists()


def test_the_token_guards_everything(start):
    assert TokenGate not in start("sqlite:///x.db")[0].middleware
    assert TokenGate in start("sqlite:///x.db", token="s3cret")[0].middleware


def test_pages_learn_what_they_need_and_nothing_else(start):
    _, environment = start("sqlite:///x.db", jaeger_url="http://jaeger:16686", token="s3cret")
    assert Settings.from_environment(environment) == Settings("sqlite:///x.db", "http://jaeger:16686")
    assert "s3cret" not in repr(environment)
    assert sys.argv == ["a2a-fencing"]


def test_pages_learn_that_it_ends(start, monkeypatch):
    monkeypatch.setattr(App, "run", ended_by_a_signal)
    with pytest.raises(SystemExit):
        start("sqlite:///x.db")
    assert server.ENDED.is_set()


def ended_by_a_signal(app, *, config):
    assert not server.ENDED.is_set()
    sys.exit(0)


@pytest.mark.parametrize(
    "settings", [Settings("sqlite:///a"), Settings("sqlite:///a", "http://j", "http://127.0.0.1:4318")]
)
def test_settings_travel_through_the_environment(settings):
    assert Settings.from_environment(settings.to_environment()) == settings
    assert Settings.from_environment({}) == Settings("")
