"""The room ``capture``."""
