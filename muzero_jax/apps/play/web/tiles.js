// A grid of tiles with numbers on them, which slide: a colour for each power of two, and an arrow for each direction.

import { Board } from "./board.js";
import { chessArrow } from "./chess.js";
import { element } from "./svg.js";

const HIGHEST = 16; // colours of their own; larger tiles share the last
const STEPS = { left: [-1, 0], up: [0, -1], right: [1, 0], down: [0, 1] };

export class Tiles extends Board {
  bounds() {
    return [-0.6, -0.6, this.width - 0.4, this.height - 0.4];
  }

  below() {
    const [width, height] = [this.width + 0.1, this.height + 0.1];
    return [element("rect", { class: "tray", x: -0.55, y: -0.55, width, height, rx: 0.12 })];
  }

  // A tile that no click plays is a picture alone.
  cell(row, column, lasts) {
    const group = super.cell(row, column, lasts);
    if (this.state.clicks[row][column] !== null) return group;
    group.setAttribute("role", "img");
    group.removeAttribute("tabindex");
    group.querySelector(".focus").remove();
    return group;
  }

  shape(kind, x, y) {
    const half = kind === "ground" ? 0.46 : 0.42;
    return element("rect", { class: kind, x: x - half, y: y - half, width: 2 * half, height: 2 * half, rx: 0.08 });
  }

  piece(piece, x, y) {
    const power = Math.log2(Number(piece));
    const level = Number.isInteger(power) ? Math.min(Math.max(power, 1), HIGHEST) : 0;
    const size = Math.min(0.42, 1.15 / piece.length);
    const tile = this.shape(`tile level-${level}`, x, y);
    for (const side of ["width", "height"]) tile.setAttribute(side, 0.92);
    tile.setAttribute("x", x - 0.46);
    tile.setAttribute("y", y - 0.46);
    const text = element("text", { class: `tile-number level-${level}`, x, y, "font-size": size }, piece);
    return element("g", {}, tile, text);
  }

  // What the overlay says of the directions, from the middle of the grid.
  arrows() {
    const [x, y] = [(this.width - 1) / 2, (this.height - 1) / 2];
    return (this.overlay?.moves ?? []).flatMap(([move, note]) => {
      const step = STEPS[move];
      if (!step || (note.strength < 0.02 && !note.isChoice)) return [];
      const to = [x + (step[0] * this.width) / 2.2, y + (step[1] * this.height) / 2.2];
      return chessArrow([x + step[0] * 0.3, y + step[1] * 0.3], to, note);
    });
  }

  lastCells() {
    return new Set();
  }

  describe(row, column, piece) {
    return `row ${row + 1}, column ${column + 1}, ${piece === "." ? "empty" : piece}`;
  }
}
