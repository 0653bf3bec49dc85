// The rules of the two games. A position: cells (0 empty, 1 and 2 the sides' stones), whose turn it is (0 or 1), the
// moves made, the winner (undefined, 0, 1, or -1 for a draw) and the cells that won. `play` returns a new position.

const DIRECTIONS = [[0, 1], [1, 0], [1, 1], [1, -1]];
const BESIDE = [[0, -1], [1, -1], [1, 0], [0, 1], [-1, 1], [-1, 0]]; // Hex: the six neighbours

const onBoard = (row, column, rows, columns) => row >= 0 && row < rows && column >= 0 && column < columns;

// The mover's view [row, column, plane] that the network reads; `more` are planes that are the same everywhere.
function observation(position, more) {
  const planes = (cell) => [cell === position.mover + 1, cell === 2 - position.mover, ...more];
  return Float32Array.from(position.cells.flatMap(planes), Number);
}

const start = (numCells) => ({ cells: Array(numCells).fill(0), mover: 0, moves: [], winner: undefined, won: [] });

// The position after the mover's stone was put there; `won` are the cells by which that wins.
function after({ mover, moves }, action, cells, won) {
  const winner = won.length ? mover : cells.every(Boolean) ? -1 : undefined;
  return { cells, mover: 1 - mover, moves: [...moves, action], winner, won };
}

function hex(size) {
  const swap = size * size;
  const mirrored = (cell) => (cell % size) * size + Math.floor(cell / size);

  // The chain that `cell` belongs to if it joins the edges of its side: 0 top and bottom, 1 left and right.
  function joining(cells, cell, side) {
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
    return lines.includes(0) && lines.includes(size - 1) ? chain : [];
  }

  function play(position, action) {
    const { mover, moves } = position;
    const cells = [...position.cells];
    const cell = action === swap ? mirrored(moves[0]) : action;
    if (action === swap) cells[moves[0]] = 0;
    cells[cell] = mover + 1;
    return after(position, action, cells, joining(cells, cell, mover));
  }

  return {
    start: () => start(swap),
    legal: (position) => [...position.cells.map((cell) => cell === 0), position.moves.length === 1],
    observe: (position) => observation(position, [position.mover === 1, position.moves.length === 1]),
    play,
  };
}

function connectFour() {
  const [rows, columns] = [6, 7];

  // The cells of all lines of four or more through `cell`.
  function four(cells, cell, stone) {
    const reach = (at, down, right) => {
      const [row, column] = [Math.floor(at / columns) + down, (at % columns) + right];
      const next = row * columns + column;
      return onBoard(row, column, rows, columns) && cells[next] === stone ? [next, ...reach(next, down, right)] : [];
    };
    const lines = DIRECTIONS.map(([down, right]) => [cell, ...reach(cell, down, right), ...reach(cell, -down, -right)]);
    return lines.filter((line) => line.length >= 4).flat();
  }

  function play(position, column) {
    const cells = [...position.cells];
    let cell = (rows - 1) * columns + column;
    while (cells[cell]) cell -= columns;
    cells[cell] = position.mover + 1;
    return after(position, column, cells, four(cells, cell, position.mover + 1));
  }

  return {
    start: () => start(rows * columns),
    legal: (position) => position.cells.slice(0, columns).map((cell) => cell === 0),
    observe: (position) => observation(position, []),
    play,
  };
}

const makeGame = (agent) => (agent.game === "hex" ? hex(agent.size) : connectFour());
