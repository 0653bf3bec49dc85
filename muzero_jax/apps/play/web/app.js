// The page: sends requests to the server, which knows the rules and draws the board, and shows the answers.
// The page decides which side the agent plays: `you` is "0" or "1" (a colour), "both" or "none" (watching).

import { Board } from "./board.js";
import { drawPad, keyDirection, listenToSwipes, playedBy } from "./pad.js";
import { ask, capital, recalled, remember } from "./server.js";

const SPECIAL = { pass: "Pass", "swap-pieces": "Swap" };
const PROMOTED = { q: "Queen", r: "Rook", b: "Bishop", n: "Knight" };
const [PAUSE, PAUSE_IN_A_TURN, PAUSE_OF_ONE] = [500, 900, 150]; // milliseconds, so that a person can watch

const $ = (id) => document.getElementById(id);
const make = (name, text, fields) => Object.assign(document.createElement(name), { textContent: text }, fields);
const board = new Board($("board"), $("tip"), onCell);

let state = null;
let analysis = null;
let chosen = null; // the first cell of a move of two clicks
let choices = []; // moves between the same two cells, from which to pick one
let hinted = -1; // the ply for which a hint was asked
let running = null; // the action that is being done, as a promise
let waiting = 0; // actions that wait for its end; running turns end for them
let isPlaying = false;
let isPaused = false;
let mistake = ""; // an error message
let held = ""; // the move of the key that is held down, in games that do not wait for a person
let pressed = ""; // there, the key, button or swipe that no move has taken yet

const you = () => $("you").value;
const isAgents = (colour) => you() === "none" || (you() !== "both" && Number(you()) !== colour);
const isMine = () => !state.result && !isAgents(state.to_move);
const overlay = () => $("overlay").value || (hinted === state?.ply ? "policy" : "");
const thoughts = () => (overlay() ? analysis : null); // of the board shown, or of the one before if moves go on
const isCurrent = () => thoughts()?.ply === state.ply;

// --- turns -----------------------------------------------------------------------------------------------------------

const seat = () => (["0", "1"].includes(you()) ? { seat: Number(you()) } : {});
const order = (name, fields) => ask(`api/${name}`, { ...fields, ...seat() });
const search = (name, fields) => order(name, { num_simulations: Number($("budget").value), ply: state.ply, ...fields });

// How long a move is shown before the agent's next one; longer within a turn, so that people see its moves and dice.
function pause() {
  if (state.pace) return state.pace;
  if (state.num_players === 1) return PAUSE_OF_ONE;
  return state.in_turns ? (you() === "none" ? PAUSE : 0) : PAUSE_IN_A_TURN;
}

// One action at a time, after those that wait already.
async function interrupt(action) {
  waiting++;
  while (running) await running;
  waiting--;
  document.body.dataset.busy = true;
  await (running = Promise.resolve(action).then(run)); // begins later, so that `draw` sees that something runs
}

// An error is shown on the page, and the board is loaded again.
async function run(action) {
  say("");
  try {
    await action();
  } catch (error) {
    state = await order("look").catch(() => state);
    chosen = analysis = null;
    say(error.message);
  } finally {
    running = null;
    draw();
  }
}

function receive(newState, kept = null) {
  [state, analysis, chosen, choices] = [newState, kept, null, []];
  draw();
}

// A person need not wait for the overlay, but a second click before the answer to the first is ignored.
async function playMove(move) {
  if (isLive() && running && !isPaused) {
    pressed = move;
    return;
  }
  if (isPlaying) return;
  isPlaying = true;
  const { ply } = state;
  await interrupt(async () => {
    receive(await order("play", { move, ply }).finally(() => (isPlaying = false)));
    await goOn();
  });
}

// Plays the agent's turns until a person is to move or the game is over; then shows the overlay.
async function goOn() {
  while (!state.result && isAgents(state.to_move) && !isPaused && !waiting) {
    if (!state.pace) await explain();
    receive(await paced(agentsMove()), state.pace ? analysis : null);
  }
  while (isLive() && !isPaused && !waiting) receive(await paced(order("play", { move: keyed(), ply: state.ply })));
  if (overlay() && !state.result && !waiting) await analyse();
}

// The move of a game that does not wait: of the key held down or pressed since the last one, else to wait.
function keyed() {
  const move = held || pressed || state.legal.at(-1);
  pressed = "";
  return move;
}

const explain = async () => overlay() && you() === "none" && analyse();

// In a game that does not wait, the time of the analysis is part of the move's.
async function agentsMove() {
  if (state.pace) await explain();
  draw("The agent is thinking…");
  return search("agent-move");
}

// Whether a person plays a game that does not wait.
const isLive = () => state.pace && isMine();

async function paced(answer) {
  const start = performance.now();
  const next = await answer;
  const rest = pause() - (performance.now() - start);
  if (rest > 0) await new Promise((done) => setTimeout(done, rest));
  return next;
}

