// Returns what the search of the site lists: the addresses, and the items of which nothing is shown; null before the
// script of the search has said how many pages it found.
if (!document.querySelector(".search-summary")?.textContent) return null;
const items = [...document.querySelectorAll("ul.search > li")];
// A name of the package is described, a page has an excerpt, which comes after the page itself was fetched.
const described = (item) => item.querySelector("span") || item.querySelector(".context")?.textContent.trim();
return {
  links: items.map((item) => item.querySelector(":scope > a").getAttribute("href")),
  bare: items.filter((item) => !described(item)).map((item) => item.innerText),
};
