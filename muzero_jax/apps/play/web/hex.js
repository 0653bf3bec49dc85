// The board of Hex: where its cells lie, and the edges with the names of the sides that join them.

import { element } from "./svg.js";

const ROW = Math.sqrt(3) / 2; // the distance of two rows

// Each row lies half a cell to the right of the one above.
export const hexCentre = (row, column) => [column + row / 2, row * ROW];

// Left, top, right and bottom of everything that is drawn.
export const hexBounds = (width, height) => [-1.35, -1.2, width + (height - 1) / 2 + 0.1, (height - 1) * ROW + 1.2];

// Corner 0 is the top one, then clockwise; the hexagon stands on a corner and is one unit wide.
export function hexCorner([x, y], index, scale = 1) {
  const angle = (Math.PI / 3) * index - Math.PI / 2;
  const radius = scale / Math.sqrt(3);
  return [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
}

// The first player joins top and bottom, the other left and right.
export function hexEdges(width, height, names) {
  const corner = (row, column, index) => hexCorner(hexCentre(row, column), index);
  const across = (row, ...corners) =>
    Array.from({ length: width }, (_, c) => corners.map((i) => corner(row, c, i))).flat();
  const down = (column, ...corners) =>
    Array.from({ length: height }, (_, r) => corners.map((i) => corner(r, column, i))).flat();
  const edges = [
    ["second", down(0, 5, 4, 3)],
    ["second", down(width - 1, 0, 1, 2)],
    ["first", across(0, 5, 0, 1)],
    ["first", across(height - 1, 4, 3, 2)],
  ];
  const line = (kind, points) => element("polyline", { class: `goal ${kind}`, points: points.join(" ") });
  return [
    ...edges.map(([, points]) => line("rim", points)),
    ...edges.map(([kind, points]) => line(kind, points)),
    ...edgeNames(width, height, names),
  ];
}

function edgeNames(width, height, [first, second]) {
  const middle = (height - 1) / 2;
  const [, bottom] = hexCentre(height - 1, 0);
  const size = Math.min(0.42, 0.16 + 0.024 * width);
  const name = (text, x, y, anchor) => {
    const made = element("text", { class: "edge-name", x, y, "font-size": size }, text);
    made.style.textAnchor = anchor;
    return made;
  };
  return [
    name(first, width - 0.35, -0.92, "start"),
    name(first, (height - 1) / 2 + (width - 1) / 2, bottom + 0.98, "middle"),
    name(second, middle / 2 - 1.3, middle * ROW, "end"),
    name(second, width - 0.5 + middle / 2 + 0.3, middle * ROW, "start"),
  ];
}
