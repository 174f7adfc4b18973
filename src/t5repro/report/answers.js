
// Shows the rows that contain the words and have the outcome. Without it, all rows are shown.
"use strict";
const byId = (id) => document.getElementById(id);
const rows = [...document.querySelectorAll(".examples > li")].map((row) => ({
  row,
  text: row.textContent.toLowerCase(),
  wrong: row.dataset.wrong.split(" ").filter(Boolean),
}));
const controls = ["words", "outcome", "experiment"].map(byId);

function fits({ text, wrong }) {
  const [words, outcome, experiment] = controls.map((control) => control.value);
  const isWrong = experiment === "any" ? wrong.length > 0 : wrong.includes(experiment);
  const hasOutcome = outcome === "all" || isWrong === (outcome === "wrong");
  return hasOutcome && words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
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
