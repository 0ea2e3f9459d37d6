"""Every directive and role of a chapter becomes what Colab and plain Jupyter show as it is meant."""

from __future__ import annotations

import pytest

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
        PAGE: [
            [
                Target("", "Doe "),
                Target("", "*et al.*"),
                Target("", " ["),
                Target("r.html#id1", "2018"),
                Target("", "]"),
            ]
        ]
    },
)


def portable(site: str | None = SITE) -> Portable:
    return Portable(PAGE, LABELS, {"ratio": "2.18 %"}, site, lambda content: Target("chapters/b.html#c", f"✓{content}"))


THEOREM = """Before.

:::{prf:theorem} IPS is *unbiased* at $p > 0$
:label: thm-a

First {term}`IPS`.

$$
x = \\frac{1}{2}
  + y
$$ (eq-a)

:::

After."""
THEOREM_OUT = """Before.

> **Theorem 3 (IPS is *unbiased* at $p > 0$).**
>
> First [IPS](https://site.example/book/chapters/glossary.html#term-IPS).
>
> $$ x = \\frac{1}{2} + y \\tag{7} $$

After."""

BLOCKS = {
    "theorem": (THEOREM, THEOREM_OUT),
    "without number": (":::{prf:remark}\n:nonumber:\n\nX.\n:::", "> **Remark.**\n>\n> X."),
    "proof": (":::{prf:proof}\n**Step 1.** A. $\\square$\n\n:::", "**Proof.**\n\n**Step 1.** A. $\\square$"),
    "exercise": (":::{exercise} Hard\n:label: ex-a\n\nDo.\n:::", "**Exercise 4 (Hard).**\n\nDo."),
    "folded solution": (
        ":::{solution} ex-a\n:class: dropdown\n\n$$\nx\n$$\n\n:::",
        "<details>\n<summary>Solution to Exercise 4</summary>\n\n$$\nx\n$$\n\n</details>",
    ),
    "solution over cells": (":::{solution-start} ex-a\n:class: dropdown\n\n:::", "**Solution to Exercise 4.**"),
    "note": (":::{note}\nX.\n\n- one\n- two\n:::", "> **Note.**\n>\n> X.\n>\n> - one\n> - two"),
    "dropdown": (":::{dropdown} Why\nX.\n:::", "<details>\n<summary>Why</summary>\n\nX.\n\n</details>"),
    "nested": ("::::{note}\n:::{tip}\nX.\n:::\n::::", "> **Note.**\n>\n> > **Tip.**\n> >\n> > X."),
    "formula": ("$$\nx\n$$ (eq-a)", "$$\nx \\tag{7}\n$$"),
    "formula in one line": ("$$x$$ (eq-a)", "$$x \\tag{7} $$"),
    "table": (
        ":::{list-table}\n:header-rows: 1\n\n* - A\n  - B\n* - $|x|$\n  - a|b {eq}`eq-a`\n    more\n:::",
        f"| A | B |\n| --- | --- |\n| $\\vert x\\vert $ | a\\|b [(7)]({SITE}{PAGE}.html#equation-eq-a) more |",
    ),
    "target and comment": ("(sec-a)=\n## A section\n% hidden\n+++\nText", "## A section\nText"),
    "code stays": ("```python\n:::{note}\n{eq}`x`\n```", "```python\n:::{note}\n{eq}`x`\n```"),
    "code span stays": ("Write ``{eq}`x` `` so.", "Write ``{eq}`x` `` so."),
    "link in a formula": ("$[a](b)$", "$[a](b)$"),
}

ROLES = {
    "{prf:ref}`thm-a`": f"[Theorem 3]({SITE}{PAGE}.html#thm-a)",
    "{prf:ref}`the result <thm-a>`": f"[the result]({SITE}{PAGE}.html#thm-a)",
    "{eq}`eq-a`": f"[(7)]({SITE}{PAGE}.html#equation-eq-a)",
    "{numref}`fig-a`": f"[Fig. 5]({SITE}chapters/92_beta.html#fig-a)",
    "{numref}`Figure %s <fig-a>`": f"[Figure 5]({SITE}chapters/92_beta.html#fig-a)",
    "{ref}`sec-a`": f"[A section]({SITE}{PAGE}.html#sec-a)",
    "{term}`ips`": f"[ips]({SITE}chapters/glossary.html#term-IPS)",
    "{term}`the estimate <IPS>`": f"[the estimate]({SITE}chapters/glossary.html#term-IPS)",
    "{cite:t}`doe2018`": f"Doe *et al.* [[2018]({SITE}r.html#id1)]",
    "{glue:text}`ratio`": "2.18 %",
    "{claim}`N-a supported`": f"[✓N-a supported]({SITE}chapters/b.html#c)",
    "[b](92_beta.ipynb)": f"[b]({SITE}chapters/92_beta.html)",
    "[b](#there)": f"[b]({SITE}{PAGE}.html#there)",
    "[b](https://elsewhere.example)": "[b](https://elsewhere.example)",
}


@pytest.mark.parametrize(
    ("source", "wanted"),
    [*BLOCKS.values(), *((f"See {source}.", f"See {wanted}.") for source, wanted in ROLES.items())],
)
def test_a_block_or_a_role(source: str, wanted: str) -> None:
    assert portable().text(source) == wanted
    assert leftovers(wanted) == []


@pytest.mark.parametrize("source", [source for source in ROLES if source.startswith("{") or "92_beta" in source])
def test_without_a_site_only_the_words_stay(source: str) -> None:
    text = portable(site=None).text(f"See {source}.")
    assert "](" not in text
    assert SITE not in text
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
