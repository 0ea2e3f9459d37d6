// Runs axe on the page, and calls back with its findings, or with the words of its failure.
const done = arguments[arguments.length - 1];
// Colours on their way from one theme to the other, and folds that fade in, would be judged half-way.
const still = "* {animation: none !important; transition: none !important}";
document.head.insertAdjacentHTML("beforeend", `<style>${still}</style>`);
// Images without alternative text and formulas with an error are reported by checks that say more.
const options = { resultTypes: ["violations"], rules: { "image-alt": { enabled: false } } };
axe.run({ exclude: [["mjx-merror"]] }, options).then(
  ({ violations }) => done(violations.map(({ id, impact, help, nodes }) => ({
    id, impact, help, number: nodes.length, first: nodes[0].html.slice(0, 120),
  }))),
  (error) => done(String(error)),
);
