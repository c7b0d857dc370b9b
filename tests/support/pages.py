"""Reading pages that `streamlit.testing` ran."""

from __future__ import annotations

from a2a_fencing_dashboard.ui import links


def texts(app):
    return [element.value for element in app.text]


def everything(app):
    return "\n".join([*texts(app), *(e.value for e in app.markdown), *(e.value for e in app.caption)])


def task_query(task):
    return dict(links.task_query(task.key))
