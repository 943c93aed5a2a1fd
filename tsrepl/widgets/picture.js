// A graph's picture on a canvas: pan, zoom, fold, choose; only what is in sight is drawn.

const KINDS = {
  input: "string", output: "string", op: "kind", control: "keyword", block: "muted", part: "type", call: "type",
  group: "command",
};
const FONT = "12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace";
const [KEY, KIND, TITLE, NOTE, X, Y, W, H, STATE] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

class Picture {
  /** `on` has: choose(key), fold(key, open), and say(text). */
  constructor(host, on) {
    this.on = on;
    this.canvas = h("canvas", {
      tabindex: 0, role: "application", class: "tsw-canvas", "aria-roledescription": "graph",
      "aria-label": "graph: arrow keys go along wires, Enter opens and folds, plus and minus zoom, 0 fits",
      title: "drag to move, Ctrl + wheel to zoom, double click to fit a box; keys: arrows, Enter, + - 0",
    });
    host.append(this.canvas);
    this.context = this.canvas.getContext("2d");
    this.view = { x: 0, y: 0, scale: 1 };
    this.picture = { size: [1, 1], boxes: [], wires: [] };
    this.marks = new Map();
    this.chosen = null;
    this.drawn = 0;
    this.listen();
    new ResizeObserver(() => this.resized()).observe(this.canvas);
    const again = () => { this.colours = null; this.draw(); };
    const recolour = () => [0, 300, 1500].forEach((later) => setTimeout(again, later)); // a theme's styles load after its name
    new MutationObserver(recolour).observe(document.body, { attributes: true });
    matchMedia("(prefers-color-scheme:dark)").addEventListener("change", recolour);
  }

  // -- what is shown

  /** Shows a picture; `anchor` is the key of a box that stays where it is on the screen. */
  show(picture, anchor) {
    const before = anchor && this.box(anchor);
    this.picture = picture;
    this.canvas.dataset.boxes = picture.boxes.length;
    this.at = new Map(picture.boxes.map((box) => [box[KEY], box]));
    this.bounds = picture.wires.map((wire) => boundsOf(wire));
    if (!this.isGrown && this.canvas.clientWidth) this.grow();
    const after = anchor && this.at.get(anchor);
    if (before && after) {
      this.view.x += (before[X] - after[X]) * this.view.scale;
      this.view.y += (before[Y] - after[Y]) * this.view.scale;
    } else if (anchor === undefined) this.fit(true);
    this.draw();
  }

  box(key) { return this.at && this.at.get(key); }

  mark(marks) { this.marks = new Map(marks); this.draw(); }

  choose(key, isCentred) {
    this.chosen = key;
    const box = this.box(key);
    if (box && isCentred) this.centre(box);
    if (box) this.on.say(`${box[TITLE]} ${box[NOTE]}${box[STATE] === "folded" ? ", folded" : ""}`);
    this.draw();
  }

  /** True if the box lies in sight. */
  sees(box) {
    const { width, height } = this.size();
    const [left, top] = [box[X] * this.view.scale + this.view.x, box[Y] * this.view.scale + this.view.y];
    return left >= 0 && top >= 0 && left + box[W] * this.view.scale <= width && top + box[H] * this.view.scale <= height;
  }

  centre(box) {
    const { width, height } = this.size();
    if (this.view.scale < 0.5) this.view.scale = 0.9;
    this.view.x = width / 2 - (box[X] + Math.min(box[W], width / this.view.scale) / 2) * this.view.scale;
    this.view.y = height / 2 - (box[Y] + Math.min(box[H], 200) / 2) * this.view.scale;
  }

  /** The scale at which all is in sight. */
  whole() {
    const { width, height } = this.size();
    return Math.min((width - 24) / this.picture.size[0], (height - 24) / this.picture.size[1], 1.1);
  }

  /** One box and what is in it. */
  fitBox(box) {
    const { width, height } = this.size();
    this.view.scale = Math.min((width - 48) / box[W], (height - 48) / box[H], 1.6);
    this.view.x = width / 2 - (box[X] + box[W] / 2) * this.view.scale;
    this.view.y = height / 2 - (box[Y] + box[H] / 2) * this.view.scale;
    this.draw();
  }

  /** All of it; at first only as much as can be read. */
  fit(isFirst) {
    const { width } = this.size();
    const [w] = this.picture.size;
    this.view.scale = isFirst ? Math.max(this.whole(), Math.min(0.6, Math.max((width - 24) / w, 0.1))) : this.whole();
    this.view.x = Math.max(12, (width - w * this.view.scale) / 2);
    this.view.y = 12;
    if (w * this.view.scale > width) this.view.x = (width - w * this.view.scale) / 2;
    this.draw();
  }

