// The page: asks the server, which alone knows the rules, and shows what it says.
// Whose turn is the agent's is decided here: `you` is "0" or "1" (a colour), "both" or "none" (watching).

import { ask, capital } from "./ask.js";
import { Board } from "./board.js";
import { recalled, remember } from "./memory.js";
import { drawPad, keyDirection, listenToSwipes } from "./pad.js";
import { Points } from "./points.js";
import { $, drawThoughts, make, overlayOf, points, shareText } from "./thoughts.js";
import { Tiles } from "./tiles.js";

const BOARDS = { tiles: Tiles, points: Points }; // all others are grids of cells
const SPECIAL = { pass: "Pass", "swap-pieces": "Swap" };
const PROMOTED = { q: "Queen", r: "Rook", b: "Bishop", n: "Knight" };
const [PAUSE, PAUSE_IN_A_TURN, PAUSE_OF_ONE] = [500, 900, 150]; // milliseconds, so that a person can watch
let board = null;

let state = null;
let analysis = null;
let chosen = null; // the cell that a move of two clicks starts from
let choices = []; // moves between the same two cells, of which one is to be picked
let hinted = -1; // the ply for which a hint was asked
let isBusy = false;
let isPlaying = false;
let isPaused = false;
let mistake = "";
let generation = 0; // a new game, an undo or another side makes running turns stop

const budget = () => Number($("budget").value);
const isAgents = (colour) =>
  $("you").value === "none" || ($("you").value !== "both" && Number($("you").value) !== colour);
const isPlain = () => state.board === "plain"; // text and a button for each legal move, in place of a board
const isFlipped = () => board.turns && $("you").value === "1";
const isForOne = () => state.num_players === 1;
const overlay = () => $("overlay").value || (hinted === state?.ply ? "policy" : "");

// How long a move of the agent's stands before the next; a turn of several moves must be seen, and its dice.
function pause() {
  if (isForOne()) return PAUSE_OF_ONE;
  return state.in_turns ? ($("you").value === "none" ? PAUSE : 0) : PAUSE_IN_A_TURN;
}

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
  choices = [];
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
    if (overlay() && $("you").value === "none") await analyse();
    draw("The agent is thinking…");
    const start = performance.now();
    const next = await ask("api/agent-move", { num_simulations: budget(), ply: state.ply });
    const rest = pause() - (performance.now() - start);
    if (rest > 0) await new Promise((done) => setTimeout(done, rest));
    receive(next);
    if (mine !== generation) return;
  }
  if (overlay() && !state.result) await analyse();
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
  if (board.isOfTwoClicks) return onSquare(row, column);
  const move = state.clicks[row][column];
  if (move !== null) return playMove(move);
  say(state.result ? "The game is over." : "No move belongs to this cell: use the buttons.");
}

// The first click picks a piece up, the second puts it down; a click on the same cell lets go.
function onSquare(row, column) {
  const [cell, from] = [[row, column].join(), chosen?.join()];
  choices = movesFrom(from).filter((move) => board.ends(move)[1].join() === cell);
  say("");
  if (from === cell) chosen = null;
  else if (choices.length === 1) return playMove(choices[0]);
  else if (movesFrom(cell).length && !choices.length) chosen = [row, column];
  else if (!choices.length) {
    const move = board.written(chosen, [row, column]);
    if (move) return playMove(move);
    say(state.result ? "The game is over." : "Nothing can move from here.");
  }
  draw();
}

const movesFrom = (cell) => state.legal.filter((move) => board.ends(move)?.[0].join() === cell);

// --- drawing ---------------------------------------------------------------------------------------------------------

function draw(status) {
  if (!$("you").options.length) return; // no answer yet, so no controls
  document.body.dataset.board = state.board;
  document.body.dataset.busy = isBusy;
  Object.assign(document.body.dataset, { first: state.inks[0], second: state.inks[1], players: state.num_players });
  $("text").textContent = state.text;
  if (!isPlain())
    board.draw(state, {
      overlay: overlayOf(state, analysis, overlay(), board),
      flipped: isFlipped(),
      numbered: ["0", "1"].includes($("you").value) ? Number($("you").value) : state.to_move,
      chosen,
      targets: () => (chosen ? movesFrom(chosen.join()).map((move) => board.ends(move)[1].join()) : []),
    });
  drawStatus(status);
  drawMessage();
  $("undo").disabled = !state.ply;
  $("pause").hidden = $("you").value !== "none";
  $("pause").textContent = isPaused ? "Continue" : "Pause";
  $("hint").disabled = Boolean(state.result) || $("you").value === "none";
  drawMoves();
  drawChoices();
  drawThoughts(state, analysis, overlay());
}

