// What all views share: talking to the kernel, elements, highlighted text, keys.

const PAUSE = 1000;
const PATIENCE = 8; // pauses in which a kernel that does nothing else is to answer
const VIEW_TYPE = "application/vnd.jupyter.widget-view+json";
const STATE_TYPE = "application/vnd.jupyter.widget-state+json";

/** Asks the kernel; a promise of its answer, refused with the kernel's reason, or when no kernel answers.  One that is
    busy answers when its cell has run: `say` tells that while the question waits. */
function asker(model, say) {
  const open = new Map();
  let last = 0;
  const gone = () => Object.assign(new Error("the kernel that made this view is gone: run the cell again"), { isGone: true });
  model.on("msg:custom", (content) => {
    const one = open.get(content.id);
    if (!one) return;
    open.delete(content.id);
    clearInterval(one.timer);
    if (one.waited) say("");
    if ("answer" in content) one.resolve(content.answer);
    else one.reject(new Error(content.refused));
  });
  return async (kind, fields) => {
    if (!(await isLive(model))) throw gone();
    return new Promise((resolve, reject) => {
      const id = ++last;
      const one = { resolve, reject, waited: 0, idle: 0 };
      const give = (error) => { clearInterval(one.timer); open.delete(id); reject(error); };
      one.timer = setInterval(async () => {
        one.waited++;
        const status = statusOf(model);
        one.idle = status === "idle" ? one.idle + 1 : 0;
        if (!(await isLive(model))) give(gone());
        else if (one.idle > PATIENCE) give(new Error("the kernel does not answer: run the cell again"));
        else if (one.idle === 0) say(status ? `the kernel is ${status}: this is answered when its cell has run` : "waiting for the kernel");
      }, PAUSE);
      open.set(id, one);
      model.send({ kind, id, ...fields });
    });
  };
}

/** What the kernel does, where the page tells: "idle", "busy"; undefined elsewhere. */
function statusOf(model) {
  return model.widget_manager?.kernel?.status;
}

/** False if the page knows that the view was restored from a file, or has lost its kernel. */
async function isLive(model) {
  const own = await model.widget_manager?.get_model?.(model.get("key"))?.catch(() => null);
  return own?.comm_live !== false;
}

/** Lets notebooks be saved with the state of their views, where the page tells when that happens: JupyterLab and
    Notebook do not do it by themselves, unless a setting says so, and then show an error in the view's place. */
function saved(manager) {
  const mark = Symbol.for("tsrepl");
  if (!manager?.context?.saveState || manager[mark]) return;
  manager[mark] = true;
  manager.context.saveState.connect((_, what) => { if (what === "started") store(manager, manager.context.model); });
}

/** Writes the state of our views that show into the notebook, beside that of other widgets. */
function store(manager, notebook) {
  const shown = new Set();
  for (const cell of notebook.cells)
    for (let at = 0; at < (cell.outputs?.length ?? 0); at++) shown.add(cell.outputs.get(at).data?.[VIEW_TYPE]?.model_id);
  const isOurs = (one) => Boolean(one.state?._anywidget_id?.startsWith("tsrepl."));
  const before = Object.entries(notebook.getMetadata("widgets")?.[STATE_TYPE]?.state ?? {});
  const now = Object.entries(manager.get_state_sync({ drop_defaults: true }).state).filter(([, one]) => isOurs(one));
  const kept = [...before, ...now].filter(([id, one]) => !isOurs(one) || shown.has(id));
  for (const [, one] of kept) if (isOurs(one)) delete one.state.layout; // a widget of its own, which is not kept
  if (before.length || kept.length)
    notebook.setMetadata("widgets", { [STATE_TYPE]: { version_major: 2, version_minor: 0, state: Object.fromEntries(kept) } });
}

/** Lets the view take the place of its static forms, which are an output of their own behind it, unless it has lost
    what it showed, and is `.tsw-gone`.  JupyterLab and Notebook need a rule of the style sheet only. */
function replaceStatic(model, host) {
  const replace = () => {
    for (const each of document.querySelectorAll(`.tsrepl-static-${model.get("key")}`))
      if (!each.closest(".jp-OutputArea-child")) each.hidden = !host.classList.contains("tsw-gone");
  };
  [0, 300, 1500].forEach((later) => setTimeout(replace, later)); // it may come after the view
}

/** Keeps the notebook's keys out of views: in one, "b" is no new cell and "0" twice no restart.  Those with Ctrl, Alt or
    Meta, and Shift+Enter, stay the notebook's.  JupyterLab and Notebook read the attribute, of the element that has the
    focus before any around it. */
function keys() {
  const mark = Symbol.for("tsrepl.keys");
  if (window[mark]) return;
  window[mark] = true;
  window.addEventListener("keydown", (event) => {
    const isTheirs = event.ctrlKey || event.altKey || event.metaKey || (event.shiftKey && event.key === "Enter");
    if (event.target.closest?.(".tsw")) event.target.toggleAttribute("data-lm-suppress-shortcuts", !isTheirs);
  }, true);
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

/** The root of a view, with a place where it says what happens, and a way to ask the kernel. */
function root(model, el, title, label) {
  saved(model.widget_manager);
  keys();
  const status = h("span", { class: "tsw-status", role: "status", "aria-live": "polite" });
  const bar = h("div", { class: "tsw-bar" }, h("span", { class: "tsw-title" }, title));
  const host = h("section", { class: "tsw", "aria-label": label }, bar, status);
  el.append(host);
  replaceStatic(model, host);
  const say = (text, isError) => {
    status.textContent = text;
    status.classList.toggle("tsw-error", Boolean(isError));
  };
  const fail = (error) => {
    say(error.message, true);
    if (!error.isGone || !host.querySelector("canvas:not([data-boxes])")) return;
    host.classList.add("tsw-gone"); // its picture was too large to be kept; the static forms have it
  };
  return { host, bar, say, fail, ask: asker(model, say) };
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

/** A search with a list of hits: `find(text)` promises them, `row(hit)` is what a line holds, `choose(hit)` goes there. */
function finder(parts, label, find, row, choose) {
  const id = `tsw-${Math.random().toString(36).slice(2)}`;
  const hits = h("ul", { class: "tsw-hits", id, role: "listbox", "aria-label": "hits", hidden: true });
  const search = h("input", { type: "search", class: "tsw-search", placeholder: "find", "aria-label": label, role: "combobox",
    "aria-controls": id, "aria-expanded": "false", "aria-autocomplete": "list" });
  const open = (isOpen) => { hits.hidden = !isOpen; search.setAttribute("aria-expanded", isOpen); };
  const option = (hit) => {
    const go = () => { open(false); choose(hit); };
    return h("li", { role: "option", "aria-selected": "false", tabindex: -1, onclick: go, onkeydown: (event) => {
      if (event.key === "Enter") go();
      if (event.key === "Escape") { open(false); search.focus(); }
    } }, ...row(hit));
  };
  let timer;
  search.oninput = () => {
    clearTimeout(timer);
    timer = setTimeout(() => find(search.value).then((found) => {
      hits.replaceChildren(...found.map(option));
      open(search.value !== "" && found.length > 0);
      parts.say(`${found.length} found`);
    }).catch(parts.fail), 150);
  };
  search.onkeydown = (event) => {
    event.stopPropagation();
    if (event.key === "Escape") open(false);
    if (event.key === "Enter") hits.firstChild?.click();
    if (event.key === "ArrowDown" && hits.firstChild) { event.preventDefault(); open(true); hits.firstChild.focus(); }
  };
  arrows(hits, "li");
  return h("span", { class: "tsw-find" }, search, hits);
}
