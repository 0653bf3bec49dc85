// What the agent thinks, on the board and in words. `kind` is the overlay: "policy", "values", "prior" or "" for none.

const STRONGEST_ARROWS = 4;
export const $ = (id) => document.getElementById(id);

export const make = (name, text) => Object.assign(document.createElement(name), { textContent: text });

const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
const percent = (share) => `${Math.round(100 * share)}%`;
const written = (kind, number) => (kind === "values" ? signed(number) : percent(number));

// What the overlay says of one move, "" for nothing.
export function shareText(analysis, kind, move) {
  const number = kind && analysis?.[kind][move];
  return typeof number === "number" ? written(kind, number) : "";
}

// For the board: {cells: Map "row,column" -> {text, strength 0..1, kind}, choice: the cell of the move that the agent
// would play, arrows: [{from, to, strength, isChoice}] of chess}; null where there is nothing to show.
export function overlayOf(state, analysis, kind, board) {
  if (!kind || analysis?.ply !== state.ply) return null;
  const numbers = Object.entries(analysis[kind]).sort((a, b) => b[1] - a[1]);
  const largest = kind === "values" ? 1 : Math.max(...numbers.map(([, number]) => number));
  const notes = numbers
    .filter(([, number]) => kind === "values" || number >= 0.005)
    .map(([move, number]) => [
      move,
      {
        strength: Math.abs(number) / largest,
        kind: kind === "values" ? (number < 0 ? "bad" : "good") : "",
        text: written(kind, number),
      },
    ]);
  if (state.board === "chess") return chessOverlay(notes, analysis, kind, board);
  const cells = new Map();
  for (const [move, note] of notes) {
    const cell = board.cellOf(move);
    if (cell) cells.set(cell.join(), note);
  }
  return { cells, arrows: [], choice: board.cellOf(analysis.move) };
}

// Arrows for the strongest moves and for the agent's own, with their numbers where they end.
function chessOverlay(notes, { move: choice, values }, kind, board) {
  const drawn = notes.filter(([move]) => board.ends(move));
  const shown = drawn.filter(([move], index) => index < STRONGEST_ARROWS || move === choice);
  if (board.ends(choice) && !shown.some(([move]) => move === choice)) shown.push([choice, { strength: 0, kind: "", text: "" }]);
  const cells = new Map();
  const arrows = shown.map(([move, note]) => {
    const [from, to] = board.ends(move);
    if (move === choice || !cells.has(to.join())) cells.set(to.join(), { ...note, strength: 0.5 * note.strength });
    const strength = kind === "values" ? ((values[move] ?? -1) + 1) / 2 : note.strength;
    return { from, to, strength: Math.max(0, strength), isChoice: move === choice };
  });
  return { cells, arrows, choice: board.ends(choice)?.[1] };
}

// The value with its bar, the move, the lines, and why the move need not have the largest share.
export function drawThoughts(state, analysis, kind) {
  const isShown = Boolean(kind && analysis?.ply === state.ply);
  $("thoughts").hidden = !isShown;
  if (!isShown) return;
  const first = analysis.colour === 0 ? analysis.value : -analysis.value;
  $("bar-first").style.width = `${(50 * (1 + Math.max(-1, Math.min(1, first)))).toFixed(1)}%`;
  $("value").textContent =
    `Value for ${state.names[analysis.colour]}: ${signed(analysis.value)} after ${analysis.num_simulations} ` +
    `simulations, ${signed(analysis.prior_value)} at first sight.`;
  const isRinged = document.querySelector("#board .choice, button.choice") !== null;
  $("would").replaceChildren("It would play ", make("b", analysis.move), isRinged ? " (ringed)." : ".");
  $("why").textContent = analysis.why;
  $("lines").replaceChildren(
    ...analysis.lines.map((line) => {
      const row = document.createElement("tr");
      const moves = make("td", "");
      moves.append(make("b", line.moves[0]), ` ${line.moves.slice(1).join(" ")}`);
      row.append(moves, make("td", line.visits ?? ""), make("td", line.value === null ? "" : signed(line.value)));
      return row;
    }),
  );
}
