"""Adam with decoupled weight decay, a clipped gradient and a rate that rises and falls: all that the training needs."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Tree = Any


class State(NamedTuple):
    """Running means of the gradient and of its square."""

    step: jax.Array
    first: Tree
    second: Tree


def start(parameters: Tree) -> State:
    """Nothing has been seen yet."""
    return State(
        jnp.zeros((), jnp.int32),
        jax.tree.map(jnp.zeros_like, parameters),
        jax.tree.map(jnp.zeros_like, parameters),
    )


def update(
    gradient: Tree,
    state: State,
    parameters: Tree,
    rate: jax.Array,
    *,
    decay: float = 0.01,
    clip: float = 1.0,
    betas: tuple[float, float] = (0.9, 0.999),
) -> tuple[Tree, State]:
    """Parameters and state after one step."""
    size = jnp.sqrt(sum(jnp.sum(one.astype(jnp.float32) ** 2) for one in jax.tree.leaves(gradient)))
    factor = jnp.minimum(1.0, clip / (size + 1e-9))
    step = state.step + 1
    first = jax.tree.map(lambda m, g: betas[0] * m + (1 - betas[0]) * g * factor, state.first, gradient)
    second = jax.tree.map(
        lambda v, g: betas[1] * v + (1 - betas[1]) * (g * factor) ** 2, state.second, gradient
    )
    scale1, scale2 = 1 - betas[0] ** step, 1 - betas[1] ** step

    def moved(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        change = (m / scale1) / (jnp.sqrt(v / scale2) + 1e-8)
        return p - rate * (change + (decay * p if p.ndim > 1 else 0.0))

    return jax.tree.map(moved, parameters, first, second), State(step, first, second)


def rate_at(share: float, top: float, *, rise: float = 0.06, least: float = 0.02) -> float:
    """The rate when `share` of the training is done: a short rise, then down in a straight line."""
    if share < rise:
        return top * max(share / rise, least)
    return top * max(least, (1 - share) / (1 - rise))
