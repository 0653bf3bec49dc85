// Draws a position as SVG, one focusable cell a field of the board. A unit is the width of a cell. Boards of another
// kind (tiles.js, points.js) draw other parts and keep the rest.
// Cells are told apart by row and column, row 0 being the top row of `squares`; `flipped` turns chess around.

import { element } from "./svg.js";
import { chessArrow, chessName, chessPiece } from "./chess.js";
import { Tip } from "./tip.js";
import { hexBounds, hexCentre, hexCorner, hexEdges } from "./hex.js";

const EMPTY = ".";
const STONES = ["X", "O"]; // the first player's and the other's; other pieces are letters

// A cell's name: as the labels at the board's edges have it, else by its numbers.
export const placeName = ({ columns, rows }, row, column) =>
  columns.length && rows.length ? columns[column] + rows[row] : `row ${row + 1}, column ${column + 1}`;

export class Board {
  constructor(svg, onCell) {
    this.svg = svg;
    this.onCell = onCell;
    this.focused = [0, 0];
    svg.addEventListener("click", (event) => this.press(event));
    svg.addEventListener("keydown", (event) => this.key(event));
    svg.addEventListener("focusin", (event) => this.remember(event.target.closest(".cell")));
    // The focus shows itself to people who use keys; after a click its frame would look like a move.
    document.addEventListener("keydown", () => svg.toggleAttribute("data-keys", true));
    document.addEventListener("pointerdown", () => svg.toggleAttribute("data-keys", false));
    this.tip = new Tip(svg, (row, column) => this.tipText(row, column));
  }

  // `overlay`: null, or what `overlayOf` in thoughts.js makes of an analysis.
  // `numbered` is the side by whose count places have their names.
  draw(state, { overlay = null, flipped = false, numbered = 0, chosen = null, targets = () => [] } = {}) {
    const hadFocus = this.svg.contains(document.activeElement);
    Object.assign(this, { state, overlay, flipped, numbered, chosen });
    [this.height, this.width] = this.size();
    this.targets = targets(); // which the board as it lies now decides
    this.focused = [Math.min(this.focused[0], this.height - 1), Math.min(this.focused[1], this.width - 1)];
    this.svg.setAttribute("class", state.board);
    this.svg.setAttribute("aria-label", `Board, ${this.height} rows of ${this.width}`);
    this.svg.replaceChildren(...this.below(), ...this.cells(), ...this.arrows());
    const [left, top, right, bottom] = this.bounds();
    this.svg.setAttribute("viewBox", `${left} ${top} ${right - left} ${bottom - top}`);
    if (hadFocus) this.focus(...this.focused);
    this.tip.redraw();
  }

  size() {
    return [this.state.squares.length, this.state.squares[0].length];
  }

  // Whether two clicks name a move: where a piece stands, and where it goes.
  get isOfTwoClicks() {
    return this.state.board === "chess" && this.state.columns.length > 0;
  }

  // Whether the board turns with the player, so that their own side is below.
  get turns() {
    return this.state.board === "chess";
  }

  // A move by the two cells that were clicked, legal or not; one alone where nothing was picked up.
  written(from, to) {
    return (from ? placeName(this.state, ...from) : "") + placeName(this.state, ...to);
  }

  // What the overlay says of a cell, "" for nothing.
  tipText(row, column) {
    const move = this.state.clicks[row][column];
    const note = this.overlay?.cells.get(((move && this.cellOf(move)) || [row, column]).join());
    return note?.text ? `${move ?? placeName(this.state, row, column)}: ${note.text}` : "";
  }

  centre(row, column) {
    if (this.state.board === "hex") return hexCentre(row, column);
    return this.flipped ? [this.width - 1 - column, this.height - 1 - row] : [column, row];
  }

  bounds() {
    if (this.state.board === "hex") return hexBounds(this.width, this.height);
    return [-1.05, -1.05, this.width - 0.4, this.height - 0.4];
  }

  // Rows, goal edges, grids: what lies under the cells.
  below() {
    const { board, columns, rows } = this.state;
    const parts = [];
    if (board === "hex") parts.push(...hexEdges(this.width, this.height, this.state.names));
    if (board === "go") parts.push(...this.lines());
    const size = Math.min(0.42, 0.2 + 0.02 * this.width); // on a large board cells are small, and letters not
    columns.forEach((text, column) => {
      const [x] = this.centre(0, column);
      const at = board === "hex" ? { x: x - 0.5, y: -0.92 } : { x, y: -0.8 };
      parts.push(element("text", { class: "label", "font-size": size, ...at }, text));
    });
    if (board === "connect_four") return parts;
    rows.forEach((text, row) => {
      const [, y] = this.centre(row, 0);
      const x = board === "hex" ? row / 2 - 1.02 : -0.8;
      parts.push(element("text", { class: "label", "font-size": size, x, y }, text));
    });
    return parts;
  }

