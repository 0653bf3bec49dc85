// The page: asks the server, which alone knows the rules, and shows what it says.
// Whose turn is the agent's is decided here: `you` is "0" or "1" (a colour), "both" or "none" (watching).

import { ask, capital } from "./ask.js";
import { Board, placeName } from "./board.js";
import { recalled, remember } from "./memory.js";
import { $, drawThoughts, make, overlayOf, shareText } from "./thoughts.js";

const SPECIAL = { pass: "Pass", "swap-pieces": "Swap" };
const PROMOTED = { q: "Queen", r: "Rook", b: "Bishop", n: "Knight" };
const PAUSE_BETWEEN_MOVES = 500; // milliseconds, so that a person can watch two agents
const board = new Board($("board"), onCell);

let state = null;
let analysis = null;
let chosen = null; // chess: the cell a move starts from
let promotions = []; // chess: moves of which one is to be picked
let isBusy = false;
let isPlaying = false;
let isPaused = false;
let mistake = "";
let generation = 0; // a new game, an undo or another side makes running turns stop

const budget = () => Number($("budget").value);
const isAgents = (colour) =>
  $("you").value === "none" || ($("you").value !== "both" && Number($("you").value) !== colour);
const isPlain = () => state.board === "plain"; // text and a button for each legal move, in place of a board
const isFlipped = () => state.board === "chess" && $("you").value === "1";

// A mistake in a sentence; "" takes it back.
function say(text) {
  mistake = text;
  drawMessage();
}

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
  if (!state.result && isAgents(state.to_move)) {
    say("It is the agent's turn.");
    if (!isBusy && !isPaused) interrupt(goOn); // its order failed, or another page has played meanwhile
    return;
  }
  if (state.board === "chess" && state.columns.length) return onSquare(row, column);
  const move = state.clicks[row][column];
  if (move !== null) return playMove(move);
  say(state.result ? "The game is over." : "No move belongs to this cell: use the buttons.");
}

// Chess: the first click picks a piece up, the second puts it down; a click on the same square lets go.
function onSquare(row, column) {
  const square = placeName(state, row, column);
  const from = chosen && placeName(state, ...chosen);
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
  if (!$("you").options.length) return; // no answer yet, so no controls
  document.body.dataset.board = state.board;
  document.body.dataset.busy = isBusy;
  const targets = !chosen
    ? []
    : state.legal.filter((m) => m.startsWith(placeName(state, ...chosen))).map((m) => board.ends(m)?.[1].join());
  Object.assign(document.body.dataset, { first: state.inks[0], second: state.inks[1] });
  $("text").textContent = state.text;
  if (!isPlain())
    board.draw(state, {
      overlay: overlayOf(state, analysis, $("overlay").value, board),
      flipped: isFlipped(),
      chosen,
      targets,
    });
  drawStatus(status);
  drawMessage();
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
  drawThoughts(state, analysis, $("overlay").value);
}

// The result, large, or whose turn it is, with that side's colour.
function drawStatus(status) {
  const isTurn = !status && !state.result;
  $("status").textContent = status ?? capital(state.result ?? `${state.names[state.to_move]} to move`);
  $("status").className = isTurn ? `turn ${state.to_move ? "second" : "first"}` : status ? "" : "result";
}

// A mistake; or else that a swap has changed what stands on the board.
function drawMessage() {
  const [first, second] = state?.names ?? [];
  const notice = state?.swapped ? `${capital(second)} swapped: ${first}'s stone became ${second}'s, mirrored.` : "";
  $("message").textContent = mistake || notice;
  $("message").className = mistake ? "mistake" : notice && "notice";
}

// Buttons for moves that no click names. Beside the board: a pass, a swap, the pieces that a pawn may become. Below it:
// all others; without a board these are all legal moves.
function drawChoices() {
  const special = isPlain() ? [] : state.legal.filter((move) => move in SPECIAL);
  const others = state.legal.filter((move) => isPlain() || !(move in SPECIAL || board.canPlay(move)));
  drawButtons("choices", promotions.length ? promotions : special);
  drawButtons("actions", others);
}

function drawButtons(place, moves) {
  const isMine = !state.result && !isAgents(state.to_move);
  const nameOf = (move) => (promotions.includes(move) ? PROMOTED[move.at(-1)] : SPECIAL[move]) ?? move;
  $(place).replaceChildren(
    ...(isMine ? moves : []).map((move) => {
      const share = shareText(analysis, $("overlay").value, move);
      const button = make(
        "button",
        nameOf(move) + (share && !promotions.length ? ` (${share})` : ""),
      );
      button.type = "button";
      if ($("overlay").value && analysis?.move === move) button.className = "choice";
      button.dataset.move = move;
      button.addEventListener("click", () => playMove(move));
      return button;
    }),
  );
}

// --- controls --------------------------------------------------------------------------------------------------------

function fillControls() {
  const size = `${state.squares.length}×${state.squares[0].length}`;
  $("title").textContent = state.title + (["hex", "go"].includes(state.board) ? ` ${size}` : "");
  $("goal").textContent = state.goal;
  $("keys").hidden = state.board !== "chess" && !state.clicks.flat().some(Boolean);
  $("tree").hidden = Boolean(globalThis.answer); // the server alone draws it
  document.title = `${$("title").textContent} – muzero_jax`;
  const sides = [
    ["0", `${state.names[0]} (first)`],
    ["1", state.names[1]],
    ["both", "both sides"],
    ["none", "neither: watch"],
  ];
  $("you").replaceChildren(...sides.map(([value, text]) => Object.assign(make("option", text), { value })));
  $("budget").replaceChildren(
    ...state.budgets.map((n) => Object.assign(make("option", n), { value: n, selected: n === state.num_simulations })),
  );
}

// Another --num-simulations starts afresh.
const memory = () => `${$("title").textContent}, ${state.num_simulations}`;
const keep = () =>
  remember(memory(), { you: $("you").value, budget: $("budget").value, overlay: $("overlay").value, isPaused });

function setPaused(value) {
  isPaused = value;
  keep();
}

function recall() {
  const choices = recalled(memory());
  for (const id of ["you", "budget", "overlay"]) {
    const isOffered = [...$(id).options].some((option) => option.value === choices?.[id]);
    if (isOffered) $(id).value = choices[id];
  }
  isPaused = choices?.isPaused === true;
}

$("new").addEventListener("click", () =>
  interrupt(async () => {
    setPaused(false);
    receive(await ask("api/new", {}));
    await goOn();
  }),
);
$("undo").addEventListener("click", () =>
  interrupt(async () => {
    const isOneSide = $("you").value === "0" || $("you").value === "1";
    setPaused(isPaused || $("you").value === "none");
    receive(await ask("api/undo", isOneSide ? { colour: Number($("you").value) } : {}));
    await goOn();
  }),
);
$("pause").addEventListener("click", () => {
  setPaused(!isPaused);
  interrupt(goOn);
});
$("you").addEventListener("change", () => {
  setPaused(false);
  chosen = null;
  interrupt(goOn);
});
for (const id of ["budget", "overlay"])
  $(id).addEventListener("change", () => {
    keep();
    interrupt(goOn);
  });

attempt(async () => {
  state = await ask("api/state");
  fillControls();
  recall();
  draw();
  await goOn();
});
