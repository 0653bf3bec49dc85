// What was chosen for a game, so that a refresh changes nothing. A browser may keep nothing: then it starts afresh.

export function remember(name, choices) {
  try {
    localStorage.setItem(`muzero_jax: ${name}`, JSON.stringify(choices));
  } catch {}
}

export function recalled(name) {
  try {
    return JSON.parse(localStorage.getItem(`muzero_jax: ${name}`));
  } catch {
    return null;
  }
}
