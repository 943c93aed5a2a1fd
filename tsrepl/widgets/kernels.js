// The kernel view.

function render({ model, el }) {
  const data = model.get("data");
  const parts = root(model, el, data.title, "kernels of " + data.title);
  const { ask } = parts;
  for (const why of data.why) parts.host.append(h("p", { class: "r-muted" }, why));
  if (data.kernels.length) {
    const choose = h("select", { "aria-label": "kernel" }, ...data.kernels.map((each, at) => h("option", { value: at }, each.name)));
    const facts = h("p", { class: "r-muted" });
    const shown = new Set(model.get("state").shown ?? ["TorchScript", "loop IR", "LLVM", "assembly"]);
    let lines = [];

    const mark = (place, name) => {
      for (const each of lines) {
        const isHere = Boolean((place && each.place === place) || (!place && name && each.name === name));
        each.element.classList.toggle("here", isHere);
        if (each.element.hasAttribute("aria-pressed")) each.element.setAttribute("aria-pressed", isHere);
      }
      parts.say(`${lines.filter((each) => each.element.classList.contains("here")).length} lines belong to ${place || name}`);
      const seen = new Set();
      for (const each of lines)
        if (each.element.classList.contains("here") && !seen.has(each.column)) {
          seen.add(each.column);
          each.column.scrollTop = each.element.offsetTop - each.column.offsetTop - 40;
        }
    };
    const row = (column, [pieces, place, name], isProgram) => {
      const isLinked = Boolean(pieces.length && (place || name));
      const isStop = isLinked && Boolean(place || isProgram);
      const element = h("span", { class: "tsw-row" + (isLinked ? " tsw-linked" : ""), tabindex: isStop ? 0 : null,
        role: isStop ? "button" : null, "aria-pressed": isStop ? "false" : null, onclick: () => mark(place, name), onkeydown: (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          mark(place, name);
        } },
        ...(isProgram ? [h("span", { class: "r-muted" }, place + "  ")] : []), ...line(pieces));
      lines.push({ element, place, name, column });
      return element;
    };
    const columns = data.texts.map((title, at) => {
      const text = h("div", { class: "tsw-text", tabindex: 0, role: "region", "aria-label": title });
      return { title, at, text, element: h("div", { style: "min-width:0" }, h("h4", {}, title), text) };
    });
    const apart = (error) => [[[[error.message, "muted"]], "", ""]];
    /** Fetches the text of each column that shows and has none yet, one after the other. */
    const fill = async () => {
      for (const each of columns) {
        each.element.hidden = !shown.has(each.title);
        const number = Number(choose.value);
        if (each.element.hidden || each.number === number) continue;
        parts.say("writing " + each.title);
        const kept = model.get("shown")[each.at];
        const rows = kept?.number === number ? kept.rows : await ask("kernel", { number, text: each.at }).then((answer) => answer.rows).catch(apart);
        if (number !== Number(choose.value)) return;
        lines = lines.filter((one) => one.column !== each.text);
        each.text.replaceChildren(...rows.map((one) => row(each.text, one, each.at === 0)));
        each.number = number;
      }
      parts.say("");
    };
    const forms = h("span", { class: "tsw-tools", role: "group", "aria-label": "texts" }, ...columns.map(({ title }) => {
      const one = button(title, "show or hide " + title, () => {
        if (shown.has(title)) shown.delete(title);
        else shown.add(title);
        one.setAttribute("aria-pressed", shown.has(title));
        keep(model, { shown: [...shown] });
        fill().catch(parts.fail);
      }, { "aria-pressed": shown.has(title) });
      return one;
    }));
    const go = (number) => {
      keep(model, { number });
      facts.textContent = data.kernels[number].facts;
      for (const each of columns) { each.text.replaceChildren(); each.number = null; }
      lines = [];
      fill().catch(parts.fail);
    };
    const host = h("div", { class: "tsw-columns" }, ...columns.map((each) => each.element));
    arrows(host, "[tabindex='0'].tsw-row");
    choose.onchange = () => go(Number(choose.value));
    choose.value = model.get("state").number ?? 0;
    parts.bar.append(choose, forms);
    parts.host.append(facts, host);
    go(Number(choose.value));
  }
  if (data.unfused.length)
    parts.host.append(h("details", {}, h("summary", {}, `without a kernel: ${data.unfused.length}`),
      h("table", { class: "tsw-table", "aria-label": "without a kernel" }, ...data.unfused.map((cells) => h("tr", {}, ...cells.map((each) => h("td", {}, each)))))));
}

export default { render };
