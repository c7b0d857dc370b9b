"""Reading pages that `streamlit.testing` ran."""

from __future__ import annotations

import re
from html import unescape

from a2a_fencing_dashboard.ui import links


def texts(app):
    return [element.value for element in app.text] + findings(app)


def findings(app):
    """What the lines of findings say, cell by cell."""
    cells = []
    for element in app.get("html"):
        cells += re.findall(r">([^<>]+)<", element.proto.body.split("</style>")[-1])
    return [unescape(cell).strip() for cell in cells]


def everything(app):
    return "\n".join([*texts(app), *(e.value for e in app.markdown), *(e.value for e in app.caption)])


def task_query(task):
    return dict(links.task_query(task.key))
