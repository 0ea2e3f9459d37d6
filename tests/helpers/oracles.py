"""References for the tests: every definition once more, as a literal loop.

Only numpy and the standard library are imported here, never the code under test; ``test_public_surface`` checks
that, and that every public function is compared with something from this file.
"""

import hashlib
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

Floats = Sequence[float]
Ints = Sequence[int]
Matrix = Sequence[Floats]
# Shares of sessions, by document and rank.
Shares = dict[tuple[int, int], float]
Weight = Callable[[float], float]
Curve = Callable[[float], float] | Floats
# One session of a log: the query it asked and the clicks (0 or 1) on the documents of that query.
Session = tuple[int, tuple[int, ...]]


# --- lists ------------------------------------------------------------------------------------------------


def lists(offsets: Ints) -> list[list[int]]:
    """The documents of each query."""
    return [list(range(int(offsets[q]), int(offsets[q + 1]))) for q in range(len(offsets) - 1)]


def lengths(offsets: Ints) -> list[int]:
    return [len(documents) for documents in lists(offsets)]


def query_index(offsets: Ints) -> list[int]:
    return [q for q, documents in enumerate(lists(offsets)) for _ in documents]


def document_index(queries: Ints, offsets: Ints) -> list[int]:
    return [d for q in queries for d in lists(offsets)[q]]


def segment_sum(values: Floats, offsets: Ints) -> list[float]:
    return [math.fsum(values[d] for d in documents) for documents in lists(offsets)]


def equal_blocks(sizes: Ints, cells: int) -> list[list[int]]:
    """Positions of each size, in order, cut so that a piece has at most ``cells`` cells, or is one position."""
    out = []
    for size in sorted(set(sizes)):
        same = [i for i, other in enumerate(sizes) if other == size]
        step = max(1, cells // size)
        out += [same[i : i + step] for i in range(0, len(same), step)]
    return out


def length_groups(offsets: Ints) -> dict[int, list[int]]:
    """Queries of each length, in order."""
    groups: dict[int, list[int]] = {}
    for q, documents in enumerate(lists(offsets)):
        groups.setdefault(len(documents), []).append(q)
    return groups


# --- metrics ----------------------------------------------------------------------------------------------


def average_rank(rank: float) -> float:
    return rank


def dcg(rank: float) -> float:
    return -1.0 / math.log2(1.0 + rank)


def dcg_at(k: int) -> Weight:
    return lambda rank: dcg(rank) if rank <= k else 0.0


def precision_at(k: int) -> Weight:
    return lambda rank: -1.0 / k if rank <= k else 0.0


def rbp(p: float) -> Weight:
    return lambda rank: -(1.0 - p) * p ** (rank - 1.0)


def report(risk: float, larger_is_better: bool) -> float:
    return -risk if larger_is_better else risk


def tied_ranks(scores: Floats, d: int) -> list[int]:
    """The ranks that document ``d`` of one list shares with those of equal score."""
    above = sum(1 for s in scores if s > scores[d])
    equal = sum(1 for s in scores if s == scores[d])
    return list(range(above + 1, above + equal + 1))


def ranks(scores: Floats, offsets: Ints, ties: str) -> list[float]:
    out: list[float] = []
    for documents in lists(offsets):
        of_query = [scores[d] for d in documents]
        for position in range(len(documents)):
            shared = tied_ranks(of_query, position)
            if ties == "optimistic":
                out.append(shared[0])
            elif ties == "pessimistic":
                out.append(shared[-1])
            else:
                out.append(sum(shared) / len(shared))
    return out


def orders(scores: Floats) -> Iterator[tuple[int, ...]]:
    """Every order of one list, best first, that no score contradicts."""
    for order in itertools.permutations(range(len(scores))):
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order)):
            yield order


def is_order(scores: Floats, rank: Floats) -> bool:
    """True when ``rank`` is a permutation of 1 … n that no score contradicts."""
    if sorted(rank) != list(range(1, len(scores) + 1)):
        return False
    return all(rank[a] < rank[b] for a in range(len(scores)) for b in range(len(scores)) if scores[a] > scores[b])


def rank_weights(scores: Floats, offsets: Ints, weight: Weight, ties: str = "average") -> list[float]:
    if ties != "average":
        return [weight(r) for r in ranks(scores, offsets, ties)]
    out: list[float] = []
    for documents in lists(offsets):
        of_query = [scores[d] for d in documents]
        for position in range(len(documents)):
            shared = tied_ranks(of_query, position)
            out.append(math.fsum(weight(r) for r in shared) / len(shared))
    return out


def additive_metric(
    scores: Floats, relevance: Floats, offsets: Ints, weight: Weight, ties: str = "average"
) -> list[float]:
    lam = rank_weights(scores, offsets, weight, ties)
    return segment_sum([a * b for a, b in zip(lam, relevance, strict=True)], offsets)


def ndcg(
    scores: Floats, grades: Ints, offsets: Ints, k: int, gain: str, empty: str
) -> tuple[float, list[float], float]:
    """Mean, value of each query, share of dropped queries."""
    values = [float(2 ** int(y) - 1) if gain == "exponential" else float(y) for y in grades]
    discount = rank_weights(scores, offsets, lambda r: 1.0 / math.log2(1.0 + r) if r <= k else 0.0)
    per_query = []
    for documents in lists(offsets):
        achieved = math.fsum(values[d] * discount[d] for d in documents)
        best = sorted((values[d] for d in documents), reverse=True)[:k]
        ideal = math.fsum(v / math.log2(2.0 + i) for i, v in enumerate(best))
        per_query.append(achieved / ideal if ideal > 0 else {"drop": math.nan, "zero": 0.0, "one": 1.0}[empty])
    counted = [v for v in per_query if not math.isnan(v)]
    mean = math.fsum(counted) / len(counted) if counted else math.nan
    return mean, per_query, 1.0 - len(counted) / len(per_query)


# --- users and policies -----------------------------------------------------------------------------------


def power(eta: float, shift: float, rank: float) -> float:
    return (1.0 / (shift + rank)) ** eta


def examined(curve: Curve, rank: float) -> float:
    """θ at one displayed rank: 0 when not shown (rank 0) or beyond the end of a table."""
    if rank == 0:
        return 0.0
    if callable(curve):
        return curve(rank)
    return curve[int(rank) - 1] if rank <= len(curve) else 0.0


def clicked(curve: Curve, plus: float, minus: float, rank: float, relevance: float) -> float:
    attraction = plus if relevance == 1 else minus
    return examined(curve, rank) * attraction


def is_display(rank: Ints, offsets: Ints) -> bool:
    """True when the shown documents of each query hold the places 1, 2, … once each."""
    for documents in lists(offsets):
        shown = sorted(rank[d] for d in documents if rank[d] > 0)
        if shown != list(range(1, len(shown) + 1)):
            return False
    return True


def click_log_fault(
    document: Ints, rank: Ints, impressions: Ints, clicks: Ints, propensity: Floats, sessions: Ints, offsets: Ints
) -> tuple[str, int] | None:
    """The argument and the index of the first broken rule of a click log."""
    query = query_index(offsets)
    terms = range(len(document))
    rules = (
        ("document", lambda t: 0 <= document[t] < len(query)),
        ("rank", lambda t: rank[t] >= 1),
        ("impressions", lambda t: impressions[t] >= 0),
        ("clicks", lambda t: clicks[t] >= 0),
        ("propensity", lambda t: 0 <= propensity[t] <= 1),
        ("clicks", lambda t: clicks[t] <= impressions[t]),
        ("propensity", lambda t: clicks[t] == 0 or propensity[t] > 0),
        ("impressions", lambda t: impressions[t] <= sessions[query[document[t]]]),
        ("rank", lambda t: all((document[s], rank[s]) != (document[t], rank[t]) for s in range(t))),
    )
    for name, holds in rules:
        for t in terms:
            if not holds(t):
                return name, t
    return None


