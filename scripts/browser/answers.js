// The answers of `play.py --web` without a server: the network in onnxruntime-web, the search, one game. AGENT and
// RUNTIME come from files that the export wrote, because a page from a disk may fetch nothing.

const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

async function unzipped(base64) {
  const stream = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function loadNetwork() {
  const script = new Blob([await unzipped(RUNTIME.script)], { type: "text/javascript" });
  ort.env.wasm.numThreads = 1; // more would need headers that only a server sends
  ort.env.wasm.wasmPaths = { mjs: URL.createObjectURL(script) };
  ort.env.wasm.wasmBinary = await unzipped(RUNTIME.wasm);
  const initial = await ort.InferenceSession.create(bytesOf(AGENT.initial));
  const recurrent = await ort.InferenceSession.create(bytesOf(AGENT.recurrent));
  return {
    initial: (view) => initial.run({ observation: new ort.Tensor("float32", view, AGENT.observationShape) }),
    recurrent: (parent, action) =>
      recurrent.run({ parent, action: new ort.Tensor("int32", Int32Array.of(action), [1]) }),
  };
}

const game = makeGame(AGENT);
const network = loadNetwork();
network.catch(() => {}); // whoever asks it says so
let played = [game.start()]; // the positions of this game; the last is shown
let remembered = {}; // the last search, and of what

const think = async (of, numSimulations) =>
  search(await network, game.observe(of), game.legal(of), numSimulations, AGENT);

const isOver = (position) => position.winner !== undefined;
const textOf = (action) => AGENT.moves[action];

function actionsOf(position) {
  const legal = game.legal(position);
  return isOver(position) ? [] : [...legal.keys()].filter((action) => legal[action]);
}

const byText = (actions, numbers) => Object.fromEntries(actions.map((a) => [textOf(a), numbers[a]]));
const OVER = "The game is over: take a move back or start a new game.";

// As `board_state` of muzero_jax/play/web_session.py; AGENT.state is that of the opening.
function stateOf(position) {
  const { names, squares } = AGENT.state;
  const width = squares[0].length;
  const result = position.winner === -1 ? "a draw" : `${names[position.winner]} wins`;
  const moves = position.moves.map(textOf);
  return {
    ...AGENT.state,
    squares: squares.map((row, r) => row.map((_, c) => ".XO"[position.cells[r * width + c]])),
    to_move: position.mover,
    legal: actionsOf(position).map(textOf),
    moves,
    ply: moves.length,
    swapped: moves.at(-1) === "swap-pieces",
    result: isOver(position) ? result : null,
    winning_cells: position.won.map((cell) => [Math.floor(cell / width), cell % width]),
  };
}

async function analysed(position, numSimulations) {
  const isSame = remembered.position === position && remembered.numSimulations === numSimulations;
  if (isOver(position)) throw new Error(OVER);
  if (!isSame) remembered = { position, numSimulations, found: await think(position, numSimulations) };
  return remembered.found;
}

// The moves that search tried, its choice first, then the most visited; with each the line that it expects.
function linesOf(position, { action, root }) {
  const tried = actionsOf(position).filter((a) => root.visits[a] > 0);
  const rank = (a) => (a === action ? Infinity : root.visits[a] + root.prior[a]);
  const best = tried.sort((a, b) => rank(b) - rank(a)).slice(0, 4);
  return best.map((a) => ({ moves: lineOf(position, root, a), visits: root.visits[a], value: root.q[a] }));
}

function lineOf(position, node, action) {
  const line = [];
  while (line.length < 6 && action >= 0 && actionsOf(position).includes(action)) {
    line.push(textOf(action));
    [position, node] = [game.play(position, action), node.children[action]];
    action = sum(node.visits) > 0 ? argmax(node.visits.map((count, a) => count + node.prior[a] / 2)) : -1;
  }
  return line;
}

const ORDERS = {
  state() {},
  play({ move }) {
    const action = AGENT.moves.indexOf(move);
    if (isOver(played.at(-1))) throw new Error(OVER);
    if (!actionsOf(played.at(-1)).includes(action)) throw new Error(`The rules do not allow ${move} here.`);
    played.push(game.play(played.at(-1), action));
  },
  async "agent-move"({ num_simulations }) {
    const before = played.at(-1);
    played.push(game.play(before, (await analysed(before, num_simulations)).action));
  },
  // Back to the last choice of a colour; one move where it is undefined.
  undo({ colour }) {
    const last = played.slice(0, -1).findLastIndex(({ mover }) => colour === undefined || mover === colour);
    if (last < 0) throw new Error("There is nothing to take back.");
    played = played.slice(0, last + 1);
  },
  new() {
    played = [game.start()];
  },
  async analysis({ num_simulations }) {
    const position = played.at(-1);
    const found = await analysed(position, num_simulations);
    const legal = actionsOf(position);
    return {
      ply: position.moves.length,
      colour: position.mover,
      move: textOf(found.action),
      why: AGENT.why,
      policy: byText(legal, found.policy),
      prior: byText(legal, found.root.prior),
      values: byText(legal.filter((a) => found.root.visits[a] > 0), found.root.q),
      value: found.value,
      prior_value: found.root.raw,
      num_simulations,
      lines: linesOf(position, found),
    };
  },
};

// What app.js asks in place of a server.
globalThis.answer = async (path, fields) => (await ORDERS[path.replace("api/", "")](fields)) ?? stateOf(played.at(-1));
