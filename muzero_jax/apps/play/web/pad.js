// Moves that are directions: by four buttons, by the arrow keys, or by a swipe over the board.

const SIGNS = { left: "◀", up: "▲", right: "▶", down: "▼" };
const KEYS = { ArrowLeft: "left", ArrowUp: "up", ArrowRight: "right", ArrowDown: "down", " ": "fire" };
const SHORTEST_SWIPE = 24; // pixels of a swipe

// Buttons of illegal directions stay in place, disabled; `dress` adds the overlay to a button.
export function drawPad(state, isMine, play, dress) {
  const pad = document.getElementById("pad");
  pad.hidden = !state.directions.length;
  if (pad.children.length !== state.directions.length)
    pad.replaceChildren(
      ...state.directions.map((direction) => {
        const button = document.createElement("button");
        Object.assign(button, { type: "button", className: direction });
        button.setAttribute("aria-label", direction);
        button.dataset.move = direction;
        button.addEventListener("click", () => play(direction));
        return button;
      }),
    );
  for (const button of pad.children) {
    const { move } = button.dataset;
    button.textContent = SIGNS[move];
    button.disabled = !isMine || !state.legal.includes(move);
    dress(button, move);
  }
}

// The move of a key; undefined for other keys, and if a list or a cell uses the key.
export function keyDirection(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return undefined;
  if (event.target.closest?.('select, input, .cell[role="button"]')) return undefined;
  if (event.key === " " && event.target.closest?.("button:focus-visible")) return undefined;
  return playedBy(event.key);
}

export const playedBy = (key) => KEYS[key];

export function listenToSwipes(place, swiped) {
  let start = null;
  place.addEventListener("pointerdown", ({ clientX, clientY }) => (start = [clientX, clientY]));
  place.addEventListener("pointerup", ({ clientX, clientY }) => {
    if (!start) return;
    const [right, down] = [clientX - start[0], clientY - start[1]];
    start = null;
    if (Math.max(Math.abs(right), Math.abs(down)) < SHORTEST_SWIPE) return;
    swiped(Math.abs(right) > Math.abs(down) ? (right < 0 ? "left" : "right") : down < 0 ? "up" : "down");
  });
}
