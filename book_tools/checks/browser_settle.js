// Calls back with null once everything on the page is there to be looked at, or with what went wrong.
const done = arguments[arguments.length - 1];
(async () => {
  // Scripts that started MathJax have run by now; its promise resolves after the last formula.
  await window.MathJax?.startup?.promise;
  for (const image of document.images) image.loading = "eager";
  await Promise.all([...document.images].map((image) => image.decode().catch(() => null)));
  await document.fonts.ready;
  done(null);
})().catch((error) => done(String(error)));
