"use strict";
// Pages work without this file: it adds the slider of a plan and helps with tables, and says that a long form is being worked on.

const slider = document.querySelector(".slider");
if (slider) {
  const epsilons = JSON.parse(slider.dataset.epsilons);
  const input = slider.querySelector("input");
  const output = slider.querySelector("output");
  const [first, last] = [Math.log(Math.min(...epsilons)), Math.log(Math.max(...epsilons))];
  const rows = [...document.querySelectorAll(".compared tbody tr")];
  // On logarithmic scales half-widths are close to a line between neighbouring values.
  const half = (points, at) => {
    for (let k = 1; k < points.length; k += 1) {
      const [[a, low], [b, high]] = [points[k - 1], points[k]];
      const part = (at - Math.log(a)) / (Math.log(b) - Math.log(a));
      if (part >= -1e-9 && part <= 1 + 1e-9) return Math.exp(Math.log(low) * (1 - part) + Math.log(high) * part);
    }
    return null;
  };
  const show = () => {
    const at = first + (last - first) * input.value / 1000;
    const epsilon = Number(Math.exp(at).toPrecision(2));
    const best = [];
    for (const row of rows) {
      const found = half(JSON.parse(row.dataset.points), at);
      let text = found === null ? "–" : found.toPrecision(2);
      if (found !== null && row.dataset.left) text += ` (${(100 * epsilon / row.dataset.left).toPrecision(2)}% of what is left)`;
      row.querySelector(".at").textContent = text;
      if (found !== null && row.dataset.name) best.push(`${row.dataset.name} ${found.toPrecision(2)}`);
    }
    const text = `epsilon ${epsilon}: ` + (best.length ? `half-width by the automatic method: ${best.join("; ")}` : "nothing answers");
    output.textContent = text;
    input.setAttribute("aria-valuetext", text);
  };
  if (epsilons.length > 1) {
    document.querySelectorAll(".at").forEach((cell) => { cell.hidden = false; });
    input.addEventListener("input", show);
    slider.hidden = false;
    show();
  }
}

// The table of a study: a field that finds columns by name, and arrows that go to the same field of the next row.
const table = document.querySelector(".study tbody");
if (table) {
  const find = document.querySelector("#find");
  find.parentElement.hidden = false;
  find.addEventListener("input", () => {
    const wanted = find.value.toLowerCase();
    for (const row of table.rows) row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
  });
  find.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  table.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.target.tagName !== "INPUT") return;
    const cell = event.target.closest("td, th");
    let row = cell.parentElement;
    do { row = step > 0 ? row.nextElementSibling : row.previousElementSibling; } while (row && (row.hidden || getComputedStyle(row.cells[cell.cellIndex].firstElementChild || row).visibility === "hidden"));
    if (row) row.cells[cell.cellIndex].querySelector("input:not([type=hidden])")?.focus();
    event.preventDefault();
  });
}

for (const button of document.querySelectorAll("button[data-wait]")) {
  button.form.addEventListener("submit", () => {
    button.textContent = button.dataset.wait;
    button.setAttribute("aria-busy", "true");
    setTimeout(() => { button.disabled = true; }, 0);
  });
}

// A page that comes back from the history has its buttons as they were.
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
