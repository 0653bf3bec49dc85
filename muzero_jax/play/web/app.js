// The page: asks the server, which alone knows the rules, and shows what it says.
// Whose turn is the agent's is decided here: `you` is "0" or "1" (a colour), "both" or "none" (watching).

import { Board, cellText } from "./board.js";

const PAUSE_BETWEEN_MOVES = 500; // milliseconds, so that a person can watch two agents
const STRONGEST_ARROWS = 4;
const $ = (id) => document.getElementById(id);
const board = new Board($("board"), onCell);

let state = null;
let analysis = null;
let chosen = null; // chess: the cell a move starts from
let promotions = []; // chess: moves of which one is to be picked
let isBusy = false;
let isPlaying = false;
let isPaused = false;
let generation = 0; // a new game, an undo or another side makes running turns stop

async function ask(path, fields) {
  const options = fields && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(fields),
  };
  const answer = await fetch(path, options).catch(() => null);
  if (!answer) throw new Error("The server does not answer: is it still running?");
  const result = await answer.json().catch(() => ({ error: `The server answered ${answer.status}.` }));
  if (!answer.ok) throw new Error(sentence(result.error));
  return result;
}

const sentence = (text) => text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
const budget = () => Number($("budget").value);
const isAgents = (colour) =>
  $("you").value === "none" || ($("you").value !== "both" && Number($("you").value) !== colour);
const isFlipped = () => state.board === "chess" && $("you").value === "1";
const say = (text) => {
  $("message").textContent = text;
};

// --- turns -----------------------------------------------------------------------------------------------------------

// One order at a time; its mistake becomes a sentence on the page, and the board what the server has.
async function attempt(action) {
  if (isBusy) return;
  isBusy = true;
  document.body.dataset.busy = true;
  say("");
  try {
    await action();
  } catch (mistake) {
    state = await ask("api/state").catch(() => state);
    chosen = null;
    say(mistake.message);
  } finally {
    isBusy = false;
    draw();
  }
}

function receive(newState) {
  state = newState;
  analysis = null;
  chosen = null;
  promotions = [];
  draw();
}

// A person need not wait for the overlay, but a second click before the first is answered is none.
async function playMove(move) {
  if (isPlaying) return;
  isPlaying = true;
  const { ply } = state;
  await interrupt(async () => {
    receive(
      await ask("api/play", { move, ply }).finally(() => {
        isPlaying = false;
      }),
    );
    await goOn();
  });
}

// The agent's turns, until a person is to move or the game is over; then the overlay.
async function goOn() {
  const mine = ++generation;
  while (!state.result && isAgents(state.to_move) && !isPaused) {
    if ($("overlay").value && $("you").value === "none") await analyse();
    draw("The agent is thinking…");
    const start = performance.now();
    const next = await ask("api/agent-move", { num_simulations: budget(), ply: state.ply });
    const rest = PAUSE_BETWEEN_MOVES - (performance.now() - start);
    if ($("you").value === "none" && rest > 0) await new Promise((done) => setTimeout(done, rest));
    receive(next);
    if (mine !== generation) return;
  }
  if ($("overlay").value && !state.result) await analyse();
}

async function analyse() {
  draw("The agent is thinking…");
  analysis = await ask("api/analysis", { num_simulations: budget(), ply: state.ply });
  draw();
}

// Orders that stop what is running: they wait for the answer under way, then begin.
async function interrupt(action) {
  generation++;
  while (isBusy) await new Promise((done) => setTimeout(done, 20));
  await attempt(action);
}

function onCell(row, column) {
  if (!state) return;
  if (!state.result && isAgents(state.to_move)) return say("It is the agent's turn.");
  if (state.board === "chess") return onSquare(row, column);
  playMove(cellText(state, row, column));
}

// Chess: the first click picks a piece up, the second puts it down; a click on the same square lets go.
function onSquare(row, column) {
  const square = cellText(state, row, column);
  const from = chosen && cellText(state, ...chosen);
  promotions = [];
  say("");
  if (from === square) chosen = null;
  else if (state.legal.some((move) => move.startsWith(square))) chosen = [row, column];
  else if (!from) return playMove(square);
  else {
    const moves = state.legal.filter((move) => move.startsWith(from + square));
    if (moves.length < 2) return playMove(moves[0] ?? from + square);
    promotions = moves;
  }
  draw();
}

// --- drawing ---------------------------------------------------------------------------------------------------------

function draw(status) {
  if (!state) return;
  document.body.dataset.board = state.board;
  document.body.dataset.busy = isBusy;
  const targets = !chosen
    ? []
    : state.legal.filter((m) => m.startsWith(cellText(state, ...chosen))).map((m) => board.find(m.slice(2, 4)).join());
  board.draw(state, { overlay: overlay(), flipped: isFlipped(), chosen, targets });
  $("status").textContent =
    status ?? (state.result ? `Game over: ${state.result}` : `${state.names[state.to_move]} to move`);
  $("undo").disabled = !state.ply;
  $("pause").hidden = $("you").value !== "none";
  $("pause").textContent = isPaused ? "Continue" : "Pause";
  $("moves").replaceChildren(
    ...state.moves.map((move, index) => {
      const item = make("li", move);
      item.dataset.number = index + 1;
      return item;
    }),
  );
  drawChoices();
  drawThoughts();
}

