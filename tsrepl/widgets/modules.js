// The module tree.

function render({ model, el }) {
  const data = model.get("data");
  const parts = root(model, el, data.title, "modules of " + data.title);
  const { ask } = parts;
  const tree = h("ul", { class: "tsw-tree", role: "tree", "aria-label": "modules" });
  const branches = new Map();

  function branch(row) {
    const size = h("span", { class: "tsw-size", style: `width:${(4 * row.part).toFixed(2)}em`, "aria-hidden": "true" });
    const sign = h("span", { class: "r-muted", "aria-hidden": "true" }, row.opens ? "▸ " : "  ");
    const item = h("div", { role: "treeitem", tabindex: -1, "aria-expanded": row.opens ? "false" : null, "data-path": row.path,
      title: row.methods.length ? "methods: " + row.methods.join(", ") : null },
      sign, h("span", { class: row.opens ? "r-title" : "" }, row.name), " ", h("span", { class: "r-type" }, row.type), "  ", size, h("span", { class: "r-muted" }, row.facts));
    const inside = h("ul", { class: "tsw-tree", role: "group", hidden: true });
    const one = {
      row, item, inside,
      async open(isOpen) {
        if (!row.opens) return;
        if (isOpen && !inside.childNodes.length) fill(inside, model.get("shown")[row.path] ?? (await ask("children", { path: row.path })).rows);
        inside.hidden = !isOpen;
        item.setAttribute("aria-expanded", isOpen);
        sign.textContent = isOpen ? "▾ " : "▸ ";
        const open = new Set(model.get("state").open ?? []);
        if (isOpen) open.add(row.path);
        else open.delete(row.path);
        keep(model, { open: [...open] });
      },
    };
    item.onclick = () => { item.focus(); one.open(inside.hidden).catch(parts.fail); };
    item.onfocus = () => { // Tab comes back to where it left
      tree.querySelector("[tabindex='0']")?.setAttribute("tabindex", -1);
      item.tabIndex = 0;
    };
    item.onkeydown = (event) => {
      const isOpen = row.opens && !inside.hidden;
      const next = event.key === "ArrowRight" && isOpen ? inside.querySelector("[role=treeitem]")
        : event.key === "ArrowLeft" && !isOpen ? item.closest("[role=group]")?.previousSibling : null;
      if (next) {
        event.preventDefault();
        event.stopPropagation();
        return void next.focus();
      }
      const opens = { ArrowRight: true, ArrowLeft: false, Enter: inside.hidden, " ": inside.hidden }[event.key];
      if (opens === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      one.open(opens).catch(parts.fail);
    };
    branches.set(row.path, one);
    return h("li", { role: "none" }, item, inside);
  }
  function fill(list, rows) { list.append(...rows.map(branch)); }

  async function go(path) {
    const names = path.split(".");
    for (let i = 0; i < names.length; i++) {
      const above = branches.get(names.slice(0, i).join("."));
      if (above) await above.open(true);
    }
    const found = branches.get(path);
    if (found) { found.item.scrollIntoView({ block: "nearest" }); found.item.focus(); }
  }

  const find = finder(parts, "find a module or parameter", (text) => ask("find", { text }).then((answer) => answer.hits),
    ([path, type]) => [path || data.title, " ", h("span", { class: "r-type" }, type)], ([path]) => go(path).catch(parts.fail));
  arrows(tree, "[role=treeitem]");
  parts.bar.append(find);
  fill(tree, [data.root]);
  const top = branches.get("");
  fill(top.inside, data.rows);
  const wanted = model.get("state").open ?? [];
  const reopen = async () => { for (const path of ["", ...wanted]) await branches.get(path)?.open(true); };
  reopen().catch(parts.fail);
  top.item.tabIndex = 0;
  parts.host.append(h("div", { class: "tsw-scroll" }, tree));
}

export default { render };
