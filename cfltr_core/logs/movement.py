"""Pages that follow clicks: do documents move up after periods in which they were clicked more than usual?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cfltr_core.clicks.event_counts import Events
from cfltr_core.ranking.ragged import query_of


@dataclass(frozen=True)
class Feedback:
    """Whether pages follow clicks: ``z``, its ``p_value`` for documents that move *up*, and the ``moves`` it rests on.

    :func:`feedback_test` makes it.
    """

    z: float
    p_value: float
    moves: int


def feedback_test(events: Events) -> Feedback:
    """Test whether a document that was clicked more than usual in a period stands higher in the next, by ranker.

    Of a document at a rank, n of its N displays are in period t, and c of its C clicks.  Given C, the clicks
    e = c − n C/N beyond its usual rate have mean 0 if nobody's taste changes and no page follows clicks.  With m the
    places that the document moves up from t to the next period in which the ranker was asked the same query (one below
    the deepest rank of the log if it is gone), the statistic is F = Σ e m over its standard error.  That is the larger
    of two: from the variances n C (N − C)(N − n)/(N² (N − 1)), and from the spread of the queries' parts of F.

    A page that follows *taste* moves as well: people want a document more, and the ranker learns it.

    Parameters
    ----------
    events : Events

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import cfltr_core as cf
    >>> from cfltr_core.logs.movement import feedback_test
    >>> rng, rows, pages = np.random.default_rng(0), [], {}
    >>> for s in range(12_000):
    ...     query, day = s % 40, s // 3_000
    ...     page = pages.setdefault((query, day), [0, 1, 2])
    ...     clicks = [int(rng.random() < 0.4 / k) for k in (1, 2, 3)]
    ...     rows += [(s, query, d, k, c, day) for k, (d, c) in enumerate(zip(page, clicks), start=1)]
    ...     score = pages.setdefault(("clicks", query, day), np.zeros(3))
    ...     score[page] += np.multiply(clicks, [1, 2, 3])
    ...     pages[query, day + 1] = np.argsort(-score).tolist()  # tomorrow's page follows today's clicks
    >>> rows = pd.DataFrame(rows, columns=["session", "query", "document", "position", "clicked", "period"])
    >>> lists = [(q, d, 1.0) for q in range(40) for d in range(3)]
    >>> features = pd.DataFrame(lists, columns=["query", "document", "x"])
    >>> feedback_test(cf.read_events(rows, features, split=None)).p_value < 1e-3
    True
    """
    import pandas as pd
    from scipy.special import ndtr

    frame = pd.DataFrame(
        {name: getattr(events, name) for name in ("document", "rank", "ranker", "period", "impressions", "clicks")}
    )
    usual = frame.groupby(["document", "rank"])[["impressions", "clicks"]].transform("sum")
    n, rate = usual["impressions"], usual["clicks"] / usual["impressions"]
    frame["excess"] = frame["clicks"] - frame["impressions"] * rate
    left = (n - frame["impressions"]) / (n - 1).clip(lower=1)
    frame["variance"] = frame["impressions"] * rate * (1 - rate) * left
    frame["places"] = frame["rank"] * frame["impressions"]
    each = ["ranker", "document", "period"]
    sums = frame.groupby(each, as_index=False)[["excess", "variance", "places", "impressions"]].sum()
    sums["query"] = query_of(sums["document"].to_numpy(), events.offsets)
    sums["place"] = sums["places"] / sums["impressions"]
    asked = sums[["ranker", "query", "period"]].drop_duplicates().sort_values(["ranker", "query", "period"])
    asked["later"] = asked.groupby(["ranker", "query"])["period"].shift(-1)
    pairs = sums.merge(asked.dropna(), on=["ranker", "query", "period"])
    after = sums[[*each, "place"]].rename(columns={"period": "later", "place": "next_place"})
    pairs = pairs.merge(after, on=["ranker", "document", "later"], how="left")
    move = pairs["place"] - pairs["next_place"].fillna(int(events.rank.max()) + 1)
    part = pairs["excess"] * move
    by_query = part.groupby(pairs["query"]).sum()
    variance = max(float((pairs["variance"] * move**2).sum()), float((by_query**2).sum()))
    if not variance > 0:
        return Feedback(0.0, 1.0, 0)
    z = float(part.sum()) / math.sqrt(variance)
    return Feedback(z, float(ndtr(-z)), int(np.count_nonzero(move)))
