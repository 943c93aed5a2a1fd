// What all views share: talking to the kernel, elements, highlighted text, keys.

const WAIT = 8000;

/** Asks the kernel; a promise of its answer, refused with the kernel's reason, or when no kernel answers. */
function asker(model) {
  const open = new Map();
  let last = 0;
  model.on("msg:custom", (content) => {
    const one = open.get(content.id);
    if (!one) return;
    open.delete(content.id);
    clearTimeout(one.timer);
    if ("answer" in content) one.resolve(content.answer);
    else one.reject(new Error(content.refused));
  });
  return (kind, fields) =>
    new Promise((resolve, reject) => {
      const id = ++last;
      const gone = () => {
        open.delete(id);
        reject(new Error("the kernel does not answer: run the cell again"));
      };
      open.set(id, { resolve, reject, timer: setTimeout(gone, WAIT) });
      model.send({ kind, id, ...fields });
    });
}

/** An element: h("button", {class: "x", onclick}, ...children). */
function h(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made[name] = value;
    else if (name.startsWith("aria-") && value !== null && value !== undefined) made.setAttribute(name, String(value));
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((each) => each !== null && each !== undefined));
  return made;
}

/** Highlighted text; names of values are buttons where `onValue` is given. */
function line(pieces, onValue) {
  return pieces.map(([text, role]) => {
    if (onValue && role === "value" && text.startsWith("%"))
      return h("button", { class: "tsw-value r-value", type: "button", "data-value": text, onclick: () => onValue(text) }, text);
    return role === "plain" ? text : h("span", { class: "r-" + role }, text);
  });
}

/** The root of a view, with a place where it says what happens. */
function root(el, title, label) {
  const status = h("span", { class: "tsw-status", role: "status", "aria-live": "polite" });
  const bar = h("div", { class: "tsw-bar" }, h("span", { class: "tsw-title" }, title));
  const host = h("section", { class: "tsw", "aria-label": label }, bar, status);
  el.append(host);
  const say = (text, isError) => {
    status.textContent = text;
    status.classList.toggle("tsw-error", Boolean(isError));
  };
  return { host, bar, say, fail: (error) => say(error.message, true) };
}

function button(text, label, onclick, more) {
  return h("button", { type: "button", class: "tsw-button", title: label, "aria-label": label, onclick, ...more }, text);
}

/** Keeps a choice of the reader with the notebook. */
function keep(model, changes) {
  model.set("state", { ...model.get("state"), ...changes });
  model.save_changes();
}

/** Arrow keys go from row to row of a list, tree or table whose rows match the selector. */
function arrows(host, selector) {
  host.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const end = { Home: 0, End: -1 }[event.key];
    if (step === undefined && end === undefined) return;
    const rows = [...host.querySelectorAll(selector)].filter((row) => row.offsetParent !== null);
    const at = rows.indexOf(document.activeElement);
    const next = end === undefined ? rows[at + step] : rows.at(end);
    if (next && at >= 0) {
      event.preventDefault();
      event.stopPropagation();
      next.focus();
    }
  });
}
