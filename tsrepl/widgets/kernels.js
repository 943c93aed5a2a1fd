// The kernel view.

function render({ model, el }) {
  const data = model.get("data");
  const ask = asker(model);
  const parts = root(el, data.title, "kernels of " + data.title);
  for (const why of data.why) parts.host.append(h("p", { class: "r-muted" }, why));
  if (data.kernels.length) {
    const choose = h("select", { "aria-label": "kernel" }, ...data.kernels.map((each, at) => h("option", { value: at }, each.name)));
    const host = h("div", { class: "tsw-columns" });
    const facts = h("p", { class: "r-muted" });
    const shown = new Set(model.get("state").shown ?? ["TorchScript", "loop IR", "LLVM", "assembly"]);
    const forms = h("span", { class: "tsw-tools", role: "group", "aria-label": "texts" });
    let lines = [];

    const mark = (place, name) => {
      for (const each of lines) each.element.classList.toggle("here", Boolean((place && each.place === place) || (!place && name && each.name === name)));
      const seen = new Set();
      for (const each of lines)
        if (each.element.classList.contains("here") && !seen.has(each.column)) {
          seen.add(each.column);
          each.column.scrollTop = each.element.offsetTop - each.column.offsetTop - 40;
        }
    };
    const row = (column, [pieces, place, name], isProgram) => {
      const isLinked = Boolean(place || name);
      const element = h("span", { class: "tsw-row" + (isLinked ? " tsw-linked" : ""), tabindex: isLinked && (place || isProgram) ? 0 : null,
        onclick: () => mark(place, name), onkeydown: (event) => event.key === "Enter" && mark(place, name) },
        ...(isProgram ? [h("span", { class: "r-muted" }, place + "  ")] : []), ...line(pieces));
      lines.push({ element, place, name, column });
      return element;
    };
    const show = (answer) => {
      lines = [];
      forms.replaceChildren(...answer.columns.map((each) => button(each.title, "show or hide " + each.title, () => {
        if (shown.has(each.title)) shown.delete(each.title);
        else shown.add(each.title);
        keep(model, { shown: [...shown] });
        show(answer);
      }, { "aria-pressed": shown.has(each.title) })));
      host.replaceChildren(...answer.columns.filter((each) => shown.has(each.title)).map((each) => {
        const text = h("pre", { class: "tsw-text", tabindex: 0, "aria-label": each.title });
        text.append(...each.rows.map((one) => row(text, one, each.title === "TorchScript")));
        return h("div", { style: "min-width:0" }, h("h4", {}, each.title), text);
      }));
      arrows(host, "[tabindex='0'].tsw-row");
      parts.say("");
    };
    const go = (number) => {
      keep(model, { number });
      facts.textContent = data.kernels[number].facts;
      parts.say("compiling");
      ask("kernel", { number }).then(show).catch(parts.fail);
    };
    choose.onchange = () => go(Number(choose.value));
    choose.value = model.get("state").number ?? 0;
    parts.bar.append(choose, forms);
    parts.host.append(facts, host);
    go(Number(choose.value));
  }
  if (data.unfused.length)
    parts.host.append(h("details", {}, h("summary", {}, `without a kernel: ${data.unfused.length}`),
      h("table", { class: "tsw-table" }, ...data.unfused.map((cells) => h("tr", {}, ...cells.map((each) => h("td", {}, each)))))));
}

export default { render };
