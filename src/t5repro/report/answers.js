
// Shows the rows that contain the words and have the outcome. Without it, all rows are shown.
"use strict";
const byId = (id) => document.getElementById(id);
const rows = [...document.querySelectorAll(".examples > li")].map((row) => ({
  row,
  text: row.textContent.toLowerCase(),
  wrong: row.dataset.wrong.split(" ").filter(Boolean),
  right: row.dataset.right.split(" ").filter(Boolean),
}));
const controls = ["words", "outcome", "experiment"].map(byId);

function fits({ text, wrong, right }) {
  const [words, outcome, experiment] = controls.map((control) => control.value);
  const names = (numbers) =>
    experiment === "any" ? numbers.length > 0 : numbers.includes(experiment);
  // A row without a mark is neither.
  const has = { all: true, wrong: names(wrong), right: names(right) && !names(wrong) };
  return has[outcome] && words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function update() {
  let shown = 0;
  for (const entry of rows) {
    const isShown = fits(entry);
    entry.row.hidden = !isShown;
    shown += isShown;
  }
  byId("count").textContent = `${shown} of ${rows.length} rows`;
}

controls.forEach((control) => control.addEventListener("input", update));
byId("filter").hidden = false;
update();