def solve(matrix: Matrix, right: Floats) -> list[float]:
    """Gaussian elimination with partial pivoting."""
    rows = [[*map(float, row), float(r)] for row, r in zip(matrix, right, strict=True)]
    n = len(rows)
    for column in range(n):
        pivot = max(range(column, n), key=lambda i: abs(rows[i][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for i in range(column + 1, n):
            factor = rows[i][column] / rows[column][column]
            for j in range(column, n + 1):
                rows[i][j] -= factor * rows[column][j]
    out = [0.0] * n
    for i in reversed(range(n)):
        out[i] = (rows[i][n] - math.fsum(rows[i][j] * out[j] for j in range(i + 1, n))) / rows[i][i]
    return out


def ridge_weights(features: Matrix, target: Floats, ridge: float) -> list[float]:
    """Minimiser of Σ (y − ȳ − z·v)² + ridge ‖v‖² over standardised features z, in raw features."""
    n, m = len(features), len(features[0])
    mean = [math.fsum(row[j] for row in features) / n for j in range(m)]
    spread = [math.sqrt(math.fsum((row[j] - mean[j]) ** 2 for row in features) / n) for j in range(m)]
    alive = [j for j in range(m) if spread[j] > 1e-12]
    z = [[(row[j] - mean[j]) / spread[j] for j in alive] for row in features]
    centre = math.fsum(target) / n
    gram = [
        [math.fsum(row[a] * row[b] for row in z) + (ridge if a == b else 0.0) for b in range(len(alive))]
        for a in range(len(alive))
    ]
    right = [math.fsum(row[a] * (y - centre) for row, y in zip(z, target, strict=True)) for a in range(len(alive))]
    out = [0.0] * m
    for j, v in zip(alive, solve(gram, right), strict=True):
        out[j] = v / spread[j]
    return out


# --- every log there can be -------------------------------------------------------------------------------


def every_session(theta: Floats, relevance: Ints, plus: float, minus: float) -> list[tuple[float, tuple[int, ...]]]:
    """``(probability, clicks)`` of every examination vector with every click vector; impossible ones left out."""
    out = []
    for looked in itertools.product((0, 1), repeat=len(theta)):
        for clicks in itertools.product((0, 1), repeat=len(theta)):
            probability = 1.0
            for d in range(len(theta)):
                probability *= theta[d] if looked[d] else 1.0 - theta[d]
                click = (plus if relevance[d] else minus) if looked[d] else 0.0
                probability *= click if clicks[d] else 1.0 - click
            if probability > 0.0:
                out.append((probability, clicks))
    return out


def every_log(
    theta: Matrix, relevance: Sequence[Ints], plus: float, minus: float, sessions: Ints
) -> Iterator[tuple[float, tuple[Session, ...]]]:
    """Every log of ``sessions[q]`` sessions of query q, with its probability."""
    asked = [q for q, n in enumerate(sessions) for _ in range(n)]
    one = [every_session(theta[q], relevance[q], plus, minus) for q in range(len(theta))]
    for outcome in itertools.product(*(one[q] for q in asked)):
        probability = math.prod(p for p, _ in outcome)
        yield probability, tuple((q, clicks) for q, (_, clicks) in zip(asked, outcome, strict=True))


def every_drawn_log(
    theta: Matrix, relevance: Sequence[Ints], plus: float, minus: float, n_sessions: int
) -> Iterator[tuple[float, tuple[Session, ...]]]:
    """Every log of ``n_sessions`` sessions that each draw their query uniformly, with its probability."""
    one = [
        (p / len(theta), (q, clicks))
        for q in range(len(theta))
        for p, clicks in every_session(theta[q], relevance[q], plus, minus)
    ]
    for outcome in itertools.product(one, repeat=n_sessions):
        yield math.prod(p for p, _ in outcome), tuple(session for _, session in outcome)


def per_session(log: Sequence[Session], rank_weight: Matrix, weight: Matrix) -> float:
    """(1/S) Σ over sessions and documents of click · λ · weight."""
    total = 0.0
    for query, clicks in log:
        for d, click in enumerate(clicks):
            if click:
                total += rank_weight[query][d] * weight[query][d]
    return total / len(log)


def tally(log: Sequence[Session], sizes: Ints) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sessions of each query and clicks on each document (flat)."""
    sessions = [0] * len(sizes)
    clicks = [[0] * n for n in sizes]
    for query, vector in log:
        sessions[query] += 1
        for d, click in enumerate(vector):
            clicks[query][d] += click
    return tuple(sessions), tuple(c for row in clicks for c in row)


def moments(outcomes: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Mean and variance of ``(probability, value)`` pairs."""
    mean = math.fsum(p * x for p, x in outcomes)
    return mean, math.fsum(p * (x - mean) ** 2 for p, x in outcomes)


# --- stochastic policies: every page, every examination, every click ----------------------------------------

# The pages of one query: documents of the page (place 1 first), and their probability.
Pages = dict[tuple[int, ...], float]


def fixed_page(rank: Ints) -> Pages:
    """The one page of displayed ranks, 0 = not shown."""
    shown = [(r, d) for d, r in enumerate(rank) if r > 0]
    return {tuple(d for _, d in sorted(shown)): 1.0}


def exploring_pages(greedy_rank: Ints, epsilon: Floats) -> Pages:
    """Place r holds a uniform remaining document with probability ε_r, else the best remaining one."""
    n, out = len(greedy_rank), {}
    for page in itertools.permutations(range(n), min(len(epsilon), n)):
        probability = 1.0
        for place, document in enumerate(page):
            remaining = [d for d in range(n) if d not in page[:place]]
            best = min(remaining, key=lambda d: greedy_rank[d])
            probability *= epsilon[place] / len(remaining) + (1.0 - epsilon[place]) * (document == best)
        if probability > 0:
            out[page] = probability
    return out


def rank_difference(left: Floats, right: Floats) -> list[float]:
    """λ under one ranker minus λ under another, document by document."""
    return [a - b for a, b in zip(left, right, strict=True)]


def is_positive(value: float) -> bool:
    """A finite number above 0."""
    return 0 < value < math.inf


def list_of(document: int, offsets: Ints) -> int:
    """The list that holds a document."""
    for q in range(len(offsets) - 1):
        if offsets[q] <= document < offsets[q + 1]:
            return q
    raise ValueError(document)


def weights_of(propensity: Floats) -> list[float]:
    """1/p, and 0 where p is 0."""
    return [1 / p if p > 0 else 0.0 for p in propensity]


def masses_of(clicks: Ints, propensity: Floats) -> list[float]:
    """clicks / (p · all clicks), and 0 without a click."""
    total = sum(clicks)
    return [c / (p * total) if c else 0.0 for c, p in zip(clicks, propensity, strict=True)]


def counted_displays(pages: Sequence[Ints], n_docs: int, places: int) -> list[list[int]]:
    """How often each document stood at each place; −1 is an empty place."""
    counts = [[0] * places for _ in range(n_docs)]
    for page in pages:
        for place, document in enumerate(page):
            if document >= 0:
                counts[document][place] += 1
    return counts


def positive_entries(counts: Sequence[Ints]) -> list[tuple[int, int, int]]:
    """``(document, rank, count)`` of every count that is not 0."""
    return [
        (document, place + 1, count) for document, row in enumerate(counts) for place, count in enumerate(row) if count
    ]


def alias_law(keep: Floats, other: Ints, offsets: Ints) -> list[float]:
    """Chance of each document of a list: a column is drawn with 1/n and kept, or exchanged for its other document."""
    law = [0.0] * offsets[-1]
    for start, end in itertools.pairwise(offsets):
        for column in range(start, end):
            law[column] += keep[column] / (end - start)
            law[other[column]] += (1.0 - keep[column]) / (end - start)
    return law


def shows_one_ranking(document: Ints, impressions: Ints, sessions: Ints, offsets: Ints) -> bool:
    """Whether each document stands at one rank and was shown in every session of its query."""
    for i, d in enumerate(document):
        for q in range(len(sessions)):
            if offsets[q] <= d < offsets[q + 1] and impressions[i] != sessions[q]:
                return False
    return len(set(document)) == len(document)


def plackett_luce_pages(scores: Floats, places: int, temperature: float) -> Pages:
    """Place r holds a remaining document with probability ∝ exp(score / temperature)."""
    n, top, out = len(scores), max(scores), {}
    weight = [math.exp((s - top) / temperature) for s in scores]
    for page in itertools.permutations(range(n), min(places, n)):
        probability = 1.0
        for place, document in enumerate(page):
            probability *= weight[document] / math.fsum(weight[d] for d in range(n) if d not in page[:place])
        out[page] = probability
    return out


def mixed_pages(parts: Sequence[Pages], shares: Floats) -> Pages:
    out: Pages = {}
    for pages, share in zip(parts, shares, strict=True):
        for page, probability in pages.items():
            out[page] = out.get(page, 0.0) + share * probability
    return out


def page_mean(pages: Pages, n: int, value: Weight) -> list[float]:
    """Σ over pages of probability · value(place) for each of n documents, 0 where it is not on the page."""
    return [
        math.fsum(p * value(page.index(d) + 1) for page, p in pages.items() if d in page and p > 0) for d in range(n)
    ]


def every_page_session(
    pages: Pages, curve: Curve, relevance: Ints, plus: float, minus: float
) -> list[tuple[float, tuple[int, ...], tuple[int, ...]]]:
    """``(probability, page, clicks on the page)`` of every display, examination and click of one session."""
    out = []
    for page, shown in pages.items():
        theta = [examined(curve, place + 1) for place in range(len(page))]
        for probability, clicks in every_session(theta, [relevance[d] for d in page], plus, minus):
            if shown * probability > 0:
                out.append((shown * probability, page, clicks))
    return out


def oblivious(curve: Curve) -> Callable[[int, int], float]:
    """Weight 1 / θ_place of a click."""
    return lambda document, place: 1.0 / examined(curve, place)


def aware(exposure: Floats) -> Callable[[int, int], float]:
    """Weight 1 / P(E = 1 | π, d) of a click, wherever it was."""
    return lambda document, place: 1.0 / exposure[document]


def page_estimate(
    sessions: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
    rank_weight: Floats,
    weight: Callable[[int, int], float],
) -> tuple[float, float]:
    """Sums over the clicks of ``(page, clicks)`` sessions: weight · λ divided by the sessions, and weight alone."""
    above = below = 0.0
    for page, clicks in sessions:
        for place, (document, click) in enumerate(zip(page, clicks, strict=True), start=1):
            if click:
                above += weight(document, place) * rank_weight[document]
                below += weight(document, place)
    return above / len(sessions), below


def impression_table(pages: Sequence[tuple[int, ...]]) -> tuple[tuple[int, int, int], ...]:
    """``(document, rank, impressions)`` of some displays, in order of document and rank."""
    counts: dict[tuple[int, int], int] = {}
    for page in pages:
        for place, document in enumerate(page, start=1):
            counts[document, place] = counts.get((document, place), 0) + 1
    return tuple((d, r, n) for (d, r), n in sorted(counts.items()))


def share_fault(document: Ints, rank: Ints, share: Floats, offsets: Ints) -> str | None:
    """The argument that is wrong, None when shares of displays are possible ones."""
    if not all(0 <= d < offsets[-1] for d in document):
        return "document"
    if not all(k >= 1 for k in rank):
        return "rank"
    if not all(0 <= s <= 1 for s in share):
        return "share"
    terms = list(zip(document, rank, strict=True))
    if len(set(terms)) < len(terms):
        return "rank"
    for d in set(document):
        if math.fsum(s for e, s in zip(document, share, strict=True) if e == d) > 1 + 1e-9:
            return "share"
    for place in {(list_of(d, offsets), k) for d, k in terms}:
        here = [s for (d, k), s in zip(terms, share, strict=True) if (list_of(d, offsets), k) == place]
        if math.fsum(here) > 1 + 1e-9:
            return "share"
    return None


def share_table(pages: Sequence[tuple[float, Ints]]) -> Shares:
    """P(document stands at rank) from every page with its probability, documents and ranks that occur only."""
    table: Shares = {}
    for probability, page in pages:
        for place, d in enumerate(page, start=1):
            if d >= 0 and probability > 0:
                table[d, place] = table.get((d, place), 0.0) + probability
    return dict(sorted(table.items()))


def shared_exposure(table: Shares, n_docs: int, theta: Curve) -> list[float]:
    """Exposure of each document from its shares."""
    return [math.fsum(s * examined(theta, k) for (e, k), s in table.items() if e == d) for d in range(n_docs)]


# --- standard errors and intervals ------------------------------------------------------------------------


def error_by_query(
    clicks: Ints, offsets: Ints, sessions: Ints, coefficient: Floats, centre: float, denominator: float
) -> float:
    """Standard error of a ratio, one residual per query that was asked."""
    residuals = [
        math.fsum(clicks[d] * coefficient[d] for d in documents) - sessions[q] * centre
        for q, documents in enumerate(lists(offsets))
        if sessions[q] > 0
    ]
    n = len(residuals)
    return math.sqrt(n / (n - 1) * math.fsum(e * e for e in residuals)) / denominator


def error_by_session(
    clicks: Ints, offsets: Ints, sessions: Ints, coefficient: Floats, centre: float, denominator: float
) -> float:
    """Standard error of a ratio, one residual per session, averaged over *every* way of handing the clicks on each
    document out to the sessions of its query."""
    total = 0.0
    for q, documents in enumerate(lists(offsets)):
        ways = [list(itertools.combinations(range(sessions[q]), clicks[d])) for d in documents]
        sums = []
        for way in itertools.product(*ways):
            squares = 0.0
            for s in range(sessions[q]):
                e = -centre
                for d, holders in zip(documents, way, strict=True):
                    if s in holders:
                        e += coefficient[d]
                squares += e * e
            sums.append(squares)
        total += math.fsum(sums) / len(sums)
    n = sum(sessions)
    return math.sqrt(n / (n - 1) * total) / denominator


def standard_error(
    unit: str, clicks: Ints, offsets: Ints, sessions: Ints, coefficient: Floats, centre: float, denominator: float
) -> float:
    """By query or by session; NaN for fewer than two of them."""
    units = sum(sessions) if unit == "session" else sum(1 for n in sessions if n > 0)
    if units < 2:
        return math.nan
    one = error_by_session if unit == "session" else error_by_query
    return one(clicks, offsets, sessions, coefficient, centre, denominator)


def bisect(function: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where an increasing function reaches ``target``."""
    for _ in range(200):
        middle = (low + high) / 2
        if function(middle) < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def normal_interval(value: float, error: float, level: float) -> tuple[float, float]:
    z = bisect(lambda x: 0.5 * (1.0 + math.erf(x / math.sqrt(2.0))), 0.5 + level / 2, 0.0, 40.0)
    return value - z * error, value + z * error


def effective_queries(clicks: list[list[float]]) -> list[float]:
    """Of the clicks of each query at each rank: the square of their sum by the sum of their squares, rank by rank."""
    out = []
    for k in range(len(clicks[0])):
        column = [row[k] for row in clicks]
        out.append(sum(column) ** 2 / sum(c * c for c in column))
    return out


def query_noise(rows: list[tuple[int, int, int, int, int]], theta: list[float], n_queries: int) -> list[list[float]]:
    """Variance of each query's part in log θ̂_k; rows are (query, document, rank, impressions, clicks)."""
    n = len(theta)
    strata: dict[int, list[tuple[int, int, int, int]]] = {}
    for q, d, k, shown, c in rows:
        strata.setdefault(d, []).append((q, k - 1, shown, c))
    hessian, said = np.zeros((n, n)), []
    for terms in strata.values():
        mass = [shown * theta[k] for _, k, shown, _ in terms]
        pi = [m / sum(mass) for m in mass]
        clicked = sum(c for *_, c in terms)
        said.append((terms, pi, clicked))
        for (_, k, _, _), p in zip(terms, pi, strict=True):
            hessian[k, k] += clicked * p
            for (_, j, _, _), r in zip(terms, pi, strict=True):
                hessian[k, j] -= clicked * p * r
    inverse = np.zeros((n, n))
    inverse[1:, 1:] = np.linalg.inv(hessian[1:, 1:])
    out = [[0.0] * n for _ in range(n_queries)]
    for terms, pi, clicked in said:
        for column in range(1, n):
            centre = sum(p * inverse[k, column] for (_, k, _, _), p in zip(terms, pi, strict=True))
            for (q, k, shown, _), p in zip(terms, pi, strict=True):
                spread = max(clicked * p * (1 - clicked * p / shown), 0.0)
                out[q][column] += spread * float(inverse[k, column] - centre) ** 2
    return out


def student_cdf(x: float, df: float) -> float:
    """Distribution function of Student's t for x >= 0, by Simpson's rule on t = √df · tan(φ)."""
    steps = 500
    end = math.atan(x / math.sqrt(df))
    total = 0.0
    for i in range(steps + 1):
        factor = 1 if i in (0, steps) else 4 if i % 2 else 2
        total += factor * math.cos(i * end / steps) ** (df - 1)
    constant = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(math.pi)
    return 0.5 + constant * total * end / steps / 3


def mean_interval(values: Floats, level: float) -> tuple[float, float, float]:
    """Mean with its two-sided Student interval."""
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return mean, -math.inf, math.inf
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    low, high = 0.0, 1e6
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, n - 1) < 0.5 + level / 2 else (low, middle)
    half = low * deviation / math.sqrt(n)
    return mean, mean - half, mean + half


def slope(x: Floats, y: Floats) -> float:
    """Least-squares slope of log y on log x."""
    u, v = [math.log(a) for a in x], [math.log(b) for b in y]
    mean_u, mean_v = math.fsum(u) / len(u), math.fsum(v) / len(v)
    return math.fsum((a - mean_u) * (b - mean_v) for a, b in zip(u, v, strict=True)) / math.fsum(
        (a - mean_u) ** 2 for a in u
    )


def verdict(low: float, high: float, bottom: float, top: float) -> str:
    """Where the interval low … high lies with respect to the zone bottom … top."""
    if low > bottom and high < top:
        return "supported"
    if high < bottom or low > top:
        return "contradicted"
    return "inconclusive"


# --- decisions ----------------------------------------------------------------------------------------------

# A term of a log: document, rank, clicks.
ClickTerm = tuple[int, int, int]


def paired_difference(terms: Sequence[ClickTerm], gap: Floats, exposure: Floats, sessions: Ints) -> float:
    """Minus the sum over clicks of gap / exposure, by sessions: how much better the new ranker is."""
    return -math.fsum(c * gap[d] / exposure[d] for d, _, c in terms if c) / sum(sessions)


def decision_parts(
    terms: Sequence[ClickTerm],
    gap: Floats,
    table: Shares,
    theta: Floats,
    covariance: Matrix,
    sessions: Ints,
    offsets: Ints,
    extra: Floats | None = None,
) -> dict[str, float]:
    """The difference, both parts of its variance, effective numbers of clicks and queries, degrees of freedom.

    A session of query q adds ``extra[q]`` beside its clicks.  The part of the clicks is the larger of two: by what each
    query adds, and by what a query adds a session, as if that had nothing to do with how often it is asked.
    """
    n, n_docs = sum(sessions), int(offsets[-1])
    exposure, more = shared_exposure(table, n_docs, theta), extra or [0.0] * len(sessions)
    difference = paired_difference(terms, gap, exposure, sessions)
    difference += math.fsum(s * x for s, x in zip(sessions, more, strict=True)) / n
    residuals, sizes, counts = [], [], [s for s in sessions if s > 0]
    for q, documents in enumerate(lists(offsets)):
        if sessions[q] > 0:
            mine = [(c * gap[d] / exposure[d]) for d, _, c in terms if d in documents and c]
            residuals.append(sessions[q] * more[q] - math.fsum(mine) - sessions[q] * difference)
            sizes.append(math.fsum(map(abs, mine)))
    asked = len(residuals)

    def freedom(parts: list[float], weights: list[float]) -> float:
        said, total = effective_queries([[w] for w in weights])[0] if any(weights) else 0.0, math.fsum(parts)
        relative = math.fsum(p * p for p in parts) / total**2 - 1 / asked if total > 0 else 0.0
        return said - 1 if relative <= 0 else min(said - 1, 2 / relative)

    slope = []
    for k in range(1, len(theta) + 1):
        rows = [c * gap[d] / exposure[d] ** 2 * table.get((d, k), 0.0) * theta[k - 1] for d, _, c in terms if c]
        slope.append(math.fsum(rows) / n)
    weights = [abs(gap[d]) / exposure[d] for d, _, c in terms for _ in range(c)]
    squares = math.fsum(w * w for w in weights)
    by_query = [r * r for r in residuals]
    by_session = [r * r / s for r, s in zip(residuals, counts, strict=True)]
    frequent, grown = effective_queries([[s] for s in counts])[0], asked / (asked - 1) if asked > 1 else math.nan
    beyond_clicks = grown * math.fsum(by_session) - (asked - frequent) * squares / n
    of_clicks = grown * math.fsum(by_query) / n**2, beyond_clicks / (n * frequent)
    steady = [size / math.sqrt(s) for size, s in zip(sizes, counts, strict=True)]
    return {
        "difference": difference,
        "of clicks": max(of_clicks),
        "of theta": math.fsum(
            a * v * b for a, row in zip(slope, covariance, strict=True) for v, b in zip(row, slope, strict=True)
        ),
        "clicks": math.fsum(weights) ** 2 / squares if squares > 0 else 0.0,
        "queries": effective_queries([[s] for s in sizes])[0] if any(sizes) else 0.0,
        "freedom": freedom(by_query, sizes) if of_clicks[0] > of_clicks[1] else freedom(by_session, steady),
    }


def times_held(conditions: Sequence[bool | None]) -> int:
    """In how many places a condition holds; None is not known to."""
    times = 0
    for condition in conditions:
        times += condition is True
    return times


def student_quantile(level: float, df: float) -> float:
    """Where Student's law with ``df`` degrees of freedom leaves (1 − level)/2 above."""
    return bisect(lambda x: student_cdf(x, df), 0.5 + level / 2, 0.0, 1e6)


def answer(low: float, high: float, smallest: float) -> str:
    """One of the five answers to an interval."""
    if low >= smallest:
        return "better by at least δ"
    if -smallest < low <= high < smallest:
        return "no difference that matters"
    if low > 0:
        return "better"
    return "worse" if high < 0 else "undecided"


def never_shown(gap: Floats, exposure: Floats, offsets: Ints, ceiling: float) -> tuple[list[float], list[float]]:
    """The least and the most that documents without exposure can add to a session of each query."""
    least, most = [], []
    for documents in lists(offsets):
        ends = [sorted((0.0, -gap[d] * ceiling)) for d in documents if exposure[d] == 0]
        least.append(math.fsum(low for low, _ in ends))
        most.append(math.fsum(high for _, high in ends))
    return least, most


def trust_difference(
    terms: Sequence[tuple[int, int, int, int]],
    gap: Floats,
    table: Shares,
    slope: Floats,
    intercept: Floats,
    sessions: Ints,
) -> float:
    """Minus the sum over (document, rank, impressions, clicks) of gap (clicks − impressions α) / Σ share β."""
    total = 0.0
    for d, k, n, c in terms:
        exposed = math.fsum(share * slope[at - 1] for (e, at), share in table.items() if e == d)
        total -= gap[d] * (c - n * intercept[k - 1]) / exposed
    return total / sum(sessions)


def ab_parts(
    pages: Sequence[tuple[int, int, str, Ints]],
    rankers: tuple[str, str],
    gain: Floats,
    slope: Floats,
    intercept: Floats,
) -> tuple[dict[int, float], dict[int, float]]:
    """By query the numerators and the weights of Mantel and Haenszel, of (query, period, ranker, clicks by place)."""
    strata: dict[tuple[int, int], dict[str, list[float]]] = {}
    for query, period, ranker, clicks in pages:
        earned = [g * (c - a) / b for g, c, b, a in zip(gain, clicks, slope, intercept, strict=False)]
        strata.setdefault((query, period), {}).setdefault(ranker, []).append(math.fsum(earned))
    totals: dict[int, float] = {}
    weights: dict[int, float] = {}
    for (query, _), by in strata.items():
        if all(name in by for name in rankers):
            one, other = (by[name] for name in rankers)
            pair = len(one) * len(other) / (len(one) + len(other))
            gained = math.fsum(one) / len(one) - math.fsum(other) / len(other)
            totals[query] = totals.get(query, 0.0) + pair * gained
            weights[query] = weights.get(query, 0.0) + pair
    return totals, weights


def exposure_risk(lam: Floats, exposure: Floats, sessions: Ints, offsets: Ints, level: float) -> float:
    """R = √(level / (1 − level) · (1/N) Σ_q (S_q/N) Σ_d λ_d²/e_d), infinite with weight on what is not seen."""
    n, terms = sum(sessions), []
    for q, documents in enumerate(lists(offsets)):
        for d in documents:
            if lam[d] != 0 and sessions[q] > 0:
                if exposure[d] == 0:
                    return math.inf
                terms.append(sessions[q] / n * lam[d] ** 2 / exposure[d])
    return math.sqrt(level / (1 - level) * math.fsum(terms) / n)


def safest(looks: Sequence[tuple[str, float, float]], smallest: float) -> str | None:
    """Of (name, difference, low): the largest difference above 0 whose low end is above −δ."""
    best: tuple[str, float] | None = None
    for name, difference, low in looks:
        if low > -smallest and difference > 0 and (best is None or difference > best[1]):
            best = name, difference
    return best[0] if best else None


def support(lam: Floats, exposure: Floats, sessions: Ints, offsets: Ints) -> float:
    """Share of |λ|, session by session, on documents that can be seen."""
    pairs = [(abs(lam[d]) * sessions[q], exposure[d]) for q, documents in enumerate(lists(offsets)) for d in documents]
    whole = math.fsum(weight for weight, _ in pairs)
    return math.fsum(weight for weight, e in pairs if e > 0) / whole if whole > 0 else 1.0


# --- doubly robust ------------------------------------------------------------------------------------------

# A term of a log: document, rank, impressions, clicks.
LogTerm = tuple[int, int, int, int]


def robust_gain(
    d: int, terms: Sequence[LogTerm], guess: Floats, exposure: Floats, theta: Curve, cap: float, sessions: int
) -> float:
    """What one document gains in all sessions of its query: the guess, and what clicks correct."""
    surprise = math.fsum(c - guess[d] * n * examined(theta, k) for e, k, n, c in terms if e == d)
    return sessions * guess[d] + (min(1 / exposure[d], cap) * surprise if exposure[d] > 0 else 0.0)


def ridge_by_looks(features: Matrix, clicks: Floats, looks: Floats, chosen: Ints, ridge: float) -> list[float]:
    """Guesses for all documents from those that are chosen, by weighted least squares on standardised features."""
    columns = []
    for column in zip(*features, strict=True):
        mean = math.fsum(column) / len(column)
        spread = math.sqrt(math.fsum((v - mean) ** 2 for v in column) / len(column)) + 1e-12
        columns.append([(v - mean) / spread for v in column])
    rows = [[1.0, *row] for row in zip(*columns, strict=True)]
    m = len(rows[0])
    penalty = ridge * math.fsum(looks[d] for d in chosen) / len(chosen)
    normal = [
        [math.fsum(looks[d] * rows[d][i] * rows[d][j] for d in chosen) + penalty * (i == j) for j in range(m)]
        for i in range(m)
    ]
    w = solve(normal, [math.fsum(clicks[d] * rows[d][i] for d in chosen) for i in range(m)])
    return [min(max(math.fsum(a * b for a, b in zip(row, w, strict=True)), 0.0), 1.0) for row in rows]


# --- corpora ----------------------------------------------------------------------------------------------


def warped(signal: float, kind: int) -> float:
    """A feature value from its signal: 0 smooth, 1 heavy-tailed, 2 counts, 3 binary."""
    grown = math.exp(min(signal, 5.0))
    if kind == 0:
        return 1.0 / (1.0 + math.exp(-1.5 * signal))
    if kind == 1:
        return min(grown**1.2 / 20.0, 1.0)
    if kind == 2:
        return min(math.floor(grown), 10.0) / 10.0
    return 1.0 if signal > 0.5 else 0.0


def digits(
    images: np.ndarray, labels: Ints, seed: int, sizes: Ints, candidates: int = 30
) -> list[tuple[list[int], list[list[int]], list[list[float]], list[int]]]:
    """``(query images, candidate images, features, relevance)`` of train, validation and test."""
    rng = np.random.default_rng([seed, 10])
    order = rng.permutation(len(images)).tolist()
    cuts = [0, len(order) // 2, 2 * len(order) // 3, len(order)]
    out = []
    for part, n_queries in enumerate(sizes):
        pool = order[cuts[part] : cuts[part + 1]]
        asked = rng.choice(len(pool), size=n_queries, replace=False).tolist()
        shown, features, relevance = [], [], []
        for query in asked:
            others = [image for place, image in enumerate(pool) if place != query]
            row = [others[i] for i in rng.choice(len(others), size=candidates, replace=False).tolist()]
            shown.append(row)
            for image in row:
                features.append([abs(a - b) for a, b in zip(images[pool[query]], images[image], strict=True)])
                relevance.append(int(labels[pool[query]] == labels[image]))
        out.append(([pool[query] for query in asked], shown, features, relevance))
    return out


def svmlight_text(features: Matrix, grades: Ints, queries: Ints) -> str:
    """SVMlight lines with every feature, and a comment at the end of each."""
    lines = []
    for row, grade, query in zip(features, grades, queries, strict=True):
        values = " ".join(f"{i}:{value!r}" for i, value in enumerate(map(float, row), start=1))
        lines.append(f"{grade} qid:{query} {values} # document {len(lines)}\n")
    return "".join(lines)


def svmlight_parse(text: str, n_features: int) -> tuple[list[list[float]], list[int], list[int]]:
    """Features, grades and offsets of SVMlight lines whose queries stand together."""
    features, grades, offsets, last = [], [], [0], None
    for line in text.splitlines():
        label, qid, *pairs = line.split("#")[0].split()
        row = [0.0] * n_features
        for pair in pairs:
            index, value = pair.split(":")
            row[int(index) - 1] = float(value)
        if last is not None and qid != last:
            offsets.append(len(features))
        last = qid
        features.append(row)
        grades.append(int(float(label)))
    return features, grades, [*offsets, len(features)]


def collection_layout(names: Sequence[str], seed: int) -> list[list[str]]:
    """Which files of a collection make train, validation and test."""
    fold = seed % 5
    parts = [f"S{(fold + i) % 5 + 1}" for i in range(5)]
    if all(part in names for part in parts):
        return [parts[:3], [parts[3]], [parts[4]]]
    for triple in (("train", "vali", "test"), ("train", "valid", "test"), ("set1.train", "set1.valid", "set1.test")):
        if all(name in names for name in triple):
            return [[name] for name in triple]
    raise LookupError(names)


def split_queries(n_queries: int, seed: int) -> list[list[int]]:
    """60 / 20 / 20 of a single file, each part in the order of the file."""
    order = np.random.default_rng([seed, 20]).permutation(n_queries).tolist()
    first, second = round(0.6 * n_queries), round(0.8 * n_queries)
    return [sorted(order[:first]), sorted(order[first:second]), sorted(order[second:])]


# --- sweeps ----------------------------------------------------------------------------------------------


def uniforms(entropy: list[int], n: int) -> list[float]:
    """n uniform draws of the generator seeded with ``entropy``, one by one."""
    rng = np.random.default_rng(entropy)
    return [float(rng.random()) for _ in range(n)]


def each_seed(seeds: list[int], settings: list[dict[str, float]], stream: list[int]) -> list[list[dict[str, object]]]:
    """The results of ``test_sweeps.experiment`` for every seed and setting, by nested loops."""
    out: list[list[dict[str, object]]] = []
    for seed in seeds:
        row: list[dict[str, object]] = []
        for setting in settings:
            draws = uniforms([seed, *stream], 3)
            total = 0.0
            for draw in draws:
                total += draw * setting["eta"]
            row.append({"sum": total, "draws": draws, "seed": seed, "eta": setting["eta"]})
        out.append(row)
    return out


def run_log(seed: int, stream: int, click_chance: list[float], cuts: list[int], n_clicks: float) -> list[list[int]]:
    """Sessions of each query and clicks of each document, when every list is shown whole in its own order.

    S = round(n_clicks / clicks expected of a session); the sessions draw their queries, then the clicks are drawn.
    """
    n_queries = len(cuts) - 1
    per_session = 0.0
    for chance in click_chance:
        per_session += chance / n_queries
    rng = np.random.default_rng([seed, stream])
    sessions = rng.multinomial(round(n_clicks / per_session), [1 / n_queries] * n_queries)
    shown = []
    for q in range(n_queries):
        shown += [int(sessions[q])] * (cuts[q + 1] - cuts[q])
    return [[int(s) for s in sessions], [int(c) for c in rng.binomial(shown, click_chance)]]


def replaced_once(text: str, old: str, new: str) -> str:
    """``text`` with the only occurrence of ``old`` replaced."""
    before, found, after = text.partition(old)
    assert found
    assert old not in after
    return before + new + after


def texts(folder: str) -> dict[str, str]:
    """Name and text of every file below a folder that is text."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as stream:
                content = stream.read()
            if not name.endswith(".png"):
                found[name] = content.decode("utf-8")
    return found


def raw_bytes(rows: list[list[float]]) -> bytes:
    """Numbers in double precision, one after the other."""
    out = b""
    for row in rows:
        for number in row:
            out += np.float64(number).tobytes()
    return out


def same(a: object, b: object) -> bool:
    """True when two values have the same types and the same numbers, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and same(a.tolist(), b.tolist())
    return repr(a) == repr(b)


def seeds_of(first: int, number: int) -> list[int]:
    """``number`` seeds, one after the other."""
    out: list[int] = []
    while len(out) < number:
        out.append(first + len(out))
    return out


def count_words(words: list[str]) -> dict[str, int]:
    """How often each word stands in a list."""
    out: dict[str, int] = {}
    for word in words:
        out[word] = out.get(word, 0) + 1
    return out


def neighbours(sizes: Ints, limit: int) -> list[list[int]]:
    """Positions put together one by one, as long as their sizes add up to at most ``limit``."""
    parts: list[list[int]] = []
    total = 0
    for i, size in enumerate(sizes):
        if not parts or total + size > limit:
            parts.append([])
            total = 0
        parts[-1].append(i)
        total += size
    return parts


# --- stochastic gradient descent and its convergence ------------------------------------------------------------


def single_weights(clicks: Ints, propensity: Floats) -> list[float]:
    """The weight 1/p of each single click."""
    return [1.0 / p for c, p in zip(clicks, propensity, strict=True) for _ in range(c)]


def weight_constants(clicks: Ints, propensity: Floats) -> tuple[float, float, float]:
    """Mean, root mean square and maximum of the weights, click by click."""
    weights = single_weights(clicks, propensity)
    mean = math.fsum(weights) / len(weights)
    return mean, math.sqrt(math.fsum(w * w for w in weights) / len(weights)), max(weights)


def second_moments(weights: Floats, norms: Floats, counts: Ints) -> tuple[float, float, float]:
    """E‖g‖² of IPS-SGD and of CounterSample click by click, and Cov(w, w‖∇f‖²)."""
    w = [a for a, c in zip(weights, counts, strict=True) for _ in range(c)]
    square = [a * a for a, c in zip(norms, counts, strict=True) for _ in range(c)]
    n, total = len(w), math.fsum(w)
    uniform = math.fsum((wi * wi * s) / n for wi, s in zip(w, square, strict=True))
    weighted = math.fsum((wi / total) * (total / n) ** 2 * s for wi, s in zip(w, square, strict=True))
    mean_w, mean_ws = total / n, math.fsum(wi * s for wi, s in zip(w, square, strict=True)) / n
    covariance = math.fsum((wi - mean_w) * (wi * s - mean_ws) for wi, s in zip(w, square, strict=True)) / n
    return uniform, weighted, covariance


def smoothed_hinges(
    scores: Floats, offsets: Ints, terms: Mapping[int, float], centres: Mapping[tuple[int, int], float], width: float
) -> tuple[float, float, float, list[float], list[tuple[int, int]]]:
    """Of clicked documents with their mass: hinge sums, the same smoothed, the slopes summed, the force, bent pairs.

    A hinge of z is smoothed around its centre c: a z − (width/2) (a² − 2ac) with a = clip(c + z/width, 0, 1).
    """
    exact = smooth = dual = 0.0
    force, bent = [0.0] * len(scores), []
    for d, mass in terms.items():
        for y in rivals(offsets, d):
            z, c = 1 - (scores[d] - scores[y]), centres[d, y]
            a = min(max(c + z / width, 0.0), 1.0)
            exact += mass * max(z, 0.0)
            smooth += mass * (a * z - width / 2 * (a * a - 2 * a * c))
            dual += mass * a
            force[d] += mass * a
            force[y] -= mass * a
            bent += [(d, y)] * (0.0 < c + z / width < 1.0)
    return exact, smooth, dual, force, bent


def hinge_risk(features: Matrix, offsets: Ints, document: int, w: Floats) -> float:
    """1 + Σ_{y ≠ d} max(0, 1 − ⟨w, x_d − x_y⟩)."""
    total = 1.0
    for y in next(documents for documents in lists(offsets) if document in documents):
        if y != document:
            margin = math.fsum(a * (b - c) for a, b, c in zip(w, features[document], features[y], strict=True))
            total += max(0.0, 1.0 - margin)
    return total


def hinge_gradient(features: Matrix, offsets: Ints, document: int, w: Floats) -> list[float]:
    """Σ (x_y − x_d) over the documents y ≠ d of the list with ⟨w, x_d − x_y⟩ < 1."""
    out = [0.0] * len(w)
    for y in next(documents for documents in lists(offsets) if document in documents):
        if y != document:
            margin = sum(a * (b - c) for a, b, c in zip(w, features[document], features[y], strict=True))
            if margin < 1:
                out = [o + b - c for o, b, c in zip(out, features[y], features[document], strict=True)]
    return out


def largest_gradient(features: Matrix, offsets: Ints, document: int) -> float:
    """Σ ‖x_y − x_d‖ over the other documents of the list."""
    documents = next(documents for documents in lists(offsets) if document in documents)
    return math.fsum(math.dist(features[y], features[document]) for y in documents)


def sgd(
    features: Matrix,
    offsets: Ints,
    batches: Sequence[Sequence[tuple[int, float]]],
    learning_rate: float,
    optimizer: str,
) -> tuple[list[float], list[float], int]:
    """(last weights, average of the weights before each step, documents scored); a batch holds (document, scale)."""
    d = len(features[0])
    w, total, first, second = [0.0] * d, [0.0] * d, [0.0] * d, [0.0] * d
    scored = 0
    for step, batch in enumerate(batches, start=1):
        total = [a + b for a, b in zip(total, w, strict=True)]
        gradient = [0.0] * d
        for document, scale in batch:
            one = hinge_gradient(features, offsets, document, w)
            gradient = [a + scale * b / len(batch) for a, b in zip(gradient, one, strict=True)]
            scored += next(len(documents) for documents in lists(offsets) if document in documents)
        for j, g in enumerate(gradient):
            if optimizer == "sgd":
                w[j] -= learning_rate * g
            elif optimizer == "adagrad":
                second[j] += g**2
                w[j] -= learning_rate * g / (math.sqrt(second[j]) + 1e-10)
            else:
                first[j] = 0.9 * first[j] + (1 - 0.9) * g
                second[j] = 0.999 * second[j] + (1 - 0.999) * g**2
                up, down = first[j] / (1 - 0.9**step), second[j] / (1 - 0.999**step)
                w[j] -= learning_rate * up / (math.sqrt(down) + 1e-8)
    return w, [a / len(batches) for a in total], scored


def implied(keep: Floats, alias: Ints) -> list[float]:
    """The probability of each category under an alias table, column by column."""
    out = [0.0] * len(keep)
    for j, (own, other) in enumerate(zip(keep, alias, strict=True)):
        out[j] += own / len(keep)
        out[other] += (1 - own) / len(keep)
    return out


def alias_draws(keep: Floats, alias: Ints, size: int, seed: int) -> list[int]:
    """``size`` columns and then ``size`` comparisons from one generator."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(len(keep), size=size).tolist()
    return [j if u < keep[j] else alias[j] for j, u in zip(columns, rng.random(size).tolist(), strict=True)]


def least_on_a_line(features: Floats, offsets: Ints, mass: Floats) -> tuple[float, float]:
    """(w*, R(w*)) for a single feature: R is piecewise linear and convex, so that the least is at a kink."""
    members = {d: documents for documents in lists(offsets) for d in documents}
    rows = [[x] for x in features]
    kinks = {0.0}
    for d, m in enumerate(mass):
        kinks |= {1 / (features[d] - features[y]) for y in members[d] if m and features[d] != features[y]}
    risks = [
        (math.fsum(m * hinge_risk(rows, offsets, d, [w]) for d, m in enumerate(mass) if m), abs(w), w) for w in kinks
    ]
    risk, _, w = min(risks)
    return w, risk


def time_average(steps: Ints, values: Floats) -> float:
    """Mean over the steps, each with the value of the next record."""
    by_step = [next(v for s, v in zip(steps, values, strict=True) if s >= t) for t in range(1, steps[-1] + 1)]
    return math.fsum(by_step) / len(by_step)


def passed_marks(n_clicks: int, batch: int, epochs: int, every: int) -> list[int]:
    """Steps after which at least 0, every, 2 every, … clicks, or all of them, have been drawn, click after click."""
    out, drawn, step, mark = [0], 0, 0, every
    while drawn < n_clicks * epochs:
        step, drawn = step + 1, drawn + batch
        if drawn >= min(mark, n_clicks * epochs):
            out.append(step)
            while mark <= drawn:
                mark += every
    return out


def dealt(counts: Ints, runs: int, batch: int, steps: int, seed: int) -> list[list[list[int]]]:
    """steps × runs × batch cards of a deck that is shuffled for every run, and again when it is used up."""
    rng = np.random.default_rng(seed)
    streams: list[list[int]] = [[] for _ in range(runs)]
    while len(streams[0]) < steps * batch:
        for stream in streams:
            cards = [i for i, c in enumerate(counts) for _ in range(c)]
            rng.shuffle(cards)
            stream += cards
    return [[stream[t * batch : (t + 1) * batch] for stream in streams] for t in range(steps)]


def sgd_laws(clicks: Ints, propensity: Floats) -> dict[str, tuple[list[float], list[float]]]:
    """P(term) and the factor of its gradient for the three methods, from single clicks."""
    n = sum(clicks)
    mean = math.fsum(c / p for c, p in zip(clicks, propensity, strict=True)) / n
    share = [c / n for c in clicks]
    inverse = [1 / p for p in propensity]
    tilted = [c / p / (n * mean) for c, p in zip(clicks, propensity, strict=True)]
    ones = [1.0] * len(share)
    return {"biased": (share, ones), "ips": (share, inverse), "countersample": (tilted, [mean] * len(share))}


def query_law(features: Matrix, offsets: Ints, documents: Ints, clicks: Ints, propensity: Floats) -> list[float]:
    """(1/n) Σ Σ_y ‖x_y − x_d‖ / p over the single clicks of each query."""
    n = sum(clicks)
    law = [0.0] * (len(offsets) - 1)
    for q, members in enumerate(lists(offsets)):
        for d, c, p in zip(documents, clicks, propensity, strict=True):
            for _ in range(c if d in members else 0):
                law[q] += sum(math.dist(features[y], features[d]) for y in members) / p / n
    return law


def query_factor(mass: Floats, offsets: Ints, law: Floats) -> list[float]:
    """mass / P(q) of each document, with P(q) = law / Σ law; 0 for a query that is never drawn."""
    total = math.fsum(law)
    return [
        mass[d] * total / law[q] if law[q] > 0 else 0.0 for q, documents in enumerate(lists(offsets)) for d in documents
    ]


def query_gradient(
    features: Matrix, offsets: Ints, documents: Ints, mass: Floats, query: int, w: Floats
) -> list[float]:
    """Σ mass ∇f over the clicked ``documents`` of one query."""
    out = [0.0] * len(w)
    for d, m in zip(documents, mass, strict=True):
        if d in lists(offsets)[query]:
            out = [a + m * b for a, b in zip(out, hinge_gradient(features, offsets, d, w), strict=True)]
    return out


def bound_of_theorem(radius: float, gradient: float, scale: float, steps: int, rate: float) -> float:
    """B²/(2αT) + (α/2)(scale · G)², the right-hand side of Eq. 16 before the learning rate is put in."""
    return radius**2 / (2 * rate * steps) + rate / 2 * (scale * gradient) ** 2


def sequences(
    gradient: Callable[[int, list[float]], list[float]],
    probability: Floats,
    scale: Floats,
    rate: float,
    steps: int,
    d: int,
) -> list[tuple[float, list[list[float]], list[list[float]]]]:
    """(probability, w_1 … w_T, g_1 … g_T) of every sequence of indices, the first index slowest."""
    out = []
    for indices in itertools.product(range(len(probability)), repeat=steps):
        w, path, sampled = [0.0] * d, [], []
        for i in indices:
            g = [scale[i] * a for a in gradient(i, w)]
            path.append(w)
            sampled.append(g)
            w = [a - rate * b for a, b in zip(w, g, strict=True)]
        out.append((math.prod(probability[i] for i in indices), path, sampled))
    return out


def inner(u: Floats, v: Floats) -> float:
    return math.fsum(a * b for a, b in zip(u, v, strict=True))


def ladder(
    runs: list[tuple[float, list[list[float]], list[list[float]]]],
    risk: Callable[[list[float]], float],
    risk_gradient: Callable[[list[float]], list[float]],
    star: list[float],
    rate: float,
    radius: float,
    largest: float,
    moment: float,
) -> tuple[list[float], list[float]]:
    """The seven expectations of the proof and its four smallest slacks, run after run."""
    best = risk(star)
    sums = [0.0] * 5
    slack = [math.inf] * 4
    for chance, path, sampled in runs:
        t = len(path)
        average = [math.fsum(w[j] for w in path) / t for j in range(len(star))]
        risks = [risk(w) for w in path]
        away = [[a - b for a, b in zip(w, star, strict=True)] for w in path]
        exact = [inner(v, risk_gradient(w)) for v, w in zip(away, path, strict=True)]
        noisy = [inner(v, g) for v, g in zip(away, sampled, strict=True)]
        squares = [inner(g, g) for g in sampled]
        lemma = inner(star, star) / (2 * rate) + rate / 2 * math.fsum(squares)
        values = (
            risk(average) - best,
            math.fsum(risks) / t - best,
            math.fsum(exact) / t,
            math.fsum(noisy) / t,
            lemma / t,
        )
        sums = [s + chance * v for s, v in zip(sums, values, strict=True)]
        found = (
            math.fsum(risks) / t - risk(average),
            min(e - (r - best) for e, r in zip(exact, risks, strict=True)),
            lemma - math.fsum(noisy),
            largest - math.sqrt(max(squares)),
        )
        slack = [min(a, b) for a, b in zip(slack, found, strict=True)]
    t = len(runs[0][1])
    start = radius**2 / (2 * rate * t)
    return [*sums, start + rate / 2 * moment, start + rate / 2 * largest**2], slack


# --- surrogate bounds and ranking machines ----------------------------------------------------------------


def surrogate(gap: float, kind: str = "hinge", sigma: float = 1.0, smoothing: float = 0.0) -> float:
    """What stands for 1[s_y >= s_d], as a function of gap = s_d − s_y."""
    if kind == "logistic":
        x = -sigma * gap
        return (math.log1p(math.exp(x)) if x < 0 else x + math.log1p(math.exp(-x))) / math.log(2)
    z = 1 - gap
    if z <= -smoothing / 2:
        return 0.0
    if z >= smoothing / 2:
        return z
    return smoothing / 2 * (0.5 + z / smoothing) ** 2


def surrogate_slope(gap: float, kind: str = "hinge", sigma: float = 1.0, smoothing: float = 0.0) -> float:
    """Minus its derivative in the gap, 0 at the kink of the hinge."""
    if kind == "logistic":
        x = -sigma * gap
        return sigma / math.log(2) * (1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x)))
    z = 1 - gap
    if z <= -smoothing / 2:
        return 0.0
    if z >= smoothing / 2:
        return 1.0
    return 0.5 + z / smoothing


def rivals(offsets: Ints, d: int) -> list[int]:
    """The other documents of the list of ``d``."""
    return [y for documents in lists(offsets) if d in documents for y in documents if y != d]


def surrogate_sums(
    scores: Floats, offsets: Ints, documents: Ints, kind: str = "hinge", sigma: float = 1.0, smoothing: float = 0.0
) -> list[float]:
    """S_d of each of ``documents``, the rank bound without its 1."""
    out = []
    for d in documents:
        out.append(math.fsum(surrogate(scores[d] - scores[y], kind, sigma, smoothing) for y in rivals(offsets, d)))
    return out


def bound(
    scores: Floats,
    offsets: Ints,
    documents: Ints,
    weights: Floats,
    weight: Weight,
    slope: Weight,
    kind: str = "hinge",
    sigma: float = 1.0,
    smoothing: float = 0.0,
) -> tuple[float, list[float]]:
    """Σ_t weights_t λ(1 + S_t) and its derivative in every score."""
    sums = surrogate_sums(scores, offsets, documents, kind, sigma, smoothing)
    gradient = [0.0] * len(scores)
    for d, c, total in zip(documents, weights, sums, strict=True):
        for y in rivals(offsets, d):
            pull = c * slope(1 + total) * surrogate_slope(scores[d] - scores[y], kind, sigma, smoothing)
            gradient[d] -= pull
            gradient[y] += pull
    return math.fsum(c * weight(1 + total) for c, total in zip(weights, sums, strict=True)), gradient


def dcg_slope(rank: float) -> float:
    return math.log(2) / ((1 + rank) * math.log(1 + rank) ** 2)


def derivative(weight: Weight, rank: float, step: float = 1e-3) -> float:
    """λ′ by two central differences and Richardson's extrapolation."""

    def central(h: float) -> float:
        return (weight(rank + h) - weight(rank - h)) / (2 * h)

    return (4 * central(step / 2) - central(step)) / 3


def curvature(weight: Weight, longest: int) -> str:
    """ "linear", "convex", "concave", "decreasing" or "neither", from slopes of λ between neighbouring ranks."""
    slopes = [weight(r + 1.0) - weight(float(r)) for r in range(1, longest)]
    turns = [b - a for a, b in itertools.pairwise(slopes)]
    if min(slopes) < -1e-12:
        return "decreasing"
    if max(map(abs, turns)) < 1e-12:
        return "linear"
    if min(turns) >= -1e-12:
        return "convex"
    return "concave" if max(turns) <= 1e-12 else "neither"


def click_masses(document: Ints, clicks: Ints, propensity: Floats, C: float) -> dict[int, float]:
    """c_d = (C/n) Σ 1/p over the single clicks on each document, n clicks in all; only clicked documents."""
    n = sum(clicks)
    out: dict[int, float] = {}
    for d, count, p in sorted(zip(document, clicks, propensity, strict=True)):
        for _ in range(int(count)):
            out[int(d)] = out.get(int(d), 0.0) + C / n / p
    return out


def by_name(rows: Sequence[Mapping[str, float]], names: Sequence[str], w: Floats) -> list[float]:
    """Σ over the names of the weight times the column of that name, row by row."""
    return [math.fsum(float(a) * float(row[name]) for name, a in zip(names, w, strict=True)) for row in rows]


def is_examined(propensity: Floats, said: bool) -> bool:
    """Whether somebody said who examines a log: a propensity other than 1 says so too."""
    for p in propensity:
        if p != 1:
            return True
    return said


def linear_scores(features: Matrix, w: Floats) -> list[float]:
    return [math.fsum(float(a) * float(b) for a, b in zip(x, w, strict=True)) for x in features]


def machine(
    features: Matrix, offsets: Ints, masses: dict[int, float], w: Floats, weight: Weight = lambda rank: rank - 1
) -> float:
    """½‖w‖² + Σ_d c_d λ(1 + S_d(w)); by default λ(1 + S) = S, the ranking SVM."""
    s = linear_scores(features, w)
    sums = surrogate_sums(s, offsets, list(masses))
    loss = math.fsum(c * weight(1 + total) for c, total in zip(masses.values(), sums, strict=True))
    return 0.5 * math.fsum(float(a) ** 2 for a in w) + loss


def svm_pairs(features: Matrix, offsets: Ints, masses: dict[int, float]) -> list[tuple[list[float], float, int]]:
    """x_d − x_y, its weight c_d and the number of its term, for every clicked d and every other y of its list."""
    out = []
    for t, (d, c) in enumerate(masses.items()):
        for y in rivals(offsets, d):
            out.append(([float(a) - float(b) for a, b in zip(features[d], features[y], strict=True)], c, t))
    return out


def dual_bound(pairs: Sequence[tuple[list[float], float, int]], a: Floats, n_features: int) -> float:
    """Σ a − ½‖Σ a (x_d − x_y)‖², a lower bound on the ranking SVM for every 0 ≤ a ≤ c."""
    v = [math.fsum(b * x[i] for (x, _, _), b in zip(pairs, a, strict=True)) for i in range(n_features)]
    return math.fsum(a) - 0.5 * math.fsum(value**2 for value in v)


def snips(scores: Floats, offsets: Ints, document: Ints, clicks: Ints, propensity: Floats, weight: Weight) -> float:
    """Σ λ(rank) / p divided by Σ 1 / p over single clicks."""
    lam = rank_weights(scores, offsets, weight)
    above, below = [], []
    for d, count, p in zip(document, clicks, propensity, strict=True):
        above += [lam[d] / p] * int(count)
        below += [1 / p] * int(count)
    return math.fsum(above) / math.fsum(below)


# --- networks ---------------------------------------------------------------------------------------------


def network(x: Floats, weights: dict[str, list], kind: str) -> float:
    """b + Σ_h v_h a(u_h · x + c_h), with the names that torch gives to u, c, v and b."""
    total = weights["2.bias"][0]
    for u, c, v in zip(weights["0.weight"], weights["0.bias"], weights["2.weight"][0], strict=True):
        z = math.fsum(a * b for a, b in zip(u, x, strict=True)) + c
        total += v * {"sigmoid": 1 / (1 + math.exp(-z)), "tanh": math.tanh(z), "relu": max(z, 0.0)}[kind]
    return total


def batches_of(queries: Ints, offsets: Ints, size: int) -> list[list[int]]:
    """Lists in their order; one begins a new batch when it begins in another stretch of ``size`` documents."""
    out: list[list[int]] = []
    documents, stretch = 0, -1
    for q in queries:
        if documents // size != stretch:
            stretch = documents // size
            out.append([])
        out[-1].append(q)
        documents += offsets[q + 1] - offsets[q]
    return out


def rates(schedule: Sequence[tuple[int, float]], n: int) -> list[float]:
    """The rate of each of ``n`` epochs: every rate as often as it says, the last for all that are left."""
    out = [rate for length, rate in schedule for _ in range(length)]
    return (out + [schedule[-1][1]] * n)[:n]


def descent(
    features: Matrix,
    offsets: Ints,
    masses: dict[int, float],
    w: Floats,
    rates: Floats,
    decay: float,
    weight: Weight,
    slope: Weight,
    frozen: int | None = None,
    form: tuple[str, float] = ("hinge", 1.0),
) -> tuple[list[float], list[float]]:
    """Gradient descent on F(w) + (decay/2)‖w‖² for a linear scorer: the weights after it, F at each step.

    With ``frozen`` the prices c λ′(1 + S) are those of the last step whose number is a multiple of it.
    """
    w, values = list(w), []
    terms, mass = list(masses), list(masses.values())
    for step, rate in enumerate(rates):
        s = linear_scores(features, w)
        values.append(bound(s, offsets, terms, mass, weight, slope, *form)[0])
        if frozen is None or step % frozen == 0:
            sums = surrogate_sums(s, offsets, terms, *form)
            prices = [c * slope(1 + total) for c, total in zip(mass, sums, strict=True)]
        pull = bound(s, offsets, terms, prices, lambda r: r, lambda r: 1.0, *form)[1]
        for i in range(len(w)):
            w[i] -= rate * (math.fsum(p * float(x[i]) for p, x in zip(pull, features, strict=True)) + decay * w[i])
    return w, values


# --- LambdaLoss -------------------------------------------------------------------------------------------


def pair_weight(rank: int, other: int, k: int | None, truncation: str) -> float:
    """ω of two ranks: the step between the discounts of neighbouring ranks, at the difference of the two."""
    m = abs(rank - other)
    step = 1.0 / math.log2(1.0 + m) - 1.0 / math.log2(2.0 + m)
    if k is None:
        return step
    if truncation == "at_least_one":
        return step if rank <= k or other <= k else 0.0
    if truncation == "both":
        return step if rank <= k and other <= k else 0.0
    worse = max(rank, other)
    return step / (1.0 - 1.0 / math.log2(1.0 + worse)) if worse > k else step


def logistic_loss(gap: float, sigma: float) -> tuple[float, float, float]:
    """log₂(1 + exp(−σ gap)), its slope and its curvature."""
    x = sigma * gap
    p = 1.0 / (1.0 + math.exp(x)) if x < 0 else math.exp(-x) / (1.0 + math.exp(-x))
    value = math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x)) - x
    return value / math.log(2), -sigma * p / math.log(2), sigma**2 * p * (1.0 - p) / math.log(2)


def lambda_loss(
    scores: Floats,
    offsets: Ints,
    gains: Floats,
    k: int | None,
    truncation: str = "at_least_one",
    form: str = "linear",
    sigma: float = 1.0,
) -> tuple[float, list[float], list[float]]:
    """Value, gradient and second derivatives, each the mean over all orders of the tied documents of a list."""
    value, gradient, hessian = 0.0, [0.0] * len(scores), [0.0] * len(scores)
    for documents in lists(offsets):
        found = list(orders([scores[d] for d in documents]))
        for order in found:
            for i, d in enumerate(documents):
                for j, other in enumerate(documents):
                    if d == other:
                        continue
                    gain = gains[d] if form == "linear" else max(gains[d] - gains[other], 0.0)
                    weight = gain * pair_weight(order.index(i) + 1, order.index(j) + 1, k, truncation) / len(found)
                    loss, slope, bend = logistic_loss(scores[d] - scores[other], sigma)
                    value += weight * loss
                    gradient[d] += weight * slope
                    gradient[other] -= weight * slope
                    hessian[d] += weight * bend
                    hessian[other] += weight * bend
    return value, gradient, hessian


def far_apart(scores: Floats, sigma: float) -> float:
    """Twice the largest |s|, times σ."""
    largest = 0.0
    for s in scores:
        largest = max(largest, abs(s))
    return 2.0 * sigma * largest


def missed(k: int | None, truncation: str) -> Weight:
    """What the pairs with all documents above a rank weigh together."""
    return lambda rank: math.fsum(pair_weight(int(rank), other, k, truncation) for other in range(1, int(rank)))


def click_gains(document: Ints, clicks: Ints, propensity: Floats, sessions: Ints, offsets: Ints) -> list[float]:
    """Σ clicks / p of each document over the sessions of its query."""
    out = [0.0] * int(offsets[-1])
    for d, count, p in zip(document, clicks, propensity, strict=True):
        if count:
            out[d] += count / p / sessions[list_of(d, offsets)]
    return out


def lambda_adam(
    features: Matrix,
    offsets: Ints,
    gains: Floats,
    w: Floats,
    rates: Floats,
    decay: float,
    k: int | None,
    truncation: str,
    form: str,
    spread: Floats,
) -> tuple[list[list[float]], list[float]]:
    """Adam on w_j · spread_j, one step for each rate: the weights after each, and the loss that each step found."""
    w, first, second = list(w), [0.0] * len(w), [0.0] * len(w)
    weights, values = [], []
    for t, rate in enumerate(rates, start=1):
        value, pull, _ = lambda_loss(linear_scores(features, w), offsets, gains, k, truncation, form)
        values.append(value)
        for j in range(len(w)):
            g = (math.fsum(p * float(x[j]) for p, x in zip(pull, features, strict=True)) + decay * w[j]) / spread[j]
            first[j] = 0.9 * first[j] + 0.1 * g
            second[j] = 0.999 * second[j] + 0.001 * g**2
            step = first[j] / (1.0 - 0.9**t) / (math.sqrt(second[j] / (1.0 - 0.999**t)) + 1e-8)
            w[j] -= rate * step / spread[j]
        weights.append(list(w))
    return weights, values


# --- where propensities come from ---------------------------------------------------------------------------

# A row: query, period, document, rank, impressions, clicks.  A stratum: {rank: (impressions, clicks)}.
Row = tuple[int, int, int, int, int, int]
Stratum = dict[int, tuple[float, float]]


def strata(rows: Sequence[Row]) -> dict[tuple[int, int, int], Stratum]:
    """The ranks of each (query, period, document), in this order."""
    out: dict[tuple[int, int, int], Stratum] = {}
    for query, period, document, rank, impressions, clicks in sorted(rows):
        out.setdefault((query, period, document), {})[rank] = (impressions, clicks)
    return out


def count_fault(rows: Sequence[Row]) -> tuple[str, int] | None:
    """The first rule that a row breaks, and the row: of a repeated row the later one."""
    for name, holds in (
        ("rank", lambda row: row[3] >= 1),
        ("impressions", lambda row: row[4] >= 1),
        ("clicks", lambda row: row[5] <= row[4]),
    ):
        for i, row in enumerate(rows):
            if not holds(row):
                return name, i
    for key in sorted({row[:4] for row in rows}):
        same = [i for i, row in enumerate(rows) if row[:4] == key]
        if len(same) > 1:
            return "rank", same[1]
    return None


def counted_rows(query: Ints, period: Ints, document: Ints, rank: Ints, clicked: Ints) -> list[Row]:
    """Displays and clicks of each (query, period, document, rank), one row of the log at a time."""
    out: dict[tuple[int, int, int, int], list[int]] = {}
    for q, p, d, r, c in zip(query, period, document, rank, clicked, strict=True):
        cell = out.setdefault((q, p, d, r), [0, 0])
        cell[0] += 1
        cell[1] += c
    return [(*key, *cell) for key, cell in sorted(out.items())]


def reached(arcs: Matrix, start: int) -> set[int]:
    """Nodes that a walk along positive arcs can visit."""
    seen, waiting = {start}, [start]
    while waiting:
        k = waiting.pop()
        for j, arc in enumerate(arcs[k]):
            if arc > 0 and j not in seen:
                seen.add(j)
                waiting.append(j)
    return seen


def components(arcs: Matrix, strong: bool) -> list[int]:
    """Components, numbered by their first node; strong: each node reaches the other."""
    n = len(arcs)
    if not strong:
        arcs = [[arcs[k][j] + arcs[j][k] for j in range(n)] for k in range(n)]
    reach = [reached(arcs, k) for k in range(n)]
    label: list[int] = []
    for k in range(n):
        mates = [j for j in range(k) if j in reach[k] and k in reach[j]]
        label.append(label[mates[0]] if mates else max(label, default=-1) + 1)
    return label


def rank_arcs(groups: Sequence[Stratum], n_ranks: int) -> tuple[list[list[int]], list[list[int]]]:
    """For two ranks: the strata shown at both, and the clicks of these at the first."""
    shown = [[0] * n_ranks for _ in range(n_ranks)]
    clicked = [[0] * n_ranks for _ in range(n_ranks)]
    for group in groups:
        for k, j in itertools.permutations(group, 2):
            shown[k - 1][j - 1] += 1
            clicked[k - 1][j - 1] += int(group[k][1])
    return shown, clicked


def cut_clicks(groups: Sequence[Stratum], side: Ints, others: Ints) -> int:
    """Clicks at the ranks of a side, and at the others, in strata that were shown on both; the smaller number."""
    inside = outside = 0
    for group in groups:
        if any(k in group for k in side) and any(k in group for k in others):
            inside += sum(int(group[k][1]) for k in group if k in side)
            outside += sum(int(group[k][1]) for k in group if k in others)
    return min(inside, outside)


def parts(label: Ints) -> list[list[int]]:
    """Ranks, from 1, that carry one label."""
    return [[k + 1 for k, other in enumerate(label) if other == group] for group in dict.fromkeys(label)]


def rank_words(ranks: Ints) -> str:
    """``rank 7``, ``ranks 1–3, 5``."""
    pieces = []
    for k in ranks:
        if k - 1 in ranks:
            continue
        last = k
        while last + 1 in ranks:
            last += 1
        pieces.append(str(k) if last == k else f"{k}–{last}")
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(pieces)


def speaking(groups: Sequence[Stratum], ranks: Ints) -> list[Stratum]:
    """The strata cut down to some ranks, if two of these and a click are left."""
    cut = [{k: cell for k, cell in group.items() if k in ranks} for group in groups]
    return [group for group in cut if len(group) > 1 and sum(c for _, c in group.values()) > 0]


def stratum_shares(group: Stratum, u: dict[int, float]) -> dict[int, float]:
    """π_k = n_k e^{u_k} / Σ n_j e^{u_j}."""
    mass = {k: n * math.exp(u[k]) for k, (n, _) in group.items()}
    return {k: mass[k] / math.fsum(mass.values()) for k in group}


def conditional_value(groups: Sequence[Stratum], u: dict[int, float]) -> float:
    """ℓ = Σ c u − Σ C log Σ n e^u."""
    total = 0.0
    for group in groups:
        total += math.fsum(c * u[k] for k, (_, c) in group.items())
        total -= math.fsum(c for _, c in group.values()) * math.log(
            math.fsum(n * math.exp(u[k]) for k, (n, _) in group.items())
        )
    return total


def conditional_gradient(groups: Sequence[Stratum], u: dict[int, float], ranks: Ints) -> list[float]:
    """Σ_s (c_sk − C_s π_sk)."""
    out = dict.fromkeys(ranks, 0.0)
    for group in groups:
        share, clicks = stratum_shares(group, u), math.fsum(c for _, c in group.values())
        for k, (_, c) in group.items():
            out[k] += c - clicks * share[k]
    return list(out.values())


def conditional_curvature(groups: Sequence[Stratum], u: dict[int, float], ranks: Ints) -> list[list[float]]:
    """Σ_s C_s (1[k = j] π_sk − π_sk π_sj)."""
    out = [[0.0] * len(ranks) for _ in ranks]
    for group in groups:
        share, clicks = stratum_shares(group, u), math.fsum(c for _, c in group.values())
        for a, k in enumerate(ranks):
            for b, j in enumerate(ranks):
                if k in group and j in group:
                    out[a][b] += clicks * ((k == j) * share[k] - share[k] * share[j])
    return out


def conditional_fit(groups: Sequence[Stratum], ranks: Ints, rounds: int = 20_000) -> dict[int, float]:
    """The maximum by Zermelo's iteration: θ_k ← Σ c_sk / Σ C_s n_sk / Z_s, then θ of the first rank is set to 1."""
    theta = dict.fromkeys(ranks, 1.0)
    for _ in range(rounds):
        above, below = dict.fromkeys(ranks, 0.0), dict.fromkeys(ranks, 0.0)
        for group in groups:
            z = math.fsum(n * theta[k] for k, (n, _) in group.items())
            clicks = math.fsum(c for _, c in group.values())
            for k, (n, c) in group.items():
                above[k] += c
                below[k] += clicks * n / z
        new = {k: above[k] / below[k] for k in ranks}
        new = {k: value / new[ranks[0]] for k, value in new.items()}
        moved = max(abs(new[k] - theta[k]) for k in ranks)
        theta = new
        if moved < 1e-15:
            break
    return {k: math.log(theta[k]) for k in ranks}


def outer_sum(rows: Matrix, n_queries: int) -> list[list[float]]:
    """Q/(Q − 1) Σ i iᵀ."""
    width = len(rows[0])
    scale = n_queries / (n_queries - 1)
    return [[scale * math.fsum(row[a] * row[b] for row in rows) for b in range(width)] for a in range(width)]


def inverted(matrix: Matrix) -> list[list[float]]:
    """Column by column."""
    n = len(matrix)
    columns = [solve(matrix, [float(i == j) for i in range(n)]) for j in range(n)]
    return [[columns[j][i] for j in range(n)] for i in range(n)]


def sandwich(groups: dict[tuple[int, int, int], Stratum], u: dict[int, float], ranks: Ints) -> list[list[float]]:
    """H⁻¹ (Σ_q g_q g_qᵀ) H⁻¹ · Q/(Q − 1) of the ranks but the first, for which it is 0."""
    all_strata = speaking(list(groups.values()), ranks)
    h = conditional_curvature(all_strata, u, ranks)
    inverse = inverted([row[1:] for row in h[1:]])
    influence = []
    for query in sorted({key[0] for key in groups}):
        mine = speaking([group for key, group in groups.items() if key[0] == query], ranks)
        if mine:
            g = conditional_gradient(mine, u, ranks)[1:]
            influence.append([0.0, *(math.fsum(a * b for a, b in zip(row, g, strict=True)) for row in inverse)])
    return outer_sum(influence, len(influence))


def relative(values: Floats, spread: Matrix) -> tuple[list[float], list[list[float]]]:
    """Logarithms and their covariance, less those of the first: Var(u_k − u_1, u_j − u_1)."""
    n = len(values)
    table = [[spread[k][j] - spread[0][j] - spread[k][0] + spread[0][0] for j in range(n)] for k in range(n)]
    return [value - values[0] for value in values], table


def chi_square_tail(statistic: float, df: int) -> float:
    """P(χ²_df >= statistic) by the recursion over df, from erfc or exp."""
    half = statistic / 2
    tail, at = (math.erfc(math.sqrt(half)), 1) if df % 2 else (math.exp(-half), 2)
    while at < df:
        tail += math.exp(-half) * half ** (at / 2) / math.gamma(at / 2 + 1)
        at += 2
    return tail


def chi_square_quantile(level: float, df: float) -> float:
    """Below which χ²_df lies with probability ``level``: x^a e^−x Σ_n x^n / Γ(a + n + 1), a = df/2, at half of it."""

    def below(value: float) -> float:
        a, x = df / 2, value / 2
        terms = [math.exp(a * math.log(x) - x - math.lgamma(a + 1))]
        while terms[-1] > 1e-17 * terms[0] or len(terms) < x:
            terms.append(terms[-1] * x / (a + len(terms)))
        return math.fsum(terms)

    return bisect(below, level, 1e-9, 10 * df + 50)


def hotelling_tail(statistic: float, df: int, n: int) -> float:
    """P(T² >= statistic), T² = n mean' S⁻¹ mean of n normal vectors: I_x((n−df)/2, df/2), x = (n−1)/(n−1+T²).

    By Simpson's rule over φ, with sin² φ for the variable of the incomplete beta function.
    """
    a, b = (n - df) / 2, df / 2
    steps, end = 4_000, math.asin(math.sqrt((n - 1) / (n - 1 + statistic)))

    def density(phi: float) -> float:
        return float(math.sin(phi) ** (2 * a - 1) * math.cos(phi) ** (2 * b - 1))

    weighted = [(1 if i in (0, steps) else 4 if i % 2 else 2) * density(end * i / steps) for i in range(steps + 1)]
    area = math.fsum(weighted) * end / steps / 3
    return 2 * area * math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b))


