// Returns what can be seen of the page: its theme, formulas, images, and everything that does not fit.
const SLACK = 1.5; // pixels; sizes are rounded to whole ones
const article = document.querySelector("article") || document.querySelector("main") || document.body;
const short = (text) => text.replace(/\s+/g, " ").trim().slice(0, 60);

function describe(element) {
  const name = element.tagName.toLowerCase();
  const id = element.id ? `#${element.id}` : "";
  const kind = typeof element.className === "string" && element.className.trim();
  return `<${name}${id}${kind ? "." + kind.split(/\s+/).slice(0, 3).join(".") : ""}>`;
}

function outOfFlow(element) {
  for (let box = element; box && box !== document.body; box = box.parentElement) {
    const style = getComputedStyle(box);
    if (style.position === "fixed" || (box !== element && style.overflowX !== "visible")) return true;
  }
  return false;
}

function sidewaysOverflow() {
  const page = document.documentElement;
  if (page.scrollWidth <= page.clientWidth) return null;
  const wide = [...document.body.querySelectorAll("*")].filter(
    (element) => element.getBoundingClientRect().right > page.clientWidth + SLACK && !outOfFlow(element),
  );
  const culprit = wide.length ? describe(wide[wide.length - 1]) : "an element that cannot be named";
  return { width: page.scrollWidth, room: page.clientWidth, culprit };
}

// An inline formula must be seen whole.  A displayed one may scroll sideways, in a box of its own.
function cutOff(formula) {
  const inline = formula.tagName === "SPAN";
  const math = formula.querySelector("mjx-math");
  if (!math) return false;
  const parts = [...math.getClientRects()];
  for (let box = math; box !== article && box.parentElement; box = box.parentElement) {
    const style = getComputedStyle(box);
    if (style.display === "inline" || style.overflowX === "visible") continue;
    const scrolls = style.overflowX === "auto" || style.overflowX === "scroll";
    if (scrolls && !(inline && formula.contains(box))) return false;
    const room = box.getBoundingClientRect();
    if (parts.some((part) => part.left < room.left - SLACK || part.right > room.right + SLACK)) return true;
  }
  return parts.some((part) => part.left < -SLACK || part.right > document.documentElement.clientWidth + SLACK);
}

// Code, printed text and tables that are wider than the box in which they scroll.
function cutCells() {
  const scrolls = (box) => {
    const style = getComputedStyle(box);
    return style.overflowX !== "visible" && box.scrollWidth > box.clientWidth + SLACK;
  };
  const isCut = (element) => {
    for (let box = element; box && box !== article; box = box.parentElement) if (scrolls(box)) return true;
    return false;
  };
  return [...article.querySelectorAll("pre, .cell_output table")].filter(isCut).map((element) => {
    return short(element.textContent);
  });
}

function unfold() {
  for (const fold of article.querySelectorAll("details")) fold.open = true;
}

// Where the buttons end that choose what is shown: whoever opens the page must see that there are some.
function endOfButtons() {
  const ends = [...article.querySelectorAll("fieldset")].map((box) => box.getBoundingClientRect().bottom);
  return Math.round(Math.max(0, ...ends) + window.scrollY);
}

const buttons = endOfButtons();
const folded = sidewaysOverflow();
unfold();
const formulas = [...document.querySelectorAll(".math")].map((formula) => ({
  text: short(formula.querySelector("mjx-assistive-mml")?.textContent || formula.textContent),
  typeset: formula.querySelectorAll("mjx-container").length,
  error: short(
    (formula.querySelector("mjx-merror, [data-mjx-error], merror, [mathcolor='red']") || { textContent: "" })
      .textContent,
  ),
  cut: cutOff(formula),
}));
const images = [...article.querySelectorAll("img")].map((image) => ({
  source: image.getAttribute("src") || "",
  alt: image.getAttribute("alt") || "",
  loaded: image.complete && image.naturalWidth > 0,
}));
const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
const raw = [];
while (walker.nextNode()) {
  const parent = walker.currentNode.parentElement;
  if (/\\[([]|\$\$/.test(walker.currentNode.data) && !parent.closest(".math, code, pre, script, style")) {
    raw.push(short(walker.currentNode.data));
  }
}
return {
  theme: document.documentElement.dataset.theme || null,
  overflow: folded || sidewaysOverflow(),
  cut: cutCells(),
  formulas,
  images,
  raw,
  buttons,
};
