// A growth curve as an SVG: both axes logarithmic, a line for each call, its name at its end. The colours read on white
// and on black, and text follows the reader's scheme.
const width = 740;
const height = 320;
const plot = { left: 62, right: 440, top: 44, bottom: 268 };
const colours = ["#2f7ed8", "#d9742b", "#2e9e6b", "#a463c8"];
const labelGap = 16;

/** `cpuUs` of each call over the size of the part. */
export function drawCurve({ part, unit, calls }) {
  const sizes = calls[0].points.map(({ size }) => size);
  const values = calls.flatMap(({ points }) => points.map(({ cpuUs }) => cpuUs));
  const x = logScale(sizes[0], sizes.at(-1), plot.left, plot.right);
  const [low, high] = [decadeBelow(Math.min(...values)), decadeAbove(Math.max(...values))];
  const y = logScale(low, high, plot.bottom, plot.top);
  const title = `${part}: CPU of a call, by the number of ${unit}`;
  const summary = calls.map(
    ({ name, points }) => `${name}: ${microseconds(points[0])} to ${microseconds(points.at(-1))}`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title summary">
  <title id="title">${escaped(title)}</title>
  <desc id="summary">${escaped(summary.join("; "))}</desc>
  <style>
    text { font: 13px system-ui, sans-serif; fill: #333 }
    .title { font-weight: 600 }
    .grid { stroke: #888; stroke-opacity: 0.35 }
    @media (prefers-color-scheme: dark) { text { fill: #ddd } }
  </style>
  <text class="title" x="${plot.left}" y="22">${escaped(title)}</text>
${[
  ...decades(low, high).map((value) => horizontal(value, y(value))),
  ...sizes.map((size) => vertical(size, x(size))),
  `  <text x="${plot.right}" y="${height - 12}" text-anchor="end">${escaped(unit)}</text>`,
  ...drawLines(calls, x, y),
].join("\n")}
</svg>
`;
}

function drawLines(calls, x, y) {
  const labels = placeLabels(calls.map(({ points }) => y(points.at(-1).cpuUs)));
  return calls.map(({ name, points }, index) => {
    const colour = colours[index % colours.length];
    const at = points.map(({ size, cpuUs }) => [coordinate(x(size)), coordinate(y(cpuUs))]);
    const dots = at.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3.5" fill="${colour}"/>`).join("");
    const line = `<polyline points="${at.map((point) => point.join(",")).join(" ")}" fill="none" stroke="${colour}" stroke-width="2"/>`;
    const label = `<text x="${plot.right + 10}" y="${coordinate(labels[index] + 4)}" style="fill: ${colour}">${escaped(name)}, ${microseconds(points.at(-1))}</text>`;
    return `  ${line}${dots}${label}`;
  });
}

/** Moves labels apart that would overlap, from the top down. */
function placeLabels(wanted) {
  const placed = [...wanted];
  const order = wanted.map((_, index) => index).sort((a, b) => wanted[a] - wanted[b]);
  for (const [rank, index] of order.entries())
    if (rank > 0) placed[index] = Math.max(placed[index], placed[order[rank - 1]] + labelGap);
  return placed;
}

function horizontal(value, y) {
  return `  <line class="grid" x1="${plot.left}" x2="${plot.right}" y1="${coordinate(y)}" y2="${coordinate(y)}"/><text x="${plot.left - 8}" y="${coordinate(y + 4)}" text-anchor="end">${microseconds({ cpuUs: value })}</text>`;
}

function vertical(size, x) {
  return `  <line class="grid" x1="${coordinate(x)}" x2="${coordinate(x)}" y1="${plot.top}" y2="${plot.bottom}"/><text x="${coordinate(x)}" y="${plot.bottom + 18}" text-anchor="middle">${size.toLocaleString("en")}</text>`;
}

function logScale(low, high, from, to) {
  const span = Math.log(high / low) || 1;
  return (value) => from + ((to - from) * Math.log(value / low)) / span;
}

function decades(low, high) {
  return Array.from({ length: Math.round(Math.log10(high / low)) + 1 }, (_, power) => low * 10 ** power);
}

function decadeBelow(value) {
  return 10 ** Math.floor(Math.log10(value));
}

function decadeAbove(value) {
  return 10 ** (Math.floor(Math.log10(value)) + 1);
}

function microseconds({ cpuUs }) {
  return cpuUs < 1_000 ? `${Number(cpuUs.toPrecision(2))} µs` : `${Number((cpuUs / 1_000).toPrecision(2))} ms`;
}

function coordinate(value) {
  return Number(value.toFixed(1));
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
