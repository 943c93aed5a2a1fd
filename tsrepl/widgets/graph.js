// The graph view.

function render({ model, el }) {
  const data = model.get("data");
  const ask = asker(model);
  const parts = root(el, data.title, "graph of " + data.title);
  const one = pane(parts, ask, { folded: () => keep(model, {}) });
  parts.host.append(one.element);
  if (data.picture) one.picture.show(data.picture);
  else ask("fold", { key: "root", open: true }).then((answer) => one.picture.show(answer.picture)).catch(parts.fail);
}

export default { render };
