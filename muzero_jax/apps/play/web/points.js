// The board of backgammon: two rows of twelve points with the bar between them, the checkers that are home, the dice.
// A cell is a point, the bar or the home of one side, in two rows of fourteen. A move is written FROM/TO, as the one who
// makes it counts the points.

import { Board } from "./board.js";
import { chessArrow } from "./chess.js";
import { element } from "./svg.js";

const [COLUMNS, BAR, HOME] = [14, 6, 13];
const [TOP, BOTTOM, LONG, MIDDLE] = [0, 11.4, 4.7, 5.7]; // edges of the board, a point's length, the line of the dice
const [MOST_DRAWN, RADIUS] = [5, 0.43]; // checkers drawn one by one; a number stands for more
const SPOTS = { 1: [4], 2: [0, 8], 3: [0, 4, 8], 4: [0, 2, 6, 8], 5: [0, 2, 4, 6, 8], 6: [0, 2, 3, 5, 6, 8] };
const FROM_TO = /^(bar|\d+)\/(off|\d+)/;

const columnOf = (point) => (point > 12 ? point - 13 : 12 - point);
const past = (column) => column + (column >= BAR);

export class Points extends Board {
  size() {
    return [2, COLUMNS];
  }

  get isOfTwoClicks() {
    return true;
  }

  get turns() {
    return true;
  }

  get viewer() {
    return this.flipped ? 1 : 0;
  }

  // The cell of a place, "13", "bar" or "off", as `side` counts; row 1 lies nearer to the viewer.
  place(name, side) {
    const near = side === this.viewer ? 1 : 0;
    if (name === "bar") return [near, BAR];
    if (name === "off") return [near, HOME];
    const point = near ? Number(name) : 25 - Number(name);
    return [point > 12 ? 0 : 1, past(columnOf(point))];
  }

  // The same of a cell, as the side counts that the board is numbered by.
  nameOf(row, column) {
    if (column === BAR) return "bar";
    if (column === HOME) return "off";
    const index = column - (column > BAR);
    const point = row === 0 ? 13 + index : 12 - index;
    return String(this.numbered === this.viewer ? point : 25 - point);
  }

  // How many checkers lie in a cell, and whose: 0 is the first player.
  held(row, column) {
    const { points, bar, off } = this.state.checkers;
    const owner = row === 1 ? this.viewer : 1 - this.viewer;
    if (column === BAR) return [bar[owner], owner];
    if (column === HOME) return [off[owner], owner];
    const index = column - (column > BAR);
    const point = row === 0 ? 13 + index : 12 - index;
    const count = points[(this.flipped ? 25 - point : point) - 1];
    return [Math.abs(count), count < 0 ? 1 : 0];
  }

  ends(move, side = this.state.to_move) {
    const found = FROM_TO.exec(move);
    return found && [this.place(found[1], side), this.place(found[2], side)];
  }

  canPlay(move) {
    return FROM_TO.test(move);
  }

  cellOf() {
    return null;
  }

  written(from, to) {
    return from && `${this.nameOf(...from)}/${this.nameOf(...to)}`;
  }

  bounds() {
    return [-0.75, TOP - 0.85, COLUMNS - 0.2, BOTTOM + 0.85];
  }

  // Where a checker lies: the edge is at depth 0.
  centre(row, column, depth = 2) {
    return [column, row === 0 ? TOP + 0.5 + 2 * RADIUS * depth : BOTTOM - 0.5 - 2 * RADIUS * depth];
  }

  below() {
    const height = BOTTOM - TOP;
    const field = (x, width) => element("rect", { class: "field", x, y: TOP, width, height });
    const frame = { x: -0.7, y: TOP - 0.8, width: COLUMNS + 0.45, height: height + 1.6, rx: 0.25 };
    return [element("rect", { class: "frame", ...frame }), field(-0.5, 6), field(6.5, 6), ...this.slots(), ...this.dice()];
  }

  slots() {
    const slot = (y) => element("rect", { class: "slot", x: HOME - 0.44, y, width: 0.88, height: 4.85, rx: 0.1 });
    return [slot(TOP), slot(BOTTOM - 4.85)];
  }

  // The mover's dice, on their half; one that is played is pale.
  dice() {
    const { checkers, to_move, result } = this.state;
    if (result) return [];
    const middle = to_move === this.viewer ? 9.5 : 2.5;
    return checkers.dice.flatMap(([die, isLeft], index) =>
      this.die(die, middle + 1.1 * (index - (checkers.dice.length - 1) / 2), isLeft),
    );
  }

  die(die, x, isLeft) {
    const kind = `die ${this.state.to_move ? "second" : "first"} ${isLeft ? "" : "played"}`;
    const box = element("rect", { x: x - 0.45, y: MIDDLE - 0.45, width: 0.9, height: 0.9, rx: 0.16 });
    const spot = (at) =>
      element("circle", { cx: x + 0.25 * ((at % 3) - 1), cy: MIDDLE + 0.25 * (Math.floor(at / 3) - 1), r: 0.085 });
    return [element("g", { class: kind, role: "img", "aria-label": `die ${die}${isLeft ? "" : ", played"}` }, box, ...SPOTS[die].map(spot))];
  }

