"""The room ``codegen``."""
