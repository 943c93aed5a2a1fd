// The debugger: buttons for its words, breakpoints by a click, an input for TorchScript.

const MOVES = [
  ["|◀", "restart", "to the beginning"], ["◀◀", "back-continue", "back to the breakpoint before"], ["◀", "back-next", "back a line"],
  ["◁", "back", "back a line, into calls"], ["▷", "step", "a line, into calls"], ["▶", "next", "to the next line"],
  ["↥", "return", "to where this call has returned"], ["▶▶", "continue", "to the next breakpoint"],
];

function render({ model, el }) {
  const parts = root(model, el, "debugger", "debugger");
  const { ask } = parts;
  const title = h("h4", { "aria-live": "polite" });
  const source = h("div", { class: "tsw-text", role: "list", "aria-label": "source" });
  const variables = h("div", { class: "tsw-scroll", tabindex: 0, role: "region", "aria-label": "variables" });
  const told = h("pre", { class: "tsw-text", role: "log", "aria-label": "answers" });
  const entry = h("input", { class: "tsw-search", style: "width:100%", placeholder: "TorchScript, or a word of the debugger: help", "aria-label": "TorchScript or a command" });
  const moves = MOVES.map(([sign, word, label]) => button(sign, `${word}: ${label}`, () => run(word), { "data-command": word }));
  const quit = button("quit", "leave the debugger", () => run("quit"));
  let typed = [];

  const again = h("p", { class: "r-muted" }, "The call waits while other cells run; from a cell, %tsjit_debug n and the like go on with it.");

  function run(text) { ask("command", { line: text }).then(show).catch(parts.fail); }

  function show(data) {
    title.replaceChildren(data.title, h("span", { class: "r-muted" }, data.position ? `  position ${data.position}` : ""), data.reason ? h("div", { class: "r-warning" }, data.reason) : "");
    source.replaceChildren(...data.source.map((row) => h("div", { class: "tsw-row" + (row.here ? " here" : ""), role: "listitem", "aria-current": row.here ? "true" : null },
      h("button", { type: "button", class: "tsw-gutter", "data-line": row.number, "aria-pressed": row.stop, "aria-label": `breakpoint at line ${row.number}`, onclick: () => run(row.stop ? `clear-line ${row.number}` : `break ${row.number}`) },
        (row.stop ? "● " : "") + row.number), row.here ? "→ " : "  ", ...line(row.text))));
    source.append(h("div", { class: "r-muted" }, data.node), h("div", { class: "r-muted" }, data.instruction));
    if (data.result) source.append(h("div", {}, h("span", { class: "r-muted" }, "result "), data.result));
    variables.replaceChildren(h("table", { class: "tsw-table" }, h("tbody", {}, ...data.variables.map(([name, type, text]) =>
      h("tr", {}, h("td", { class: "r-value" }, name), h("td", { class: "r-type" }, type), h("td", {}, text))))));
    told.textContent = data.told;
    told.hidden = !data.told;
    for (const each of [...moves, quit, entry]) each.disabled = data.over;
    again.hidden = data.over;
    parts.say(data.over ? "left the debugger" : "");
  }

  entry.onkeydown = (event) => {
    event.stopPropagation();
    if (event.key === "ArrowUp" && typed.length) entry.value = typed.at(-1);
    if (event.key !== "Enter") return;
    typed.push(entry.value);
    run(entry.value);
    entry.value = "";
  };
  arrows(source, ".tsw-gutter");
  parts.bar.append(h("span", { class: "tsw-tools", role: "toolbar", "aria-label": "moves" }, ...moves, quit));
  parts.host.append(title, h("div", { class: "tsw-debug" }, source, variables), entry, told, again);
  model.on("change:data", () => show(model.get("data"))); // a cell may have gone on with the call
  show(model.get("data"));
}

export default { render };
