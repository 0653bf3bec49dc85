// The page: the network in onnxruntime-web, the board, and whose turn it is. AGENT and RUNTIME come from files that the
// export wrote, because a page from a disk may fetch nothing.

const at = (identity) => document.getElementById(identity);
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
let position = game.start();
let round = 0; // counts games, so that an answer to an older one is not played

const think = async (of, numSimulations) =>
  search(await network, game.observe(of), game.legal(of), numSimulations, AGENT);

function centre(cell) {
  const [row, column] = [Math.floor(cell / game.columns), cell % game.columns];
  return AGENT.game === "hex" ? [column + row / 2, row * 0.87] : [column, row];
}

function drawAction(action, text) {
  const button = document.createElement("button");
  button.textContent = text;
  button.disabled = !isYours() || !game.legal(position)[action];
  button.onclick = () => move(action);
  return button;
}

function drawCell(cell) {
  const [x, y] = centre(cell);
  const button = drawAction(game.actionOf(cell), "");
  const [row, column, stone] = [Math.floor(cell / game.columns), cell % game.columns, position.cells[cell]];
  button.className = `cell stone-${stone}`;
  button.style.cssText = `left: calc(${x} * var(--cell)); top: calc(${y} * var(--cell))`;
  button.dataset.cell = cell;
  button.ariaLabel = `row ${row + 1}, column ${column + 1}: ${["empty", ...game.sides][stone]}`;
  return button;
}

const isOver = () => position.winner !== undefined;
const isYours = () => !isOver() && String(position.mover) === at("you").value;

function draw() {
  at("board").replaceChildren(...position.cells.map((_, cell) => drawCell(cell)));
  at("others").replaceChildren(...Object.entries(game.others).map(([name, action]) => drawAction(action, name)));
  const turn = `${game.sides[position.mover]} to move: ${isYours() ? "your turn" : "the agent thinks"}`;
  const end = position.winner === -1 ? "A draw" : `${game.sides[position.winner]} wins`;
  at("status").textContent = isOver() ? end : turn;
}

function move(action) {
  position = game.play(position, action);
  draw();
  answer();
}

// Lets the agent move if it is its turn.
async function answer() {
  if (isOver() || isYours()) return;
  const asked = round;
  const found = await think(position, Number(at("budget").value));
  if (asked !== round) return;
  at("value").textContent = `The agent expects ${found.value.toFixed(2)} for itself, between -1 and 1.`;
  move(found.action);
}

function restart() {
  round += 1;
  position = game.start();
  at("value").textContent = "";
  draw();
  answer();
}

at("title").textContent = AGENT.title;
at("goal").textContent = game.goal;
at("board").classList.add(AGENT.game);
at("board").style.cssText = `--columns: ${game.columns}; --rows: ${game.rows}`;
at("you").replaceChildren(...game.sides.map((side, i) => new Option(side, i)));
at("budget").replaceChildren(...Object.keys(AGENT.considered).map((budget) => new Option(budget, budget)));
at("budget").value = AGENT.numSimulations;
at("new").onclick = at("you").onchange = restart;
restart();
network.catch((error) => (at("status").textContent = `The network did not load: ${error.message}`));
