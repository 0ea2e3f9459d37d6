// Shows every preview of the page, one after the other; calls back with what is wrong, and leaves the last one open.
const done = arguments[arguments.length - 1];
const SLACK = 1.5; // pixels
(async () => {
  const problems = [];
  const links = new Map();
  for (const link of document.querySelectorAll("article a[data-preview]")) {
    const address = link.getAttribute("href");
    if (!links.has(address)) links.set(address, link);
  }
  if (typeof bookPreviews === "undefined") return done({ number: 0, problems });
  const box = bookPreviews.box;
  let first = true;
  for (const [address, link] of links) {
    const wrong = (what) => problems.push(`preview of ${address} ${what}`);
    if (first) {
      // As with the keyboard: focus shows it, Escape puts it away.
      for (let fold = link.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
      link.focus({ focusVisible: true });
      await bookPreviews.show(link);
      if (document.activeElement === link) {
        document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
        if (!box.hidden) wrong("is not put away by Escape");
        link.blur();
      }
      first = false;
    }
    await bookPreviews.show(link);
    if (box.hidden || !box.textContent.trim()) {
      wrong("is empty");
      continue;
    }
    for (const image of box.querySelectorAll("img")) {
      await image.decode().catch(() => wrong(`has an image that did not load: ${image.src}`));
    }
    for (const formula of box.querySelectorAll(".math")) {
      if (formula.querySelectorAll("mjx-container").length !== 1) wrong(`has a formula that is not typeset`);
      if (formula.querySelector("mjx-merror, [data-mjx-error], merror, [mathcolor='red']")) wrong(`has a formula with an error`);
    }
    const room = box.getBoundingClientRect();
    if (room.left < -SLACK || room.right > document.documentElement.clientWidth + SLACK) wrong("leaves the screen");
    if (box.querySelector("[id], a")) wrong("has anchors or links of its own");
  }
  done({ number: links.size, problems: problems.slice(0, 20) });
})().catch((error) => done({ number: 0, problems: [`previews failed: ${error}`] }));
