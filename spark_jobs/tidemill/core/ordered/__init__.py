"""Ordered windows: buffers with policies, and windows of event time with triggers, folded record by record.

Begin with `machine.py`: what a fold takes and gives. Buffers are declared in `buffers.py` of the policies in
`policies.py`; windows with triggers in `event_windows.py` of what `triggers.py` and `evictors.py` have.
"""
