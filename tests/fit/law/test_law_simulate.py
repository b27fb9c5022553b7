"""Simulated tables: closed forms, the spread of the noise, and that fits of them get back the law they came from."""

import numpy as np
import pandas as pd
import pytest

from toydepth.errors import InputError
from toydepth.fit.law import Law, LawFit, Term, fit_law
from toydepth.fit.law.saved import SavedLaw
from toydepth.fit.law.simulate import simulate_law

NAMES = ("m", "ell", "D", "tau")
MIDDLES = {"m": 512.0, "ell": 12.0, "D": 1e10, "tau": 1e4}


@pytest.fixture
def law():
    form = Law("two", (Term("m"), Term("ell")))
    values = {"c_m": 40.0, "c_ell": 3.0, "alpha_m": 1.0, "alpha_ell": 0.7, "L0": 1.7}
    return SavedLaw(form, values, {"m": "d_model", "ell": "n_layers"}, {"ell": 1.0})


@pytest.fixture
def design():
    return pd.DataFrame({"run": ["a", "b", "c"], "d_model": [64, 128, 256], "n_layers": [2, 5, 17]}, index=[7, 9, 4])


def test_without_noise_it_is_the_closed_form(law, design):
    made = simulate_law(law, design, noise=0)
    exact = 40 / design.d_model + 3 / (design.n_layers - 1) ** 0.7 + 1.7
    assert made["loss"].to_numpy() == pytest.approx(exact.to_numpy(), rel=1e-14)
    pd.testing.assert_frame_equal(made.drop(columns="loss"), design)
    assert list(made.columns) == [*design.columns, "loss"]
    assert "loss" not in design.columns
    for kind in ("linear", "student"):
        assert simulate_law(law, design, noise=0, kind=kind)["loss"].equals(made["loss"])


@pytest.mark.parametrize("kind", ["log", "linear", "student"])
def test_the_spread_of_the_residuals_is_the_noise(law, kind):
    count, noise = 20_000, 0.01
    table = pd.DataFrame({"m": np.full(count, 100.0), "ell": np.full(count, 3.0)})
    exact = 40 / 100 + 3 / 2**0.7 + 1.7
    loss = simulate_law(law, table, noise=noise, kind=kind, nu=5.0)["loss"].to_numpy()
    residuals = loss - exact if kind == "linear" else np.log(loss / exact)
    wanted = noise * np.sqrt(5 / 3) if kind == "student" else noise
    assert residuals.std() == pytest.approx(wanted, rel=0.05 if kind == "student" else 0.02)
    assert residuals.mean() == pytest.approx(0, abs=4 * wanted / np.sqrt(count))
    if kind != "student":  # a normal distribution has 4.55 % beyond two standard deviations
        assert np.mean(np.abs(residuals) > 2 * noise) == pytest.approx(0.0455, abs=0.006)


def test_seeds(law, design):
    first = simulate_law(law, design, noise=0.01, seed=3)
    assert first.equals(simulate_law(law, design, noise=0.01, seed=3))
    assert not first.equals(simulate_law(law, design, noise=0.01, seed=4))


def test_columns(law, design):
    renamed = design.rename(columns={"d_model": "w"})
    made = simulate_law(law, renamed, noise=0, loss="L", columns={"m": "w"})
    assert made["L"].to_numpy() == pytest.approx(simulate_law(law, design, noise=0)["loss"].to_numpy(), rel=1e-15)
    symbols = design.rename(columns={"d_model": "m", "n_layers": "ell"})
    assert simulate_law(law, symbols, noise=0)["loss"].equals(simulate_law(law, design, noise=0)["loss"])


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            {"n_layers": [1, 5, 0]},
            {},
            "n_layers of the design must be greater than the offset 1, got 1 in row 7, 0 in row 4",
        ),
        ({"d_model": [64, None, 256]}, {}, "got nan in row 9"),
        ({"d_model": [64, "wide", 256]}, {}, "'wide' in row 9"),
        ({"d_model": [64, np.inf, 256]}, {}, "a finite number in every row"),
        ({"loss": [1, 2, 3]}, {}, "a name that no column of the design has, got 'loss'"),
        ({}, {"columns": {"m": "d_modl"}}, "Did you mean 'd_model'"),
        ({}, {"columns": {"D": "d_model"}}, "for m, ell, got 'D'"),
        ({}, {"noise": -1}, "noise must be a finite number, 0 or more"),
        ({}, {"noise": float("nan")}, "noise must be"),
        ({}, {"kind": "lin"}, "kind must be one of log, linear, student"),
        ({}, {"kind": "student", "nu": 0}, "nu must be a finite number above 0"),
        ({}, {"seed": -1}, "seed must be"),
        ({}, {"kind": "linear", "noise": 1e3}, "noise leaves the loss positive"),
        ({"d_model": [1e-320, 128, 256]}, {}, "where the law is positive and finite"),
    ],
)
def test_bad_designs_in_one_line(law, design, change, options, message):
    with pytest.raises(InputError) as error:
        simulate_law(law, design.assign(**change), **{"noise": 0.01, **options})
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_missing_column(law, design):
    with pytest.raises(InputError, match="the design's column for ell must be a column of the table"):
        simulate_law(law, design.drop(columns="n_layers"), noise=0.01)