// A number for each move, or for each turn where a turn has several.
function drawMoves() {
  const turns = [];
  state.moves.forEach((move, index) => {
    const isSameTurn = !state.in_turns && index > 0 && state.movers[index] === state.movers[index - 1];
    if (isSameTurn) turns.at(-1).push(move);
    else turns.push([move]);
  });
  $("moves").replaceChildren(
    ...turns.map((moves, index) => {
      const item = make("li", moves.join(" "));
      item.dataset.number = index + 1;
      return item;
    }),
  );
}

// The result, large, or whose turn it is, with that side's colour; in a game for one the points so far.
function drawStatus(status) {
  const isTurn = !status && !state.result && !isForOne();
  const turn = isForOne() ? `${points(state.total)}, ${state.ply} moves` : `${state.names[state.to_move]} to move`;
  $("status").textContent = (isForOne() ? null : status) ?? capital(state.result ?? turn);
  $("status").className = isTurn ? `turn ${state.to_move ? "second" : "first"}` : state.result && !status ? "result" : "";
}

// A mistake; or else that a swap has changed what stands on the board, or that somebody passed or has to.
function drawMessage() {
  const notice = state ? noticeOf(state) : "";
  $("message").textContent = mistake || notice;
  $("message").className = mistake ? "mistake" : notice && "notice";
}

function noticeOf({ names, legal, moves, movers, result, swapped }) {
  const [first, second] = names;
  if (swapped) return `${capital(second)} swapped: ${first}'s stone became ${second}'s, mirrored.`;
  if (result) return "";
  const passed = moves.at(-1) === "pass" ? `${capital(names[movers.at(-1)])} passed. ` : "";
  const mustPass = legal.length === 1 && legal[0] === "pass" && !isAgents(state.to_move);
  return passed + (mustPass ? "No move is possible: press Pass." : "");
}

// Buttons for moves that no click names. Beside the board: a pass, a swap, the pieces that a pawn may become. Below it:
// all others; without a board these are all legal moves.
function drawChoices() {
  const special = isPlain() ? [] : state.legal.filter((move) => move in SPECIAL);
  const loose = state.legal.filter((move) => !state.directions.includes(move));
  const others = loose.filter((move) => isPlain() || !(move in SPECIAL || board.canPlay(move)));
  drawButtons("choices", choices.length ? choices : special);
  drawButtons("actions", others);
  const isMine = !state.result && !isAgents(state.to_move);
  drawPad(state, isMine, playMove, (button, move) => mark(button, move, button.textContent));
}

// A button with what the overlay says of its move.
function mark(button, move, name) {
  const share = shareText(analysis, overlay(), move);
  button.textContent = name + (share && !choices.length ? ` (${share})` : "");
  button.classList.toggle("choice", Boolean(overlay()) && analysis?.move === move);
}

function drawButtons(place, moves) {
  const isMine = !state.result && !isAgents(state.to_move);
  const nameOf = (move) => (choices.includes(move) ? PROMOTED[move.at(-1)] : SPECIAL[move]) ?? move;
  $(place).replaceChildren(
    ...(isMine ? moves : []).map((move) => {
      const button = make("button", "");
      mark(button, move, nameOf(move));
      button.type = "button";
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
  $("keys").hidden = !board.isOfTwoClicks && !state.clicks.flat().some(Boolean) && !state.directions.length;
  if (state.directions.length) $("keys").textContent = "Play with the arrow keys, with the buttons, or by swiping.";
  document.title = `${$("title").textContent} – muzero_jax`;
  const ofTwo = [
    ["0", `${state.names[0]} (first)`],
    ["1", state.names[1]],
    ["both", "both sides"],
    ["none", "neither: watch"],
  ];
  const ofOne = [
    ["0", "yourself"],
    ["none", "not: watch the agent"],
  ];
  const sides = isForOne() ? ofOne : ofTwo;
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
$("hint").addEventListener("click", () => {
  hinted = state.ply;
  interrupt(goOn);
});
// The arrow keys play, unless a list or a cell of the board has use for them.
document.addEventListener("keydown", (event) => {
  const direction = keyDirection(event);
  if (!state?.directions.includes(direction)) return;
  event.preventDefault();
  steer(direction);
});
listenToSwipes($("board"), (direction) => state?.directions.includes(direction) && steer(direction));

function steer(direction) {
  if (state.result) say("The game is over.");
  else if (isAgents(state.to_move)) say("It is the agent's turn.");
  else if (state.legal.includes(direction)) playMove(direction);
}

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
  board = new (BOARDS[state.board] ?? Board)($("board"), onCell);
  board.state = state;
  fillControls();
  recall();
  draw();
  await goOn();
});
