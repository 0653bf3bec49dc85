// Requests to the server, whose errors become exceptions; and choices that the browser stores for a game.

export async function ask(path, fields) {
  const options = fields && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(fields),
  };
  const answer = await fetch(path, options).catch(() => null);
  if (!answer) throw new Error("The server does not answer: is it still running?");
  const result = await answer.json().catch(() => ({ error: `The server answered ${answer.status}.` }));
  if (!answer.ok) throw new Error(sentence(result.error));
  return result;
}

export const capital = (text) => text[0].toUpperCase() + text.slice(1);
const sentence = (text) => capital(text) + (/[.!?]$/.test(text) ? "" : ".");

// A browser may forbid storage: then choices are not remembered.
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
