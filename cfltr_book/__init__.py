"""What a chapter of the book leans on, besides the methods of ``cfltr_core``: its run, corpora, figures and claims.

Folders are floors, and imports point only down; all of it stands above ``cfltr_core``, which knows nothing of it:

=====  ===============  =====================================================================================
floor  folder           what lives there
=====  ===============  =====================================================================================
6      ``evidence``     how the claims of each chapter are measured, a function each
5      ``experiments``  what is simulated for each chapter, as tidy tables that figures and claims share
4      this file        the names that chapters use
3      ``reporting``    what a chapter calls to show and to claim: the run, figures, claims, kept tables
2      ``legacy``       kept tables of experiments that are still defined in the cells of chapters 7, 8 and 15
1      ``data``         where lists come from: generated corpora, digits, LETOR collections; scales; public logs
1      ``theory``       what proofs are checked with: exact expectations and variances, runs, bounds
=====  ===============  =====================================================================================

Matplotlib, seaborn, joblib and PyYAML, which nothing in ``cfltr_core`` needs, come with ``pip install '.[chapters]'``.
"""

from cfltr_book.data.corpora import load_corpus
from cfltr_book.data.scales import SCALES
from cfltr_book.reporting.claims import claim
from cfltr_book.reporting.figures import MARKERS, METHODS, PALETTE, band, curves, figure, record, style
from cfltr_book.reporting.intervals import mean_interval
from cfltr_book.reporting.run import Run
from cfltr_book.reporting.tables import Experiment

__all__ = [
    "MARKERS",
    "METHODS",
    "PALETTE",
    "SCALES",
    "Experiment",
    "Run",
    "band",
    "claim",
    "curves",
    "figure",
    "load_corpus",
    "mean_interval",
    "record",
    "style",
]
