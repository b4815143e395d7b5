// Style that is loaded with what needs it: a view, or a large component.

/** Load `style/NAME.css`; resolves once it applies. @param {string} name */
export function loadStyle(name) {
  const sheet = document.createElement("link");
  sheet.rel = "stylesheet";
  sheet.href = `/style/${name}.css`;
  const ready = new Promise((done) => {
    sheet.onload = sheet.onerror = done;
  });
  document.head.append(sheet);
  return ready;
}