  cell(row, column) {
    const [count, owner] = this.held(row, column);
    const key = `${row},${column}`;
    const note = this.overlay?.cells.get(key);
    const isChosen = this.chosen?.join() === key;
    const isTarget = this.targets.includes(key);
    const isFocused = row === this.focused[0] && column === this.focused[1];
    const name = this.nameOf(row, column);
    const group = element("g", {
      class: ["cell", (column + row) % 2 && "odd", isChosen && "chosen"].filter(Boolean).join(" "),
      role: "button",
      tabindex: isFocused ? 0 : -1,
      "data-row": row,
      "data-column": column,
      "data-cell": row === 0 && (column === BAR || column === HOME) ? `their ${name}` : name,
      "aria-label": this.describe(row, column, name, { count, owner, note }),
    });
    const [top, height] = row === 0 ? [TOP, MIDDLE - 0.6 - TOP] : [MIDDLE + 0.6, BOTTOM - MIDDLE - 0.6];
    group.append(element("rect", { class: "ground", x: column - 0.5, y: top, width: 1, height }));
    if (column !== BAR && column !== HOME) group.append(this.point(row, column));
    group.append(...(column === HOME ? this.home(row, count, owner) : this.stack(row, column, count, owner)));
    if (this.movable?.has(key) && !this.chosen) group.append(this.ring("movable", row, column, count - 1));
    if (isChosen) group.append(this.ring("choice", row, column, count - 1));
    if (isTarget) {
      const [cx, cy] = this.centre(row, column, column === HOME ? 2 : Math.min(count, MOST_DRAWN - 1));
      group.append(element("circle", { class: "target", cx, cy, r: 0.2 }));
    }
    group.append(element("rect", { class: "focus", x: column - 0.46, y: top + 0.05, width: 0.92, height: height - 0.1 }));
    return group;
  }

  cells() {
    const starts = this.state.result ? [] : this.state.legal.map((move) => this.ends(move)?.[0].join());
    this.movable = new Set(starts.filter(Boolean));
    return super.cells();
  }

  point(row, column) {
    const [edge, tip] = row === 0 ? [TOP, TOP + LONG] : [BOTTOM, BOTTOM - LONG];
    const label = element("text", { class: "label", x: column, y: row === 0 ? TOP - 0.4 : BOTTOM + 0.4, "font-size": 0.5 });
    label.append(this.nameOf(row, column));
    return element("g", {}, element("path", { class: "point", d: `M${column - 0.48} ${edge}L${column} ${tip}L${column + 0.48} ${edge}z` }), label);
  }

  stack(row, column, count, owner) {
    const kind = `stone ${owner ? "second" : "first"}`;
    const shown = Array.from({ length: Math.min(count, MOST_DRAWN) }, (_, depth) => {
      const [cx, cy] = this.centre(row, column, depth);
      return element("circle", { class: kind, cx, cy, r: RADIUS });
    });
    if (count > MOST_DRAWN) {
      const [x, y] = this.centre(row, column, MOST_DRAWN - 1);
      shown.push(element("text", { class: `count ${owner ? "second" : "first"}`, x, y, "font-size": 0.5 }, count));
    }
    return shown;
  }

  // Checkers that are home lie on their edges.
  home(row, count, owner) {
    return Array.from({ length: count }, (_, index) =>
      element("rect", {
        class: `stone ${owner ? "second" : "first"}`,
        x: HOME - 0.38,
        y: row === 0 ? TOP + 0.1 + 0.31 * index : BOTTOM - 0.1 - 0.31 * (index + 1),
        width: 0.76,
        height: 0.27,
        rx: 0.08,
      }),
    );
  }

  ring(kind, row, column, depth) {
    const [cx, cy] = this.centre(row, column, Math.min(depth, MOST_DRAWN - 1));
    return element("circle", { class: kind, cx, cy, r: RADIUS });
  }

  // The moves of the last turn, or of this one as far as it goes, and what the overlay says.
  arrows() {
    const { moves, movers } = this.state;
    const mover = movers.at(-1);
    const begin = movers.findLastIndex((side) => side !== mover) + 1;
    const made = moves.slice(begin).map((move) => this.ends(move, mover)).filter(Boolean);
    const lasts = made.flatMap(([from, to]) => {
      const parts = chessArrow(this.top(from, 1), this.top(to, 0), { strength: 0.1, isChoice: false });
      for (const part of parts) part.classList.add("last-move");
      return parts;
    });
    const thoughts = (this.overlay?.arrows ?? []).flatMap((arrow) =>
      chessArrow(this.top(arrow.from, 0), this.top(arrow.to, 1), arrow),
    );
    return [...lasts, ...thoughts, ...this.shares()];
  }

  // The middle of the last checker in a cell, or `more` places beyond it; a home's is its middle.
  top([row, column], more) {
    const [count] = this.held(row, column);
    const depth = column === HOME ? 2 : Math.max(0, Math.min(count - 1 + more, MOST_DRAWN - 1));
    return this.centre(row, column, depth);
  }

  // The overlay's numbers, beyond where a checker would lie: checkers would hide them.
  shares() {
    return [...(this.overlay?.cells ?? [])].filter(([, note]) => note.text).map(([key, note]) => {
      const [row, column] = key.split(",").map(Number);
      const [x, y] = this.top([row, column], 1);
      return element("text", { class: "number", x, y: y + (row === 0 ? 0.62 : -0.62) }, note.text);
    });
  }

  lastCells() {
    return new Set();
  }

  tipText(row, column) {
    const note = this.overlay?.cells.get(`${row},${column}`);
    return note?.text ? `to ${this.nameOf(row, column)}: ${note.text}` : "";
  }

  describe(row, column, name, { count, owner, note }) {
    const kind = { bar: "bar", off: "home" }[name] ?? `point ${name}`;
    const whose = name === "bar" || name === "off" ? `${this.state.names[owner]}'s ` : "";
    const holds = count ? `${count} of ${this.state.names[owner]}` : "empty";
    return [whose + kind, holds, note?.text && `agent: ${note.text}`].filter(Boolean).join(", ");
  }
}