  zoom(factor, x, y) {
    const { width, height } = this.size();
    const [px, py] = [x ?? width / 2, y ?? height / 2];
    const scale = Math.min(3, Math.max(this.whole() / 2, this.view.scale * factor));
    this.view.x = px - ((px - this.view.x) * scale) / this.view.scale;
    this.view.y = py - ((py - this.view.y) * scale) / this.view.scale;
    this.view.scale = scale;
    this.draw();
  }

  size() { return { width: this.canvas.clientWidth || 600, height: this.canvas.clientHeight || 400 }; }

  /** The height in which all of the first picture can be read, within limits; readers drag the lower edge for more. */
  grow() {
    const width = this.size().width;
    const [w, h] = this.picture.size;
    const wanted = h * Math.min(1, (width - 24) / w) + 24;
    const most = this.canvas.closest(".tsw-split") ? 400 : 620; // a text below it is to be seen at the same time
    this.canvas.parentElement.parentElement.style.height = `${Math.round(Math.min(most, Math.max(280, wanted)))}px`;
    this.isGrown = true;
  }

  resized() {
    const ratio = window.devicePixelRatio || 1;
    const { width, height } = this.size();
    const isFirst = !this.canvas.dataset.sized && this.canvas.clientWidth > 0;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    if (isFirst) { this.canvas.dataset.sized = "1"; if (!this.isGrown && this.at) this.grow(); this.fit(true); }
    this.paint();
  }

  // -- drawing

