// The board: shows the drawing that the server sends, and reports which of its cells was clicked. It draws nothing
// itself: clicked cells, targets of a picked-up piece and the focus are classes that style.css colours.

const READABLE = 7.5; // pixels: smaller numbers are hidden, and a tooltip shows that of the cell under the pointer
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export class Board {
  constructor(place, tip, onCell) {
    Object.assign(this, { place, tip, onCell, svg: "", focused: [0, 0] });
    place.addEventListener("click", ({ target }) => this.press(target.closest('.cell[role="button"]')));
    place.addEventListener("keydown", (event) => this.key(event));
    place.addEventListener("focusin", ({ target }) => this.remember(target.closest(".cell")));
    for (const kind of ["pointerover", "focusin"]) place.addEventListener(kind, ({ target }) => this.hint(target));
    for (const kind of ["pointerleave", "focusout"]) place.addEventListener(kind, () => this.hint(null));
    new ResizeObserver(() => this.measure()).observe(place);
  }

  // `chosen` is the name of the picked-up piece's cell or null, `targets` the names of cells where it may go.
  show(svg, chosen, targets) {
    if (svg !== this.svg) {
      const hadFocus = this.place.contains(document.activeElement);
      this.place.innerHTML = this.svg = svg;
      const stop = this.at(...this.focused) ?? this.at(0, 0);
      if (hadFocus) stop?.focus();
      else this.remember(stop);
      this.measure();
      this.hint(this.place.querySelector(".cell:hover") ?? document.activeElement);
    }
    this.place.toggleAttribute("data-chosen", chosen !== null);
    for (const cell of this.place.querySelectorAll(".cell")) {
      const name = cell.dataset.cell;
      cell.classList.remove("pending");
      cell.classList.toggle("chosen", name === chosen);
      cell.classList.toggle("target", targets.includes(name));
    }
  }

  // Marks a click at once, before the server answers.
  press(cell) {
    if (!cell) return;
    cell.focus();
    cell.classList.add("pending");
    this.onCell(cell.dataset);
  }

  key(event) {
    const cell = event.target.closest('.cell[role="button"]');
    const step = STEPS[event.key];
    if (!cell || event.altKey || event.ctrlKey || event.metaKey) return;
    if (step) this.at(Number(cell.dataset.row) + step[0], Number(cell.dataset.column) + step[1])?.focus();
    else if (event.key === "Enter" || event.key === " ") this.press(cell);
    else return;
    event.preventDefault();
  }

  at(row, column) {
    return this.place.querySelector(`[role="button"][data-row="${row}"][data-column="${column}"]`);
  }

  // The Tab key stops at only one cell: the last that had the focus.
  remember(cell) {
    if (cell?.getAttribute("role") !== "button") return;
    for (const other of this.place.querySelectorAll('[tabindex="0"]')) other.setAttribute("tabindex", -1);
    cell.setAttribute("tabindex", 0);
    this.focused = [cell.dataset.row, cell.dataset.column];
  }

  measure() {
    const size = this.place.querySelector(".number")?.getAttribute("font-size");
    const scale = this.place.firstElementChild?.getScreenCTM()?.a;
    this.place.toggleAttribute("data-small", size * scale < READABLE);
  }

  // Shows the overlay's text for a cell next to it, in readable size.
  hint(target) {
    const cell = target?.closest(".cell");
    const text = cell?.dataset.tip ?? "";
    this.tip.hidden = !text;
    this.tip.textContent = text;
    if (!text) return;
    const box = cell.getBoundingClientRect();
    const [width, height] = [this.tip.offsetWidth, this.tip.offsetHeight];
    const left = Math.max(4, Math.min(box.left + (box.width - width) / 2, document.body.clientWidth - width - 4));
    const top = box.top > height ? box.top - height : box.bottom;
    Object.assign(this.tip.style, { left: `${left + scrollX}px`, top: `${top + scrollY}px` });
  }
}