def quadratic(v: Floats, matrix: Matrix) -> float:
    """vᵀ M⁻¹ v."""
    return math.fsum(a * b for a, b in zip(v, solve(matrix, v), strict=True))


PairWeight = Callable[[Stratum, int, int], float]


def harmonic(group: Stratum, k: int, j: int) -> float:
    return group[j][0] / (group[k][0] + group[j][0])


def by_document(group: Stratum, k: int, j: int) -> float:
    return 1 / group[k][0]


def pair_sums(groups: Sequence[Stratum], k: int, j: int, weight: PairWeight) -> tuple[float, float, int]:
    """Weighted clicks and misses at k of the strata shown at k and j, and how many these are."""
    both = [group for group in groups if k in group and j in group]
    clicks = math.fsum(weight(group, k, j) * group[k][1] for group in both)
    misses = math.fsum(weight(group, k, j) * (group[k][0] - group[k][1]) for group in both)
    return clicks, misses, len(both)


def two_rates(clicks: Floats, misses: Floats, theta: Floats, r: float) -> float:
    """Σ clicks log(θ r) + misses log(1 − θ r)."""
    out = 0.0
    for a, b, t in zip(clicks, misses, theta, strict=True):
        out += (a * math.log(t * r) if a else 0.0) + (b * math.log(1 - t * r) if b else 0.0)
    return out


