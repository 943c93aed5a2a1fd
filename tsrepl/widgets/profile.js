// The profile and guard view.

function render({ model, el }) {
  const data = model.get("data");
  const parts = root(model, el, data.title, `${data.kind} of ${data.title}`);
  const filter = h("input", { type: "search", class: "tsw-search", placeholder: "filter", "aria-label": "filter values" });
  filter.value = model.get("state").filter ?? "";
  parts.bar.append(filter);
  const host = h("div", { class: "tsw-scroll", tabindex: 0, role: "region", "aria-label": `${data.kind} of ${data.title}, by line` });

  function table(columns, rows, label) {
    return h("table", { class: "tsw-table", "aria-label": label }, h("thead", {}, h("tr", {}, ...columns.map((each) => h("th", { scope: "col" }, each)))), h("tbody", {}, ...rows));
  }
  function valueRow(row) {
    const [name, type, ...rest] = row.cells;
    const more = row.more.map((each) => h("div", { class: "r-muted" }, each));
    return h("tr", {}, h("td", { class: "r-value" }, name), h("td", { class: "r-type" }, type, ...more),
      ...rest.map((each) => h("td", { class: row.level ? "r-" + row.level : "" }, each)));
  }
  function section(each, wanted) {
    const matches = (row) => row.cells.join(" ").toLowerCase().includes(wanted);
    const lines = each.lines.map((one) => [one, one.rows.filter(matches)]).filter(([, rows]) => rows.length);
    const failed = each.failures.length
      ? [h("h4", { class: "r-error" }, "failures"), table(["line", "value", "expected", "actual", "times", "first after"],
        each.failures.map((row) => h("tr", {}, ...row.map((cell, at) => h("td", { class: ["r-muted", "r-value", "r-good", "r-error"][at] ?? "" }, cell)))), "failures")]
      : [];
    return h("section", {}, h("h4", {}, each.title), ...each.facts.map((fact) => h("p", { class: "r-muted" }, fact)), ...failed,
      ...lines.map(([one, rows], at) => h("details", { open: lines.length <= 12 || wanted !== "" || at < 6 },
        h("summary", {}, h("span", { class: "r-muted" }, one.place + "  "), ...line(one.text), h("span", { class: "r-muted" }, `  ${rows.length}`)),
        table(data.columns, rows.map(valueRow), "values at " + one.place))));
  }
  function show() { host.replaceChildren(...data.sections.map((each) => section(each, filter.value.toLowerCase()))); }

  filter.oninput = () => { show(); keep(model, { filter: filter.value }); };
  filter.onkeydown = (event) => event.stopPropagation();
  show();
  parts.host.append(host);
}

export default { render };
