// The kernel view.

function render({ model, el }) {
  const data = model.get("data");
  const parts = root(model, el, data.title, "kernels of " + data.title);
  const { ask } = parts;
  for (const why of data.why) parts.host.append(h("p", { class: "r-muted" }, why));
  if (data.kernels.length) {
    const choose = h("select", { "aria-label": "kernel" }, ...data.kernels.map((each, at) => h("option", { value: at }, each.name)));
    const facts = h("p", { class: "r-muted" });
    const shown = new Set(model.get("state").shown ?? data.first);
    const hues = new Map();
    let lines = [], chosen = null;

    /** The hue of a line of the program: neighbours' are far apart. */
    const hue = (place) => {
      if (!hues.has(place)) hues.set(place, Math.round(hues.size * 137.5) % 360);
      return hues.get(place);
    };

    /** True for lines that belong together: of a line of the same loop IR; of a line of the program, where their loop IRs
        are different; of a function, where they are of no line.  What is around several lines of the program belongs to
        what is around just these, and to each of them only where it is chosen itself. */
    const isLinked = (a, b) => {
      if (!a.lines.length || !b.lines.length) return a.lines.length === b.lines.length && Boolean(a.name) && a.name === b.name;
      const share = (one, other) => one.some((each) => other.includes(each));
      if (a.of === b.of) return share(a.lines, b.lines);
      return share(a.places, b.places) && (!b.isAround || (a.isAround && a.places.length === b.places.length));
    };
    const mark = (one) => {
      chosen = one;
      for (const each of lines) {
        each.isHere = isLinked(chosen, each);
        each.element.classList.toggle("here", each.isHere);
        if (each.element.hasAttribute("aria-pressed")) each.element.setAttribute("aria-pressed", each.isHere);
      }
      const here = lines.filter((each) => each.isHere);
      parts.say(`${here.length} lines belong to ${chosen.places.join(", ") || chosen.name}`);
      const seen = new Set([chosen.column]); // which shows the line already
      for (const each of here)
        if (!seen.has(each.column)) {
          seen.add(each.column);
          each.column.scrollTop = each.element.offsetTop - each.column.offsetTop - 40;
        }
    };
    const row = (column, of, [pieces, number, name], { places, folded, around }) => {
      const isButton = Boolean(pieces.length && (number || name));
      const own = number ? [number, ...(folded[number] ?? [])] : [];
      const one = { column, of, name, lines: own, places: [...new Set(own.flatMap((each) => places[each] ?? []))] };
      one.isAround = one.places.length > 1 && around.has(number);
      one.element = h("span", { class: "tsw-row" + (isButton ? " tsw-linked" : ""), tabindex: isButton ? -1 : null,
        role: isButton ? "button" : null, "aria-pressed": isButton ? "false" : null,
        onclick: () => isButton && mark(one), onkeydown: (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          mark(one);
        } },
        ...(of === "" ? [h("span", { class: "r-muted" }, one.places[0] + "  ")] : []), ...line(pieces));
      if (isButton && one.places.length && !one.isAround) {
        one.element.classList.add("tsw-coloured");
        one.element.style.setProperty("--tsw-hue", hue(one.places[0]));
      }
      lines.push(one);
      return one.element;
    };
    const columns = data.texts.map(([title, of], at) => {
      const text = h("div", { class: "tsw-text", tabindex: 0, role: "region", "aria-label": title });
      return { title, of, at, text, element: h("div", { style: "min-width:0" }, h("h4", {}, title), text) };
    });
    const apart = (error) => (parts.fail(error), { rows: [[[[error.message, "muted"]], 0, ""]], places: {}, folded: {}, around: [] });
    /** Fetches the text of each column that shows and has none yet, one after the other. */
    const fill = async () => {
      for (const each of columns) {
        each.element.hidden = !shown.has(each.title);
        const number = Number(choose.value);
        if (each.element.hidden || each.number === number) continue;
        parts.say("writing " + each.title);
        const kept = model.get("shown")[each.at];
        const found = kept?.number === number ? kept : await ask("kernel", { number, text: each.at }).catch(apart);
        if (number !== Number(choose.value)) return;
        lines = lines.filter((one) => one.column !== each.text);
        const links = { ...found, around: new Set(found.around) };
        each.text.replaceChildren(...found.rows.map((one) => row(each.text, each.of, one, links)));
        each.number = number;
        each.text.querySelector(".tsw-linked")?.setAttribute("tabindex", 0);
        if (chosen) mark(chosen);
      }
      if (chosen) return;
      if (!parts.host.querySelector(".tsw-status.tsw-error")) parts.say("");
      for (const { text } of columns) {
        const first = text.querySelector(".tsw-coloured"); // what stands before it is of no line
        if (first && !text.scrollTop) text.scrollTop = first.offsetTop - text.offsetTop - 40;
      }
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
      hues.clear();
      chosen = null;
      fill().catch(parts.fail);
    };
    const host = h("div", { class: "tsw-columns" }, ...columns.map((each) => each.element));
    for (const { text } of columns) {
      arrows(text, ".tsw-linked");
      text.addEventListener("focusin", ({ target }) => {
        if (!target.classList.contains("tsw-linked")) return;
        for (const each of text.querySelectorAll(".tsw-linked[tabindex='0']")) each.setAttribute("tabindex", -1);
        target.setAttribute("tabindex", 0);
      });
    }
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