  draw() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => { this.waits = false; this.paint(); });
  }

  colour(name) {
    if (!this.colours) this.colours = new Map();
    if (!this.colours.has(name))
      this.colours.set(name, getComputedStyle(this.canvas).getPropertyValue("--ts-" + name).trim() || "#888");
    return this.colours.get(name);
  }

  paint() {
    const began = performance.now();
    const { context, view } = this;
    const ratio = window.devicePixelRatio || 1;
    const { width, height } = this.size();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.colour("page");
    context.fillRect(0, 0, width, height);
    context.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, ratio * view.x, ratio * view.y);
    const sight = { left: -view.x / view.scale, top: -view.y / view.scale };
    sight.right = sight.left + width / view.scale;
    sight.bottom = sight.top + height / view.scale;
    let drawn = this.paintBoxes(sight, (box) => box[STATE] === "open");
    this.paintWires(sight);
    drawn += this.paintBoxes(sight, (box) => box[STATE] !== "open");
    this.drawn = drawn;
    this.canvas.dataset.drawn = drawn;
    this.canvas.dataset.milliseconds = (performance.now() - began).toFixed(1);
  }

  paintBoxes(sight, wanted) {
    let drawn = 0;
    for (const box of this.picture.boxes) {
      if (!wanted(box) || box[X] > sight.right || box[Y] > sight.bottom || box[X] + box[W] < sight.left || box[Y] + box[H] < sight.top) continue;
      drawn++;
      this.paintBox(box);
    }
    return drawn;
  }

  paintBox(box) {
    const { context, view } = this;
    const mark = this.marks.get(box[KEY]);
    const role = this.colour(KINDS[box[KIND]] || "muted");
    const isChosen = box[KEY] === this.chosen;
    context.fillStyle = box[STATE] === "open" ? this.colour("panel") : mark ? this.colour("mark") : this.colour("page");
    context.strokeStyle = isChosen ? this.colour("accent") : mark ? this.colour(mark) : box[STATE] === "open" ? this.colour("line") : role;
    context.lineWidth = isChosen ? 3 : mark ? 2 : 1;
    context.setLineDash(box[KIND] === "part" || box[KIND] === "block" ? [5, 3] : []);
    context.beginPath();
    if (view.scale > 0.3) context.roundRect(box[X], box[Y], box[W], box[H], box[KIND] === "input" || box[KIND] === "output" ? 12 : 5);
    else context.rect(box[X], box[Y], box[W], box[H]);
    context.fill();
    context.stroke();
    context.setLineDash([]);
    if (box[STATE] === "folded") { // a second edge behind: there is more inside
      context.beginPath();
      context.moveTo(box[X] + 4, box[Y] + box[H] + 3);
      context.lineTo(box[X] + box[W] + 3, box[Y] + box[H] + 3);
      context.lineTo(box[X] + box[W] + 3, box[Y] + 4);
      context.stroke();
    }
    if (view.scale < 0.3) return;
    const sign = box[STATE] === "folded" ? "▸ " : box[STATE] === "open" ? "▾ " : "";
    context.textBaseline = "top";
    context.font = "600 " + FONT;
    context.fillStyle = role;
    context.fillText(sign + box[TITLE], box[X] + 9, box[Y] + 6);
    if (!box[NOTE] || view.scale < 0.4) return;
    context.font = FONT;
    context.fillStyle = this.colour("muted");
    const wide = box[STATE] === "open" ? [box[X] + 18 + context.measureText(sign + box[TITLE]).width * 1.1, box[Y] + 6] : [box[X] + 9, box[Y] + 21];
    if (box[STATE] !== "open" || wide[0] + context.measureText(box[NOTE]).width < box[X] + box[W]) context.fillText(box[NOTE], ...wide);
  }

  paintWires(sight) {
    const { context, picture, view } = this;
    const chosen = picture.boxes.findIndex((box) => box[KEY] === this.chosen);
    const paths = [new Path2D(), new Path2D()];
    picture.wires.forEach((wire, index) => {
      const [left, top, right, bottom] = this.bounds[index];
      if (left > sight.right || top > sight.bottom || right < sight.left || bottom < sight.top) return;
      trace(paths[wire[0] === chosen || wire[1] === chosen ? 1 : 0], wire, view.scale < 0.12);
    });
    context.strokeStyle = this.colour("wire");
    context.lineWidth = view.scale < 0.3 ? 1 / view.scale / 2 : 1.2;
    context.stroke(paths[0]);
    context.strokeStyle = this.colour("accent");
    context.lineWidth = 2;
    context.stroke(paths[1]);
  }

  // -- hands and keys

  hit(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const x = (event.clientX - bounds.left - this.view.x) / this.view.scale;
    const y = (event.clientY - bounds.top - this.view.y) / this.view.scale;
    return this.picture.boxes.findLast((box) => x >= box[X] && x <= box[X] + box[W] && y >= box[Y] && y <= box[Y] + box[H]);
  }

  listen() {
    let from = null;
    this.canvas.onpointerdown = (event) => {
      from = { x: event.clientX, y: event.clientY, view: { ...this.view }, moved: false };
      this.canvas.setPointerCapture(event.pointerId);
    };
    this.canvas.onpointermove = (event) => {
      if (!from) return;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      from.moved ||= Math.abs(dx) + Math.abs(dy) > 4;
      if (!from.moved) return;
      this.view = { ...from.view, x: from.view.x + dx, y: from.view.y + dy };
      this.draw();
    };
    this.canvas.onpointerup = (event) => {
      const clicked = from && !from.moved && this.hit(event);
      from = null;
      if (!clicked) return;
      const isHeader = (event.clientY - this.canvas.getBoundingClientRect().top - this.view.y) / this.view.scale - clicked[Y] < 24;
      if (clicked[STATE] === "folded" || (clicked[STATE] === "open" && isHeader && clicked[KEY] === this.chosen)) this.toggle(clicked);
      this.choose(clicked[KEY]);
      this.on.choose(clicked[KEY]);
    };
    this.canvas.ondblclick = (event) => {
      const box = this.hit(event);
      if (box) this.fitBox(box);
      else this.fit();
    };
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey) { // plain wheels scroll the page
        if (!this.isTold) this.on.say("Ctrl + wheel zooms, dragging moves");
        this.isTold = true;
        return;
      }
      event.preventDefault();
      const bounds = this.canvas.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY * 0.003), event.clientX - bounds.left, event.clientY - bounds.top);
    }, { passive: false });
    this.canvas.addEventListener("keydown", (event) => {
      const action = this.keys(event);
      if (!action) return;
      event.preventDefault();
      event.stopPropagation();
      action();
    });
  }

  keys(event) {
    const { picture } = this;
    const at = picture.boxes.findIndex((box) => box[KEY] === this.chosen);
    const go = (index) => () => {
      const box = picture.boxes[index];
      if (!box) return;
      this.choose(box[KEY], true);
      this.on.choose(box[KEY]);
    };
    const along = (from, to) => (at < 0 ? 0 : this.next(at, from, to));
    const pan = (dx, dy) => () => { this.view.x += dx; this.view.y += dy; this.draw(); };
    if (event.shiftKey && event.key.startsWith("Arrow"))
      return { ArrowUp: pan(0, 60), ArrowDown: pan(0, -60), ArrowLeft: pan(60, 0), ArrowRight: pan(-60, 0) }[event.key];
    return {
      ArrowDown: go(along(0, 1)), ArrowUp: go(along(1, 0)), ArrowRight: go(at + 1), ArrowLeft: go(at - 1), Home: go(0),
      Enter: () => at >= 0 && this.toggle(picture.boxes[at]), " ": () => at >= 0 && this.toggle(picture.boxes[at]),
      "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8), 0: () => this.fit(),
    }[event.key];
  }

  /** The box at the other end of a wire of this one, each in turn as the reader goes back and forth. */
  next(at, from, to) {
    const ends = [...new Set(this.picture.wires.filter((wire) => wire[from] === at).map((wire) => wire[to]))];
    const turns = (this.turns ??= new Map());
    const place = `${this.picture.boxes[at][KEY]} ${from}`;
    const turn = turns.get(place) ?? 0;
    turns.set(place, turn + 1);
    return ends.length ? ends[turn % ends.length] : -1;
  }

  toggle(box) {
    if (box[STATE] !== "leaf") this.on.fold(box[KEY], box[STATE] === "folded");
  }
}

