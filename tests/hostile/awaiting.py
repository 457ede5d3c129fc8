"""Cases whose right outcome is known and not yet there: name -> reason.

tests/test_hostile.py expects each to fail, and says so where it does not.
"""

AWAITING = {}
