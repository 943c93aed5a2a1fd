// The graph view.

function render({ model, el }) {
  const data = model.get("data");
  const parts = root(model, el, data.title, "graph of " + data.title);
  const { ask } = parts;
  const one = pane(parts, ask);
  const { picture } = model.get("shown");
  parts.host.append(one.element);
  if (picture) one.picture.show(picture);
  else ask("fold", { key: "root", open: true }).then((answer) => one.picture.show(answer.picture)).catch(parts.fail);
}

export default { render };
