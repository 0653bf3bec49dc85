// The page: asks the server, which alone knows the rules and draws the board, and shows what it says.
// Whose turn is the agent's is decided here: `you` is "0" or "1" (a colour), "both" or "none" (watching).

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
let chosen = null; // the cell that a move of two clicks starts from
let choices = []; // moves between the same two cells, of which one is to be picked
let hinted = -1; // the ply for which a hint was asked
let isBusy = false;
let isPlaying = false;
let isPaused = false;
let mistake = ""; // in a sentence
let held = ""; // the move of the key that is held, on a screen that does not wait for a person
let generation = 0; // a new game, an undo or another side makes running turns stop

const you = () => $("you").value;
const isAgents = (colour) => you() === "none" || (you() !== "both" && Number(you()) !== colour);
const isMine = () => !state.result && !isAgents(state.to_move);
const overlay = () => $("overlay").value || (hinted === state?.ply ? "policy" : "");
const thoughts = () => (overlay() && analysis?.ply === state.ply ? analysis : null);

// --- turns -----------------------------------------------------------------------------------------------------------

const seat = () => (["0", "1"].includes(you()) ? { seat: Number(you()) } : {});
const order = (name, fields) => ask(`api/${name}`, { ...fields, ...seat() });
const search = (name, fields) => order(name, { num_simulations: Number($("budget").value), ply: state.ply, ...fields });

// How long a move of the agent's stands before the next; a turn of several moves must be seen, and its dice.
function pause() {
  if (state.pace) return state.pace;
  if (state.num_players === 1) return PAUSE_OF_ONE;
  return state.in_turns ? (you() === "none" ? PAUSE : 0) : PAUSE_IN_A_TURN;
}

// One order at a time; its mistake becomes a sentence on the page, and the board what the server has.
async function attempt(action) {
  if (isBusy) return;
  isBusy = true;
  document.body.dataset.busy = true;
  say("");
  try {
    await action();
  } catch (error) {
    state = await order("look").catch(() => state);
    chosen = analysis = null;
    say(error.message);
  } finally {
    isBusy = false;
    draw();
  }
}

function receive(newState) {
  [state, analysis, chosen, choices] = [newState, null, null, []];
  draw();
}

// A person need not wait for the overlay, but a second click before the first is answered is none.
async function playMove(move) {
  if (isLive() && isBusy && !isPaused) return hold(move);
  if (isPlaying) return;
  isPlaying = true;
  const { ply } = state;
  await interrupt(async () => {
    receive(await order("play", { move, ply }).finally(() => (isPlaying = false)));
    await goOn();
  });
}

// On a screen that goes on, a button or a swipe is a key that is held for two moves.
function hold(move) {
  held = move;
  setTimeout(() => held === move && (held = ""), 2 * state.pace);
}

// The agent's turns, until a person is to move or the game is over; then the overlay.
async function goOn() {
  const mine = ++generation;
  while (!state.result && isAgents(state.to_move) && !isPaused) {
    if (overlay() && you() === "none") await analyse();
    draw("The agent is thinking…");
    receive(await paced(search("agent-move")));
    if (mine !== generation) return;
  }
  while (isLive() && !isPaused) {
    receive(await paced(order("play", { move: held || state.legal.at(-1), ply: state.ply })));
    if (mine !== generation) return;
  }
  if (overlay() && !state.result) await analyse();
}

// Whether the game goes on while a person plays it.
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

// Orders that stop what is running: they wait for the answer under way, then begin.
async function interrupt(action) {
  generation++;
  while (isBusy) await new Promise((done) => setTimeout(done, 20));
  await attempt(action);
}

