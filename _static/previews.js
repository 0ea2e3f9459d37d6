// Shows what a link leads to, beside the link, while it is pointed at or has the focus of the keyboard.
// Escape puts it away; one may point into it.  On a screen that one touches, a link is simply followed.
const bookPreviews = (() => {
  const WAIT = 250; // milliseconds; nothing shall flicker while the pointer only passes
  const root = document.documentElement.dataset.content_root || "./";
  let found = {};
  let loading = null;
  let shown = null;
  let timer = 0;
  const box = document.createElement("div");
  box.className = "preview";
  box.id = "preview";
  box.setAttribute("role", "tooltip");
  box.hidden = true;

  const take = (previews) => (found = previews);

  const load = () =>
    (loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${root}previews/${DOCUMENTATION_OPTIONS.pagename}.js`;
      script.onload = resolve;
      script.onerror = reject;
      document.head.append(script);
    }));

  const place = (link) => {
    const at = link.getClientRects()[0] || link.getBoundingClientRect();
    const room = document.documentElement.clientWidth;
    box.style.left = "0";
    box.style.top = "0";
    const left = Math.max(8, Math.min(at.left, room - box.offsetWidth - 8));
    const below = at.bottom + box.offsetHeight + 8 <= window.innerHeight || at.top < box.offsetHeight + 8;
    box.style.left = `${left + window.scrollX}px`;
    box.style.top = `${(below ? at.bottom + 4 : at.top - box.offsetHeight - 4) + window.scrollY}px`;
  };

  const show = async (link) => {
    await load();
    const html = found[link.getAttribute("href")];
    if (!html) return;
    hide();
    shown = link;
    box.innerHTML = html;
    for (const image of box.querySelectorAll("[data-src]")) image.src = root + image.dataset.src;
    box.hidden = false;
    link.setAttribute("aria-describedby", box.id);
    place(link);
    await window.MathJax?.startup?.promise;
    await window.MathJax?.typesetPromise?.([box]);
    if (shown === link) place(link);
  };

  const hide = () => {
    clearTimeout(timer);
    if (!shown) return;
    shown.removeAttribute("aria-describedby");
    shown = null;
    box.hidden = true;
    window.MathJax?.typesetClear?.([box]);
  };

  const later = (what) => {
    clearTimeout(timer);
    timer = setTimeout(what, WAIT);
  };

  document.addEventListener("DOMContentLoaded", () => {
    const links = document.querySelectorAll("a[data-preview]");
    if (!links.length) return;
    document.body.append(box);
    for (const link of links) {
      link.addEventListener("pointerenter", (event) => event.pointerType !== "touch" && later(() => show(link)));
      link.addEventListener("pointerleave", () => later(hide));
      link.addEventListener("focus", () => link.matches(":focus-visible") && show(link));
      link.addEventListener("blur", hide);
    }
    box.addEventListener("pointerenter", () => clearTimeout(timer));
    box.addEventListener("pointerleave", () => later(hide));
    document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  });
  return { take, show, hide, box };
})();