const make = (name, text) => Object.assign(document.createElement(name), { textContent: text });

// Moves that are no cells: a pass, a swap, the pieces that a pawn may become.
function drawChoices() {
  const names = { q: "Queen", r: "Rook", b: "Bishop", n: "Knight", pass: "Pass", "swap-pieces": "Swap" };
  const others = promotions.length ? promotions : ["pass", "swap-pieces"].filter((move) => state.legal.includes(move));
  const isMine = !state.result && !isAgents(state.to_move);
  $("choices").replaceChildren(
    ...(isMine ? others : []).map((move) => {
      const share = analysis && shareText(move);
      const button = make(
        "button",
        (names[move] ?? names[move.at(-1)]) + (share && !promotions.length ? ` (${share})` : ""),
      );
      button.type = "button";
      button.dataset.move = move;
      button.addEventListener("click", () => playMove(move));
      return button;
    }),
  );
}

const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
const percent = (share) => `${Math.round(100 * share)}%`;

function shareText(move) {
  const kind = $("overlay").value;
  const number = kind && analysis[kind][move];
  if (number === undefined || number === "") return "";
  return kind === "values" ? signed(number) : percent(number);
}

// What the chosen overlay says of each cell (null: nothing to say).
function overlay() {
  const kind = $("overlay").value;
  if (!kind || !analysis || analysis.ply !== state.ply) return null;
  const cells = new Map();
  const arrows = [];
  const numbers = Object.entries(analysis[kind]).sort((a, b) => b[1] - a[1]);
  const largest = kind === "values" ? 1 : Math.max(...numbers.map(([, number]) => number));
  for (const [move, number] of numbers) {
    if (kind !== "values" && number < 0.005) continue;
    const note = {
      strength: Math.abs(number) / largest,
      kind: kind === "values" ? (number < 0 ? "bad" : "good") : "",
      text: kind === "values" ? signed(number) : percent(number),
    };
    if (state.board === "chess") {
      const [from, to] = [board.find(move.slice(0, 2)), board.find(move.slice(2, 4))];
      if (arrows.length < STRONGEST_ARROWS) {
        arrows.push({ from, to, strength: Math.max(0, kind === "values" ? (number + 1) / 2 : note.strength) });
        if (!cells.has(to.join())) cells.set(to.join(), { ...note, strength: 0.5 * note.strength });
      }
      continue;
    }
    const cell = landing(move);
    if (cell) cells.set(cell.join(), note);
  }
  return { cells, arrows };
}

function landing(move) {
  if (state.board !== "connect_four") return board.find(move);
  const column = state.columns.indexOf(move);
  return [state.squares.findLastIndex((row) => row[column] === "."), column];
}

function drawThoughts() {
  const isShown = Boolean($("overlay").value && analysis && analysis.ply === state.ply);
  $("thoughts").hidden = !isShown;
  if (!isShown) return;
  const mover = state.names[analysis.colour];
  const first = analysis.colour === 0 ? analysis.value : -analysis.value;
  $("bar-first").style.width = `${(50 * (1 + Math.max(-1, Math.min(1, first)))).toFixed(1)}%`;
  $("value").textContent =
    `Value for ${mover}: ${signed(analysis.value)} after ${analysis.num_simulations} simulations, ${signed(analysis.prior_value)} at first sight.`;
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

// --- controls --------------------------------------------------------------------------------------------------------

function fillControls() {
  const size = `${state.squares.length}×${state.squares[0].length}`;
  $("title").textContent = state.title + (["hex", "go"].includes(state.board) ? ` ${size}` : "");
  document.title = `${$("title").textContent} – muzero_jax`;
  const sides = [
    ["0", `${state.names[0]} (moves first)`],
    ["1", state.names[1]],
    ["both", "both sides"],
    ["none", "neither: watch"],
  ];
  $("you").replaceChildren(...sides.map(([value, text]) => Object.assign(make("option", text), { value })));
  $("budget").replaceChildren(
    ...state.budgets.map((n) => Object.assign(make("option", n), { value: n, selected: n === state.num_simulations })),
  );
}

$("new").addEventListener("click", () =>
  interrupt(async () => {
    isPaused = false;
    receive(await ask("api/new", {}));
    await goOn();
  }),
);
$("undo").addEventListener("click", () =>
  interrupt(async () => {
    const isOneSide = $("you").value === "0" || $("you").value === "1";
    isPaused = isPaused || $("you").value === "none";
    receive(await ask("api/undo", isOneSide ? { colour: Number($("you").value) } : {}));
    await goOn();
  }),
);
$("you").addEventListener("change", () =>
  interrupt(async () => {
    isPaused = false;
    chosen = null;
    await goOn();
  }),
);
$("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  interrupt(goOn);
});
$("budget").addEventListener("change", () => interrupt(goOn));
$("overlay").addEventListener("change", () => interrupt(goOn));

attempt(async () => {
  state = await ask("api/state");
  fillControls();
  draw();
});
