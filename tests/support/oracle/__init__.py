"""An oracle: what the database itself says was written, against what the hooks and the checker say."""
