// The pass explorer: a slider through the passes that ran.

function render({ model, el }) {
  const data = model.get("data");
  const parts = root(model, el, data.title, "passes of " + data.title);
  const { ask } = parts;
  const steps = data.steps;
  if (!steps.length) return void parts.say("no pass ran");
  let at = model.get("state").step ?? 0;
  let before = model.get("shown").before ?? false;
  let changedOnly = true;
  const name = h("output", { class: "tsw-pass", "aria-live": "polite" });
  const slider = h("input", { type: "range", class: "tsw-slider", min: 0, max: steps.length - 1, value: at, "aria-label": "pass" });
  const side = button("before", "show the graph before the pass", () => { before = !before; go(at); }, { "aria-pressed": "false" });
  const skip = button("changes only", "step over passes that changed nothing", () => {
    changedOnly = !changedOnly;
    skip.setAttribute("aria-pressed", changedOnly);
  }, { "aria-pressed": "true" });
  const one = pane(parts, ask);
  const text = h("pre", { class: "tsw-text tsw-diff", tabindex: 0, role: "region", "aria-label": "changes of the text" });

  function move(step) {
    let next = at + step;
    while (changedOnly && steps[next] && !steps[next][1]) next += step;
    if (steps[next]) go(next);
    else parts.say(changedOnly ? "no other pass changes the graph there" : "");
  }

  function show(answer) {
    if (answer.step !== at) return;
    if (answer.picture) one.picture.show(answer.picture);
    one.picture.mark(answer.marks);
    const rows = answer.lines.map(([mark, pieces]) => h("span", { class: "tsw-row " + mark },
      { added: "+ ", removed: "- " }[mark] ?? "  ", ...(mark === "muted" ? [h("span", { class: "r-muted" }, ...pieces.map((each) => each[0]))] : line(pieces, one.value))));
    text.replaceChildren(...rows);
    text.dataset.step = at;
    parts.say(answer.picture ? "" : "a graph too long to be kept: the text tells that it changed");
  }

  function tell() {
    const [pass, changed, seconds] = steps[at];
    slider.value = at;
    slider.setAttribute("aria-valuetext", `${pass}${changed ? "" : ", no change"}`);
    side.setAttribute("aria-pressed", before);
    name.replaceChildren(h("span", { class: "r-title" }, `${at + 1}/${steps.length} ${pass}`), "  ",
      h("span", { class: changed ? "r-warning" : "r-muted" }, changed ? "changed" : "no change"), h("span", { class: "r-muted" }, "  " + seconds));
  }

  function go(to) {
    at = to;
    tell();
    text.replaceChildren(); // the values of another pass are not to be asked for
    delete text.dataset.step;
    keep(model, { step: at });
    ask("show", { step: at, before }).then(show).catch(parts.fail);
  }

  slider.oninput = () => go(Number(slider.value));
  slider.onkeydown = (event) => {
    event.stopPropagation();
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    move(step);
  };
  parts.host.append(
    h("div", { class: "tsw-bar" }, button("◀", "pass before", () => move(-1)), button("▶", "next pass", () => move(1)), name, skip, side),
    slider, h("div", { class: "tsw-split" }, one.element, text));
  tell();
  const kept = model.get("shown");
  if (kept.step === at) show(kept);
  else go(at);
}

export default { render };
