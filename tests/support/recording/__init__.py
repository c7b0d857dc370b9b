"""Records histories of the real SDK: replica processes, the real exporter, files like a Collector's.

``python -m support.recording`` in ``tests`` writes the fixtures anew.
"""