async function analyse() {
  draw("The agent is thinking…");
  analysis = await search("analysis", { overlay: overlay() });
  draw();
}

// A click on a cell of the board: its name, and its move if one click plays one.
function onCell({ cell, move }) {
  if (!state.result && isAgents(state.to_move)) {
    say("It is the agent's turn.");
    if (!running && !isPaused) interrupt(goOn); // a request failed, or another page has played
    else draw();
  } else if (state.clicks === 2) onSquare(cell);
  else if (move) playMove(move);
  else {
    say(state.result ? "The game is over." : "No move belongs to this cell: use the buttons.");
    draw();
  }
}

// The first click picks a piece up, the second puts it down; a click on the same cell lets go.
function onSquare(cell) {
  choices = movesFrom(chosen).filter((move) => state.paths[move][1] === cell);
  say("");
  if (chosen === cell) chosen = null;
  else if (choices.length === 1) return playMove(choices[0]);
  else if (movesFrom(cell).length && !choices.length) chosen = cell;
  else if (!choices.length) {
    if (chosen !== null) return playMove(chosen + state.joint + cell);
    say(state.result ? "The game is over." : "Nothing can move from here.");
  }
  draw();
}

const movesFrom = (cell) => Object.keys(state.paths).filter((move) => state.paths[move][0] === cell);

// --- drawing ---------------------------------------------------------------------------------------------------------

function draw(status) {
  if (!$("you").options.length) return; // before the first answer
  Object.assign(document.body.dataset, { board: state.board, busy: Boolean(running) });
  document.body.style.setProperty("--first", `var(--${state.inks[0]})`);
  document.body.style.setProperty("--second", `var(--${state.inks[1]})`);
  const targets = chosen === null ? [] : movesFrom(chosen).map((move) => state.paths[move][1]);
  board.show(isCurrent() ? analysis.svg : state.svg, chosen, targets);
  drawStatus(status);
  drawMessage();
  $("undo").disabled = !state.ply;
  $("pause").hidden = you() !== "none" && !state.pace;
  $("pause").textContent = !isPaused ? "Pause" : state.ply ? "Continue" : "Start";
  $("hint").disabled = Boolean(state.result) || you() === "none" || Boolean(isLive() && !isPaused);
  drawMoves();
  drawButtons();
  drawThoughts(thoughts());
}

// The result, or whose turn it is with that side's colour; in a single-player game the points so far.
function drawStatus(status) {
  const isForOne = state.num_players === 1;
  $("status").textContent = (isForOne ? null : status) ?? capital(state.status);
  const isTurn = !status && !state.result && !isForOne;
  $("status").className = isTurn ? `turn ${state.to_move ? "second" : "first"}` : state.result && !status ? "result" : "";
}

function say(text) {
  mistake = text;
  drawMessage();
}

// An error; else a notice that somebody swapped, passed or must pass.
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
  const mustPass = legal.length === 1 && legal[0] === "pass" && isMine();
  return passed + (mustPass ? "No move is possible: press Pass." : "");
}

// One list item for each move, or for each turn if turns have several moves.
function drawMoves() {
  const turns = [];
  state.moves.forEach((move, index) => {
    const isSameTurn = !state.in_turns && index > 0 && state.movers[index] === state.movers[index - 1];
    if (isSameTurn) turns.at(-1).push(move);
    else turns.push([move]);
  });
  $("moves").replaceChildren(...turns.map((moves) => make("li", moves.join(" "))));
}

// Buttons for moves that no click plays. Next to the board: pass, swap, the choices of a promotion.
function drawButtons() {
  const isSpecial = (move) => move in SPECIAL;
  fillButtons("choices", choices.length ? choices : state.buttons.filter(isSpecial));
  fillButtons("actions", state.buttons.filter((move) => !isSpecial(move)));
  drawPad(state, isMine(), playMove, (button, move) => mark(button, move, button.textContent));
}

function fillButtons(place, moves) {
  const nameOf = (move) => (choices.includes(move) ? PROMOTED[move.at(-1)] : SPECIAL[move]) ?? move;
  const press = (event) => {
    event.target.classList.add("pending");
    playMove(event.target.dataset.move);
  };
  const shown = isMine() || state.pace ? moves : [];
  const isKept = state.pace && $(place).children.length === shown.length; // a new button would lose a click in progress
  if (!isKept) $(place).replaceChildren(...shown.map(() => make("button", "", { type: "button", onclick: press })));
  shown.forEach((move, index) => {
    const button = $(place).children[index];
    button.dataset.move = move;
    button.disabled = !isMine();
    button.classList.remove("pending");
    mark(button, move, nameOf(move));
  });
}

// Labels a button with its move and the overlay's number for it.
function mark(button, move, name) {
  const note = choices.length ? "" : thoughts()?.notes[move];
  button.textContent = name + (note ? ` (${note})` : "");
  button.classList.toggle("choice", thoughts()?.move === move);
}

