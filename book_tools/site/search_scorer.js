// The order of what the search of the site finds.  Sphinx puts this into its own script, and calls `score` for each
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
