// The rules of the two games. A position: cells (0 empty, 1 and 2 the sides' stones), whose turn it is (0 or 1), the
// moves made, the winner (undefined, 0, 1, or -1 for a draw). `play` returns a new position.

const DIRECTIONS = [[0, 1], [1, 0], [1, 1], [1, -1]];
const BESIDE = [[0, -1], [1, -1], [1, 0], [0, 1], [-1, 1], [-1, 0]]; // Hex: the six neighbours

const onBoard = (row, column, rows, columns) => row >= 0 && row < rows && column >= 0 && column < columns;

// The mover's view [row, column, plane] that the network reads; `more` are planes that are the same everywhere.
function observation(position, more) {
  const planes = (cell) => [cell === position.mover + 1, cell === 2 - position.mover, ...more];
  return Float32Array.from(position.cells.flatMap(planes), Number);
}

const start = (numCells) => ({ cells: Array(numCells).fill(0), mover: 0, moves: [], winner: undefined });

function hex(size) {
  const swap = size * size;
  const mirrored = (cell) => (cell % size) * size + Math.floor(cell / size);

  // Whether the chain that `cell` belongs to joins the edges of its side: 0 top and bottom, 1 left and right.
  function joins(cells, cell, side) {
    const chain = [cell];
    const seen = new Set(chain);
    for (const at of chain) {
      const [row, column] = [Math.floor(at / size), at % size];
      for (const [down, right] of BESIDE) {
        const next = (row + down) * size + column + right;
        const isOwn = onBoard(row + down, column + right, size, size) && cells[next] === side + 1;
        if (isOwn && !seen.has(next)) chain.push(next), seen.add(next);
      }
    }
    const lines = chain.map((at) => (side === 0 ? Math.floor(at / size) : at % size));
    return lines.includes(0) && lines.includes(size - 1);
  }

  function play(position, action) {
    const { mover, moves } = position;
    const cells = [...position.cells];
    const cell = action === swap ? mirrored(moves[0]) : action;
    if (action === swap) cells[moves[0]] = 0;
    cells[cell] = mover + 1;
    const winner = joins(cells, cell, mover) ? mover : undefined;
    return { cells, mover: 1 - mover, moves: [...moves, action], winner };
  }

  return {
    start: () => start(swap),
    legal: (position) => [...position.cells.map((cell) => cell === 0), position.moves.length === 1],
    observe: (position) => observation(position, [position.mover === 1, position.moves.length === 1]),
    play,
    actionOf: (cell) => cell,
    ...{ rows: size, columns: size, others: { Swap: swap }, sides: ["Black", "White"] },
    goal: "Black joins top and bottom, white joins left and right. White's first move may be a swap.",
  };
}

function connectFour() {
  const [rows, columns] = [6, 7];

  function hasFour(cells, cell, stone) {
    const [row, column] = [Math.floor(cell / columns), cell % columns];
    const isOwn = (r, c) => onBoard(r, c, rows, columns) && cells[r * columns + c] === stone;
    const reach = (down, right, length = 0) =>
      isOwn(row + (length + 1) * down, column + (length + 1) * right) ? reach(down, right, length + 1) : length;
    return DIRECTIONS.some(([down, right]) => reach(down, right) + reach(-down, -right) >= 3);
  }

  function play(position, column) {
    const { mover, moves } = position;
    const cells = [...position.cells];
    let cell = (rows - 1) * columns + column;
    while (cells[cell]) cell -= columns;
    cells[cell] = mover + 1;
    const winner = hasFour(cells, cell, mover + 1) ? mover : cells.every(Boolean) ? -1 : undefined;
    return { cells, mover: 1 - mover, moves: [...moves, column], winner };
  }

  return {
    start: () => start(rows * columns),
    legal: (position) => position.cells.slice(0, columns).map((cell) => cell === 0),
    observe: (position) => observation(position, []),
    play,
    actionOf: (cell) => cell % columns,
    ...{ rows, columns, others: {}, sides: ["Red", "Yellow"] },
    goal: "Four in a line win: along a row, a column or a diagonal.",
  };
}

const makeGame = (agent) => (agent.game === "hex" ? hex(agent.size) : connectFour());
