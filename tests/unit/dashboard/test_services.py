"""Where people are told to look."""

from __future__ import annotations

import socket

import pytest

from a2a_fencing_dashboard.services import base_url


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8501"),
        ("::1", "http://[::1]:8501"),
        ("dash.example", "http://dash.example:8501"),
        ("0.0.0.0", f"http://{socket.gethostname()}:8501"),
        ("::", f"http://{socket.gethostname()}:8501"),
    ],
)
def test_a_url_is_one_that_a_browser_can_open(host: str, url: str) -> None:
    assert base_url(host, 8501) == url