def best_rate(clicks: Floats, misses: Floats, theta: Floats) -> float:
    """The r that maximises them, by bisection of the slope, which falls."""
    low, high = 0.0, 1 / max(theta)
    for _ in range(200):
        r = (low + high) / 2
        slope = sum(clicks) / r - sum(b * t / (1 - t * r) for b, t in zip(misses, theta, strict=True))
        low, high = (r, high) if slope > 0 else (low, r)
    return (low + high) / 2


def all_pairs_value(clicks: Matrix, misses: Matrix, u: Floats) -> float:
    """AllPairs' log-likelihood at the best r of every pair."""
    total = 0.0
    for k, j in itertools.combinations(range(len(u)), 2):
        a, b = (clicks[k][j], clicks[j][k]), (misses[k][j], misses[j][k])
        if sum(a) > 0:
            theta = (math.exp(u[k]), math.exp(u[j]))
            total += two_rates(a, b, theta, best_rate(a, b, theta))
    return total


def differences(function: Callable[[list[float]], float], at: Floats, step: float = 1e-5) -> list[float]:
    """Central differences in each argument."""
    out = []
    for i in range(len(at)):
        up, down = list(at), list(at)
        up[i] += step
        down[i] -= step
        out.append((function(up) - function(down)) / (2 * step))
    return out


