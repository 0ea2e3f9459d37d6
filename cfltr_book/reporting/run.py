"""A chapter's run: one object that knows scale, corpus and seed, what follows from them, and what goes to the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from cfltr_book.data.corpora import units_of
from cfltr_book.reporting import figures, sliders, tables
from cfltr_book.reporting.claims import ClaimResult, claim
from cfltr_book.reporting.evidence import Evidence
from cfltr_book.reporting.experiments import Experiments
from cfltr_book.reporting.measures import measures_of
from cfltr_core.checks import IntArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Run(Experiments):
    """Where a chapter stands: its scale, its corpus and the first of its seeds.

    Every number of a chapter follows from these three.  A seed is a population of queries with logs of its own;
    what is drawn for it comes from ``run.rng(seed, stream)``, where the *stream* is a number of the chapter's own
    for each experiment.

    Parameters
    ----------
    scale : "smoke", "ci" or "paper"
    corpus : str
        As :func:`cfltr_book.data.corpora.load_corpus` takes it.
    seed : int >= 0

    Raises
    ------
    ValueError
        For a scale or a corpus that does not exist, or a negative seed.

    Examples
    --------
    >>> import cfltr_book as book
    >>> import cfltr_core as cf
    >>> run = book.Run("smoke", "yahoo-like", 3)
    >>> run.seeds, run.learning_seeds, run.size.clicks
    (range(3, 5), range(3, 5), (500, 5000))
    >>> run.each_seed(lambda seed, rng: round(rng.random(), 3), stream=7)
    [0.682, 0.972]
    >>> run.setting_of(run.seeds)
    'Corpus yahoo-like (relevant from grade 3), scale smoke, 2 seeds'
    >>> run.setting_of([3])
    'Corpus yahoo-like (relevant from grade 3), scale smoke, seed 3'

    A log of one seed, and what it says of the ranker that filled it:

    >>> train, rng = run.load(3).train, run.rng(3, 1)
    >>> ranker = cf.fit_linear_ranker(train, 0.1, rng=rng)
    >>> scores = ranker.decision_function(train.features)
    >>> policy = cf.DeterministicPolicy.rank_by(scores, train.offsets, rng=rng)
    >>> user = cf.PositionBasedUser(cf.power_examination(1.0))
    >>> log = run.simulate(policy, user, relevance=train.binary, rng=rng, n_sessions=500)
    >>> log.n_sessions
    500

    A long experiment, whose table the package keeps:

    >>> from cfltr_book.experiments.ch12 import BY_LOSS
    >>> book.Run("ci", "digits").table(BY_LOSS).attrs["kept"]
    True

    Claims, numbers and figures go to the page, and are kept when the book is being run:

    >>> same = run.claim("N-naive-expectation", left=[1 / 3], right=[2 / 6])
    >>> run.evidence(same).summary
    'Evidence: 1 claim: as on record'
    >>> run.number("sessions-of-the-example", log.n_sessions, form="{:d}")
    >>> run.record("words-of-the-example", "a phrase, as chapters record them that are not yet written anew")
    >>> ax = book.curves([1, 2], {"ips": [0.5, 0.6]}, xlabel="clicks")
    >>> run.figure(
    ...     ax.figure, "fig-example", caption="Estimates of an example.", seeds=[3],
    ...     alt="Line chart of an estimate against clicks: it rises from 0.5 to 0.6.", data={"ips": [0.5, 0.6]},
    ... )
    >>> def looks(eta):
    ...     ax = book.curves([1, 2], {"examined": [1, 2**-eta]}, xlabel="rank")
    ...     fact = f"{2**-eta:.0%} of the users look at rank 2"
    ...     alt = f"Line chart of the share of users who look at ranks 1 and 2: {fact}."
    ...     return ax.figure, {"rank": [1, 2], "share": [1, 2**-eta]}, fact, alt
    >>> run.slider(
    ...     looks, "fig-example-with-a-knob", knob="severity of position bias η", values=[0, 1, 2],
    ...     caption="Share of the users who look at each rank.",
    ... )
    """

    def claim(self, id: str, **arrays: ArrayLike) -> ClaimResult:
        """Judge a claim of the registry on this corpus and scale (:func:`cfltr_book.reporting.claims.claim`).

        Arrays with as many values as there are :attr:`seeds`, or :attr:`learning_seeds`, belong to these: on a
        collection where seeds share a fold, the values of a fold are averaged and count once.
        """
        return claim(id, scale=self.scale, corpus=self.corpus, units=self._units(arrays), **arrays)

    def _units(self, arrays: Mapping[str, ArrayLike]) -> IntArray | None:
        """The unit of each seed if the arrays hold a value, or a row, for each."""
        lengths = {len(np.atleast_1d(np.asarray(values))) for name, values in arrays.items() if name != "x"}
        for seeds in (self.seeds, self.learning_seeds):
            if lengths == {len(seeds)}:
                return units_of(self.corpus, seeds)
        return None

    @overload
    def evidence(self, module: str, section: str, /) -> Evidence: ...

    @overload
    def evidence(self, *results: ClaimResult) -> Evidence: ...

    def evidence(self, *of: Any) -> Evidence:
        """Claims as one small table under one line of summary (:class:`cfltr_book.reporting.evidence.Evidence`).

        Parameters
        ----------
        of : two names, or the results of claims
            ``run.evidence("ch01", "naive")`` measures the claims of a section of ``cfltr_book/evidence/ch01.py``, in
            the order in which they stand there, and judges each as :meth:`claim` does.  ``run.evidence(*results)``
            shows what :meth:`claim` returned.

        Raises
        ------
        ValueError
            For a module or a section that does not exist, and as :meth:`claim` does.
        """
        match of:
            case (str(module), str(section)):
                of = tuple(self.claim(one.id, **one.arrays(self)) for one in measures_of(module, section))
        return Evidence(of, corpus=self.corpus, scale=self.scale)

    def table(self, experiment: tables.Experiment) -> pd.DataFrame:
        """The results of an experiment, a row for each seed and setting: the seed, the setting and its results.

        The table is read where the package keeps one for this scale, this corpus and the seed 0, and computed cell by
        cell elsewhere.  Where the book is built, some cells of a kept table, drawn by the revision, are computed
        again.  Finished cells are stored, so that a run that was interrupted goes on; the numbers do not depend on
        the number of workers.  ``frame.attrs`` holds ``kept``, the ``seeds``, and ``words`` for captions that say
        where the numbers come from.

        Parameters
        ----------
        experiment : Experiment
            One of a module ``cfltr_book.experiments.chNN`` (:class:`cfltr_book.reporting.tables.Experiment`).

        Raises
        ------
        ValueError
            With a kept table: when it is about other seeds or settings, when a cell that is computed again differs by
            more than the experiment's tolerance, or when its two files do not belong together.  Each message names
            the table and what to type.  Without one: for a seed or a setting that stands twice, and for results whose
            names differ.
        """
        return tables.table(experiment, self)

    def number(self, name: str, value: float, *, form: str = "{:.3g}") -> None:
        """Let prose quote a number, shown as ``form.format(value)`` (:func:`cfltr_book.reporting.figures.record`).

        Raises
        ------
        ValueError
            For a phrase: a sentence stands in the text and bears the mark of its claim, it is not assembled.
        """
        if isinstance(value, str):
            raise ValueError(
                f"value of {name} is the phrase {value!r}: record a number, and write the sentence with the mark of "
                "its claim"
            )
        self.record(name, value, form=form)

    def record(self, name: str, value: float | str, *, form: str = "{:.3g}") -> None:
        """Let prose quote a number or a phrase (:func:`cfltr_book.reporting.figures.record`)."""
        figures.record(name, value, form=form)

    def figure(
        self,
        fig: Figure,
        id: str,
        *,
        caption: str,
        alt: str,
        data: Any,
        dense: bool = False,
        seeds: Iterable[int] | None = None,
    ) -> None:
        """Show and keep a figure (:func:`cfltr_book.reporting.figures.figure`).

        With ``seeds``, those that the figure shows, the caption ends with corpus, scale and seeds
        (:meth:`setting_of`).
        """
        if seeds is not None:
            caption = f"{caption.rstrip()} {self.setting_of(seeds)}."
        figures.figure(fig, id, caption=caption, alt=alt, data=data, dense=dense)

    slider = sliders.slider
