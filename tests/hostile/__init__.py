"""A corpus of hostile and odd inputs, each with its expected outcome.

Made by code, in five kinds: weight files, checkpoints, vocabularies,
config files, arguments. tests/test_hostile.py runs every case;
tests/hostile_outcomes.py counts the outcomes for tests/ROBUSTNESS.md.
"""
