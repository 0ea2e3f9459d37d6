// Moves every slider of the page to its first and its last frame, and one step back; calls back with what is wrong:
// picture, spoken value and description must follow within the patience, which is in milliseconds.
const [patience, done] = arguments;
const SLACK = 1.5; // pixels
(async () => {
  const problems = [];
  for (const about of document.querySelectorAll("script.frames")) {
    const { id, start, frames } = JSON.parse(about.textContent);
    const figure = document.getElementById(id);
    const input = figure.querySelector("input[type=range]");
    if (!input) {
      problems.push("a figure with frames has no slider; did its script fail?");
      continue;
    }
    // Shown first in a fold, a slider would have no size; whoever can reach it has opened the fold.
    for (let fold = figure.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    const wrong = (what) => problems.push(`slider ${id} ${what}`);
    const pictures = () => [...figure.querySelectorAll("img")].filter((image) => image.checkVisibility());
    const box = input.getBoundingClientRect();
    if (Number(figure.dataset.frame) !== start) wrong(`starts at frame ${figure.dataset.frame}, not at ${start}`);
    if (box.left < 0 || box.right > document.documentElement.clientWidth) wrong("is wider than the screen");
    if (box.bottom > pictures()[0].getBoundingClientRect().top) wrong("stands below its picture");
    const last = frames.length - 1;
    const sources = new Map([[start, pictures()[0].getAttribute("src")]]);
    const heights = [pictures()[0].getBoundingClientRect().height];
    input.focus();
    for (const wanted of [0, last, last - 1]) {
      const frame = frames[wanted];
      const told = figure.querySelector("[role=status]");
      const isThere = () => Number(figure.dataset.frame) === wanted && told.textContent === frame.alt;
      input.value = wanted;
      input.dispatchEvent(new Event("input"));
      for (const begin = Date.now(); !isThere() && Date.now() < begin + patience; ) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      if (!isThere()) {
        wrong("does not follow its knob");
        break;
      }
      const amiss = (what) => wrong(`at ${frame.text}: ${what}`);
      const spoken = input.getAttribute("aria-valuetext");
      const value = figure.querySelector("output").textContent;
      if (spoken !== `${frame.text}: ${frame.fact}`) amiss(`the spoken value is ${spoken}`);
      if (value !== frame.text) amiss(`the value beside it is ${value}`);
      const [image, ...more] = pictures();
      if (more.length || !image) amiss(`${more.length + 1} pictures are seen, or none`);
      if (!image) continue;
      if (!image.complete || !image.naturalWidth) amiss(`its picture ${image.getAttribute("src")} did not load`);
      if (image.alt !== frame.alt) amiss("its picture has the description of another frame");
      sources.set(wanted, image.getAttribute("src"));
      heights.push(image.getBoundingClientRect().height);
    }
    const [lowest, highest] = [Math.min(...heights), Math.max(...heights)];
    if (highest - lowest > SLACK) wrong(`jumps: its pictures are ${lowest} to ${highest} px high`);
    if (new Set(sources.values()).size < sources.size) wrong("shows one picture for two frames");
  }
  done(problems);
})().catch((error) => done([`sliders failed: ${error}`]));
