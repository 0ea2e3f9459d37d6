"""How the claims of each chapter are measured: a module ``chNN`` a chapter, in which a claim is a function.

::

    from cfltr_book.evidence import measures

    @measures("N-naive-expectation", section="naive")
    def naive_expectation(run):
        return {"left": ..., "right": ...}

The chapter measures and shows the claims of a section with ``run.evidence("ch01", "naive")``.
"""

from cfltr_book.reporting.measures import measures

__all__ = ["measures"]
