"""NUTS on the density of a fit: from the rows to a Posterior."""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from toydepth.bayes.density import Data, Shape, log_density, prepare, unpack
from toydepth.bayes.posterior import Posterior
from toydepth.bayes.quality import judge_prior, measure_quality, moved_ends
from toydepth.errors import InputError
from toydepth.fit.checks import check_count, is_number, refuse
from toydepth.fit.law.law_fit import LawFit

_HALF_NORMAL_STD = math.sqrt(1 - 2 / math.pi)  # of a half-normal of scale 1


def sample_law(
    fit: LawFit,
    *,
    num_draws: int = 1000,
    num_chains: int = 4,
    num_warmup: int = 500,
    seed: int = 0,
    prior_scale: float = 3.0,
) -> Posterior:
    """Samples the posterior of a law by NUTS, in float64, on the CPU.

    The likelihood is the one that the fit's objective stands for, with r of ln L, or of L where that is *linear*:

        log, linear   prod_i [N(r_i; 0, sigma^2)]^w_i
        student       prod_i [t_nu(r_i / sigma) / sigma]^w_i
        with groups   r_i = u_g + noise, u_g ~ N(0, group_std^2): an intercept for each group, integrated out exactly

    Priors, independent of units: each of theta (log terms at the geometric mean of their variables, free exponents,
    ln L0) normal of standard deviation prior_scale, around exponents of 0.5 and an even split of the median loss into
    terms and L0; ln sigma normal, of the same scale, around 1 % of the loss; group_std half-normal of scale 1 (of
    ln L; in units of the median loss where L is fitted).

    NUTS moves in z: `straight` of theta is its value at the minimum + C z, C C^T the covariance of the fit there. The
    Jacobian is constant, and drops out.

    *Huber* is refused. exp(-rho / s) can be made a density, but with the usual delta, far below the noise, it is
    Laplace's, and where the noise is normal its posterior is too narrow by a factor 1.25, the root of pi / 2.
    (Student's t of 4 degrees: by 1.06, and right where tails are as heavy.)

    The prior decides a parameter where its posterior is more than half as wide as its prior, or where half the prior's
    scale would move an end of its interval by more than a tenth of the width (draws reweighted, arXiv 2107.14054).

    Args:
        fit: its rows, weights, groups, objective and confidence.
        num_draws: kept of each chain; num_warmup steps come before.
        num_chains: run side by side, from scattered starts.
        seed: of everything random.
        prior_scale: of the priors, above.

    Returns:
        Posterior: draws (num_chains num_draws, p), intervals, report, to_dict.

    Raises:
        InputError: without numpyro; for a fit by Huber's objective, Student's t with groups, fewer than 3 groups, or a
            table without noise; for an option out of range.

    Example:
        >>> sample_law(fit, seed=1).intervals["alpha_ell"]  # doctest: +SKIP
        (0.96, 1.79)

    Source: NUTS, arXiv 1111.4246, by numpyro, arXiv 1912.11554.
    """
    check_count("num_draws", num_draws, 100)
    check_count("num_chains", num_chains, 2)
    check_count("num_warmup", num_warmup, 100)
    check_count("seed", seed, 0)
    if not is_number(prior_scale) or not (math.isfinite(prior_scale) and prior_scale > 0):
        raise refuse("prior_scale", "a positive number", prior_scale, "Leave it out for 3.")
    shape, data = prepare(fit, float(prior_scale))
    try:
        import numpyro  # noqa: F401  # pyright: ignore[reportMissingImports, reportUnusedImport]
    except ImportError:
        raise InputError("A posterior needs numpyro, which is not installed. pip install 'toydepth[bayes]'.") from None
    steps = (int(num_draws), int(num_chains), int(num_warmup))
    # Small programs in float64: slow on an accelerator, and the same everywhere on the CPU. Neither outlives the block.
    with jax.enable_x64(True), _on_cpu():
        number = np.random.SeedSequence(int(seed)).generate_state(1)[0]
        key = jax.random.key(int(number), impl="threefry2x32")
        found, diverging = _run(Data(*(jnp.asarray(part) for part in data)), key, shape, steps)
        draws = tuple(np.asarray(part) for part in found)
        divergences = int(np.asarray(diverging).sum())
    return _summarise(fit, data, draws, divergences, float(prior_scale), int(num_warmup), int(seed))


