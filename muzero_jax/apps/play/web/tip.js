// What the overlay says of the cell under the pointer or the focus, in letters of a size that everybody can read: on a
// large board on a small screen the numbers in the cells are too small for that, and are left out.

import { element } from "./svg.js";

const [LETTERS, READABLE] = [15, 7.5]; // pixels
const NUMBER = 0.24; // of a cell: the size of the numbers in the cells, as style.css has it

export class Tip {
  constructor(svg, textOf) {
    Object.assign(this, { svg, textOf });
    this.made = element("g", { class: "tip", "aria-hidden": true });
    for (const kind of ["pointerover", "focusin"]) svg.addEventListener(kind, ({ target }) => this.show(target));
    for (const kind of ["pointerleave", "focusout"]) svg.addEventListener(kind, () => this.made.replaceChildren());
    new ResizeObserver(() => this.measure()).observe(svg);
  }

  // Pixels of a cell's width; a board that is not shown has none.
  measure() {
    const box = this.svg.viewBox.baseVal;
    if (!box) return 0;
    const scale = Math.min(this.svg.clientWidth / box.width, this.svg.clientHeight / box.height);
    this.svg.toggleAttribute("data-small", NUMBER * scale < READABLE);
    return scale;
  }

  // After the board was drawn anew: the tip lies above everything, and the pointer or the focus may still be there.
  redraw() {
    this.svg.append(this.made);
    this.measure();
    this.show(this.svg.querySelector(".cell:hover") ?? document.activeElement);
  }

  show(target) {
    const cell = target.closest(".cell");
    const text = cell && this.textOf(Number(cell.dataset.row), Number(cell.dataset.column));
    const scale = this.measure();
    if (!text || !scale) return this.made.replaceChildren();
    const [size, ground, box] = [LETTERS / scale, cell.querySelector(".ground").getBBox(), this.svg.viewBox.baseVal];
    const [width, height] = [0.62 * size * text.length + size, 1.7 * size];
    const middle = ground.x + ground.width / 2;
    const x = Math.max(box.x, Math.min(middle - width / 2, box.x + box.width - width));
    const y = ground.y - height > box.y ? ground.y - height : ground.y + ground.height;
    this.made.replaceChildren(
      element("rect", { x, y, width, height, rx: size / 3, "stroke-width": 1 / scale }),
      element("text", { x: x + width / 2, y: y + height / 2, "font-size": size }, text),
    );
  }
}