def ratio_influence(
    groups: dict[tuple[int, int, int], Stratum], k: int, j: int, weight: PairWeight
) -> dict[int, float]:
    """How each query moves log(clicks at k / clicks at j) of the strata shown at both: its shares of the two sums."""
    whole = [pair_sums(list(groups.values()), *pair, weight)[0] for pair in ((k, j), (j, k))]
    out = {}
    for query in sorted({key[0] for key in groups}):
        mine = [group for key, group in groups.items() if key[0] == query]
        mine_k, mine_j = (pair_sums(mine, *pair, weight) for pair in ((k, j), (j, k)))
        if mine_k[2]:
            out[query] = mine_k[0] / whole[0] - mine_j[0] / whole[1]
    return out


def all_pairs_sandwich(groups: dict[tuple[int, int, int], Stratum], u: Floats, weight: PairWeight) -> list[list[float]]:
    """Sandwich of all parameters, the log θ_k and log r_kj together, then the block of log θ_k; rank 1 is fixed."""
    n, every = len(u), list(groups.values())
    pairs = [pair for pair in itertools.combinations(range(1, n + 1), 2) if pair_sums(every, *pair, weight)[2]]
    size = n - 1 + len(pairs)
    h = [[0.0] * size for _ in range(size)]
    score = {query: [0.0] * size for query in sorted({key[0] for key in groups})}
    speaks = set()
    for number, (k, j) in enumerate(pairs):
        counted = [pair_sums(every, *pair, weight) for pair in ((k, j), (j, k))]
        theta = (math.exp(u[k - 1]), math.exp(u[j - 1]))
        r = best_rate([c[0] for c in counted], [c[1] for c in counted], theta)
        for rank, other, t, whole in ((k, j, theta[0], counted[0]), (j, k, theta[1], counted[1])):
            places = [n - 1 + number, *([rank - 2] if rank > 1 else [])]
            for a in places:
                for b in places:
                    h[a][b] += whole[1] * t * r / (1 - t * r) ** 2
            for query in score:
                mine = pair_sums([group for key, group in groups.items() if key[0] == query], rank, other, weight)
                speaks |= {query} if mine[2] else set()
                for a in places:
                    score[query][a] += mine[0] - mine[1] * t * r / (1 - t * r)
    inverse = inverted(h)
    rows = [
        [0.0, *(math.fsum(a * b for a, b in zip(row, g, strict=True)) for row in inverse[: n - 1])]
        for g in score.values()
    ]
    return outer_sum(rows, len(speaks))