  lines() {
    const last = this.width - 1;
    const parts = [
      element("rect", { class: "wood", x: -0.55, y: -0.55, width: last + 1.1, height: last + 1.1, rx: 0.1 }),
    ];
    for (let i = 0; i <= last; i++) parts.push(element("path", { class: "grid", d: `M0 ${i}H${last}M${i} 0V${last}` }));
    const near = last > 12 ? 3 : 2;
    const stars = last > 12 ? [near, last / 2, last - near] : [near, last - near];
    const points = stars.flatMap((x) => stars.map((y) => [x, y])).concat([[last / 2, last / 2]]);
    return [...parts, ...points.map(([cx, cy]) => element("circle", { class: "star", cx, cy, r: 0.08 }))];
  }

  cells() {
    const lasts = this.lastCells();
    this.won = new Set(this.state.winning_cells.map((cell) => cell.join()));
    const order = [];
    for (let row = 0; row < this.height; row++)
      for (let column = 0; column < this.width; column++) order.push(this.cell(row, column, lasts));
    return order;
  }

  cell(row, column, lasts) {
    const { state } = this;
    const [x, y] = this.centre(row, column);
    const piece = state.squares[row][column];
    const key = `${row},${column}`;
    const note = this.overlay?.cells.get(key);
    const isLast = lasts.has(key);
    const isWon = this.won.has(key);
    const isChoice = this.overlay?.choice?.join() === key;
    const isFocused = row === this.focused[0] && column === this.focused[1];
    const isChosen = this.chosen !== null && this.chosen[0] === row && this.chosen[1] === column;
    const isIdle = state.board !== "chess" && state.clicks[row][column] === null;
    const looks = [(row + column) % 2 && "odd", isChosen && "chosen", isWon && "won", isIdle && "idle"];
    const group = element("g", {
      class: ["cell", ...looks].filter(Boolean).join(" "),
      role: "button",
      tabindex: isFocused ? 0 : -1,
      "data-row": row,
      "data-column": column,
      "data-cell": state.clicks[row][column] ?? placeName(state, row, column),
      "aria-label": this.describe(row, column, piece, { isLast, isWon, isChoice, note }),
    });
    group.append(this.shape("ground", x, y));
    if (state.board === "connect_four") group.append(element("circle", { class: "hole", cx: x, cy: y, r: 0.42 }));
    if (isLast && state.board === "chess") group.append(this.shape("last", x, y));
    if (note) group.append(this.shade(note, x, y));
    if (piece !== EMPTY) group.append(this.piece(piece, x, y));
    if (isWon) group.append(element("circle", { class: "won-ring", cx: x, cy: y, r: 0.42 }));
    if (isLast && state.board !== "chess")
      group.append(element("circle", { class: "last", cx: x, cy: y, r: state.board === "tic_tac_toe" ? 0.44 : 0.2 }));
    if (this.targets.includes(key)) group.append(element("circle", { class: "target", cx: x, cy: y, r: 0.14 }));
    if (isChoice) group.append(this.ring(x, y));
    if (note?.text) group.append(element("text", { class: "number", x, y }, note.text));
    group.append(this.shape("focus", x, y));
    return group;
  }

  shape(kind, x, y) {
    const inner = kind === "ground" ? 0 : 0.06;
    if (this.state.board === "hex") {
      const points = [0, 1, 2, 3, 4, 5].map((i) => hexCorner([x, y], i, 1 - inner));
      return element("polygon", { class: kind, points: points.join(" ") });
    }
    const half = 0.5 - inner;
    return element("rect", { class: kind, x: x - half, y: y - half, width: 2 * half, height: 2 * half });
  }

  shade(note, x, y) {
    const opacity = (0.12 + 0.75 * note.strength).toFixed(3);
    if (this.state.board === "hex" || this.state.board === "chess" || this.state.board === "tic_tac_toe") {
      const shape = this.shape(`share ${note.kind}`, x, y);
      shape.setAttribute("fill-opacity", opacity);
      return shape;
    }
    return element("circle", { class: `share ${note.kind}`, cx: x, cy: y, r: 0.42, "fill-opacity": opacity });
  }

  // Around the move that the agent would play.
  ring(x, y) {
    if (["hex", "chess", "tic_tac_toe"].includes(this.state.board)) return this.shape("choice", x, y);
    return element("circle", { class: "choice", cx: x, cy: y, r: 0.42 });
  }

