"""Every directive and role of a chapter becomes what Colab and plain Jupyter show as it is meant."""

import re

import pytest
from kept_text import same_as_kept
from toy import PAGES

from book_tools.colab.copies import leftovers
from book_tools.colab.labels import Labels, Target
from book_tools.colab.portable import Portable

SITE = "https://site.example/book/"
PAGE = "chapters/91_alpha"
LABELS = Labels(
    numbered={
        "thm-a": Target(f"{PAGE}.html#thm-a", "Theorem 3"),
        "def-a": Target(f"{PAGE}.html#def-a", "Definition 2"),
        "ex-a": Target(f"{PAGE}.html#ex-a", "Exercise 4"),
        "fig-a": Target("chapters/92_beta.html#fig-a", "Fig. 5"),
    },
    equations={"eq-a": Target(f"{PAGE}.html#equation-eq-a", "(7)")},
    terms={"IPS": Target("chapters/glossary.html#term-IPS", "IPS")},
    sections={"sec-a": Target(f"{PAGE}.html#sec-a", "A section")},
    pages={name: Target(f"{name}.html", title) for name, title in ((PAGE, "Alpha"), ("chapters/92_beta", "Beta"))},
    citations={
        PAGE: [[Target(to, text) for to, text in (("", "Doe *et al.* ["), ("r.html#id1", "2018"), ("", "]"))]],
    },
)


def portable(site: str | None = SITE) -> Portable:
    return Portable(PAGE, LABELS, {"ratio": "2.18 %"}, site, lambda content: Target("chapters/b.html#c", f"✓{content}"))


SOURCE = (PAGES / "portable_source.md").read_text(encoding="utf-8")


def test_every_block_and_role_of_a_page() -> None:
    text = portable().text(SOURCE)
    assert leftovers(text) == []
    same_as_kept(PAGES / "portable_copy.md", text)


def test_without_a_site_only_the_words_of_a_role_stay() -> None:
    roles = SOURCE[SOURCE.index("See {prf:ref}") :].replace("[b](#there)", "")
    text = portable(site=None).text(roles)
    assert re.findall(r"\]\(([^)]*)\)", text) == ["https://elsewhere.example"]
    assert leftovers(text) == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (":::{note}\nX.", ":::{note} is never closed"),
        (":::{glossary}\nX\n:::", "the directive {glossary} has no counterpart"),
        (":::{prf:lemma}\nX\n:::", "{prf:lemma} has no label"),
        ("{prf:ref}`thm-b`", "thm-b: the built site has no such theorem"),
        ("{eq}`eq-b`", "eq-b: the built site has no such equation"),
        ("$$x$$ (eq-b)", "eq-b: the built site has no such equation"),
        ("{term}`DCG`", "dcg: the built site has no such term"),
        ("{glue:text}`none`", "the chapter records no such number"),
        ("{cite:t}`a` {cite:t}`b`", "{cite:t}`b`: not found on the built page"),
        ("{kbd}`x`", "the role {kbd} has no counterpart"),
        ("[data](data.csv)", "data.csv is no page of the book"),
        ("![x](x.png)", "the picture is not beside the copy"),
        (":::{list-table}\n* - A\n:::", "one header row"),
        (":::{note}\n$$\nx % no\n$$\n:::", "holds a comment"),
    ],
)
def test_what_cannot_be_shown_is_an_error(source: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        portable().text(source)
    assert message in str(raised.value)


def test_citations_that_do_not_pair_up_are_an_error() -> None:
    with pytest.raises(ValueError, match="more citations than the text"):
        portable().all_cited()
    cited = portable()
    cited.text(":::{margin}\n{cite:t}`doe2018`\n:::")
    cited.all_cited()


LEFT = [":::{note}", "text\n  :::", "```{note}\nx\n```", "{eq}`eq-a`", "{glue}", "$$x$$ (eq-a)", "(sec-a)=", "{.wide}"]
PLAIN = ["`x`", "A set $\\{a\\}$ of `b`.", "{a}", "```python\n:::\n```", "f(x)=1"]


@pytest.mark.parametrize("source", [*LEFT, *PLAIN])
def test_a_leftover_is_found_and_plain_text_is_none(source: str) -> None:
    assert len(leftovers(f"Before.\n{source}\nAfter.")) == (source in LEFT)
