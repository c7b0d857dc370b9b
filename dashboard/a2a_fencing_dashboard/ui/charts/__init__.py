"""Figures: pure functions from rows to Plotly figures; no store, no Streamlit."""
