// What the agent thinks, on the board and in words. `kind` is the overlay: "policy", "values", "prior" or "" for none.

const STRONGEST_ARROWS = 4;
export const $ = (id) => document.getElementById(id);

export const make = (name, text) => Object.assign(document.createElement(name), { textContent: text });

const LARGE = 100; // from here on a value has no decimals
const written = (number) => (number < LARGE ? number.toFixed(2) : Math.round(number).toLocaleString("en"));
const signed = (value) => (value <= -0.005 ? "−" : "+") + written(Math.abs(value));
export const points = (total) => `${Number(total.toFixed(2)).toLocaleString("en")} ${total === 1 ? "point" : "points"}`;
const percent = (share) => `${Math.round(100 * share)}%`;
const shown = (kind, number) => (kind === "values" ? signed(number) : percent(number));

// What the overlay says of one move, "" for nothing.
export function shareText(analysis, kind, move) {
  const number = kind && analysis?.[kind][move];
  return typeof number === "number" ? shown(kind, number) : "";
}

// For the board: {cells: Map "row,column" -> {text, strength 0..1, kind}, choice: the cell of the move that the agent
// would play, arrows: [{from, to, strength, isChoice}] where a move joins two cells, moves: [[move, note]] of all};
// null where there is nothing to show.
export function overlayOf(state, analysis, kind, board) {
  if (!kind || analysis?.ply !== state.ply) return null;
  const numbers = Object.entries(analysis[kind]).sort((a, b) => b[1] - a[1]);
  const most = Math.max(...numbers.map(([, number]) => Math.abs(number)));
  const largest = kind === "values" ? (isOpenEnded(state) ? most || 1 : (state.most_value ?? (most || 1))) : most;
  const notes = numbers
    .filter(([, number]) => kind === "values" || number >= 0.005)
    .map(([move, number]) => [
      move,
      {
        strength: Math.abs(number) / largest,
        kind: kind === "values" ? (number < 0 ? "bad" : "good") : "",
        text: shown(kind, number),
        isChoice: move === analysis.move,
      },
    ]);
  if (state.board === "chess" || board.isOfTwoClicks) return chessOverlay(notes, analysis, kind, board, largest);
  const cells = new Map();
  for (const [move, note] of notes) {
    const cell = board.cellOf(move);
    if (cell) cells.set(cell.join(), note);
  }
  return { cells, arrows: [], moves: notes, choice: board.cellOf(analysis.move) };
}

// Arrows for the strongest moves and for the agent's own, with their numbers where they end.
function chessOverlay(notes, { move: choice, values }, kind, board, largest) {
  const drawn = notes.filter(([move]) => board.ends(move));
  const shown = drawn.filter(([move], index) => index < STRONGEST_ARROWS || move === choice);
  if (board.ends(choice) && !shown.some(([move]) => move === choice)) shown.push([choice, { strength: 0, kind: "", text: "" }]);
  const cells = new Map();
  const arrows = shown.map(([move, note]) => {
    const [from, to] = board.ends(move);
    if (move === choice || !cells.has(to.join())) cells.set(to.join(), { ...note, strength: 0.5 * note.strength });
    const strength = kind === "values" ? ((values[move] ?? -largest) / largest + 1) / 2 : note.strength;
    return { from, to, strength: Math.max(0, strength), isChoice: move === choice };
  });
  return { cells, arrows, choice: board.ends(choice)?.[1] };
}

// A game for one with points, whose largest value is only what the network can say, or is not known.
const isOpenEnded = (state) => state.num_players === 1 && !(state.most_value <= 1);

// Whose value it is, or of what, and its range where that is not from -1 to 1.
function valueOf({ num_players, names, most_value: most }, { colour }) {
  const range = most > 1 ? ` (−${most} to +${most})` : "";
  return num_players === 1 ? "Expected from here" : `Value for ${names[colour]}${range}`;
}

// The first player's part of the bar. Without a largest value it is the points so far among those that are expected in
// the end, or where two play, v / (1 + |v|) in place of v.
function barShare(state, { value, colour }) {
  if (isOpenEnded(state)) {
    const end = state.total + Math.max(0, value);
    return end > 0 ? Math.max(0, state.total) / end : 0;
  }
  const first = (colour === 0 ? value : -value) / (state.most_value ?? 1 + Math.abs(value));
  return (1 + Math.max(-1, Math.min(1, first))) / 2;
}

// The value with its bar, the move, the lines, and why the move need not have the largest share.
export function drawThoughts(state, analysis, kind) {
  const isShown = Boolean(kind && analysis?.ply === state.ply);
  $("thoughts").hidden = !isShown;
  if (!isShown) return;
  $("bar-first").style.width = `${(100 * barShare(state, analysis)).toFixed(1)}%`;
  $("value").textContent =
    `${valueOf(state, analysis)}: ${signed(analysis.value)} after ${analysis.num_simulations} ` +
    `simulations, ${signed(analysis.prior_value)} at first sight.`;
  $("bar").title = isOpenEnded(state) ? `${points(state.total)} so far, of those expected in the end` : "";
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
