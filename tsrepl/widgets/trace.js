// The trace player.

const PACE = 700;

function render({ model, el }) {
  const data = model.get("data");
  const parts = root(model, el, data.title, "trace of " + data.title);
  const { ask } = parts;
  const rows = data.rows;
  if (!rows.length) return void parts.say("nothing ran");
  let at = model.get("state").step ?? 0;
  let isQuiet = true;
  let graph = null;
  let timer = null;
  const slider = h("input", { type: "range", class: "tsw-slider", min: 0, max: rows.length - 1, value: at, "aria-label": "instruction" });
  const place = h("output", { class: "tsw-at", "aria-live": "polite" });
  const play = button("▶ play", "play", () => (timer ? stop() : start()));
  const quiet = button("computing only", "step over loads, constants and drops", () => {
    isQuiet = !isQuiet;
    quiet.setAttribute("aria-pressed", isQuiet);
  }, { "aria-pressed": "true" });
  const one = pane(parts, ask);
  const values = h("div", { class: "tsw-values", role: "group", "aria-label": "values read and written" });
  const closer = h("div", { class: "tsw-closer", "aria-live": "polite" });
  const source = h("pre", { class: "tsw-text", tabindex: 0, role: "region", "aria-label": "source" });

  function step(by) {
    let next = at + by;
    while (isQuiet && rows[next]?.quiet) next += by;
    if (rows[next]) go(next);
    else stop();
  }
  function named(text, label) {
    play.textContent = text;
    play.title = label;
    play.setAttribute("aria-label", label);
  }
  function start() { named("❚❚ pause", "pause"); timer = setInterval(() => step(1), PACE); }
  function stop() { clearInterval(timer); timer = null; named("▶ play", "play"); }

  function look(slot) {
    const step = at;
    const tell = (answer) => { if (step === at) closer.replaceChildren(...heat(answer)); };
    const [lookedStep, lookedSlot, looked] = model.get("shown").look ?? [];
    if (lookedStep === step && lookedSlot === slot) tell(looked);
    else ask("look", { step, slot }).then(tell).catch(parts.fail);
  }

  function go(to) {
    at = to;
    const row = rows[at];
    slider.value = at;
    slider.setAttribute("aria-valuetext", `${row.pc}: ${row.text.map((each) => each[0]).join("")}`);
    place.replaceChildren(h("span", { class: "r-muted" }, `${at + 1}/${rows.length}  ${"  ".repeat(row.depth)}${row.function} ${row.pc}  `),
      ...line(row.text), h("span", { class: "r-muted" }, "  " + row.place));
    const chip = (verb, role, offset) => ([name, text], slot) => h("button", { type: "button", class: "tsw-chip", onclick: () => look(offset + slot) },
      h("span", { class: "r-muted" }, verb + " "), h("span", { class: "r-value" }, name), " = ", h("span", { class: role }, text));
    values.replaceChildren(...row.reads.map(chip("reads", "r-plain", 0)), ...row.writes.map(chip("writes", "r-good", row.reads.length)));
    closer.replaceChildren();
    keep(model, { step: at });
    const count = row.reads.length + row.writes.length;
    if (count) look(row.writes.length ? row.reads.length : 0);
    const kept = model.get("shown");
    if (kept.step === at && kept.picture) show(kept);
    else ask("show", { step: at, before: false }).then(show).catch(parts.fail);
  }

  function show(answer) {
    if (answer.step !== at) return;
    if (graph !== answer.graph) one.picture.show(answer.picture);
    else one.picture.show(answer.picture, null);
    graph = answer.graph;
    one.picture.mark(answer.key ? [[answer.key, "accent"]] : []);
    const box = answer.key && one.picture.box(answer.key);
    if (box) one.picture.choose(answer.key, !one.picture.sees(box));
    source.replaceChildren(...answer.source.map((each) => h("span", { class: "tsw-row" + (each.here ? " here" : ""), "aria-current": each.here ? "true" : null },
      h("span", { class: "r-muted" }, String(each.number).padStart(4) + "  "), ...line(each.text))));
  }

  slider.oninput = () => go(Number(slider.value));
  slider.onkeydown = (event) => event.stopPropagation();
  one.facts.prepend(values, closer);
  parts.host.append(
    h("div", { class: "tsw-bar" }, button("◀", "step back", () => step(-1)), play, button("▶", "step", () => step(1)), place, quiet),
    slider, h("div", { class: "tsw-split" }, one.element, source), h("p", {}, h("span", { class: "r-muted" }, "result "), data.result));
  go(at);
  return stop;
}

export default { render };
