// Shows the rows of the data block as a table, and as points of a score against compute.
"use strict";
const byId = (id) => document.getElementById(id);
const { columns, rows, styles } = JSON.parse(byId("data").textContent);
const SHOWN_ROWS = 1000; // in the table; the drawing has all
const WIDTH = 1040;
const HEIGHT = 300;
const [LEFT, RIGHT, TOP, BOTTOM] = [58, 16, 14, 50];
const text = rows.map((row) => row.join(" ").toLowerCase());
const styleOf = new Map([...new Set(rows.map((row) => row[0]))].map((run, i) => [run, i % styles]));
let order = { column: -1, sign: 1 };

function format(value, kind) {
  if (value === null) return "–";
  if (typeof value !== "number") return String(value);
  if (kind === "score") return value.toFixed(2);
  if (kind === "compute") return value.toExponential(2).replace("e+", "e");
  return value.toLocaleString("en", { maximumFractionDigits: 6 });
}

function matching() {
  const words = byId("words").value.toLowerCase().split(/\s+/);
  const found = rows.filter((_, i) => words.every((word) => text[i].includes(word)));
  const { column, sign } = order;
  if (column < 0) return found;
  const [known, missing] = [[], []];
  found.forEach((row) => (row[column] === null ? missing : known).push(row));
  const isLess = (a, b) => (typeof a === typeof b ? a < b : typeof a === "number");
  known.sort((a, b) => {
    const [first, second] = [a[column], b[column]];
    if (first === second) return 0;
    return isLess(first, second) ? -sign : sign;
  });
  return known.concat(missing); // missing values are last in both orders
}

function fillTable(found) {
  const body = document.createElement("tbody");
  for (const row of found.slice(0, SHOWN_ROWS)) {
    const line = body.insertRow();
    columns.forEach(({ kind }, i) => {
      const cell = line.insertCell();
      const isolated = document.createElement("bdi"); // a name may be written from the right
      isolated.textContent = format(row[i], kind);
      cell.append(isolated);
      if (kind !== "text") cell.className = "number";
    });
  }
  byId("rows").tBodies[0].replaceWith(body);
}

function addHead() {
  const line = byId("rows").tHead.rows[0];
  columns.forEach(({ title, kind }, i) => {
    const cell = document.createElement("th");
    cell.scope = "col";
    if (kind !== "text") cell.className = "number";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = title;
    button.addEventListener("click", () => {
      order = { column: i, sign: order.column === i ? -order.sign : 1 };
      [...line.cells].forEach((other) => other.removeAttribute("aria-sort"));
      cell.setAttribute("aria-sort", order.sign > 0 ? "ascending" : "descending");
      update();
    });
    cell.append(button);
    line.append(cell);
  });
}

function element(name, attributes, content = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
  node.textContent = content;
  return node;
}

function logTicks(low, high) {
  const factors = high / low < 100 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    ticks.push(...factors.map((factor) => factor * 10 ** power));
  }
  const inside = ticks.filter((tick) => tick >= low && tick <= high);
  return inside.length ? inside : [low];
}

function linearTicks(low, high) {
  const power = 10 ** Math.floor(Math.log10((high - low) / 4));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= (high - low) / 5);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
}

function draw(found) {
  const [x, y] = ["compute", "score"].map((id) => Number(byId(id).value));
  const points = found.filter((row) => row[x] > 0 && row[y] !== null); // zero has no logarithm
  const drawing = byId("drawing");
  drawing.replaceChildren();
  byId("drawn").textContent = `${points.length} of ${found.length} rows have both numbers`;
  if (!points.length) return;
  const bounds = (column) => points.reduce(
    ([low, high], row) => [Math.min(low, row[column]), Math.max(high, row[column])],
    [Infinity, -Infinity],
  );
  const [xLow, xHigh] = bounds(x).map((value, i) => value * (i ? 1.2 : 1 / 1.2));
  const [yMin, yMax] = bounds(y);
  const margin = (yMax - yMin) * 0.05 || 1;
  const [yLow, yHigh] = [yMin - margin, yMax + margin];
  const across = (value) => LEFT
    + (Math.log(value / xLow) / Math.log(xHigh / xLow)) * (WIDTH - LEFT - RIGHT);
  const up = (value) => HEIGHT - BOTTOM
    - ((value - yLow) / (yHigh - yLow)) * (HEIGHT - TOP - BOTTOM);
  for (const tick of linearTicks(yLow, yHigh)) {
    const at = up(tick);
    drawing.append(
      element("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: at, y2: at }),
      element("text", { x: LEFT - 7, y: at, dy: "0.32em", "text-anchor": "end" },
        String(Number(tick.toPrecision(6)))),
    );
  }
  for (const tick of logTicks(xLow, xHigh)) {
    const [at, floor] = [across(tick), HEIGHT - BOTTOM];
    drawing.append(
      element("line", { class: "mark", x1: at, x2: at, y1: floor, y2: floor + 4 }),
      element("text", { x: at, y: floor + 20, "text-anchor": "middle" },
        tick.toExponential(tick >= 1e6 ? 0 : 1).replace("e+", "e")),
    );
  }
  drawing.append(
    element("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" },
      `${columns[x].title}, logarithmic`),
    element("text", { x: 12, y: TOP, "text-anchor": "end", transform: `rotate(-90 12 ${TOP})` },
      columns[y].title),
  );
  for (const row of points) {
    const style = styleOf.get(row[0]);
    const point = element("circle",
      { class: `dot series-${style}`, cx: across(row[x]), cy: up(row[y]), r: 3.5 });
    point.append(element("title", {}, `${row[0]} ${row[1]}: ${format(row[y], "score")}`));
    drawing.append(point);
  }
}

function update() {
  const found = matching();
  fillTable(found);
  const cut = found.length > SHOWN_ROWS ? `, the first ${SHOWN_ROWS} in the table` : "";
  byId("count").textContent = `${found.length} of ${rows.length} rows${cut}`;
  if (byId("drawing")) draw(found);
}

addHead();
["words", "compute", "score"].map(byId).filter(Boolean)
  .forEach((control) => control.addEventListener("input", update));
byId("filter").hidden = false;
update();
