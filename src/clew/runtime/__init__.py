"""The room ``runtime``."""
