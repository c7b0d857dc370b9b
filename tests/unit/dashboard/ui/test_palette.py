"""Colours that stay apart for everybody, on light and on dark."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.ui import palette

LIGHT, DARK = "#fcfcfb", "#12161c"

# Viénot, Brettel and Mollon (1999), linear RGB: red-blind, green-blind; the last is full sight.
VISION = {
    "protanopia": [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, -0.0], [0.00401, -0.00401, 1.0]],
    "deuteranopia": [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, -0.0], [-0.02234, 0.02234, 1.0]],
    "full": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
}


def linear(color: str) -> np.ndarray:
    srgb = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """Linear RGB to CIE L*a*b* (D65)."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def difference(one: str, other: str, vision: str) -> float:
    seen = np.array(VISION[vision])
    return float(np.linalg.norm(lab(seen @ linear(one)) - lab(seen @ linear(other))))


def contrast(one: str, other: str) -> float:
    weights = np.array([0.2126, 0.7152, 0.0722])
    low, high = sorted((weights @ linear(one), weights @ linear(other)))
    return float((high + 0.05) / (low + 0.05))


def test_every_state_has_a_look_of_its_own():
    states = {*c.TERMINAL_STATES, *c.INTERRUPTED_STATES, c.SUBMITTED, c.WORKING}
    assert palette.STATES.keys() == states
    looks = [*palette.STATES.values(), palette.UNKNOWN_STATE]
    assert len({look.shape for look in looks}) == len(looks)
    assert len({look.glyph for look in looks}) == len(looks)


def test_no_state_looks_like_a_violation():
    for look in palette.STATES.values():
        assert look.shape != palette.VIOLATION.shape
        assert look.glyph != palette.VIOLATION.glyph


def test_what_held_does_not_look_like_what_broke():
    for look in (palette.CONFLICT, palette.HELD, palette.DROPPED):
        assert difference(look.color, palette.VIOLATION.color, "full") > 40
        assert look.shape != palette.VIOLATION.shape


@pytest.mark.parametrize("vision", VISION)
def test_terminal_states_stay_apart(vision):
    for one, other in itertools.combinations(sorted(c.TERMINAL_STATES), 2):
        apart = difference(palette.STATES[one].color, palette.STATES[other].color, vision)
        assert apart > 10, (one, other, apart)


@pytest.mark.parametrize("vision", VISION)
def test_a_violation_stands_out_from_what_is_fine(vision):
    verdicts = palette.VERDICTS
    for one, other in itertools.combinations(verdicts, 2):
        assert difference(verdicts[one].color, verdicts[other].color, vision) > 10, (one, other)


@pytest.mark.parametrize("ground", [LIGHT, DARK])
def test_marks_can_be_seen_on_both_themes(ground):
    looks = [*palette.STATES.values(), *palette.VERDICTS.values(), palette.HELD, palette.DISPATCH]
    for look in looks:
        assert contrast(look.color, ground) >= 3, look


def test_replicas_can_be_told_apart_up_to_36():
    lines = [palette.replica_line(index) for index in range(36)]
    assert len(set(lines)) == 36
    assert palette.replica_line(36) == lines[0]


def test_faded_keeps_the_colour():
    assert palette.faded("#d6304a", 0.25) == "rgba(214,48,74,0.25)"
