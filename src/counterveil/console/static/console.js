"use strict";
// Pages work without this file: it adds the slider of a plan and helps with tables, and says that a long form is being worked on.

const slider = document.querySelector(".slider");
if (slider) {
  const points = JSON.parse(slider.dataset.points);
  const input = slider.querySelector("input");
  const output = slider.querySelector("output");
  const first = Math.log(points[0].epsilon);
  const last = Math.log(points[points.length - 1].epsilon);
  const show = () => {
    const at = first + (last - first) * input.value / 1000;
    let k = 0;
    while (k < points.length - 2 && Math.log(points[k + 1].epsilon) < at) k += 1;
    const [a, b] = [points[k], points[k + 1]];
    const part = (at - Math.log(a.epsilon)) / (Math.log(b.epsilon) - Math.log(a.epsilon));
    // On logarithmic scales half-widths are close to a line between neighbouring values.
    const half = Math.exp(Math.log(a.half_width) * (1 - part) + Math.log(b.half_width) * part);
    const epsilon = Math.exp(at);
    let text = `epsilon ${epsilon.toPrecision(2)}: half-width about ${half.toPrecision(3)}`;
    if (a.share !== null) text += `, ${(100 * epsilon * a.share / a.epsilon).toPrecision(2)} % of what is left`;
    output.textContent = text;
    input.setAttribute("aria-valuetext", text);
  };
  input.addEventListener("input", show);
  slider.hidden = false;
  show();
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