@partial(jax.jit, static_argnames=("shape", "steps"))
def _run(data: Data, key: jax.Array, shape: Shape, steps: tuple[int, int, int]) -> tuple[Any, Any]:
    """Draws (theta, ln sigma, ln group_std), each (chains, draws, ...), and whether they diverged.

    One program for all tables of one shape.
    """
    from numpyro.infer import MCMC, NUTS  # pyright: ignore[reportMissingImports]

    num_draws, num_chains, num_warmup = steps
    size = data.centre.shape[0] + 1 + bool(shape.num_groups)
    scatter, rest = jax.random.split(key)
    starts = jax.random.uniform(scatter, (num_chains, size), minval=-2.0, maxval=2.0)
    # Small steps: at 0.9 a few of 4000 draws still diverge in the tails.
    kernel = NUTS(potential_fn=lambda x: -log_density(x, data, shape), dense_mass=True, target_accept_prob=0.97)
    chains = MCMC(
        kernel,
        num_warmup=num_warmup,
        num_samples=num_draws,
        num_chains=num_chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    chains.run(rest, init_params=starts, extra_fields=("diverging",))
    found = jax.vmap(jax.vmap(lambda x: unpack(x, data)))(chains.get_samples(group_by_chain=True))
    return found, chains.get_extra_fields(group_by_chain=True)["diverging"]


def _on_cpu() -> Any:
    try:
        return jax.default_device(jax.local_devices(backend="cpu")[0])
    except RuntimeError:  # a process that was told to know accelerators only
        return nullcontext()


def _summarise(
    fit: LawFit,
    data: Data,
    draws: tuple[np.ndarray, ...],
    divergences: int,
    prior_scale: float,
    num_warmup: int,
    seed: int,
) -> Posterior:
    grouped = fit.estimate.groups is not None
    names = [*fit.law.parameters, "sigma", *(["group_std"] if grouped else [])]
    theta, log_sigma, log_group_std = draws
    matrix, shift = fit.estimate.problem.model.to_natural()
    natural = theta @ matrix.T + shift
    columns = np.concatenate([natural, log_sigma[..., None]], axis=-1)
    prior_stds = prior_scale * np.append(np.sqrt((matrix**2).sum(axis=1)), 1.0)
    # How much less likely a prior of half the scale makes each draw.
    off = ((theta - data.prior_mean) ** 2).sum(axis=-1) + (log_sigma - data.prior_log_sigma) ** 2
    log_weights = -1.5 * off / prior_scale**2
    if grouped:
        group_std = np.exp(log_group_std)
        columns = np.concatenate([columns, group_std[..., None]], axis=-1)
        prior_stds = np.append(prior_stds, _HALF_NORMAL_STD * data.group_scale)
        log_weights = log_weights - 1.5 * (group_std / data.group_scale) ** 2
    flat = columns.reshape(-1, len(names))
    ratios = flat.std(axis=0) / prior_stds
    # An exponent that is known does not make its coefficient so: the term itself must be.
    terms = len(fit.law.terms)
    ratios[:terms] = np.maximum(ratios[:terms], theta[..., :terms].reshape(-1, terms).std(axis=0) / prior_scale)
    moved = moved_ends(flat, log_weights.ravel(), fit.confidence)
    quality = [measure_quality(columns[..., i]) for i in range(len(names))]
    judged = {name: judge_prior(ratio, part) for name, ratio, part in zip(names, ratios, moved, strict=True)}
    return Posterior(
        fit=fit,
        draws=natural.reshape(-1, natural.shape[-1]),
        sigma=np.exp(log_sigma).ravel(),
        group_std=np.exp(log_group_std).ravel() if grouped else None,
        r_hat={name: one[0] for name, one in zip(names, quality, strict=True)},
        effective_sizes={name: one[1] for name, one in zip(names, quality, strict=True)},
        divergences=divergences,
        prior_ratios=dict(zip(names, ratios.tolist(), strict=True)),
        prior_decides={name: why for name, why in judged.items() if why},
        prior_scale=prior_scale,
        num_chains=len(theta),
        num_warmup=num_warmup,
        seed=seed,
    )
