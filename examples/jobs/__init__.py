"""Jobs that people do with captured programs, each a script: ``python -m examples.jobs.features``."""