def test_a_fit_simulates_its_own_rows(make_table):
    """Noise of the fit's own size, on its own rows: as a parametric bootstrap would have it."""
    table = make_table()
    fit = fit_law(table, "decomposed", {"m": "m", "ell": "ell", "D": "D"}, offsets={"ell": 1}, intervals="covariance")
    made = simulate_law(fit, table.drop(columns="loss"), noise=0)
    assert made["loss"].to_numpy() == pytest.approx(fit.predict(table)["loss"].to_numpy(), rel=1e-10)


def bank_of_laws(count):
    """Random truths and designs: yields (law, table); each term 5 ... 50 % of the loss at the middle of its design."""
    for seed in range(count):
        generator = np.random.default_rng([20, seed])
        names = [str(name) for name in generator.permutation(NAMES)[: generator.integers(2, 5)]]
        rows = int(generator.integers(80, 301))
        sides = {2: rows ** (1 / 2), 3: rows ** (1 / 3), 4: rows ** (1 / 4)}[len(names)]
        axes = []
        for name in names:
            reach = generator.uniform(1.0, 2.2)  # decades on each side of the middle
            points = max(round(sides), 4 if len(names) == 4 else 5)
            axes.append(MIDDLES[name] * 10 ** np.linspace(-reach, reach, points))
        grid = np.array([axis.ravel() for axis in np.meshgrid(*axes)])
        grid = grid[:, generator.permutation(grid.shape[1])[: max(rows, 80)]]
        exponents = generator.uniform(0.2, 1.5, len(names))
        shares = generator.uniform(0.05, 0.5, len(names))
        while shares.sum() > 0.9:  # something is left for L0
            shares = generator.uniform(0.05, 0.5, len(names))
        loss = generator.uniform(2, 4)
        values = {f"c_{n}": s * loss * MIDDLES[n] ** a for n, s, a in zip(names, shares, exponents, strict=True)}
        values |= {f"alpha_{n}": a for n, a in zip(names, exponents, strict=True)}
        values["L0"] = loss * (1 - shares.sum())
        law = SavedLaw(Law("truth", tuple(map(Term, names))), values, {name: name for name in names}, {})
        design = pd.DataFrame(dict(zip(names, grid, strict=True)))
        yield law, simulate_law(law, design, noise=generator.uniform(0.002, 0.01), seed=seed)


def natural(fit: LawFit, values):
    """The truth as (ln c, exponents, ln L0)."""
    names = fit.law.parameters
    return np.array([values[n] if n.startswith("alpha") else np.log(values[n]) for n in names])


def test_fits_of_a_bank_of_laws_get_them_back():
    covered, far, above, unidentified = [], [], [], 0
    for law, table in bank_of_laws(50):
        assert 80 <= len(table) <= 300
        fit = fit_law(table, law.law, intervals="profile", num_starts=16)
        estimate = fit.estimate
        truth = natural(fit, law.values)
        matrix, shift = estimate.problem.model.to_natural()
        at_truth = estimate.problem.value(np.linalg.solve(matrix, truth - shift), estimate.weights)
        above.append(estimate.value / at_truth)
        errors = np.sqrt(np.diag(estimate.covariance))
        for name, true, found, error in zip(fit.law.parameters, truth, estimate.natural, errors, strict=True):
            one = fit.parameters[name]
            if not one.identified:
                unidentified += 1
                continue
            assert one.low is not None and one.high is not None
            covered.append(one.low <= law.values[name] <= one.high)
            far.append(abs(found - true) / error)
    told = (
        f"coverage {100 * np.mean(covered):.1f} % of {len(covered)} parameters, {unidentified} not identified; "
        f"farthest {max(far):.2f} standard errors; objective {min(above):.3f} ... {max(above):.3f} of that at the truth"
    )
    print(told)
    assert max(above) <= 1 + 1e-9, told
    assert 0.92 <= np.mean(covered) <= 0.98, told
    assert max(far) < 5, told
