// Gumbel MuZero's search without noise (Danihelka et al. 2022), as muzero_jax/search/policies.py and tree.py have it.

const TINY = 1.1754944e-38;
const LOWEST = -3.4028235e38;

const sum = (values) => values.reduce((total, value) => total + value, 0);
const argmax = (values) => values.reduce((best, value, i) => (value > values[best] ? i : best), 0);

function softmax(logits) {
  const top = Math.max(...logits);
  const weights = logits.map((logit) => Math.exp(logit - top));
  const total = sum(weights);
  return weights.map((weight) => weight / total);
}

// How often the action of each simulation was visited before: sequential halving (Karnin et al. 2013).
function halving(numConsidered, numSimulations) {
  if (numConsidered <= 1) return Array.from({ length: numSimulations }, (_, i) => i);
  const numPhases = Math.ceil(Math.log2(numConsidered));
  const sequence = [];
  for (let visits = 0; sequence.length < numSimulations; ) {
    const rounds = Math.max(1, Math.floor(numSimulations / (numPhases * numConsidered)));
    for (let i = 0; i < rounds; i++, visits++) sequence.push(...Array(numConsidered).fill(visits));
    numConsidered = Math.max(2, Math.floor(numConsidered / 2));
  }
  return sequence.slice(0, numSimulations);
}

const clip = (x, [low, high]) => Math.min(Math.max(x, low), high);

// A move's reward, and the range of the value after it, that keep reward + discount x value in range (bounded.py).
function inRange([low, high], reward, discount, bound) {
  const reach = Math.abs(discount) * bound;
  const kept = clip(reward, [low - reach, high + reach]);
  const ends = [low, high].map((end) => clip((end - kept) / (discount || 1), [-bound, bound]));
  return [kept, ends.sort((one, other) => one - other)];
}

// A node as the network judges it. `q` and `visits` are of its actions, for its own mover.
function makeNode(output, parent, action, { bound }) {
  const [prior, discount] = [[...output.prior.data], parent ? output.discount.data[0] : 0];
  const [reward, range] = parent ? inRange(parent.range, output.reward.data[0], discount, bound) : [0, [-bound, bound]];
  const value = clip(output.value.data[0], range);
  const [visits, q, children] = [0, 0, null].map((fill) => Array(prior.length).fill(fill));
  const arrival = { reward, discount, range, parent, action, embedding: output.embedding };
  return { prior, visits, q, children, raw: value, value, count: 1, ...arrival };
}

// Q, where an action never tried counts as the mixed value (equation 10 and appendix D).
function completedQ(node) {
  const prior = node.prior.map((p, a) => (node.visits[a] > 0 ? Math.max(p, TINY) : 0));
  const weighted = sum(prior.map((p, a) => p * node.q[a])) / Math.max(sum(prior), TINY);
  const total = sum(node.visits);
  const mixed = (node.raw + total * weighted) / (total + 1);
  return node.q.map((q, a) => (node.visits[a] > 0 ? q : mixed));
}

// sigma of the completed Q values (equation 8).
function scaledQ(node, { valueScale, maxvisitInit, rescaleValues }) {
  let q = completedQ(node);
  if (rescaleValues) {
    const [low, high] = [Math.min(...q), Math.max(...q)];
    q = q.map((x) => (x - low) / Math.max(high - low, 1e-8));
  }
  return q.map((x) => (maxvisitInit + Math.max(...node.visits)) * valueScale * x);
}

// Below the root the visits follow softmax(logits + sigma(q)) (section 5).
function actionBelow(node, sigma) {
  const q = scaledQ(node, sigma);
  const top = Math.max(...q.filter((_, a) => node.prior[a] > 0));
  const weights = node.prior.map((p, a) => p * Math.exp(Math.min(q[a] - top, 0)));
  const [scale, total] = [sum(weights), sum(node.visits)];
  return argmax(weights.map((weight, a) => weight / scale - node.visits[a] / (1 + total)));
}

// Adds a leaf's value to all nodes above it, for each one's own mover.
function backUp(leaf) {
  let outcome = leaf.value;
  for (let node = leaf; node.parent; node = node.parent) {
    const { parent, action, reward, discount } = node;
    outcome = reward + discount * outcome;
    parent.visits[action] += 1;
    parent.q[action] = reward + discount * node.value;
    parent.value = (parent.value * parent.count + outcome) / (parent.count + 1);
    parent.count += 1;
  }
}

// The move, its policy, the value for the mover and the root of the tree. `network` has `initial` and `recurrent`,
// `settings` are an agent's.
async function search(network, observation, legal, numSimulations, settings) {
  const { sigma } = settings;
  const root = makeNode(await network.initial(observation), null, null, settings);
  const all = root.prior.map((p) => Math.log(Math.max(p, TINY)));
  const top = Math.max(...all);
  const logits = all.map((logit, a) => (legal[a] ? logit - top : LOWEST));
  root.prior = softmax(logits);

  const choose = (visits) => {
    const [q, best] = [scaledQ(root, sigma), Math.max(...logits)];
    const score = (a) => Math.max(logits[a] - best + q[a], -1e9);
    return argmax(logits.map((_, a) => (legal[a] && root.visits[a] === visits ? score(a) : -Infinity)));
  };
  const most = Math.min(settings.considered[numSimulations], numSimulations, legal.filter(Boolean).length);
  for (const visits of halving(most, numSimulations)) {
    let [node, action] = [root, choose(visits)];
    while (node.children[action]) {
      node = node.children[action];
      action = actionBelow(node, sigma);
    }
    const leaf = makeNode(await network.recurrent(node.embedding, action), node, action, settings);
    node.children[action] = leaf;
    backUp(leaf);
  }
  const [q, completed] = [scaledQ(root, sigma), completedQ(root)];
  const policy = softmax(logits.map((logit, a) => (legal[a] ? logit + q[a] : LOWEST)));
  const value = settings.improvedValue ? sum(policy.map((p, a) => p * completed[a])) : root.value;
  return { action: choose(Math.max(...root.visits)), policy, value, root };
}
