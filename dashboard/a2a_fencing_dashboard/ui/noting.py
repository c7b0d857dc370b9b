"""Acknowledging and muting: the forms, and the lines that show who did and why.

Names and reasons are text from outside like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from hashlib import blake2b
from typing import Final

import streamlit as st

from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.store import StoreError
from a2a_fencing_dashboard.store.notes import MUTED, Note
from a2a_fencing_dashboard.store.protocol import FindingRow
from a2a_fencing_dashboard.ui import live, words
from a2a_fencing_dashboard.ui.view import View

_NAME: Final = "a2a_fencing_name"
_FAILURE: Final = "a2a_fencing_note_failure"
_INCOMPLETE: Final = "Say who you are and why."
_ICONS: Final = {MUTED: ":material/notifications_off:"}
_SEEN_ICON: Final = ":material/visibility:"

_THIS_TASK: Final = "this task"
_EVERYWHERE: Final = "every task of every run"


def tag(task: TaskKey) -> str:
    """A name for a task's elements on a page, fit for keys."""
    return blake2b(repr(task).encode(), digest_size=8).hexdigest()


def buttons(view: View, task: TaskKey, rows: Sequence[FindingRow]) -> None:
    """The ways to take a note of a task's violations; each opens a form."""
    violations = [row for row in rows if row.finding.violates]
    name = tag(task)
    new = [row for row in violations if not row.notes]
    if new:
        _form(
            "Acknowledge",
            _SEEN_ICON,
            f"{live.FORM}ack-{name}",
            "Seen. It stays listed and no longer counts as new; what happens later does.",
            partial(view.actions.acknowledge, task, new),
        )
    loud = words.gravest_first({row.finding.rule for row in violations if not row.muted})
    if loud:
        _mute_form(view, task, loud, {row.run for row in violations}, f"{live.FORM}mute-{name}")


def button_for_all(view: View, rules: Collection[str], upto: int) -> None:
    """The way to acknowledge everything that has been found so far."""
    run = view.window.run
    where = f"in run {words.shown(run, 40)}" if run is not None else "in any run"
    _form(
        "Acknowledge all",
        _SEEN_ICON,
        f"{live.FORM}ack-all",
        "Everything found so far: what happens later counts as new.",
        partial(view.actions.acknowledge_all, upto, rules=rules, run=run),
        lambda: st.text(f"{', '.join(rules) if rules else 'every rule'}, {where}, at any time"),
    )


def _mute_form(view: View, task: TaskKey, rules: Sequence[str], runs: set[str | None], tag: str) -> None:
    def mute(by: str, because: str) -> None:
        chosen = st.session_state[f"{tag}-where"]
        whole_run = chosen not in (_THIS_TASK, _EVERYWHERE)
        view.actions.mute(
            st.session_state[f"{tag}-rule"],
            by,
            because,
            task=task if chosen == _THIS_TASK else None,
            run=run if whole_run else None,
        )

    def choices() -> None:
        st.selectbox("Rule", rules, key=f"{tag}-rule")
        wide = [_EVERYWHERE] if run is None else [f"every task of run {words.shown(run, 40)}"]
        # Not a row of radio buttons: their labels are interpreted as Markdown.
        st.selectbox("In", [_THIS_TASK, *wide], key=f"{tag}-where")

    run = next(iter(runs), None) if len(runs) == 1 else None
    about = "Hidden from the lists, also what may follow. The verdict stays what it is."
    _form("Mute", _ICONS[MUTED], tag, about, mute, choices)


def _form(
    label: str,
    icon: str,
    tag: str,
    about: str,
    act: Callable[[str, str], None],
    choices: Callable[[], object] | None = None,
) -> None:
    form = st.popover(label, icon=icon, type="tertiary", key=tag, on_change="rerun")
    if not form.open:
        return
    with form, st.form(f"{tag}-form", border=False):
        st.caption(about)
        if choices:
            choices()
        st.text_input(
            "Your name", st.session_state.get(_NAME, ""), max_chars=80, key=f"{tag}-by", type="default"
        )
        st.text_input("Reason", max_chars=300, key=f"{tag}-because")
        st.form_submit_button(label, type="primary", on_click=partial(_submit, tag, act))
        _tell_failure(tag)


def _submit(tag: str, act: Callable[[str, str], None]) -> None:
    by, because = (st.session_state[f"{tag}-{field}"].strip() for field in ("by", "because"))
    st.session_state[_NAME] = by
    if not (by and because):
        st.session_state[_FAILURE] = tag, _INCOMPLETE
        return
    try:
        act(by, because)
    except StoreError as error:
        st.session_state[_FAILURE] = tag, str(error)
    else:
        st.session_state.pop(_FAILURE, None)
        st.session_state[tag] = False


def _tell_failure(tag: str) -> None:
    failed, why = st.session_state.get(_FAILURE, ("", ""))
    if failed == tag:
        st.text(why)


def said(view: View, rows: Sequence[FindingRow]) -> None:
    """What people said of these findings alone, each note once, newest first."""
    notes = {note.id: note for row in rows for note in row.notes if not is_wide_mute(note)}
    for note in sorted(notes.values(), key=lambda note: -note.id):
        line(view, note, at=f"-{tag(rows[0].finding.task)}")


def is_wide_mute(note: Note) -> bool:
    """Whether a note mutes more than one task, so that no task's box is the place for it."""
    return note.kind == MUTED and note.task is None


def line(view: View, note: Note, *, at: str = "") -> None:
    """A note, with the way to take it back; `at` tells apart the places that show the same one."""
    name = f"undo-{note.id}{at}"
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"note-{note.id}{at}"
    ):
        st.markdown(f"{_ICONS.get(note.kind, _SEEN_ICON)} {note.kind}", width="content")
        st.text(_told(view, note), width="content")
        st.button("Undo", type="tertiary", key=name, on_click=_undo, args=(view, note, name))
        _tell_failure(name)


def _told(view: View, note: Note) -> str:
    what = words.shown(note.rule, 40) if note.rule else ""
    if note.task is None:
        where = f"in run {words.shown(note.run, 40)}" if note.run else "in every run"
        what = f"{what or 'everything'} {where}"
    when = words.when(note.at_unix_nano, view.now, view.zone)
    by = f"by {words.shown(note.by, 80)}, {when}: {words.shown(note.because, 300)}"
    return f"{what} {by}" if what else by


def _undo(view: View, note: Note, tag: str) -> None:
    try:
        view.actions.undo(note)
    except StoreError as error:
        st.session_state[_FAILURE] = tag, str(error)