// A click on a cell of the board, which has a name and perhaps a move.
function onCell({ cell, move }) {
  if (!state.result && isAgents(state.to_move)) {
    say("It is the agent's turn.");
    if (!isBusy && !isPaused) interrupt(goOn); // its order failed, or another page has played meanwhile
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
  if (!$("you").options.length) return; // no answer yet, so no controls
  Object.assign(document.body.dataset, { board: state.board, busy: isBusy, players: state.num_players });
  document.body.style.setProperty("--first", `var(--${state.inks[0]})`);
  document.body.style.setProperty("--second", `var(--${state.inks[1]})`);
  const targets = chosen === null ? [] : movesFrom(chosen).map((move) => state.paths[move][1]);
  board.show(thoughts()?.svg ?? state.svg, chosen, targets);
  drawStatus(status);
  drawMessage();
  $("undo").disabled = !state.ply;
  $("pause").hidden = you() !== "none" && !state.pace;
  $("pause").textContent = isPaused ? "Continue" : "Pause";
  $("hint").disabled = Boolean(state.result) || you() === "none" || Boolean(isLive() && !isPaused);
  drawMoves();
  drawButtons();
  drawThoughts(thoughts());
}

// The result, large, or whose turn it is, with that side's colour; in a game for one the points so far.
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
  const mustPass = legal.length === 1 && legal[0] === "pass" && isMine();
  return passed + (mustPass ? "No move is possible: press Pass." : "");
}

// A number for each move, or for each turn where a turn has several.
function drawMoves() {
  const turns = [];
  state.moves.forEach((move, index) => {
    const isSameTurn = !state.in_turns && index > 0 && state.movers[index] === state.movers[index - 1];
    if (isSameTurn) turns.at(-1).push(move);
    else turns.push([move]);
  });
  $("moves").replaceChildren(...turns.map((moves) => make("li", moves.join(" "))));
}

// Buttons for moves that no click names. Beside the board: a pass, a swap, the pieces that a pawn may become.
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
  const shown = isMine() ? moves : [];
  if (state.pace && $(place).children.length === shown.length) return; // a click must find the button that it began on
  $(place).replaceChildren(
    ...shown.map((move) => {
      const button = make("button", "", { type: "button", onclick: press });
      button.dataset.move = move;
      mark(button, move, nameOf(move));
      return button;
    }),
  );
}

// A button with what the overlay says of its move.
function mark(button, move, name) {
  const note = choices.length ? "" : thoughts()?.notes[move];
  button.textContent = name + (note ? ` (${note})` : "");
  button.classList.toggle("choice", thoughts()?.move === move);
}

// The value with its bar, the move, the lines, and why the move need not have the largest share.
function drawThoughts(shown) {
  $("thoughts").hidden = !shown;
  if (!shown) return;
  $("bar-first").style.width = `${(100 * shown.bar.first).toFixed(1)}%`;
  $("bar").title = shown.bar.of;
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
  if (state.pace) $("keys").textContent = "The arrow keys move, the space bar fires; any of them starts the game.";
  document.title = `${$("title").textContent} – muzero_jax`;
  const [first, second] = state.names;
  const ofTwo = [["0", `${first} (first)`], ["1", second], ["both", "both sides"], ["none", "neither: watch"]];
  const ofOne = [["0", "yourself"], ["none", "not: watch the agent"]];
  const sides = state.num_players === 1 ? ofOne : ofTwo;
  $("you").replaceChildren(...sides.map(([value, text]) => make("option", text, { value })));
  const isUsual = (budget) => budget === state.num_simulations;
  $("budget").replaceChildren(...state.budgets.map((n) => make("option", n, { value: n, selected: isUsual(n) })));
}

// Another --num-simulations starts afresh.
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
  isPaused = Boolean(isLive()) || kept?.isPaused === true; // a person starts a screen by a key
}

$("new").addEventListener("click", () =>
  interrupt(async () => {
    setPaused(false);
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

// The arrow keys play, and the space bar fires, unless a list or a cell of the board has use for them.
document.addEventListener("keydown", (event) => {
  const direction = keyDirection(event);
  if (!state || ![...state.directions, ...state.buttons].includes(direction)) return;
  event.preventDefault();
  if (!state.pace) return steer(direction);
  held = direction;
  if (!event.repeat && isLive() && (isPaused || !isBusy)) interrupt(start);
});
document.addEventListener("keyup", (event) => {
  if (playedBy(event.key) === held) held = "";
});
window.addEventListener("blur", () => (held = ""));
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

attempt(async () => {
  state = await ask("api/state");
  fillControls();
  recall();
  receive(await order("look"));
  await goOn();
});
