// The cost view: modules as bars below each other; a chosen one marks its nodes and their lines.

const TALL = 25;

function render({ model, el }) {
  const data = model.get("data");
  const parts = root(model, el, data.title, "cost of " + data.title);
  parts.host.append(...data.facts.map((each) => h("p", { class: "r-muted" }, each)));
  const percent = (part) => `${(100 * part).toFixed(part < 0.1 ? 1 : 0)} %`;
  const bar = (part) => h("span", { class: "tsw-size", style: `width:${(6 * part).toFixed(2)}em`, "aria-hidden": "true" });
  const time = (row) => h("td", { style: "white-space:nowrap" }, bar(row.part), row.time, h("span", { class: "r-muted" }, " " + percent(row.part)));
  const table = (label, columns, rows) => h("table", { class: "tsw-table", "aria-label": label },
    h("thead", {}, h("tr", {}, ...columns.map((each) => h("th", { scope: "col" }, each)))), h("tbody", {}, ...rows));

  const nodes = data.nodes.map((row) => ({ row, element: h("tr", {}, h("td", {}, row.name, h("span", { class: "r-muted" }, row.holds ? "  " + row.holds : "")),
    time(row), h("td", { class: "r-muted" }, row.count), h("td", { class: "r-muted tsw-amount" }, row.memory), h("td", { class: "r-muted" }, row.place), h("td", { class: "r-type" }, row.module)) }));
  const lines = data.lines.map((row) => ({ row, element: h("tr", {}, h("td", { class: "r-muted" }, row.place),
    h("td", {}, ...row.text.map((each) => h("div", {}, ...line(each)))), time(row), h("td", { class: "r-muted tsw-amount" }, row.memory), h("td", { class: "r-muted" }, row.how)) }));
  const bars = data.modules.map((each) => h("button", { type: "button", class: "tsw-flame", "aria-pressed": "false", "data-path": each.path,
    "aria-label": `${each.path || each.name}: ${each.facts}`, title: `${each.path || each.name}: ${each.facts}`,
    style: `left:${100 * each.left}%;width:${100 * each.part}%;top:${TALL * each.depth}px`, onclick: () => choose(each.path) }, each.name));

  /** Marks what belongs to a module and those inside it; the chosen one again, or the whole, marks nothing. */
  function choose(path) {
    const chosen = path === model.get("state").module ? "" : path;
    keep(model, { module: chosen });
    mark(chosen);
  }
  function mark(chosen) {
    const isInside = (row) => chosen !== "" && `${row.module}.`.startsWith(`${chosen}.`);
    const places = new Set(data.nodes.filter(isInside).map((row) => row.place));
    for (const each of bars) each.setAttribute("aria-pressed", chosen !== "" && each.dataset.path === chosen);
    for (const { row, element } of nodes) element.classList.toggle("here", isInside(row));
    for (const { row, element } of lines) element.classList.toggle("here", places.has(row.place));
    const facts = data.modules.find((each) => each.path === chosen);
    parts.say(chosen ? `${chosen}: ${facts.facts}` : "");
  }

  if (bars.length) {
    const deepest = Math.max(...data.modules.map((each) => each.depth));
    const flame = h("div", { class: "tsw-flames", role: "group", "aria-label": "time by module", style: `height:${TALL * (deepest + 1)}px` }, ...bars);
    arrows(flame, ".tsw-flame");
    parts.host.append(flame);
  }
  const scroll = (label, inner) => h("div", { class: "tsw-scroll", tabindex: 0, role: "region", "aria-label": label }, inner);
  if (lines.length) parts.host.append(scroll("by line", table("by line", ["line", "source", "time", "memory", "runs as"], lines.map((each) => each.element))));
  if (nodes.length) parts.host.append(scroll("by node", table("by node", ["node", "time", "times", "memory", "line", "module"], nodes.map((each) => each.element))));
  parts.host.append(h("p", { class: "r-muted" }, data.rest));
  mark(model.get("state").module ?? "");
}

export default { render };
