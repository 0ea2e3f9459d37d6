// The order of what the search of the site finds, and what it shows of each page.  Sphinx puts this behind its own
// script, and calls `score` for each
// result; the other numbers are what it gives a result for where the words were found, and are as in its own table.
//
// Who types words wants a page that explains them: one that has them in its title, chapters in their order, the guide
// before them where it says as much, then pages that list, and the names of the package last.  Who types a name of the
// package as it is written in code, with an underscore or a capital inside, wants that name first.
"use strict";

const AFTER_ALL = 1000;
const BEFORE_ALL = 1000;
const IN_TITLE = 10;
const LISTS = /^(index|chapters\/(scoreboard|errata|papers_size|status|references|architecture))$/;

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,

  score: ([page, title, , , found]) => {
    const query = (new URLSearchParams(window.location.search).get("q") || "").trim();
    const words = query.toLowerCase().split(/\s+/);
    const score = words.every((word) => title.toLowerCase().includes(word)) ? found + IN_TITLE : found;
    if (page.startsWith("api/")) {
      const last = (name) => name.split(".").pop();
      const isName = /[_A-Z]/.test(query.slice(1)) && last(title) === last(query);
      return isName ? score + BEFORE_ALL : score - AFTER_ALL;
    }
    const chapter = /^chapters\/(\d+)_/.exec(page);
    if (chapter) return score - Number(chapter[1]) / 100;
    if (page === "chapters/guide") return score + 1;
    return LISTS.test(page) ? score - 3 : score;
  },
};

// What is shown of a page, and where its link leads: to the first of the sections where most of the words stand
// together, one with words in its heading before the others.  Sphinx's own function looks for an element with the role
// *main*, which the pages do not write (it is a main element), and its links lead to the top of long chapters.
Search.makeSearchSummary = (html, words, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  page.querySelectorAll("script, style, .headerlink").forEach((element) => element.remove());
  page.querySelectorAll(".math").forEach((formula) => (formula.textContent = "…"));
  const textOf = (element) => (element ? element.textContent.replace(/\s+/g, " ").trim() : "");
  // How many of the words stand within a few lines, and where those begin.
  const densest = (text) => {
    const lower = text.toLowerCase();
    let best = { hits: 0, at: 0 };
    for (const word of words)
      for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, at + 1)) {
        const near = lower.slice(at, at + 160);
        const hits = [...words].filter((other) => near.includes(other)).length;
        if (hits > best.hits) best = { hits, at };
      }
    return best;
  };
  const summary = document.createElement("p");
  summary.classList.add("context");
  const show = (text) => {
    const start = text.lastIndexOf(" ", Math.max(densest(text).at - 80, 0)) + 1;
    const end = text.indexOf(" ", start + 240);
    summary.textContent = `${start ? "… " : ""}${text.slice(start, end < 0 ? text.length : end)}${end < 0 ? "" : " …"}`;
    return summary;
  };

  const named = anchor && page.getElementById(anchor.slice(1));
  // A term of the glossary has its meaning beside it.
  if (named) return show(`${textOf(named)} ${named.tagName === "DT" ? textOf(named.nextElementSibling) : ""}`);
  // From the last to the first, and each taken out of the one it stands in: a word counts for the innermost.
  const sections = [...page.querySelectorAll("main section[id]")].reverse().map((section) => {
    section.remove();
    const heading = textOf(section.querySelector("h1, h2, h3, h4, h5"));
    const text = textOf(section).slice(heading.length).trim();
    return { id: section.id, heading, text, hits: 2 * densest(`${heading} ${text}`).hits + densest(heading).hits };
  });
  const top = sections.pop();
  if (!top) return show(textOf(page.querySelector("main")));
  const best = [top, ...sections.reverse()].reduce((one, other) => (other.hits > one.hits ? other : one));
  // The item that this is put into is there only afterwards.
  if (best !== top)
    queueMicrotask(() => {
      const link = summary.parentElement.querySelector("a");
      link.setAttribute("href", `${link.getAttribute("href")}#${best.id}`);
      link.append(` › ${best.heading}`);
    });
  return show(best.text);
};
