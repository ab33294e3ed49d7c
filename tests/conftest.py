"""Drawn cases are the same in every run of the tests; `make verify` looks for others."""

from hypothesis import settings

settings.register_profile("steady", derandomize=True)
settings.register_profile("search", derandomize=False, print_blob=True)
settings.load_profile("steady")
