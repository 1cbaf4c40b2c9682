"""The room ``ir``."""
