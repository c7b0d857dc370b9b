"""What options say to the person who gave them."""

from __future__ import annotations

import pytest

from a2a_fencing_dashboard.cli.options import warn_of_strangers


def test_a_receiver_that_strangers_reach_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_strangers("0.0.0.0", None)
    said = capsys.readouterr()
    assert said.err == (
        "warning: whoever reaches 0.0.0.0 may read and write here; --token keeps them out\n"
    )
    assert said.out == ""


@pytest.mark.parametrize(("host", "token"), [("127.0.0.1", None), ("0.0.0.0", "secret")])
def test_one_that_is_closed_to_them_says_nothing(
    host: str, token: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    warn_of_strangers(host, token)
    assert capsys.readouterr() == ("", "")