def rate_ratio(rows: Sequence[Row], k: int, places: int | None = None) -> float:
    """Click rate at rank k over that at rank 1, of the queries that showed all of the first places."""
    shown: dict[int, set[int]] = {}
    for query, _, _, rank, _, _ in rows:
        shown.setdefault(query, set()).add(rank)
    used = [row for row in rows if places is None or shown[row[0]] >= set(range(1, places + 1))]
    rate = [sum(row[5] for row in used if row[3] == j) / sum(row[4] for row in used if row[3] == j) for j in (k, 1)]
    return rate[0] / rate[1]


def shuffled_pages(page: Ints, n: int) -> Pages:
    """The first n documents in every order."""
    top = min(n, len(page))
    orders = list(itertools.permutations(page[:top]))
    return {(*order, *page[top:]): 1 / len(orders) for order in orders}


def swapped_pages(page: Ints, pairs: Sequence[tuple[int, int]], swap: float) -> Pages:
    """The page as it is, or with two ranks exchanged, of the pairs that it has."""
    fit = [pair for pair in pairs if max(pair) <= len(page)]
    out: Pages = {tuple(page): 1 - swap if fit else 1.0}
    for k, j in fit:
        new = list(page)
        new[k - 1], new[j - 1] = page[j - 1], page[k - 1]
        out[tuple(new)] = out.get(tuple(new), 0.0) + swap / len(fit)
    return {shown: p for shown, p in out.items() if p > 0}


