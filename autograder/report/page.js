"use strict";
// Sorts the table of students: the head of each column becomes a button.
(() => {
  const table = document.getElementById("students");
  const body = table.tBodies[0];
  const status = document.getElementById("sorted");
  const heads = [...table.tHead.rows[0].cells];
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  const value = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.trim();
    if (text === "") return null;
    return heads[column].dataset.sort === "number" ? Number(text) : text;
  };

  // What has no value stays last in both directions; equal rows keep the order they had.
  const compare = (a, b, sign) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "number" ? a - b : collator.compare(a, b));
  };

  const sort = (column) => {
    const head = heads[column];
    const direction = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    const sign = direction === "ascending" ? 1 : -1;
    const rows = [...body.rows].map((row) => [value(row, column), row]);
    rows.sort(([a], [b]) => compare(a, b, sign));
    body.append(...rows.map(([, row]) => row));
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", direction);
    status.textContent = `Sorted by ${head.dataset.name}, ${direction}.`;
  };

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(column));
  });
})();
