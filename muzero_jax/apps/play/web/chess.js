// What the board of chess has and others have not: its pieces, and arrows for moves.

import { element } from "./svg.js";

// Silhouettes in a box of 45, drawn for this page.
const PIECES = {
  p: "M22.5 9a6 6 0 0 1 4 10.4c3.6 2.2 4 6 3.4 9.6h-14.8c-.6-3.6-.2-7.4 3.4-9.6a6 6 0 0 1 4-10.4zM13 38c0-5 2-7 4-9h11c2 2 4 4 4 9z",
  r: "M11 39v-4h2.5l2-16-3.5-2.5v-8h5v3.5h3v-3.5h5v3.5h3v-3.5h5v8l-3.5 2.5 2 16h2.5v4z",
  n: "M15 39c-.5-8 7-12 6.5-18-2 3-6 3-8 5.5l-4-3.5 7.5-11 .5-5 4.5 3.5c10 .5 14.5 12 12.5 28.5zM19 15.5v.1",
  b: "M22.5 5.5a2.5 2.5 0 0 1 1.7 4.3c4.5 3.7 7.3 8.2 7.3 12.2 0 3-1.5 5-3.5 6.5l1.5 5.5h-14l1.5-5.5c-2-1.5-3.5-3.5-3.5-6.5 0-4 2.8-8.5 7.3-12.2a2.5 2.5 0 0 1 1.7-4.3zM22.5 15.5v7M19 19h7M11 39c0-3.5 2-5 4.5-5h14c2.5 0 4.5 1.5 4.5 5z",
  q: "M12 33 7 15l7.5 9 2.5-13.5 5.5 12.5 5.5-12.5 2.5 13.5 7.5-9-5 18zM11 39c0-3 1-4.5 3-6h17c2 1.5 3 3 3 6z",
  k: "M21 3h3v3h3.5v3H24v4h-3V9h-3.5V6H21zM22.5 20c-3-9 4-9 0 0 4-8 16-6 15 2-.6 5-5 7-5.5 11h-19c-.5-4-4.9-6-5.5-11-1-8 11-10 15-2zM11.5 39c0-3 1-4.5 3-6h16c2 1.5 3 3 3 6z",
};
const PIECE_NAMES = { p: "pawn", r: "rook", n: "knight", b: "bishop", q: "queen", k: "king" };

const kindOf = (piece) => (piece === piece.toUpperCase() ? "white" : "black");

export const chessName = (piece) => `${kindOf(piece)} ${PIECE_NAMES[piece.toLowerCase()] ?? piece}`;

export function chessPiece(piece, x, y) {
  return element("path", {
    class: `piece ${kindOf(piece)}`,
    d: PIECES[piece.toLowerCase()] ?? "",
    transform: `translate(${x - 0.46} ${y - 0.48}) scale(.0206)`,
  });
}

// From the centre of one square to that of another; the arrow of the agent's own choice stands out.
export function chessArrow([x, y], [u, v], { strength, isChoice }) {
  const length = Math.hypot(u - x, v - y);
  const [a, b] = [(u - x) / length, (v - y) / length];
  const width = 0.05 + 0.13 * strength;
  const head = 0.16 + width;
  const [s, t] = [u - a * (head + 0.1), v - b * (head + 0.1)];
  const points = [
    [s + a * head, t + b * head],
    [s - b * head * 0.6, t + a * head * 0.6],
    [s + b * head * 0.6, t - a * head * 0.6],
  ];
  const opacity = isChoice ? 0.9 : (0.35 + 0.55 * strength).toFixed(2);
  const kind = isChoice ? "of-choice" : "";
  return [
    element("path", { class: `arrow ${kind}`, d: `M${x} ${y}L${s} ${t}`, "stroke-width": width, opacity }),
    element("polygon", { class: `arrow-head ${kind}`, points: points.join(" "), opacity }),
  ];
}