def page_clicks(page: Ints, theta: Floats, attraction: Floats) -> float:
    """Expected clicks on one page."""
    return math.fsum(theta[place] * attraction[d] for place, d in enumerate(page))


def left_of_power(ranks: Floats, u: Floats) -> list[float]:
    """What remains of u after least squares on 1 and log k."""
    x = [math.log(k) for k in ranks]
    normal = [[len(x), math.fsum(x)], [math.fsum(x), math.fsum(v * v for v in x)]]
    b, slope = solve(normal, [math.fsum(u), math.fsum(v * w for v, w in zip(x, u, strict=True))])
    return [w - b - slope * v for v, w in zip(x, u, strict=True)]


def shrunk_value(groups: Sequence[Stratum], ranks: Ints, u: Floats, tau: float) -> float:
    """ℓ(u) less half the squares of what is left of the power law, over τ²."""
    left = left_of_power([float(k) for k in ranks], u)
    return conditional_value(groups, dict(zip(ranks, u, strict=True))) - math.fsum(e * e for e in left) / (2 * tau**2)


def shrunk_evidence(groups: Sequence[Stratum], ranks: Ints, u: Floats, tau: float) -> float:
    """Laplace's approximation at the mode u."""
    h = conditional_curvature(groups, dict(zip(ranks, u, strict=True)), ranks)
    n = len(ranks)
    for j in range(n):
        unit = left_of_power([float(k) for k in ranks], [float(i == j) for i in range(n)])
        for k in range(n):
            h[k][j] += unit[k] / tau**2
    determinant = float(np.linalg.det(np.array(h)[1:, 1:]))
    return shrunk_value(groups, ranks, u, tau) - (n - 2) * math.log(tau) - 0.5 * math.log(determinant)


def contextual_value(
    groups: dict[tuple[int, int, int], Stratum], ranks: Ints, context: Matrix,
    coefficients: Matrix
) -> float:  # fmt: skip
    """ℓ with log θ_k(q) = u_k + v_k · x_q."""
    total = 0.0
    for (query, _, _), group in groups.items():
        u = {
            k: row[0] + math.fsum(a * b for a, b in zip(row[1:], context[query], strict=True))
            for k, row in zip(ranks, coefficients, strict=True)
        }
        total += conditional_value(speaking([group], ranks), u)
    return total


# --- examination and relevance at once --------------------------------------------------------------------------------

# A term: stratum, rank, impressions, clicks.
Term = tuple[int, int, int, int]


def joint_value(terms: Sequence[Term], theta: dict[int, float], gamma: dict[int, float]) -> float:
    """Σ c log(θ_k γ_s) + (n − c) log(1 − θ_k γ_s), one display at a time but for equal ones."""
    total = []
    for s, k, n, c in terms:
        p = theta[k] * gamma[s]
        total += [c * math.log(p) if c else 0.0, (n - c) * math.log(1 - p) if n > c else 0.0]
    return math.fsum(total)


def em_step(
    terms: Sequence[Term], theta: dict[int, float], gamma: dict[int, float]
) -> tuple[dict[int, float], dict[int, float]]:
    """Posteriors of every display by Bayes' rule over the four cases (examined, attractive), then their means."""
    seen: dict[int, list[float]] = {k: [] for k in theta}
    liked: dict[int, list[float]] = {s: [] for s in gamma}
    displays: dict[int, int] = dict.fromkeys(theta, 0)
    shown: dict[int, int] = dict.fromkeys(gamma, 0)
    for s, k, n, c in terms:
        for clicked, times in ((1, c), (0, n - c)):
            cases = {
                (o, r): (theta[k] if o else 1 - theta[k]) * (gamma[s] if r else 1 - gamma[s])
                for o in (0, 1)
                for r in (0, 1)
                if (o and r) == clicked
            }
            mass = math.fsum(cases.values())
            if times:
                seen[k].append(times * math.fsum(p for (o, _), p in cases.items() if o) / mass)
                liked[s].append(times * math.fsum(p for (_, r), p in cases.items() if r) / mass)
        displays[k] += n
        shown[s] += n
    return (
        {k: math.fsum(seen[k]) / displays[k] if displays[k] else 0.0 for k in theta},
        {s: math.fsum(liked[s]) / shown[s] for s in gamma},
    )


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))


def tower_value(terms: Sequence[Term], bias: Floats, scores: Floats, combine: str) -> float:
    """The log-likelihood of σ(a_k) σ(f_s), or of σ(a_k + f_s); ranks from 1, strata from 0."""
    total = []
    for s, k, n, c in terms:
        a, f = bias[k - 1], scores[s]
        p = sigmoid(a) * sigmoid(f) if combine == "product" else sigmoid(a + f)
        total.append(c * math.log(p) + (n - c) * math.log(1 - p))
    return math.fsum(total)


# A page: (document, rank, clicks) of each row, from the top.
Page = list[tuple[int, int, int]]


def dual_values(pages: Sequence[Page], f: Floats, g: Floats, weights: tuple[Floats, Floats]) -> tuple[float, float]:
    """Both losses a click, the ranker's and the examination's, whose weights come from ``weights`` = (f, g)."""
    held_f, held_g = weights
    ever = {k for page in pages for _, k, c in page if c}
    ranker, examination, clicks = [], [], 0
    for page in pages:
        rows = [row for row in page if row[1] in ever]
        for d, k, c in rows:
            if c == 0:
                continue
            top_d, top_k, _ = rows[0]
            share = math.exp(f[d]) / math.fsum(math.exp(f[other]) for other, _, _ in rows)
            place = math.exp(g[k - 1]) / math.fsum(math.exp(g[other - 1]) for _, other, _ in rows)
            ranker.append(-c * math.exp(held_g[top_k - 1]) / math.exp(held_g[k - 1]) * math.log(share))
            examination.append(-c * math.exp(held_f[top_d]) / math.exp(held_f[d]) * math.log(place))
            clicks += c
    return math.fsum(ranker) / clicks, math.fsum(examination) / clicks


def dual_steps(pages: Sequence[Page], x: Matrix, batches: Sequence[Ints], rate: float) -> list[float]:
    """g in the mean of the second half of joint steps on both losses, one click and one row of its page at a time."""
    ever = sorted({k for page in pages for _, k, c in page if c})
    shown = sorted({d for page in pages for d, _, _ in page})
    columns = [[x[d][j] for d in shown] for j in range(len(x[0]))]
    means = [math.fsum(column) / len(shown) for column in columns]
    spreads = [
        math.sqrt(math.fsum((v - m) ** 2 for v in column) / len(shown))
        for column, m in zip(columns, means, strict=True)
    ]
    scaled = {d: [(v - m) / s for v, m, s in zip(x[d], means, spreads, strict=True)] for d in shown}
    w, g = [0.0] * len(means), [0.0] * ever[-1]
    move_w, move_g, ends = [0.0] * len(w), [0.0] * len(g), []
    for step, batch in enumerate(batches):
        f = {d: math.fsum(a * b for a, b in zip(w, scaled[d], strict=True)) for d in shown}
        up_w, up_g, clicks = [0.0] * len(w), [0.0] * len(g), 0
        for page in (pages[i] for i in batch):
            rows = [row for row in page if row[1] in ever]
            top_d, top_k, _ = rows[0]
            by_score = math.fsum(math.exp(f[d]) for d, _, _ in rows)
            by_place = math.fsum(math.exp(g[k - 1]) for _, k, _ in rows)
            for d, k, c in rows:
                clicks += c
                for other, place, _ in rows:
                    here = 1.0 if other == d else 0.0
                    pull = c * math.exp(g[top_k - 1] - g[k - 1]) * (here - math.exp(f[other]) / by_score)
                    up_w = [u + pull * v for u, v in zip(up_w, scaled[other], strict=True)]
                    up_g[place - 1] += c * math.exp(f[top_d] - f[d]) * (here - math.exp(g[place - 1]) / by_place)
        move_w = [0.8 * m + rate * u / clicks / len(w) for m, u in zip(move_w, up_w, strict=True)]
        move_g = [0.8 * m + rate * u / clicks for m, u in zip(move_g, up_g, strict=True)]
        w, g = ([a + b for a, b in zip(old, move, strict=True)] for old, move in ((w, move_w), (g, move_g)))
        if step >= len(batches) // 2:
            ends.append(g)
    return [math.fsum(values) / len(ends) for values in zip(*ends, strict=True)]


def clicks_by_rank(terms: Sequence[Term], n_ranks: int) -> list[int]:
    return [sum(c for _, k, _, c in terms if k == rank) for rank in range(1, n_ranks + 1)]


def side_by_side(rows: Sequence[Row]) -> list[Row]:
    """The rows of several rankers as if they were one log: period 0, sums over the periods."""
    out: dict[tuple[int, int, int, int], list[int]] = {}
    for query, _, document, rank, impressions, clicks in rows:
        cell = out.setdefault((query, 0, document, rank), [0, 0])
        cell[0] += impressions
        cell[1] += clicks
    return [(*key, *cell) for key, cell in sorted(out.items())]


# --- trust, and pages -------------------------------------------------------------------------------------

# Click probability at a rank: one number for all, one a rank, or a function.
Noise = float | Curve


def at_rank(noise: Noise, rank: int) -> float:
    return noise if isinstance(noise, float) else noise(rank) if callable(noise) else noise[rank - 1]


def trust_line(theta: Curve, plus: Noise, minus: Noise, rank: int) -> tuple[float, float]:
    """Slope and intercept of the click probability: θ (ε₊ − ε₋) and θ ε₋; both 0 where nothing is seen."""
    seen = examined(theta, rank)
    if seen == 0:
        return 0.0, 0.0
    return seen * (at_rank(plus, rank) - at_rank(minus, rank)), seen * at_rank(minus, rank)


def trusted(theta: Curve, plus: Noise, minus: Noise, rank: int, relevance: float) -> float:
    """Click probability: looked at, then clicked as relevant or as not."""
    seen = examined(theta, rank)
    if seen == 0:
        return 0.0
    return seen * (relevance * at_rank(plus, rank) + (1 - relevance) * at_rank(minus, rank))


def cascade_law(attraction: Floats, stop: float, give_up: float) -> dict[tuple[int, ...], float]:
    """Probability of every click vector of a page that is read from the top, every decision enumerated."""
    out: dict[tuple[int, ...], float] = {}

    def read(place: int, clicks: tuple[int, ...], probability: float) -> None:
        if place == len(attraction):
            out[clicks] = out.get(clicks, 0.0) + probability
            return
        for click, p in ((1, attraction[place]), (0, 1 - attraction[place])):
            leave = stop if click else give_up
            end = (*clicks, click, *[0] * (len(attraction) - place - 1))
            out[end] = out.get(end, 0.0) + probability * p * leave
            read(place + 1, (*clicks, click), probability * p * (1 - leave))

    read(0, (), 1.0)
    return out


def page_table(
    queries: Ints, shown: Sequence[Ints], clicked: Sequence[Ints]
) -> dict[tuple[int, tuple[int, ...]], list[list[list[int]]]]:
    """For each query and page: impressions of the two halves, and for each place the clicks of the two halves."""
    out: dict[tuple[int, tuple[int, ...]], list[list[list[int]]]] = {}
    for query, row, clicks in zip(queries, shown, clicked, strict=True):
        page = tuple(d for d in row if d >= 0)
        if not page:
            continue
        impressions, places = out.setdefault((query, page), [[[0, 0]], [[0, 0] for _ in page]])
        half = sum(impressions[0]) % 2
        impressions[0][half] += 1
        for place in range(len(page)):
            places[place][half] += clicks[place]
    return out


def mean_above(impressions: int, clicks: Ints, place: int) -> float:
    """Clicks a session at the places above ``place``, from 0."""
    return sum(clicks[:place]) / impressions if impressions else math.nan


def trust_value(
    groups: Sequence[Stratum], weights: Floats, p: Floats, q: Floats
) -> float:  # fmt: skip
    """Q = Σ_s Σ_k w (1 − w/W) E_kk − Σ_{k ≠ j} w_k w_j / W x_k x_j, E_kk from the clicks of two different sessions."""
    total = 0.0
    for group in groups:
        cells = {k: (n, c) for k, (n, c) in group.items() if n >= 2}
        if len(cells) < 2:
            continue
        w = {k: n * weights[k - 1] for k, (n, _) in cells.items()}
        whole = math.fsum(w.values())
        x = {k: p[k - 1] * c / n - q[k - 1] for k, (n, c) in cells.items()}
        for k, (n, c) in cells.items():
            pairs = c * (c - 1) / (n * (n - 1))
            square = p[k - 1] ** 2 * pairs - 2 * p[k - 1] * q[k - 1] * c / n + q[k - 1] ** 2
            total += w[k] * (1 - w[k] / whole) * square
            total -= math.fsum(w[k] * w[j] / whole * x[k] * x[j] for j in cells if j != k)
    return total


def trust_noise(groups: Sequence[Stratum], weights: Floats, rank: int) -> float:
    """Σ_s w (1 − w/W) y (1 − y)/(n − 1) at one rank."""
    total = 0.0
    for group in groups:
        cells = {k: (n, c) for k, (n, c) in group.items() if n >= 2}
        if len(cells) > 1 and rank in cells:
            n, c = cells[rank]
            w, whole = n * weights[rank - 1], math.fsum(m * weights[k - 1] for k, (m, _) in cells.items())
            total += w * (1 - w / whole) * (c / n) * (1 - c / n) / (n - 1)
    return total


