"""Options that switch alerts on."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.alerts.settings import AlertSettings
from a2a_fencing_dashboard.cli import alerting, main

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
HOOK = "https://hooks.example/T0/secret-path/"


def parse(*arguments: str, **environment: str) -> tuple[Result, list[AlertSettings]]:
    found = []

    @click.command()
    @alerting.options
    def command(alerts: AlertSettings) -> int:
        found.append(alerts)
        return 0

    return CliRunner().invoke(command, arguments, env=environment), found


def settings(*arguments: str, **environment: str) -> AlertSettings:
    result, found = parse(*arguments, **environment)
    assert result.exit_code == 0, result.output
    return found[0]


def test_nothing_goes_out_unless_it_is_asked_for() -> None:
    assert settings() == AlertSettings()
    assert AlertSettings().severities == (c.CRITICAL, c.WARNING)


def test_destinations_are_given_once_each_and_as_often_as_wanted() -> None:
    found = settings(
        *("--alert-webhook", HOOK, "--alert-webhook", HOOK, "--alert-webhook", "http://other/"),
        *("--alertmanager", "http://am-1:9093/", "--alertmanager", "http://am-2:9093"),
        *("--alert-severity", "critical", "--dashboard-url", "https://dash.example/a2a/"),
    )

    assert found.webhooks == (HOOK, "http://other/")
    assert found.alertmanagers == ("http://am-1:9093", "http://am-2:9093")
    assert found.severities == (c.CRITICAL,)
    assert found.dashboard_url == "https://dash.example/a2a"
    assert found.linking_to("http://127.0.0.1:8501") == found
    assert settings().linking_to("http://127.0.0.1:8501").dashboard_url == "http://127.0.0.1:8501"


def test_the_environment_says_the_same() -> None:
    found = settings(
        A2A_FENCING_ALERT_WEBHOOK=f"{HOOK} http://other/",
        A2A_FENCING_ALERT_SECRET=SECRET,
        A2A_FENCING_ALERTMANAGER="http://am:9093",
    )

    assert found.webhooks == (HOOK, "http://other/")
    assert found.alertmanagers == ("http://am:9093",)
    assert found.secret == SECRET


def test_a_file_keeps_the_secret(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text(SECRET + "\n")

    assert settings("--alert-secret-file", str(path)).secret == SECRET


@pytest.mark.parametrize("secret", ["", "s3cret", "whsec_", "whsec_c2hvcnQ=", "whsec_!!!", SECRET[6:]])
def test_a_weak_or_broken_secret_is_refused_and_not_repeated(secret: str, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(secret)

    result, found = parse("--alert-secret-file", str(path))

    assert (result.exit_code, found) == (2, [])
    assert "24 bytes or more in base64" in result.output
    assert not secret or secret not in result.output.replace("must be whsec_", "")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    result, _ = parse("--alert-secret-file", str(tmp_path / "absent"))

    assert result.exit_code == 2
    assert "cannot read" in result.output


@pytest.mark.parametrize(
    "url", ["hooks.example/secret-path", "ftp://hooks.example", "http://", "http://h:0"]
)
@pytest.mark.parametrize("option", ["--alert-webhook", "--alertmanager", "--dashboard-url"])
def test_what_is_no_url_is_refused_and_not_repeated(
    option: str, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["collect", option, url]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert "is not an http(s) URL" in err
    assert "secret-path" not in err


def test_where_alerts_go_is_said_without_what_may_be_a_secret(
    capsys: pytest.CaptureFixture[str],
) -> None:
    both = AlertSettings(webhooks=(HOOK,), alertmanagers=("http://user:pass@am:9093",))
    alerting.say(AlertSettings())
    alerting.say(both)
    alerting.say(replace(both, secret=SECRET, alertmanagers=()))

    assert capsys.readouterr().out.splitlines() == [
        "alerts     webhook at hooks.example, not signed",
        "alerts     Alertmanager at am:9093",
        "alerts     webhook at hooks.example, signed",
    ]
