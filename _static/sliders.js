// Gives every figure that has frames a slider, above the picture.  The pictures of the frames are
// fetched when the slider is first touched or focused.  The still stays where it is, out of sight while another frame
// is shown, so that it is what is printed.
(() => {
  const PAUSE = 700; // milliseconds at rest before the whole description is read out

  const made = (tag, className, text = "") => {
    const element = document.createElement(tag);
    element.className = className;
    element.textContent = text;
    return element;
  };

  const build = (about) => {
    const { id, knob, start, frames } = JSON.parse(about.textContent);
    const figure = document.getElementById(id);
    const still = figure.querySelector("img");
    const place = still.closest("a") || still;
    const pictures = frames.map(() => null);
    let index = start;
    let timer = 0;
    let slot = null;

    const box = made("div", "slider");
    const label = made("label", "slider-knob", knob);
    const value = made("output", "slider-value");
    const input = made("input", "slider-range");
    const marks = made("datalist", "");
    const facts = made("div", "slider-facts");
    const told = made("p", "slider-told");
    input.id = `${id}-knob`;
    input.type = "range";
    input.min = 0;
    input.max = frames.length - 1;
    input.step = 1;
    input.value = start;
    // A mark for each step.
    marks.id = `${id}-marks`;
    marks.append(...frames.map((frame, i) => new Option("", i)));
    input.setAttribute("list", marks.id);
    label.htmlFor = value.htmlFor = input.id;
    // The slider itself says its value; said once more it would be heard twice.
    value.setAttribute("aria-live", "off");
    told.setAttribute("role", "status");
    // All facts lie on each other, and one is seen: the page does not jump when they break into lines differently.
    for (const frame of frames) facts.append(made("p", "", frame.fact));
    box.append(label, value, input, marks, facts, told);

    const fetched = (i) => {
      if (!pictures[i]) {
        // As large as the still.
        pictures[i] = still.cloneNode();
        pictures[i].removeAttribute("id");
        pictures[i].classList.replace("slider-still", "slider-frame");
        pictures[i].alt = frames[i].alt;
        pictures[i].src = frames[i].source;
      }
      return pictures[i];
    };

    const fetchAll = () => frames.forEach((frame, i) => frame.source && fetched(i));

    const showPicture = async (i) => {
      if (frames[i].source) {
        const picture = fetched(i);
        try {
          await picture.decode();
        } catch {
          // Words about a picture that is not seen would mislead.
          if (index === i) value.textContent = `${frames[i].text} (its picture could not be loaded)`;
          return;
        }
        if (index !== i) return;
        if (slot && slot !== picture) slot.replaceWith(picture);
        if (!slot) place.after(picture);
        slot = picture;
      }
      figure.classList.toggle("slider-moved", i !== start);
      figure.dataset.frame = i;
    };

    const say = (i) => {
      value.textContent = frames[i].text;
      input.setAttribute("aria-valuetext", `${frames[i].text}: ${frames[i].fact}`);
      [...facts.children].forEach((fact, k) => fact.classList.toggle("slider-shown", k === i));
    };

    input.addEventListener("input", () => {
      index = Number(input.value);
      say(index);
      showPicture(index);
      clearTimeout(timer);
      timer = setTimeout(() => (told.textContent = frames[index].alt), PAUSE);
    });
    input.addEventListener("focus", fetchAll, { once: true });
    input.addEventListener("pointerenter", fetchAll, { once: true });
    still.classList.add("slider-still");
    figure.dataset.frame = start;
    say(start);
    place.before(box);
  };

  document.addEventListener("DOMContentLoaded", () => {
    for (const about of document.querySelectorAll("script.frames")) build(about);
  });
})();
