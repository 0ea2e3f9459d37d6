"""What the chapters simulate: a module ``chNN`` a chapter, of plain functions of a run that return tidy tables.

A function remembers what it computed for a run, so that a figure, the prose and the claims of
:mod:`cfltr_book.evidence` rest on one and the same computation.
"""