function boundsOf(wire) {
  const bounds = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 3; i < wire.length; i += 2) {
    bounds[0] = Math.min(bounds[0], wire[i]);
    bounds[1] = Math.min(bounds[1], wire[i + 1]);
    bounds[2] = Math.max(bounds[2], wire[i]);
    bounds[3] = Math.max(bounds[3], wire[i + 1]);
  }
  return bounds;
}

function trace(path, wire, isStraight) {
  path.moveTo(wire[3], wire[4]);
  for (let i = 5; i < wire.length; i += 2) {
    const [x, y, px, py] = [wire[i], wire[i + 1], wire[i - 2], wire[i - 1]];
    const middle = (y + py) / 2;
    if (isStraight) path.lineTo(x, y);
    else path.bezierCurveTo(px, middle, x, middle, x, y);
  }
  if (isStraight) return;
  const [x, y] = wire.slice(-2);
  path.moveTo(x - 3, y - 5);
  path.lineTo(x, y);
  path.lineTo(x + 3, y - 5);
}

/** A picture with its tools, search, and facts beside it; `ask` and `say` are those of the view. */
function pane(parts, ask) {
  const told = h("div", { class: "tsw-told" },
    h("p", { class: "r-muted" }, "Choose a box, or a value in a text, to see its definition, uses, type and line."));
  const facts = h("div", { class: "tsw-facts", tabindex: 0, role: "region", "aria-label": "facts about what is chosen" }, told);
  const canvasHost = h("div", { class: "tsw-picture" });
  const guarded = (promise, then) => promise.then(then).catch(parts.fail);
  const picture = new Picture(canvasHost, {
    say: parts.say,
    fold: (key, open) => guarded(ask("fold", { key, open }), (answer) => picture.show(answer.picture, key)),
    choose: (key) => guarded(ask("inspect", { key }), showFacts),
  });

  function go(key) {
    if (picture.box(key)) {
      picture.choose(key, true);
      picture.on.choose(key);
      return;
    }
    guarded(ask("reveal", { key }), (answer) => {
      picture.show(answer.picture, null);
      picture.choose(key, true);
      picture.on.choose(key);
    });
  }

  const value = (name) => guarded(ask("value", { name }), (answer) => {
    if (answer.key && picture.box(answer.key)) picture.choose(answer.key, true);
    showFacts(answer);
  });

  function showFacts(answer) {
    const link = (text, key) => (key ? h("button", { type: "button", class: "tsw-link", onclick: () => go(key) }, text) : h("span", {}, text));
    const rows = [];
    if (answer.path) rows.push(["in", answer.path]);
    if (answer.place) rows.push(["line", h("span", {}, h("span", { class: "r-muted" }, answer.place + "  "), ...line(answer.source))]);
    if (answer.text.length) rows.push(["definition", h("code", {}, ...line(answer.text[0], value))]);
    for (const each of answer.values)
      rows.push([each.name, h("span", {}, h("span", { class: "r-type" }, each.type), h("br"),
        each.count ? `used ${each.count} time${each.count > 1 ? "s" : ""}: ` : "not used",
        ...each.uses.flatMap(([key, text, place], i) => [i ? ", " : "", link(text + (place ? ` (${place})` : ""), key)]))]);
    if (answer.inputs.length)
      rows.push(["inputs", h("ul", {}, ...answer.inputs.map(([name, text, type, key]) =>
        h("li", {}, link(text, key), " ", h("span", { class: "r-type" }, type), text === name.slice(1) ? "" : h("span", { class: "r-muted" }, "  " + name))))]);
    told.replaceChildren(h("h4", {}, answer.title), h("dl", {}, ...rows.flatMap(([name, what]) => [h("dt", {}, name), h("dd", {}, what)])));
  }

  const find = finder(parts, "find in the graph", (text) => ask("find", { text }).then((answer) => answer.hits),
    ([, title, path]) => [title, " ", h("span", { class: "r-muted" }, path)], ([key]) => go(key));
  const tools = h("span", { class: "tsw-tools" }, find,
    button("−", "zoom out", () => picture.zoom(0.8)), button("+", "zoom in", () => picture.zoom(1.25)),
    button("fit", "fit the picture", () => picture.fit()));
  parts.bar.append(tools);
  return { picture, value, showFacts, facts, element: h("div", { class: "tsw-pane" }, canvasHost, facts) };
}
