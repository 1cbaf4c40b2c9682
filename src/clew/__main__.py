"""``python -m clew`` is the command ``clew``."""

from clew.cli.main import main

main()
