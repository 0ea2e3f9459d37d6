"""Logs and shares of displays as the loops of ``oracles`` read them."""

from cfltr_core import ClickLog, DisplayShares


def table_of(shares: DisplayShares) -> dict[tuple[int, int], float]:
    """The share of each document at each rank."""
    return {(int(d), int(k)): float(s) for d, k, s in zip(shares.document, shares.rank, shares.share, strict=True)}


def terms_of(log: ClickLog) -> list[tuple[int, int, int, int]]:
    """Document, rank, impressions and clicks of each term."""
    return list(zip(*(getattr(log, n).tolist() for n in ("document", "rank", "impressions", "clicks")), strict=True))


def clicks_of(log: ClickLog) -> list[tuple[int, int, int]]:
    """Document, rank and clicks of each term."""
    return [(d, k, c) for d, k, _, c in terms_of(log)]
