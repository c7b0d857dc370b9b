from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

import pytest

from a2a_fencing_dashboard import arenas


@pytest.fixture
def library(monkeypatch):
    """Lets this object be the C library."""
    return lambda names: monkeypatch.setattr(ctypes, "CDLL", lambda name: names)


def test_glibc_is_told(library, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "platform", "linux")
    library(SimpleNamespace(mallopt=lambda *options: told.append(options)))
    arenas.share_arenas(2)
    assert told == [(-8, 2)]


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_where_there_is_no_glibc_nothing_happens(library, monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    library(SimpleNamespace())
    arenas.share_arenas(2)