  piece(piece, x, y) {
    const { board } = this.state;
    if (board === "chess") return chessPiece(piece, x, y);
    if (!STONES.includes(piece)) return element("text", { class: "letter", x, y, "font-size": 0.5 }, piece);
    const kind = piece === STONES[0] ? "first" : "second";
    if (board === "tic_tac_toe") {
      if (piece === "O") return element("circle", { class: `mark ${kind}`, cx: x, cy: y, r: 0.27 });
      return element("path", { class: `mark ${kind}`, d: `M${x - 0.25} ${y - 0.25}l.5 .5m0 -.5l-.5 .5` });
    }
    return element("circle", {
      class: `stone ${kind}`,
      cx: x,
      cy: y,
      r: { hex: 0.36, go: 0.46, othello: 0.41 }[board] ?? 0.42,
    });
  }

  arrows() {
    return (this.overlay?.arrows ?? []).flatMap((arrow) =>
      chessArrow(this.centre(...arrow.from), this.centre(...arrow.to), arrow),
    );
  }

  // Where the last move went, as keys "row,column".
  lastCells() {
    const { state } = this;
    const move = state.moves.at(-1);
    if (!move) return new Set();
    if (state.swapped) return this.stones(); // the mirrored one, alone on the board
    const cells = state.board === "chess" ? this.ends(move) : [this.cellOf(move, (cell) => cell !== EMPTY)];
    return new Set(cells?.filter(Boolean).map((cell) => cell.join()));
  }

  stones() {
    const every = this.state.squares.flatMap((row, r) => row.map((piece, c) => piece !== EMPTY && `${r},${c}`));
    return new Set(every.filter(Boolean));
  }

  // The cell that a click plays a move in, as [row, column], or null. In a column it is the lowest free one, where the
  // stone will lie, or the first that `isIt`.
  cellOf(move, isIt = null) {
    const { board, clicks, squares } = this.state;
    const row = clicks.findIndex((texts) => texts.includes(move));
    if (row < 0) return null;
    const column = clicks[row].indexOf(move);
    if (board !== "connect_four") return [row, column];
    const cells = squares.map((cells) => cells[column]);
    const fallen = isIt ? cells.findIndex(isIt) : cells.lastIndexOf(EMPTY);
    return fallen < 0 ? null : [fallen, column];
  }

  // Chess: the squares that a move leads from and to, null where it is not written so.
  ends(move) {
    const { columns, rows } = this.state;
    const find = (text) => [rows.indexOf(text[1]), columns.indexOf(text[0])];
    const [from, to] = [move.slice(0, 2), move.slice(2, 4)].map(find);
    return [...from, ...to].includes(-1) ? null : [from, to];
  }

  // Whether clicks on the board can play a move.
  canPlay(move) {
    return this.state.board === "chess" ? this.ends(move) !== null : this.cellOf(move, () => true) !== null;
  }

  describe(row, column, piece, { isLast, isWon, isChoice, note }) {
    const { board, names } = this.state;
    let holds = "empty";
    if (piece !== EMPTY) holds = board === "chess" ? chessName(piece) : (names[STONES.indexOf(piece)] ?? piece);
    const place = placeName(this.state, row, column);
    const marks = [isLast && "last move", isWon && "part of the win", note?.text && `agent: ${note.text}`];
    return [place, holds, ...marks, isChoice && "the agent's move"].filter(Boolean).join(", ");
  }

  press(event) {
    const cell = event.target.closest('.cell[role="button"]');
    if (!cell) return;
    const place = [Number(cell.dataset.row), Number(cell.dataset.column)];
    this.focus(...place);
    this.onCell(...place);
  }

  key(event) {
    const cell = event.target.closest(".cell");
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!cell || event.altKey || event.ctrlKey || event.metaKey) return;
    if (step) {
      const turn = this.flipped ? -1 : 1;
      const row = Number(cell.dataset.row) + turn * step[0];
      const column = Number(cell.dataset.column) + turn * step[1];
      if (row >= 0 && row < this.height && column >= 0 && column < this.width) this.focus(row, column);
    } else if (event.key === "Enter" || event.key === " ") {
      this.onCell(Number(cell.dataset.row), Number(cell.dataset.column));
    } else return;
    event.preventDefault();
  }

  focus(row, column) {
    this.svg.querySelector(`[data-row="${row}"][data-column="${column}"]`)?.focus();
  }

  // One cell alone is a stop of the Tab key: the last that had the focus.
  remember(cell) {
    if (!cell) return;
    for (const other of this.svg.querySelectorAll('[tabindex="0"]')) other.setAttribute("tabindex", -1);
    cell.setAttribute("tabindex", 0);
    this.focused = [Number(cell.dataset.row), Number(cell.dataset.column)];
  }
}
