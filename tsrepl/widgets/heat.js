// A tensor as a heat map and a histogram.

function heat(answer) {
  const parts = [h("p", {}, answer.text)];
  if (answer.since) parts.push(h("p", { class: "r-warning" }, answer.since));
  if (answer.heat) parts.push(map(answer), h("p", { class: "r-muted" }, answer.note));
  if (answer.bins) parts.push(bars(answer), h("p", { class: "r-muted" },
    `${answer.range[0].toPrecision(4)} … ${answer.range[1].toPrecision(4)}`
    + (answer.strange.nan ? `, ${answer.strange.nan} NaN` : "") + (answer.strange.inf ? `, ${answer.strange.inf} inf` : "")));
  return parts;
}

function map(answer) {
  const rows = answer.heat;
  const canvas = h("canvas", { class: "tsw-heat", role: "img", "aria-label": "heat map, " + answer.note });
  canvas.width = rows[0].length;
  canvas.height = rows.length;
  canvas.style.aspectRatio = `${rows[0].length} / ${Math.max(rows.length, rows[0].length / 12)}`;
  const numbers = rows.flat().filter((each) => each !== null);
  const most = numbers.reduce((most, each) => Math.max(most, Math.abs(each)), 1e-12);
  const context = canvas.getContext("2d");
  rows.forEach((row, y) => row.forEach((each, x) => {
    context.fillStyle = each === null ? "#ff00ff" : tone(each / most);
    context.fillRect(x, y, 1, 1);
  }));
  return canvas;
}

/** Blue below zero, red above, light at zero. */
function tone(part) {
  const far = Math.min(1, Math.abs(part));
  const mix = (from, to) => Math.round(from + (to - from) * far);
  return part < 0 ? `rgb(${mix(247, 33)},${mix(247, 102)},${mix(247, 172)})` : `rgb(${mix(247, 178)},${mix(247, 24)},${mix(247, 43)})`;
}

function bars(answer) {
  const most = Math.max(...answer.bins);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${answer.bins.length} 10`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "tsw-bins");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `histogram from ${answer.range[0]} to ${answer.range[1]}`);
  answer.bins.forEach((count, at) => {
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const tall = (10 * count) / most;
    for (const [name, value] of Object.entries({ x: at + 0.05, y: 10 - tall, width: 0.9, height: tall })) bar.setAttribute(name, value);
    svg.append(bar);
  });
  return svg;
}
