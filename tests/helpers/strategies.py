"""Small ranking problems for hypothesis: ragged lists with ties, constant lists and extreme scores."""

from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from hypothesis import strategies as st

from cfltr_core import ClickLog, DeterministicPolicy, aggregate_clicks
from cfltr_core.clicks.users import User


@dataclass(frozen=True)
class Problem:
    offsets: list[int]
    scores: list[float]
    grades: list[int]


# Few values make ties; the extremes check that nothing is subtracted or scaled.
TIED = st.integers(-2, 2).map(float)
EXTREME = st.sampled_from([-1e300, -1.0, -0.0, 0.0, 1e-300, 1.0, 1e300])
SMOOTH = st.floats(-10, 10, allow_nan=False)


def sizes(longest: int = 6) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(1, longest), min_size=1, max_size=5)


@st.composite
def offsets(draw: st.DrawFn, longest: int = 6) -> list[int]:
    return [0, *accumulate(draw(sizes(longest)))]


@st.composite
def problems(draw: st.DrawFn, longest: int = 6, top_grade: int = 4) -> Problem:
    cuts = draw(offsets(longest))
    kind = draw(st.sampled_from([TIED, TIED, EXTREME, SMOOTH, st.just(3.0)]))
    scores = draw(st.lists(kind, min_size=cuts[-1], max_size=cuts[-1]))
    grades = draw(st.lists(st.integers(0, top_grade), min_size=cuts[-1], max_size=cuts[-1]))
    return Problem(cuts, scores, grades)


@dataclass(frozen=True)
class Counts:
    """A click log as counts: every document has its own place, some are not shown."""

    offsets: list[int]
    rank: list[int]
    sessions: list[int]
    clicks: list[int]


@st.composite
def counts(draw: st.DrawFn, longest: int = 4, most_sessions: int = 9) -> Counts:
    cuts = draw(offsets(longest))
    rank: list[int] = []
    sessions: list[int] = []
    clicks: list[int] = []
    for start, end in pairwise(cuts):
        places = draw(st.permutations(range(1, end - start + 1)))
        cutoff = draw(st.integers(1, end - start))
        n = draw(st.integers(0, most_sessions))
        sessions.append(n)
        for place in places:
            rank.append(place if place <= cutoff else 0)
            clicks.append(draw(st.integers(0, n)) if place <= cutoff else 0)
    return Counts(cuts, rank, sessions, clicks)


def log_of(problem: Counts, user: User) -> ClickLog:
    """The log of these counts, with the propensities of ``user``."""
    policy = DeterministicPolicy(problem.rank, problem.offsets)
    clicked = np.array([d for d, c in enumerate(problem.clicks) for _ in range(c)], dtype=int)
    return aggregate_clicks(clicked, policy, user=user, sessions=problem.sessions)