def trust_fit(
    groups: Sequence[Stratum], n_ranks: int, rounds: int, copies: Floats | None = None
) -> tuple[list[float], list[float]]:
    """α and β where Q/Σ N p² is least, q at its best.

    Weights are made again ``rounds`` times, so that p y has one variance at all ranks; each stratum counts ``copies``.
    """
    weights, times = [1.0] * n_ranks, [1.0] * len(groups) if copies is None else list(copies)
    size, p, q = 2 * n_ranks, [1.0], [0.0]
    for _ in range(rounds + 1):

        def value(v: np.ndarray, weights: list[float] = weights) -> float:
            halves = (v[:n_ranks].tolist(), v[n_ranks:].tolist())
            return math.fsum(t * trust_value([g], weights, *halves) for t, g in zip(times, groups, strict=True))

        unit = np.eye(size)
        form = np.array([[value(a + b) - value(a) - value(b) for b in unit] for a in unit]) / 2
        a = np.delete(np.delete(form, n_ranks, 0), n_ranks, 1)
        best = -np.linalg.inv(a[n_ranks:, n_ranks:]) @ a[n_ranks:, :n_ranks]
        noise = [
            math.fsum(t * trust_noise([g], weights, k) for t, g in zip(times, groups, strict=True))
            for k in range(1, n_ranks + 1)
        ]
        values, vectors = np.linalg.eig(
            np.linalg.inv(np.diag(noise)) @ (a[:n_ranks, :n_ranks] + a[:n_ranks, n_ranks:] @ best)
        )
        direction = np.real(vectors[:, np.argmin(np.real(values))])
        direction = direction / direction[0]
        p, q = direction.tolist(), [0.0, *(best @ direction).tolist()]
        spread, shown = [0.0] * n_ranks, [0.0] * n_ranks
        for group in groups:
            cells = {k: (n, c) for k, (n, c) in group.items() if n >= 2}
            if len(cells) > 1:
                for k, (n, c) in cells.items():
                    spread[k - 1] += n * (c / n) * (1 - c / n)
                    shown[k - 1] += n
        weights = [n / (v * v * s) for n, v, s in zip(shown, p, spread, strict=True)]
        weights = [w / max(weights) for w in weights]
    return [1 / v for v in p], [b / v for b, v in zip(q, p, strict=True)]


# A document on a page: stratum, rank, clicks above in the other half, impressions and clicks.
Above = tuple[tuple[int, int], int, float, int, int]


def above_rows(table: dict[tuple[int, tuple[int, ...]], list[list[list[int]]]], half: int) -> list[Above]:
    """Each document of each page that both halves were shown: z from ``half``, counts from the other."""
    out = []
    for (query, page), ((shown,), places) in table.items():
        if min(shown) > 0:
            for place, document in enumerate(page):
                z = mean_above(shown[half], [c[half] for c in places], place)
                out.append(((query, document), place + 1, z, shown[1 - half], places[place][1 - half]))
    return out


def above_value(rows: Sequence[Above], u: Floats, delta: float) -> float:
    """ℓ = Σ c (u_k + δ z) − Σ_s C_s log Σ n e^{u_k + δ z}."""
    total = 0.0
    for stratum in {row[0] for row in rows}:
        mine = [row for row in rows if row[0] == stratum]
        rate = [u[k - 1] + delta * z for _, k, z, _, _ in mine]
        total += math.fsum(row[4] * r for row, r in zip(mine, rate, strict=True))
        size = math.fsum(row[3] * math.exp(r) for row, r in zip(mine, rate, strict=True))
        total -= sum(row[4] for row in mine) * math.log(size)
    return total


# --- events -----------------------------------------------------------------------------------------------

# Session, query, document, position, clicked, ranker, period; None where a value is missing.
Event = tuple[int, int, int, float | None, float | None, str, int]


def shown_of(pairs: Sequence[Sequence[str]]) -> list[tuple[str, list[str]]]:
    """The documents of each query, in order, once each."""
    found: dict[str, set[str]] = {}
    for query, document in pairs:
        found.setdefault(query, set()).add(document)
    return [(query, sorted(found[query])) for query in sorted(found)]


def mean_places(events: Sequence[Event], rankers: Sequence[str], lists: dict[int, list[int]]) -> dict[tuple, float]:
    """Minus the mean position of each document of a query, of the first of ``rankers`` that served the query."""
    below, out = max(position for _, _, _, position, _, _, _ in events) + 1, {}
    for query, documents in lists.items():
        served = [name for name in rankers if any(e[1] == query and e[5] == name for e in events)]
        for document in documents:
            places = [e[3] for e in events if e[1:3] == (query, document) and served and e[5] == served[0]]
            out[query, document] = -math.fsum(places) / len(places) if places else -below
    return out


def event_fault(event: Event) -> str | None:
    """What is wrong with one event by itself."""
    _, _, _, position, clicked, _, _ = event
    if position is None:
        return "a click has no position" if clicked == 1 else "position is missing"
    if clicked is None:
        return "clicked is missing"
    if position != int(position):
        return "position is no whole number"
    if position < 1:
        return "position is 0" if position == 0 else "position is negative"
    if clicked not in (0, 1):
        return "clicked is neither 0 nor 1"
    return None


def page_faults(page: Sequence[Event], known: set[tuple[int, int]]) -> set[str]:
    """What is wrong with the events of one session together."""
    faults = set()
    for name, at in (("querys", 1), ("rankers", 5), ("periods", 6)):
        if any(event[at] != page[0][at] for event in page):
            faults.add(name)
    if sorted(event[3] for event in page) != list(range(1, len(page) + 1)):
        faults.add("incomplete")
    for i, event in enumerate(page):
        if (event[1], event[2]) not in known:
            faults.add("unknown")
        elif any(other[1:3] == event[1:3] for other in page[:i]):
            faults.add("again")
    return faults


def event_counts(events: Sequence[Event]) -> dict[tuple[int, int, int, str, int], list[int]]:
    """Impressions and clicks by query, document, position, ranker and period."""
    counts: dict[tuple[int, int, int, str, int], list[int]] = {}
    for _, query, document, position, clicked, ranker, period in events:
        term = counts.setdefault((query, document, int(position), ranker, period), [0, 0])
        term[0] += 1
        term[1] += int(clicked)
    return counts


def first_positions(events: Sequence[Event]) -> dict[int, int]:
    """The position of the first event of each session."""
    first: dict[int, int] = {}
    for event in events:
        first[event[0]] = min(int(event[3]), first.get(event[0], int(event[3])))
    return first


def display_share(events: Sequence[Event], query: int, document: int, position: int) -> float:
    """In which share of the sessions of a query a document stood at a position."""
    sessions = {event[0] for event in events if event[1] == query}
    shown = [event for event in events if event[1:4] == (query, document, position)]
    return len(shown) / len(sessions)


def table_law(rows: Ints, columns: Ints) -> tuple[float, float, float]:
    """χ² of a table of single cases, and its mean and variance over every way to deal the columns to the rows."""

    def chi_square(dealt: Ints) -> float:
        total = 0.0
        for i in set(rows):
            for j in set(columns):
                expected = list(rows).count(i) * list(columns).count(j) / len(rows)
                there = sum(a == i and b == j for a, b in zip(rows, dealt, strict=True))
                total += (there - expected) ** 2 / expected
        return total

    every = [chi_square(dealt) for dealt in itertools.permutations(columns)]
    mean = math.fsum(every) / len(every)
    return chi_square(columns), mean, math.fsum((x - mean) ** 2 for x in every) / len(every)


def session_health(events: Sequence[Event]) -> dict[str, float]:
    """What sums over sessions say of filters, cuts and bots, from pages one by one, of all rankers and periods."""
    pages: dict[int, list[Event]] = {}
    for event in sorted(events, key=lambda e: (e[0], e[3])):
        pages.setdefault(event[0], []).append(event)

    def rate(event: Event) -> tuple[float, int]:
        same = [e[4] for e in events if e[1:4] == event[1:4]]
        return sum(same) / len(same), len(same)

    names = "sessions clicks none none_expected none_excess none_variance all all_expected all_clicks "
    names += "short short_excess short_variance"
    out = dict.fromkeys(names.split(), 0.0)
    for page in pages.values():
        x, p = [event[4] for event in page], [rate(event)[0] for event in page]
        least = min(rate(event)[1] for event in page)
        own = least / (least - 1) if least > 1 else 0.0
        kind = (page[0][1], page[0][5], page[0][6])
        longest = max(len(other) for other in pages.values() if (other[0][1], other[0][5], other[0][6]) == kind)
        implied = math.prod(1 - value for value in p)
        # 1[none] − Π (1 − p) + Σ_k (x_k − p_k) Π_{j ≠ k} (1 − p_j); a rate of 1 at k leaves nothing of it.
        linear = 0.0
        if implied > 0:
            for k in range(len(p)):
                linear += (x[k] - p[k]) * math.prod(1 - p[j] for j in range(len(p)) if j != k)
        residual = (sum(x) == 0) - implied + linear
        out["sessions"] += 1
        out["clicks"] += sum(x)
        out["none"] += sum(x) == 0
        out["none_expected"] += implied
        out["none_excess"] += residual
        out["none_variance"] += residual**2 * own
        if len(page) >= 3 and len(page) == longest:
            out["all"] += sum(x) == len(page)
            out["all_clicks"] += len(page) * (sum(x) == len(page))
            out["all_expected"] += math.prod(p)
        if len(page) < longest:
            out["short"] += 1
            out["short_excess"] += x[-1] - p[-1]
            out["short_variance"] += (x[-1] - p[-1]) ** 2 * own
    return out


def page_halves(events: Sequence[Event]) -> dict[tuple[int, ...], list[list[int]]]:
    """Sessions and clicks at each place of a page (query, then documents with their slots), in each half, of pages that
    both saw."""
    sessions: dict[int, list[Event]] = {}
    for event in sorted(events, key=lambda e: (e[0], e[3])):
        sessions.setdefault(event[0], []).append(event)
    pages: dict[tuple[int, ...], list[list[int]]] = {}
    for session, page in sessions.items():
        key = (page[0][1], *(int(number) for e in page for number in e[2:4]))
        counts = pages.setdefault(key, [[0] * (1 + len(page)) for _ in range(2)])
        here = counts[session_part(session, [0.5, 0.5])]
        here[0] += 1
        for k, event in enumerate(page, start=1):
            here[k] += int(event[4])
    return {page: counts for page, counts in pages.items() if counts[0][0] > 0 and counts[1][0] > 0}


def feedback(events: Sequence[Event], below: int) -> float:
    """z of Σ (clicks beyond the usual rate) · (places moved up to the next period that the ranker met the query)."""
    by_query: dict[int, float] = {}
    variance = 0.0

    def place(query: int, document: int, ranker: str, period: int) -> float | None:
        ranks = [e[3] for e in events if (e[1], e[2], e[5], e[6]) == (query, document, ranker, period)]
        return sum(ranks) / len(ranks) if ranks else None

    for query, document, ranker, period in sorted({(e[1], e[2], e[5], e[6]) for e in events}):
        later = [e[6] for e in events if (e[1], e[5]) == (query, ranker) and e[6] > period]
        if not later:
            continue
        after = place(query, document, ranker, min(later))
        move = place(query, document, ranker, period) - (below if after is None else after)
        for rank in {e[3] for e in events if e[1:3] == (query, document)}:
            usual = [e[4] for e in events if e[1:4] == (query, document, rank)]
            here = [e[4] for e in events if e[1:4] == (query, document, rank) and e[5:7] == (ranker, period)]
            n, c, size, total = len(here), sum(here), len(usual), sum(usual)
            by_query[query] = by_query.get(query, 0.0) + (c - n * total / size) * move
            if size > 1:
                variance += move**2 * n * total * (size - total) * (size - n) / (size**2 * (size - 1))
    spread = max(variance, math.fsum(part**2 for part in by_query.values()))
    return math.fsum(by_query.values()) / math.sqrt(spread) if spread > 0 else 0.0


def line_residuals(terms: Sequence[tuple], slope: Sequence[float], intercept: Sequence[float]) -> list[list[float]]:
    """Clicks less those of the line, and these, of terms (stratum, rank, impressions, clicks)."""
    out = []
    for stratum, rank, n, clicks in terms:
        linked = [term for term in terms if term[0] == stratum and not math.isnan(slope[term[1] - 1])]
        net = sum(c - m * intercept[k - 1] for _, k, m, c in linked)
        seen = sum(m * slope[k - 1] for _, k, m, _ in linked)
        if math.isnan(slope[rank - 1]):
            out.append([0.0, 0.0])
        else:
            expected = n * (intercept[rank - 1] + slope[rank - 1] * net / seen)
            out.append([clicks - expected, expected])
    return out


def queries_of_mean(mean: float, df: int) -> float:
    """The number Q of queries for which df (Q − 1)/(Q − df − 2) is the mean, by bisection."""
    low, high = df + 2 + 1e-9, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if df * (middle - 1) / (middle - df - 2) > mean else (low, middle)
    return low


def wald(value: Floats, covariance: np.ndarray) -> float:
    """valueᵀ covariance⁻¹ value, by elimination."""
    a = [[float(x) for x in row] + [float(v)] for row, v in zip(covariance, value, strict=True)]
    n = len(a)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(a[i][k]))
        a[k], a[pivot] = a[pivot], a[k]
        for i in range(k + 1, n):
            factor = a[i][k] / a[k][k]
            a[i] = [x - factor * y for x, y in zip(a[i], a[k], strict=True)]
    x = [0.0] * n
    for k in reversed(range(n)):
        x[k] = (a[k][n] - sum(a[k][j] * x[j] for j in range(k + 1, n))) / a[k][k]
    return sum(v * solved for v, solved in zip(value, x, strict=True))


def session_part(session: int | str, shares: Floats) -> int:
    """The part of a session, by a number that its id decides: MD5 of text, two congruential steps of a whole number."""
    prime = 2**31 - 1
    if isinstance(session, str):
        place = int(hashlib.md5(session.encode()).hexdigest()[:8], 16) / 16**8
    else:
        mixed = (session % prime * 48_271 + 1) % prime
        place = (mixed ^ mixed // 2**15) * 69_621 % prime / prime
    bounds = list(itertools.accumulate(shares))[:-1]
    return sum(place >= bound for bound in bounds)


def distinct_rows(rows: np.ndarray) -> tuple[list[tuple[int, ...]], list[int]]:
    """The different rows in ascending order, and which of them each row is."""
    each = [tuple(int(value) for value in row) for row in rows]
    found = sorted(set(each))
    return found, [found.index(row) for row in each]
