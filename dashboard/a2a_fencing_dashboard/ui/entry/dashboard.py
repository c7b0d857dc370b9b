"""What Streamlit runs.

It lives apart from ``pages``: beside a folder of that name Streamlit would run the files in it by
themselves, without what `app` puts around every page.
"""

from a2a_fencing_dashboard.ui.app import main

main()
