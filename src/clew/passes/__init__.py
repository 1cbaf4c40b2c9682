"""The room ``passes``."""
