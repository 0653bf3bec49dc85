"""Targets in plain loops, from the definitions: the lambda-return as a mixture of m-step returns, without recursion."""

import numpy as np


def n_step_return(reward, discount, value, explored, start, n):
    """G of frame `start` over n moves, or over fewer if a random move comes before; arrays are 1-D."""
    total, sign_and_gamma, frame = 0.0, 1.0, start
    while frame < start + n and not explored[frame]:
        total += sign_and_gamma * reward[frame]
        sign_and_gamma *= discount[frame]
        frame += 1
    return total + sign_and_gamma * value[frame]


def lambda_return(reward, discount, value, explored, start, n, td_lambda):
    """(1 - lambda) sum_{m < n} lambda^{m-1} G^{(m)} + lambda^{n-1} G^{(n)} (Sutton & Barto 2018, equation 12.3)."""
    returns = [n_step_return(reward, discount, value, explored, start, m) for m in range(1, n + 1)]
    mixture = (1 - td_lambda) * sum(td_lambda**i * g for i, g in enumerate(returns[:-1]))
    return mixture + td_lambda ** (n - 1) * returns[-1]


def make(window, *, unroll_steps, td_steps, td_lambda):
    """reward [N, K], value [N, K+1], policy_mask [N, K+1] of a window with leaves [N, L]."""
    num_windows = len(window.reward)
    reward = np.zeros((num_windows, unroll_steps))
    value = np.zeros((num_windows, unroll_steps + 1))
    policy_mask = np.zeros((num_windows, unroll_steps + 1))
    for i in range(num_windows):
        series = [np.asarray(x)[i] for x in (window.reward, window.discount, window.search_value, window.explored)]
        for k in range(unroll_steps + 1):
            value[i, k] = lambda_return(*series, k, td_steps, td_lambda)
            policy_mask[i, k] = 1
            if k < unroll_steps:
                reward[i, k] = window.reward[i, k]
            if window.discount[i, k] == 0:
                break
    return reward, value, policy_mask


def returns_by_player(player, player_reward, gamma):
    """Monte-Carlo return of each move of one whole game, from the scores of both players: no sign, no discount.

    `player` [T] says who moves, `player_reward` [T, 2] what each player gets for the move.
    """
    moves = range(len(player))
    return [sum(gamma ** (t - s) * player_reward[t][player[s]] for t in moves if t >= s) for s in moves]