// The value with its bar, the move, the lines, and why the move need not have the largest share.
function drawThoughts(shown) {
  $("thoughts").hidden = !shown;
  if (!shown) return;
  $("bar").hidden = shown.bar === null;
  $("bar-first").style.width = `${(100 * shown.bar).toFixed(1)}%`;
  $("value").textContent = shown.said;
  $("history").innerHTML = shown.history;
  $("would").replaceChildren("It would play ", make("b", shown.move), shown.is_ringed ? " (ringed)." : ".");
  $("why").textContent = shown.why;
  $("lines").replaceChildren(
    ...shown.lines.map(({ moves, visits, value }) => {
      const [row, line] = [make("tr"), make("td")];
      line.append(make("b", moves[0]), ` ${moves.slice(1).join(" ")}`);
      row.append(line, make("td", visits ?? ""), make("td", value ?? ""));
      return row;
    }),
  );
}

// --- controls --------------------------------------------------------------------------------------------------------

function fillControls() {
  $("title").textContent = `${state.title} ${state.size}`.trim();
  $("goal").textContent = state.goal;
  $("keys").hidden = !state.clicks && !state.directions.length && !state.pace;
  if (state.directions.length) $("keys").textContent = "Play with the arrow keys, with the buttons, or by swiping.";
  const fire = state.buttons.includes("fire") ? ["space bar"] : [];
  const keys = [...state.directions.map((word) => `arrow ${word}`), ...fire];
  if (state.pace) $("keys").textContent = `Keys: ${keys.join(", ")}. Any of them starts the game.`;
  document.title = `${$("title").textContent} – muzero_jax`;
  const [first, second] = state.names;
  const ofTwo = [["0", `${first} (first)`], ["1", second], ["both", "both sides"], ["none", "neither: watch"]];
  const ofOne = [["0", "yes"], ["none", "no: watch the agent"]];
  const sides = state.num_players === 1 ? ofOne : ofTwo;
  $("you").replaceChildren(...sides.map(([value, text]) => make("option", text, { value })));
  const isUsual = (budget) => budget === state.num_simulations;
  $("budget").parentElement.hidden = state.budgets.length === 1;
  $("budget").replaceChildren(...state.budgets.map((n) => make("option", n, { value: n, selected: isUsual(n) })));
}

// The key of stored choices; with another --num-simulations the defaults return.
const memory = () => `${$("title").textContent}, ${state.num_simulations}`;
const keep = () => remember(memory(), { you: you(), budget: $("budget").value, overlay: $("overlay").value, isPaused });

function setPaused(value) {
  isPaused = value;
  keep();
}

function recall() {
  const kept = recalled(memory());
  for (const id of ["you", "budget", "overlay"]) {
    const isOffered = [...$(id).options].some((option) => option.value === kept?.[id]);
    if (isOffered) $(id).value = kept[id];
  }
  isPaused = Boolean(isLive()) || kept?.isPaused === true; // a key starts such a game
}

$("new").addEventListener("click", () =>
  interrupt(async () => {
    setPaused(Boolean(state.pace) && you() !== "none"); // a key starts such a game
    receive(await order("new"));
    await goOn();
  }),
);
$("undo").addEventListener("click", () =>
  interrupt(async () => {
    setPaused(isPaused || you() === "none" || Boolean(state.pace));
    receive(await order("undo", "seat" in seat() ? { colour: Number(you()) } : {}));
    await goOn();
  }),
);
$("hint").addEventListener("click", () => {
  hinted = state.ply;
  interrupt(goOn);
});
$("pause").addEventListener("click", () => {
  setPaused(!isPaused);
  interrupt(goOn);
});
$("you").addEventListener("change", () => {
  setPaused(false);
  draw();
  interrupt(async () => {
    receive(await order("look"));
    await goOn();
  });
});
for (const id of ["budget", "overlay"])
  $(id).addEventListener("change", () => {
    keep();
    interrupt(goOn);
  });

// The arrow keys play and the space bar fires, unless a list or a cell of the board uses these keys.
document.addEventListener("keydown", (event) => {
  const direction = keyDirection(event);
  if (!state || ![...state.directions, ...state.buttons].includes(direction)) return;
  event.preventDefault();
  if (!state.pace) return steer(direction);
  held = direction;
  if (isLive()) pressed = direction;
  if (!event.repeat && isLive() && (isPaused || !running)) interrupt(start);
});
document.addEventListener("keyup", (event) => {
  if (playedBy(event.key) === held) held = "";
});
window.addEventListener("blur", () => (held = pressed = ""));
listenToSwipes($("board"), (direction) => state?.directions.includes(direction) && steer(direction));

async function start() {
  setPaused(false);
  await goOn();
}

function steer(direction) {
  if (state.result) say("The game is over.");
  else if (!isMine()) say("It is the agent's turn.");
  else if (state.legal.includes(direction)) playMove(direction);
}

interrupt(async () => {
  state = await ask("api/state");
  fillControls();
  recall();
  receive(await order("look"));
  await goOn();
});
