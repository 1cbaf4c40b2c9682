"""The room ``io``."""
